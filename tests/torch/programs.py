"""Programs of torch's parallel tutorials in small, on the backend that is named: programs.py BACKEND NAME…

Rank 0 prints a line of JSON for each, with losses or values: equal on every backend. Started under colrun.
"""

import inspect
import json
import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.device_mesh import init_device_mesh


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def own_batch(step):
    torch.manual_seed(10 * step + dist.get_rank())
    return torch.randn(8, 16)


def mean(loss):
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def train(model, optimizer, steps=4):
    losses = []
    for step in range(steps):
        loss = model(own_batch(step)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(mean(loss))
    return losses


def ddp():
    model = nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=0.001)
    return train(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))


def zero():
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = nn.parallel.DistributedDataParallel(network())
    return train(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01))


def fsdp2():
    from torch.distributed.fsdp import fully_shard

    model = network()
    for part in (model[0], model[2], model):
        fully_shard(part)
    return train(model, torch.optim.SGD(model.parameters(), 0.1))


def fsdp2_in_shared_memory():
    """Gathers and scatters in memory of the backend's, where it has some."""
    from torch.distributed.fsdp import fully_shard

    model, is_col = network(), dist.get_backend() == "col"
    for part in (model[0], model[2], model):
        fully_shard(part)
        if not hasattr(part, "set_allocate_memory_from_process_group_for_comm"):
            raise ImportError("memory of the backend's for fully_shard")
        if is_col:
            part.set_allocate_memory_from_process_group_for_comm(True)
    losses = train(model, torch.optim.SGD(model.parameters(), 0.1))
    if is_col:
        assert dist.group.WORLD._memory._free, "no block was asked for"
    return losses


def tensor_parallel():
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model = network()
    parallelize_module(model, init_device_mesh("cpu", (dist.get_world_size(),)), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    losses = []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(4):
        torch.manual_seed(step)  # the same batch on all ranks
        loss = model(torch.randn(8, 16)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def pipeline():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    if inspect.signature(PipelineStage).parameters["input_args"].default is not None:
        raise ImportError("a PipelineStage that is given no input_args")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    stage = PipelineStage([nn.Linear(16, 16) for _ in range(size)][rank], rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 4, loss_fn=lambda out, target: (out - target).pow(2).mean())
    torch.manual_seed(1)
    x, target = torch.randn(8, 16), torch.randn(8, 16)
    losses = []
    if rank == size - 1:
        schedule.step(*([x] if size == 1 else []), target=target, losses=losses)
    else:
        schedule.step(*([x] if rank == 0 else []))
    gradient = sum(parameter.grad.abs().sum() for parameter in stage.submod.parameters())
    return [mean(torch.tensor(sum((loss.item() for loss in losses), 0.0))), mean(gradient)]


def mesh():
    """Two dimensions: data parallel over one, sharded over the other."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    size = dist.get_world_size()
    both = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("data", "shard"))
    whole = torch.arange(32.0).reshape(8, 4)
    spread = distribute_tensor(whole, both, [Replicate(), Shard(0)])
    assert torch.equal(spread.full_tensor(), whole)
    assert torch.equal(spread.redistribute(both, [Shard(0), Shard(1)]).full_tensor(), whole)
    return [spread.sum().full_tensor().item(), (spread @ spread.t()).full_tensor().sum().item(), both["shard"].size()]


def functional_collectives():
    world = dist.group.WORLD
    x = torch.arange(4.0) + dist.get_rank()
    gathered = functional.all_gather_tensor(x, 0, world)
    results = [
        functional.all_reduce(x, "sum", world), gathered, functional.reduce_scatter_tensor(gathered, "sum", 0, world),
        functional.all_to_all_single(gathered, None, None, world), functional.broadcast(x, 1, world),
        *functional.all_reduce_coalesced([x, 2 * x], "max", world),
    ]
    return [mean((result + 0).sum()) for result in results]


def compiled():
    @torch.compile(fullgraph=True, backend="aot_eager")  # inductor asks for a compiler that a test machine need not have
    def step(x):
        return functional.all_reduce(2 * x, "sum", dist.group.WORLD).sum() + 1

    return [step(torch.ones(3) * dist.get_rank()).item(), step(torch.ones(3)).item()]


def objects():
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, {"rank": dist.get_rank()})
    return everyone


PROGRAMS = {
    program.__name__: program
    for program in (ddp, zero, fsdp2, fsdp2_in_shared_memory, tensor_parallel, pipeline, mesh, functional_collectives, compiled,
                    objects)
}

if __name__ == "__main__":
    backend, *names = sys.argv[1:]
    if backend == "col":
        import col.torch  # noqa: F401
    dist.init_process_group(backend)
    for name in names or PROGRAMS:
        try:
            values = PROGRAMS[name]()
        except ImportError as lacking:
            values = f"torch {torch.__version__} has not all that it needs: {lacking}"
        if dist.get_rank() == 0:
            print(json.dumps({name: values}), flush=True)
    dist.destroy_process_group()
