"""Allreduce of arrays that Ray actors hold: by the object store, and by a collective.

    pip install ray numpy
    python3 allreduce_vs_objectstore.py --workers 4

The comparison of slides 11 to 15 of the talk "Collective-on-Ray". Three ways take turns, and every result is verified:

    put/get     every worker puts its gradients into the object store, worker 0 gets and adds them and puts the sum, and the
                others get it: the program of the slides, with one ray.get() for all arrays instead of one for each
    returned    the same with fewer objects: gradients are results of calls, and arguments of others
    collective  every worker calls allreduce
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any, Callable

import numpy as np
import ray
from numpy.typing import NDArray

import col.ray as collective

Array = NDArray[np.float32]
INSIDE = 5  # calls of allreduce in a row, measured inside the actors


class Worker:
    def __init__(self, world_size: int, rank: int) -> None:
        self.world_size, self.rank = world_size, rank
        collective.init_collective_group(world_size, rank, group_name="gradients")

    def make_gradients(self, count: int, salt: int) -> None:
        """Whole numbers, so that every order of additions has the same sum."""
        self.gradients = ((np.arange(count) + salt) % 1000 * (self.rank + 1)).astype(np.float32)
        self.result = np.empty(0, np.float32)

    def is_right(self, count: int, salt: int) -> bool:
        factor = self.world_size * (self.world_size + 1) // 2
        return np.array_equal(self.result, ((np.arange(count) + salt) % 1000 * factor).astype(np.float32))

    def put_gradients(self) -> Any:
        return ray.put(self.gradients)

    def reduce_gradients(self, references: list[Any]) -> Any:
        """Gets references of what put_gradients() has returned: references."""
        return ray.put(self.sum_gradients(*ray.get(ray.get(references))))

    def get_reduced_gradients(self, references: list[Any]) -> None:
        self.result = ray.get(ray.get(references[0]))

    def return_gradients(self) -> Array:
        return self.gradients

    def sum_gradients(self, *gradients: Array) -> Array:
        self.result = gradients[0].copy()  # arrays from the object store are read-only
        for other in gradients[1:]:
            self.result += other
        return self.result

    def take_reduced_gradients(self, reduced: Array) -> None:
        self.result = reduced

    def allreduce(self) -> None:
        collective.allreduce(self.gradients, "gradients")
        self.result = self.gradients

    def time_allreduce(self) -> float:
        """Seconds of one call, without Ray's call of the actor."""
        self.gradients.fill(0)
        collective.barrier("gradients")
        start = time.perf_counter()
        for _ in range(INSIDE):
            collective.allreduce(self.gradients, "gradients")
        return (time.perf_counter() - start) / INSIDE


def put_and_get(workers: list[Any]) -> list[Any]:
    """Each way returns the references that it has made."""
    gradients = [worker.put_gradients.remote() for worker in workers]
    reduced = workers[0].reduce_gradients.remote(gradients)
    ray.get([worker.get_reduced_gradients.remote([reduced]) for worker in workers[1:]] + [reduced], timeout=60)
    return [*gradients, reduced]


def return_and_pass(workers: list[Any]) -> list[Any]:
    gradients = [worker.return_gradients.remote() for worker in workers]
    reduced = workers[0].sum_gradients.remote(*gradients)
    ray.get([worker.take_reduced_gradients.remote(reduced) for worker in workers[1:]], timeout=60)
    return [*gradients, reduced]


def call_collective(workers: list[Any]) -> list[Any]:
    ray.get([worker.allreduce.remote() for worker in workers], timeout=60)
    return []


WAYS: dict[str, Callable[[list[Any]], list[Any]]] = {
    "put/get": put_and_get, "returned": return_and_pass, "collective": call_collective,
}  # fmt: skip


def bytes_in_store(references: list[Any]) -> int:
    """The size of the objects that references lead to, or references to references, and that are in the object store. Ray
    keeps small results of calls out of it."""
    total = 0
    for reference in references:
        value = ray.get(reference, timeout=60)
        target = value if isinstance(value, ray.ObjectRef) else reference
        # One at a time: Ray 2.60 may crash when it asks several owners at once.
        place = ray.experimental.get_object_locations([target], timeout_ms=60_000)[target]
        total += int(place["object_size"]) if place["node_ids"] else 0
    return total


class Comparison:
    """Of one size, in elements."""

    def __init__(self, workers: list[Any], count: int) -> None:
        self.workers, self.count = workers, count
        self.seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        self.inside: list[float] = []
        self.stored: dict[str, int] = {}

    def all(self, method: str, *arguments: Any) -> list[Any]:
        return list(ray.get([getattr(worker, method).remote(*arguments) for worker in self.workers], timeout=60))

    def call(self, way: str, salt: int) -> tuple[float, list[Any]]:
        """One verified allreduce: its seconds, and its references."""
        self.all("make_gradients", self.count, salt)
        start = time.perf_counter()
        references = WAYS[way](self.workers)
        passed = time.perf_counter() - start
        if not all(self.all("is_right", self.count, salt)):
            sys.exit(f"{way}: the sum of {self.count} elements is wrong")
        return passed, references

    def run(self, rounds: int) -> None:
        for way in WAYS:  # the first call of each is not timed: its objects are counted
            self.stored[way] = bytes_in_store(self.call(way, 0)[1])
        names = list(WAYS)
        for salt in range(1, rounds + 1):
            shift = salt % len(names)
            for way in names[shift:] + names[:shift]:
                self.seconds[way].append(self.call(way, salt)[0])
            self.inside.append(max(self.all("time_allreduce")))

    def line(self) -> str:
        medians = {way: statistics.median(values) for way, values in self.seconds.items()}
        cells = [f"{4 * self.count:,}", *(f"{1e3 * seconds:.2f}" for seconds in medians.values())]
        for way in "put/get", "returned":
            ratios = (a / b for a, b in zip(self.seconds[way], self.seconds["collective"]))
            cells.append(f"{statistics.median(ratios):.1f}x")
        cells.append(f"{1e3 * statistics.median(self.inside):.3f}")
        cells += [f"{stored:,}" for stored in self.stored.values()]
        return "| " + " | ".join(cells) + " |"


HEADER = """
| bytes | put/get, ms | returned | collective | put/get / collective | returned / collective | inside the actor, ms | \
stored, bytes: put/get | returned | collective |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |""".strip()

parser = argparse.ArgumentParser(description="Allreduce by Ray's object store, and by a collective.")
parser.add_argument("--workers", type=int, default=4, help="actors (default %(default)s)")
parser.add_argument("--bytes", type=int, nargs="+", default=[4 << 10, 256 << 10, 4 << 20, 32 << 20], help="sizes to compare")
parser.add_argument("--rounds", type=int, default=11, help="timed calls of each way (default %(default)s)")
parser.add_argument("--address", default="local", help="of a Ray cluster (default: one of its own, on this machine)")


def main(options: argparse.Namespace) -> None:
    arguments = {"num_cpus": 1, "include_dashboard": False} if options.address == "local" else {}
    ray.init(address=options.address, logging_level="warning", **arguments)
    actor = ray.remote(num_cpus=0)(Worker)
    workers = [actor.remote(options.workers, rank) for rank in range(options.workers)]
    ray.get([worker.__ray_ready__.remote() for worker in workers], timeout=120)
    print(f"{options.workers} workers, medians of {options.rounds} rounds\n\n{HEADER}")
    for size in options.bytes:
        comparison = Comparison(workers, size // 4)
        comparison.run(options.rounds)
        print(comparison.line(), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main(parser.parse_args())
