"""The calls of ray.util.collective, with their names and their order of arguments, and those that Ray does not have.

They find the group by its name, and join it first if the driver has declared it. Every call blocks until this rank's part is
done, for `timeout` seconds at most (None: the group's), and ends with one of col's errors, which names the ranks that it is
about. Those whose names begin with an i return a col.Work at once.

Tensors are numpy arrays, torch tensors, or cupy arrays; they are written in place. Arrays from Ray's object store are inputs: all
workers of a host have one memory for them, so a call that would write there raises InvalidArgument. Thread safe; all ranks make the same calls in the same order.

This is ray.util.collective.collective, too: GroupManager and what else a program takes from there.
"""

from __future__ import annotations

from .. import _col
from .._col import Group, Work
from ..hints import TYPE_CHECKING, Any, Optional, Sequence
from . import cluster, declare, groups
from .backend_registry import register_collective_backend as register_collective_backend
from .declare import create_collective_group as create_collective_group
from .types import ReduceOp, op_of

if TYPE_CHECKING:
    from .ray_group import RayGroup


# ---- Groups


def gloo_available() -> bool:
    """Returns true if groups over hosts can be made here. Looks at this process alone; thread safe."""
    return not _col.gloo_unavailable_reason()


def nccl_available() -> bool:
    """Returns true if NCCL and a GPU can be used here. Looks at this process alone; thread safe."""
    return not _col.nccl_unavailable_reason()


def is_backend_available(backend: Any) -> bool:
    """Returns true if the backend can be used here; false for an unknown one. Looks at this process alone; thread safe."""
    name = str(getattr(backend, "value", backend)).lower()
    return {"nccl": nccl_available, "gloo": gloo_available}.get(name, lambda: name in ("col", "auto", "shm"))()


def init_collective_group(
    world_size: int, rank: int, backend: Any = "auto", group_name: str = "default", gloo_timeout: Optional[int] = None, *,
    timeout: Optional[float] = None,
) -> Group:
    """Joins a group. Blocks until all ranks have, for `timeout` seconds at most (None: 5 minutes); returns the group.

    types.Backend says what the backends are. gloo_timeout: the timeout in milliseconds, Ray's name. Errors: InvalidArgument,
    AlreadyInitialized (this process is in a group of that name), Mismatch (two processes are one rank, or ranks disagree on
    the world size), Timeout that names the ranks that did not come.
    """
    return groups.join(world_size, rank, backend, group_name, declare.seconds_of(gloo_timeout, timeout))


def destroy_collective_group(group_name: str = "default", timeout: float = 30.0) -> bool:
    """Leaves the group; not collective. In the driver that has declared it, all its actors leave.

    Returns false if there is no such group. The driver waits for its actors, for `timeout` seconds at most.
    """
    if not cluster.meets_through_ray() or groups.find(group_name) is not None or not cluster.is_driver():
        return groups.leave(group_name)
    actors = declare.undeclare(group_name)
    if actors is None:
        return False
    cluster.run_on(actors, groups.leave, group_name, timeout=timeout)
    return True


destroy_group = destroy_collective_group  # its name in the document "Collective in Ray"


def is_group_initialized(group_name: str = "default") -> bool:
    """Returns true if this process has joined the group."""
    return groups.find(group_name) is not None


def get_rank(group_name: str = "default") -> int:
    """This process's rank in the group; -1 if it has not joined it."""
    group = groups.find(group_name)
    return -1 if group is None else group.rank


def get_collective_group_size(group_name: str = "default") -> int:
    """The number of ranks; -1 if this process has not joined the group."""
    group = groups.find(group_name)
    return -1 if group is None else group.size


def get_group(group_name: str = "default") -> Group:
    """The col.Group, with all of col's calls. Joins it first if the driver has declared it."""
    return groups.get(group_name)


def get_group_handle(group_name: str = "default") -> RayGroup:
    """The group in Ray's shape: rank, world_size, calls on lists of tensors. Joins it first if the driver has declared it.

    Blocks then until all ranks have joined, for the declared timeout at most. Errors: NotInitialized, and those of joining.
    Thread safe.
    """
    groups.get(group_name)
    from .ray_group import RayGroup

    return RayGroup(group_name)


def create_subgroup(ranks: Sequence[int], name: str, group_name: str = "default") -> Optional[Group]:
    """The listed ranks of a group form another one, by the name `name`; None on the others.

    Collective over all ranks of `group_name`. The order of the list gives the new ranks.
    """
    return groups.add_part(group_name, name, ranks)


