"""Wrong calls: what they say, that no rank hangs, and that a refused call leaves the group as it was."""

import contextlib
import time
from unittest import mock

import numpy as np
import pytest
import torch
import torch.distributed as dist

import col
import members
import trial


def refuses(kind, words, function, *args, **more):
    with pytest.raises(kind) as caught:
        function(*args, **more)
    assert words in str(caught.value), str(caught.value)


def wrong_arguments(groups):
    n = groups.size
    x, ones = torch.ones(4), [torch.ones(4) for _ in range(n)]
    many = [torch.ones(4) for _ in range(n + 1)]
    refuses(col.InvalidArgument, f"{n + 1} tensors", dist.all_gather, many, x)
    refuses(col.InvalidArgument, f"{n + 1} tensors", dist.reduce_scatter, x, many)
    refuses(col.InvalidArgument, f"{n + 1} tensors", dist.all_to_all, ones, many)
    refuses(col.InvalidArgument, f"{n + 1} tensors", dist.all_to_all, many, ones)
    refuses(col.InvalidArgument, "must have", dist.all_gather_into_tensor, torch.ones(4 * n + 1), x)
    refuses(col.InvalidArgument, "must have", dist.reduce_scatter_tensor, x, torch.ones(4 * n + 1))
    refuses(col.InvalidArgument, "add up to", dist.all_to_all_single, torch.ones(4 * n), torch.ones(4 * n), None, [5] * n)
    if n > 1:
        splits = [4] + [0] * (n - 1)
        refuses(col.InvalidArgument, "equal parts", dist.all_to_all_single, torch.ones(4), torch.ones(n + 1), splits)
    refuses(col.InvalidArgument, "layout", dist.broadcast, torch.eye(3).to_sparse(), 0)
    refuses(col.InvalidArgument, "SUM", dist.all_reduce, torch.eye(3).to_sparse(), op=dist.ReduceOp.MAX)
    refuses(col.InvalidArgument, "", dist.all_reduce, x, op=dist.ReduceOp.BAND)  # of floats
    if n > 1:
        refuses(col.InvalidArgument, "cpu and on meta", dist.all_gather, [torch.ones(4, device="meta"), *ones[1:]], x)
    refuses(col.Unavailable, "meta", dist.all_reduce, torch.ones(4, device="meta"))
    if groups.rank == 0:  # whose lists they are
        refuses(col.InvalidArgument, f"{n + 1} tensors", dist.gather, x, many)
        refuses(col.InvalidArgument, f"{n + 1} tensors", dist.scatter, x, many)
        if n > 1:  # as many elements as there must be, and not those
            uneven = [torch.ones(3), torch.ones(5), *ones[2:]]
            refuses(col.InvalidArgument, "as large", dist.gather, x, uneven)
            refuses(col.InvalidArgument, "as large", dist.scatter, x, uneven)
    assert all(torch.equal(one, torch.ones(4)) for one in ones)
    dist.all_reduce(x)  # and the group is as good as before
    assert x.tolist() == [n] * 4


@pytest.mark.parametrize("size", [1, 2])
def test_wrong_arguments(size):
    members.run(size, wrong_arguments)


@contextlib.contextmanager
def default_device(device):
    """As torch.set_default_device() of newer torch, for what makes a tensor of nothing."""
    def elsewhere(make):
        return lambda *args, **more: make(*args, **{"device": device, **more})

    with mock.patch.object(torch, "tensor", elsewhere(torch.tensor)), mock.patch.object(torch, "empty", elsewhere(torch.empty)):
        yield


