"""Operators and backends, as ray.util.collective.types names them."""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing typing takes longer than all of col
if TYPE_CHECKING:
    from typing import Any

from .. import _col


class ReduceOp:
    """The names of operators, as Ray has them. Each call takes Ray's own, too."""

    SUM = "sum"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    AVERAGE = "avg"


class Backend:
    """What moves the data of a group whose ranks meet through Ray.

    AUTO and COL: NCCL if all ranks have a GPU current and NCCL can serve them, else as GLOO. NCCL means the same: it is
    Ray's default, also for actors without a GPU.
    GLOO: shared memory between ranks of one host, Gloo between hosts; never a GPU's.
    SHM: shared memory, or an error.
    """

    AUTO = "auto"
    COL = "auto"
    NCCL = "nccl"
    GLOO = "gloo"
    SHM = "shm"


def op_of(op: Any) -> Any:
    """Ray's own operators are members of an enum."""
    name = getattr(op, "name", None)
    if isinstance(op, str) or not isinstance(name, str) or isinstance(op, _col.Op):
        return op
    return getattr(ReduceOp, name, name.lower())


def backend_of(backend: Any) -> str:
    """Ray writes its backends in capitals, and has had them as members of an enum."""
    name = str(getattr(backend, "value", backend)).lower()
    return {"torch_gloo": "gloo", "col": "auto"}.get(name, name)
