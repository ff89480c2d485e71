"""Actors that have several GPUs each: the calls of the document "Collective in Ray" whose names end in _multigpu.

    python3 multigpu.py

Two actors with two GPUs each, or as many as there are. A call takes a list, with an array on each GPU. Without GPUs, build the
project's stand-ins, which compute in memory (docs/ray.md has the command).
"""

import sys

import devices
import ray

import col.ray as collective


@ray.remote
class Worker:
    def __init__(self, gpus):
        self.send = [devices.Array(gpu, [gpu + 1.0] * 4) for gpu in range(gpus)]
        self.recv = [devices.Array(gpu, [0.0] * 4) for gpu in range(gpus)]
        devices.make_current(0)

    def setup(self, world_size, rank):
        self.rank = rank
        self.world_size = world_size
        collective.init_collective_group(world_size, rank, "nccl", "177")
        return collective.get_group("177").device

    def allreduce_call(self):
        collective.allreduce_multigpu(self.send, "177")
        return [array.values()[0] for array in self.send]

    def broadcast_call(self):
        """From the last GPU of rank 0."""
        if self.rank == 0:
            self.recv[-1] = devices.Array(len(self.recv) - 1, [5.0] * 4)
        collective.broadcast_multigpu(self.recv, 0, len(self.recv) - 1, "177")
        return [array.values()[0] for array in self.recv]

    def reduce_call(self):
        """Into the first GPU of rank 0 alone."""
        collective.reduce_multigpu(self.recv, 0, 0, "177")
        return [array.values()[0] for array in self.recv]

    def allgather_call(self):
        """Each GPU gets an array of each GPU of each rank."""
        gpus = len(self.send)
        mine = [devices.Array(gpu, [10.0 * self.rank + gpu]) for gpu in range(gpus)]
        lists = [[devices.Array(gpu, [-1.0]) for _ in range(gpus * self.world_size)] for gpu in range(gpus)]
        collective.allgather_multigpu(lists, mine, "177")
        return [[array.values()[0] for array in arrays] for arrays in lists]

    def reducescatter_call(self):
        """Array f of all lists is summed, for the GPU that is number f of all."""
        gpus = len(self.send)
        lists = [[devices.Array(gpu, [float(f)]) for f in range(gpus * self.world_size)] for gpu in range(gpus)]
        mine = [devices.Array(gpu, [-1.0]) for gpu in range(gpus)]
        collective.reducescatter_multigpu(mine, lists, "177")
        return [array.values()[0] for array in mine]

    def p2p_call(self):
        """From the first GPU of rank 0 to the last of rank 1."""
        last = len(self.recv) - 1
        if self.rank == 0:
            collective.send_multigpu(self.send[0], 1, last, "177")
        else:
            collective.recv_multigpu(self.recv[last], 0, 0, "177")
        collective.synchronize(0)  # after the calls above it has nothing to wait for: they end before they return
        return self.recv[last].values()[0]


def main():
    gpus = devices.count()
    if gpus == 0:
        sys.exit("no GPU here: see docs/ray.md, \"Several GPUs an actor\", for stand-ins")
    num_workers = min(2, gpus)
    each = min(2, gpus // num_workers)
    ray.init(include_dashboard=False, num_gpus=gpus)
    workers = [Worker.options(num_gpus=each).remote(each) for _ in range(num_workers)]

    def on_all(method, *arguments):
        return ray.get([getattr(worker, method).remote(*arguments) for worker in workers])

    print("GPUs:", *ray.get([worker.setup.remote(num_workers, rank) for rank, worker in enumerate(workers)]), f"({each} each)")
    for name in "allreduce", "broadcast", "reduce", "allgather", "reducescatter":
        print(f"{name}:", *on_all(f"{name}_call"))
    if num_workers == 2:
        print("message:", *on_all("p2p_call"))
    ray.shutdown()


if __name__ == "__main__":
    main()
