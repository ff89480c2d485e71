"""The exceptions of col: one class for each error code. docs/errors.md explains the codes."""

from __future__ import annotations

from .hints import Optional


class Error(RuntimeError):
    """What happened, where, and what to do next.

    `code` is the name of the error code. `rank` is the rank that the error is about, in the group; -1 if it is not about
    a single rank. `world_rank` is the rank of the same process in the job. `group` is the name of the group, or empty.
    `is_loss`: the ranks that live can go on by Group.renew(). True for PeerLost, and for an Aborted where a lost rank is the
    first cause, or where ranks have called renew().
    """

    code: str = "internal"

    def __init__(
        self, message: str, rank: int = -1, world_rank: int = -1, group: str = "", is_loss: bool = False
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.world_rank = world_rank
        self.group = group
        self.is_loss = is_loss or self.code == "peer_lost"

    def _members(self):
        return str(self), self.rank, self.world_rank, self.group, self.is_loss

    def __reduce__(self):
        return type(self), self._members()

    def __eq__(self, other):
        return type(self) is type(other) and self._members() == other._members()

    def __hash__(self):
        return hash((type(self), self._members()))


class InvalidArgument(Error, ValueError):
    """The call itself is wrong: a bad root, count, dtype, name, environment value."""

    code = "invalid_argument"


class NotInitialized(Error):
    """The group, or the library, has not been set up in this process."""

    code = "not_initialized"


class AlreadyInitialized(Error):
    """A group of that name exists here, or a rank joined twice."""

    code = "already_initialized"


class Mismatch(Error):
    """Ranks disagree: different operations, counts, dtypes, roots, world sizes, backends."""

    code = "mismatch"


class Timeout(Error, TimeoutError):
    """The deadline passed; the message names the ranks that did not arrive."""

    code = "timeout"


class PeerLost(Error, ConnectionError):
    """Another rank died, or left with operations unfinished."""

    code = "peer_lost"


class Aborted(Error):
    """The job, or this group, was ended on purpose or by an earlier error."""

    code = "aborted"


class Unavailable(Error):
    """This build or this machine cannot do it: no such backend, device or feature."""

    code = "unavailable"


class Resource(Error):
    """Memory, descriptors, disk space or shared memory ran out."""

    code = "resource"


class IoError(Error, OSError):
    """The operating system refused a file or socket operation."""

    code = "io"


class Internal(Error):
    """A bug in col; please report it with the message."""

    code: str = "internal"


class RankFailed(Error):
    """A call of col.run or col.ranks has failed: a rank raised, its process ended, or time is up (`code` is "timeout").

    `rank` is the rank that failed on its own, -1 if none did, on machine `host`, and `traceback` its traceback as text.
    `others` says what the other ranks waited in, and where they were; `tracebacks` has theirs, by rank. The exception
    itself is `__cause__`, if it could be pickled.
    """

    code = "aborted"

    def __init__(
        self, message: str, rank: int = -1, world_rank: int = -1, group: str = "", *, host: str = "", traceback: str = "",
        others: str = "", tracebacks: Optional[dict[int, str]] = None,
    ) -> None:
        super().__init__(message, rank, rank if world_rank < 0 else world_rank, group)
        self.host = host
        self.traceback = traceback
        self.others = others
        self.tracebacks = tracebacks or {}

    def __reduce__(self):
        return type(self), self._members()[:4], self.__dict__


BY_CODE = {kind.code: kind for kind in Error.__subclasses__() if kind is not RankFailed}
