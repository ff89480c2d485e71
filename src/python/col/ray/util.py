"""ray.util.collective.util: the actors in which Ray's own module keeps what a group is. col keeps no such actor."""

from .theirs import of_module

__getattr__ = of_module("util")
