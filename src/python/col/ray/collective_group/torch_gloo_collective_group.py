"""GLOO's groups, which are col's, and Ray's helpers beside its own."""

from __future__ import annotations

from ...hints import Any
from .. import collective
from ..collective import get_address_and_port as get_address_and_port
from ..theirs import of_module

_theirs = of_module("collective_group.torch_gloo_collective_group")


def __getattr__(name: str) -> Any:
    return getattr(collective, name) if name == "TorchGLOOGroup" else _theirs(name)
