"""Runs a test's function on n ranks. The ranks are processes that are kept from test to test: numpy and torch are imported
once, before they are forked, and a group of each size is made once."""

import multiprocessing
import multiprocessing.connection
import shutil
import sys
import tempfile
import time
import traceback

LIMIT = 60  # seconds a test's function may take; a rank that takes longer is a failure, and ends

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["numpy", "torch", "col"])


def _join(store, rank, size):
    """What a test's function is given, and what ends it."""
    import col

    return col.init(store="file://" + store, rank=rank, world_size=size, timeout=LIMIT / 2), col.finalize


def _serve(pipe, join, store, rank, size):
    group, leave = join(store, rank, size)
    while True:
        try:
            call = pipe.recv()
        except EOFError:
            break
        if call is None:
            break
        function, args = call
        try:
            answer = (True, function(group, *args))
        except BaseException as error:  # the test decides
            answer = (False, (error, traceback.format_exc()))
        try:
            pipe.send(answer)
        except Exception as error:  # what cannot be pickled
            pipe.send((False, (RuntimeError(repr(answer)), str(error))))
    leave()


class Ranks:
    """The processes of one size."""

    def __init__(self, size, join=_join):
        self.size = size
        self.store = tempfile.mkdtemp(prefix="col-python-")
        self.pipes, self.processes = [], []
        for rank in range(size):
            mine, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, join, self.store, rank, size), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def outcomes(self, function, *args):
        """(True, result) or (False, (exception, traceback)) of each rank; None for a rank that waited for one that failed."""
        for pipe in self.pipes:
            pipe.send((function, args))
        outcomes = [None] * self.size
        deadline = time.monotonic() + LIMIT
        while None in outcomes and time.monotonic() < deadline:
            waiting = {pipe: r for r, pipe in enumerate(self.pipes) if outcomes[r] is None}
            for pipe in multiprocessing.connection.wait(waiting, deadline - time.monotonic()):
                outcomes[waiting[pipe]] = pipe.recv()
            if any(outcome is not None and not outcome[0] for outcome in outcomes):
                deadline = min(deadline, time.monotonic() + 2)  # the others may wait for it
        if all(outcome is None or outcome[0] for outcome in outcomes) and None in outcomes:
            raise AssertionError(f"{function.__name__}{args} on {self.size} ranks: rank {outcomes.index(None)} did not end")
        return outcomes

    def end(self):
        for pipe in self.pipes:
            try:
                pipe.send(None)
            except OSError:
                pass
        for process in self.processes:
            process.join(5)
            if process.is_alive():
                process.kill()
        shutil.rmtree(self.store, ignore_errors=True)


_kept = {}


def run(size, function, *args, join=_join):
    """Calls function(group, *args) on each rank, and returns the list of results. Raises the first rank's exception."""
    if (size, join) not in _kept:
        _kept[size, join] = Ranks(size, join)
    try:
        outcomes = _kept[size, join].outcomes(function, *args)
        for rank, outcome in enumerate(outcomes):
            if outcome is not None and not outcome[0]:
                error, trace = outcome[1]
                print(f"rank {rank} of {size}:\n{trace}", file=sys.stderr)
        for outcome in outcomes:
            if outcome is not None and not outcome[0]:
                raise outcome[1][0]
        return [result for _, result in outcomes]
    except BaseException:
        _kept.pop((size, join)).end()  # the next test gets new ones
        raise


def end_all():
    for ranks in _kept.values():
        ranks.end()
    _kept.clear()
