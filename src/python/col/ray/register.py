"""col inside Ray: as a backend of ray.util.collective, as a tensor transport, and in the handles of actors.

    col.ray.register()                                       # in each process that is a rank: backend="COL"
    ray.init(runtime_env=col.ray.runtime_env())              # or so: in every worker of the job
    ray.init(runtime_env=col.ray.runtime_env("GLOO"))        # and backend="GLOO" means col, too
"""

from __future__ import annotations

from ..errors import InvalidArgument, Unavailable
from ..hints import Any
from . import cluster, handles


def register(*replaced: str) -> None:
    """Makes backend="COL" of ray.util.collective mean col in this process; and, if named, "GLOO" and "NCCL".

    Then `@ray.method(tensor_transport="COL")` means transport.py, where torch is installed, and handles of actors have the
    methods of handles.py.

    Every process needs it that declares a group or is a rank of one: runtime_env() does that for workers. May be called
    again. Errors: InvalidArgument (another name), Unavailable (Ray is not installed, or has no such registry).
    """
    ray = cluster.ray_module()
    try:
        from ray.util.collective import backend_registry, types

        from .backend import CLASSES
    except ImportError:
        raise Unavailable(
            f"Ray {ray.__version__} has no registry of backends; use `import col.ray as collective`, or a newer Ray"
        ) from None
    for name in replaced:
        if name not in CLASSES:
            raise InvalidArgument(f"register: '{name}' is none of the backends that col can be: {', '.join(CLASSES)}")
    for name in {"COL", *replaced}:
        # Its own function refuses a name that is taken.
        backend_registry._global_registry._map[name] = CLASSES[name]
        setattr(types.Backend, name, name)
    _offer_transport()
    handles.install()


def _offer_transport() -> None:
    """The transport is registered when Ray registers its own: at the first look at any, because it imports torch."""
    try:
        from ray.experimental.rdt import util
    except ImportError:
        return  # an older Ray
    registers_rays = util._ensure_default_transports_registered
    if registers_rays.__module__ == __name__:
        return

    def register_all() -> None:
        registers_rays()
        try:
            from . import transport  # noqa: F401
        except ImportError:
            pass  # without torch, there are none of Ray's either

    util._ensure_default_transports_registered = register_all


def runtime_env(*replaced: str, **more: Any) -> dict[str, Any]:
    """For ray.init(runtime_env=…): every worker of the job calls register(*replaced) when it starts.

    Calls it in this process as well. `more`: other entries of the runtime environment.
    """

    def register_col() -> None:  # a function inside of one travels by its code, with `replaced`
        from col.ray import register

        register(*replaced)

    register(*replaced)
    return {**more, "worker_process_setup_hook": register_col}
