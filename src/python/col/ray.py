"""The functions of ray.util.collective, with their names and their order of arguments.

    import col.ray as collective

    collective.init_collective_group(world_size, rank, backend="gloo", group_name="default")
    collective.allreduce(tensor, "default")

They find the group by its name. Tensors are written in place; read-only arrays, as Ray's object store hands them out, are
written as well, as Ray does. gather, scatter and alltoall are not Ray's.
"""

from __future__ import annotations

from . import _col
from ._col import destroy_collective_group, get_collective_group_size, get_group, get_rank, is_group_initialized

TYPE_CHECKING = False  # type checkers take it for true; importing typing takes longer than all of col
if TYPE_CHECKING:
    from typing import Any, Optional, Sequence

__all__ = [
    "ReduceOp", "allgather", "allreduce", "alltoall", "barrier", "broadcast", "destroy_collective_group", "gather",
    "get_collective_group_size", "get_group", "get_rank", "gloo_available", "init_collective_group",
    "is_group_initialized", "nccl_available", "recv", "reduce", "reducescatter", "scatter", "send",
]


class ReduceOp:
    """The names of operators, as ray.util.collective.types.ReduceOp has them."""

    SUM = "sum"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    AVERAGE = "avg"


def _op(op: Any) -> Any:
    """Ray's own operators are members of an enum."""
    name = getattr(op, "name", None)
    if isinstance(op, str) or not isinstance(name, str) or isinstance(op, _col.Op):
        return op
    return getattr(ReduceOp, name, name.lower())


def _backend(backend: Any) -> str:
    name = str(getattr(backend, "value", backend)).lower()
    return "gloo" if name == "torch_gloo" else name


def gloo_available() -> bool:
    return not _col.gloo_unavailable_reason()


def nccl_available() -> bool:
    return not _col.nccl_unavailable_reason()


def init_collective_group(
    world_size: int, rank: int, backend: Any = "auto", group_name: str = "default", timeout: Optional[float] = None
) -> _col.Group:
    """Joins a group. Blocks until all ranks have."""
    return _col.init_collective_group(world_size, rank, _backend(backend), group_name, timeout)


def allreduce(tensor: Any, group_name: str = "default", op: Any = ReduceOp.SUM, timeout: Optional[float] = None) -> None:
    get_group(group_name).allreduce(tensor, op=_op(op), timeout=timeout, allow_readonly=True)


def reduce(
    tensor: Any, dst_rank: int = 0, group_name: str = "default", op: Any = ReduceOp.SUM, timeout: Optional[float] = None
) -> None:
    """The result is in the tensor of dst_rank."""
    get_group(group_name).reduce(tensor, op=_op(op), root=dst_rank, timeout=timeout, allow_readonly=True)


def broadcast(tensor: Any, src_rank: int = 0, group_name: str = "default", timeout: Optional[float] = None) -> None:
    get_group(group_name).broadcast(tensor, root=src_rank, timeout=timeout, allow_readonly=True)


def allgather(
    tensor_list: Sequence[Any], tensor: Any, group_name: str = "default", timeout: Optional[float] = None
) -> None:
    """tensor_list[r] gets the tensor of rank r."""
    _col.list_allgather(tensor_list, tensor, group_name, timeout)


def reducescatter(
    tensor: Any, tensor_list: Sequence[Any], group_name: str = "default", op: Any = ReduceOp.SUM,
    timeout: Optional[float] = None,
) -> None:
    """The tensor gets the reduction of tensor_list[rank] over all ranks."""
    _col.list_reducescatter(tensor, tensor_list, group_name, _op(op), timeout)


def gather(
    tensor: Any, tensor_list: Optional[Sequence[Any]] = None, dst_rank: int = 0, group_name: str = "default",
    timeout: Optional[float] = None,
) -> None:
    """On dst_rank, tensor_list[r] gets the tensor of rank r. Other ranks need no list."""
    _col.list_gather(tensor_list, tensor, dst_rank, group_name, timeout)


def scatter(
    tensor: Any, tensor_list: Optional[Sequence[Any]] = None, src_rank: int = 0, group_name: str = "default",
    timeout: Optional[float] = None,
) -> None:
    """The tensor gets tensor_list[rank] of src_rank. Other ranks need no list."""
    _col.list_scatter(tensor, tensor_list, src_rank, group_name, timeout)


def alltoall(
    output_list: Sequence[Any], input_list: Sequence[Any], group_name: str = "default", timeout: Optional[float] = None
) -> None:
    """output_list[r] gets input_list[rank] of rank r."""
    _col.list_alltoall(output_list, input_list, group_name, timeout)


def barrier(group_name: str = "default", timeout: Optional[float] = None) -> None:
    get_group(group_name).barrier(timeout=timeout)


def send(tensor: Any, dst_rank: int, group_name: str = "default", timeout: Optional[float] = None) -> None:
    get_group(group_name).send(tensor, dst_rank, timeout=timeout)


def recv(tensor: Any, src_rank: int, group_name: str = "default", timeout: Optional[float] = None) -> None:
    get_group(group_name).recv(tensor, src_rank, timeout=timeout, allow_readonly=True)