def sparse_sum(groups):
    for shape, kept in (((5,), 3), ((4, 3), 5), ((6, 2, 2), 0)):
        for dense_axes in range(len(shape)):
            every = []
            for rank in range(groups.size):
                generator = torch.Generator().manual_seed(rank)
                x = torch.randint(0, 9, shape, generator=generator) * (torch.rand(shape, generator=generator) < kept / 9)
                every.append(x.double())
            x = every[groups.rank].to_sparse(len(shape) - dense_axes)
            with default_device("meta"):
                dist.all_reduce(x)
            assert torch.equal(x.to_dense(), sum(every))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_sparse_sum(size):
    members.run(size, sparse_sum)


def output_that_cannot_be_written(groups):
    windows = torch.ones(7).unfold(0, 4, 1)  # rows that overlap
    for x in (torch.ones(1).expand(4), windows):
        refuses(col.InvalidArgument, "single memory location; pass its clone()", dist.all_reduce, x)
        refuses(col.InvalidArgument, "single memory location", dist.all_gather, [torch.ones(4), x], torch.ones(4))
        refuses(col.InvalidArgument, "single memory location", dist.recv, x, 0)
    y = torch.ones(4)
    dist.all_reduce(y)
    assert y.tolist() == [groups.size] * 4


def test_output_that_cannot_be_written():
    members.run(2, output_that_cannot_be_written)


def shared_outputs(groups):
    """Lists to fill in which a place is there twice: what came last would be left."""
    n, x = groups.size, torch.full((4,), groups.rank + 1.0)

    def among_others(first, last):
        return [first, *(torch.zeros_like(first) for _ in range(n - 2)), last]

    same, whole, grid = torch.zeros(4), torch.zeros(4 + 2 * n), torch.zeros(4, 4)
    for outs in (
        [same] * n,
        [whole[2 * r : 2 * r + 4] for r in range(n)],
        [whole[2 * r : 2 * r + 4] for r in reversed(range(n))],
        list(whole.unfold(0, 4, 2)[:n]),
        among_others(same, same),
        among_others(whole[:4], whole[3:7]),
        among_others(grid[:, 1], grid[:, 1]),
        among_others(grid[1], grid[:, 2]),
    ):
        calls = [
            lambda: dist.all_gather(outs, x),
            lambda: dist.all_to_all(outs, [x] * n),
            lambda: groups.col.allgather_coalesced([[torch.zeros(4), out] for out in outs], [x, x]),
        ]
        if groups.rank == 0:  # whose list it is
            calls.append(lambda: dist.gather(x, outs))
        for call in calls:
            refuses(col.InvalidArgument, "of the list share memory; give each rank's data a place of its own", call)
    # Of calls made at once, one may neither read nor write what another writes.
    room = torch.zeros(4 * n)
    for call in (
        lambda: groups.col.allreduce_coalesced([same, same]),
        lambda: groups.col.allreduce_coalesced([whole[:4], torch.zeros(4), whole[3:7]]),
        lambda: groups.col.all_gather_single_coalesced([room, torch.zeros(4 * n)], [x, room[:4]]),
        lambda: groups.col.all_gather_single_coalesced([room, room], [x, x]),
        lambda: groups.col.allgather_coalesced([[room[4 * r : 4 * r + 4], torch.zeros(1)] for r in range(n)], [x, room[:1]]),
        lambda: groups.col.reduce_scatter_single_coalesced([same, room[:4]], [room, torch.zeros(4 * n)]),
        lambda: groups.col.reduce_scatter([same, same], [[x] * n] * 2),
    ):
        refuses(col.InvalidArgument, "of the list share memory that is written; give each its own", call)
    for call in (
        lambda: dist.all_gather_into_tensor(room, room[1:5]),
        lambda: dist.reduce_scatter_tensor(room[1:5], room),
        lambda: dist.all_to_all_single(whole[1 : 3 * n + 1], whole[: 3 * n]),
        lambda: dist.all_gather(list(room.split(4)), room[1:5]),
        lambda: dist.reduce_scatter(room[1:5], list(room.split(4))),
    ):
        refuses(col.InvalidArgument, "overlap other than in place", call)


