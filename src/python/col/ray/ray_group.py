"""A group in the shape that Ray gives it: get_group_handle() and GroupManager return it, and backend.py derives from it."""

from __future__ import annotations

from .._col import Group
from ..errors import InvalidArgument
from ..hints import Any, Optional, Sequence
from . import collective, groups


class RayGroup:
    """This process's place in a group, with the attributes and calls of Ray's BaseGroup, over col.

    Its calls take tensors in lists, one for each GPU of this rank, and the options of types.py, col's or Ray's own.
    `timeout_ms` of the options, a timedelta or a number of milliseconds, bounds a call; unset, the group's timeout does.
    They block as the functions of collective.py do, and have their errors; InvalidArgument for a tensor in the place of
    a list, and for a rank or an operator in the place of options.

    Attributes that Ray's BaseGroup lacks are those of the col.Group, which `group` is: `handle.iallreduce(x)`. Where both
    have one, it is Ray's: `handle.backend()` is a word for Ray, and `handle.group.backend` says what moves the data.
    Requires: this process is in the group, else NotInitialized. Thread safe.
    """

    name = "COL"

    def __init__(self, group_name: str) -> None:
        self._group_name = group_name

    @property
    def group(self) -> Group:
        """The col.Group, with all of col's calls on tensors."""
        return groups.get(self._group_name)

    @property
    def rank(self) -> int:
        """This process's rank in the group."""
        return self.group.rank

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self.group.size

    @property
    def group_name(self) -> str:
        """The name by which the functions of collective.py find the group."""
        return self._group_name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.group, name)

    def destroy_group(self) -> None:
        """Leaves the group; not collective. Nothing happens if this process has left it already."""
        groups.leave(self._group_name)

    @classmethod
    def backend(cls) -> str:
        """The name by which Ray knows such groups."""
        return cls.name

    @classmethod
    def check_backend_availability(cls) -> bool:
        """True: col can always serve a group, and says in joining why it cannot serve one as asked."""
        return True

    def allreduce(self, tensors: Sequence[Any], options: Any = None) -> None:
        """Every tensor gets the reduction over all ranks."""
        _check(options, "AllReduceOptions", "reduceOp", tensors)
        op, timeout = _value(options, "reduceOp", "sum"), _timeout(options)
        if len(tensors) == 1:
            return collective.allreduce(tensors[0], self._group_name, op, timeout)
        return collective.allreduce_multigpu(tensors, self._group_name, op, timeout)

    def barrier(self, options: Any = None) -> None:
        """Returns after every rank has called it."""
        _check(options, "BarrierOptions", "timeout_ms")
        collective.barrier(self._group_name, _timeout(options))

    def reduce(self, tensors: Sequence[Any], options: Any = None) -> None:
        """The tensor of options.root_rank gets the reduction."""
        _check(options, "ReduceOptions", "root_rank", tensors)
        root, op, timeout = _value(options, "root_rank", 0), _value(options, "reduceOp", "sum"), _timeout(options)
        if len(tensors) == 1:
            return collective.reduce(tensors[0], root, self._group_name, op, timeout)
        return collective.reduce_multigpu(
            tensors, root, _value(options, "root_tensor", 0), self._group_name, op, timeout
        )

    def broadcast(self, tensors: Sequence[Any], options: Any = None) -> None:
        """Every tensor gets that of options.root_rank."""
        _check(options, "BroadcastOptions", "root_rank", tensors)
        root, timeout = _value(options, "root_rank", 0), _timeout(options)
        if len(tensors) == 1:
            return collective.broadcast(tensors[0], root, self._group_name, timeout)
        return collective.broadcast_multigpu(tensors, root, _value(options, "root_tensor", 0), self._group_name, timeout)

    def allgather(self, tensor_lists: Sequence[Sequence[Any]], tensors: Sequence[Any], options: Any = None) -> None:
        """tensor_lists[i][r] gets the tensor of rank r."""
        _check(options, "AllGatherOptions", "timeout_ms", tensors, tensor_lists)
        if len(tensors) == 1:
            return collective.allgather(tensor_lists[0], tensors[0], self._group_name, _timeout(options))
        return collective.allgather_multigpu(tensor_lists, tensors, self._group_name, _timeout(options))

    def reducescatter(self, tensors: Sequence[Any], tensor_lists: Sequence[Sequence[Any]], options: Any = None) -> None:
        """tensors[i] gets the reduction of tensor_lists[i][rank] over all ranks."""
        _check(options, "ReduceScatterOptions", "reduceOp", tensors, tensor_lists)
        op, timeout = _value(options, "reduceOp", "sum"), _timeout(options)
        if len(tensors) == 1:
            return collective.reducescatter(tensors[0], tensor_lists[0], self._group_name, op, timeout)
        return collective.reducescatter_multigpu(tensors, tensor_lists, self._group_name, op, timeout)

    # send_multigpu() and send() come here with equal options but for the GPU and the count; on a CPU group, only the
    # count can differ from their defaults.
    def send(self, tensors: Sequence[Any], options: Any) -> None:
        """Sends the one tensor to options.dst_rank."""
        _check(options, "SendOptions", "dst_rank", tensors, message=True)
        gpu, count, timeout = _value(options, "dst_gpu_index", 0), _value(options, "n_elements", 0), _timeout(options)
        if self.group.device == "cpu":
            return collective.send(_first(tensors[0], count), options.dst_rank, self._group_name, timeout)
        return collective.send_multigpu(tensors[0], options.dst_rank, gpu, self._group_name, count, timeout)

    def recv(self, tensors: Sequence[Any], options: Any) -> None:
        """Receives into the one tensor what options.src_rank sends."""
        _check(options, "RecvOptions", "src_rank", tensors, message=True)
        gpu, count, timeout = _value(options, "src_gpu_index", 0), _value(options, "n_elements", 0), _timeout(options)
        if self.group.device == "cpu":
            return collective.recv(_first(tensors[0], count), options.src_rank, self._group_name, timeout)
        return collective.recv_multigpu(tensors[0], options.src_rank, gpu, self._group_name, count, timeout)


