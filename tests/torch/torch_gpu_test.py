"""What is other than on the CPU: streams, graphs, and what waits for what. Needs GPUs; docs/gpu-first-run.md runs it, with
COL_TEST_DEVICE=cuda, beside the tests of every call. Two ranks may share a GPU, with a NCCL that lets them."""

import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch import nn

import col
import members

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU that torch can use")

COUNT = 1 << 20


def busy(value, milliseconds=50):
    """A tensor of `value` that the current stream fills only after a while."""
    tensor = torch.zeros(COUNT, device="cuda")
    torch.cuda._sleep(int(milliseconds * 1.5e6))  # cycles of the GPU
    return tensor.add_(value)


def host_goes_on(groups):
    for milliseconds in (1, 200):  # at first NCCL connects, and CUDA loads kernels
        begin = time.monotonic()
        x = busy(groups.rank + 1.0, milliseconds)
        dist.all_reduce(x)
        x.mul_(2)
        started = time.monotonic() - begin
        total = x[-1].item()
        ended = time.monotonic() - begin
    assert total == groups.size * (groups.size + 1)
    assert ended > 0.1 and started < ended / 2, f"the host went on after {started} s of {ended} s"


def test_host_goes_on():
    members.run(2, host_goes_on)


def side_streams(groups):
    """The call is made in one stream, and another one waits for it."""
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    for _ in range(5):
        with torch.cuda.stream(first):
            x = busy(groups.rank + 1.0)
            work = dist.all_reduce(x, async_op=True)
        with torch.cuda.stream(second):
            outputs = [torch.zeros(COUNT, device="cuda")[::2] for _ in range(groups.size)]  # not plain: they are copied to
            work.wait()
            doubled = x * 2
            work = dist.all_gather(outputs, doubled[: COUNT // 2], async_op=True)
        with torch.cuda.stream(first):
            work.wait()
            total = sum(outputs).sum()
        first.synchronize()
        assert total.item() == groups.size * groups.size * (groups.size + 1) * (COUNT // 2)


def test_side_streams():
    members.run(2, side_streams)


def barrier_after_kernels(groups):
    """What came before on this rank's GPU has ended when any rank comes out."""
    flag = busy(1.0, 100 if groups.rank == 0 else 0)
    dist.all_reduce(torch.ones(1, device="cuda"))
    event = torch.cuda.Event()
    last = busy(1.0, 100 if groups.rank == 0 else 0)
    event.record()
    dist.barrier()
    assert event.query()
    assert flag[0].item() == last[0].item() == 1


def test_barrier():
    members.run(2, barrier_after_kernels)


def in_a_graph(groups):
    x = torch.zeros(1000, device="cuda")
    parts = torch.zeros(groups.size * 1000, device="cuda")
    dist.all_reduce(x)
    dist.all_gather_into_tensor(parts, x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.add_(1)
        dist.all_reduce(x)
        dist.all_gather_into_tensor(parts, x)
        parts.mul_(2)
    x.fill_(0)
    expected = 0
    for _ in range(5):
        graph.replay()
        expected = (expected + 1) * groups.size
        torch.cuda.synchronize()
        assert x.tolist() == [expected] * 1000
        assert parts.tolist() == [2 * expected] * (1000 * groups.size)
    dist.barrier()
    del graph


def test_graph():
    members.run(2, in_a_graph)


def many_in_flight(groups):
    """Tensors that the program lets go of at once."""
    for step in range(200):
        x = torch.full((1000,), float(step), device="cuda")
        dist.all_reduce(x)
        works = [dist.all_reduce(torch.full((1000,), float(step), device="cuda"), async_op=True) for _ in range(3)]
        for work in works:
            work.wait()
        if step % 50 == 0:
            assert x.sum().item() == step * 1000 * groups.size
    torch.cuda.synchronize()


def test_many_in_flight():
    members.run(2, many_in_flight)


def network():
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 3))


def trained(model, rank, device):
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    losses = []
    for step in range(20):
        rows = torch.randn(8, 10, generator=torch.Generator().manual_seed(100 * step + rank))
        optimizer.zero_grad()
        loss = model(rows.to(device)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().cpu())
    return torch.stack(losses)


def ddp(groups):
    on_host = trained(nn.parallel.DistributedDataParallel(network()), groups.rank, "cpu")
    model = nn.parallel.DistributedDataParallel(network().cuda(), device_ids=[torch.cuda.current_device()], bucket_cap_mb=0.005)
    on_gpu = trained(model, groups.rank, "cuda")
    assert torch.allclose(on_host, on_gpu, rtol=1e-4), (on_host, on_gpu)
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    all_weights = [torch.empty_like(weights) for _ in range(groups.size)]
    dist.all_gather(all_weights, weights)
    assert torch.equal(all_weights[0], all_weights[1])


def test_ddp():
    members.run(2, ddp)


def fully_sharded(groups):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    on_host = trained(nn.parallel.DistributedDataParallel(network()), groups.rank, "cpu")
    model = network().cuda()
    mesh = init_device_mesh("cuda", (groups.size,))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    on_gpu = trained(model, groups.rank, "cuda")
    assert torch.allclose(on_host, on_gpu, rtol=1e-4), (on_host, on_gpu)


@pytest.mark.skipif(torch.__version__ < "2.6", reason="older torch has no fully_shard")
def test_fully_shard():
    members.run(2, fully_sharded)


def a_rank_that_does_not_come(groups):
    """The host has gone on; the next call says who was missing."""
    group = dist.new_group(timeout=timedelta(seconds=3))
    x = torch.ones(10, device="cuda")
    dist.all_reduce(x, group=group)
    torch.cuda.synchronize()
    if groups.rank == 1:
        time.sleep(8)  # the subject: it comes too late
    else:
        begin = time.monotonic()
        dist.all_reduce(x, group=group)
        torch.cuda.synchronize()
        assert time.monotonic() - begin < 30, "the GPU still waits"
        with pytest.raises(col.Error) as caught:
            dist.all_reduce(x, group=group)
        assert "rank 1" in str(caught.value), str(caught.value)
    dist.barrier()


def test_a_rank_that_does_not_come():
    members.run(2, a_rank_that_does_not_come)
