"""Every collective of torch.distributed on col, against what it must be, and against Gloo."""

import os
import random

import pytest
import torch
import torch.distributed as dist

import calls
import col
import members
import trial

COUNTS = [0, 1, 15, 1001]
LARGE = 1 << 18  # elements: 1 MiB of float32
START = int(os.environ.get("COL_TEST_START", random.SystemRandom().randrange(1 << 30)))


@pytest.fixture(autouse=True)
def _start():
    print(f"COL_TEST_START={START} repeats it")


def over_types(groups, start, call, dtypes):
    """In every type and size. Returns the types in which Gloo confirms what is expected."""
    confirmed = []
    for dtype in dtypes:
        for count in COUNTS if dtype in (torch.float32, torch.uint8) else COUNTS[2:3]:
            trial.compare(groups, start + count, call, count, dtype=dtype)
        if trial.confirm(groups, start + 15, call, 15, dtype=dtype):
            confirmed.append(str(dtype))
    trial.compare(groups, start, call, LARGE)
    return confirmed


def over_ways(groups, start, call, dtypes):
    """In every layout and way to wait."""
    chosen = random.Random(start)
    for layout in trial.LAYOUTS:
        for way in trial.WAYS:
            for count in (15, chosen.choice(COUNTS)):
                dtype = chosen.choice(dtypes)
                trial.compare(groups, chosen.getrandbits(30), call, count, dtype=dtype, layout=layout, way=way)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("call", calls.REDUCTIONS + calls.OTHERS, ids=lambda call: call.__name__)
def test_call(call, size):
    dtypes = trial.NUMBERS if call in calls.REDUCTIONS else trial.DTYPES
    confirmed = members.run(size, over_types, START, call, dtypes)
    print(call.__name__, "confirmed by Gloo in", *confirmed[0])
    members.run(size, over_ways, START, call, dtypes)


@pytest.mark.parametrize("call", calls.REDUCTIONS + calls.OTHERS, ids=lambda call: call.__name__)
def test_four_ranks(call):
    members.run(4, over_ways, START, call, trial.NUMBERS if call in calls.REDUCTIONS else trial.DTYPES)


def inferred(groups, start, call, dtypes):
    """The same where autograd is off for good; and with tensors of that mode outside of it, or the other way round."""
    with torch.inference_mode():
        over_ways(groups, start, call, dtypes)
    for way in trial.WAYS:
        for mode in (True, False):
            one = trial.Trial(groups.col, groups.rank, groups.size, start, layout="strided", way=way)
            one.mode, one.call_mode = mode, not mode
            trial.check(call, one, call(one, 15))


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("call", calls.REDUCTIONS + calls.OTHERS, ids=lambda call: call.__name__)
def test_inference_mode(call, size):
    members.run(size, inferred, START, call, trial.NUMBERS if call in calls.REDUCTIONS else trial.DTYPES)


OPS = {
    "SUM": trial.NUMBERS + [torch.complex64],
    "PRODUCT": trial.NUMBERS,
    "MIN": trial.NUMBERS,
    "MAX": trial.NUMBERS,
    "AVG": trial.FLOATS[:2],
    "BAND": trial.NUMBERS[4:] + [torch.bool],
    "BOR": trial.NUMBERS[4:] + [torch.bool],
    "BXOR": trial.NUMBERS[4:] + [torch.bool],
}


def over_operators(groups, start, call):
    for op, dtypes in OPS.items():
        for dtype in dtypes:
            trial.compare(groups, start, call, 15, op, dtype=dtype)


@pytest.mark.parametrize("call", [calls.all_reduce, calls.reduce, calls.reduce_scatter, calls.reduce_scatter_tensor],
                         ids=lambda call: call.__name__)
def test_operators(call):
    members.run(2, over_operators, START, call)
    members.run(3, over_operators, START, call)


def some_wait_at_once(groups, start):
    """async_op is a rank's own affair."""
    for call in calls.REDUCTIONS + calls.OTHERS:
        way = "sync" if groups.rank == 0 else "wait"
        trial.compare(groups, start, call, 15, way=way)


def test_some_wait_at_once():
    members.run(3, some_wait_at_once, START)


def coalesced(groups, device):
    from torch.distributed.distributed_c10d import _coalescing_manager

    n, rank = groups.size, groups.rank
    x = torch.full((6 * n,), float(rank))
    for together in (True, False):
        sums, mine = [x.clone(), x[:5].clone()], [torch.zeros(6), torch.zeros(1)]
        gathered = [torch.zeros(6 * n * n), torch.zeros(2 * n)]
        for calling in (
            lambda: [dist.all_reduce(one) for one in sums],
            lambda: [dist.all_gather_into_tensor(out, one) for out, one in zip(gathered, (x, x[:2]))],
            lambda: [dist.reduce_scatter_tensor(out, one) for out, one in zip(mine, (x, x[:n]))],
        ):
            with _coalescing_manager(device=device, async_ops=together) as manager:
                calling()
            if together:
                manager.wait()
        total = float(sum(range(n)))
        assert all((one == total).all() for one in sums + mine)
        assert torch.equal(gathered[0], torch.arange(float(n)).repeat_interleave(6 * n))
        assert torch.equal(gathered[1], torch.arange(float(n)).repeat_interleave(2))


