"""The ways to train, by name."""

from __future__ import annotations

from typing import Any, Sequence

from allreduce import Allreduce
from layout import Layout, State
from store import Store

WAYS = {
    "store": "a parameter server by Ray's object store and remote calls, one for each key, as spacy-ray has it",
    "store-shards": "the same, one call for all keys of an owner",
    "col": "one allreduce of col.ray for all gradients",
    "col-keys": "an allreduce of col.ray for each key, as the document has it",
    "gloo": "one allreduce of ray.util.collective, GLOO, for all gradients",
    "gloo-keys": "an allreduce of ray.util.collective, GLOO, for each key",
}
ALONE = "alone"


class Alone:
    """No exchange: what an update costs if communication is free. Each worker learns from its own texts only."""

    def __init__(self, layout: Layout) -> None:
        self.keys = list(layout.parts)

    def exchange(self, state: State, apply: Any) -> None:
        apply(state, self.keys)


def make_exchange(way: str, rank: int, layout: Layout, peers: Sequence[Any], timeout: float) -> Any:
    """An object whose exchange() sums gradients over all workers and brings the parameters up to date. Blocks until all
    workers have called it, when the way has a group to join."""
    if way == ALONE:
        return Alone(layout)
    if way.startswith("store"):
        return Store(way, rank, layout, peers, way == "store", timeout)
    return Allreduce(way, rank, layout, timeout)
