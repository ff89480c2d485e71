"""Times calls of several contenders in turns, and verifies each result whole.

A sample is the time of one call on the slowest rank, from a moment at which all ranks start. All ranks are on one host and read
one clock. Before each call its memory gets new values, small whole numbers whose sums are exact in float32; afterwards every
element of the result is compared. Neither is timed.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, Callable, Optional, Sequence

import numpy as np

from .. import _col
from .contenders import Contender, Missing, Torch, buffers

PERIOD = 31  # of the values; a prime, so that blocks of the usual sizes begin at different places of it
UNTOUCHED = -1.0
LEAST, MOST = 3, 200  # samples of a call in one launch


class Wrong(Exception):
    """A result that is not what it must be."""


class Clock:
    """A common start for all ranks."""

    def __init__(self, world: _col.Group, processors: int) -> None:
        self.world = world
        self.ahead = 5e-6 if world.size <= processors else 50e-6  # seconds; ranks that take turns are there later
        self._moment = np.zeros(1)

    def time(self, call: Callable[[], object]) -> float:
        """Seconds from the start to the end of the call on this rank. Collective."""
        moment = self._moment
        moment[0] = perf_counter() + self.ahead
        self.world.allreduce(moment, op="max")
        begin = float(moment[0])
        while perf_counter() < begin:
            pass
        call()
        return perf_counter() - begin

    def slowest(self, seconds: Sequence[float]) -> list[float]:
        """The time of every sample on the slowest rank. Collective."""
        array = np.array(seconds)
        if len(array):
            self.world.allreduce(array, op="max")
        return [float(each) for each in array]


class Data:
    """The values before and after one call on one rank."""

    def __init__(self, operation: str, x: Any, out: Any, rank: int, ranks: int) -> None:
        self.operation, self.x, self.out, self.rank, self.ranks = operation, x, out, rank, ranks

    def _values(self, rank: int, begin: int, round: int) -> Any:
        """A period of those that a rank puts into its input, from element `begin` on.

        Rank 0 counts twice: the sum over as many ranks as the period is long would be the same everywhere.
        """
        values = (np.arange(PERIOD) + begin + 3 * rank + 5 * round) % PERIOD
        return (values * (2 if rank == 0 else 1)).astype(np.float32)

    def fill(self, round: int) -> None:
        self.out.fill(UNTOUCHED)
        if self.operation == "broadcast" and self.rank > 0:
            self.x.fill(UNTOUCHED)
            return
        values, whole = self._values(self.rank, 0, round), len(self.x) // PERIOD * PERIOD
        self.x[:whole].reshape(-1, PERIOD)[:] = values
        self.x[whole:] = values[: len(self.x) - whole]

    def problem(self, round: int) -> Optional[str]:
        """The first element that is wrong; None if none is."""
        ranks = range(self.ranks)
        if self.operation == "all_gather":
            block = len(self.x)
            checks = [(self.out[r * block : (r + 1) * block], self._values(r, 0, round), r * block) for r in ranks]
        elif self.operation == "reduce_scatter":
            begin = self.rank * len(self.out)
            checks = [(self.out, np.sum([self._values(r, begin, round) for r in ranks], 0), 0)]
        elif self.operation == "broadcast":
            checks = [(self.x, self._values(0, 0, round), 0)]
        else:
            checks = [(self.x, np.sum([self._values(r, 0, round) for r in ranks], 0), 0)]
        for got, values, begin in checks:
            whole = len(got) // PERIOD * PERIOD
            differs = [got[:whole].reshape(-1, PERIOD) != values, got[whole:] != values[: len(got) - whole]]
            if differs[0].any() or differs[1].any():
                place = int(np.flatnonzero(np.concatenate([each.reshape(-1) for each in differs]))[0])
                return f"element {begin + place} of rank {self.rank} is {got[place]:g}, not {values[place % PERIOD]:g}"
        return None


def agree(world: _col.Group, problem: Optional[str], who: str) -> None:
    """Raises Wrong on all ranks if one has a problem; the first of those that have says it. Collective."""
    first = np.array([world.size if problem is None else world.rank])
    world.allreduce(first, op="min")
    if first[0] < world.size:
        raise Wrong(f"{who}: {problem}" if world.rank == first[0] else "")


def order(size: int, turn: int, round: int) -> list[int]:
    """The order in a round. Each begins once in `size` rounds; odd rounds go backwards: nobody always follows the same."""
    step = -1 if round % 2 else 1
    return [(turn + round + step * i) % size for i in range(size)]


def measure(
    clock: Clock, contenders: Sequence[Contender], operation: str, size: int, seconds: float, turn: int,
) -> list[dict[str, Any]]:
    """One row: for each contender its samples in seconds, or the reason why it has none. Collective; raises Wrong.

    `size` is in bytes, `seconds` is how long the samples of all of them may take, about, and `turn` who begins.
    """
    world = clock.world
    x, out = buffers(operation, size, world.size)
    data = Data(operation, x, out, world.rank, world.size)
    rows: list[dict[str, Any]] = [{"backend": contender.name, "seconds": []} for contender in contenders]
    calls: list[tuple[int, Callable[[], object]]] = []
    for place, contender in enumerate(contenders):
        data.fill(0)
        try:
            call = contender.call(operation, x, out)
            if not isinstance(contender, Torch):  # that one has made it, to see that it works
                call()
            calls.append((place, call))
        except Missing as missing:
            rows[place]["note"] = str(missing)
    problems: list[Optional[str]] = [None] * len(contenders)

    def once(place: int, call: Callable[[], object], round: int) -> float:
        data.fill(round)
        took = clock.time(call)
        problems[place] = problems[place] or data.problem(round)
        return took

    def all_once(round: int) -> list[tuple[int, float]]:
        return [(calls[i][0], once(*calls[i], round)) for i in order(len(calls), turn, round)]

    all_once(1)
    trial = sum(clock.slowest([took for _, took in all_once(2)]))
    for round in range(3, 3 + int(min(max(seconds / max(trial, 1e-9), LEAST), MOST))):
        for place, took in all_once(round):
            rows[place]["seconds"].append(took)
    for place, contender in enumerate(contenders):
        agree(world, problems[place], f"{contender.name}, {operation} of {size} bytes")
        rows[place]["seconds"] = clock.slowest(rows[place]["seconds"])
    return rows
