"""What is trained, as the strategies see it: numpy arrays here, the parameters of a torch module in torch_model.py.

Both have the same members. `flats` are the parameters that have a gradient, as flat tensors that share their memory;
a flat vector holds all of them one after another, without gaps.
"""

from __future__ import annotations

import sys
from itertools import accumulate
from typing import Any, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from .._col import Group
from ..errors import InvalidArgument, Mismatch
from .optimizers import Optimizer

Array = NDArray[Any]


def model_of(model: Any) -> Any:
    """Arrays, or torch_model.Module. torch is imported only if the program has."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from .torch_model import Module

        return Module(model)
    return Arrays(model)


def check_count(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidArgument(f"{name} is {value!r}, and must be a whole number, {least} or more")
    return int(value)


def agree(group: Group, **settings: Any) -> None:
    """Collective. Raises Mismatch on all ranks if they have not all the same settings."""
    for rank, others in enumerate(group.allgather_object(settings)):
        for name, own in settings.items():
            if others.get(name) != own:
                raise Mismatch(
                    f"{name} is {own} here, on rank {group.rank}, and {others.get(name)} on rank {rank}: all ranks must make the "
                    "strategy alike", rank, group=group.name,
                )  # fmt: skip


def share(group: Group, model: Any, **settings: Any) -> None:
    """Rank 0's parameters become those of all. Collective. Raises Mismatch on all ranks if models or settings differ."""
    agree(group, library=model.kind, dtype=str(model.dtype), sizes=model.sizes, **settings)
    for tensor in model.whole():
        group.broadcast(tensor)


class Flats:
    """Flat tensors of both kinds: `flats`, with `sizes` and `size` in numbers of elements."""

    flats: Sequence[Any]
    sizes: list[int]
    size: int

    def _parts(self, vector: Any) -> list[Any]:
        """The parts of a flat vector, one for each parameter."""
        return [vector[end - size : end] for size, end in zip(self.sizes, accumulate(self.sizes))]

    def gather(self, vector: Any, flats: Optional[Sequence[Any]] = None) -> Any:
        """Copies the parameters, or the given flat tensors, into a flat vector."""
        for part, flat in zip(self._parts(vector), self.flats if flats is None else flats):
            part[:] = flat
        return vector

    def scatter(self, vector: Any) -> None:
        """Copies a flat vector into the parameters."""
        for part, flat in zip(self._parts(vector), self.flats):
            flat[:] = part


class Arrays(Flats):
    """Parameters that are numpy arrays. They are changed in place."""

    kind = "numpy"

    def __init__(self, arrays: Any) -> None:
        self.arrays: list[Array] = [arrays] if isinstance(arrays, np.ndarray) else list(arrays or ())
        if not self.arrays or any(not isinstance(array, np.ndarray) for array in self.arrays):
            raise InvalidArgument("a model is a numpy array, a list of numpy arrays (one at least), or a torch module")
        self.dtype = self.arrays[0].dtype
        for i, array in enumerate(self.arrays):
            if array.dtype.kind != "f" or array.dtype != self.dtype:
                raise InvalidArgument(f"parameter {i} is {array.dtype}: all parameters must be of one floating-point dtype")
            if not array.flags.c_contiguous or not array.flags.writeable:
                raise InvalidArgument(f"parameter {i} must be writable and contiguous in C order: pass numpy.array(x)")
        self.flats = [array.reshape(-1) for array in self.arrays]
        self.sizes = [array.size for array in self.arrays]
        self.size = sum(self.sizes)
        self.itemsize = self.dtype.itemsize

    def new(self, size: int) -> Array:
        return np.zeros(size, self.dtype)

    def whole(self) -> Sequence[Array]:
        """What the first rank tells the others at the start."""
        return self.flats

    def gradient(self, i: int, gradient: Any) -> Array:
        """The program's gradient of parameter i, as a flat array of any floating-point dtype."""
        if not isinstance(gradient, np.ndarray) or gradient.size != self.sizes[i] or gradient.dtype.kind != "f":
            raise InvalidArgument(
                f"gradient {i} is {_describe(gradient)}, and must be a floating-point array of shape {self.arrays[i].shape}"
            )
        return gradient.reshape(-1)

    def gradients(self, given: Any) -> list[Array]:
        if given is None:
            raise InvalidArgument("for numpy arrays, pass the gradients")
        listed = [given] if isinstance(given, np.ndarray) else list(given)
        if len(listed) != len(self.arrays):
            raise InvalidArgument(f"{len(listed)} gradients for {len(self.arrays)} parameters")
        return [self.gradient(i, gradient) for i, gradient in enumerate(listed)]

    def clear_gradients(self) -> None:
        """They are the program's."""

    def optimizer(self, given: Any, parameters: Optional[Sequence[Array]] = None) -> Optimizer:
        """Bound to all parameters, or to the given flat vectors."""
        if not isinstance(given, Optimizer):
            raise InvalidArgument(f"for numpy arrays, the optimizer is a col.strategies.SGD or Adam; got {given!r}")
        given.bind(self.flats if parameters is None else parameters)
        return given

    def state(self) -> list[Array]:
        return [array.copy() for array in self.arrays]

    def load(self, state: Any) -> None:
        shapes, own = [np.shape(array) for array in state], [array.shape for array in self.arrays]
        if shapes != own:
            raise InvalidArgument(f"the state is of another model: its parameters have shapes {shapes}, and here {own}")
        for array, value in zip(self.arrays, state):
            array[...] = value


def _describe(value: Any) -> str:
    return f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else repr(type(value).__name__)
