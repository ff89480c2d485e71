"""What the layers of a model in vLLM call."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from ..torch import layout
from ..torch.ops import ops_name
from ..torch.process_group import needed

_Theirs: Any = importlib.import_module("vllm.distributed.device_communicators.cpu_communicator").CpuCommunicator


class Communicator(_Theirs):  # type: ignore[misc]
    """vLLM's communicator of a group of ranks on CPUs, over col: for any size and type, on one host or several.

    What is not here goes through torch.distributed, whose backend is col, too.
    """

    def __init__(
        self, cpu_group: Any, device: Any = None, device_group: Any = None, unique_name: str = "", *args: Any, **more: Any
    ) -> None:
        self._own = needed(device_group, "col.vllm")
        self._name = ops_name(self._own)
        super().__init__(cpu_group, device, device_group, unique_name, *args, **more)
        self.supports_tensor_dict = True

    def _all_group_ranks_share_shm_group_name(self) -> bool:
        """Keeps vLLM from making the shared memory of its own kernels."""
        return False

    def all_reduce(self, input_: Any) -> Any:
        """Adds up the ranks' tensors, in place."""
        torch.ops.col.all_reduce_(input_, self._name)
        return input_

    def all_gather(self, input_: Any, dim: int = -1) -> Any:
        """The ranks' tensors, joined along an axis."""
        joined = torch.ops.col.all_gather(input_, self._name)
        return joined if dim in (0, -input_.dim()) else torch.cat(joined.chunk(self.world_size), dim)

    def reduce_scatter(self, input_: Any, dim: int = -1) -> Any:
        """This rank's part, along an axis, of the sum."""
        own = torch.ops.col.reduce_scatter(input_.movedim(dim, 0), self._name)
        return own.movedim(0, dim).contiguous()

    def send_tensor_dict(self, tensor_dict: dict[str, Any], dst: int) -> None:
        """To rank `dst` of the group; it returns when the tensors may be written again."""
        tensors = {key: value for key, value in tensor_dict.items() if isinstance(value, torch.Tensor)}
        others = {key: value for key, value in tensor_dict.items() if key not in tensors}
        kinds = [(key, tensor.shape, tensor.dtype) for key, tensor in tensors.items()]
        self._own.send_object((list(tensor_dict), kinds, others), dst)
        for tensor in tensors.values():
            self._own.send(layout.raw(layout.read(tensor)), dst)

    def recv_tensor_dict(self, src: int) -> dict[str, Any]:
        """What rank `src` of the group sends."""
        keys, kinds, found = self._own.recv_object(src)
        for key, shape, dtype in kinds:
            found[key] = torch.empty(shape, dtype=dtype)
            self._own.recv(layout.raw(found[key]), src)
        return {key: found[key] for key in keys}
