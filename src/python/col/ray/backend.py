"""The class that stands for col inside Ray's own ray.util.collective. register.py puts it there."""

from __future__ import annotations

from typing import Any

from ray.util.collective.collective_group.base_collective_group import BaseGroup

from . import calls, groups


class ColGroup(BaseGroup):
    """A group of Ray's manager. Ray passes every tensor in a list: one for each GPU of this rank."""

    name = "COL"

    def __init__(self, world_size: int, rank: int, group_name: str, timeout_ms: Any = None) -> None:
        super().__init__(world_size, rank, group_name)
        groups.join(world_size, rank, self.name, group_name, None if timeout_ms is None else timeout_ms / 1000)

    def destroy_group(self) -> None:
        groups.leave(self.group_name)

    @classmethod
    def backend(cls) -> str:
        return cls.name

    @classmethod
    def check_backend_availability(cls) -> bool:
        return True

    def allreduce(self, tensors: Any, options: Any = None) -> None:
        op = _value(options, "reduceOp", "sum")
        if len(tensors) == 1:
            return calls.allreduce(tensors[0], self.group_name, op)
        return calls.allreduce_multigpu(tensors, self.group_name, op)

    def barrier(self, options: Any = None) -> None:
        calls.barrier(self.group_name)

    def reduce(self, tensors: Any, options: Any = None) -> None:
        root, op = _value(options, "root_rank", 0), _value(options, "reduceOp", "sum")
        if len(tensors) == 1:
            return calls.reduce(tensors[0], root, self.group_name, op)
        return calls.reduce_multigpu(tensors, root, _value(options, "root_tensor", 0), self.group_name, op)

    def broadcast(self, tensors: Any, options: Any = None) -> None:
        root = _value(options, "root_rank", 0)
        if len(tensors) == 1:
            return calls.broadcast(tensors[0], root, self.group_name)
        return calls.broadcast_multigpu(tensors, root, _value(options, "root_tensor", 0), self.group_name)

    def allgather(self, tensor_lists: Any, tensors: Any, options: Any = None) -> None:
        if len(tensors) == 1:
            return calls.allgather(tensor_lists[0], tensors[0], self.group_name)
        return calls.allgather_multigpu(tensor_lists, tensors, self.group_name)

    def reducescatter(self, tensors: Any, tensor_lists: Any, options: Any = None) -> None:
        op = _value(options, "reduceOp", "sum")
        if len(tensors) == 1:
            return calls.reducescatter(tensors[0], tensor_lists[0], self.group_name, op)
        return calls.reducescatter_multigpu(tensors, tensor_lists, self.group_name, op)

    # send_multigpu() and send() come here with equal options but for the GPU and the count; on a CPU group, only the
    # count can differ from their defaults.
    def send(self, tensors: Any, options: Any) -> None:
        gpu, count = _value(options, "dst_gpu_index", 0), _value(options, "n_elements", 0)
        if groups.get(self.group_name).device == "cpu":
            return calls.send(_first(tensors[0], count), options.dst_rank, self.group_name)
        return calls.send_multigpu(tensors[0], options.dst_rank, gpu, self.group_name, count)

    def recv(self, tensors: Any, options: Any) -> None:
        gpu, count = _value(options, "src_gpu_index", 0), _value(options, "n_elements", 0)
        if groups.get(self.group_name).device == "cpu":
            return calls.recv(_first(tensors[0], count), options.src_rank, self.group_name)
        return calls.recv_multigpu(tensors[0], options.src_rank, gpu, self.group_name, count)


# In the place of Ray's own, by their names.
CLASSES = {name: type(f"{name.title()}Group", (ColGroup,), {"name": name}) for name in ("COL", "GLOO", "NCCL")}


def _value(options: Any, name: str, otherwise: Any) -> Any:
    return getattr(options, name, otherwise)


def _first(tensor: Any, count: int) -> Any:
    return tensor.reshape(-1)[:count] if count else tensor