class GroupManager:
    """The groups of this process, by the methods of Ray's manager. Every manager sees all of them. Thread safe."""

    def create_collective_group(
        self, backend: Any, world_size: int, rank: int, group_name: str, gloo_timeout: Optional[int] = None
    ) -> RayGroup:
        """init_collective_group(), with its waiting and its errors; returns the group in Ray's shape."""
        init_collective_group(world_size, rank, backend, group_name, gloo_timeout)
        return get_group_handle(group_name)

    def is_group_exist(self, group_name: str) -> bool:
        """Returns true if this process has joined the group."""
        return is_group_initialized(group_name)

    def get_group_by_name(self, group_name: str) -> Optional[RayGroup]:
        """The group in Ray's shape; None if this process has not joined it. Never joins one."""
        return get_group_handle(group_name) if is_group_initialized(group_name) else None

    def destroy_collective_group(self, group_name: str) -> None:
        """Leaves the group; not collective. Nothing happens if this process is not in it."""
        groups.leave(group_name)


def get_address_and_port() -> tuple[str, int]:
    """This node's address in the Ray cluster, and a TCP port that was free there a moment ago. For a program's own use.

    Errors: Unavailable (no Ray), NotInitialized (not connected to it).
    """
    import socket

    address = cluster.node_address()
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as free:
        free.bind(("", 0))
        return address, int(free.getsockname()[1])


# ---- Collectives


def allreduce(tensor: Any, group_name: str = "default", op: Any = ReduceOp.SUM, timeout: Optional[float] = None) -> None:
    """Every rank's tensor gets the reduction over all ranks."""
    groups.get(group_name).allreduce(tensor, op=op_of(op), timeout=timeout)


def reduce(
    tensor: Any, dst_rank: int = 0, group_name: str = "default", op: Any = ReduceOp.SUM, timeout: Optional[float] = None
) -> None:
    """The tensor of dst_rank gets the reduction; the others stay as they are."""
    groups.get(group_name).reduce(tensor, op=op_of(op), root=dst_rank, timeout=timeout)


def broadcast(tensor: Any, src_rank: int = 0, group_name: str = "default", timeout: Optional[float] = None) -> None:
    """Every rank's tensor gets that of src_rank."""
    groups.get(group_name).broadcast(tensor, root=src_rank, timeout=timeout)


def allgather(
    tensor_list: Sequence[Any], tensor: Any, group_name: str = "default", timeout: Optional[float] = None
) -> None:
    """tensor_list[r] gets the tensor of rank r."""
    _col.list_allgather(tensor_list, tensor, group_name, groups.context_of(group_name), timeout)


def reducescatter(
    tensor: Any, tensor_list: Sequence[Any], group_name: str = "default", op: Any = ReduceOp.SUM,
    timeout: Optional[float] = None,
) -> None:
    """The tensor gets the reduction of tensor_list[rank] over all ranks."""
    _col.list_reducescatter(tensor, tensor_list, group_name, groups.context_of(group_name), op_of(op), timeout)


def gather(
    tensor: Any, tensor_list: Optional[Sequence[Any]] = None, dst_rank: int = 0, group_name: str = "default",
    timeout: Optional[float] = None,
) -> None:
    """On dst_rank, tensor_list[r] gets the tensor of rank r. Other ranks need no list. Not Ray's."""
    _col.list_gather(tensor_list, tensor, dst_rank, group_name, groups.context_of(group_name), timeout)


def scatter(
    tensor: Any, tensor_list: Optional[Sequence[Any]] = None, src_rank: int = 0, group_name: str = "default",
    timeout: Optional[float] = None,
) -> None:
    """The tensor gets tensor_list[rank] of src_rank. Other ranks need no list. Not Ray's."""
    _col.list_scatter(tensor, tensor_list, src_rank, group_name, groups.context_of(group_name), timeout)


def alltoall(
    output_list: Sequence[Any], input_list: Sequence[Any], group_name: str = "default", timeout: Optional[float] = None
) -> None:
    """output_list[r] gets input_list[rank] of rank r. Not Ray's."""
    _col.list_alltoall(output_list, input_list, group_name, groups.context_of(group_name), timeout)


def barrier(group_name: str = "default", timeout: Optional[float] = None) -> None:
    """Returns after every rank has called it. A timeout names the ranks that have not."""
    groups.get(group_name).barrier(timeout=timeout)


def send(tensor: Any, dst_rank: int, group_name: str = "default", timeout: Optional[float] = None) -> None:
    """Sends the tensor to a rank, which receives it into one of the same count and dtype."""
    groups.get(group_name).send(tensor, dst_rank, timeout=timeout)


def recv(tensor: Any, src_rank: int, group_name: str = "default", timeout: Optional[float] = None) -> None:
    """Receives into the tensor what src_rank sends."""
    groups.get(group_name).recv(tensor, src_rank, timeout=timeout)


# ---- Asynchronous. Not Ray's. The other calls have theirs as methods of get_group().


def iallreduce(tensor: Any, group_name: str = "default", op: Any = ReduceOp.SUM, timeout: Optional[float] = None) -> Work:
    return groups.get(group_name).iallreduce(tensor, op=op_of(op), timeout=timeout)


