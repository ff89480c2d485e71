"""Torch's tensors, and lists of them, as what a collective takes: contiguous memory, one buffer for all ranks' blocks.

Each function that writes returns, beside the buffer, what is left to do after the call: a function that copies the buffer to
where the caller wants it, or None if it is there already.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import torch

from ..errors import InvalidArgument

Finish = Optional[Callable[[], None]]

# Others can be moved as bytes, and not reduced.
KNOWN = {
    getattr(torch, name)
    for name in (
        "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float8_e4m3fn float8_e5m2 float16 bfloat16 float32 float64 bool"
        " complex64 complex128".split()
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


def _bare(tensor: Any) -> Any:
    """Without the part of it that is autograd's."""
    return tensor.detach() if tensor.requires_grad else tensor


def _is_plain(tensor: Any) -> bool:
    """Whether its memory holds its elements one after the other. Of x.conj() it holds those of x."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def read(tensor: Any) -> Any:
    """What the call reads: the tensor itself, if its memory is plain."""
    tensor = _bare(tensor)
    return tensor if _is_plain(tensor) else tensor.resolve_conj().resolve_neg().contiguous()


def written(tensor: Any) -> tuple[Any, Finish]:
    """What the call reads and writes, and the copy back."""
    tensor, buffer = _bare(tensor), read(tensor)
    return (tensor, None) if _is_plain(tensor) else (buffer, lambda: tensor.copy_(buffer))


def raw(tensor: Any) -> Any:
    """For calls that move elements without looking at them."""
    return tensor if tensor.dtype in KNOWN else tensor.view(torch.uint8)


def _storage(tensor: Any) -> int:
    return (tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()).data_ptr()


def _as_one(tensors: Sequence[Any]) -> Any:
    """The tensors as one, flat, if they follow one another in memory, as slices of one buffer do. Else None."""
    first = tensors[0]
    place, storage = first.data_ptr(), _storage(first)
    for tensor in tensors:
        if tensor.data_ptr() != place or not _is_plain(tensor) or _storage(tensor) != storage or tensor.dtype != first.dtype:
            return None
        place += tensor.numel() * tensor.element_size()
    return first.as_strided((sum(counts(tensors)),), (1,))


def joined(tensors: Sequence[Any]) -> Any:
    """The tensors one after the other, flat: a view if they are so in memory, else a copy."""
    tensors = [_bare(tensor) for tensor in tensors]
    one = _as_one(tensors)
    return one if one is not None else torch.cat([read(tensor).view(-1) for tensor in tensors])


def to_fill(tensors: Sequence[Any]) -> tuple[Any, Finish]:
    """A flat buffer with room for all of them, and the copies from it."""
    tensors = [_bare(tensor) for tensor in tensors]
    one = _as_one(tensors)
    if one is not None:
        return one, None
    buffer = torch.empty(sum(counts(tensors)), dtype=tensors[0].dtype, device=tensors[0].device)

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
