"""Ray's helpers around cupy's NCCL, which col does not use. Ray needs cupy for them."""

from ..theirs import of_module

__getattr__ = of_module("collective_group.nccl_util")
