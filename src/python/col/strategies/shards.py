"""One flat vector of all parameters, cut into shards of one length; the last ones may be short, and are filled up with zeros.

    parameters   0 1 2 3 4 5 6 7 8 9
    3 shards     0 1 2 3│4 5 6 7│8 9 · ·

An optimizer that has a shard holds the state of its shard. What is true for all parameters alike, such as a count of steps,
is the same on all. So the whole state is one after another, and any other number of shards can be cut from it.
"""

from __future__ import annotations

import sys
from typing import Any, Sequence

import numpy as np

from .._col import Group
from . import checkpoint


class Shards:
    def __init__(self, model: Any, count: int) -> None:
        self.count = count
        self.kind = "numpy" if model.kind == "numpy" else "torch flat"  # of checkpoints
        self._model = model
        self.length = -(-model.size // count)

    def new_vector(self) -> Any:
        """For all parameters, and what fills up the last shards."""
        return self._model.new(self.length * self.count)

    def part(self, i: int) -> slice:
        return slice(i * self.length, (i + 1) * self.length)

    def join(self, states: Sequence[Any]) -> Any:
        """The state of the whole, of the optimizers' states."""
        first = states[0]
        if isinstance(first, dict):
            return {name: self.join([state[name] for state in states]) for name in first}
        if not _is_vector(first, self.length):
            return first
        if isinstance(first, np.ndarray):
            return np.concatenate(states)[: self._model.size]
        return sys.modules["torch"].cat(tuple(states))[: self._model.size].clone()

    def cut(self, state: Any, i: int) -> Any:
        """The state of optimizer i."""
        if isinstance(state, dict):
            return {name: self.cut(value, i) for name, value in state.items()}
        if not _is_vector(state, self._model.size):
            return state
        found = state[self.part(i)]
        if isinstance(state, np.ndarray):
            return np.concatenate([found, np.zeros(self.length - len(found), state.dtype)])
        return sys.modules["torch"].cat([found, found.new_zeros(self.length - len(found))])

    def pass_on(self, state: Any, group: Group) -> Any:
        """Sends the vectors of this rank's state to the next rank. Returns the state of the rank before. Collective."""
        if isinstance(state, dict):
            return {name: self.pass_on(value, group) for name, value in state.items()}
        if not _is_vector(state, self.length):
            return state
        found = np.empty_like(state) if isinstance(state, np.ndarray) else sys.modules["torch"].empty_like(state)
        return group.sendrecv(state, (group.rank + 1) % group.size, found, (group.rank - 1) % group.size)

    def state(self, steps: int, optimizer: Any) -> dict[str, Any]:
        """What a checkpoint holds. The parameters are those that the model has now."""
        return {**checkpoint.header(self.kind, steps), "parameters": self._model.state(), "optimizer": optimizer}


def _is_vector(value: Any, length: int) -> bool:
    return getattr(value, "ndim", 0) == 1 and len(value) == length
