"""Collectives that are prepared once and started again and again."""

import gc

import numpy as np
import pytest

import col

NAMES = ["allreduce", "reduce", "broadcast", "allgather", "reduce_scatter", "gather", "scatter", "alltoall", "scan"]


@pytest.mark.ranks(1, 3)
@pytest.mark.parametrize("name", NAMES)
def test_every_start_gives_what_the_call_gives(group, name):
    n = group.size
    x = np.zeros(6 * n)
    more = {"out": np.zeros(6)} if name == "scatter" else {}  # only the root knows its length
    prepared = group.prepare(name, x, **more)
    assert prepared.done()
    for step in range(5):
        x[:] = np.arange(6 * n) + group.rank + step
        wanted = getattr(group, name)(x.copy(), **{key: out.copy() for key, out in more.items()})
        work = prepared.start()
        got = work.wait() if step % 2 else prepared.wait(20)
        assert prepared.done() and got is prepared.result
        if got is not None:
            assert got.tolist() == wanted.tolist()


@pytest.mark.ranks(2)
def test_one_that_is_not_prepared_meets_it(group):
    x, y = np.zeros(10), np.zeros(10)
    prepared = group.prepare("allreduce", x, out=y, op="max")
    for step in range(6):
        x[:] = group.rank + step
        if (group.rank + step) % 2:
            prepared.start()
            prepared.wait()
        else:
            group.iallreduce(x, out=y, op="max").wait()
        assert y.tolist() == [step + 1] * 10


@pytest.mark.ranks(2)
def test_several_in_flight(group):
    arrays = [np.zeros(100) for _ in range(4)]
    prepared = [group.prepare("allreduce", x) for x in arrays]
    for step in range(3):
        for i, x in enumerate(arrays):
            x[:] = i + step
        works = [one.start() for one in prepared]
        results = col.wait_all(works)
        assert [r[0] for r in results] == [2 * (i + step) for i in range(4)]


@pytest.mark.ranks(2)
def test_dropped_in_progress(group):
    x = np.full(1000, group.rank + 1.0)
    group.prepare("allreduce", x).start()
    gc.collect()
    group.barrier()
    assert x[0] == 3


@pytest.mark.ranks(2)
def test_a_function_of_the_users(group):
    x = np.zeros(3)
    prepared = group.prepare("allreduce", x, op=col.user_op(lambda a, b: np.maximum(a, b)))
    for step in range(3):
        x[:] = group.rank + step
        assert prepared.start().wait().tolist() == [step + 1] * 3


@pytest.mark.ranks(1)
def test_mistakes(group):
    x = np.zeros(4)
    for wrong in [(), (x,), (7, x)]:
        with pytest.raises(col.InvalidArgument, match="name the collective first"):
            group.prepare(*wrong)
    with pytest.raises(col.InvalidArgument, match="allreduce"):  # the valid names
        group.prepare("allreduced", x)
    with pytest.raises(col.InvalidArgument, match="send is no collective"):
        group.prepare("send", x)
    with pytest.raises(col.InvalidArgument, match="root"):
        group.prepare("broadcast", x, root=3)
    with pytest.raises(TypeError, match="prepare|allreduce"):
        group.prepare("allreduce", x, colour=3)


@pytest.mark.ranks(2)
def test_started_twice(group):
    x = np.ones(4)
    prepared = group.prepare("allreduce", x)
    if group.rank == 0:
        prepared.start()
        if not prepared.done():
            with pytest.raises(col.InvalidArgument, match="has not ended"):
                prepared.start()
        group.send(np.zeros(1), 1)
    else:
        group.recv(np.zeros(1), 0)
        prepared.start()
    assert prepared.wait()[0] == 2
