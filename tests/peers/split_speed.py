#!/usr/bin/env python3
"""Measures what it costs to make a group of a group's ranks: col's split() beside MPI_Comm_split.

make -C tests/peers split builds what this needs, as far as the MPI libraries are installed. Everybody takes turns, in
another order each round; the table has the medians of the rounds, each the median of its splits on rank 0, in µs.
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

COLUMNS = {"split_us": "split", "first_us": "its first call", "later_us": "a later one", "end_us": "its end"}


def commands(options):
    openmpi = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader",
               "--mca", "oob_tcp_if_include", "lo"]
    launchers = {"col": [options.colrun], "openmpi": openmpi, "mpich": ["mpiexec.hydra", "-launcher", "fork", "-iface", "lo"]}
    found = {name: [*launcher, "-n"] for name, launcher in launchers.items()
             if (options.programs / f"split_loop_{name}").exists()}
    for name in launchers.keys() - found.keys():
        print(f"{name}: no {options.programs}/split_loop_{name}, left out", file=sys.stderr)
    return found


def launch(name, launcher, ranks, options):
    command = [*launcher, str(ranks), str(options.programs / f"split_loop_{name}"), str(options.splits), str(options.colors)]
    done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300,
                          check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(lines) != 1 or not lines[0]["right"]:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return lines[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ranks", type=lambda text: [int(word) for word in text.split(",")], default=[2, 8],
                        help="default 2,8")
    parser.add_argument("--colors", type=int, default=1, help="groups that are made at once; default 1")
    parser.add_argument("--splits", type=int, default=200, help="of each launch; default 200")
    parser.add_argument("--rounds", type=int, default=10, help="launches of each; default 10")
    parser.add_argument("--colrun", default="colrun")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build-peers"),
                        help="the folder with what make has built")
    options = parser.parse_args()
    contestants = commands(options)
    print(f"{machine()['cpu']}, {machine()['processors']} processors; µs; {options.colors} colors\n")
    print(f"| | ranks | {' | '.join(COLUMNS.values())} |\n|---|---|{'---|' * len(COLUMNS)}")
    for ranks in options.ranks:
        results = {name: [] for name in contestants}
        for _ in range(options.rounds):
            for name in random.sample(list(contestants), len(contestants)):
                results[name].append(launch(name, contestants[name], ranks, options))
        for name, rows in results.items():
            cells = [f"{statistics.median(row[column] for row in rows):.2f}" for column in COLUMNS]
            print(f"| {name} | {ranks} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
