"""Modules of ray.util.collective whose names mean here what they mean there, because they touch no group: Ray's helpers and actors.

They are made here, so that a program can import each by its name, and look a name up in Ray's module when it is asked for. The
classes of groups among these names are col's. A stub of each (const.pyi, collective_group/) tells type checkers of it.
"""

from __future__ import annotations

import sys

from ..hints import Any, Callable
from . import collective
from .cluster import ray_module

_OF_GROUPS = "collective_group"
MODULES = {
    "const": "Ray's names of actors and of environment variables. col itself reads none of them.",
    "util": "The actors in which Ray's own module keeps what a group is. col keeps no such actor.",
    _OF_GROUPS: "The classes of groups. Ray's base is Ray's; those of its backends are col's.",
    f"{_OF_GROUPS}.base_collective_group": "The base of Ray's groups, which col's are derived from.",
    f"{_OF_GROUPS}.cuda_stream": "Ray's pool of streams, which col does not use. Ray needs cupy for it.",
    f"{_OF_GROUPS}.nccl_collective_group": "NCCL's groups, which are col's, and Ray's helpers beside its own, which need cupy.",
    f"{_OF_GROUPS}.nccl_util": "Ray's helpers around cupy's NCCL, which col does not use. Ray needs cupy for them.",
    f"{_OF_GROUPS}.torch_gloo_collective_group": "GLOO's groups, which are col's, and Ray's helpers beside its own.",
}
_OURS = ("NCCLGroup", "TorchGLOOGroup", "get_address_and_port")


def _looks_up(module: str) -> Callable[[str], Any]:
    """Errors of using a name: Unavailable (no Ray), ImportError (what Ray's module itself needs, such as cupy), AttributeError."""

    def get(name: str) -> Any:
        if name.startswith("_"):  # asked by the import system and by inspect, also without Ray
            raise AttributeError(name)
        if name in _OURS and module.startswith(_OF_GROUPS):
            return getattr(collective, name)
        ray_module()
        from importlib import import_module

        return getattr(import_module(f"ray.util.collective.{module}"), name)

    return get


for _name, _text in MODULES.items():
    _parent, _, _last = f"{__package__}.{_name}".rpartition(".")
    _module = sys.modules[f"{_parent}.{_last}"] = type(sys)(f"{_parent}.{_last}", _text)
    _module.__dict__.update(__getattr__=_looks_up(_name), __path__=[])
    setattr(sys.modules[_parent], _last, _module)
