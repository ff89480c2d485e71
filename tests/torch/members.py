"""Runs a test's function on n ranks of torch.distributed. Each is a process that is kept from test to test, and member of two
groups of all ranks: one of backend col, and one of Gloo, torch's own, which is the reference."""

import os
from datetime import timedelta
from typing import Any, NamedTuple

import processes
import ranks

LIMIT = timedelta(seconds=ranks.LIMIT / 2)


class Groups(NamedTuple):
    col: Any
    gloo: Any
    rank: int
    size: int


def _join(store, rank, size):
    import torch
    import torch.distributed as dist

    import col.torch  # noqa: F401

    torch.set_num_threads(1)
    if torch.cuda.is_available():
        torch.cuda.set_device(rank % torch.cuda.device_count())
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("col", init_method=f"file://{store}/torch", rank=rank, world_size=size, timeout=LIMIT)
    gloo = dist.new_group(backend="gloo", timeout=LIMIT)
    return Groups(dist.group.WORLD, gloo, rank, size), dist.destroy_process_group


def run(size, function, *args):
    """Calls function(groups, *args) on each rank, and returns the list of results. Raises the exception of the rank that failed."""
    return ranks.run(size, function, *args, join=_join)


def fresh(size, function, *args):
    """Calls function(rank, *args) in new processes, which join nothing before. Returns each one's exit code and result."""
    started = []
    for rank in range(size):
        mine, theirs = processes.context.Pipe()
        process = processes.context.Process(target=_call, args=(theirs, function, rank, *args), daemon=True)
        process.start()
        theirs.close()
        started.append((process, mine))
    outcomes = []
    for process, pipe in started:
        process.join(ranks.LIMIT)
        if process.is_alive():
            process.kill()
            raise AssertionError(f"{function.__name__}: a rank has not ended after {ranks.LIMIT} s")
        outcomes.append((process.exitcode, pipe.recv() if process.exitcode == 0 else None))
    return outcomes


def _call(pipe, function, *args):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    pipe.send(function(*args))
