"""allreduce of sparse tensors, as torch's Gloo has it: the sum, whose indices are those of all ranks."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import InvalidArgument
from .work import TorchWork


class SparseWork(TorchWork):
    """The ranks' indices and values are gathered, and added on every rank. It is all done at once: wait() has nothing to do."""

    def __init__(self, group: Any, tensor: Any, op: Any) -> None:
        super().__init__()
        if op != "sum":
            raise InvalidArgument(f"all_reduce of a sparse tensor adds: op must be SUM, not {op}")
        own = tensor.coalesce()
        counts = torch.empty(group.size(), dtype=torch.int64)
        group.group.allgather(torch.tensor([own._nnz()]), counts)
        # A column for each element, as rows: blocks of ranks then follow one another.
        places = own.indices().t().contiguous()
        values = own.values().contiguous()
        places = _gathered(group.group, places, counts)
        values = _gathered(group.group, values, counts)
        total = torch.sparse_coo_tensor(places.t(), values, own.shape).coalesce()
        tensor.copy_(total)
        self._outputs = [tensor]

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    is_success = is_completed

    def result(self) -> Any:
        return self._outputs

    def get_future(self) -> Any:
        future: Any = torch.futures.Future()
        future.set_result(self._outputs)
        return future


def _gathered(group: Any, rows: Any, counts: Any) -> Any:
    width = rows[0].numel() if len(rows) else int(torch.tensor(rows.shape[1:]).prod())
    out = torch.empty((int(counts.sum()), *rows.shape[1:]), dtype=rows.dtype)
    group.allgatherv(rows, [int(count) * width for count in counts], out)
    return out
