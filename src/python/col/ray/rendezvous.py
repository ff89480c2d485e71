"""How the ranks of a group find each other in a Ray cluster.

Rank 0 serves a store of col's, and writes its address and its token into Ray's key-value store, under the job and the name
of the group. The others read that, and all meet in the store (ContextSpec::meet). Then rank 0 deletes what it wrote. So a
record that is there is one of a meeting that goes on, or of a rank 0 that has died in one: then nobody answers at its
address, and the others wait for the next rank 0. Each record has an id, and a rank meets under each at most once.
"""

from __future__ import annotations

import time

from .. import _col
from ..errors import Error, IoError, Mismatch, PeerLost, Timeout
from ..hints import Any, Mapping, Optional
from . import cluster

_KIND = "meeting"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02  # between two looks at the record
_CONNECT = 1.0  # to a rank 0 that has died, an attempt may hang
_WATCH = 0.3  # between two looks at the actors

# By the name of the group:
_met: dict[str, str] = {}  # the id of the last meeting of this process
_failed: dict[str, _col.StoreServer] = {}  # of the last attempt, if it failed: the others read there why


class Meeting:
    """One rank's attempt to meet the others. `members`: the actors that the driver has declared, with their ranks."""

    def __init__(
        self, name: str, rank: int, world_size: int, timeout: Optional[float], members: Mapping[str, int]
    ) -> None:
        self._name, self._rank, self._world_size = name, rank, world_size
        self._budget = 300.0 if timeout is None else timeout
        self._began = time.monotonic()
        self._rank_of = members
        self._next_watch = time.monotonic() + _WATCH
        self._is_over = False
        self.server: Optional[_col.StoreServer] = None  # rank 0's: the group needs it to its end

    def run(self) -> _col.Context:
        """Blocks until all ranks have come, or the time is up."""
        try:
            return self._lead() if self._rank == 0 and self._world_size > 1 else self._follow()
        except Error as error:
            if isinstance(error, IoError):
                error = IoError(f"{error} (after {time.monotonic() - self._began:.1f} s)", error.rank, error.world_rank)
            if self.server is not None:
                _failed[self._name] = self.server
            raise self._with_actors(error) from None
        finally:
            self._is_over = True

    def _lead(self) -> _col.Context:
        _failed.pop(self._name, None)
        self.server = _col.StoreServer(cluster.node_address())
        record = {
            "id": cluster.new_id("ray"),
            "url": self.server.url,
            "token": self.server.token,
            "actor": cluster.own_actor_id(),
        }
        while not cluster.put_record(_KIND, self._name, record, overwrite=False):
            other = cluster.get_record(_KIND, self._name)
            if other is None:
                continue
            if _answers(other):
                try:
                    return self._join(other)  # is refused, and so are all that wait for the other rank 0
                except Mismatch:
                    raise
                except Error:
                    pass  # the other one has ended meanwhile
            cluster.put_record(_KIND, self._name, record)
            break
        try:
            return self._join(record)
        finally:
            cluster.delete_record(_KIND, self._name, record["id"])

    def _follow(self) -> _col.Context:
        if self._world_size == 1:
            return self._context(None, None, cluster.new_id("ray"))
        pause = _FIRST_PAUSE
        while True:
            record = cluster.get_record(_KIND, self._name)
            if record is not None and record["id"] != _met.get(self._name) and _answers(record):
                return self._join(record)
            self._watch()
            if self._remaining() <= 0:
                raise Timeout(
                    f"rank 0 of group '{self._name}' has not come in {self._budget:g} s: no actor has called "
                    f"init_collective_group({self._world_size}, 0, group_name='{self._name}') in this Ray job, or it "
                    "ended before all ranks had come",
                    0, 0, self._name,
                )
            time.sleep(min(pause, max(self._remaining(), 0)))
            pause = min(2 * pause, _LONGEST_PAUSE * max(1.0, self._world_size / 32))

    def _join(self, record: Mapping[str, Any]) -> _col.Context:
        _met[self._name] = record["id"]
        return self._context(record["url"], record["token"], record["id"])

    def _context(self, url: Optional[str], token: Optional[str], job_id: str) -> _col.Context:
        try:
            # Serialized: Ray's own threads use a group beside the actor's.
            return _col.Context(
                self._rank, self._world_size, store=url, token=token, job_id=job_id,
                timeout=self._budget, spent=time.monotonic() - self._began, serialize=True, interrupt=self._watch,
            )
        except IoError as error:
            if self._rank == 0:
                raise
            raise PeerLost(f"rank 0 of group '{self._name}' has ended before all ranks had come: {error}", 0, 0) from None

    def _remaining(self) -> float:
        return self._began + self._budget - time.monotonic()

    def _watch(self) -> None:
        """Raises PeerLost if a declared member has died. libcol calls it while it waits."""
        if self._is_over or time.monotonic() < self._next_watch:
            return
        for actor, rank in self._rank_of.items():
            if cluster.has_died(actor):
                raise PeerLost(
                    f"rank {rank} of group '{self._name}' has died before all ranks had come: "
                    f"{cluster.describe_actor(actor)}; destroy the group, and declare it with other actors",
                    rank, rank, self._name,
                )
        self._next_watch = time.monotonic() + _WATCH * max(1.0, len(self._rank_of) / 32)

    def _with_actors(self, error: Error) -> Error:
        """The same error, with the group's name, and the actor and the node of the rank that it is about."""
        text = str(error)
        for ours, theirs in (
            (f"job '{_met.get(self._name)}'", f"group '{self._name}'"),
            (", and each start of a job its own job_id", ""),
            ("start all ranks with one store and one job_id, look at what those print", "look at what their actors do"),
        ):
            text = text.replace(ours, theirs)
        for actor, rank in self._rank_of.items():
            if rank == error.rank and actor not in text:
                text += f". Rank {rank} is {cluster.describe_actor(actor)}"
        if self._name not in text:
            text = f"group '{self._name}': {text}"
        return type(error)(text, error.rank, error.world_rank, self._name)


def _answers(record: Mapping[str, Any]) -> bool:
    """Whether the rank 0 of a record is still there."""
    import socket

    host, _, port = record["url"].removeprefix("tcp://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT).close()
    except OSError:
        return False
    return True