@pytest.mark.skipif(torch.__version__ < "2.1", reason="older torch has it for messages only: batch_isend_irecv")
@pytest.mark.parametrize("device", [None, torch.device("cpu")])
def test_coalescing_manager(device):
    members.run(2, coalesced, device)


def new_names(groups):
    """What torch 2.15 calls some calls, and gathers to one tensor."""
    n, rank = groups.size, groups.rank
    out = torch.zeros(3 * n) if rank == 0 else None
    dist.gather_single(torch.full((3,), float(rank)), out, 0)
    assert out is None or torch.equal(out, torch.arange(float(n)).repeat_interleave(3))
    out = torch.zeros(3 * n)
    dist.all_gather_single(out, torch.full((3,), float(rank)))
    assert torch.equal(out, torch.arange(float(n)).repeat_interleave(3))
    out = torch.zeros(3)
    dist.reduce_scatter_single(out, torch.ones(3 * n))
    assert out.tolist() == [n] * 3


def scaled(groups):
    x = torch.full((5,), groups.rank + 1.0)
    if torch.__version__ < "2":
        with pytest.raises(col.InvalidArgument, match="no reduction"):
            dist.all_reduce(x, op=dist._make_nccl_premul_sum(0.5))
        return
    for factor in (0.5, torch.tensor([2.0])):
        dist.all_reduce(x, op=dist._make_nccl_premul_sum(factor))
    assert x.tolist() == [6.0] * 5


@pytest.mark.skipif(not hasattr(dist, "_make_nccl_premul_sum"), reason="this torch has no premul_sum")
def test_premul_sum():
    members.run(2, scaled)


@pytest.mark.skipif(not hasattr(dist, "gather_single"), reason="torch has these names from 2.13 on")
def test_new_names():
    members.run(3, new_names)


def movable(groups):
    """A type that can be moved and not added."""
    x = torch.arange(4.0).to(torch.float8_e4m3fnuz)
    outs = [torch.zeros(4).to(x.dtype) for _ in range(groups.size)]
    dist.all_gather(outs, x)
    dist.broadcast(outs[0], 1)
    assert all(torch.equal(out.float(), torch.arange(4.0)) for out in outs)
    with pytest.raises(col.InvalidArgument):
        dist.all_reduce(x)


@pytest.mark.skipif(not hasattr(torch, "float8_e4m3fnuz"), reason="torch has it from 2.2 on")
def test_types_that_can_only_be_moved():
    members.run(2, movable)


def small_floats(groups):
    """8 bits are summed in float32, and rounded once."""
    for dtype, near in ((torch.float8_e4m3fn, 16.0), (torch.float8_e5m2, 8.0)):
        x = torch.tensor([near if groups.rank == 0 else 1.0, float(groups.rank)]).to(dtype)
        dist.all_reduce(x)
        assert x.float().tolist() == [near + 2, 3.0]  # rounded on its way, the first would not grow
        low = torch.tensor([1.0 - groups.rank]).to(dtype)
        dist.all_reduce(low, dist.ReduceOp.MIN)
        assert low.item() == -1


@pytest.mark.skipif(not hasattr(torch, "float8_e4m3fn"), reason="torch has it from 2.1 on")
def test_floats_of_8_bits():
    members.run(3, small_floats)


def one_element(groups):
    """Tensors without axes, and a list that is the input itself."""
    x = torch.tensor(float(groups.rank))
    outs = [torch.tensor(-1.0) for _ in range(groups.size)]
    dist.all_gather(outs, x)
    assert [out.item() for out in outs] == list(range(groups.size))
    out = torch.tensor(0.0)
    dist.scatter(out, outs if groups.rank == 0 else None)
    assert out.item() == groups.rank
    dist.all_reduce(x)
    assert x.item() == sum(range(groups.size))
    whole = torch.zeros(groups.size, 3)
    whole[groups.rank] = groups.rank + 1.0
    dist.all_gather(list(whole), whole[groups.rank])  # in place
    assert torch.equal(whole[:, 0], torch.arange(1.0, groups.size + 1))


def test_one_element():
    members.run(3, one_element)


def conjugated(groups):
    """Of x.conj(), the memory holds x."""
    z = torch.tensor([1 + 2j, 3 - 4j])
    x = z.clone().conj()
    outs = [torch.zeros(2, dtype=z.dtype).conj() for _ in range(groups.size)]
    groups.col.broadcast([x], 0).wait()
    groups.col.allgather([outs], [x]).wait()
    assert all(torch.equal(out, z.conj().resolve_conj()) for out in [x, *outs])
    negative = torch._neg_view(torch.ones(3))
    dist.all_reduce(negative)
    assert negative.tolist() == [-groups.size] * 3


def test_conjugated():
    members.run(2, conjugated)
