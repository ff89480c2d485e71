"""The loop of call_loop.hpp in Python: call_loop.py LIBRARY BYTES… Prints a line of JSON for each size on rank 0."""

import json
import statistics
import sys
import time

import numpy as np


def numpy_arrays(count):
    return np.ones(count, np.float32), np.zeros(count, np.float32)


def torch_arrays(count):
    import torch

    return torch.ones(count), torch.zeros(count)


def col_calls():
    import col

    world = col.init()
    number = np.zeros(1, np.int64)

    def agree(value):
        number[0] = value
        return int(world.broadcast(number)[0])

    return world.rank, world.size, world.allreduce, agree, col.finalize


def mpi4py_calls():
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    return world.rank, world.size, world.Allreduce, world.bcast, lambda: None


def torch_calls(backend):
    import torch
    import torch.distributed as dist

    if backend == "col":
        import col.torch  # noqa: F401
    dist.init_process_group(backend)

    def allreduce(data, out):
        out.copy_(data)  # torch sums in place
        dist.all_reduce(out)

    def agree(value):
        number = torch.tensor([value])
        dist.broadcast(number, 0)
        return int(number[0])

    return dist.get_rank(), dist.get_world_size(), allreduce, agree, dist.destroy_process_group


LIBRARIES = {
    "col-numpy": (numpy_arrays, col_calls),
    "col-torch": (torch_arrays, col_calls),
    "mpi4py": (numpy_arrays, mpi4py_calls),
    "torch-gloo": (torch_arrays, lambda: torch_calls("gloo")),
    "torch-over-col": (torch_arrays, lambda: torch_calls("col")),
}


def main():
    arrays, calls = LIBRARIES[sys.argv[1]]
    rank, size, allreduce, agree, end = calls()
    for bytes_ in map(int, sys.argv[2:]):
        data, out = arrays(bytes_ // 4)

        def many(count):
            begin = time.perf_counter()
            for _ in range(count):
                allreduce(data, out)
            return (time.perf_counter() - begin) / count

        many(3)
        batch = agree(max(1, min(int(2e-3 / many(20)), 5000)))
        samples = []
        begin = time.perf_counter()
        while agree(int(len(samples) < 20 or time.perf_counter() - begin < 0.3)):
            samples.append(many(batch))
        if rank == 0:
            right = bool((out == size).all())
            print(json.dumps({"bytes": bytes_, "us": statistics.median(samples) * 1e6, "right": right}), flush=True)
    end()


main()
