"""What was measured, as tables."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Iterable, Sequence

from ways import ALONE, WAYS


@dataclass
class Measured:
    """One number of workers. `seconds` are by trial. `steps` and `exchanges` are by round, in ms: in a round, all ways take
    their turns one after the other, so that what disturbs the machine for longer disturbs all of them."""

    workers: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    steps: dict[str, list[float]] = field(default_factory=dict)
    exchanges: dict[str, list[float]] = field(default_factory=dict)
    losses: dict[str, tuple[float, float]] = field(default_factory=dict)  # the first and the last tenth
    score: dict[str, float] = field(default_factory=dict)

    def step(self, way: str) -> float:
        return statistics.median(self.steps[way])

    def exchange(self, way: str) -> float:
        return statistics.median(self.exchanges[way])


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median over the rounds of the ratio in each round."""
    return statistics.median(a / b for a, b in zip(above, below))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    lines.insert(1, ["-" * (width - 1) + ":" for width in widths])
    return "\n".join("| " + " | ".join(cell.rjust(width) for cell, width in zip(line, widths)) + " |" for line in lines)


def mean(values: Sequence[float]) -> str:
    deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{deviation}"


def throughput(measured: Sequence[Measured], way: str) -> list[float]:
    """Updates of all workers a second, compared to one worker of the first row."""
    one = measured[0].step(way) / measured[0].workers
    return [one * row.workers / row.step(way) for row in measured]


def against(measured: Sequence[Measured], way: str, best: str) -> str:
    """Where the time of an update goes, and what an exchange that costs nothing could gain: Amdahl's bound.

    The last column is where the gain crosses 2: compute + way's exchange = 2 · (compute + best's exchange).
    """
    header = [
        "workers", "compute", f"exchange: {way}", best, "gain", f"compute's share: {way}", best, "update: gain",
        "Amdahl's bound", "2x up to a compute of",
    ]  # fmt: skip
    rows = []
    for row in measured:
        if row.workers == 1:
            continue
        alone, crossing = row.steps[ALONE], row.exchange(way) - 2 * row.exchange(best)
        rows.append(
            [
                str(row.workers), f"{row.step(ALONE):.1f} ms",
                f"{row.exchange(way):.1f} ms", f"{row.exchange(best):.1f} ms",
                f"{ratio(row.exchanges[way], row.exchanges[best]):.1f}x",
                f"{100 * ratio(alone, row.steps[way]):.0f} %", f"{100 * ratio(alone, row.steps[best]):.0f} %",
                f"{ratio(row.steps[way], row.steps[best]):.2f}x", f"{ratio(row.steps[way], alone):.2f}x",
                f"{crossing:.0f} ms" if crossing > 0 else "never",
            ]  # fmt: skip
        )
    return table(header, rows)


def report(measured: Sequence[Measured], ways: Sequence[str], updates: int) -> str:
    """The last way is compared with the others."""
    *others, best = ways
    runtime = table(
        ["workers", *ways, *(f"{best} against {way}" for way in others)],
        [
            [str(row.workers), *(mean(row.seconds[way]) for way in ways)]
            + [f"{statistics.mean(row.seconds[way]) / statistics.mean(row.seconds[best]):.2f}x" for way in others]
            for row in measured
        ],
    )
    lines = [throughput(measured, way) for way in [ALONE, *ways]]
    scaling = table(
        ["workers", ALONE, *ways],
        [[str(row.workers), *(f"{values[i]:.2f}" for values in lines)] for i, row in enumerate(measured)],
    )
    learning = table(
        ["workers", *ways],
        [
            [str(row.workers)]
            + [f"{row.losses[way][0]:.4g} -> {row.losses[way][1]:.4g}; {row.score[way]:.3f}" for way in ways]
            for row in measured
        ],
    )
    parts = ["\n".join(f"{way}: {meaning}" for way, meaning in WAYS.items() if way in ways)]
    trials = len(measured[0].seconds[best])
    parts += [f"Seconds for {updates} updates: mean ± standard deviation of {trials} trials", runtime]
    parts += ["Throughput, 1 worker = 1. Alone, without any exchange, is what the processors can do", scaling]
    for way in others:
        parts += [f"One update, {best} against {way}: medians", against(measured, way, best)]
    parts += ["Loss in the first and in the last tenth of the updates; score", learning]
    return "\n\n".join(parts)
