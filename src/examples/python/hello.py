"""colrun -n 4 python3 hello.py"""

import numpy as np

import col

world = col.init()
values = np.full(1000, world.rank + 1, dtype=np.float32)
world.allreduce(values)  # every rank now holds the sum over all ranks
print(f"rank {world.rank} of {world.size}: the sum is {values[0]:g}")
col.finalize()