def places_apart(groups):
    """Lists that only look so: what lies between one another's elements, inputs that are there twice, and the input itself."""
    n, x = groups.size, torch.full((4,), groups.rank + 1.0)
    every = [torch.full((4,), r + 1.0) for r in range(n)]
    grid, empty = torch.zeros(4, n + 1), torch.zeros(0)
    columns = [grid[:, r] for r in range(n)]
    dist.all_gather(columns, x)
    assert all(map(torch.equal, columns, every)) and not grid[:, n].any()
    dist.all_gather([empty] * n, empty)
    outs = [x, *(torch.zeros(4) for _ in range(n - 1))]  # not its own place: what is there is sent before it is overwritten
    dist.all_gather(outs, x)
    assert all(map(torch.equal, outs, every))
    dist.all_to_all(outs, [every[groups.rank]] * n)
    assert all(map(torch.equal, outs, every))
    dist.reduce_scatter(out := torch.zeros(4), [every[0]] * n)
    assert out.tolist() == [n] * 4
    two = [torch.zeros(4 * n), torch.zeros(4 * n)]
    groups.col.all_gather_single_coalesced(two, [every[groups.rank]] * 2).wait()
    assert all(torch.equal(one.view(n, 4), torch.stack(every)) for one in two)


@pytest.mark.parametrize("check", [shared_outputs, places_apart])
def test_memory_that_is_there_twice(check):
    members.run(3, check)


def read_only_output(groups, path):
    """Torch does not know that it is, and ends by a fault if it writes there."""
    x, ones = torch.from_numpy(np.memmap(path, np.float32, "r", shape=(4, 4))), torch.ones(4, 4)
    other = 1 - groups.rank
    for out in x, x.t(), x[:, :2]:
        source = torch.ones(out.shape)
        refuses(col.InvalidArgument, "pass a copy", dist.all_reduce, out)
        refuses(col.InvalidArgument, "pass a copy", dist.broadcast, out, other)
        refuses(col.InvalidArgument, "pass a copy", dist.all_gather, [torch.ones(out.shape), out], source)
        refuses(col.InvalidArgument, "pass a copy", dist.reduce_scatter, out, [source, source])
        refuses(col.InvalidArgument, "pass a copy", dist.recv, out, other)
    dist.all_gather([ones, ones.clone()], x)  # as an input, always
    for out in x, x.t():
        dist.broadcast(out if groups.rank == 0 else torch.ones(4, 4), 0)  # its root, and who is none of a reduce, only read
        dist.reduce(out if groups.rank == 1 else torch.ones(4, 4), 0)
    assert ones.tolist() == x.tolist()


@pytest.mark.filterwarnings("ignore:The given")
def test_read_only_output(tmp_path):
    np.arange(16, dtype=np.float32).tofile(tmp_path / "memory")
    members.run(2, read_only_output, str(tmp_path / "memory"))


def wait_that_passes(groups):
    peer = 1 - groups.rank
    out = torch.zeros(4, 2)[:, 0]
    work = dist.irecv(out, peer)
    begin = time.monotonic()
    refuses(col.Timeout, "goes on", work.wait, trial.timeout_of(0.1))
    assert 0.1 <= time.monotonic() - begin < 5
    assert not work.is_completed()
    assert not work.is_success()
    dist.barrier()
    dist.send(torch.full((4,), 3.0), peer)
    assert work.wait(trial.timeout_of(20))
    assert work.is_success() and work.exception() is None
    assert out.tolist() == [3.0] * 4


def test_wait_that_passes():
    members.run(2, wait_that_passes)


def wait_that_names(groups):
    x = torch.ones(4)
    if groups.rank == 1:
        dist.barrier(groups.gloo)  # until the others have given up
    work = dist.all_reduce(x, async_op=True)
    if groups.rank != 1:
        for seconds in (0.01, 0.3):
            words = f"has not ended after {1000 * seconds:g}ms: rank 1 did not enter it.*goes on"
            with pytest.raises(col.Timeout, match=words) as caught:
                work.wait(trial.timeout_of(seconds))
            assert caught.value.rank == 1
        dist.barrier(groups.gloo)
    work.wait()
    assert x.tolist() == [3] * 4


