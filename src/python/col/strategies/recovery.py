"""A group without the ranks that have died, and with those that have joined."""

from __future__ import annotations

from .._col import Group
from ..errors import InvalidArgument, Mismatch, PeerLost, Timeout


def shrink(group: Group, lost: int = -1) -> Group:
    """Collective over the ranks that live. lost: the rank that an error of this group was about, or -1.

    Several may have died, and ranks may know of different ones. An attempt that fails does so on all ranks, with the same
    error, which names one more; so all leave out the same ranks in the next attempt.
    """
    excluded = {lost} - {-1, group.rank}
    for _ in range(group.size + 1):
        try:
            return group.shrink(sorted(excluded))
        except Mismatch:
            excluded = set()  # they knew of different ones: begin with nobody, and be told
        except (PeerLost, Timeout) as error:
            if error.rank in (-1, group.rank) or error.rank in excluded:
                raise
            excluded.add(error.rank)
    return group.shrink(sorted(excluded))


def has_epochs(group: Group) -> bool:
    """Whether it was not made from another group."""
    try:
        return group.source >= 0
    except InvalidArgument:
        return False


def go_on(group: Group, steps: int, wait: float, lost: int) -> Group:
    """The next epoch of a group that has some, maybe with ranks that have joined; of another, a smaller group beside it."""
    return renew(group, steps, wait) if has_epochs(group) else shrink(group, lost)


def renew(group: Group, progress: int, wait: float) -> Group:
    """Collective over the ranks that live. One that lives and does not call is left out, after a timeout that names it on all."""
    excluded: list[int] = []
    while True:
        try:
            renewed = group.renew(wait=wait, progress=progress, excluded=sorted(excluded))
        except Timeout as error:
            if error.rank in (-1, group.rank, *excluded):
                raise
            excluded.append(error.rank)
        else:
            assert renewed is not None  # this rank is not among the excluded
            return renewed
