"""Ranks that a test may kill. They begin with torch imported, and serve one test."""

import tempfile

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
