"""ray.util.collective.const: Ray's names of actors and of environment variables. col itself reads none of them."""

from .theirs import of_module

__getattr__ = of_module("const")
