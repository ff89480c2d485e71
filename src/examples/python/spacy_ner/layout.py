"""All parameters of a model in one array, and who owns which.

The parameters of an owner lie side by side, so that a message with all of them needs no copy.
"""

from __future__ import annotations

import math
from typing import Any, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Shapes = Mapping[Any, tuple[int, ...]]


class Layout:
    """Where each key's parameter lies. keys_of[owner] lists keys, parts[key] is a slice, shards[owner] the slice of all.

    Each key goes to the owner with the least so far, the largest keys first. Requires: at least as many keys as owners.
    """

    def __init__(self, shapes: Shapes, owners: int) -> None:
        if len(shapes) < owners:
            raise ValueError(f"{owners} workers cannot share {len(shapes)} parameters: some would own none")
        self.shapes = shapes
        self.keys_of: list[list[Any]] = [[] for _ in range(owners)]
        loads = [0] * owners
        for key in sorted(shapes, key=lambda key: -math.prod(shapes[key])):
            owner = loads.index(min(loads))
            self.keys_of[owner].append(key)
            loads[owner] += math.prod(shapes[key])

        self.parts: dict[Any, slice] = {}
        self.shards: list[slice] = []
        self.size = 0
        for keys in self.keys_of:
            begin = self.size
            for key in keys:
                end = self.size + math.prod(shapes[key])
                self.parts[key] = slice(self.size, end)
                self.size = end
            self.shards.append(slice(begin, self.size))


class State:
    """Parameters and gradients of a model: flat, and as views by key."""

    def __init__(self, layout: Layout, initial: Mapping[Any, Array]) -> None:
        self.parameters = np.empty(layout.size, np.float32)
        self.gradients = np.zeros(layout.size, np.float32)
        self.parameter = {key: self.parameters[part].reshape(layout.shapes[key]) for key, part in layout.parts.items()}
        self.gradient = {key: self.gradients[part].reshape(layout.shapes[key]) for key, part in layout.parts.items()}
        for key, value in initial.items():
            self.parameter[key][:] = value
        self.optimizer: Any = None  # a task may keep one here
        self.step = 0
