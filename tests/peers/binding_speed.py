#!/usr/bin/env python3
"""What binding is worth beside other work: two ranks, unbound and bound, while other processes keep processors busy.

make -C tests/peers binding builds what this needs. Each launch starts the ranks anew; the two ways take turns, in another
order each round. Every launch is printed: what it has got depends on where its ranks happened to run.
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

WAYS = ("none", "auto")
CELLS = (("allreduce", "8"), ("allreduce", "32768"), ("gather", "1048576"), ("pingpong", "8"))
BUSY = "while True: pass"


def launch(way, cell, options):
    command = [options.colrun, "-n", "2", "--bind-to", way, str(options.programs / "binding_loop_col"), *cell]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode} of {' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return json.loads(done.stdout)["us"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=12, help="launches each way; default 12")
    parser.add_argument("--busy", type=int, default=1, help="processes that keep a processor busy; default 1")
    parser.add_argument("--colrun", required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="the folder with binding_loop_col")
    options = parser.parse_args()
    times = {(way, cell): [] for way in WAYS for cell in CELLS}
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(options.busy)]
    try:
        for turn in range(options.rounds):
            print(f"round {turn + 1} of {options.rounds}", file=sys.stderr)
            for way in random.sample(WAYS, len(WAYS)):
                for cell in CELLS:
                    times[way, cell].append(launch(way, cell, options))
    finally:
        for other in others:
            other.kill()
    print(f"2 ranks beside {options.busy} busy process(es); {machine()['cpu']}; {os.cpu_count()} processors")
    print("what a call takes in the mean of each launch, in µs, sorted; apart: launches of more than 3 × the fastest of both ways\n")
    print("| call | --bind-to | median | apart | all |\n|---|---|---|---|---|")
    for cell in CELLS:
        fastest = min(min(times[way, cell]) for way in WAYS)
        for way in WAYS:
            row = sorted(times[way, cell])
            apart = sum(time > 3 * fastest for time in row)
            print(f"| {cell[0]} {int(cell[1]):,} B | {way} | {statistics.median(row):.3g} | {apart} of {len(row)} | "
                  f"{', '.join(f'{time:.3g}' for time in row)} |")


main()
