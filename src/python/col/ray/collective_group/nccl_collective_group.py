"""NCCL's groups, which are col's, and Ray's helpers beside its own, for which Ray needs cupy."""

from __future__ import annotations

from .. import collective
from ..theirs import of_module

TYPE_CHECKING = False  # type checkers take it for true; importing typing takes longer than all of col
if TYPE_CHECKING:
    from typing import Any

_theirs = of_module("collective_group.nccl_collective_group")


def __getattr__(name: str) -> Any:
    return getattr(collective, name) if name == "NCCLGroup" else _theirs(name)
