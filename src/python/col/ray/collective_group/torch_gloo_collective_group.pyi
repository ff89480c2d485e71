"""Made by theirs.py. The group and its address are col's, all other names are Ray's."""

from typing import Any

from ..backend import ColGroup
from ..collective import get_address_and_port as get_address_and_port

class TorchGLOOGroup(ColGroup): ...

def __getattr__(name: str) -> Any: ...
