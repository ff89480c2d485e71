"""Backend "col" of torch.distributed.

    import torch.distributed as dist
    import col.torch  # torch 2.13 and later find it by themselves, if col is installed as a wheel

    dist.init_process_group("col")

From then on, every call of torch.distributed, and what is built on it, runs over col: shared memory inside a host, Gloo between
hosts, NCCL for tensors on GPUs. The ranks meet through torch's own store, whatever started them. docs/torch.md has more.

process_group.py has the calls, backend.py what torch sees of them beside another backend, layout.py brings torch's lists of
tensors to the one buffer that a collective takes, memory.py has buffers that the ranks share, work.py is what a call returns,
hooks.py what DDP may call, ops.py the operators torch.ops.col, meeting.py is how the ranks find each other.
"""

import importlib

from ..hints import TYPE_CHECKING
from .register import register

if TYPE_CHECKING:
    from .hooks import allreduce_hook
    from .ops import ops_name

__all__ = ["allreduce_hook", "ops_name", "register"]

register()

_LATER = {"allreduce_hook": ".hooks", "ops_name": ".ops"}  # the table of backends needs nothing of them


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'col.torch' has no attribute '{name}'")
    return getattr(importlib.import_module(_LATER[name], __name__), name)
