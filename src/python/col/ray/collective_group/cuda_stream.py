"""Ray's pool of streams, which col does not use. Ray needs cupy for it."""

from ..theirs import of_module

__getattr__ = of_module("collective_group.cuda_stream")
