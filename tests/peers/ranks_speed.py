"""What four ranks from Python cost, beside colrun itself, in turns in one run:

    python3 tests/peers/ranks_speed.py [--ranks 4] [--rounds 20]

`colrun -n 4 python3 -c pass`, `col.run(4, nothing)`, and a call of ranks that `col.ranks(4)` keeps (docs/testing.md). Prints least
times, medians and quarters in milliseconds, and whether each target holds; exit code 1 if one does not.
"""

import argparse
import statistics
import subprocess
import sys
import time

import col
from col.launch.program import colrun

COLD, KEPT, PART = 50, 2, 50  # ms above colrun; ms, or that part of colrun


def timed(function):
    began = time.perf_counter()
    function()
    return (time.perf_counter() - began) * 1e3


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ranks", type=int, default=4)
    options.add_argument("--rounds", type=int, default=20, help="at least 2")
    chosen = options.parse_args()

    count = str(chosen.ranks)
    nothing = type(None)  # a function of a module of Python's own: it goes by its name, and costs nothing
    bare = f"colrun -n {count} python3 -c pass"
    with col.ranks(chosen.ranks) as kept:
        ways = {
            bare: lambda: subprocess.run([colrun(), "-n", count, sys.executable, "-c", "pass"], check=True),
            f"col.run({count}, nothing)": lambda: col.run(chosen.ranks, nothing),
            "ranks(nothing) of kept ranks": lambda: kept(nothing),
        }
        times = {way: [] for way in ways}
        for turn in range(chosen.rounds + 1):
            for way, call in ways.items():
                taken = timed(call)
                if turn > 0:  # the first round warms the caches, and waits for the kept ranks
                    times[way].append(taken)

    print(f"{chosen.ranks} ranks, {chosen.rounds} rounds in turns; milliseconds")
    for way, values in times.items():
        low, median, high = statistics.quantiles(values, n=4)
        print(f"  {way:30} least {min(values):8.2f}  median {median:8.2f}  [{low:.2f}, {high:.2f}]")
    failed = 0
    launched, cold, again = (statistics.median(values) for values in times.values())
    for target, holds in (
        (f"col.run <= colrun + {COLD} = {launched + COLD:.1f}", cold <= launched + COLD),
        (f"kept <= {KEPT}, or <= colrun / {PART} = {launched / PART:.2f}", again <= max(KEPT, launched / PART)),
    ):
        failed += not holds
        print(f"  {'holds' if holds else 'MISSED'} {target}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
