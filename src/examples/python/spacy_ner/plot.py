"""A picture of the result, as SVG: the time of an update and the throughput, over the number of workers."""

from __future__ import annotations

import math
from typing import Sequence
from xml.sax.saxutils import escape

from report import Measured, throughput
from ways import ALONE

WIDTH, HEIGHT, MARGIN = 360, 260, 48
COLORS = "#888888", "#c0392b", "#e08e0b", "#1f6fb2", "#2e8b57", "#7d3c98", "#16a085"


def panel(left: int, title: str, workers: Sequence[int], lines: dict[str, list[float]]) -> list[str]:
    """One diagram, both axes logarithmic."""
    low = min(map(min, lines.values()))
    high = max(max(map(max, lines.values())), low * 1.01)
    places = [left + MARGIN + i * (WIDTH - 2 * MARGIN) / max(len(workers) - 1, 1) for i in range(len(workers))]

    def height(value: float) -> float:
        return HEIGHT - MARGIN - math.log(value / low) / math.log(high / low) * (HEIGHT - 2 * MARGIN)

    out = [f'<text x="{left + MARGIN}" y="{MARGIN - 24}" font-weight="bold">{escape(title)}</text>']
    for place, count in zip(places, workers):
        out.append(f'<text x="{place:.0f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{count}</text>')
    ticks = [base * 10**power for power in range(-3, 6) for base in (1, 2, 5) if low <= base * 10**power <= high]
    for tick in ticks:
        y = height(tick)
        out.append(f'<path d="M{left + MARGIN} {y:.1f}H{left + WIDTH - MARGIN}" stroke="#dddddd"/>')
        out.append(f'<text x="{left + MARGIN - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for (way, values), color in zip(lines.items(), COLORS):
        points = " ".join(f"{place:.1f},{height(value):.1f}" for place, value in zip(places, values))
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        out.append(f'<text x="{places[-1] + 4:.0f}" y="{height(values[-1]) + 4:.1f}" fill="{color}">{escape(way)}</text>')
    return out


def draw(measured: Sequence[Measured], ways: Sequence[str]) -> str:
    workers = [row.workers for row in measured]
    shown = [ALONE, *ways]
    body = panel(0, "ms an update, by workers", workers, {way: [row.step(way) for row in measured] for way in shown})
    body += panel(
        WIDTH + 40, "throughput, 1 worker = 1", workers, {way: throughput(measured, way) for way in shown}
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH + 100} {HEIGHT}" font-family="sans-serif"'
        ' font-size="11"><rect width="100%" height="100%" fill="white"/>\n' + "\n".join(body) + "\n</svg>\n"
    )
