"""What col is meant to reach beside the others, and by how much it does or does not."""

import dataclasses
import math
import statistics
import typing

KIB, MIB = 1 << 10, 1 << 20
BLOCKED = ("broadcast", "reduce", "allgather", "reduce_scatter", "gather", "scatter", "alltoall")
MPI = ("openmpi", "mpich")
NOISE = 0.95  # within which nobody is behind


# Ratios of a row, above 1 where col is the faster one; None where a side has no time.
def to_best(row):
    return row.ratio(row.best(MPI))


def to_default(row):
    return row.ratio(row.best(MPI, only_default=True))


def to_gloo(row):
    return row.ratio(row.best(("gloo",)))


def to_bound(row):
    return row.quotient("bare", "col")


def alloc_to_bound(row):
    return row.quotient("bare", "col-alloc")


def to_float32(row):
    return row.beside_float32


def geometric_mean(values):
    values = [value for value in values if value]
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


@dataclasses.dataclass(frozen=True)
class Target:
    cells: str  # in words
    chosen: typing.Callable  # of (operation, ranks, bytes)
    wanted: str  # in words
    ratio: typing.Callable
    least: float  # that the ratio may be, in the worst cell or in the mean; 1 / x where times are meant to be at most x
    mean: bool = False
    as_time: bool = False  # shown the other way round: col's time over the other's
    contestant: str = "col"  # whose target it is


def allreduce(least, most, *ranks):
    return lambda operation, n, bytes_: operation == "allreduce" and n in ranks and least <= bytes_ <= most


def small(most, *ranks):
    return lambda operation, n, bytes_: operation in ("allreduce", "barrier") and n in ranks and bytes_ <= most


def one(name, size):
    return lambda operation, n, bytes_: operation == name and bytes_ == size


def blocked(*ranks):
    return lambda operation, n, bytes_: operation in BLOCKED and n in ranks


def large_in_place(operation, n, bytes_):
    return operation == "allreduce_in_place" and n == 2 and bytes_ >= 32 * MIB


def sums_of_bfloat16(operation, n, bytes_):
    return operation == "allreduce_bfloat16" and bytes_ >= MIB


LARGE_2 = "allreduce, 32 to 128 MiB, 2 ranks", allreduce(32 * MIB, 128 * MIB, 2)
LARGE_N = "allreduce, 32 to 128 MiB, 4 and 8 ranks", allreduce(32 * MIB, 128 * MIB, 4, 8)
IN_PLACE = "allreduce in place, 32 and 128 MiB, 2 ranks, col::alloc", large_in_place
SMALL_2 = "allreduce of 8 B and barrier, 2 ranks", small(8, 2)
SMALL_N = "allreduce up to 1 KiB and barrier, 4 and 8 ranks", small(KIB, 4, 8)
MIDDLE = "allreduce, 1 KiB to 1 MiB", allreduce(KIB, MIB, 2, 4, 8)
SEND = "send of 4 MiB", one("send", 4 * MIB)
TRIP = "half a round trip of 8 B", one("round_trip", 8)
BFLOAT16 = "allreduce of bfloat16, 8 ranks, 1 MiB and more", sums_of_bfloat16
GLOO = "everything", lambda *_: True
GLOO_SMALL = "everything up to 32 KiB", lambda operation, n, bytes_: bytes_ <= 32 * KIB

TARGETS = [
    Target(*LARGE_2, "not behind the best rival", to_best, 1),
    Target(*LARGE_2, "≥ 3 × a default rival's speed", to_default, 3),
    Target(*LARGE_2, "≤ 1.4 × the bound's time", to_bound, 1 / 1.4, as_time=True),
    Target(*IN_PLACE, "≤ 1.15 × the bound's time", alloc_to_bound, 1 / 1.15, as_time=True, contestant="col-alloc"),
    Target(*LARGE_N, "≥ 2 × the best rival's speed", to_best, 2),
    Target(*LARGE_N, "≤ 1.7 × the bound's time", to_bound, 1 / 1.7, as_time=True),
    Target(*SMALL_2, "not behind the best rival", to_best, 1),
    Target(*SMALL_2, "≤ 2 × a cache line's round trip", to_bound, 1 / 2, as_time=True),
    Target(*SMALL_N, "≥ 2 × the best rival's speed", to_best, 2),
    Target(*MIDDLE, "not behind the best rival", to_best, 1),
    Target(*MIDDLE, "≥ 1.7 × the best rival's speed in the mean", to_best, 1.7, mean=True),
    Target(*MIDDLE, "≥ 2.5 × a default rival's speed in the mean", to_default, 2.5, mean=True),
    *(Target(f"broadcast to alltoall, 8 B to 32 MiB, {n} ranks", blocked(n), wanted, ratio, least, mean=mean)
      for n in (2, 4, 8)
      for wanted, ratio, least, mean in (
          ("behind the best rival by no more than noise (5 %)", to_best, NOISE, False),
          ("≥ 1.3 × the best rival's speed in the mean", to_best, 1.3, True),
          ("≥ 2 × a default rival's speed in the mean", to_default, 2, True))),
    Target(*SEND, "≥ 0.9 × one core's memcpy speed", to_bound, 0.9),
    Target(*SEND, "not behind the best rival", to_best, 1),
    Target(*TRIP, "not behind the best rival", to_best, 1),
    Target(*BFLOAT16, "≤ 0.7 × the time of as many float32", to_float32, 1 / 0.7, as_time=True),
    Target(*GLOO, "≥ 5 × Gloo's speed", to_gloo, 5),
    Target(*GLOO_SMALL, "≥ 50 × Gloo's speed", to_gloo, 50),
]


def judged(target, rows, name_of):
    """The target's line: [cells, wanted, reached, verdict]; None when nothing of it was measured."""
    chosen = [row for row in rows if target.chosen(*row.key)]
    failed = [row for row in chosen if row.failed(target.contestant)]
    if failed:
        return [target.cells, target.wanted, "–", f"missed: no right result ({name_of(failed[0].key)})"]
    found = [(ratio, row) for row in chosen if (ratio := target.ratio(row))]
    if not found:
        return None
    worst, where = min(found, key=lambda pair: pair[0])
    value = geometric_mean(ratio for ratio, _ in found) if target.mean else worst
    shown = f"{1 / value if target.as_time else value:.2f} ×"
    if not target.mean and len(found) > 1:
        shown += f" ({name_of(where.key)})"
    margin = abs(value / target.least - 1)
    if value >= target.least:
        return [target.cells, target.wanted, shown, f"met, {margin:.0%} to spare"]
    verdict = f"missed: col would have to be {target.least / value:.2f} × as fast"
    if not target.mean and len(found) > 1:
        missed = sum(ratio < target.least for ratio, _ in found)
        verdict += f"; in {missed} of {len(found)} cells"
    return [target.cells, target.wanted, shown, verdict]


def correctness(rows):
    """bfloat16 is right only where it is the rounded float32 sum in rank order."""
    names = ("col", "col-alloc")
    asked = [(row, name) for row in rows if sums_of_bfloat16(*row.key) for name in names if name in row.by_name]
    if not asked:
        return []
    right = sum(not row.failed(name) for row, name in asked)
    return [[BFLOAT16[0], "every element the rounded float32 sum in rank order", f"in {right} of {len(asked)} cells",
             "met" if right == len(asked) else "missed"]]


def lines(rows, name_of):
    judged_ones = [line for target in TARGETS if (line := judged(target, rows, name_of))]
    return judged_ones + correctness(rows)
