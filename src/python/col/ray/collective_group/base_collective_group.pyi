"""Made by theirs.py. Its names are Ray's."""

from typing import Any

from ray.util.collective.collective_group.base_collective_group import BaseGroup as BaseGroup

def __getattr__(name: str) -> Any: ...
