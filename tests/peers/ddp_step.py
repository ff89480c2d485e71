"""One launch of torch_speed.py: ddp_step.py BACKEND PARAMETERS… BACKEND is gloo, col, or col-hook for col with its allreduce_hook. Prints a line of JSON for each size on rank 0.

A step is forward, backward and the gradients' allreduce. The same with a hook that communicates nothing takes turns with it, and the
difference of their medians is what the communication adds.
"""

import json
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

WIDTH = {"0.3": (272, 4), "8": (1024, 8), "30": (1920, 8)}  # millions of parameters: width and layers of a network


def step(model, x):
    begin = time.perf_counter()
    model(x).pow(2).mean().backward()
    seconds = time.perf_counter() - begin
    for parameter in model.parameters():
        parameter.grad = None
    return seconds


def agreed(seconds):
    """The slowest rank's."""
    slowest = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return slowest.item()


def nothing(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP with its copies in and out of buckets, and no communication."""
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def model_with(hook, millions):
    width, layers = WIDTH[millions]
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU()))))
    if hook is not None:
        model.register_comm_hook(None, hook)
    return model


def measured(millions, steps, hook):
    model, lonely = model_with(hook, millions), model_with(nothing, millions)
    torch.manual_seed(dist.get_rank())
    x = torch.randn(8, WIDTH[millions][0])
    both, alone = [], []
    for turn in range(steps + 2):
        seconds = []
        for one in (model, lonely):
            dist.barrier()
            seconds.append(agreed(step(one, x)))
        if turn >= 2:  # the first ones make buffers
            both.append(seconds[0])
            alone.append(seconds[1])
    model(x).pow(2).mean().backward()  # verified: the mean of all ranks' gradients
    gradient = next(model.parameters()).grad
    everyone = [torch.empty_like(gradient) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, gradient)
    right = all(torch.equal(one, gradient) for one in everyone) and bool(gradient.abs().sum() > 0)
    return {"parameters": sum(p.numel() for p in model.parameters()), "step": statistics.median(both) * 1e3,
            "alone": statistics.median(alone) * 1e3, "right": right}


def main():
    backend, *sizes = sys.argv[1:]
    hook = None
    if backend.startswith("col"):
        import col.torch

        if backend == "col-hook":
            hook = col.torch.allreduce_hook
    torch.set_num_threads(1)
    dist.init_process_group(backend.removesuffix("-hook"))
    for millions in sizes:
        result = measured(millions, 20 if float(millions) < 1 else 8, hook)
        if dist.get_rank() == 0:
            print(json.dumps({"size": millions, **result}), flush=True)
    dist.destroy_process_group()


main()
