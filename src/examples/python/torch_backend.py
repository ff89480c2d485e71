"""torch.distributed over col: the six collectives, and a classifier of digits trained by DDP.

    colrun -n 4 python3 torch_backend.py               # over col
    colrun -n 4 python3 torch_backend.py gloo          # over torch's own Gloo: the same numbers
    torchrun --nproc-per-node 4 torch_backend.py       # the ranks meet through torch's store, whoever started them

The name of the backend is all that differs. With today's torch and col installed by pip, the import of col.torch can go, too.
"""

import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn

import col.torch  # noqa: F401  makes backend "col" known

DATA = pathlib.Path(__file__).parent.parent / "data" / "digits.csv"
EPOCHS, BATCH = 3, 64


def say(*words: object) -> None:
    """Rank 0 speaks for all."""
    if dist.get_rank() == 0:
        print(*words, flush=True)


def six_collectives() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = torch.tensor([rank + 1.0])

    total = mine.clone()
    dist.reduce(total, dst=0)  # the other ranks' is not defined then
    say("reduce:", total.tolist())

    total = mine.clone()
    dist.all_reduce(total)
    say("all_reduce:", total.tolist())

    part = torch.empty(1)
    dist.scatter(part, [torch.tensor([10.0 * r]) for r in range(size)] if rank == 0 else None, src=0)
    say("scatter:", part.tolist())

    tensors = [torch.empty(1) for _ in range(size)]
    dist.gather(mine, tensors if rank == 0 else None, dst=0)
    say("gather:", torch.cat(tensors).tolist())

    dist.all_gather(tensors, mine)
    say("all_gather:", torch.cat(tensors).tolist())

    first = mine.clone()
    dist.broadcast(first, src=0)
    say("broadcast:", first.tolist())


def train() -> None:
    """Data parallel: each rank computes gradients on its own images, and DDP averages them during backward()."""
    rows = [[float(field) for field in line.split(",")] for line in DATA.read_text().splitlines()]
    table = torch.tensor(rows)
    images, labels = table[:, :-1] / 8 - 1, table[:, -1].long()

    torch.manual_seed(1)  # the same first weights on all ranks; DDP would send rank 0's anyway
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        losses = torch.zeros(2)
        for batch in order.split(BATCH):
            own = batch[dist.get_rank() :: dist.get_world_size()]
            loss = nn.functional.cross_entropy(model(images[own]), labels[own])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses += torch.tensor([loss.item(), 1.0])
        dist.all_reduce(losses)
        say(f"epoch {epoch + 1}: loss {losses[0] / losses[1]:.6f}")


if __name__ == "__main__":
    dist.init_process_group(sys.argv[1] if len(sys.argv) > 1 else "col")
    six_collectives()
    train()
    dist.destroy_process_group()
