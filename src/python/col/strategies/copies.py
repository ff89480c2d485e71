"""What the ranks of a Zero keep, so that the shard of one that is lost is not.

    rank 0   shard 0, copy of shard 2
    rank 1   shard 1, copy of shard 0      rank 1 is lost: rank 2 has its shard
    rank 2   shard 2, copy of shard 1

Each rank keeps its own shard and that of the rank before it, as they were after each of the last two steps: some ranks may be
a step ahead. Copies travel before the new parameters do. So once any rank has completed a step, all hold what they keep of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional, Sequence

from ..errors import PeerLost


class Offer(NamedTuple):
    """What a rank could supply."""

    cut: int
    shards: int  # of the cut
    steps: dict[int, list[int]]  # which of them the rank has, by step


@dataclass
class Held:
    """Of one cut into shards: another number of ranks cuts anew."""

    cut: int  # counts from 0
    count: int
    pieces: dict[int, dict[int, Any]] = field(default_factory=dict)  # by step, by shard

    def add(self, step: int, pieces: dict[int, Any]) -> None:
        self.pieces[step] = pieces
        for old in sorted(self.pieces)[:-2]:
            del self.pieces[old]

    def offer(self) -> Offer:
        return Offer(self.cut, self.count, {step: sorted(pieces) for step, pieces in self.pieces.items()})


class Choice(NamedTuple):
    """cut, shards, step: to go on from. suppliers: the rank that has shard 0, 1, … of it. newest: the newest cut that any has."""

    cut: int
    shards: int
    step: int
    suppliers: list[int]
    newest: int


def choose(offers: Sequence[Sequence[Offer]], checkpoint: str) -> Optional[Choice]:
    """The last step of which all shards are left; the same on all ranks. offers: of rank 0, 1, …. checkpoint: to go back to, in
    words. None if nobody has anything. Raises PeerLost if there is no such step: its rank is the first of those that are lost."""
    counts = {offer.cut: offer.shards for listed in offers for offer in listed}
    if not counts:
        return None
    found: dict[tuple[int, int], dict[int, int]] = {}  # by cut and step: shard to rank
    for rank, listed in enumerate(offers):
        for offer in listed:
            for step, shards in offer.steps.items():
                suppliers = found.setdefault((offer.cut, step), {})
                for shard in shards:
                    suppliers.setdefault(shard, rank)
    newest = max(counts)
    for cut, step in sorted(found, reverse=True):
        suppliers = found[cut, step]
        if len(suppliers) == counts[cut]:
            return Choice(cut, counts[cut], step, [suppliers[shard] for shard in range(counts[cut])], newest)
    count = counts[newest]
    left = {shard for (cut, _), suppliers in found.items() if cut == newest for shard in suppliers}
    shards = [shard for shard in range(count) if shard not in left]
    lost = sorted({rank for shard in shards for rank in (shard, (shard + 1) % count)})
    raise PeerLost(
        f"ranks {', '.join(map(str, lost))} of {count} are lost, and so is the optimizer's state of ranks "
        f"{', '.join(map(str, shards))}: the copy of a rank's state is on the next rank. Make a Zero of the ranks that are left, "
        f"and load() the last checkpoint: {checkpoint}",
        lost[0] if lost else -1,
    )
