"""The classes that stand for col inside Ray's own ray.util.collective. register.py puts them there."""

from __future__ import annotations

from typing import Any

from ray.util.collective.collective_group.base_collective_group import BaseGroup

from . import groups
from .backend_registry import NAMES
from .ray_group import RayGroup


class ColGroup(RayGroup, BaseGroup):  # type: ignore[misc]  # Ray has no types
    """A group of Ray's manager, which makes it to join the group. Blocks until all ranks have, as init_collective_group."""

    def __init__(self, world_size: int, rank: int, group_name: str, timeout_ms: Any = None) -> None:
        super().__init__(group_name)
        groups.join(world_size, rank, self.name, group_name, None if timeout_ms is None else timeout_ms / 1000)


# In the place of Ray's own, by their names.
CLASSES = {name: type(f"{name.title()}Group", (ColGroup,), {"name": name}) for name in NAMES}
