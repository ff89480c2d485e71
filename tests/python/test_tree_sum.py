"""col.TreeSum: contributions one by one have the bits of the tree over all of them, at any number of ranks."""

import random

import numpy as np
import pytest
import torch

import col


def tree(level):
    """The definition: neighbours level by level, an odd last one goes up as it is."""
    while len(level) > 1:
        level = [level[i] if i + 1 == len(level) else level[i] + level[i + 1] for i in range(0, len(level), 2)]
    return level[0]


def contributions(seed, total, size, kind=np.float32):
    values = np.random.default_rng(seed)
    return [(values.standard_normal(size) * 10.0 ** values.integers(-3, 4, size)).astype(kind) for _ in range(total)]


def shares(seed, ranks, total):
    """Of each rank, the first number and the number behind its last one; some ranks have none."""
    cuts = sorted(random.Random(seed).randrange(total + 1) for _ in range(ranks - 1))
    return list(zip([0, *cuts], [*cuts, total]))


def added(group, total, values, seed):
    first, last = shares(seed, group.size, total)[group.rank]
    one = col.TreeSum(first, total)
    for value in values[first:last]:
        one.add(value)
    return one


@pytest.mark.ranks(1, 2, 3, 5)
def test_bits_of_the_definition(group):
    for total in (1, 2, 3, 5, 7, 8, 13, 24):
        for size in (1, 7, 300):
            values = contributions(total, total, size)
            out = np.zeros(size, np.float32)
            one = added(group, total, values, total + size)
            assert one.allreduce(group, out) is out
            assert out.tobytes() == tree(values).tobytes(), (total, size)
    # As the library's own, of contributions that are all there; and the next sum begins by itself.
    first, last = shares(3, group.size, 13)[group.rank]
    values = contributions(3, 13, 20)
    one = col.TreeSum(first, 13)
    for _ in range(2):
        for value in values[first:last]:
            one.add(value)
        own = np.concatenate([np.zeros(0, np.float32), *values[first:last]])
        whole = np.zeros(20, np.float32)
        group.allreduce(own, whole, op="avg", order="tree")
        assert one.allreduce(group, np.zeros(20, np.float32), op="avg").tobytes() == whole.tobytes()


@pytest.mark.ranks(3)
def test_types(group):
    ints = [np.arange(6, dtype=np.int64).reshape(2, 3) + v for v in range(6)]
    one = col.TreeSum(2 * group.rank, 6)
    for v in (0, 1):
        one.add(ints[2 * group.rank + v])
    total = one.allreduce(group)
    assert total.dtype == np.int64 and total.tolist() == sum(ints).tolist()
    # Added in float32, and rounded once.
    one = col.TreeSum(group.rank, 3)
    for kind in (torch.bfloat16, torch.float16):
        small = torch.tensor(2.0**-9 + 2.0**-11, dtype=kind)
        once = ((1 + small.float()) + small.float()).to(kind)
        assert once != (1 + small) + small
        x = torch.full((2, 2), 1.0 if group.rank == 0 else float(small), dtype=kind, requires_grad=True)
        one.add(x)
        total = one.allreduce(group)
        assert total.dtype == kind and total.shape == x.shape
        assert (total == once).all()
    x = np.float64([1, 2])
    one.add(x)
    x[:] = 9  # it was copied
    assert one.allreduce(group, torch.zeros(2, dtype=torch.float64), op="avg").tolist() == [1, 2]


@pytest.mark.ranks(2)
def test_refusals(group):
    for first, total in ((-1, 2), (3, 2), (0, 0)):
        with pytest.raises(col.InvalidArgument, match="at least one contribution"):
            col.TreeSum(first, total)
    one = col.TreeSum(group.rank, 2)
    with pytest.raises(col.InvalidArgument, match="pass out="):
        one.allreduce(group)
    with pytest.raises(col.InvalidArgument, match="real numbers, not complex128"):
        one.add(np.zeros(2, complex))
    one.add(np.zeros(2))
    if group.rank == 1:
        with pytest.raises(col.InvalidArgument, match="this is contribution 2, and total is 2"):
            one.add(np.zeros(2))
    else:
        with pytest.raises(col.InvalidArgument, match="has 3 elements of float64, those before it 2 of float64"):
            one.add(np.zeros(3))
    with pytest.raises(col.InvalidArgument, match="'sum' or 'avg'"):
        one.allreduce(group, op="max")
    assert one.allreduce(group).tolist() == [0, 0]
    one = col.TreeSum(0, 2)
    one.add(np.zeros(2, np.int32))
    with pytest.raises(col.InvalidArgument, match="avg is of floats"):
        one.allreduce(group, op="avg")
    with pytest.raises(col.Mismatch, match="rank 0 has added 1 from number 0 on, of 2 elements; rank 1 has added 1 from number 0 on"):
        one.allreduce(group)
    assert group.allreduce(np.ones(1)).tolist() == [2]
