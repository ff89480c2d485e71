#!/usr/bin/env python3
"""Backend col of torch.distributed beside Gloo, in turns: what DDP's communication adds to a step, and the rounds of a parameter
server over send and recv. scripts/dev torch-speed calls it."""

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
BACKENDS = {"ddp": ("col", "col-hook", "gloo"), "ps": ("col", "gloo")}
MILLIONS = ("0.3", "8", "30")  # parameters
SERVERS, WORKERS = 2, 8
# What is launched: ranks, and a program with its arguments after the backend.
LAUNCHES = {
    "ddp, 2 ranks": (2, "ddp_step.py", MILLIONS),
    "ddp, 4 ranks": (4, "ddp_step.py", MILLIONS),
    "ps": (SERVERS + WORKERS, "ps_step.py", (str(SERVERS), "0.9", "8")),
}


def launch(kind, backend, options):
    ranks, program, arguments = LAUNCHES[kind]
    command = [options.colrun, "-n", str(ranks), options.python, str(HERE / program), backend, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(options.package)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines or not all(line["right"] for line in lines):
        sys.exit(f"{kind} on {backend}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return lines


def median(values):
    return f"{statistics.median(values):.2f}"


def backends(kind):
    return BACKENDS[kind.split(",")[0]]


def print_table(kind, ours, hooked, theirs):
    if kind == "ps":
        print(f"\n{WORKERS} workers, {SERVERS} servers, ms a round\n\n| parameters | col | Gloo | Gloo : col |\n|---|---|---|---|")
    else:
        print(f"\n{kind}: ms a step, and in brackets what its communication adds\n\n"
              "| parameters | col | col, allreduce_hook | Gloo | col : Gloo, communication | with the hook |\n|---|---|---|---|---|---|")
    for place, first in enumerate(ours[0]):
        our, their = [row[place] for row in ours], [row[place] for row in theirs]
        if kind == "ps":
            cells = [median(row["ms"] for row in our), median(row["ms"] for row in their),
                     median(b["ms"] / a["ms"] for a, b in zip(our, their))]
        else:
            contest = our, [row[place] for row in hooked], their
            cells = [f"{median(row['step'] for row in rows)} ({median(row['step'] - row['alone'] for row in rows)})"
                     for rows in contest]
            cells += [median((a["step"] - a["alone"]) / (b["step"] - b["alone"]) for a, b in zip(rows, their))
                      for rows in contest[:2]]
        print(f"| {first['parameters']:,} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description="backend col of torch.distributed beside Gloo")
    parser.add_argument("--rounds", type=int, default=20, help="launches of each kind on each backend; default 20")
    parser.add_argument("--only", choices=list(LAUNCHES), action="append", help="only this; may be given again")
    parser.add_argument("--colrun", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--package", type=pathlib.Path, required=True, help="the folder with the package col")
    options = parser.parse_args()
    kinds = options.only or list(LAUNCHES)
    results = {(kind, backend): [] for kind in kinds for backend in backends(kind)}
    for turn in range(options.rounds):
        print(f"round {turn + 1} of {options.rounds}", file=sys.stderr)
        for kind, backend in random.sample(list(results), len(results)):
            results[kind, backend].append(launch(kind, backend, options))
    print(f"float32, one thread a rank; {machine()['cpu']}; medians of {options.rounds} launches, and of their ratios")
    for kind in kinds:
        print_table(kind, results[kind, "col"], results.get((kind, "col-hook")), results[kind, "gloo"])


main()
