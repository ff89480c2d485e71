"""Made by theirs.py. Its names are Ray's."""

from typing import Any

def __getattr__(name: str) -> Any: ...
