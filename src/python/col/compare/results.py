"""The table of a comparison, and its results as colbench's JSON (src/tools/colbench/report/json.hpp).

A launch of the ranks is one observation. A ratio is one of two medians of the same launch; it and its 95 % interval are of the
launches' ratios, by colbench's rule: three launches count as one, six at least.
"""

from __future__ import annotations

import os
import platform
from itertools import product
from math import comb
from statistics import median
from typing import Any, Optional, Sequence

NAMES = {"all_reduce": "allreduce", "all_gather": "allgather"}  # colbench's
FEWEST = 6  # launches, for an interval
BASE = "gloo"
COL = '"col"', "col.Group"  # all others are its rivals

Key = tuple[str, int]  # the operation and its bytes; a step has 0
# One entry for each launch of each row and contender: its samples in seconds.
Samples = dict[Key, dict[str, list[list[float]]]]


def elements_of(operation: str, size: int, ranks: int) -> int:
    """How many a call's larger buffer of `size` bytes has, as colbench counts: whole blocks, where each rank has one."""
    elements = max(size // 4, 1)
    return ranks * max(elements // ranks, 1) if operation in ("all_gather", "reduce_scatter") else elements


def _rank_of_end(launches: int) -> int:
    """How many values from either end the interval's end lies, if the launches are independent."""
    end, tail = 0, 1
    while 2 * tail <= 0.05 * 2**launches:
        end += 1
        tail += comb(launches, end)
    return end


def interval(values: Sequence[float]) -> Optional[tuple[float, float]]:
    """The 95 % interval of the median of the launches' values; None below FEWEST."""
    size = len(values)
    if size < FEWEST:
        return None
    counted = max(FEWEST, size // 3)
    end = min(max(_rank_of_end(counted) * size // counted, 1), _rank_of_end(size))
    ordered = sorted(values)
    return ordered[end - 1], ordered[-end]


def ratios(samples: dict[str, list[list[float]]], name: str, rival: str = BASE) -> list[float]:
    """How many times as fast as the rival each launch was. Empty where one of the two has no samples."""
    pairs = zip(samples.get(rival, []), samples.get(name, []))
    return [median(base) / median(own) for base, own in pairs if base and own]


def time_text(seconds: float) -> str:
    """Three digits and a unit: 8.21 µs."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale or unit == "µs":
            number = seconds / scale
            digits = 2 if number < 10 else 1 if number < 100 else 0
            return f"{number:.{digits}f} {unit}"
    raise AssertionError


def size_text(size: int) -> str:
    """By powers of 1024: 8 B, 64 KiB."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size and size % (1 << power) == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"


def _cell(samples: dict[str, list[list[float]]], name: str) -> str:
    medians = [median(launch) for launch in samples.get(name, []) if launch]
    if not medians:
        return "-"
    text = time_text(median(medians))
    own = ratios(samples, name)
    if name == BASE or not own:
        return text
    ends = interval(own)
    return f"{text}  {median(own):.2f}×" + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "")


def row_name(key: Key) -> str:
    return f"{key[0]} {size_text(key[1])}" if key[1] else key[0]


def table(samples: Samples, contenders: Sequence[str]) -> str:
    """A line for each row: medians, and how many times as fast as Gloo, with the interval."""
    rows = [["", *contenders]]
    rows += [[row_name(key), *(_cell(each, name) for name in contenders)] for key, each in samples.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def verdicts(samples: Samples, contenders: Sequence[str]) -> list[str]:
    """In words: where col is behind Gloo or another, where the launches do not tell, and where they are too few to."""
    behind, undecided, few, decided = [], [], False, 0
    for key, each in samples.items():
        for name, rival in product(COL, [rival for rival in contenders if rival not in COL]):
            own, against = ratios(each, name, rival), "Gloo" if rival == BASE else rival
            ends = interval(own)
            few, decided = few or bool(own) and ends is None, decided + (ends is not None)
            if ends is None:
                continue
            if ends[1] < 1:
                behind.append(f"col is behind: {row_name(key)}: {name} takes {1 / median(own):.2f} times as long as {against}")
            elif ends[0] <= 1:
                undecided.append(f"{row_name(key)} ({name}, {against})")
    lines = behind or (["col is behind in no row."] if decided and not few else [])
    if few:
        lines.append(f"too few launches to say where col is behind ({FEWEST} make an interval)")
    if undecided:
        lines.append("no difference shown: " + ", ".join(undecided))
    return lines or ["col was compared in no row; the notes say why."]


def rounded(samples: Samples, ranks: int) -> list[str]:
    """A note on the rows whose blocks, one for each rank, hold other bytes in all than the row's name says."""
    real = {key: 4 * elements_of(*key, ranks) for key in samples if key[1]}
    odd = [f"{row_name(key)} has {size} B" for key, size in real.items() if size != key[1]]
    return [f"blocks of equal size for {ranks} ranks: " + ", ".join(odd)] if odd else []


def processor() -> str:
    """The processor's name, as the system gives it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def document(
    samples: Samples, notes: dict[tuple[Key, str], str], facts: dict[str, Any], warnings: Sequence[str]
) -> dict[str, Any]:
    """colbench's JSON. Steps, which are no operations of colbench's, are in a member of their own, "steps"."""
    cells, steps = [], []
    for key, each in samples.items():
        for name, launches in each.items():
            if key[1]:
                cells.append(_json_cell(key, name, launches, notes.get((key, name)), facts["ranks"]))
            else:
                steps.append({"step": key[0], "backend": name, "note": notes.get((key, name)), "launches": _launches(launches)})
    run = {
        "launcher": "col.compare", "host": platform.node(), "cpu": processor(), "kernel": platform.release(), "governor": "",
        "cpus": len(os.sched_getaffinity(0)), "seed": "0x0", "target_interval": 0, "sync": "window", "environment": {}, **facts,
    }
    machine = {"levels": [], "hand_over_seconds": 0, "wake_up_seconds": 0, "switch_seconds": 0, "fits": [], "node_of_rank": []}
    return {
        "schema": "colbench", "schema_version": 1, "run": run, "machine": machine, "probes": [], "cells": cells, "steps": steps,
        "warnings": list(warnings), "ended_early": None, "exit_code": 0,
    }


def _launches(launches: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    return [
        {"launch": place, "p50": round(1e9 * median(each), 1), "late": 0, "ns": [round(1e9 * one, 1) for one in each],
         "start_skew_ns": [], "device_ns": None}
        for place, each in enumerate(launches) if each
    ]


def _json_cell(key: Key, name: str, launches: Sequence[Sequence[float]], note: Optional[str], ranks: int) -> dict[str, Any]:
    spec = {
        "operation": NAMES.get(key[0], key[0]), "backend": name, "algorithm": "auto", "device": "cpu", "dtype": "float32",
        "op": "sum", "root": 0, "bytes": key[1], "ranks": ranks, "in_place": key[0] == "all_reduce", "cadence": "isolated",
        "cache": "hot", "groups": None, "pair": None,
    }
    compared = elements_of(*key, ranks) * (1 if key[0] == "reduce_scatter" else ranks)  # each rank has a block
    elements = sum(len(each) for each in launches) * compared
    return {
        "spec": spec, "backend": name, "algorithm": "auto", "valid": None if note else True, "below_bound": False, "fake": False,
        "note": note, "stop": "time", "check": {"mode": "all", "elements": elements, "wrong": 0, "first": None},
        "bound": {"ns": 0, "how": "", "calibrations": 0, "recalibrations": 0}, "model_ns": None, "launches": _launches(launches),
    }
