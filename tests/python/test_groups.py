"""Groups, and the free functions with Ray's names."""

import enum

import numpy as np
import pytest
import torch

import col
import col.ray


@pytest.mark.ranks(3)
def test_about(group):
    assert (group.name, group.size, group.ranks) == ("default", 3, [0, 1, 2])
    assert group.backend == "shm" and group.device == "cpu" and group.timeout == 300.0
    assert group.world_rank(2) == 2 and group.rank_of(2) == 2 and group.rank_of(9) == -1
    assert repr(group) == f"<col.Group 'default': rank {group.rank} of 3, shm>"
    assert col.init() is not None and col.init().rank == group.rank and col.get_rank() == group.rank
    assert col.get_collective_group_size() == 3 and col.is_group_initialized()
    with pytest.raises(col.InvalidArgument):
        group.world_rank(3)


@pytest.mark.ranks(3)
def test_families(group):
    r, n = group.rank, group.size
    half = group.split(r % 2, key=-r)
    assert half.ranks == [p for p in reversed(range(n)) if p % 2 == r % 2]
    assert half.allreduce(np.array([r])).tolist() == [sum(half.ranks)]
    assert (group.split(-1 if r == 0 else 0) is None) == (r == 0)
    some = group.subgroup([2, 0], "some")
    assert (some is None) == (r not in (0, 2))
    if some:
        assert some.name == "some" and some.ranks == [2, 0] and some.rank_of(0) == 1
        assert col.get_group("some").allgather(np.array([r])).tolist() == [2, 0]
        some.destroy()
    whole = group.dup()
    assert whole.ranks == group.ranks and whole.name != group.name
    whole.destroy()
    half.destroy()
    rest = group.shrink([n - 1], "rest") if r < n - 1 else None
    if rest:
        assert rest.size == n - 1 and rest.allreduce(np.ones(1))[0] == n - 1
        rest.destroy()
    group.barrier()


@pytest.mark.ranks(2)
def test_insight(group):
    assert "ring" in group.algorithms("allreduce")
    assert "allreduce" in group.explain("allreduce", 1 << 20) or group.explain("allreduce", 1 << 20)
    assert group.explain("allreduce", 8, np.float64, op="max") and group.explain("allgather", 8, torch.float16)
    with pytest.raises(col.InvalidArgument):
        group.explain("allsum", 8)
    for algorithm in ("ring", "bde", "shared"):
        x = np.ones(100)
        group.allreduce(x, algorithm=algorithm)
        assert (x == group.size).all()
    group.record_trace(True)
    group.allreduce(np.ones(100), algorithm="ring")
    trace = group.trace()
    group.record_trace(False)
    assert trace and {step["collective"] for step in trace} == {"allreduce"}
    assert {step["algorithm"] for step in trace} == {"ring"}
    assert {"send", "recv"} <= {step["step"] for step in trace}


@pytest.mark.ranks(2)
def test_options(group):
    x = np.full(1000, 1.0, np.float16)
    group.allreduce(x, deterministic=True)
    group.allreduce(x, compress=True)
    assert (x == group.size**2).all()
    import datetime

    group.barrier(timeout=datetime.timedelta(seconds=20))


@pytest.mark.ranks(2)
def test_tree_order(group):
    """Seven numbers, five of them on rank 1: the tree over all of them, level by level."""
    numbers = np.array([1e8, 3.0, -1e8, 5.0, 1e-3, 7.0, 1e8], np.float32)
    level = list(numbers)
    while len(level) > 1:
        level = [np.float32(sum(level[i : i + 2])) for i in range(0, len(level), 2)]
    own = numbers[:2] if group.rank == 0 else numbers[2:]
    out = np.empty(1, np.float32)
    group.allreduce(own, out, order="tree", contributions=7)
    assert out[0] == level[0]
    group.iallreduce(own, out, order="tree").wait()
    assert out[0] == level[0]
    out[:] = 0
    assert (group.reduce(own, out, root=1, order="tree", contributions=7) is None) == (group.rank == 0)
    assert out[0] == (level[0] if group.rank == 1 else 0)
    blocks = np.repeat(own, 2)  # of each rank, one element
    assert group.reduce_scatter(blocks, out, order="tree", contributions=7)[0] == level[0]
    counts = [2, 0]
    assert group.reduce_scatterv(blocks, counts, order="tree").tolist() == [level[0]] * counts[group.rank]
    with pytest.raises(col.InvalidArgument, match="allreduce, reduce and reduce_scatter"):
        group.scan(own, order="tree")
    assert "tree's order" in group.explain("allreduce", 4, order="tree")
    with pytest.raises(col.InvalidArgument, match="'left' is no order; use 'any', 'rank', 'tree' or 'exact'"):
        group.allreduce(own, out, order="left")


