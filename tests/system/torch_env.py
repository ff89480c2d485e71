"""Six collectives of torch.distributed among the ranks that a launcher has started.

Where the ranks meet comes from the environment alone (env://): this program sets no MASTER_ADDR and starts no process.
With --raise RANK, that rank raises an exception after the first collective.
"""

import argparse
import datetime

import torch
import torch.distributed as dist


def expect(what, seen, expected):
    if not torch.equal(seen, expected):
        raise SystemExit(f"rank {dist.get_rank()}: {what} gave {seen.tolist()} instead of {expected.tolist()}")


def numbers(*values):
    return torch.tensor(values, dtype=torch.float32)


def reduce(rank, size):
    value = torch.ones(1)
    dist.reduce(value, dst=0, op=dist.ReduceOp.SUM)
    if rank == 0:  # on the others the value is unspecified
        expect("reduce", value, numbers(size))


def all_reduce(rank, size):
    value = numbers(rank + 1)
    dist.all_reduce(value, op=dist.ReduceOp.SUM)
    expect("all_reduce", value, numbers(size * (size + 1) / 2))
    value = numbers(rank + 1)
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    expect("all_reduce of the maximum", value, numbers(size))


def scatter(rank, size):
    parts = [numbers(i + 1) for i in range(size)] if rank == 0 else None
    own = torch.empty(1)
    dist.scatter(own, scatter_list=parts, src=0)
    expect("scatter", own, numbers(rank + 1))


def gather(rank, size):
    parts = [torch.empty(1) for _ in range(size)] if rank == 0 else None
    dist.gather(numbers(rank), gather_list=parts, dst=0)
    if rank == 0:
        expect("gather", torch.cat(parts), numbers(*range(size)))


def all_gather(rank, size):
    parts = [torch.empty(1) for _ in range(size)]
    dist.all_gather(parts, numbers(rank))
    expect("all_gather", torch.cat(parts), numbers(*range(size)))


def broadcast(rank, size):
    value = numbers(42, size) if rank == 0 else torch.empty(2)
    dist.broadcast(value, src=0)
    expect("broadcast", value, numbers(42, size))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--raise", dest="culprit", type=int, default=-1)
    culprit = options.parse_args().culprit

    dist.init_process_group("gloo", init_method="env://", timeout=datetime.timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    for collective in (reduce, all_reduce, scatter, gather, all_gather, broadcast):
        collective(rank, size)
        if rank == culprit:
            raise RuntimeError("this rank was asked to fail")
        print(f"rank {rank} of {size}: {collective.__name__} is right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
