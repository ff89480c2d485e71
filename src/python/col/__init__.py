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

try:
    from . import _col
except ImportError as error:
    from .why_not import reason

    raise ImportError(reason(error)) from None
from ._col import (
    Context, Group, Message, Op, PreparedCall, StoreServer, Work, alloc, finalize, init, join, premul_sum, user_op, wait_all,
    wait_any,
)
from .awaiting import await_work
from .errors import (
    BY_CODE, Aborted, AlreadyInitialized, Error, Internal, InvalidArgument, IoError, Mismatch, NotInitialized, PeerLost,
    RankFailed, Resource, Timeout, Unavailable,
)
from .hints import TYPE_CHECKING
from .launch import Ranks, ranks, run

if TYPE_CHECKING:
    from . import plan, ray, tracing
    from .ray import (
        ReduceOp, allgather, allreduce, alltoall, barrier, broadcast, destroy_collective_group, gather,
        get_collective_group_size, get_group, get_rank, gloo_available, init_collective_group, is_group_initialized,
        nccl_available, recv, reduce, reducescatter, scatter, send,
    )
    from .tracing import trace
    from .tree_sum import TreeSum

__all__ = [
    "Aborted", "AlreadyInitialized", "Context", "Error", "Group", "Internal", "InvalidArgument", "IoError", "Message", "Mismatch",
    "NotInitialized", "Op", "PeerLost", "PreparedCall", "RankFailed", "Ranks", "ReduceOp", "Resource", "StoreServer", "Timeout", "TreeSum", "Unavailable",
    "Work", "allgather", "alloc", "allreduce", "alltoall", "barrier", "broadcast", "destroy_collective_group", "finalize", "gather",
    "get_collective_group_size", "get_group", "get_rank", "gloo_available", "init", "init_collective_group",
    "is_group_initialized", "join", "nccl_available", "plan", "premul_sum", "ranks", "recv", "reduce", "reducescatter", "run",
    "scatter", "send", "trace", "user_op", "version", "wait_all", "wait_any",
]

version = _col.version()
__version__ = version

_col.set_error_classes(BY_CODE)
Work.__await__ = await_work  # type: ignore[method-assign]
atexit.register(_col.close)


# Imported when a program names them. Each rank that starts would wait for them, and most have no use for them. A type checker
# would take any name of the package for an object.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        import importlib

        if name in ("plan", "ray", "tracing"):
            return importlib.import_module("." + name, __name__)
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = {"trace": ".tracing", "TreeSum": ".tree_sum"}.get(name, ".ray")
        value = getattr(importlib.import_module(module, __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "ray", "tracing"})


def load_ipython_extension(shell: object) -> None:
    """`%load_ext col`: brings `%%ranks`, which runs a cell of a notebook on ranks. docs/testing.md."""
    from .testing import notebook

    notebook.load(shell)
