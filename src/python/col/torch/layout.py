"""Torch's tensors, and lists of them, as what a collective takes: contiguous memory, one buffer for all ranks' blocks.

Each function that writes returns, beside the buffer, what is left to do after the call: a function that copies the buffer to
where the caller wants it, or None if it is there already.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional, Sequence

import numpy as np
import torch

from .. import _col
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


def is_plain(tensor: Any) -> bool:
    """Whether its memory holds its elements one after the other. Of x.conj() it holds those of x."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def read(tensor: Any) -> Any:
    """What the call reads: the tensor itself, if its memory is plain."""
    tensor = _bare(tensor)
    return tensor if is_plain(tensor) else tensor.resolve_conj().resolve_neg().contiguous()


def _check_target(tensor: Any) -> None:
    """Of what torch writes: its memory is no part of the call, which would refuse it."""
    if tensor.device.type == "cpu":
        _col.check_writable(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def written(tensor: Any) -> tuple[Any, Finish]:
    """What the call reads and writes, and the copy back."""
    tensor = _bare(tensor)
    if is_plain(tensor):
        return tensor, None
    _check_target(tensor)
    _check_elements(tensor)
    buffer = read(tensor)
    return buffer, lambda: _copy(tensor, buffer)


def _copy(target: Any, source: Any) -> None:
    """In whatever thread the operation is seen to end: torch lets tensors of inference mode be written only inside of it."""
    with torch.inference_mode() if target.is_inference() else torch.no_grad():
        target.copy_(source)


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
        if tensor.data_ptr() != place or not is_plain(tensor) or _storage(tensor) != storage or tensor.dtype != first.dtype:
            return None
        place += tensor.numel() * tensor.element_size()
    return first.as_strided((sum(counts(tensors)),), (1,))


def joined(tensors: Sequence[Any]) -> Any:
    """The tensors one after the other, flat: a view if they are so in memory, else a copy."""
    tensors = [_bare(tensor) for tensor in tensors]
    one = _as_one(tensors)
    return one if one is not None else torch.cat([read(tensor).view(-1) for tensor in tensors])


def to_fill(tensors: Sequence[Any], what: str) -> tuple[Any, Finish]:
    """A flat buffer with room for all of them, and the copies from it."""
    tensors = [_bare(tensor) for tensor in tensors]
    one = _as_one(tensors)
    if one is not None:
        return one, None
    for tensor in tensors:
        _check_target(tensor)
    check_apart(tensors, what)
    buffer = torch.empty(sum(counts(tensors)), dtype=tensors[0].dtype, device=tensors[0].device)

    def copy() -> None:
        begin = 0
        for tensor in tensors:
            _copy(tensor, buffer[begin : begin + tensor.numel()].view_as(tensor))
            begin += tensor.numel()

    return buffer, copy


def check_nan(calls: Sequence[tuple[str, dict[str, Any]]], rank: int, arguments: dict[str, Any]) -> None:
    """Refuses to send a NaN, for TORCH_DIST_NAN_CHECK=1."""
    for call, own in calls:
        x = own.get("x")
        if x is None or not (x.is_floating_point() or x.is_complex()) or not bool(x.isnan().any()):
            continue
        if call != "broadcast" or arguments.get("root") == rank:
            place = int(x.isnan().reshape(-1).nonzero()[0])
            raise InvalidArgument(f"{call}: element {place} of what rank {rank} gives is NaN, which TORCH_DIST_NAN_CHECK=1 refuses")


def check_apart(outputs: Sequence[Any], what: str) -> None:
    """Refuses tensors to fill that share memory."""
    spans = sorted([(tensor.data_ptr(), tensor.numel() * tensor.element_size()) for tensor in outputs if tensor.is_contiguous()])
    if len(spans) == len(outputs) and all(begin + size <= after for (begin, size), (after, _) in zip(spans, spans[1:])):
        return
    for tensor in outputs:
        _check_elements(tensor)
    for first, second in _pairs([(tensor, True, place) for place, tensor in enumerate(outputs)]):
        raise InvalidArgument(
            f"{what}: tensors {first} and {second} of the list share memory; give each rank's data a place of its own"
        )


def check_calls(outputs: Sequence[Sequence[Any]], inputs: Sequence[Sequence[Any]], what: str) -> None:
    """Refuses calls made at once of which one writes what another reads or writes. outputs[i], inputs[i]: those of call i."""
    if len(outputs) < 2:
        return
    uses = [(tensor, True, call) for call, own in enumerate(outputs) for tensor in own]
    uses += [(tensor, False, call) for call, own in enumerate(inputs) for tensor in own]
    for first, second in _pairs(uses):
        raise InvalidArgument(f"{what}: {first} and {second} of the list share memory that is written; give each its own")


def _pairs(uses: list[tuple[Any, bool, int]]) -> Iterator[tuple[int, int]]:
    """Of tensors that are written or read, each with a number: the numbers of two that share what one of them writes."""
    begun: list[tuple[int, Any, bool, int]] = []  # the first is where its memory ends
    for tensor, writes, number in sorted((use for use in uses if use[0].numel()), key=lambda use: use[0].data_ptr()):
        begin = tensor.data_ptr()
        begun = [other for other in begun if other[0] > begin]
        for _, other, other_writes, other_number in begun:
            if (writes or other_writes) and number != other_number and _meet(_places(other), _places(tensor)):
                yield min(number, other_number), max(number, other_number)
        begun.append((begin + _extent(tensor), tensor, writes, number))


def _extent(tensor: Any) -> int:
    """The bytes from its first element to its last."""
    if tensor.is_contiguous():
        return tensor.element_size() * tensor.numel()
    return tensor.element_size() * (1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride())))


def _check_elements(tensor: Any) -> None:
    """Refuses a tensor to write that has two elements in one place, as those of expand() and unfold() may."""
    if tensor.is_contiguous():
        return
    places = _places(tensor)
    while places.ndim > 0:  # two elements differ first along some axis; of the axes before that, any index stands for all
        if _meet(places[:1], places[1:]):
            raise InvalidArgument(
                "a tensor that the call writes has more than one element in a single memory location; pass its clone()"
            )
        places = places[0]


class _Layout:
    def __init__(self, **members: Any) -> None:
        self.__array_interface__ = members


def _places(tensor: Any) -> Any:
    """As numpy's array, whose elements nobody reads: they may be on a GPU."""
    width = tensor.element_size()
    return np.asarray(_Layout(
        version=3, typestr=f"|V{width}", shape=tuple(tensor.shape), strides=tuple(step * width for step in tensor.stride()),
        data=(tensor.data_ptr(), True)))


# How many places are tried before two strided tensors count as apart: enough for all but what is made to be hard.
_TRIES = 10_000


def _meet(one: Any, other: Any) -> bool:
    try:
        return bool(np.shares_memory(one, other, _TRIES))
    except getattr(np, "exceptions", np).TooHardError:
        return False


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
