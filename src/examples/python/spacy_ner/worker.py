"""A worker: a Ray actor that trains the same model in several ways, with parameters of its own for each."""

from __future__ import annotations

import argparse
from typing import Any, Iterable, Sequence

import numpy as np
import ray

from layout import Array, Layout, State
from ways import ALONE, make_exchange


def apply_nothing(state: State, keys: Iterable[Any]) -> None:
    """For measuring communication alone."""


class Worker:
    """The driver calls run(). Meanwhile other workers call inc_grad() and set_param(), which run in the thread "store" and
    have no result, because nobody would read it."""

    def __init__(self, rank: int, size: int, options: argparse.Namespace) -> None:
        self.rank, self.options = rank, options
        if options.synthetic:
            from synthetic import SyntheticTask

            self.task: Any = SyntheticTask(rank, size, options.work)
        else:
            from pipeline import SpacyTask

            self.task = SpacyTask(rank, size, options.texts)
        self.layout = Layout(self.task.shapes, size)

    def connect(self, peers: Sequence[Any]) -> tuple[int, int]:
        """Requires: called on all workers, with the same list of all. Returns how many keys and elements there are."""
        self.exchanges = {
            way: make_exchange(way, self.rank, self.layout, peers, self.options.timeout)
            for way in [ALONE, *self.options.ways]
        }
        self.reset()
        return len(self.layout.parts), self.layout.size

    def reset(self) -> None:
        """Back to the first parameters."""
        self.states = {way: self.task.new_state(self.layout) for way in self.exchanges}

    def run(self, way: str, updates: int) -> list[float]:
        """Trains on. Returns the loss of each update."""
        state, exchange = self.states[way], self.exchanges[way].exchange
        losses = []
        for _ in range(updates):
            losses.append(self.task.compute(state))
            exchange(state, self.task.apply)
        return losses

    def run_exchange(self, way: str, updates: int) -> None:
        """Only communicates. The gradients are 0, and the parameters stay what they are."""
        state, exchange = self.states[way], self.exchanges[way].exchange
        state.gradients.fill(0)
        for _ in range(updates):
            exchange(state, apply_nothing)

    def parameters(self, way: str) -> Array:
        """In an order that does not depend on the number of workers."""
        return np.concatenate([self.states[way].parameters[part] for _, part in sorted(self.layout.parts.items())])

    def score(self, way: str) -> float:
        return float(self.task.score(self.states[way]))

    @ray.method(concurrency_group="store", num_returns=0)
    def inc_grad(self, way: str, *message: Any) -> None:
        self.exchanges[way].receive(*message)

    @ray.method(concurrency_group="store", num_returns=0)
    def set_param(self, way: str, *message: Any) -> None:
        self.exchanges[way].receive(*message)


def start(size: int, options: argparse.Namespace) -> list[Any]:
    """The actors. They ask for no CPUs: Ray would refuse to start more of them than there are."""
    actor = ray.remote(num_cpus=0, concurrency_groups={"store": 1})(Worker)
    return [actor.remote(rank, size, options) for rank in range(size)]
