"""Six ways to share tensors: reduce, allreduce, scatter, gather, allgather and broadcast.

    colrun -n 4 python3 article.py             # all six
    colrun -n 4 python3 article.py gather      # one of them

They are the six examples of an article on torch.distributed, with the functions of col that take torch's tensors and
lists of tensors. No process group has to be made: col.init() joins the one that colrun started. The methods of a group,
such as world.allreduce(tensor), do the same, with one tensor in place of a list.
"""

import sys

import torch

import col

ROOT = 0


def reduce(rank: int, size: int) -> None:
    """The root gets the sum of all tensors. The others keep theirs; torch.distributed leaves partial sums there."""
    tensor = torch.tensor([rank + 1.0])
    col.reduce(tensor, dst_rank=ROOT, op="sum")  # or "product", "min", "max", "avg"
    say(rank, "reduce", tensor)


def allreduce(rank: int, size: int) -> None:
    """Everybody gets the sum: what data-parallel training does with gradients."""
    tensor = torch.tensor([rank + 1.0])
    col.allreduce(tensor, op="sum")
    say(rank, "allreduce", tensor)


def scatter(rank: int, size: int) -> None:
    """The root cuts something into parts, and everybody gets one."""
    tensor = torch.empty(1)
    parts = [torch.tensor([10.0 * r]) for r in range(size)] if rank == ROOT else None
    col.scatter(tensor, parts, src_rank=ROOT)
    say(rank, "scatter", tensor)


def gather(rank: int, size: int) -> None:
    """The other way round: the root gets everybody's tensor."""
    tensor = torch.tensor([float(rank)])
    tensors = [torch.empty(1) for _ in range(size)] if rank == ROOT else None
    col.gather(tensor, tensors, dst_rank=ROOT)
    if tensors is not None:
        say(rank, "gather", *tensors)


def allgather(rank: int, size: int) -> None:
    """Everybody gets everybody's tensor."""
    tensor = torch.tensor([float(rank)])
    tensors = [torch.empty(1) for _ in range(size)]
    col.allgather(tensors, tensor)
    say(rank, "allgather", *tensors)


def broadcast(rank: int, size: int) -> None:
    """Everybody gets the root's tensor: the first weights, say."""
    tensor = torch.tensor([0.5]) if rank == ROOT else torch.empty(1)
    col.broadcast(tensor, src_rank=ROOT)
    say(rank, "broadcast", tensor)


def say(rank: int, example: str, *tensors: torch.Tensor) -> None:
    print(f"rank {rank}: {example}:", *(f"{tensor.item():g}" for tensor in tensors), flush=True)


EXAMPLES = {f.__name__: f for f in (reduce, allreduce, scatter, gather, allgather, broadcast)}

if __name__ == "__main__":
    chosen = sys.argv[1:] or list(EXAMPLES)
    unknown = [name for name in chosen if name not in EXAMPLES]
    if unknown:
        sys.exit(f"no example {unknown[0]!r}; choose from {', '.join(EXAMPLES)}")
    world = col.init()
    for name in chosen:
        EXAMPLES[name](world.rank, world.size)
    col.finalize()
