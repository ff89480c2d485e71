"""NCCL's groups, which are col's, and Ray's helpers beside its own, for which Ray needs cupy."""

from __future__ import annotations

from ...hints import Any
from .. import collective
from ..theirs import of_module

_theirs = of_module("collective_group.nccl_collective_group")


def __getattr__(name: str) -> Any:
    return getattr(collective, name) if name == "NCCLGroup" else _theirs(name)