def test_wait_that_names():
    members.run(3, wait_that_names)


# Each of these breaks its group, so that it has one of its own.


def broken(groups, call):
    """What call(group) ends with, and after how many seconds."""
    group = dist.new_group(timeout=trial.timeout_of(3))
    begin = time.monotonic()
    try:
        call(groups, group)
    except RuntimeError as error:
        return error, time.monotonic() - begin
    return None, time.monotonic() - begin


def other_size(groups, group):
    dist.all_reduce(torch.ones(4 + (groups.rank == 1)), group=group)


def other_type(groups, group):
    dist.all_reduce(torch.ones(4, dtype=torch.float64 if groups.rank == 1 else torch.float32), group=group)


def other_call(groups, group):
    if groups.rank == 1:
        dist.broadcast(torch.ones(4), 0, group=group)
    else:
        dist.all_reduce(torch.ones(4), group=group)


def other_root(groups, group):
    dist.broadcast(torch.ones(4), int(groups.rank == 1), group=group)
    dist.barrier(group)  # two roots send, and may go on: the next call finds it


def other_op(groups, group):
    dist.all_reduce(torch.ones(4), op=dist.ReduceOp.MAX if groups.rank == 1 else dist.ReduceOp.SUM, group=group)


def in_a_future(groups, group):
    future = dist.all_reduce(torch.ones(4 + (groups.rank == 1)), group=group, async_op=True).get_future()
    with pytest.raises(RuntimeError, match="mismatch"):
        future.then(lambda future: future.value()).wait()
    future.wait()


def while_polled(groups, group):
    work = dist.all_reduce(torch.ones(4 + (groups.rank == 1)), group=group, async_op=True)
    while not work.is_completed():
        time.sleep(0)
    assert not work.is_success()
    raise work.exception()


CALLS = [other_size, other_type, other_call, other_root, other_op, in_a_future, while_polled]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("size", [2, 3])
def test_mismatch(size, call):
    for error, seconds in members.run(size, broken, call):
        if call is in_a_future:  # torch puts it in words of its own
            assert isinstance(error, RuntimeError)
        else:
            assert type(error) is col.Mismatch
            assert size == 2 or error.rank == 1
        assert "mismatch" in str(error) and "rank 1 called" in str(error), str(error)
        assert seconds < 2


def missing(groups, group):
    if groups.rank != 1:
        dist.all_reduce(torch.ones(4), group=group)


def missing_from_barrier(groups, group):
    if groups.rank != 1:
        group.monitored_barrier(trial.timeout_of(0.5))


def missing_in_a_future(groups, group):
    if groups.rank != 1:
        dist.all_reduce(torch.ones(4), group=group, async_op=True).get_future().wait()


@pytest.mark.parametrize("call", [missing, missing_from_barrier, missing_in_a_future], ids=lambda call: call.__name__)
def test_a_rank_that_does_not_come(call):
    outcomes = members.run(3, broken, call)
    for rank in (0, 2):
        error, seconds = outcomes[rank]
        assert "rank 1 did not enter" in str(error), str(error)
        assert call is missing_in_a_future or type(error) is col.Timeout and error.rank == 1
        assert seconds < 6 and (call is missing_from_barrier) == (seconds < 2.5)
    assert outcomes[1][0] is None


def missing_message(groups, group):
    if groups.rank == 0:
        dist.recv(torch.ones(4), 1, group=group)


def test_a_message_that_does_not_come():
    error, seconds = members.run(2, broken, missing_message)[0]
    assert type(error) is col.Timeout and 2 < seconds < 6 and "rank 1" in str(error), str(error)
