"""Ranks that a test may kill. They begin with torch imported, and serve one test."""

import tempfile
import textwrap

import processes


def _serve(pipe, store, rank, size, function, args):
    import col

    world = col.init(store="file://" + store, rank=rank, world_size=size, timeout=processes.LIMIT / 2)
    pipe.send(function(world, *args))
    col.finalize()


def run(size, function, *args):
    """Calls function(group, *args) on each rank. Returns the results of those that lived, by rank."""
    started, results = [], {}
    with tempfile.TemporaryDirectory(prefix="col-python-") as store:
        for rank in range(size):
            mine, theirs = processes.context.Pipe()
            process = processes.context.Process(target=_serve, args=(theirs, store, rank, size, function, args), daemon=True)
            process.start()
            theirs.close()
            started.append((process, mine))
        try:
            for rank, (_, pipe) in enumerate(started):
                assert pipe.poll(processes.LIMIT), f"rank {rank} did not end"
                try:
                    results[rank] = pipe.recv()
                except EOFError:
                    pass  # it was killed, or has failed: then it has said why
        finally:
            for process, _ in started:
                process.join(5)
                process.kill()
    return results


def check_replaced(folder, program):
    """Runs a program on three ranks, and with a fourth that joins while the one that its argument names dies. In either case
    each prints epoch, size and a result, and the result is the same."""

    def results(directory, ranks, killed):
        directory.mkdir()
        words = "-c", textwrap.dedent(program), killed
        started = [processes.start_alone(rank, max(3, rank + 1), directory, *words) for rank in range(ranks)]
        said = [processes.finish(process) for process in started]
        assert [code for code, _, _ in said] == [-9 if rank == killed else 0 for rank in range(ranks)], said
        return [out.split(maxsplit=2) for _, out, _ in said if out]

    (want,) = {tuple(found) for found in results(folder / "undisturbed", 3, -1)}
    assert want[:2] == ("0", "3")
    for killed in 0, 2:
        found = results(folder / f"without-{killed}", 4, killed)
        assert found == [["1", "3", want[2]]] * 3, found
