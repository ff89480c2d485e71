"""Operations in flight."""

import asyncio
import gc
import time
import weakref

import numpy as np
import pytest

import col
import ranks


class Watched(np.ndarray):
    """An array whose end can be seen."""


def watched(count):
    return np.ones(count).view(Watched)


@pytest.mark.ranks(1, 3)
def test_waits(group):
    x = np.ones(4)
    work = group.iallreduce(x)
    assert work.result is x and work.wait_for(20) is True and work.done() and work.wait() is x
    assert work.source == -1
    with pytest.raises(col.InvalidArgument, match="only one of the two"):
        work.wait(timeout=1, stream=0)
    with pytest.raises(TypeError):
        work.wait(stream="a name")
    if group.size > 1:  # arrays of the CPU
        with pytest.raises(col.Unavailable, match="without a stream"):
            work.wait(stream=0)
    assert x.tolist() == [group.size] * 4
    works = [group.iallgather(np.full(2, group.rank)) for _ in range(5)]
    for work in reversed(works):
        assert work.wait(timeout=20).tolist() == sorted(list(range(group.size)) * 2)


@pytest.mark.ranks(2)
def test_not_ended(group):
    if group.rank == 0:
        out = np.zeros(1)
        work = group.irecv(out, 1)
        assert not work.done() and work.wait_for(0.01) is False and work.wait_for(0) is False
        with pytest.raises(col.Timeout, match="goes on"):
            work.wait(timeout=0.01)
        group.barrier()
        assert work.wait(20) is out and out[0] == 7 and work.source == 1
    else:
        group.barrier()
        group.send(np.array([7.0]), 0)


@pytest.mark.ranks(3)
def test_given_up(group, shared_tmp_path):
    """Every wait with a limit names who is missing, as a blocking call does."""
    if group.rank != 1:
        x = np.ones(4)
        work, message = group.iallreduce(x), group.irecv(np.zeros(1), 1)
        group.send(np.zeros(1), 2 - group.rank, tag=1)  # each of the two knows that the other has come
        group.recv(np.zeros(1), 2 - group.rank, tag=1)
        for wait, words in (
            (lambda: work.wait(0.01), "iallreduce of 4 float64, sum, by .*has not ended after 10ms: rank 1 did not enter it"),
            (lambda: work.wait(timeout=0.3), "has not ended after 300ms: rank 1 did not enter it"),
            (lambda: col.wait_all([work, message], timeout=0.02), "iallreduce .* has not ended after 20ms: rank 1 "),
            (lambda: col.wait_any([message, work], timeout=0.02), "irecv: message of 1 float64 from rank 1 .*after 20ms: rank 1 "),
        ):
            with pytest.raises(col.Timeout, match=words + ".*it goes on$") as caught:
                wait()
            assert (caught.value.rank, caught.value.group) == (1, group.name), str(caught.value)
        assert work.wait_for(0.01) is False and isinstance(work.overdue(0.01), col.Timeout)
        (shared_tmp_path / str(group.rank)).touch()
        work.wait()
        message.wait()
        assert x.tolist() == [3] * 4
    else:  # does something else, until both have given up
        ranks.until(lambda: len(list(shared_tmp_path.iterdir())) == 2)
        for rank in (0, 2):
            group.send(np.zeros(1), rank)
        group.iallreduce(np.ones(4)).wait()


def dropped_collective(group):
    data = watched(1 << 16)
    gone = weakref.ref(data)
    group.iallreduce(data)
    del data
    group.barrier()  # ends it
    group.barrier()  # lets go of what it used
    gc.collect()
    assert gone() is None


def dropped_message(group):
    if group.rank == 0:
        data = watched(8)
        gone = weakref.ref(data)
        group.irecv(data, 1)
        del data
        gc.collect()
        group.barrier()
        assert gone() is not None  # nothing was sent yet
        group.barrier()
        group.recv(np.zeros(1), 1, tag=1)  # sent after it
        group.ibarrier().wait()
        assert gone() is None
    else:
        group.barrier()
        group.barrier()
        group.send(np.full(8, 5.0), 0)
        group.send(np.zeros(1), 0, tag=1)
        group.ibarrier().wait()


@pytest.mark.parametrize("function", [dropped_collective, dropped_message])
def test_dropped_work_keeps_its_arrays(function):
    ranks.run(2, function)


@pytest.mark.ranks(2)
def test_result_outlives_its_work(group):
    results = [group.iallreduce(np.full(3, float(k))) for k in range(3)]
    arrays = [work.wait() for work in results]
    del results
    gc.collect()
    assert [array[0] for array in arrays] == [0, group.size, 2 * group.size]


def awaits(group, ticked):
    async def tasks():
        ticks = 0

        async def ticking():
            nonlocal ticks
            while True:
                ticks += 1
                if group.rank == 0 and ticks == 10:
                    ticked.touch()
                await asyncio.sleep(0)

        other = asyncio.create_task(ticking())
        # Until the other tasks have run: here, and on rank 0, which waits for this one.
        while group.rank == 1 and (ticks <= 3 or not ticked.exists()):
            await asyncio.sleep(0)
        x = np.ones(3)
        assert await group.iallreduce(x) is x
        first, second = await asyncio.gather(
            wait_for(group.iallgather(np.array([group.rank]))), wait_for(group.ibroadcast(np.array([group.rank]), root=1))
        )
        other.cancel()
        assert x.tolist() == [group.size] * 3 and first.tolist() == [0, 1] and second.tolist() == [1]
        assert ticks > 3

    async def wait_for(work):
        return await work

    asyncio.run(tasks())


