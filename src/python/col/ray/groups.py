"""The groups of this process, by their names.

In a Ray cluster each group is a job of col's of its own: its ranks meet by themselves (rendezvous.py), and a group that
breaks does not touch another one. Elsewhere, the job of col.init() has the groups, and the store or the environment says who
is in them.
"""

from __future__ import annotations

from _thread import allocate_lock as Lock  # threading takes longer to import than all of col

from .. import _col
from ..errors import AlreadyInitialized, InvalidArgument, NotInitialized
from ..hints import Any, Mapping, Optional, Sequence
from . import cluster
from .types import backend_of


class Job:
    """What a group that has met through Ray shares with the groups made of it. server: on rank 0."""

    __slots__ = ("context", "server")

    def __init__(self, context: _col.Context, server: Optional[_col.StoreServer]) -> None:
        self.context, self.server = context, server

    def end(self) -> None:
        try:
            self.context.finalize()
        finally:
            if self.server is not None:
                self.server.stop()


class Member:
    """This process's place in a group that has met through Ray. declaration_id: of the driver's declaration that it came from."""

    __slots__ = ("declaration_id", "group", "job")

    def __init__(self, group: _col.Group, job: Job, declaration_id: Optional[str] = None) -> None:
        self.group, self.job, self.declaration_id = group, job, declaration_id

    def end(self, ends_job: bool = True) -> None:
        try:
            self.group.destroy()
        finally:
            if ends_job:
                self.job.end()


_members: dict[str, Member] = {}
_joining: dict[str, Lock] = {}  # a thread that joins a group does not hold up the other groups
_lock = Lock()  # guards both, for no longer than a look


def join(
    world_size: int, rank: int, backend: Any = "auto", name: str = "default", timeout: Optional[float] = None,
    members: Optional[Mapping[str, int]] = None, declaration_id: Optional[str] = None,
) -> _col.Group:
    """Joins a group. Blocks until all ranks have, for `timeout` seconds at most (None: 5 minutes).

    The timeout becomes that of the group's calls. `members`: actor ids and their ranks, for messages.
    """
    if not name or not isinstance(name, str):
        raise InvalidArgument(f"a group needs a name, which is a string; got {name!r}")
    if not cluster.meets_through_ray():
        return _col.init_collective_group(world_size, rank, backend_of(backend), name, timeout)
    if world_size <= 0 or not 0 <= rank < world_size:
        raise InvalidArgument(
            f"group '{name}': rank {rank} does not fit a world size of {world_size}: ranks count from 0 to world_size - 1"
        )
    with _lock:
        joining = _joining.setdefault(name, Lock())
    with joining:
        if name in _members:
            raise AlreadyInitialized(
                f"this process is in group '{name}' already; call destroy_collective_group('{name}') first", group=name
            )
        from .rendezvous import Meeting

        meeting = Meeting(name, rank, world_size, timeout, members or {})
        context = meeting.run()
        group, warning = _make(context, name, backend_of(backend), timeout)
        _members[name] = Member(group, Job(context, meeting.server), declaration_id)
        if warning is not None:  # last, as it may be an error here
            import warnings

            warnings.warn(warning, RuntimeWarning, stacklevel=3)
        return group


def _make(context: _col.Context, name: str, backend: str, timeout: Optional[float]) -> tuple[_col.Group, Optional[str]]:
    """The group, and what to warn of. Backend in types.py says what the names mean."""
    if backend == "gloo":
        return context.init_group(name, "shm" if context.is_on_one_host else "hosts", timeout), None
    if backend not in ("auto", "nccl"):
        return context.init_group(name, backend, timeout), None
    from . import devices

    gpu, why_none = devices.own(takes_assigned=backend == "nccl")
    if gpu is None:
        group = context.init_group(name, "auto", timeout)
    else:
        with _col.CurrentGpu(gpu):
            group = context.init_group(name, "auto", timeout)
    if backend != "nccl" or group.size == 1 or group.backend == "nccl":
        return group, None
    why = why_none or _col.nccl_unavailable_reason() or "another rank has no GPU, and says so itself, or two share one"
    return group, f"group '{name}': backend \"nccl\" was asked for, and all data goes through the host ({group.backend}): {why}"


def get(name: str = "default") -> _col.Group:
    """The group. Joins it first if the driver has declared it with this actor: blocks then until all ranks have joined."""
    member = _members.get(name)
    if member is not None:
        return member.group
    if not cluster.meets_through_ray():
        return _col.get_group(name)
    return _join_declared(name)


def find(name: str = "default") -> Optional[_col.Group]:
    """The group, or None if this process has not joined it."""
    member = _members.get(name)
    if member is not None:
        return member.group
    if not cluster.meets_through_ray() and _col.is_group_initialized(name):
        return _col.get_group(name)
    return None


def context_of(name: str) -> Optional[_col.Context]:
    """Where the module finds the group by its name: None for the job of col.init()."""
    get(name)
    member = _members.get(name)
    return None if member is None else member.job.context


def _join_declared(name: str) -> _col.Group:
    from .declare import declaration

    declared = declaration(name)
    actor = cluster.own_actor_id()
    if declared is None:
        raise NotInitialized(
            f"this process is in no group '{name}': call init_collective_group() in each of its actors, or "
            f"create_collective_group() in the driver", group=name,
        )
    if actor not in declared.ranks:
        raise NotInitialized(
            f"the driver has declared group '{name}' without "
            f"{'this process, which is no actor' if actor is None else cluster.describe_actor(actor)}", group=name,
        )
    try:
        return join(
            declared.world_size, declared.ranks[actor], declared.backend, name, declared.timeout, declared.ranks, declared.id
        )
    except AlreadyInitialized:  # another thread of this actor was faster
        member = _members.get(name)
        if member is None:
            raise
        return member.group


def add_part(parent: str, name: str, ranks: Sequence[int]) -> Optional[_col.Group]:
    """A group of some ranks of another one, by its own name. Collective over the other one's ranks."""
    group = get(parent)
    member = _members.get(parent)
    if name in _members:
        raise AlreadyInitialized(f"this process is in group '{name}' already", group=name)
    part = group.subgroup(ranks, name)
    if part is not None and member is not None:
        _members[name] = Member(part, member.job)
    return part


def leave(name: str = "default") -> bool:
    """Returns false if this process is not in the group. The declaration that it came from is gone then, as in Ray."""
    with _lock:
        member = _members.pop(name, None)
    if member is None:
        return not cluster.meets_through_ray() and _col.destroy_collective_group(name)
    try:
        if member.declaration_id is not None:
            from .declare import withdraw

            withdraw(name, member.declaration_id)
    finally:
        member.end(all(other.job is not member.job for other in list(_members.values())))
    return True
