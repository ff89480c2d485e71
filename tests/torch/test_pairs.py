"""Messages between two GPUs, of which the other ranks know nothing: over stand-ins for GPUs."""

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

import col
import fake_cuda
import ranks
from col.torch import pair, process_group
from col.torch.work import Work

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


def brief_group():
    """A group whose pairs have a second. It itself is made without haste: a rank may be late on a busy machine."""
    group = dist.new_group(timeout=timedelta(seconds=ranks.LIMIT))
    group.set_timeout(timedelta(seconds=1))
    return group


def not_there(groups):
    """A group whose peer does not come: its timeout, of whoever waits."""
    group = brief_group()
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
    group = brief_group()
    if groups.rank == 0:
        group.send([of(0)], 1, 0)
    dist.destroy_process_group(group)
    groups.col.barrier().wait()


def test_a_group_that_ends_meanwhile():
    run(left)


def timeouts(groups):
    """set_timeout() counts for connections that a call makes, and for a call that waits for connections of an earlier one."""
    group, earlier = (dist.new_group(timeout=timedelta(seconds=ranks.LIMIT)) for _ in range(2))
    if groups.rank == 1:
        sent = [earlier.send([of(7)], 2, 0)]
        for each in (group, earlier):
            each.set_timeout(timedelta(seconds=1))
        with pytest.raises(col.Timeout, match="waiting for rank 1 to join .*ranks 1 and 2 as 0 and 1"):
            group.send([of(0)], 2, 0).wait()
        sent.append(earlier.send([of(8)], 2, 0))
        with pytest.raises(col.Timeout, match="isend has not begun after 1 s: rank 2 has not come to connect"):
            sent[1].wait()
        earlier.set_timeout(timedelta(seconds=ranks.LIMIT / 2))
    groups.col.barrier().wait()
    if groups.rank == 2:
        for value in (7, 8):
            out = of(-1)
            earlier.recv([out], 1, 0).wait()
            check(out, value)
    groups.col.barrier().wait()


def test_a_changed_timeout():
    run(timeouts)


def same_time(groups):
    """Connections and a message that are given the same time: those say who is missing, also where they begin late."""
    def connect():
        threading.Event().wait(0.3)
        raise col.Timeout("waiting for rank 1 to join")

    stream = fake_cuda.current_stream()
    late = pair.Pair(1, 1, stream.device, 0.1, connect)
    for timeout in (0.1, 0.2):
        with pytest.raises(col.Timeout, match="waiting for rank 1 to join"):
            late.isend(of(0), stream, timeout=timeout).wait(stream)


def test_connections_and_a_message_with_the_same_timeout():
    run(same_time)


def collected(groups):
    """What makes the connections does not keep the group, with which older torch ends a job."""
    group = dist.new_group(timeout=timedelta(seconds=ranks.LIMIT / 2))
    if groups.rank == 0:
        group.send([of(0)], 1, 0)
        there = weakref.ref(group)
        dist.destroy_process_group(group)
        del group
        gc.collect()
        assert there() is None
    groups.col.barrier().wait()
    if groups.rank == 1:
        with contextlib.suppress(col.Error):  # rank 0 has left it
            group.recv([of(0)], 0, 0).wait(timedelta(seconds=ranks.LIMIT / 2))
    groups.col.barrier().wait()


def test_a_group_is_collected_meanwhile():
    run(collected)


def failures(groups):
    """Whatever fails in the thread that connects comes out of the waits for its messages, and of nothing else."""
    def raises(_):
        raise error

    error, told = RuntimeError("no more threads"), []
    stream = fake_cuda.current_stream()
    running = SimpleNamespace(then=raises, done=lambda: False, error=None)
    laters = [pair.Later("rank 1", "isend", {}, stream, None) for _ in range(2)]
    for later in laters:
        later.then(told.append)
        later.then(None)
        later.then(told.append)
    laters[0].begin(SimpleNamespace(isend=lambda **_: running), stream)
    laters[1].fail(error)
    assert told == [error] * 4
    for later in laters:
        assert later.error is error and later.done()
        work = Work([later], [], None, stream)
        assert work.is_completed() and work.exception() is error
        for wait in (work.wait, lambda: work.wait(timedelta(seconds=1))):
            with pytest.raises(RuntimeError, match="no more threads"):
                wait()


def test_failures_of_the_thread():
    run(failures)


@pytest.mark.parametrize("is_default", [False, True])
def test_all_is_ended(is_default):
    """Also where the end of a pair fails."""
    def end(name):
        ended.append(name)
        if name in ("pair 1", "cuda"):
            raise col.PeerLost(name)

    def what_ends(name):
        return SimpleNamespace(end=lambda: end(name), destroy=lambda: end(name))

    ended = []
    group = SimpleNamespace(
        _pairs={rank: what_ends(f"pair {rank}") for rank in (1, 2)}, _ends_job="" if is_default else None, _job=what_ends("job"),
        _cuda=what_ends("cuda"), _cpu=what_ends("cpu"))
    with pytest.raises(col.PeerLost, match="pair 1"):
        process_group.ProcessGroup.shutdown(group)
    assert ended == ["pair 1", "pair 2"] + (["job"] if is_default else ["cuda", "cpu"])
