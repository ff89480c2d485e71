"""The libraries that are compared, each as a way to make the same call on the same memory.

A class of one's own takes part by --with MODULE:CLASS. It has a name, is made on every rank with the ranks' col.Group, and
has call() as below.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any, Callable, Optional, Protocol

import numpy as np

from .. import _col
from ..errors import Error, InvalidArgument
from .results import elements_of


class Missing(Exception):
    """A contender that has not the call, and why."""


class Contender(Protocol):
    """One library's calls. The same on all ranks."""

    name: str

    def call(self, operation: str, x: Any, out: Any) -> Callable[[], object]:
        """A function that makes the call and returns when the result is there; it is called many times.

        x and out are numpy's, of float32. all_reduce adds in x and broadcast writes x, of rank 0; all_gather and
        reduce_scatter, which adds, read x and write out. Collective. Raises Missing where there is no such call.
        """
        ...


class Torch:
    """A process group of torch.distributed. The ranks agree over `world` which calls it has."""

    def __init__(self, name: str, group: Any, world: _col.Group) -> None:
        self.name, self.group, self.world = name, group, world

    def call(self, operation: str, x: Any, out: Any) -> Callable[[], object]:
        """As of Contender; it has made the call once when it returns."""
        return _first_that_works(self.name, self.world, *self._calls(operation, x, out))

    def _calls(self, operation: str, x: Any, out: Any) -> list[Callable[[], object]]:
        import torch
        import torch.distributed as dist

        source, target, group = torch.from_numpy(x), torch.from_numpy(out), self.group
        if operation == "all_reduce":
            return [lambda: dist.all_reduce(source, group=group)]
        if operation == "broadcast":
            return [lambda: dist.broadcast(source, 0, group=group)]
        if operation == "all_gather":
            parts = list(target.chunk(dist.get_world_size(group)))
            return [
                lambda: dist.all_gather_into_tensor(target, source, group=group),
                lambda: dist.all_gather(parts, source, group=group),
            ]
        return [
            lambda: dist.reduce_scatter_tensor(target, source, group=group),
            lambda: dist.reduce_scatter(target, list(source.chunk(dist.get_world_size(group))), group=group),
        ]


def _first_that_works(name: str, world: _col.Group, *calls: Callable[[], object]) -> Callable[[], object]:
    """Gloo has other calls in each version of torch; one that it has not is refused on all ranks, before anything is sent.

    Collective. col has all of them: an error of its own is none of those.
    """
    why = ""
    for call in calls:
        works = np.ones(1, np.int32)
        try:
            call()
        except Error:
            raise
        except (RuntimeError, ValueError) as error:
            why, works[0] = str(error).splitlines()[0], 0
        world.allreduce(works, op="min")
        if works[0]:
            return call
    raise Missing(f"{name} has no such call in this torch: {why or 'another rank was refused'}")


class Own:
    """col's Group, without torch in between."""

    name = "col.Group"

    def __init__(self, world: _col.Group) -> None:
        self.world = world

    def call(self, operation: str, x: Any, out: Any) -> Callable[[], object]:
        world = self.world
        calls: dict[str, Callable[[], object]] = {
            "all_reduce": lambda: world.allreduce(x), "all_gather": lambda: world.allgather(x, out),
            "reduce_scatter": lambda: world.reduce_scatter(x, out), "broadcast": lambda: world.broadcast(x),
        }
        return calls[operation]


class Mpi:
    """mpi4py, over an MPI that lets colrun's ranks be its own."""

    name = "mpi4py"

    def __init__(self, world: _col.Group) -> None:
        mpi: Any = importlib.import_module("mpi4py.MPI")
        found = mpi.COMM_WORLD.Get_size()
        if found != world.size:
            raise Missing(
                f"mpi4py is left out: its MPI sees {found} of {world.size} ranks; colrun's ranks are those of an MPI of the MPICH "
                "family, such as pip install mpich mpi4py has"
            )
        self.mpi = mpi

    def call(self, operation: str, x: Any, out: Any) -> Callable[[], object]:
        mpi, world = self.mpi, self.mpi.COMM_WORLD
        calls: dict[str, Callable[[], object]] = {
            "all_reduce": lambda: world.Allreduce(mpi.IN_PLACE, x), "all_gather": lambda: world.Allgather(x, out),
            "reduce_scatter": lambda: world.Reduce_scatter_block(x, out), "broadcast": lambda: world.Bcast(x),
        }
        return calls[operation]


def has_mpi() -> bool:
    """Nothing of it is imported."""
    return importlib.util.find_spec("mpi4py") is not None


def named(path: str, world: Optional[_col.Group] = None) -> Any:
    """The class of MODULE:CLASS, made with `world` if there is one. Errors: InvalidArgument."""
    module, _, name = path.partition(":")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidArgument(
            f"--with {path}: {error}; write MODULE:CLASS, of a module that python -c 'import MODULE' finds"
        ) from None
    return kind if world is None else kind(world)


def buffers(operation: str, size: int, ranks: int) -> tuple[Any, Any]:
    """x and out of a call whose larger buffer has about so many bytes."""
    whole = elements_of(operation, size, ranks)
    if operation == "all_gather":
        return np.empty(whole // ranks, np.float32), np.empty(whole, np.float32)
    if operation == "reduce_scatter":
        return np.empty(whole, np.float32), np.empty(whole // ranks, np.float32)
    return np.empty(whole, np.float32), np.empty(0, np.float32)
