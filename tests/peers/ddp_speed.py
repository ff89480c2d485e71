#!/usr/bin/env python3
"""What DDP's communication adds to a step: backend col beside Gloo, in turns. scripts/dev torch-speed calls it."""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys

from machine import machine

HERE = pathlib.Path(__file__).resolve().parent
BACKENDS = ("col", "gloo")
SIZES = ("0.3", "8", "30")


def launch(backend, ranks, options):
    command = [options.colrun, "-n", str(ranks), options.python, str(HERE / "ddp_step.py"), backend, *SIZES]
    environment = {**os.environ, "PYTHONPATH": str(options.package)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(lines) != len(SIZES) or not all(line["right"] for line in lines):
        sys.exit(f"{backend}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="launches of each backend; default 20")
    parser.add_argument("--ranks", type=lambda text: [int(n) for n in text.split(",")], default=[2, 4], help="default 2,4")
    parser.add_argument("--colrun", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--package", type=pathlib.Path, required=True, help="the folder with the package col")
    options = parser.parse_args()
    times = {(ranks, backend): [] for ranks in options.ranks for backend in BACKENDS}
    for turn in range(options.rounds):
        print(f"round {turn + 1} of {options.rounds}", file=sys.stderr)
        for ranks, backend in random.sample(list(times), len(times)):
            times[ranks, backend].append(launch(backend, ranks, options))
    print(f"DDP, float32, one thread a rank; {machine()['cpu']}")
    print(f"medians of {options.rounds} launches, in ms: a step, and in brackets what its communication adds; then col's part of "
          "Gloo's communication\n")
    print("| ranks | parameters | col | Gloo | col : Gloo |\n|---|---|---|---|---|")
    for ranks in options.ranks:
        for place in range(len(SIZES)):
            cells, added = [], {}
            for backend in BACKENDS:
                rows = [row[place] for row in times[ranks, backend]]
                added[backend] = statistics.median(row["step"] - row["alone"] for row in rows)
                cells.append(f"{statistics.median(row['step'] for row in rows):.2f} ({added[backend]:.2f})")
            ratio = statistics.median(
                (ours[place]["step"] - ours[place]["alone"]) / (theirs[place]["step"] - theirs[place]["alone"])
                for ours, theirs in zip(times[ranks, "col"], times[ranks, "gloo"]))
            parameters = times[ranks, "col"][0][place]["parameters"]
            print(f"| {ranks} | {parameters:,} | {' | '.join(cells)} | {ratio:.2f} |")


main()
