"""Every collective on every library, type and group size, against numpy."""

import numpy as np
import pytest

import arrays

SIZES = [1, 2, 3, 5]
COUNT = 6
ROWS = 3  # of arrays with two axes


def check(group, library, got, expected, dtype):
    assert library.is_same_kind(got, dtype), (type(got), dtype)
    expected = library.plain(library.make(np.asarray(expected), dtype))  # 8-bit floats do not hold every sum
    np.testing.assert_array_equal(library.plain(got).reshape(-1), expected.reshape(-1))


def inputs(n, count, seed=0):
    return [arrays.values_of(r, count, seed) for r in range(n)]


# Each of these makes one call in all its forms: with an output and without one, at once and as a Work.


def allreduce(group, library, dtype):
    all_inputs = inputs(group.size, COUNT)
    expected = sum(all_inputs)
    x = library.make(all_inputs[group.rank], dtype)
    out = library.make(np.zeros(COUNT), dtype)
    assert group.allreduce(x, out) is out
    check(group, library, out, expected, dtype)
    check(group, library, x, all_inputs[group.rank], dtype)
    assert group.iallreduce(x, out).wait() is out
    check(group, library, out, expected, dtype)
    assert group.allreduce(x) is x
    check(group, library, x, expected, dtype)


def reduce(group, library, dtype):
    all_inputs = inputs(group.size, COUNT)
    root = group.size - 1
    x = library.make(all_inputs[group.rank], dtype)
    out = library.make(np.zeros(COUNT), dtype)
    result = group.reduce(x, out, root=root)
    if group.rank == root:
        assert result is out
    else:
        assert result is None
    check(group, library, out, sum(all_inputs) if group.rank == root else np.zeros(COUNT), dtype)
    group.ireduce(x, root=root).wait()
    check(group, library, x, sum(all_inputs) if group.rank == root else all_inputs[group.rank], dtype)


def broadcast(group, library, dtype):
    all_inputs = inputs(group.size, COUNT)
    for root in range(group.size):
        x = library.make(all_inputs[group.rank], dtype)
        assert group.broadcast(x, root=root) is x
        check(group, library, x, all_inputs[root], dtype)
        x = library.make(all_inputs[group.rank], dtype)
        assert group.ibroadcast(x, root=root).wait() is x
        check(group, library, x, all_inputs[root], dtype)


def allgather(group, library, dtype):
    n = group.size
    all_inputs = inputs(n, 2 * ROWS)
    x = library.make(all_inputs[group.rank].reshape(ROWS, 2), dtype)
    made = group.allgather(x)
    assert tuple(made.shape) == (n * ROWS, 2)
    check(group, library, made, np.concatenate(all_inputs), dtype)
    out = library.make(np.zeros((n, ROWS, 2)), dtype)
    assert group.allgather(x, out) is out
    check(group, library, out, np.concatenate(all_inputs), dtype)
    check(group, library, group.iallgather(x).wait(), np.concatenate(all_inputs), dtype)


def allgatherv(group, library, dtype):
    n = group.size
    counts = [r + 1 for r in range(n)]
    all_inputs = [arrays.values_of(r, counts[r]) for r in range(n)]
    x = library.make(all_inputs[group.rank], dtype)
    check(group, library, group.allgatherv(x, counts), np.concatenate(all_inputs), dtype)
    out = library.make(np.zeros(sum(counts)), dtype)
    assert group.allgatherv(x, counts, out) is out
    check(group, library, out, np.concatenate(all_inputs), dtype)
    check(group, library, group.iallgatherv(x, counts=np.array(counts)).wait(), np.concatenate(all_inputs), dtype)


def reduce_scatter(group, library, dtype):
    n = group.size
    all_inputs = inputs(n, n * ROWS * 2)
    expected = sum(all_inputs).reshape(n, ROWS * 2)[group.rank]
    x = library.make(all_inputs[group.rank].reshape(n * ROWS, 2), dtype)
    made = group.reduce_scatter(x)
    assert tuple(made.shape) == (ROWS, 2)
    check(group, library, made, expected, dtype)
    out = library.make(np.zeros(ROWS * 2), dtype)
    assert group.reduce_scatter(x, out) is out
    check(group, library, out, expected, dtype)
    check(group, library, group.ireduce_scatter(x).wait(), expected, dtype)


def reduce_scatterv(group, library, dtype):
    n = group.size
    counts = [2 * r for r in range(n)]
    all_inputs = inputs(n, sum(counts))
    expected = np.split(sum(all_inputs), np.cumsum(counts)[:-1])[group.rank]
    x = library.make(all_inputs[group.rank], dtype)
    check(group, library, group.reduce_scatterv(x, counts), expected, dtype)
    out = library.make(np.zeros(counts[group.rank]), dtype)
    assert group.ireduce_scatterv(x, counts, out).wait() is out
    check(group, library, out, expected, dtype)


