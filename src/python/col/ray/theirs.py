"""Names of Ray's modules that mean here what they mean there, because they touch no group: its helpers and actors."""

from __future__ import annotations

from ..hints import Any, Callable
from .cluster import ray_module


def of_module(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has the public names of ray.util.collective.`module`.

    Errors of using one: Unavailable (no Ray), ImportError (what Ray's module itself needs, such as cupy), AttributeError.
    """

    def get(name: str) -> Any:
        if name.startswith("_"):  # asked by the import system and by inspect, also without Ray
            raise AttributeError(name)
        ray_module()
        from importlib import import_module

        return getattr(import_module(f"ray.util.collective.{module}"), name)

    return get
