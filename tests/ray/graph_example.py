"""The program in docs/ray.md."""

import ray
import torch
from ray.dag import InputNode, MultiOutputNode

from col.ray.graph import allreduce


@ray.remote
class Worker:
    def __init__(self):
        self.weights = torch.zeros(4)

    def gradients(self, batch):
        return torch.full((4,), batch)

    def update(self, gradients):
        self.weights -= gradients
        return self.weights


def main():
    workers = [Worker.remote() for _ in range(2)]
    with InputNode() as batches:
        gradients = [worker.gradients.bind(batches[i]) for i, worker in enumerate(workers)]
        sums = allreduce.bind(gradients)
        graph = MultiOutputNode([worker.update.bind(s) for worker, s in zip(workers, sums)])
    step = graph.experimental_compile()
    for _ in range(3):
        weights = ray.get(step.execute(1.0, 2.0))
    step.teardown()
    print(*weights)


if __name__ == "__main__":
    main()
