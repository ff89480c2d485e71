"""allreduce of sparse tensors, as torch's Gloo has it: the sum, whose indices are those of all ranks."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import torch

from .. import _col
from ..errors import InvalidArgument


def add_sparse(group: _col.Group, tensor: Any, op: Any) -> Any:
    """The ranks' indices and values are gathered, and added on every rank. Blocks; in place, and returns the tensor."""
    if op != "sum":
        raise InvalidArgument(f"all_reduce of a sparse tensor adds: op must be SUM, not {op}; or pass its to_dense()")
    own = tensor.coalesce()
    counts = np.empty(group.size, np.int64)
    group.allgather(np.array([own._nnz()]), counts)
    # A row for each element, so that the ranks' blocks follow one another.
    places = _gathered(group, own.indices().t().contiguous(), counts)
    values = _gathered(group, own.values().contiguous(), counts)
    return tensor.copy_(torch.sparse_coo_tensor(places.t(), values, own.shape).coalesce())


def _gathered(group: _col.Group, rows: Any, counts: Any) -> Any:
    width = prod(rows.shape[1:])
    out = rows.new_empty((int(counts.sum()), *rows.shape[1:]))
    group.allgatherv(rows, [int(count) * width for count in counts], out)
    return out
