"""Tensors of any shape from a stage to the next one: a header says what comes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._col import Group, Work
from ..errors import InvalidArgument

HEADER, ACTIVATION, GRADIENT = range(7311, 7314)  # tags
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8"]
MOST_AXES = 8


class Channel:
    """What this rank sends goes on while it computes; it is kept alive until it has arrived."""

    def __init__(self, group: Group, empty: Any) -> None:
        self._group, self._empty = group, empty
        self._sending: list[Work] = []

    def send(self, x: Any, destination: int) -> None:
        """An activation, with its header."""
        dtype = str(x.dtype).replace("torch.", "")
        if dtype not in DTYPES or x.ndim > MOST_AXES:
            raise InvalidArgument(
                f"a stage has returned {dtype} with {x.ndim} axes; between stages go {', '.join(DTYPES)} with up to {MOST_AXES}"
            )
        header = np.zeros(2 + MOST_AXES, np.int64)
        header[: 2 + x.ndim] = DTYPES.index(dtype), x.ndim, *x.shape
        self._sending.append(self._group.isend(header, destination, tag=HEADER))
        self._sending.append(self._group.isend(x, destination, tag=ACTIVATION))

    def receive(self, source: int) -> Any:
        header = np.empty(2 + MOST_AXES, np.int64)
        self._group.recv(header, source, tag=HEADER)
        dtype, axes = header[:2]
        x = self._empty(tuple(int(length) for length in header[2 : 2 + axes]), DTYPES[dtype])
        return self._group.recv(x, source, tag=ACTIVATION)

    def send_gradient(self, dx: Any, destination: int) -> None:
        """Of an activation that the other one has sent."""
        self._sending.append(self._group.isend(dx, destination, tag=GRADIENT))

    def receive_gradient(self, of_shape: Any, of_dtype: Any, source: int) -> Any:
        return self._group.recv(self._empty(of_shape, str(of_dtype).replace("torch.", "")), source, tag=GRADIENT)

    def drop_what_has_arrived(self) -> None:
        self._sending = [work for work in self._sending if not work.done()]

    def finish(self) -> None:
        for work in self._sending:
            work.wait()
        self._sending.clear()
