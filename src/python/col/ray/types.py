"""Operators, backends and options, as ray.util.collective.types names them. Importing this asks for neither Ray nor torch."""

from __future__ import annotations

from .. import _col
from ..errors import InvalidArgument
from ..hints import TYPE_CHECKING, Any, ClassVar, Iterator

if TYPE_CHECKING:
    from datetime import timedelta
else:
    from _datetime import timedelta  # the other half of datetime takes a millisecond to import


class _Members(type):
    """Gives ReduceOp what a program asks of an enum; enum itself takes longer to import than all of col."""

    _by_name: dict[str, ReduceOp]

    def __iter__(cls) -> Iterator[ReduceOp]:
        return iter(cls._by_name.values())

    def __len__(cls) -> int:
        return len(cls._by_name)

    def __getitem__(cls, name: str) -> ReduceOp:
        return cls._by_name[name]


class ReduceOp(str, metaclass=_Members):
    """The operators: members with Ray's names and values, which are also col's words for them, such as "sum".

    Each call takes Ray's own members and plain words, too. Integers wrap. AVERAGE, which Ray lacks, adds in the tensor's
    type, divides by the number of ranks and rounds toward zero: two int8 of 100 make -28.

    `ReduceOp(0)` is the member of that value, and `ReduceOp["SUM"]` the one of that name. Errors: InvalidArgument, which
    is a ValueError, and KeyError. Members are never changed: any thread may use them.
    """

    SUM: ClassVar[ReduceOp]
    PRODUCT: ClassVar[ReduceOp]
    MIN: ClassVar[ReduceOp]
    MAX: ClassVar[ReduceOp]
    AVERAGE: ClassVar[ReduceOp]
    name: str
    value: int

    def __new__(cls, value: Any) -> ReduceOp:
        for member in cls:
            if value in (member.value, str(member)):
                return member
        raise InvalidArgument(f"{value!r} is no operator; there are {', '.join(cls._by_name)}")

    def __reduce__(self) -> tuple[type[ReduceOp], tuple[int]]:
        return ReduceOp, (self.value,)

    def __repr__(self) -> str:
        return f"ReduceOp.{self.name}"


def _member(name: str, value: int, word: str) -> ReduceOp:
    member = str.__new__(ReduceOp, word)
    member.name, member.value = name, value
    setattr(ReduceOp, name, member)
    return member


_WORDS = {"SUM": "sum", "PRODUCT": "product", "MIN": "min", "MAX": "max", "AVERAGE": "avg"}
ReduceOp._by_name = {name: _member(name, value, word) for value, (name, word) in enumerate(_WORDS.items())}


class Backend:
    """Words for what moves the data of a group whose ranks meet through Ray.

    AUTO and COL: NCCL if all ranks use a GPU and NCCL can serve them, else as GLOO. NCCL, Ray's default, also takes the
    GPU that Ray gave to an actor that has not used it yet; where it is as GLOO, a RuntimeWarning says why.
    GLOO: shared memory between ranks of one host, Gloo between hosts; never a GPU's.
    SHM: shared memory, or an error.

    `Backend("gloo")` is the word for a name in any case. Errors: InvalidArgument, which is a ValueError.
    """

    AUTO = "auto"
    COL = "auto"
    NCCL = "NCCL"
    GLOO = "GLOO"
    SHM = "shm"
    UNRECOGNIZED = "unrecognized"

    def __new__(cls, name: str) -> str:  # type: ignore[misc]  # as Ray's: what comes is a string
        word = getattr(cls, backend_of(name).upper(), None)
        if not isinstance(word, str) or word == cls.UNRECOGNIZED:
            raise InvalidArgument(f"{name!r} is no backend of col.ray; there are NCCL, GLOO, SHM and AUTO")
        return word


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


# ---- Options for the calls of a group's handle: ray_group.py


unset_timeout_ms = timedelta(milliseconds=-1)  # the group's own


class _Options:
    timeout_ms: timedelta | float = unset_timeout_ms  # a number is of milliseconds


class AllReduceOptions(_Options):
    """Options of a handle's allreduce: the operator, and how long it may take. Set them on the class or on an object."""

    reduceOp: Any = ReduceOp.SUM


class BarrierOptions(_Options):
    """Options of a handle's barrier: how long it may take."""


class ReduceOptions(_Options):
    """Options of a handle's reduce: the operator, and the rank that gets the result; root_tensor: on which of its GPUs."""

    reduceOp: Any = ReduceOp.SUM
    root_rank: int = 0
    root_tensor: int = 0


class AllGatherOptions(_Options):
    """Options of a handle's allgather: how long it may take."""


class BroadcastOptions(_Options):
    """Options of a handle's broadcast: the rank that has the data; root_tensor: on which of its GPUs."""

    root_rank: int = 0
    root_tensor: int = 0


class ReduceScatterOptions(_Options):
    """Options of a handle's reducescatter: the operator, and how long it may take."""

    reduceOp: Any = ReduceOp.SUM


class SendOptions(_Options):
    """Options of a handle's send: to which rank and which of its GPUs; n_elements: how many, from the first one (0: all)."""

    dst_rank: int = 0
    dst_gpu_index: int = 0
    n_elements: int = 0


class RecvOptions(_Options):
    """Options of a handle's recv: from which rank and which of its GPUs; n_elements: how many, from the first one (0: all)."""

    src_rank: int = 0
    src_gpu_index: int = 0
    n_elements: int = 0


def torch_available() -> bool:
    """Returns true if torch can be imported here; imports it, which takes a second. Thread safe."""
    return _is_there("torch")


def cupy_available() -> bool:
    """Returns true if cupy can be imported here; imports it. col's calls need it for none of theirs. Thread safe."""
    return _is_there("cupy")


def _is_there(module: str) -> bool:
    try:
        __import__(module)
    except (ImportError, OSError):  # the second one if a library that it loads is not there
        return False
    return True
