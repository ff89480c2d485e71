"""ray.util.collective.backend_registry: the backends there are. Here they are col's, and a program adds none."""

from __future__ import annotations

from ..errors import InvalidArgument, Unavailable
from ..hints import Any, NoReturn

NAMES = ("COL", "GLOO", "NCCL")  # the words for the classes in Ray's shape: backend.py


def register_collective_backend(name: str, group_cls: Any) -> NoReturn:
    """Always raises Unavailable, which says what to do: col.ray runs no class of a program's own.

    Ray's function of this name takes a class of calls, and runs those in the place of a backend.
    """
    raise Unavailable(
        f"col.ray moves data by col alone, and cannot run {getattr(group_cls, '__name__', group_cls)} as backend '{name}': "
        "register it with ray.util.collective.register_collective_backend, and make its groups there; in Ray's module, "
        "col.ray.register() puts col beside it as backend='COL'"
    )


class BackendRegistry:
    """The backends by Ray's interface; all objects of the class are alike. Thread safe, never blocks.

    Names are in any case. "shm" and "auto", which Ray's registry lacks, are words for init_collective_group() alone.
    """

    def put(self, name: str, group_cls: Any) -> None:
        """Always raises Unavailable: see register_collective_backend()."""
        register_collective_backend(name, group_cls)

    def get(self, name: str) -> Any:
        """The class of a backend's groups, in Ray's shape. Errors: InvalidArgument (none of that name), Unavailable (no Ray)."""
        from .cluster import ray_module

        ray_module()
        from .backend import CLASSES

        if not self.is_registered(name):
            raise InvalidArgument(f"there is no backend '{name}' here; there are {', '.join(NAMES)}")
        return CLASSES[name.upper()]

    def is_registered(self, name: str) -> bool:
        """Returns true if get() has a class of that name, available or not."""
        return name.upper() in NAMES

    def check(self, name: str) -> bool:
        """Returns true if there is one, and it can be used here."""
        from .collective import is_backend_available

        return self.is_registered(name) and is_backend_available(name)
