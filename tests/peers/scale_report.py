"""The tables of scale.py: what a group cost, what it would cost at 10,000 ranks, and what the model says of that."""

import dataclasses
import math
import statistics
import typing

import report
from nodes_report import slope
from report import section

COMMAND = "scripts/dev scale"
FAR = 10_000
MOST_SECONDS, MOST_MEMORY_KIB, MOST_DESCRIPTORS = 10, 4096, 64
# Of the default cost model (<col/plan.hpp>): a message within a host, and between two, in microseconds.
NEAR_US, FAR_US = 1, 20


def rounds_of(ranks):
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0


def barrier_us(ranks, hosts):
    """Two levels, with a processor for each rank: up and down a tree in each host, dissemination among the leaders."""
    return 2 * rounds_of(math.ceil(ranks / hosts)) * NEAR_US + rounds_of(hosts) * FAR_US


def store_bytes(ranks, hosts):
    return 1024 * ranks + 64 * ranks * hosts


@dataclasses.dataclass(frozen=True)
class Row:
    what: str
    key: str  # of the line that rank 0 prints
    grows: str  # "power": as a power of the ranks; "line": by the same for each rank; empty: with the hosts, too
    formula: str  # what the model says
    model: typing.Callable  # (ranks, hosts) -> the same unit; None: nothing
    text: typing.Callable = lambda value: f"{value:,.0f}"


ROWS = (
    Row("time to form, ms", "median_us", "power", "", None, lambda us: f"{us / 1000:,.0f}"),
    Row("barrier, ms", "barrier_us", "power", "2⌈log₂ L⌉ · 1 µs + ⌈log₂ N⌉ · 20 µs", barrier_us,
        lambda us: f"{us / 1000:,.3g}"),
    Row("memory of a rank, mean, KiB", "memory_kib", "line", "", None),
    Row("memory of a rank, most, KiB", "most_memory_kib", "line", "", None),
    Row("descriptors of a rank, most", "most_descriptors", "", "16 + N + L",
        lambda ranks, hosts: 16 + hosts + ranks / hosts),
    Row("bytes through the store", "store_bytes", "power", "1 KiB · n + 64 B · n · N", store_bytes),
)


def line_through(points):
    """Least squares: (value at 0, value for each x)."""
    mean_x, mean_y = (statistics.fmean(column) for column in zip(*points))
    each = (sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points))
    return mean_y - each * mean_x, each


def extrapolated(grows, points, ranks):
    """(the value at `ranks`, how it grows, in words); nothing from a single point."""
    if len(points) < 2 or not grows:
        return None, ""
    if grows == "line":
        begin, each = line_through(points)
        return max(points[-1][1], begin + each * ranks), f"{each:+.3g} a rank"
    exponent = slope(points)
    return points[-1][1] * (ranks / points[-1][0]) ** exponent, f"n^{exponent:.2f}"


def medians(run, key):
    """[(ranks, the median of its launches)]."""
    values = {}
    for launch in run["launches"]:
        for line in launch["lines"]:
            values.setdefault(line["ranks"], []).append(line[key])
    return sorted((ranks, statistics.median(of_launches)) for ranks, of_launches in values.items())


def hosts_of(run):
    return run["launches"][0]["hosts"]


def growth_table(run):
    ranks = [ranks for ranks, _ in medians(run, "median_us")]
    if not ranks:
        return []
    hosts = hosts_of(run)
    far_hosts = math.ceil(FAR * hosts / ranks[-1])  # as full as the fullest here
    rows = []
    for row in ROWS:
        points = medians(run, row.key)
        value, growth = extrapolated(row.grows, points, FAR)
        rows.append([row.what, row.formula, *(row.text(y) for _, y in points), growth, row.text(value) if growth else "–",
                     row.text(row.model(FAR, far_hosts)) if row.model else "–"])
    title = f"A group over {hosts} hosts, and {FAR:,} ranks over {far_hosts}"
    return section(title, ["ranks", "the model", *map(str, ranks), "grows by", f"so at {FAR:,}", f"model at {FAR:,}"], rows,
                   numbers=len(ranks) + 3)


def targets(run):
    """(what, wanted, reached, whether it is met), of the largest group that was measured."""
    latest = {row.key: medians(run, row.key)[-1] for row in ROWS if medians(run, row.key)}
    if not latest:
        return
    ranks, hosts = latest["median_us"][0], hosts_of(run)
    where = f"{ranks} ranks over {hosts} hosts"
    for what, key, most, unit, text in (
            ("form", "median_us", MOST_SECONDS * 1e6, "s", lambda us: f"{us / 1e6:.2f}"),
            ("memory of a rank, the most", "most_memory_kib", MOST_MEMORY_KIB, "MiB", lambda kib: f"{kib / 1024:.2f}"),
            ("descriptors of a rank, the most", "most_descriptors", MOST_DESCRIPTORS, "", lambda n: f"{n:.0f}"),
            ("through the store", "store_bytes", store_bytes(ranks, hosts), "KiB", lambda b: f"{b / 1024:,.0f}")):
        yield (f"{where}: {what}", f"≤ {text(most)} {unit}".strip(), f"{text(latest[key][1])} {unit}".strip(),
               latest[key][1] <= most)


def bad(run):
    """Whether a launch failed or a sum was wrong."""
    return any(launch["trouble"] or any(line["wrong"] for line in launch["lines"]) for launch in run["launches"])


def circumstances(run):
    foreign = statistics.median([launch["foreign"] for launch in run["launches"]] or [0])
    facts = run["machine"]
    rounds = 1 + max((launch["round"] for launch in run["launches"]), default=0)
    lines = [f"{run['started']}, {facts['cpu']}, {facts['processors']} processors, Linux {facts['kernel']}. `{run['command']}`. "
             f"Medians of {rounds} launch{'es' * (rounds > 1)}. Other programs took {foreign:.0%} of the machine.", ""]
    lines += [f"Left out: {why}." for why in run["left_out"]]
    lines += [f"{launch['ranks']} ranks, round {launch['round'] + 1}: {launch['trouble']}."
              for launch in run["launches"] if launch["trouble"]]
    return [*lines, ""]


def markdown(run):
    lines = circumstances(run)
    lines += section("Targets of size", ["", "wanted", "reached", ""],
                     [[what, wanted, reached, "met" if met else "**missed**"] for what, wanted, reached, met in targets(run)])
    lines += growth_table(run)
    return "\n".join(lines)


def write_into(document, tables):
    report.write_into(document, tables, COMMAND)
