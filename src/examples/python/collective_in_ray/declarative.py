"""The driver says who is in the group, and then makes a call for all of them at once: "Collective in Ray", declaratively.

    python3 declarative.py

First the actors call, in a group that they did not make. Then the driver calls, on references to tensors that the actors hold.
"""

from typing import Any

import ray
import torch

import col.ray as collective

collective.register()  # before the class: its decorator asks Ray for the transport


@ray.remote
class Worker:
    def __init__(self):
        self.buffer = torch.ones(10)

    @ray.method(tensor_transport="COL")
    def get_buffer(self):
        return self.buffer

    def compute(self):
        collective.allreduce(self.buffer, "177")
        return self.buffer[0].item()

    def first(self):
        return self.buffer[0].item()


def main():
    ray.init(include_dashboard=False)
    A, B = workers = [Worker.remote() for _ in range(2)]

    options: dict[str, Any] = {"group_name": "177", "world_size": 2, "ranks": [0, 1], "backend": "nccl"}
    collective.declare_collective_group(workers, **options)
    print("the actors called:", *ray.get([worker.compute.remote() for worker in workers]))

    # The same as a mapping, with the document's other word for the ranks.
    collective.declare_collective_group(workers, options={"group_name": "by the driver", "rank": [0, 1]})
    collective.allreduce_refs([A.get_buffer.remote(), B.get_buffer.remote()], "by the driver")
    print("the driver called:", *ray.get([worker.first.remote() for worker in workers]))

    for name in "177", "by the driver":
        collective.destroy_collective_group(name)
    ray.shutdown()


if __name__ == "__main__":
    main()
