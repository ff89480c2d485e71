"""Tensors that live on actors, by Ray's direct transport: who holds those of a ref, of which shapes and types they are, and
the tensors themselves, on the actor that holds them.

A method returns such a ref if it says `@ray.method(tensor_transport="COL")`, or another transport.
"""

from __future__ import annotations

import time

from ..errors import InvalidArgument, PeerLost, Timeout
from ..hints import Any

_GRACE = 0.05  # seconds by which the news that a task has ended may be ahead of the layout of its tensors


class ActorDied(PeerLost):
    """The actor of a task died."""


def manager() -> Any:
    """Ray's, of the tensors that its transports move, in this process."""
    from ray._private.worker import global_worker

    return global_worker.rdt_manager


def _known(ref: Any) -> Any:
    import ray

    if not isinstance(ref, ray.ObjectRef):
        raise InvalidArgument(f"a ref (ray.ObjectRef) of a tensor on an actor is needed, not {type(ref).__name__}")
    known = manager().get_rdt_metadata(ref.hex())
    if known is None:
        raise InvalidArgument(
            f"{ref} is an ordinary object of Ray's object store; put @ray.method(tensor_transport=\"COL\") on the method "
            "that returns it, and its tensor stays on the actor"
        )
    return known


def holder(ref: Any) -> Any:
    """The handle of the actor that holds the ref's tensors. Does not block."""
    import ray

    actor = _known(ref).src_actor
    if not isinstance(actor, ray.actor.ActorHandle):
        raise InvalidArgument(f"the tensor of {ref} lives on no actor: a driver has put it")
    return actor


def is_dead(actor: Any) -> bool:
    """Whether this process has heard that the actor has ended for good. Asks nobody."""
    from ray._private.worker import global_worker
    from ray.core.generated.gcs_pb2 import ActorTableData

    return global_worker.core_worker.get_local_actor_state(actor._actor_id) == ActorTableData.DEAD


def layout(ref: Any, deadline: float) -> list[str]:
    """Dtype and shape of each tensor of the ref, such as 'float32[8, 3]'. Blocks until the task that makes it has ended,
    until the deadline (of time.monotonic()) at most. Raises the exception of a task that failed."""
    import ray

    known = _known(ref).tensor_transport_meta
    if known is None:
        if not ray.wait([ref], timeout=max(0.0, deadline - time.monotonic()), fetch_local=False)[0]:
            raise Timeout(f"{holder(ref)} has not made the tensor of {ref} in time; is it busy with another call?")
        known = manager().wait_for_tensor_transport_metadata(ref.hex(), _GRACE)
    if known is None:
        check(ref)
        raise InvalidArgument(f"{ref} has a value, but Ray knows nothing of its tensor")
    return [f"{str(dtype).removeprefix('torch.')}{list(shape)}" for shape, dtype in known.tensor_meta]


def check(task: Any) -> None:
    """Raises what made an ended task fail: the exception itself; ActorDied, if the actor died."""
    import ray

    try:
        ray.get(task)
    except ray.exceptions.RayTaskError as error:
        raise (error.cause if isinstance(error.cause, Exception) else error) from error
    except ray.exceptions.RayActorError as error:
        raise ActorDied(str(error)) from error


def check_holds(actor: Any) -> None:
    """Raises InvalidArgument if Ray has made the actor without the threads that transfers run in."""
    if not actor._ray_enable_tensor_transport:
        raise InvalidArgument(
            f"{actor} can hold no tensors of refs: its class needs a method with @ray.method(tensor_transport=\"COL\"), or "
            "@ray.remote(enable_tensor_transport=True)"
        )


def move(ref: Any, actor: Any) -> Any:
    """A ref of new tensors on the actor, with the contents of those of the ref. The ref's own transport moves them. Does not
    block."""
    check_holds(actor)
    transport = _known(ref).tensor_transport_backend
    return actor.__ray_call__.options(tensor_transport=transport, max_task_retries=0).remote(_itself, ref)


def _itself(actor: Any, value: Any) -> Any:
    return value


def tensors(key: str) -> list[Any]:
    """The tensors of the ref whose hex() is the key, in the actor that holds them."""
    return manager().rdt_store.wait_and_get_object(key, timeout=0)


def bytes_of(tensor: Any) -> Any:
    """One axis of bytes, as which messages move every type, also those that col cannot reduce."""
    import torch

    return tensor.detach().contiguous().view(-1).view(torch.uint8)
