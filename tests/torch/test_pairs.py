"""Messages between two GPUs, of which the other ranks know nothing: over stand-ins for GPUs."""

import os
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

import col
import fake_cuda
import ranks

COUNT = 1000

pytestmark = pytest.mark.skipif(
    "STAND_INS" not in os.environ or hasattr(torch.Tensor, "__dlpack_c_exchange_api__"),
    reason="there are no stand-ins, or torch would lend their memory as the host's")


def run(function, *args):
    return ranks.run(3, function, *args, join=fake_cuda.join)


def of(value):
    x = fake_cuda.tensor(COUNT)
    x.memory.data[:] = value
    return x


def check(x, value):
    fake_cuda.current_stream().synchronize()
    assert (x.memory.data == value).all(), (x.memory.data[:4], value)


def two_of_three(groups):
    """Rank 2 comes to the GPUs only when the others are done."""
    store = dist.distributed_c10d._get_default_store()
    x = of(groups.rank)
    if groups.rank == 0:
        groups.col.send([x], 1, 0).wait()
        groups.col.recv([x], 1, 0).wait()
        check(x, 11)
    elif groups.rank == 1:
        groups.col.recv([x], 0, 0).wait()
        check(x, 0)
        groups.col.send([of(11)], 0, 0).wait()
        fake_cuda.current_stream().synchronize()
        store.set("two of three", "")
    else:
        store.wait(["two of three"], timedelta(seconds=ranks.LIMIT / 2))
    groups.col.barrier().wait()


def test_two_ranks_wait_for_no_other():
    run(two_of_three)


def ring(groups):
    """Each sends first: nobody may wait there for who comes to receive."""
    after, before = (groups.rank + 1) % 3, (groups.rank - 1) % 3
    for turn in range(3):
        out = of(-1)
        sent = groups.col.send([of(10 * turn + groups.rank)], after, 0)
        received = groups.col.recv([out], before, 0)
        if turn == 0:
            received.get_future().wait()  # by the host
            assert received.is_completed()
        received.wait()
        sent.wait()
        check(out, 10 * turn + before)
    x = of(1)
    groups.col.allreduce([x]).wait()
    check(x, 3)


def test_a_ring_that_sends_first():
    run(ring)


def in_order(groups):
    """Messages that are called while the connections are being made begin in their order, each after what its stream held then."""
    if groups.rank == 0:
        stream = fake_cuda.Stream()
        xs = [of(-1) for _ in range(4)]
        with fake_cuda.in_stream(stream):
            for i, x in enumerate(xs):
                x.fill(i, stream)
                work = groups.col.send([x], 2, 0)
            work.wait()
            stream.synchronize()
    elif groups.rank == 2:
        outs = [of(-1) for _ in range(4)]
        for out in outs:
            work = groups.col.recv([out], 0, 0)
        work.wait()
        for i, out in enumerate(outs):
            check(out, i)
    groups.col.barrier().wait()


def test_order():
    run(in_order)


def tagged(groups):
    """These may be received from anybody, and go by connections of all ranks."""
    if groups.rank == 0:
        out, seen = of(-1), set()
        for _ in range(2):
            work = groups.col.recv_anysource([out], 5)
            work.wait()
            seen.add((work.source_rank(), float(out.memory.data[0])))
        assert seen == {(1, 1.0), (2, 2.0)}
    else:
        groups.col.send([of(groups.rank)], 0, 5).wait()
    groups.col.barrier().wait()


def test_tags():
    run(tagged)


def wrong(groups):
    for call in (groups.col.send, groups.col.recv):
        with pytest.raises(col.InvalidArgument, match="there is no rank 3: the group's count from 0 to 2"):
            call([of(0)], 3, 0)
    if groups.rank == 0:
        work = groups.col.send([of(0)], 1, 0)
        with pytest.raises(col.Timeout, match="rank 1"):
            work.wait(timedelta(seconds=0.2))
    groups.col.barrier().wait()
    if groups.rank == 1:
        groups.col.recv([of(0)], 0, 0).wait()
    groups.col.barrier().wait()


def test_what_is_wrong_is_said():
    run(wrong)


def not_there(groups):
    """A group whose peer does not come: its timeout, of whoever waits."""
    group = dist.new_group(timeout=timedelta(seconds=1))
    said = "waiting for rank 1 to join .*ranks 1 and 2 as 0 and 1"
    if groups.rank == 1:
        works = [group.send([of(0)], 2, 0), group.recv([of(0)], 2, 0)]
        for work in works:
            with pytest.raises(col.Timeout, match=said):
                work.wait()
            assert isinstance(work.exception(), col.Timeout) and work.source_rank() == -1
        with pytest.raises(col.Timeout, match=said):
            group.send([of(0)], 2, 0)
        with pytest.raises(RuntimeError, match=said):
            works[0].get_future().wait()
    groups.col.barrier().wait()


def test_a_peer_that_does_not_come():
    run(not_there)


def left(groups):
    """A group may end while its pair is being made."""
    group = dist.new_group(timeout=timedelta(seconds=1))
    if groups.rank == 0:
        group.send([of(0)], 1, 0)
    dist.destroy_process_group(group)
    groups.col.barrier().wait()


def test_a_group_that_ends_meanwhile():
    run(left)
