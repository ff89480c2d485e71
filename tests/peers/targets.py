"""What col is meant to reach beside the others, and what it reaches."""

import dataclasses
import typing

from comparison import BEHIND, geometric_mean
from contestants import OVERLAP
from plan import BLOCKED, KIB, MIB

# Geometric means of best rival ÷ col that are wanted, by number of ranks and range of sizes.
RANGES = (("up to 1 KiB", 0, KIB), ("32 KiB to 1 MiB", 32 * KIB, MIB), ("from 32 MiB", 32 * MIB, 1 << 62))
MEANS = {2: (1.05, 1.15, 1.3), 4: (1.3, 1.5, 1.5), 8: (1.5, 1.5, 1.5)}


def mean_of(rows, least, most):
    """(the mean, of how many cells) over the collectives; rows are of one number of ranks and one state."""
    ratios = [ratio.value for row in rows if row.key[0] in ("barrier", "allreduce", *BLOCKED)
              and least <= row.key[2] <= most and (ratio := row.to_best())]
    return geometric_mean(ratios), len(ratios)


@dataclasses.dataclass(frozen=True)
class Target:
    cells: str  # in words
    wanted: str  # in words
    key: tuple  # (operation, ranks, bytes); None: every row
    value: typing.Callable  # of a row; the less the better. None where it was not measured
    most: float
    fastest_state_only: bool = False


def to_bound(name):
    return lambda row: row.quotient(name, "bare")


def to_best(row):
    ratio = row.to_best()
    return 1 / ratio.value if ratio else None


def alloc_to_private(row):
    if row.key[0] in OVERLAP:
        return None  # work as long as the call, which is not the same for both
    # By the interval, as it says who is behind; one round has none.
    ratio = row.ratio("col-alloc", "col")
    return 1 / ratio.high if ratio and ratio.rounds > 1 else None


TARGETS = (
    Target("allreduce of 8 B, 2 ranks, fastest state", "≤ 2.4 × a cache line's round trip", ("allreduce", 2, 8),
           to_bound("col"), 2.4, fastest_state_only=True),
    Target("half a round trip of 8 B", "≤ 1.1 × the best rival's time", ("round_trip", 2, 8), to_best, 1.1),
    Target("allreduce of 32 MiB, 2 ranks", "≤ 1.3 × the bound", ("allreduce", 2, 32 * MIB), to_bound("col"), 1.3),
    Target("allreduce of 32 MiB, 8 ranks", "≤ 1.6 × the bound", ("allreduce", 8, 32 * MIB), to_bound("col"), 1.6),
    Target("the same in col::alloc, 2 ranks", "≤ 1.1 × the bound", ("allreduce", 2, 32 * MIB), to_bound("col-alloc"),
           1.1),
    Target("the same in col::alloc, 8 ranks", "≤ 1.1 × the bound", ("allreduce", 8, 32 * MIB), to_bound("col-alloc"),
           1.1),
    Target("col::alloc, all cells", "not behind private memory", None, alloc_to_private, 1 / BEHIND),
    Target("split and its end, 8 ranks", "≤ 300 µs", ("split", 8, 0), lambda row: row.us("col"), 300),
    Target("start, work, wait; 2 ranks", "≤ 1.05 × the call, then the work", ("beside_compute", 2, 32 * MIB),
           lambda row: row.beside_blocking, 1.05),
    Target("start, work with 100 tests, wait; 2 ranks", "≤ 1.05 × the call, then the work",
           ("beside_tests", 2, 32 * MIB), lambda row: row.beside_blocking, 1.05),
    Target("allreduce of bfloat16, 32 MiB, 8 ranks", "≤ 0.7 × the time of as many float32",
           ("allreduce_bfloat16", 8, 32 * MIB), lambda row: row.beside_float32, 0.7),
)


def judged(measured, cell_name):
    """Lines of a table: [cells, wanted, state, reached, verdict]."""
    for row in measured.rows:
        row.beside_float32 = beside_float32(row, measured.rows)
        row.beside_blocking = beside_blocking(row, measured.rows)
    for target in TARGETS:
        for state in measured.states[:1] if target.fastest_state_only else measured.states:
            found = [(value, row) for row in measured.rows if row.state == state and target.key in (None, row.key)
                     and (value := target.value(row))]
            if not found:
                continue
            value, where = max(found, key=lambda pair: pair[0])
            missed = sum(value > target.most for value, _ in found)
            place = f" ({cell_name(where.key)}; missed in {missed} of {len(found)})" if target.key is None else ""
            yield [target.cells, target.wanted, state.name, f"{value:.3g}{place}", "missed" if missed else "met"]


def col_beside(row, rows, key):
    """col's time in a row over that in another row of the same state."""
    others = [other.us("col") for other in rows if other.key == key and other.state == row.state and other.us("col")]
    return row.us("col") / others[0] if others and row.us("col") else None


def beside_float32(row, rows):
    operation, ranks, bytes_ = row.key
    return col_beside(row, rows, ("allreduce", ranks, 2 * bytes_)) if operation == "allreduce_bfloat16" else None


def beside_blocking(row, rows):
    operation, ranks, bytes_ = row.key
    return col_beside(row, rows, ("then_compute", ranks, bytes_)) if operation in OVERLAP[1:] else None
