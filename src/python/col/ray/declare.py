"""Groups that a driver declares: who is in them, before any of them knows.

A declaration is a record in Ray's key-value store. Each of the actors joins at its first call that names the group, and
waits there for the others; so an actor may start, or be declared, later than others have called.
"""

from __future__ import annotations

from ..errors import AlreadyInitialized, InvalidArgument
from ..hints import Any, Mapping, Optional, Sequence
from . import cluster
from .types import backend_of

_KIND = "group"

_handles: dict[str, tuple[str, list[Any]]] = {}  # in the driver: the declaration's id and the actors of its groups


class Declaration:
    """A group as the driver has declared it. `ranks`: by the ids of the actors."""

    __slots__ = ("backend", "id", "ranks", "timeout", "world_size")

    def __init__(
        self, id: str, world_size: int, ranks: Mapping[str, int], backend: str, timeout: Optional[float]
    ) -> None:
        self.id, self.world_size, self.ranks, self.backend, self.timeout = id, world_size, ranks, backend, timeout

    def record(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def declaration(group_name: str = "default") -> Optional[Declaration]:
    """None if there is none of that name in this Ray job."""
    record = cluster.get_record(_KIND, group_name)
    return None if record is None else Declaration(**record)


def withdraw(group_name: str, declaration_id: str) -> None:
    """Nobody joins by it any more. A later declaration of the same name stays."""
    cluster.delete_record(_KIND, group_name, declaration_id)


def seconds_of(gloo_timeout: Optional[int], timeout: Optional[float]) -> Optional[float]:
    """Ray's timeout is in milliseconds, col's in seconds."""
    if timeout is None and gloo_timeout is not None:
        return gloo_timeout / 1000
    return timeout


def create_collective_group(
    actors: Sequence[Any], world_size: Optional[int] = None, ranks: Optional[Sequence[int]] = None, backend: Any = "auto",
    group_name: str = "default", gloo_timeout: Optional[int] = None, *, timeout: Optional[float] = None,
) -> None:
    """Declares actors as a group. For the driver, or any process of the Ray job; returns at once.

    ranks[i] is the rank of actors[i]; without it, the order of the list. A world_size above the number of actors leaves
    ranks to others, which call init_collective_group. timeout: of making the group and of its calls, in seconds
    (None: 5 minutes); gloo_timeout: the same in milliseconds, Ray's name.

    Errors: InvalidArgument, AlreadyInitialized (the name is in use, and not all of its actors have died).
    """
    actors = list(actors)
    world_size = len(actors) if world_size is None else world_size
    ranks = list(range(len(actors))) if ranks is None else list(ranks)
    _check(actors, world_size, ranks, group_name)
    made = Declaration(
        cluster.new_id("declared"), world_size,
        {actor._actor_id.hex(): rank for actor, rank in zip(actors, ranks)}, backend_of(backend),
        seconds_of(gloo_timeout, timeout),
    )
    while not cluster.put_record(_KIND, group_name, made.record(), overwrite=False):
        other = declaration(group_name)
        if other is None:
            continue
        if not all(cluster.has_died(actor) for actor in other.ranks):
            raise AlreadyInitialized(
                f"group '{group_name}' is declared already, with other actors or the same; call "
                f"destroy_collective_group('{group_name}') first, or take another name", group=group_name,
            )
        withdraw(group_name, other.id)
    _handles[group_name] = (made.id, actors)


def declare_collective_group(
    actors: Sequence[Any], options: Optional[Mapping[str, Any]] = None, **more: Any
) -> None:
    """create_collective_group by its older name. The options may be a mapping, and `rank` another name of `ranks`."""
    given = {**(options or {}), **more}
    if "rank" in given:
        given.setdefault("ranks", given.pop("rank"))
    create_collective_group(actors, **given)


def _check(actors: Sequence[Any], world_size: int, ranks: Sequence[int], group_name: str) -> None:
    if not group_name or not isinstance(group_name, str):
        raise InvalidArgument(f"a group needs a name, which is a string; got {group_name!r}")
    if not actors:
        raise InvalidArgument(f"group '{group_name}': no actors")
    if not all(hasattr(actor, "_actor_id") for actor in actors):
        raise InvalidArgument(
            f"group '{group_name}': the actors must be handles, as Worker.remote() returns them; for tasks, call "
            "init_collective_group() in each"
        )
    if len(ranks) != len(actors):
        raise InvalidArgument(f"group '{group_name}': {len(actors)} actors, but {len(ranks)} ranks; give one for each")
    if len({actor._actor_id for actor in actors}) != len(actors):
        raise InvalidArgument(f"group '{group_name}': an actor is in the list twice")
    twice = next((rank for i, rank in enumerate(ranks) if rank in ranks[:i]), None)
    if twice is not None:
        raise InvalidArgument(f"group '{group_name}': two actors have rank {twice}; give each its own")
    for rank in ranks:
        if not isinstance(rank, int) or not 0 <= rank < world_size:
            raise InvalidArgument(
                f"group '{group_name}': rank {rank!r} does not fit a world size of {world_size}: ranks count from 0 to "
                "world_size - 1"
            )


def undeclare(group_name: str) -> Optional[list[Any]]:
    """The driver's part of destroy_collective_group: withdraws the declaration, and returns the actors to tell."""
    declaration_id, actors = _handles.pop(group_name, (None, None))
    if declaration_id is not None:
        withdraw(group_name, declaration_id)
        return actors
    declared = declaration(group_name)
    if declared is not None:
        withdraw(group_name, declared.id)
        return []
    return None
