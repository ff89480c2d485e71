"""col: collective communication for processes.

    import numpy as np
    import col

    world = col.init()
    gradients = np.full(1000, world.rank, np.float32)
    world.allreduce(gradients)  # every rank now holds the sum
    col.finalize()

Start it with `colrun -n 8 python3 trainer.py`. Class Group has all calls. The free functions are those of
ray.util.collective: see col.ray. docs/python.md has more.
"""

import atexit

from . import _col, plan
from ._col import (
    Context, Group, Message, Op, StoreServer, Work, alloc, finalize, init, premul_sum, user_op, wait_all, wait_any,
)
from .awaiting import await_work
from .errors import (
    BY_CODE, Aborted, AlreadyInitialized, Error, Internal, InvalidArgument, IoError, Mismatch, NotInitialized, PeerLost,
    Resource, Timeout, Unavailable,
)
from .ray import (
    ReduceOp, allgather, allreduce, alltoall, barrier, broadcast, destroy_collective_group, gather,
    get_collective_group_size, get_group, get_rank, gloo_available, init_collective_group, is_group_initialized,
    nccl_available, recv, reduce, reducescatter, scatter, send,
)
from .tracing import trace

__all__ = [
    "Aborted", "AlreadyInitialized", "Context", "Error", "Group", "Internal", "InvalidArgument", "IoError", "Message", "Mismatch",
    "NotInitialized", "Op", "PeerLost", "ReduceOp", "Resource", "StoreServer", "Timeout", "Unavailable", "Work", "allgather", "alloc",
    "allreduce", "alltoall", "barrier", "broadcast", "destroy_collective_group", "finalize", "gather",
    "get_collective_group_size", "get_group", "get_rank", "gloo_available", "init", "init_collective_group",
    "is_group_initialized", "nccl_available", "plan", "premul_sum", "recv", "reduce", "reducescatter", "scatter", "send",
    "trace", "user_op", "version", "wait_all", "wait_any",
]

version = _col.version()
__version__ = version

_col.set_error_classes(BY_CODE)
Work.__await__ = await_work  # type: ignore[method-assign]
atexit.register(_col.close)
