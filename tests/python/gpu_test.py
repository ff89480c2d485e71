"""Tensors of torch and cupy on a GPU, in groups of backend nccl. Needs GPUs; docs/gpu-first-run.md runs it. Two ranks may share
a GPU, with a NCCL that lets them."""

import shutil
import tempfile

import numpy as np
import pytest

import col

import ranks

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU that torch can use")

COUNT = 1000


def _join(store, rank, size):
    torch.cuda.set_device(rank % torch.cuda.device_count())
    torch.zeros(1, device="cuda")  # makes the context that col looks for
    return col.init(store="file://" + store, rank=rank, world_size=size, timeout=ranks.LIMIT / 2, backend="nccl"), col.finalize


def run(function, *args):
    return ranks.run(2, function, *args, join=_join)


DTYPES = [getattr(torch, name) for name in
          "int8 uint8 int32 int64 float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2".split() if hasattr(torch, name)]


def every_dtype(group):
    assert group.backend == "nccl" and group.device.startswith("cuda")
    for dtype in DTYPES:
        x = (torch.arange(COUNT) % 4 + group.rank).to(dtype).cuda()
        expected = sum((torch.arange(COUNT) % 4 + r).to(dtype).double() for r in range(group.size))
        assert torch.equal(group.allreduce(x, torch.empty_like(x)).cpu().double(), expected), dtype
        whole = group.allgather(x)
        assert whole.dtype == dtype and whole.device.type == "cuda" and whole.shape == (group.size * COUNT,)
        assert torch.equal(whole.cpu().double()[:COUNT], (torch.arange(COUNT) % 4).to(dtype).double()), dtype


def test_every_dtype():
    run(every_dtype)


def every_collective(group):
    n, rank = group.size, group.rank
    x = torch.arange(float(n * COUNT), device="cuda") * (rank + 1)
    base, total = torch.arange(float(n * COUNT)), n * (n + 1) / 2

    def same(actual, expected):
        assert torch.equal(actual.cpu(), expected)

    same(group.allreduce(x.clone()), base * total)
    same(group.allreduce(x.clone(), deterministic=True), base * total)
    same(group.reduce_scatter(x), (base * total)[rank * COUNT:(rank + 1) * COUNT])
    same(group.alltoall(x), torch.cat([base[rank * COUNT:(rank + 1) * COUNT] * (r + 1) for r in range(n)]))
    same(group.broadcast(x.clone(), root=1), base * 2)
    same(group.scan(x), base * (rank + 1) * (rank + 2) / 2)
    out = group.reduce(x.clone(), root=0)
    gathered = group.gather(x, root=0)
    if rank == 0:
        same(out, base * total)
        same(gathered, torch.cat([base * (r + 1) for r in range(n)]))
    part = torch.empty(COUNT, device="cuda")
    group.scatter(x if rank == 0 else None, part, root=0)
    same(part, base[rank * COUNT:(rank + 1) * COUNT])
    bits = torch.full((COUNT,), 1 << rank, dtype=torch.int32, device="cuda")
    same(group.allreduce(bits, op="bor"), torch.full((COUNT,), (1 << n) - 1, dtype=torch.int32))
    same(group.allreduce(x.clone(), op=lambda left, right: np.maximum(left, right)), base * n)
    other = torch.empty_like(x)
    group.sendrecv(x, (rank + 1) % n, other, (rank - 1) % n)
    same(other, base * ((rank - 1) % n + 1))
    assert group.allgather_object({"rank": rank}) == [{"rank": r} for r in range(n)]
    host = np.arange(5.0)
    assert group.allreduce(host).tolist() == [0, 2, 4, 6, 8]


def test_every_collective():
    run(every_collective)


def in_streams(group):
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    for _ in range(5):
        with torch.cuda.stream(first):
            x = torch.zeros(1 << 20, device="cuda")
            torch.cuda._sleep(30_000_000)
            x.add_(group.rank + 1)
            work = group.iallreduce(x, x, stream=first.cuda_stream)
        work.wait(stream=second.cuda_stream)
        with torch.cuda.stream(second):
            total = (x * 2).sum()
        second.synchronize()
        assert total.item() == group.size * (group.size + 1) * (1 << 20)
        work.wait()


def test_streams():
    run(in_streams)


def coalesced(group):
    xs = [torch.full((COUNT,), float(i + group.rank), device="cuda") for i in range(8)]
    with group.coalesce() as scope:
        for x in xs:
            group.iallreduce(x, x)
    scope.wait()
    for i, x in enumerate(xs):
        assert torch.equal(x.cpu(), torch.full((COUNT,), float(sum(i + r for r in range(group.size)))))


def test_coalesce():
    run(coalesced)


def shared_split(group):
    """NCCL's own split, which shares the connections of the parent."""
    store = group.broadcast_object(tempfile.mkdtemp(prefix="col-python-") if group.rank == 0 else None)
    context = col.Context(group.rank, group.size, store="file://" + store, timeout=ranks.LIMIT / 2)
    parent = context.init_group("shares", "nccl", nccl_settings="split_share=1")
    x = torch.full((COUNT,), float(group.rank), device="cuda")
    parent.allreduce(x.clone())
    for _ in range(3):
        turned = parent.split(0, -parent.rank)
        assert turned.ranks == list(reversed(range(group.size)))
        assert turned.allgather(x).cpu()[::COUNT].tolist() == [float(r) for r in turned.ranks]
        alone = parent.split(parent.rank)
        assert alone.size == 1 and torch.equal(alone.allreduce(x.clone()), x)
        copy = turned.dup()
        assert copy.allreduce(x.clone())[0].item() == sum(range(group.size))
        for one in (copy, alone, turned):
            one.destroy()
    assert parent.allreduce(x.clone())[0].item() == sum(range(group.size))
    context.finalize()
    group.barrier()
    if group.rank == 0:
        shutil.rmtree(store)


def test_shared_split():
    run(shared_split)


def in_a_graph(group):
    x = torch.zeros(COUNT, device="cuda")
    group.allreduce(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1)
        group.allreduce(x, stream=torch.cuda.current_stream().cuda_stream)
    x.fill_(0)
    expected = 0
    for _ in range(5):
        graph.replay()
        torch.cuda.synchronize()
        expected = (expected + 1) * group.size
        assert x.tolist() == [expected] * COUNT
    group.barrier()
    del graph


def test_graph():
    run(in_a_graph)


def with_cupy(group):
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(COUNT, dtype=cupy.float32) * (group.rank + 1)
    cupy.cuda.runtime.deviceSynchronize()
    group.allreduce(x)
    assert (cupy.asnumpy(x) == np.arange(COUNT) * group.size * (group.size + 1) / 2).all()
    with cupy.cuda.Stream(non_blocking=True):  # the call comes after what this holds
        x = cupy.ones(1 << 24, dtype=cupy.float32)
        for _ in range(20):
            x += group.rank
        group.allreduce(x)
        assert (cupy.asnumpy(x) == group.size + 20 * sum(range(group.size))).all()


def test_cupy():
    pytest.importorskip("cupy")
    run(with_cupy)
