"""Optimizers for numpy arrays. Their formulas are those of torch.optim.SGD and torch.optim.Adam.

An optimizer serves one strategy. It updates flat arrays in place, and keeps its state in flat vectors, one number for each
parameter: a strategy that gives it a part of all parameters holds that part of the state.
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument

Array = NDArray[Any]


class Optimizer:
    """What SGD and Adam share. One of your own defines `vectors` and update()."""

    vectors: tuple[str, ...] = ()  # the names of its state

    def __init__(self) -> None:
        self.steps = 0
        self._parameters: list[Array] = []
        self._state: dict[str, Array] = {}

    def update(self, parameter: Array, gradient: Array, *state: Array) -> None:
        """Changes the parameter, and the parts of the state that belong to it. self.steps counts from 1."""
        raise NotImplementedError

    def bind(self, parameters: Sequence[Array]) -> None:
        """The strategy says which flat arrays it is for. All have one dtype."""
        if self._parameters:
            raise InvalidArgument("this optimizer serves another strategy already: make a new one for each")
        self._parameters = list(parameters)
        size = sum(array.size for array in parameters)
        self._state = {name: np.zeros(size, parameters[0].dtype) for name in self.vectors}

    def release(self) -> None:
        """The strategy that it serves will bind() it to others."""
        self._parameters = []

    def step(self, gradients: Sequence[Array]) -> None:
        self.steps += 1
        begin = 0
        for parameter, gradient in zip(self._parameters, gradients):
            part = slice(begin, begin + parameter.size)
            self.update(parameter, gradient, *(vector[part] for vector in self._state.values()))
            begin = part.stop

    def state(self) -> dict[str, Any]:
        """Copies."""
        return {"steps": self.steps, **{name: vector.copy() for name, vector in self._state.items()}}

    def load(self, state: dict[str, Any]) -> None:
        if set(state) != {"steps", *self.vectors}:
            raise InvalidArgument(
                f"the state is of another optimizer: it has {sorted(state)}, and {type(self).__name__} needs steps"
                f"{''.join(', ' + name for name in self.vectors)}"
            )
        for name, vector in self._state.items():
            if state[name].shape != vector.shape:
                raise InvalidArgument(f"the state has {state[name].size} numbers of {name} for {vector.size} parameters")
            vector[:] = state[name]
        self.steps = int(state["steps"])

    @property
    def state_bytes(self) -> int:
        return sum(vector.nbytes for vector in self._state.values())


class SGD(Optimizer):
    """v = momentum v + g; p -= lr v. Without momentum it has no state. `lr` may be changed between steps."""

    def __init__(self, lr: float, momentum: float = 0.0) -> None:
        super().__init__()
        self.lr, self.momentum = lr, momentum
        self.vectors = ("velocity",) if momentum else ()

    def update(self, parameter: Array, gradient: Array, *state: Array) -> None:
        for velocity in state:
            velocity *= self.momentum
            velocity += gradient
            gradient = velocity
        parameter -= self.lr * gradient


class Adam(Optimizer):
    """Of Kingma and Ba. Two numbers of state for each parameter. `lr` may be changed between steps."""

    vectors = ("mean", "square")

    def __init__(self, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8) -> None:
        super().__init__()
        self.lr, self.betas, self.eps = lr, betas, eps

    def update(self, parameter: Array, gradient: Array, *state: Array) -> None:
        mean, square = state
        first, second = self.betas
        mean *= first
        mean += (1 - first) * gradient
        square *= second
        square += (1 - second) * gradient * gradient
        root = np.sqrt(square / (1 - second**self.steps)) + self.eps
        parameter -= (self.lr / (1 - first**self.steps)) * mean / root
