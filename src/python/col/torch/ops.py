"""torch.ops.col: collectives as operators of torch, which torch.compile takes into its graphs, fullgraph=True included.

    name = col.torch.ops_name(group)
    torch.ops.col.all_reduce_(x, name)

all_reduce_(x, group, op="sum") and broadcast_(x, group, root=0) change x. all_reduce(x, group, op="sum"), all_gather(x, group) and
reduce_scatter(x, group, op="sum") return a new tensor; the last two join and cut along the first axis. All of them block, are made
by every rank of the group, and take tensors on the CPU that lie in memory in any way. They have no gradients.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Callable
from weakref import ref

import torch

from .. import _col
from ..errors import InvalidArgument
from . import layout

_groups: dict[str, Callable[[], Any]] = {}  # by name, for as long as they live
_naming = Lock()
_library: Any = torch.library.Library("col", "DEF")


def ops_name(group: Any) -> str:
    """The name by which torch.ops.col knows a group, for as long as that lives.

    group: one of torch's, of backend "col"; None for torch's default group; or a col.Group. Errors: InvalidArgument.
    """
    if not isinstance(group, _col.Group):
        from .process_group import needed

        group = needed(group, "torch.ops.col")
    first = name = group.name
    number = 1
    with _naming:
        while (other := _groups.get(name, _gone)()) is not None:
            if other is group:
                return str(name)
            number += 1
            name = f"{first} {number}"  # of another job, such as an earlier default group
        _groups[name] = ref(group)
    return str(name)


def _gone() -> None:
    """In the place of a group that is not there."""


def _of(name: str, x: Any) -> Any:
    group = _groups.get(name, _gone)()
    if group is None:
        raise InvalidArgument(f"torch.ops.col: there is no group '{name}'; pass what col.torch.ops_name(group) gives, and keep the group")
    if x.requires_grad and torch.is_grad_enabled():
        raise InvalidArgument("torch.ops.col: its calls have no gradients; make them under torch.no_grad() or torch.inference_mode()")
    return group


def _operator(schema: str, fake: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """fake: the same call on tensors without memory, for torch.compile."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = schema.partition("(")[0]
        _library.define(schema)
        _library.impl(name, function, "CPU")
        _library.impl(name, fake, "Meta")
        return function

    return add


def _like(x: Any, group: str, op: str = "sum") -> Any:
    _of(group, x)
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _nothing(x: Any, group: str, *args: Any) -> None:
    _of(group, x)


def _rows(x: Any) -> Any:
    return x.shape[0] if x.dim() else 1


def _larger(x: Any, group: str) -> Any:
    return x.new_empty((_rows(x) * _of(group, x).size, *x.shape[1:]))


def _smaller(x: Any, group: str, op: str = "sum") -> Any:
    return x.new_empty((_rows(x) // _of(group, x).size, *x.shape[1:]))


@_operator("all_reduce_(Tensor(a!) x, str group, str op='sum') -> ()", _nothing)
def _all_reduce_(x: Any, group: str, op: str = "sum") -> None:
    own = _groups.get(group, _gone)()
    if own is not None:
        try:
            own.allreduce(x, op=op)
            return
        except InvalidArgument:  # how x lies in memory, mostly: to ask first would cost every call a twentieth
            if layout.is_plain(x) and not x.requires_grad:
                raise  # such as another thread's call: made again, it would be another call than those of the other ranks
    own = _of(group, x)
    buffer, finish = layout.written(x)
    own.allreduce(buffer, op=op)
    if finish is not None:
        finish()


@_operator("all_reduce(Tensor x, str group, str op='sum') -> Tensor", _like)
def _all_reduce(x: Any, group: str, op: str = "sum") -> Any:
    own, out = _of(group, x), _like(x, group)
    own.allreduce(layout.read(x), out, op=op)
    return out


@_operator("broadcast_(Tensor(a!) x, str group, int root=0) -> ()", _nothing)
def _broadcast_(x: Any, group: str, root: int = 0) -> None:
    own = _of(group, x)
    buffer, finish = layout.written(x)
    own.broadcast(layout.raw(buffer), root=root)
    if finish is not None:
        finish()


@_operator("all_gather(Tensor x, str group) -> Tensor", _larger)
def _all_gather(x: Any, group: str) -> Any:
    own, out = _of(group, x), _larger(x, group)
    own.allgather(layout.raw(layout.read(x)), layout.raw(out))
    return out


@_operator("reduce_scatter(Tensor x, str group, str op='sum') -> Tensor", _smaller)
def _reduce_scatter(x: Any, group: str, op: str = "sum") -> Any:
    own = _of(group, x)
    if _rows(x) % own.size:
        raise InvalidArgument(f"torch.ops.col.reduce_scatter: {_rows(x)} rows cannot be cut in {own.size} equal parts; pad the first axis")
    out = _smaller(x, group)
    own.reduce_scatter(layout.read(x), out, op=op)
    return out
