#!/usr/bin/env python3
"""What a call costs from Python: col from numpy and torch beside its C++ loop, mpi4py, and torch.distributed over col and Gloo.

Each launch is two ranks that make one allreduce after the other; the contestants take turns, in another order each round.
scripts/dev python-speed builds what this needs and calls it.
"""

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
CONTESTANTS = ("C++", "col-numpy", "col-torch", "mpi4py", "torch-over-col", "torch-gloo")
SIZES = ("8", "32768", "33554432")


def command(name, options):
    if name == "C++":
        return [options.colrun, "-n", "2", str(options.programs / "call_loop_col"), *SIZES]
    program = [options.python, str(HERE / "call_loop.py"), name, *SIZES]
    if name == "mpi4py":
        return ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "2", *program]
    return [options.colrun, "-n", "2", *program]


def launch(name, options):
    environment = {**os.environ, "PYTHONPATH": str(options.package)}
    done = subprocess.run(command(name, options), env=environment, capture_output=True, text=True, timeout=120)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(lines) != len(SIZES) or not all(line["right"] for line in lines):
        sys.exit(f"{name}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return [line["us"] for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="launches of each contestant; default 20")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(CONTESTANTS),
                        help="only these contestants: " + ",".join(CONTESTANTS))
    parser.add_argument("--colrun", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--package", type=pathlib.Path, required=True, help="the folder with the package col")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="the folder with call_loop_col")
    options = parser.parse_args()
    if unknown := set(options.only) - set(CONTESTANTS):
        parser.error(f"what is '{unknown.pop()}'? There are: {', '.join(CONTESTANTS)}")
    times = {name: [] for name in options.only}
    for turn in range(options.rounds):
        print(f"round {turn + 1} of {options.rounds}", file=sys.stderr)
        for name in random.sample(options.only, len(options.only)):
            times[name].append(launch(name, options))
    print(f"allreduce of float32 on 2 ranks, out of place, one call after the other; {machine()['cpu']}")
    print(f"the median of {options.rounds} launches, each the median of its batches, in µs; in brackets the median of the "
          "differences to C++ in the same round\n")
    print(f"| | {' | '.join(['8 B', '32 KiB', '32 MiB'])} |\n|---|---|---|---|")
    for name, rows in times.items():
        cells = []
        for place in range(len(SIZES)):
            cell = f"{statistics.median(row[place] for row in rows):.2f}"
            if name != "C++" and "C++" in times:
                more = statistics.median(row[place] - first[place] for row, first in zip(rows, times["C++"]))
                cell += f" ({more:+.2f})"
            cells.append(cell)
        print(f"| {name} | {' | '.join(cells)} |")


main()
