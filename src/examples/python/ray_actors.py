"""Collectives between Ray actors: the two ways to make a group, and what each rank does in a call.

    pip install ray numpy
    python3 ray_actors.py

For a program that uses Ray's own module, `import col.ray as collective` is the line that changes.
"""

import numpy as np
import ray

import col.ray as collective


@ray.remote
class Worker:
    def __init__(self, value):
        self.buffer = np.full(4, value, np.float32)

    def setup(self, world_size, rank):
        collective.init_collective_group(world_size, rank, group_name="by the actors")
        return True

    def compute(self, group_name):
        collective.allreduce(self.buffer, group_name)
        return self.buffer

    def exchange(self, group_name):
        rank = collective.get_rank(group_name)
        if rank == 0:
            collective.send(self.buffer * 10, 1, group_name)
        else:
            collective.recv(self.buffer, 0, group_name)
        return self.buffer


def main():
    ray.init(include_dashboard=False)
    workers = [Worker.remote(rank + 1) for rank in range(2)]

    # Imperative: every actor says which rank it is.
    ray.get([worker.setup.remote(2, rank) for rank, worker in enumerate(workers)])
    print("sum:", *ray.get([worker.compute.remote("by the actors") for worker in workers]))

    # Declarative: the driver says so, and each actor joins at its first call.
    collective.create_collective_group(workers, 2, [0, 1], group_name="by the driver")
    print("sum of sums:", *ray.get([worker.compute.remote("by the driver") for worker in workers]))
    print("message:", *ray.get([worker.exchange.remote("by the driver") for worker in workers]))

    collective.destroy_collective_group("by the driver")
    ray.shutdown()


if __name__ == "__main__":
    main()