def _check(options: Any, kind: str, field: str, *lists: Any, message: bool = False) -> None:
    """Raises InvalidArgument for arguments that only a col.Group takes: with these, a call would do something else.

    kind: the class of the options, and `field` one that they have. message: they are needed, with this field.
    """
    for given in lists:
        if not isinstance(given, (list, tuple)):
            raise InvalidArgument(
                f"a call of a handle takes a list of tensors, one for each GPU of this rank, not one {type(given).__name__}: "
                "write [x] for x; the col.Group, which get_group() returns, takes the tensor"
            )
    counts = [len(given) for given in lists]
    if lists and (not counts[0] or len(set(counts)) > 1 or message and counts[0] > 1):
        raise InvalidArgument(
            f"a call of a handle takes a list with {'one tensor' if message else 'a tensor for each GPU of this rank'}"
            f"{', and as many lists' if len(lists) > 1 else ''}; got lists of {counts}"
        )
    if message or options is not None:
        if not hasattr(options, field) and (message or not hasattr(options, "timeout_ms")):
            raise InvalidArgument(
                f"a call of a handle takes its options as an object, not {options!r}: "
                f"write `options = types.{kind}()`, `options.{field} = …`"
            )


def _value(options: Any, name: str, otherwise: Any) -> Any:
    return getattr(options, name, otherwise)


def _timeout(options: Any) -> Optional[float]:
    """In seconds; None if the options leave it to the group."""
    given = getattr(options, "timeout_ms", None)
    if given is None:
        return None
    seconds = float(given.total_seconds() if hasattr(given, "total_seconds") else given / 1000)
    return None if seconds < 0 else seconds


def _first(tensor: Any, count: int) -> Any:
    return tensor.reshape(-1)[:count] if count else tensor
