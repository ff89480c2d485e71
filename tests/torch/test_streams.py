"""In which streams calls run on a GPU: over stand-ins for GPUs, as the CPU's torch has no streams."""

import contextlib
import gc
import os
import threading
import weakref
from datetime import timedelta
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

import fake_cuda
import ranks
import stand_ins

COUNT = 1000

pytestmark = pytest.mark.skipif(
    "STAND_INS" not in os.environ or hasattr(torch.Tensor, "__dlpack_c_exchange_api__"),
    reason="there are no stand-ins, or torch would lend their memory as the host's")


def run(function, *args):
    return ranks.run(2, function, *args, join=fake_cuda.join)


def options(is_async):
    """As torch 2.8 and newer have them."""
    return SimpleNamespace(reduceOp=dist.ReduceOp.SUM, timeout=timedelta(0), asyncOp=is_async)


def in_the_same_stream(groups, name, is_async, then):
    """Rank 0 calls then(stream, y, work) while its call waits for rank 1's."""
    store = dist.distributed_c10d._get_default_store()
    stream, x, y = fake_cuda.Stream(), fake_cuda.tensor(COUNT), fake_cuda.tensor(COUNT)
    x.fill_(0)
    with fake_cuda.in_stream(stream):
        groups.col.allreduce([x]).wait()  # connects
        stream.synchronize()
        if groups.rank == 1:
            store.wait([name], timedelta(seconds=ranks.LIMIT / 2))
        x.fill(groups.rank + 1, stream)
        work = groups.col.allreduce([x], options(is_async))
        y.fill(7, stream)
        if groups.rank == 0:
            then(stream, y, work)
            store.set(name, "")
        work.wait()
        stream.synchronize()
    assert (x.memory.data == 3).all() and (y.memory.data == 7).all()


def goes_on(stream, y, work):
    ranks.until(stream.query)  # what comes next in the caller's stream does not wait for the call
    assert not work.is_completed()
    work.wait()
    y.fill(7, stream)  # and from the wait on it does
    assert not stream.query()


def waits(stream, y, work):
    assert not stream.query()


def beside(groups):
    in_the_same_stream(groups, "beside", True, goes_on)


def test_an_asynchronous_call_runs_beside_the_callers_stream():
    run(beside)


def behind(groups):
    in_the_same_stream(groups, "behind", False, waits)


def test_a_call_that_torch_waits_for_runs_in_the_callers_stream():
    run(behind)


def in_order(groups):
    """It comes after what the caller's stream holds."""
    stream, x = fake_cuda.Stream(), fake_cuda.tensor(COUNT)
    with fake_cuda.in_stream(stream):
        groups.col.allreduce([x]).wait()
        stream.synchronize()
        with stand_ins.held_copies():
            x.fill(groups.rank + 1, stream)
            work = groups.col.allreduce([x])
            assert not work.is_completed()
        work.wait()
        stream.synchronize()
    assert (x.memory.data == 3).all()


def test_it_comes_after_the_callers_work():
    run(in_order)


def kept(groups):
    """What a call uses lives until it has ended, also if the program lets go of it, and waits for it in a stream alone."""
    store = dist.distributed_c10d._get_default_store()
    stream, x = fake_cuda.Stream(), fake_cuda.tensor(COUNT)
    with fake_cuda.in_stream(stream):
        groups.col.allreduce([x]).wait()
        stream.synchronize()
        if groups.rank == 1:
            store.wait(["kept"], timedelta(seconds=ranks.LIMIT / 2))
        work = groups.col.allreduce([x])
        work.wait()
        there = weakref.ref(x)
        del x, work
        gc.collect()
        assert groups.rank == 1 or there() is not None
        store.set("kept", "")
        stream.synchronize()

        def is_gone():
            groups.col.allreduce([fake_cuda.tensor(1)]).wait()
            gc.collect()
            return there() is None

        for _ in range(20):  # equally often on both
            is_gone()
        assert is_gone()


def test_memory_is_kept():
    run(kept)


NAMES = ("cuEventRecord", "cuStreamWaitEvent", "cuEventCreate", "cuStreamCreateWithPriority", "cuStreamSynchronize")


def counted(groups, is_async):
    stream, x = fake_cuda.Stream(), fake_cuda.tensor(COUNT)
    with fake_cuda.in_stream(stream):
        for _ in range(2):
            groups.col.allreduce([x], options(is_async)).wait()
        before = [stand_ins.driver().calls(name) for name in NAMES]
        for _ in range(10):
            groups.col.allreduce([x], options(is_async)).wait()
        after = [stand_ins.driver().calls(name) for name in NAMES]
        stream.synchronize()
    return dict(zip(NAMES, (now - then for then, now in zip(before, after))))


def test_an_asynchronous_call_takes_one_event_and_one_wait_more():
    for sync, beside in zip(run(counted, False), run(counted, True)):
        assert beside["cuEventRecord"] == sync["cuEventRecord"] + 10
        assert 10 <= beside["cuStreamWaitEvent"] <= 20  # none for a call that has ended before the wait
        for name in NAMES[3:]:
            assert beside[name] == sync[name] == 0, name


def held_up(groups):
    """A barrier begins after what only streams have waited for: rank 1's holds work back, and rank 0's side stream waits for that."""
    store = dist.distributed_c10d._get_default_store()
    stream, x = fake_cuda.current_stream(), fake_cuda.tensor(COUNT)
    groups.col.allreduce([x]).wait()
    stream.synchronize()
    begun, before = threading.Event(), stand_ins.driver().calls("cuStreamSynchronize")

    def barrier():
        barriers.append(groups.col.barrier())
        begun.set()

    barriers, thread = [], threading.Thread(target=barrier, daemon=True)
    with stand_ins.held_copies() if groups.rank == 1 else contextlib.nullcontext():
        x.fill(groups.rank + 1, stream)
        if groups.rank == 0:
            stream.synchronize()
            before += 1
        works = [groups.col.allreduce([x]) for _ in range(5)]
        thread.start()
        waits = 1 if groups.rank == 1 else 2  # for the caller's stream, and for the side stream
        ranks.until(lambda: stand_ins.driver().calls("cuStreamSynchronize") == before + waits)
        assert not begun.is_set() and not any(work.is_completed() for work in works)
        store.set(f"held up {groups.rank}", "")
        store.wait(["held up 0", "held up 1"], timedelta(seconds=ranks.LIMIT / 2))
    thread.join(ranks.LIMIT / 2)
    barriers[0].wait()
    assert all(work.is_completed() for work in works)
    for work in works:
        work.wait()
    stream.synchronize()
    assert (x.memory.data == 3 * 2**4).all()


def test_barrier():
    run(held_up)
