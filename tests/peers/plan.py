"""What is measured in which turn, and what has to be left out for the time to suffice."""

import collections
import dataclasses

from contestants import CONTESTANTS, OVERLAP, RIVALS, takes_part

KIB, MIB = 1 << 10, 1 << 20
SIZES = (8, KIB, 32 * KIB, 256 * KIB, MIB, 32 * MIB)
QUICK_SIZES = (8, 32 * KIB, MIB, 32 * MIB)
BLOCKED = ("broadcast", "reduce", "gather", "scatter", "allgather", "reduce_scatter", "alltoall")
SPLITS = (("split", 0), ("split_barrier", 0))
BY_NAME = {contestant.name: contestant for contestant in CONTESTANTS}


@dataclasses.dataclass(frozen=True)
class Group:
    """Cells that are measured in one launch. Starting the ranks of an MPI takes longer than most cells."""

    cells: tuple
    ranks: tuple = ()  # empty: any
    families: tuple = ()  # empty: all


def each(operations, sizes):
    return tuple((operation, size) for operation in operations for size in sizes)


OVERLAPS = Group(each(OVERLAP, (32 * MIB,)), ranks=(2,))
GROUPS = (
    Group((("barrier", 0), *each(["allreduce"], SIZES), ("allreduce_in_place", 32 * MIB))),
    # By itself, so that nobody else's ranks need so much memory.
    Group((("allreduce", 128 * MIB), ("allreduce_in_place", 128 * MIB)), ranks=(2,)),
    Group((("allreduce", 128 * MIB),), ranks=(4, 8)),
    # Beside float32 of equal count.
    Group((("allreduce_bfloat16", MIB), ("allreduce", 2 * MIB),
           ("allreduce_bfloat16", 32 * MIB), ("allreduce", 64 * MIB)), ranks=(8,), families=("col",)),
    Group(each(BLOCKED, SIZES)),
    Group((("round_trip", 8), ("send", 4 * MIB), ("send", 32 * MIB)), ranks=(2,)),
    Group(SPLITS, ranks=(4, 8)),
    OVERLAPS,
)
# What shows in a few minutes whether a change was one. Few launches, as starting an MPI takes long.
QUICK_GROUPS = (
    Group((("barrier", 0), ("round_trip", 8), *each(("allreduce", *BLOCKED), QUICK_SIZES)), ranks=(2,)),
    Group((("barrier", 0), *each(("allreduce", *BLOCKED), QUICK_SIZES)), ranks=(4,)),
    Group((("barrier", 0), *SPLITS), ranks=(8,)),
    OVERLAPS,
)
OPERATIONS = tuple(dict.fromkeys(operation for group in GROUPS for operation, _ in group.cells))


@dataclasses.dataclass(frozen=True)
class Turn:
    """One group of cells, for every contestant once."""

    ranks: int
    cells: tuple
    contestants: tuple

    def of(self, contestant, left_out):
        """What is measured of it."""
        return [cell for cell in self.cells if takes_part(contestant, cell[0], self.ranks, cell[1])
                and (contestant.name, cell[0], self.ranks, cell[1]) not in left_out]


def turns(ranks, quick=False, operations=None, sizes=None, only=None, absent=()):
    """`absent`: families that are not here."""
    plan = []
    for n in ranks:
        for group in QUICK_GROUPS if quick else GROUPS:
            cells = tuple(cell for cell in group.cells if not (operations and cell[0] not in operations)
                          and not (sizes and cell[1] and cell[1] not in sizes))
            contestants = tuple(contestant for contestant in CONTESTANTS if not (only and contestant.name not in only)
                                and contestant.family not in absent and (contestant.quick or not quick)
                                and not (group.families and contestant.family not in group.families))
            if cells and contestants and not (group.ranks and n not in group.ranks):
                plan.append(Turn(n, cells, contestants))
    return plan


class Costs:
    """Seconds that the last round took: of each (contestant, operation, ranks, bytes), and of all starts and probes."""

    def __init__(self, launches, whole):
        self.seconds, self.us = {}, {}
        self.starts = whole - sum(launch["seconds"] for launch in launches)
        for launch in launches:
            lines = {(line["operation"], line["bytes"]): line for line in launch["lines"]}
            rest = launch["seconds"]
            silent = []
            for cell in map(tuple, launch["cells"]):
                key = (launch["contestant"], cell[0], launch["ranks"], cell[1])
                line = lines.get(cell, {})
                self.us[key] = line.get("median_us")
                self.seconds[key] = line.get("spent_s", 0.0)
                rest -= self.seconds[key]
                if launch["trouble"] and cell not in lines:
                    silent.append(key)
            # What a launch that failed has cost is the fault of the cells that it gave no time for.
            for key in silent:
                self.seconds[key] = rest / len(silent)
            self.starts += 0.0 if silent else rest

    def total(self, left_out):
        return self.starts + sum(seconds for key, seconds in self.seconds.items() if key not in left_out)


def dispensable(costs, margin):
    """Rivals' cells that are at least `margin` times as slow as another's, so that no ratio depends on them."""
    # The three cells of an overlap are compared with each other.
    rivals = [key for key in costs.us if BY_NAME[key[0]].family in RIVALS and key[1] not in OVERLAP]
    fastest = collections.defaultdict(lambda: float("inf"))
    for key in rivals:
        fastest[key[1:]] = min(fastest[key[1:]], costs.us[key] or float("inf"))
    return {key for key in rivals if costs.us[key] is None
            or costs.us[key] >= margin * fastest[key[1:]] > 0 and costs.us[key] > fastest[key[1:]]}


def leave_out(costs, rounds, seconds, left_out):
    """What further rounds do without, if need be, so that so many take no longer than `seconds`. The slowest first."""
    chosen = set(left_out)
    for margin in (2.0, 1.25):
        candidates = dispensable(costs, margin) - chosen
        for key in sorted(candidates, key=lambda key: costs.seconds[key], reverse=True):
            if rounds * costs.total(chosen) <= seconds:
                return chosen
            chosen.add(key)
    return chosen


def affordable(costs, rounds, seconds, left_out):
    """So many of the rounds fit into the seconds, a little more being allowed."""
    each_takes = costs.total(left_out)
    return rounds if rounds * each_takes <= 1.15 * seconds else max(0, int(1.15 * seconds / each_takes))
