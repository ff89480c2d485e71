"""How long an execution of a compiled graph takes, from the driver's execute() to its get(), between two actors.

    python tests/ray/graph_speed.py [rounds]

All kinds of graphs take turns in each round, each with new actors. The medians and the middle half are printed.
"""

import random
import statistics
import sys
import time

import ray
import torch
from ray.dag import DAGContext, InputNode, MultiOutputNode
from ray.experimental import collective
from ray.experimental.channel.cpu_communicator import CPUCommunicator

from col.ray import graph

WARM, EACH = 3, 5  # executions
SIZES = {"32 KiB": 8 << 10, "32 MiB": 8 << 20}  # in elements of four bytes


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self):
        self.tensors = {}

    def tensor(self, count):
        if count not in self.tensors:
            self.tensors[count] = torch.ones(count)
        return self.tensors[count]

    def first(self, tensor):
        return tensor[0].item()

    def first_of_sum(self, *tensors):
        return sum(tensors)[0].item()


def allreduce_by(communicator_of, bind):
    def build(actors, count):
        sums = bind([actor.tensor.bind(count) for actor in actors], transport=communicator_of(actors))
        return [actor.first.bind(s) for actor, s in zip(actors, sums)]

    return build


def exchange(actors, count):
    tensors = [actor.tensor.bind(count) for actor in actors]
    return [actor.first_of_sum.bind(*tensors) for actor in actors]


def nothing(actors, count):
    return [actor.first.bind(actor.tensor.bind(count)) for actor in actors]


def message_by(mark):
    def build(actors, count):
        return [actors[1].first.bind(mark(actors[0].tensor.bind(count), actors))]

    return build


KINDS = {
    "no communication": nothing,
    "allreduce, col": allreduce_by(graph.Communicator, graph.allreduce.bind),
    "allreduce, Ray's CPUCommunicator": allreduce_by(lambda actors: CPUCommunicator(2, actors), collective.allreduce.bind),
    "both tensors to both, Ray's channels": exchange,
    "message, col": message_by(lambda node, actors: graph.Communicator(actors).carry(node)),
    "message, Ray's channel": message_by(lambda node, actors: node.with_tensor_transport("shm")),
}


def measure(kind, times):
    """Adds some executions of each size. The graph is alone: even the idle actors of another one poll, a processor each."""
    actors = [Worker.remote() for _ in range(2)]
    with InputNode() as count:
        outputs = KINDS[kind](actors, count)
    compiled = MultiOutputNode(outputs).experimental_compile()
    for size, count in SIZES.items():
        for turn in range(WARM + EACH):
            began = time.perf_counter()
            results = ray.get(compiled.execute(count))
            took = time.perf_counter() - began
            assert results in ([1.0], [1.0] * 2, [2.0] * 2), results
            if turn >= WARM:
                times[size][kind].append(1e3 * took)
    compiled.teardown(kill_actors=True)


def main(rounds):
    ray.init(address="local", num_cpus=8, include_dashboard=False, logging_level="error")
    DAGContext.get_current().teardown_timeout = 1  # a large tensor in Ray's own channel keeps its graph from ending
    times = {size: {kind: [] for kind in KINDS} for size in SIZES}
    for _ in range(rounds):
        for kind in random.sample(list(KINDS), len(KINDS)):
            measure(kind, times)
    for size, of_kinds in times.items():
        print(f"{size}, median of {rounds * EACH}, ms (middle half)")
        for kind, values in of_kinds.items():
            low, middle, high = statistics.quantiles(values, n=4)
            print(f"  {kind:38} {middle:8.2f} ({low:.2f}–{high:.2f})")
    ray.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8)
