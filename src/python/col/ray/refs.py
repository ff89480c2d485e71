"""Collectives that a driver calls, on tensors that live on actors.

    col.ray.register()

    @ray.remote
    class Worker:
        @ray.method(tensor_transport="COL")
        def get_buffer(self):
            return self.buffer

    A, B = Worker.remote(), Worker.remote()
    col.ray.create_collective_group([A, B], world_size=2, ranks=[0, 1])
    col.ray.allreduce_refs([A.get_buffer.remote(), B.get_buffer.remote()])

One call stands for the calls of all ranks: each actor runs its own part, in place on the tensors that it holds. Data moves
between the actors, and never through the object store. The group is one that the driver has declared. Refs come in any
order: a ref stands for the rank whose actor holds its tensor. Every function blocks until all ranks have ended, and returns
None. col.ray.register() comes before the class, so that Ray knows the transport; any other transport of Ray's does as well.

What the driver can see is refused before any rank starts, and leaves the group as it was: a ref whose tensor no member
holds, two of one member, none of another, other shapes or dtypes than those of the others, a dead actor. Later errors are
those of the ranks; the one that is nearest to the cause is raised.
"""

from __future__ import annotations

from ..errors import InvalidArgument
from ..hints import Any, Optional, Sequence
from .refs_call import Operand, RefsCall
from .types import ReduceOp

__all__ = [
    "allgather_refs", "allreduce_refs", "alltoall_refs", "broadcast_refs", "gather_refs", "recv_ref", "reduce_refs",
    "reducescatter_refs", "scatter_refs", "send_ref",
]


def allreduce_refs(
    tensor_refs: Sequence[Any], group_name: str = "default", op: Any = ReduceOp.SUM, timeout: Optional[float] = None
) -> None:
    """Every tensor gets the reduction of all. A ref may hold several tensors, such as the gradients of a model: of the same
    shapes, in the same order, on all ranks. So it is for reduce_refs, broadcast_refs and send_ref, too."""
    _collective("allreduce", [Operand(tensor_refs)], group_name, timeout, op=op)


def reduce_refs(
    tensor_refs: Sequence[Any], dst_rank: int = 0, group_name: str = "default", op: Any = ReduceOp.SUM,
    timeout: Optional[float] = None,
) -> None:
    """The tensor on dst_rank gets the reduction of all."""
    _collective("reduce", [Operand(tensor_refs)], group_name, timeout, dst_rank=dst_rank, op=op)


def broadcast_refs(
    tensor_refs: Sequence[Any], src_rank: int = 0, group_name: str = "default", timeout: Optional[float] = None
) -> None:
    """Every tensor gets that of src_rank."""
    _collective("broadcast", [Operand(tensor_refs)], group_name, timeout, src_rank=src_rank)


def allgather_refs(
    tensor_list_refs: Sequence[Any], tensor_refs: Sequence[Any], group_name: str = "default",
    timeout: Optional[float] = None,
) -> None:
    """Element r of every list gets the tensor of rank r. A list is one ref: of a method that returns a list of tensors, one
    for each rank."""
    _collective("allgather", [Operand(tensor_list_refs, lists=True), Operand(tensor_refs)], group_name, timeout)


def reducescatter_refs(
    tensor_refs: Sequence[Any], tensor_list_refs: Sequence[Any], group_name: str = "default", op: Any = ReduceOp.SUM,
    timeout: Optional[float] = None,
) -> None:
    """The tensor of rank r gets the reduction of element r of all lists."""
    operands = [Operand(tensor_refs), Operand(tensor_list_refs, lists=True)]
    _collective("reducescatter", operands, group_name, timeout, op=op)


def gather_refs(
    tensor_refs: Sequence[Any], tensor_list_ref: Any, dst_rank: int = 0, group_name: str = "default",
    timeout: Optional[float] = None,
) -> None:
    """Element r of the list, which lives on dst_rank, gets the tensor of rank r."""
    operands = [Operand(tensor_refs), Operand([tensor_list_ref], lists=True, ranks=[dst_rank])]
    _collective("gather", operands, group_name, timeout, dst_rank=dst_rank)


def scatter_refs(
    tensor_refs: Sequence[Any], tensor_list_ref: Any, src_rank: int = 0, group_name: str = "default",
    timeout: Optional[float] = None,
) -> None:
    """The tensor of rank r gets element r of the list, which lives on src_rank."""
    operands = [Operand(tensor_refs), Operand([tensor_list_ref], lists=True, ranks=[src_rank])]
    _collective("scatter", operands, group_name, timeout, src_rank=src_rank)


def alltoall_refs(
    output_list_refs: Sequence[Any], input_list_refs: Sequence[Any], group_name: str = "default",
    timeout: Optional[float] = None,
) -> None:
    """Element s of the output list of rank r gets element r of the input list of rank s."""
    operands = [Operand(output_list_refs, lists=True), Operand(input_list_refs, lists=True)]
    _collective("alltoall", operands, group_name, timeout)


def send_ref(
    src_tensor_ref: Any, dst_tensor_ref: Any, group_name: str = "default", timeout: Optional[float] = None
) -> None:
    """The tensor of dst_tensor_ref gets that of src_tensor_ref, which lives on another member."""
    call = RefsCall("send_ref", group_name, timeout)
    src, dst = call.rank_of(src_tensor_ref), call.rank_of(dst_tensor_ref)
    if src == dst:
        raise InvalidArgument(f"send_ref: both tensors live on {call.who(src)}", src)
    part = {src: ("send", {"dst_rank": dst}), dst: ("recv", {"src_rank": src})}
    call.run([Operand([src_tensor_ref, dst_tensor_ref], ranks=[src, dst])], part)


def recv_ref(
    dst_tensor_ref: Any, src_tensor_ref: Any, group_name: str = "default", timeout: Optional[float] = None
) -> None:
    """As send_ref, with its first two arguments in the other order."""
    send_ref(src_tensor_ref, dst_tensor_ref, group_name, timeout)


def _collective(
    name: str, operands: Sequence[Operand], group_name: str, timeout: Optional[float], **options: Any
) -> None:
    call = RefsCall(f"{name}_refs", group_name, timeout)
    call.run(operands, {rank: (name, options) for rank in call.actor_of})
