"""Made by theirs.py. The group is col's, all other names are Ray's."""

from typing import Any

from ..backend import ColGroup

class NCCLGroup(ColGroup): ...

def __getattr__(name: str) -> Any: ...