def gather(group, library, dtype):
    n = group.size
    root = n // 2
    all_inputs = inputs(n, COUNT)
    x = library.make(all_inputs[group.rank], dtype)
    made = group.gather(x, root=root)
    out = library.make(np.zeros(n * COUNT), dtype) if group.rank == root else None
    work = group.igather(x, out, root=root)
    assert work.wait() is out
    if group.rank == root:
        check(group, library, made, np.concatenate(all_inputs), dtype)
        check(group, library, out, np.concatenate(all_inputs), dtype)
    else:
        assert made is None


def gatherv(group, library, dtype):
    n = group.size
    counts = [r + 1 for r in range(n)]
    all_inputs = [arrays.values_of(r, counts[r]) for r in range(n)]
    x = library.make(all_inputs[group.rank], dtype)
    is_root = group.rank == 0
    made = group.gatherv(x, counts if is_root else None)
    waited = group.igatherv(x, counts if is_root else None).wait()
    if is_root:
        check(group, library, made, np.concatenate(all_inputs), dtype)
        check(group, library, waited, np.concatenate(all_inputs), dtype)
    else:
        assert made is None and waited is None


def scatter(group, library, dtype):
    n = group.size
    root = n - 1
    whole = arrays.values_of(7, n * COUNT)
    x = library.make(whole, dtype) if group.rank == root else None
    out = library.make(np.zeros(COUNT), dtype)
    expected = whole.reshape(n, COUNT)[group.rank]
    assert group.scatter(x, out, root=root) is out
    check(group, library, out, expected, dtype)
    result = group.iscatter(x, None if group.rank == root else out, root=root).wait()
    check(group, library, result, expected, dtype)


def scatterv(group, library, dtype):
    n = group.size
    counts = [r + 1 for r in range(n)]
    whole = arrays.values_of(7, sum(counts))
    expected = np.split(whole, np.cumsum(counts)[:-1])[group.rank]
    x = library.make(whole, dtype) if group.rank == 0 else None
    out = library.make(np.zeros(counts[group.rank]), dtype)
    assert group.scatterv(x, counts if group.rank == 0 else None, out) is out
    check(group, library, out, expected, dtype)
    result = group.iscatterv(x, counts if group.rank == 0 else None, None if group.rank == 0 else out).wait()
    check(group, library, result, expected, dtype)


def alltoall(group, library, dtype):
    n = group.size
    all_inputs = [v.reshape(n, COUNT) for v in inputs(n, n * COUNT)]
    expected = np.stack([v[group.rank] for v in all_inputs])
    x = library.make(all_inputs[group.rank], dtype)
    made = group.alltoall(x)
    assert tuple(made.shape) == (n, COUNT)
    check(group, library, made, expected, dtype)
    assert group.ialltoall(x, x).wait() is x  # in place
    check(group, library, x, expected, dtype)


def alltoallv(group, library, dtype):
    n = group.size
    r = group.rank
    sends = [[(a + b) % 3 for b in range(n)] for a in range(n)]  # from a to b
    data = [np.split(arrays.values_of(a, sum(sends[a])), np.cumsum(sends[a])[:-1]) for a in range(n)]
    received = [sends[a][r] for a in range(n)]
    expected = np.concatenate([data[a][r] for a in range(n)])
    x = library.make(np.concatenate(data[r]), dtype)
    check(group, library, group.alltoallv(x, sends[r], received), expected, dtype)
    check(group, library, group.ialltoallv(x, sends[r], received).wait(), expected, dtype)


def scan(group, library, dtype):
    all_inputs = inputs(group.size, COUNT)
    x = library.make(all_inputs[group.rank], dtype)
    expected = sum(all_inputs[: group.rank + 1])
    check(group, library, group.scan(x), expected, dtype)
    check(group, library, x, all_inputs[group.rank], dtype)
    assert group.iscan(x, x).wait() is x
    check(group, library, x, expected, dtype)


def exscan(group, library, dtype):
    all_inputs = inputs(group.size, COUNT)
    x = library.make(all_inputs[group.rank], dtype)
    out = library.make(np.full(COUNT, 3.0), dtype)
    results = [group.exscan(x), group.exscan(x, out), group.iexscan(x).wait()]
    if group.rank == 0:
        assert results == [None, None, None]
        check(group, library, out, np.full(COUNT, 3.0), dtype)
    else:
        for result in results:
            check(group, library, result, sum(all_inputs[: group.rank]), dtype)


PRIMITIVES = [
    "allreduce", "reduce", "broadcast", "allgather", "allgatherv", "reduce_scatter", "reduce_scatterv", "gather",
    "gatherv", "scatter", "scatterv", "alltoall", "alltoallv", "scan", "exscan",
]


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.ranks(*SIZES)
def test_against_numpy(group, name, library):
    kind = arrays.LIBRARIES[library]
    for dtype in kind.dtypes:
        globals()[name](group, kind, dtype)
    group.barrier()


@pytest.mark.ranks(*SIZES)
def test_barrier_and_empty_arrays(group):
    assert group.barrier() is None
    assert group.ibarrier().wait() is None
    empty = np.zeros(0)
    assert group.allreduce(empty) is empty
    assert group.allgather(empty).shape == (0,)
