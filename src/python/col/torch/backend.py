"""The class of torch's backends over a group of col, where torch wants one.

A group of backend "col" alone is a process group itself, and has a stand-in for those of torch's C++ that ask for the backend of
a device. Beside another backend, as in "cpu:col,cuda:nccl", the group is torch's own, and the stand-in is all that it has of col:
torch's C++ calls it, and gives the program a Work of its own around what it returns.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import torch

from ..errors import Unavailable

BASE: Any = getattr(torch._C._distributed_c10d, "Backend", None)
OPTIONS: Any = getattr(BASE, "Options", object)


class Options(OPTIONS):
    """torch's own. A class in Python has room for what torch's Python writes there, as a name, and torch 2.8's C++ has no place for."""


# Names by which C++ asks, beside those of the class in Python.
_MORE = (
    "getBackendName", "start_coalescing", "end_coalescing", "_set_sequence_number_for_group", "_get_sequence_number_for_group",
    "supports_tensor_alloc", "allocate_tensor", "get_group_store",
)
_PROPERTIES = (
    "supports_splitting", "supports_coalescing", "supports_shrinking", "supports_window", "supports_reconfigure",
    "_supports_time_estimate", "options",
)

_kept: set[Any] = set()  # until they are shut down: C++ may hold no more than its half of them


def is_beside(options: Any) -> bool:
    """Asks the group that torch makes for another backend. Older torch does not tell, and drops the other."""
    group = getattr(options, "process_group", None)
    if group is None:
        return False
    return bool(group._device_types) or group._get_backend_name() not in ("custom", "undefined")


def stand_in_of(kind: type) -> Any:
    """A class of backends that pass every call on to their group, of class `kind`. None for an older torch, which does not ask."""
    try:
        BASE(0, 1)
    except TypeError:
        return None

    def passed_on(name: str) -> Any:
        def call(backend: Any, *args: Any, **more: Any) -> Any:
            return getattr(backend.group(), name)(*args, **more)

        return call

    def init(backend: Any, group: Any) -> None:
        BASE.__init__(backend, group.rank(), group.size())
        backend.group = ref(group)

    def of(group: Any) -> Any:
        """One that holds its group, for as long as torch may call it."""
        backend = stand_in(group)
        backend.group = lambda: group
        _kept.add(backend)
        return backend

    def shutdown(backend: Any) -> None:
        _kept.discard(backend)
        backend.group().shutdown()

    def split(backend: Any, store: Any, ranks: Any, opts: Any) -> Any:
        group = backend.group().split_group(list(ranks), opts=opts, group_name=opts.group_name)
        if group is None:  # torch's C++ ends the process when a backend in Python returns None
            raise Unavailable(
                "split_group: this rank is in none of the lists, which torch cannot have of a group with several backends; add a "
                "list of its own: [[0, 1], [2]]")
        return of(group)

    calls = [name for name in vars(kind) if name[0] != "_" and callable(getattr(BASE, name, None))]
    members: dict[str, Any] = {name: passed_on(name) for name in [*calls, *_MORE]}

    def asked(name: str) -> Any:
        return property(lambda backend: getattr(backend.group(), name))

    members.update((name, asked(name)) for name in _PROPERTIES)
    members.update(__init__=init, of=staticmethod(of), shutdown=shutdown, abort=shutdown, split=split)
    stand_in: Any = type("StandIn", (BASE,), members)
    return stand_in
