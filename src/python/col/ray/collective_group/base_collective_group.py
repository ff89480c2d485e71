"""The base of Ray's groups, which col's are derived from."""

from ..theirs import of_module

__getattr__ = of_module("collective_group.base_collective_group")