def test_await(tmp_path):
    ranks.run(2, awaits, tmp_path / "ticked")


@pytest.mark.ranks(2)
def test_await_raises(group):
    own = group.dup()

    async def fails():
        await own.iallreduce(np.ones(3 + group.rank), timeout=20)

    with pytest.raises(col.Mismatch):
        asyncio.run(fails())
    own.destroy()


@pytest.mark.ranks(2)
def test_error_at_every_wait(group):
    own = group.dup()
    work = own.iallreduce(np.ones(3 + group.rank), timeout=20)
    for _ in range(2):
        with pytest.raises(col.Mismatch):
            work.wait()
    with pytest.raises(col.Mismatch):
        work.done()
    own.destroy()


@pytest.mark.ranks(2)
def test_work_outlives_its_group(group):
    own = group.dup()
    work = own.ibarrier()
    work.wait()
    own.destroy()
    assert work.done()
    own = group.dup()
    kept = own.iallreduce(np.ones(3))
    own.barrier()
    own.destroy()
    assert kept.wait().tolist() == [group.size] * 3
    own.destroy()  # does nothing


class Loud(np.ndarray):
    """An array whose end runs code."""

    def __del__(self):
        if hasattr(self, "ring"):
            self.ring()


@pytest.mark.ranks(1)
def test_an_array_that_ends_with_its_work_may_ask_it(group):
    x = np.ones(8).view(Loud)
    seen = []
    x.ring = lambda: seen.append(work.done())
    work = group.isend(x, group.rank, tag=9)
    del x
    group.recv(np.zeros(8), group.rank, tag=9)
    work.wait()
    assert seen == [True]


@pytest.mark.ranks(1, 2)
def test_several(group):
    arrays = [np.full(3, float(k)) for k in range(4)]
    assert col.wait_all([group.iallreduce(array) for array in arrays]) == arrays
    assert [array[0] for array in arrays] == [k * group.size for k in range(4)]
    assert col.wait_all([], timeout=1) == []
    out = np.zeros(1)
    message = group.irecv(out, group.rank, tag=8)
    works = [message, group.iallreduce(np.ones(3))]
    assert col.wait_any(works) == 1 and message.error is None
    with pytest.raises(col.Timeout, match="goes on"):
        col.wait_all([message], timeout=0.01)
    with pytest.raises(col.Timeout, match="goes on"):
        col.wait_any([message], timeout=0.01)
    group.send(np.array([4.0]), group.rank, tag=8)
    assert col.wait_any([message]) == 0 and out[0] == 4
    with pytest.raises(col.InvalidArgument, match="list of Works"):
        col.wait_all([None])
    with pytest.raises(col.InvalidArgument):
        col.wait_any([])


@pytest.mark.ranks(2)
def test_then(group):
    own = group.dup()
    seen = []
    x = np.ones(3)
    work = own.iallreduce(x)
    after = work.then(lambda error: seen.append((error, x[0])))
    after.wait()
    assert seen == [(None, group.size)] and work.error is None

    def fails(error):
        raise KeyError("in then")

    with pytest.raises(col.Error, match="in then"):
        work.then(fails).wait()
    with pytest.raises(col.InvalidArgument, match="function"):
        work.then(3)
    # Without a function, and without a wait for the operation itself: the thread counts the timeout of what nobody sends.
    if group.rank == 0:
        watched = own.irecv(np.ones(1), source=1, tag=1, timeout=0.2)
        watched.then(None)
        for _ in range(2000):  # 20 s at most
            if watched.error is not None:
                break
            time.sleep(0.01)
        assert isinstance(watched.error, col.Timeout)
    group.barrier()  # until then, nobody leaves


@pytest.mark.ranks(2)
def test_then_of_a_mismatch(group):
    own = group.dup()
    seen = []
    broken = own.iallreduce(np.ones(3 + group.rank), timeout=20)
    broken.then(seen.append).wait()
    assert isinstance(seen[0], col.Mismatch) and broken.error == seen[0]
    own.destroy()


@pytest.mark.ranks(1, 3)
def test_coalesced(group):
    before, kept = np.ones(3), np.ones(3)
    early = group.iallreduce(before)
    arrays = [np.full(5, i + 1.0) for i in range(4)]
    with group.coalesce() as scope:
        works = [group.iallreduce(x) for x in arrays]
        group.iallgather(watched(4))  # kept until it has ended
        early.wait()
        with pytest.raises(col.InvalidArgument, match="a scope of coalesce"):
            group.barrier()
        with pytest.raises(col.InvalidArgument, match="has not ended"):
            scope.work
        if group.size > 1:
            with pytest.raises(col.InvalidArgument, match="has not ended"):
                works[0].wait()
    scope.wait(20)
    assert scope.work.done() and all(work.done() for work in works)
    assert [x[0] for x in arrays] == [group.size * (i + 1.0) for i in range(4)] and before[0] == group.size
    with pytest.raises(ZeroDivisionError):
        with group.coalesce():
            work = group.iallreduce(kept)
            1 / 0
    if group.size > 1:
        with pytest.raises(col.Aborted, match="cancelled"):
            work.wait()
    group.allreduce(kept)
    assert kept[0] == group.size
    with pytest.raises(col.InvalidArgument, match="has not begun"):
        scope.__exit__(None, None, None)