def ireduce(
    tensor: Any, dst_rank: int = 0, group_name: str = "default", op: Any = ReduceOp.SUM, timeout: Optional[float] = None
) -> Work:
    return groups.get(group_name).ireduce(tensor, op=op_of(op), root=dst_rank, timeout=timeout)


def ibroadcast(tensor: Any, src_rank: int = 0, group_name: str = "default", timeout: Optional[float] = None) -> Work:
    return groups.get(group_name).ibroadcast(tensor, root=src_rank, timeout=timeout)


def ibarrier(group_name: str = "default", timeout: Optional[float] = None) -> Work:
    return groups.get(group_name).ibarrier(timeout=timeout)


def isend(tensor: Any, dst_rank: int, group_name: str = "default", timeout: Optional[float] = None) -> Work:
    return groups.get(group_name).isend(tensor, dst_rank, timeout=timeout)


def irecv(tensor: Any, src_rank: int, group_name: str = "default", timeout: Optional[float] = None) -> Work:
    return groups.get(group_name).irecv(tensor, src_rank, timeout=timeout)


# ---- Several GPUs a rank: <col/multi_gpu.hpp> says more. Each list has a tensor on each GPU that this rank drives.


def allreduce_multigpu(
    tensor_list: Sequence[Any], group_name: str = "default", op: Any = ReduceOp.SUM, timeout: Optional[float] = None
) -> None:
    """Every tensor gets the reduction over all tensors of all ranks."""
    groups.get(group_name).allreduce_multigpu(tensor_list, op=op_of(op), timeout=timeout)


def reduce_multigpu(
    tensor_list: Sequence[Any], dst_rank: int = 0, dst_tensor: int = 0, group_name: str = "default",
    op: Any = ReduceOp.SUM, timeout: Optional[float] = None,
) -> None:
    """Tensor dst_tensor of dst_rank gets the reduction."""
    groups.get(group_name).reduce_multigpu(tensor_list, op=op_of(op), root=dst_rank, root_tensor=dst_tensor, timeout=timeout)


def broadcast_multigpu(
    tensor_list: Sequence[Any], src_rank: int = 0, src_tensor: int = 0, group_name: str = "default",
    timeout: Optional[float] = None,
) -> None:
    """Every tensor gets tensor src_tensor of src_rank."""
    groups.get(group_name).broadcast_multigpu(tensor_list, root=src_rank, root_tensor=src_tensor, timeout=timeout)


def allgather_multigpu(
    output_tensor_lists: Sequence[Sequence[Any]], input_tensor_list: Sequence[Any], group_name: str = "default",
    timeout: Optional[float] = None,
) -> None:
    """output_tensor_lists[i] gets all tensors of all ranks, on the GPU of input_tensor_list[i]."""
    groups.get(group_name).allgather_multigpu(output_tensor_lists, input_tensor_list, timeout=timeout)


def reducescatter_multigpu(
    output_tensor_list: Sequence[Any], input_tensor_lists: Sequence[Sequence[Any]], group_name: str = "default",
    op: Any = ReduceOp.SUM, timeout: Optional[float] = None,
) -> None:
    """output_tensor_list[i] gets the reduction of entry rank * k + i of all lists; k: the GPUs of a rank."""
    groups.get(group_name).reducescatter_multigpu(output_tensor_list, input_tensor_lists, op=op_of(op), timeout=timeout)


def send_multigpu(
    tensor: Any, dst_rank: int, dst_gpu_index: int, group_name: str = "default", n_elements: int = 0,
    timeout: Optional[float] = None,
) -> None:
    """Sends to a GPU of another rank. n_elements: how many, from the first one; 0: all."""
    groups.get(group_name).send_multigpu(tensor, dst_rank, dst_gpu_index, n_elements=n_elements, timeout=timeout)


def recv_multigpu(
    tensor: Any, src_rank: int, src_gpu_index: int, group_name: str = "default", n_elements: int = 0,
    timeout: Optional[float] = None,
) -> None:
    """Receives from a GPU of another rank. n_elements: how many, from the first one; 0: all."""
    groups.get(group_name).recv_multigpu(tensor, src_rank, src_gpu_index, n_elements=n_elements, timeout=timeout)


def synchronize(gpu_id: int, timeout: Optional[float] = None) -> None:
    """Waits until the GPU has ended all work of this process."""
    _col.synchronize(gpu_id, timeout)


def __getattr__(name: str) -> Any:
    """The classes of Ray's backends, which are col's. Errors: Unavailable (no Ray), AttributeError."""
    if name in ("NCCLGroup", "TorchGLOOGroup"):
        from .backend_registry import BackendRegistry

        return BackendRegistry().get("NCCL" if name == "NCCLGroup" else "GLOO")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
