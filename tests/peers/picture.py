"""A picture of one table of the document: allreduce by size, col beside its rivals and the bound, drawn by colbench.

python3 picture.py COLBENCH docs/performance.md docs/pictures/allreduce.svg
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

RANKS = 4
CONTESTANTS = ["col", "Open MPI 5", "MPICH 5", "Intel MPI", "Gloo"]
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}


def first_table(page, ranks):
    """Title and rows, as dictionaries, of the first table with so many ranks: the fastest state of the machine."""
    found = re.search(rf"^### ({ranks} ranks, [^\n]*)\n\n((?:\|[^\n]*\n)+)", page, re.MULTILINE)
    if not found:
        raise SystemExit(f"the document has no table of {ranks} ranks")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.group(2).splitlines()]
    return found.group(1), [dict(zip(lines[0], line)) for line in lines[2:]]


def microseconds(cell):
    """None where there is no time. Marks and the name of a setting stand behind the number."""
    number = re.match(r"[\d,.]+", cell)
    return float(number.group().replace(",", "")) if number else None


def cell_of(name, size, time, bound):
    spec = {"operation": "allreduce", "backend": "one host", "algorithm": name, "device": "cpu", "dtype": "float32", "op": "sum",
            "root": 0, "bytes": size, "ranks": RANKS, "in_place": False, "cadence": "isolated", "cache": "hot", "groups": None,
            "pair": None}
    launch = {"launch": 0, "late": 0, "ns": [round(1e3 * time, 1)], "start_skew_ns": [], "device_ns": None}
    return {"spec": spec, "backend": "one host", "algorithm": name, "valid": True, "below_bound": False, "fake": False, "note": None,
            "stop": "time", "check": {"mode": "off", "elements": 0, "wrong": 0, "first": None}, "model_ns": None, "launches": [launch],
            "bound": {"ns": round(1e3 * (bound or 0), 1), "how": "", "calibrations": 0, "recalibrations": 0}}


def results(page):
    """The table as colbench's results."""
    _, rows = first_table(page, RANKS)
    cells = []
    for name in CONTESTANTS:
        for row in rows:
            if row["operation"] == "allreduce" and (time := microseconds(row[name])):
                number, unit = row["size"].split()
                cells.append(cell_of(name, int(number) * UNITS[unit], time, microseconds(row["bound"])))
    run = {"version": "draws what scripts/dev peers measured", "command": [], "started": "", "launcher": "", "host": "one host", "cpu": "",
           "kernel": "", "governor": "", "cpus": 0, "ranks": RANKS, "launches": 0, "seed": "0x0", "seconds": 0, "target_interval": 0,
           "sync": "", "environment": {}}
    machine = {"levels": [], "hand_over_seconds": 0, "wake_up_seconds": 0, "switch_seconds": 0, "fits": [], "node_of_rank": []}
    return {"schema": "colbench", "schema_version": 1, "run": run, "machine": machine, "probes": [], "cells": cells, "warnings": [],
            "ended_early": None, "exit_code": 0}


def write(colbench, document, picture):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table.json"
        path.write_text(json.dumps(results(document.read_text())))
        subprocess.run([colbench, "draw", path, "-o", picture], check=True)


if __name__ == "__main__":
    write(sys.argv[1], *map(pathlib.Path, sys.argv[2:]))
