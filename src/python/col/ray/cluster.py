"""What col asks of Ray itself: its key-value store, and who and where an actor is.

`import col` loads this file; what it needs only under Ray, it imports in its functions.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

from ..errors import IoError, NotInitialized, Timeout, Unavailable
from ..hints import Any, Callable, Optional, Sequence

_NAMESPACE = b"col"


def ray_module() -> ModuleType:
    """Ray, imported here at the latest."""
    try:
        import ray
    except ImportError as error:
        raise Unavailable(f"col.ray needs Ray, which is not installed here ({error}): pip install ray") from None
    return ray


def connected_ray() -> ModuleType:
    ray = ray_module()
    if not ray.is_initialized():
        raise NotInitialized("this process is not connected to Ray: call ray.init() first")
    return ray


def meets_through_ray() -> bool:
    """Whether ranks in this process meet through Ray: in its workers always, in a driver unless it is a rank of colrun's."""
    ray = sys.modules.get("ray")
    if ray is None or not getattr(ray, "is_initialized", lambda: False)():
        return False
    return ray._private.worker.global_worker.mode == ray.WORKER_MODE or "COL_RANK" not in os.environ


def new_id(kind: str) -> str:
    return f"{kind}-{os.urandom(16).hex()}"


def is_driver() -> bool:
    ray = connected_ray()
    return ray._private.worker.global_worker.mode != ray.WORKER_MODE


def job_id() -> str:
    return connected_ray().get_runtime_context().get_job_id()


def node_address() -> str:
    return connected_ray().util.get_node_ip_address()


def own_actor_id() -> Optional[str]:
    """None outside of actors."""
    return connected_ray().get_runtime_context().get_actor_id()


# ---- The key-value store of Ray's head node. A call takes about half a millisecond.


def _kv(call: str, *arguments: Any, **more: Any) -> Any:
    connected_ray()
    from ray.experimental import internal_kv

    try:
        return getattr(internal_kv, f"_internal_kv_{call}")(*arguments, namespace=_NAMESPACE, **more)
    except Exception as error:  # each version of Ray has others
        raise IoError(
            f"Ray's key-value store, where ranks meet, does not answer ({error}); the head node has ended, or cannot be reached: "
            "look at its GCS (`ray status`), and start the job again"
        ) from error


def _key(kind: str, group_name: str) -> bytes:
    return f"{kind}/{job_id()}/{group_name}".encode()


def put_record(kind: str, group_name: str, record: dict[str, Any], overwrite: bool = True) -> bool:
    """Returns whether it was written: not if there is one already, unless overwrite."""
    import json

    value = json.dumps(record).encode()
    existed = _kv("put", _key(kind, group_name), value, overwrite=overwrite)
    return overwrite or not existed


def get_record(kind: str, group_name: str) -> Optional[dict[str, Any]]:
    import json

    value = _kv("get", _key(kind, group_name))
    return None if value is None else json.loads(value)


def delete_record(kind: str, group_name: str, record_id: str) -> None:
    """Deletes the record of that id; not one that has come in its place."""
    record = get_record(kind, group_name)
    if record is not None and record["id"] == record_id:
        _kv("del", _key(kind, group_name))


# ---- Actors


def has_died(actor_id: str) -> bool:
    """Whether Ray knows that the actor has ended for good. Takes one to two milliseconds."""
    return _look_up(actor_id).get("State") == "DEAD"


def describe_actor(actor_id: str) -> str:
    """'actor 4f… (Worker, ALIVE) on node 7a… (10.0.0.2)', for messages."""
    found = _look_up(actor_id)
    if not found:
        return f"actor {actor_id}, which Ray does not know"
    address = found.get("Address") or {}
    node = address.get("NodeID")
    where = f" on node {node} ({address.get('IPAddress')})" if node else ", which is on no node yet"
    return f"actor {actor_id} ({found.get('ActorClassName') or 'of unknown class'}, {found.get('State')}){where}"


def _look_up(actor_id: str) -> dict[str, Any]:
    connected_ray()
    from ray._private import state

    return state.actors(actor_id) or {}


def run_on(actors: Sequence[Any], function: Callable[..., Any], *arguments: Any, timeout: float) -> None:
    """Calls function(*arguments) on each of the actors that live, after their calls so far. Blocks until all have ended."""
    ray = connected_ray()
    pending = [actor.__ray_call__.remote(_call, function, arguments) for actor in actors]
    ready, late = ray.wait(pending, num_returns=len(pending), timeout=timeout) if pending else ([], [])
    for done in ready:
        try:
            ray.get(done)
        except ray.exceptions.RayActorError:
            pass  # it has died, and has nothing to leave
    if late:
        names = [describe_actor(actor._actor_id.hex()) for actor, call in zip(actors, pending) if call in late]
        raise Timeout(f"these actors are in another call, and have not answered in {timeout:g} s: {', '.join(names)}")


def _call(_actor: Any, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    return function(*arguments)
