"""`A.recv_ref(ref)` and `A.send_ref(ref, to)`: methods of actor handles, for tensors that live on actors."""

from __future__ import annotations

import time
from types import MethodType

from ..errors import InvalidArgument
from ..hints import Any, Callable, Optional
from . import direct, refs

_TIMEOUT = 300.0  # seconds, if the call does not say it


def install() -> None:
    """Gives actor handles the methods. An actor class's own methods of these names stay what they are."""
    from ray.actor import ActorHandle

    for function in (recv_ref, send_ref):
        setattr(ActorHandle, function.__name__, _Method(function))


class _Method:
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __get__(self, handle: Any, owner: Any = None) -> Any:
        if handle is None:
            return self._function
        own = handle.__dict__.get("_method_shells", {}).get(self._function.__name__)
        return own.bind(handle) if own is not None else MethodType(self._function, handle)


def recv_ref(
    actor: Any, src_ref: Any, dst_ref: Any = None, group_name: str = "default", timeout: Optional[float] = None
) -> Any:
    """The actor receives the tensors of src_ref, which live on another actor. Blocks until they have come. Returns a ref to
    them, on this actor.

    With dst_ref, they are written into its tensor, which lives on this actor, by the group: see refs.recv_ref. Without, they
    are new, and what moves them is the transport that the method which made src_ref names; it needs no group.
    """
    if dst_ref is not None:
        if direct.holder(dst_ref) != actor:
            raise InvalidArgument(f"recv_ref: {dst_ref} is of a tensor that does not live on {actor}")
        refs.recv_ref(dst_ref, src_ref, group_name, timeout)
        return dst_ref
    if direct.holder(src_ref) == actor:
        raise InvalidArgument(f"recv_ref: the tensor of {src_ref} lives on {actor} already")
    deadline = time.monotonic() + (_TIMEOUT if timeout is None else timeout)
    received = direct.move(src_ref, actor)
    direct.layout(received, deadline)
    return received


def send_ref(
    actor: Any, src_ref: Any, to: Any, group_name: str = "default", timeout: Optional[float] = None
) -> Any:
    """The actor sends the tensors of src_ref, which live on it. `to`: the ref of a tensor on another actor, or that actor.
    As recv_ref of the other actor."""
    import ray

    if direct.holder(src_ref) != actor:
        raise InvalidArgument(f"send_ref: {src_ref} is of a tensor that does not live on {actor}")
    if isinstance(to, ray.ObjectRef):
        return recv_ref(direct.holder(to), src_ref, to, group_name, timeout)
    return recv_ref(to, src_ref, None, group_name, timeout)