class RayOp(enum.Enum):
    SUM, PRODUCT, MIN, MAX, AVERAGE = range(5)


def numpy_array(values):
    return np.array(values)


@pytest.mark.parametrize("make", [numpy_array, torch.tensor])
@pytest.mark.ranks(1, 2, 3)
def test_ray_names(group, make):
    n, r = group.size, group.rank
    own = col.init_collective_group(n, r, "auto" if n == 1 else "shm", "worker")
    assert col.get_rank("worker") == r and own.name == "worker"
    x = make([float(r + 1)] * 4)
    col.allreduce(x, "worker")
    assert x.tolist() == [n * (n + 1) / 2] * 4
    for op, expected in [(RayOp.MAX, n), (RayOp.AVERAGE, (n + 1) / 2), ("min", 1), (col.ReduceOp.SUM, n * (n + 1) / 2)]:
        x = make([float(r + 1)])
        col.allreduce(x, "worker", op)
        assert x.tolist() == [expected]
    x = make([float(r)])
    col.reduce(x, 1 % n, "worker", RayOp.SUM)
    assert x.tolist() == ([n * (n - 1) / 2] if r == 1 % n else [r])
    x = make([float(r)])
    col.broadcast(x, n - 1, "worker")
    assert x.tolist() == [n - 1]
    outs = [make([0.0, 0.0]) for _ in range(n)]
    col.allgather(outs, make([float(r), 1.0]), "worker")
    assert [o.tolist() for o in outs] == [[p, 1] for p in range(n)]
    out = make([0.0])
    col.reducescatter(out, [make([float(p)]) for p in range(n)], "worker")
    assert out.tolist() == [n * r]
    outs = [make([0.0]) for _ in range(n)]
    col.gather(make([float(r)]), outs if r == 0 else None, 0, "worker")
    assert [o.tolist() for o in outs] == [[p if r == 0 else 0] for p in range(n)]
    out = make([0.0])
    col.scatter(out, [make([float(10 + p)]) for p in range(n)] if r == 0 else None, 0, "worker")
    assert out.tolist() == [10 + r]
    outs = [make([0.0]) for _ in range(n)]
    col.alltoall(outs, [make([float(10 * r + p)]) for p in range(n)], "worker")
    assert [o.tolist() for o in outs] == [[10 * p + r] for p in range(n)]
    if n > 1 and r < 2:
        if r == 0:
            col.send(make([5.0]), 1, "worker")
        else:
            x = make([0.0])
            col.recv(x, 0, "worker")
            assert x.tolist() == [5]
    col.barrier("worker")
    assert col.destroy_collective_group("worker") and not col.is_group_initialized("worker")


@pytest.mark.ranks(2)
def test_ray_names_refuse(group):
    x = np.ones(2)
    x.flags.writeable = False
    with pytest.raises(col.InvalidArgument, match="copy"):
        col.allreduce(x)
    assert x.tolist() == [1, 1]
    with pytest.raises(col.InvalidArgument, match="2 ranks|group has"):
        col.allgather([np.zeros(1)], np.zeros(1))
    assert isinstance(col.gloo_available(), bool) and col.nccl_available() is False


@pytest.mark.parametrize("backend", ["shm", "gloo"])
@pytest.mark.ranks(3)
def test_backends(group, backend):
    if backend == "gloo" and not col.gloo_available():
        with pytest.raises(col.Unavailable):
            col.init_collective_group(group.size, group.rank, backend, "other")
        return
    own = col.init_collective_group(group.size, group.rank, backend, "other", timeout=20)
    assert own.backend == backend and own.timeout == 20
    assert own.allreduce(np.ones(1000)).tolist() == [group.size] * 1000
    assert own.allgather(torch.tensor([group.rank])).tolist() == list(range(group.size))
    own.destroy()


@pytest.mark.ranks(2)
def test_no_such_backend(group):
    with pytest.raises(col.InvalidArgument, match="auto|shm"):
        col.init_collective_group(group.size, group.rank, "smoke", "other")
    with pytest.raises(col.Unavailable):
        col.init_collective_group(group.size, group.rank, "nccl", "other", timeout=20)
