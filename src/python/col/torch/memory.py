"""Tensors in memory that the ranks of a host share, for collectives that FSDP and others make again and again."""

from __future__ import annotations

from typing import Any
from weakref import finalize

import numpy as np
import torch

from .. import _col


class Memory:
    """Blocks of col.alloc(), kept when their tensor dies: the next of that size takes one.

    To allocate is collective, and ranks may free at different times. So a block is taken again only where every rank has one.
    """

    def __init__(self, group: _col.Group) -> None:
        self._group = group
        self._free: dict[int, list[Any]] = {}  # by bytes

    def tensor(self, elements: int, dtype: Any) -> Any:
        """Flat, with any values. Collective, and blocks."""
        size = max(elements, 1) * torch.empty(0, dtype=dtype).element_size()
        free = self._free.setdefault(size, [])
        block: Any = free.pop() if free else None
        if not self._everybody(block is not None):
            if block is not None:
                free.append(block)
            block = _col.alloc(size, "uint8", self._group)
        view = block[:]
        finalize(view, free.append, block).atexit = False
        return torch.from_numpy(view).view(dtype)[:elements]

    def _everybody(self, has_one: bool) -> bool:
        answer = np.array([int(has_one)])  # torch would make it on the program's default device
        self._group.allreduce(answer, op="min")
        return bool(answer[0])
