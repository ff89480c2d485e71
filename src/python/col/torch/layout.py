"""Torch's tensors, and lists of them, as what a collective takes: contiguous memory, one buffer for all ranks' blocks.

Each function that writes returns, beside the buffer, what is left to do after the call: a function that copies the buffer to
where the caller wants it, or None if it is there already.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import torch

from ..errors import InvalidArgument

Finish = Optional[Callable[[], None]]

# Others, such as float8, can be moved as bytes, and not reduced.
KNOWN = {
    getattr(torch, name)
    for name in (
        "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 bool complex64 complex128".split()
    )
    if hasattr(torch, name)
}


def check(tensors: Sequence[Any], what: str) -> Any:
    """Returns the device of all of them."""
    if len(tensors) == 0:
        raise InvalidArgument(f"{what}: it was given no tensors")
    device = tensors[0].device
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            raise InvalidArgument(
                f"{what}: a tensor with layout {tensor.layout}; only all_reduce takes sparse tensors: pass its to_dense()"
            )
        if tensor.device != device:
            raise InvalidArgument(
                f"{what}: its tensors are on {device} and on {tensor.device}; move them to one device with to()"
            )
    return device


def read(tensor: Any) -> Any:
    """What the call reads: the tensor itself, if its memory is contiguous."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def written(tensor: Any) -> tuple[Any, Finish]:
    """What the call reads and writes, and the copy back."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_contiguous():
        return tensor, None
    buffer = tensor.contiguous()
    return buffer, lambda: tensor.copy_(buffer)


def raw(tensor: Any) -> Any:
    """For calls that move elements without looking at them."""
    return tensor if tensor.dtype in KNOWN else tensor.view(torch.uint8)


def is_one_buffer(tensors: Sequence[Any]) -> bool:
    """Whether the tensors follow one another in memory, as slices of one buffer do."""
    first = tensors[0]
    if not all(tensor.is_contiguous() for tensor in tensors):
        return False
    place = first.data_ptr()
    storage = first.storage().data_ptr() if not hasattr(first, "untyped_storage") else first.untyped_storage().data_ptr()
    for tensor in tensors:
        own = tensor.storage().data_ptr() if not hasattr(tensor, "untyped_storage") else tensor.untyped_storage().data_ptr()
        if tensor.data_ptr() != place or own != storage:
            return False
        place += tensor.numel() * tensor.element_size()
    return True


def joined(tensors: Sequence[Any]) -> Any:
    """The tensors one after the other, flat: a view if they are so in memory, else a copy."""
    tensors = [tensor.detach() if tensor.requires_grad else tensor for tensor in tensors]
    if is_one_buffer(tensors):
        return tensors[0].as_strided((sum(tensor.numel() for tensor in tensors),), (1,))
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def to_fill(tensors: Sequence[Any]) -> tuple[Any, Finish]:
    """A flat buffer with room for all of them, and the copies from it."""
    tensors = [tensor.detach() if tensor.requires_grad else tensor for tensor in tensors]
    if is_one_buffer(tensors):
        return tensors[0].as_strided((sum(tensor.numel() for tensor in tensors),), (1,)), None
    buffer = torch.empty(sum(tensor.numel() for tensor in tensors), dtype=tensors[0].dtype, device=tensors[0].device)

    def copy() -> None:
        begin = 0
        for tensor in tensors:
            tensor.copy_(buffer[begin : begin + tensor.numel()].view_as(tensor))
            begin += tensor.numel()

    return buffer, copy


def counts(tensors: Sequence[Any]) -> list[int]:
    return [tensor.numel() for tensor in tensors]


def in_order(*finishes: Finish) -> Finish:
    left = [finish for finish in finishes if finish is not None]
    if len(left) < 2:
        return left[0] if left else None

    def all_of_them() -> None:
        for finish in left:
            finish()

    return all_of_them
