"""As first_barrier_col.cpp, for PyTorch with Gloo under torchrun."""

import sys
import time

import torch.distributed

torch.distributed.init_process_group("gloo")
torch.distributed.barrier()
if torch.distributed.get_rank() == 0 and len(sys.argv) > 1:
    with open(sys.argv[1], "w", encoding="ascii") as file:
        file.write(f"{time.monotonic_ns()}\n")
torch.distributed.destroy_process_group()
