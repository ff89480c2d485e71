"""As loss_loop_col.cpp, for PyTorch with Gloo: a new group by the store of rank 0, whose ranks are told who is lost.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set, and no launcher ends the others.
"""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist


def main():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)

    def note(word):
        with open(sys.argv[1], "a", encoding="ascii") as file:
            file.write(f"{word} {time.monotonic_ns()}\n")

    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, rank == 0)
    dist.init_process_group("gloo", store=dist.PrefixStore("0", store), rank=rank, world_size=size)

    def total():
        values = torch.ones(1000)
        dist.all_reduce(values)
        return values[0].item(), values[-1].item()

    assert all(total() == (size, size) for _ in range(200))
    if rank == size - 1:
        note("killed")
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        total()
        sys.exit(3)
    except RuntimeError:
        note("caught")
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.PrefixStore("1", store), rank=rank, world_size=size - 1)
    assert total() == (size - 1, size - 1)
    note("right")
    dist.barrier()  # rank 0 serves the store


main()
