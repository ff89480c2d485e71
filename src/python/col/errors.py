"""The exceptions of col: one class for each error code. docs/errors.md explains the codes."""


class Error(RuntimeError):
    """What happened, where, and what to do next.

    `code` is the name of the error code. `rank` is the rank that the error is about, in the group; -1 if it is not about
    a single rank. `world_rank` is the rank of the same process in the job. `group` is the name of the group, or empty.
    """

    code: str = "internal"

    def __init__(self, message: str, rank: int = -1, world_rank: int = -1, group: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.world_rank = world_rank
        self.group = group

    def _members(self):
        return str(self), self.rank, self.world_rank, self.group

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


BY_CODE = {
    kind.code: kind
    for kind in (
        InvalidArgument, NotInitialized, AlreadyInitialized, Mismatch, Timeout, PeerLost, Aborted, Unavailable, Resource,
        IoError, Internal,
    )
}
