"""Two actors sum an array of four ones: the first program of the document "Collective in Ray".

    python3 allreduce.py

Each actor says itself which rank it is. On a machine with two GPUs and cupy, the arrays are on GPUs; elsewhere in memory.
"""

import numpy as np
import ray

import col.ray as collective

NUM_WORKERS = 2

try:
    import cupy

    has_gpus = cupy.cuda.runtime.getDeviceCount() >= NUM_WORKERS
except Exception:  # no cupy, or no driver for it
    has_gpus = False
xp = cupy if has_gpus else np


@ray.remote(num_gpus=1 if has_gpus else 0)
class Worker:
    def __init__(self):
        self.send = xp.ones((4,), dtype=xp.float32)
        self.recv = xp.zeros((4,), dtype=xp.float32)

    def setup(self, world_size, rank):
        collective.init_collective_group(world_size, rank, "nccl", "default")
        return collective.get_group("default").backend

    def compute(self):
        """Every rank's `send` becomes the sum; `recv` gets that of rank 0, which is the same."""
        collective.allreduce(self.send, "default")
        if collective.get_rank() == 0:
            collective.broadcast(self.send, 0)
            self.recv = self.send
        else:
            collective.broadcast(self.recv, 0)
        return [[float(x) for x in array] for array in (self.send, self.recv)]

    def destroy(self):
        collective.destroy_group()
        return collective.is_group_initialized("default")


def main():
    ray.init(include_dashboard=False)
    workers = [Worker.remote() for _ in range(NUM_WORKERS)]
    backends = ray.get([worker.setup.remote(NUM_WORKERS, rank) for rank, worker in enumerate(workers)])
    print("moved by", *sorted(set(backends)))
    for rank, (send, recv) in enumerate(ray.get([worker.compute.remote() for worker in workers])):
        print(f"rank {rank}: send {send}, recv {recv}")
    print("still in the group:", *ray.get([worker.destroy.remote() for worker in workers]))
    ray.shutdown()


if __name__ == "__main__":
    main()
