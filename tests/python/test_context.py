"""col.Context: jobs beside the one of col.init(). Ranks are threads."""

import socket
import threading
import time

import numpy as np
import pytest

import col


def on_threads(count, function):
    """function(rank) in a thread each; the results, or the first error."""
    results, errors = [None] * count, []

    def run(rank):
        try:
            results[rank] = function(rank)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
    return results


def test_a_process_may_be_in_several_jobs(tmp_path):
    def rank_of_two_jobs(rank):
        sums = []
        for job, own in ("forward", rank), ("backward", 2 - rank):
            context = col.Context(own, 3, store=f"file://{tmp_path}", job_id=job, timeout=20)
            group = context.init_group(f"group of {job}", "shm")
            assert context.is_on_one_host
            x = np.full(4, float(own))
            group.broadcast(x, root=1)
            sums.append((group.rank, x[0]))
            group.allreduce(x)
            sums.append(x[3])
            context.finalize()
        return sums

    assert on_threads(3, rank_of_two_jobs) == [[(r, 1.0), 3.0, (2 - r, 1.0), 3.0] for r in range(3)]


def test_a_group_keeps_its_context(tmp_path):
    def rank_without_context(rank):
        group = col.Context(rank, 2, store=f"file://{tmp_path}", timeout=20).init_group()
        x = np.ones(2)
        group.allreduce(x)
        group.barrier()
        return x[0]

    assert on_threads(2, rank_without_context) == [2.0, 2.0]


class Enough(Exception):
    pass


@pytest.fixture
def refused_port():
    """As long as it is bound, nobody else can have it; nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]


@pytest.mark.parametrize("store", ["file", "a server that is not there"])
def test_interrupt_ends_the_meeting(tmp_path, refused_port, store):
    calls = []

    def interrupt():
        calls.append(time.monotonic())
        if len(calls) >= 2:
            raise Enough

    where = {"store": f"file://{tmp_path}"} if store == "file" else {
        "store": f"tcp://127.0.0.1:{refused_port}", "token": "secret"}
    with pytest.raises(Enough):
        col.Context(0, 2, timeout=60, interrupt=interrupt, **where)
    assert len(calls) == 2


def test_interrupt_ends_a_call_and_the_others_learn_of_it(tmp_path):
    stop = threading.Event()

    def interrupt():
        if stop.is_set():
            raise Enough

    def rank_that_waits(rank):
        context = col.Context(rank, 2, store=f"file://{tmp_path}", timeout=20, interrupt=interrupt if rank == 0 else None)
        group = context.init_group(backend="shm")
        group.barrier()
        if rank == 0:
            stop.set()
            with pytest.raises(Enough):
                group.recv(np.zeros(1), 1)
        else:
            with pytest.raises(col.Aborted):
                group.allreduce(np.zeros(1), timeout=20)

    on_threads(2, rank_that_waits)


def test_wrong_arguments():
    with pytest.raises(col.InvalidArgument, match="2 ranks need a store"):
        col.Context(0, 2)
    with pytest.raises(col.InvalidArgument, match="rank 3"):
        col.Context(3, 2, store="file:///tmp")
    with pytest.raises(TypeError):
        col.Context(0)


def test_calls_over_several_gpus_say_what_they_need():
    group = col.Context(0, 1).init_group()
    x = np.ones(2)
    calls = [
        lambda: group.allreduce_multigpu([x]), lambda: group.reduce_multigpu([x]), lambda: group.broadcast_multigpu([x]),
        lambda: group.allgather_multigpu([[x]], [x]), lambda: group.reducescatter_multigpu([x], [[x]]),
        lambda: group.send_multigpu(x, 0, 0), lambda: group.recv_multigpu(x, 0, 0),
    ]
    for call in calls:
        with pytest.raises(col.Unavailable, match="_multigpu"):
            call()
