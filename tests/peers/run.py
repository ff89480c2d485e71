#!/usr/bin/env python3
"""Measures col and the libraries beside it, one after the other and round after round, and prints who took how long.

scripts/dev peers builds what this needs and calls it.
"""

import argparse
import datetime
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import gains
import loss
import picture
import plan
import report
from contestants import CONTESTANTS, RIVALS, Places
from launch import launch
from machine import machine, versions

LOSS = "rank_dies"  # a table of its own
UNITS = {"K": 1 << 10, "M": 1 << 20}


def size(text):
    unit = UNITS.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text)


def comma_list(kind=str):
    return lambda text: [kind(word) for word in text.split(",") if word]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cells", type=comma_list(), help="only these operations: " + ",".join([*plan.OPERATIONS, LOSS]))
    parser.add_argument("--sizes", type=comma_list(size), help="only these sizes, such as 8,32K,32M (barriers stay)")
    parser.add_argument("--ranks", type=comma_list(int), default=[2, 4, 8], help="default 2,4,8")
    parser.add_argument("--only", type=comma_list(),
                        help="only these contestants: " + ",".join(contestant.name for contestant in CONTESTANTS))
    parser.add_argument("--rounds", type=int, default=7, help="default 7; three or more in a state give an interval")
    parser.add_argument("--budget", type=float, metavar="MINUTES",
                        help="for all rounds; where it does not suffice, later ones leave out rivals' cells that are "
                             "slow and decide nothing, and then there are fewer rounds; default 40, with --quick 4.5")
    parser.add_argument("--seconds", type=float, default=0.04,
                        help="measured per cell and round, at least; default 0.04")
    parser.add_argument("--most-seconds", type=float, default=0.2,
                        help="after which fewer than 20 samples of a cell will do; default 0.2")
    parser.add_argument("--quick", action="store_true",
                        help="fewer sizes, contestants and samples: 2 and 4 ranks, a split at 8; five minutes")
    parser.add_argument("--limit", type=float, default=90, help="seconds after which a launch is killed; default 90")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build-peers/results"),
                        help="folder for raw.json and table.md")
    parser.add_argument("--document", type=pathlib.Path, help="a page whose table is written anew")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build-peers"),
                        help="folder of what make has built")
    parser.add_argument("--colrun", default="colrun")
    parser.add_argument("--colbench", default="", metavar="PROGRAM", help="shown beside a few cells")
    parser.add_argument("--report", type=pathlib.Path, metavar="RAW_JSON",
                        help="measure nothing, print that run's table")
    parser.add_argument("--statistic", choices=list(report.STATISTICS), default="median_us",
                        help="what the table shows of each launch; all are in raw.json")
    options = parser.parse_args()
    names = {contestant.name for contestant in CONTESTANTS}
    for given, known in ((options.cells, {*plan.OPERATIONS, LOSS}), (options.only, names)):
        for word in given or []:
            if word not in known:
                parser.error(f"what is '{word}'? There are: {', '.join(sorted(known))}")
    if options.quick:
        options.seconds, options.most_seconds = options.seconds / 2, options.most_seconds / 2
    if options.budget is None:
        options.budget = 4.5 if options.quick else 40
    options.programs = options.programs.resolve()
    return options


def measure(options, run):
    """Every group of cells by every contestant in turn, in another order each time; then the next group."""
    places = Places(options.programs, options.colrun)
    run["absent"] = places.absent()
    for name, why in run["absent"].items():
        say(f"{name} does not take part: {why}")
    chance = random.Random(1)
    turns = plan.turns(options.ranks, options.quick, options.cells, options.sizes, options.only,
                       {family for family, name in RIVALS.items() if name in run["absent"]})
    end = time.monotonic() + options.budget * 60
    left_out, rounds, number = set(), options.rounds, 0
    while number < rounds:
        began, begin = len(run["launches"]), time.monotonic()
        for step, turn in enumerate(turns):
            say(f"round {number + 1} of {rounds}, {step + 1} of {len(turns)}: {turn.cells[0][0]}, {turn.ranks} ranks")
            before = probe(places, options.limit)
            for contestant in chance.sample(turn.contestants, len(turn.contestants)):
                if own := turn.of(contestant, left_out):
                    done = measure_one(options, places, contestant, turn.ranks, own)
                    after = probe(places, options.limit)
                    run["launches"].append({"round": number, "probes_ns": [before, after], **done})
                    before = after
            save(options, run)
        number += 1
        costs = plan.Costs(run["launches"][began:], time.monotonic() - begin)
        left_out = plan.leave_out(costs, rounds - number, end - time.monotonic(), left_out)
        rounds = number + plan.affordable(costs, rounds - number, end - time.monotonic(), left_out)
    if rounds < options.rounds:
        say(f"only {rounds} of {options.rounds} rounds in {options.budget:g} minutes: "
            "give a longer --budget, or less to do")


def probe(places, limit):
    """What a cache line takes from one processor to another and back, in ns; None where there is no other."""
    arguments = ["--cells", "allreduce:8", "--seconds", "0.01", "--most-seconds", "0.05"]
    lines = launch(plan.BY_NAME["bare"], 2, arguments, places, limit).lines
    # The shortest of many series: what else runs on the processors holds up some of them, and no state makes them shorter.
    return lines[0]["least_us"] * 1000 if lines else None


def measure_one(options, places, contestant, ranks, cells):
    words = ",".join(f"{name}:{bytes_}" for name, bytes_ in cells)
    arguments = ["--cells", words, "--seconds", str(options.seconds), "--most-seconds", str(options.most_seconds)]
    result = launch(contestant, ranks, arguments, places, options.limit)
    if result.trouble:
        say(f"{contestant.name}, {ranks} ranks, {words}: {result.trouble}")
    return {"contestant": contestant.name, "ranks": ranks, "cells": cells, "trouble": result.trouble,
            "foreign": round(result.foreign, 3), "seconds": round(result.seconds, 2), "lines": result.lines}


def colbench_row(colbench, ranks, bytes_, limit):
    """One row of colbench's, out of place; None when it does not run."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "row.json"
        try:
            subprocess.run([colbench, "allreduce", "--size", str(bytes_), "-n", str(ranks), "--json", str(path)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=limit, check=True)
            row = json.loads(path.read_text())["cells"][0]
            return {"ranks": ranks, "bytes": bytes_, "us": row["stats"]["p50"] / 1000}
        except (OSError, subprocess.SubprocessError, KeyError, IndexError, ValueError):
            return None


def cross_check(options, run):
    """colbench has its own clock and start; a few of its rows, to compare with what was measured here."""
    measured = {(turn.ranks, *cell) for turn in plan.turns(options.ranks, options.quick, options.cells, options.sizes)
                for cell in turn.cells}
    for ranks in options.ranks:
        for bytes_ in (1 << 10, 1 << 20):
            if (ranks, "allreduce", bytes_) in measured:
                if found := colbench_row(options.colbench, ranks, bytes_, options.limit):
                    run["colbench"].append(found)


def command_words():
    """As one types it: without what scripts/dev adds."""
    words = sys.argv[1:]
    for own in ("--colrun", "--colbench"):
        while own in words:
            place = words.index(own)
            del words[place:place + 2]
    return " ".join(["scripts/dev peers", *words])


def say(text):
    print(text, file=sys.stderr, flush=True)


def save(options, run):
    options.out.mkdir(parents=True, exist_ok=True)
    new = options.out / "raw.json.new"
    new.write_text(json.dumps(run, indent=None, separators=(",", ":")))
    new.replace(options.out / "raw.json")


def interrupt(number, frame):
    signal.signal(number, signal.SIG_IGN)  # once is enough; the rest must not be interrupted
    raise KeyboardInterrupt


def main():
    signal.signal(signal.SIGTERM, interrupt)  # as Ctrl-C: what was started is ended, what was measured is shown
    options = parse_arguments()
    interrupted = False
    if options.report:
        run = json.loads(options.report.read_text())
    else:
        run = {"started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
               "command": command_words(), "machine": {**machine(), "versions": versions(options.programs)},
               "absent": {}, "launches": [], "losses": [], "colbench": []}
        try:
            if options.cells != [LOSS]:
                measure(options, run)
            if not options.cells or LOSS in options.cells:
                rounds = options.rounds if options.quick else 3 * options.rounds  # each has one time
                loss.measure(Places(options.programs, options.colrun), options.ranks, rounds, options.limit, run["losses"], say)
            if options.colbench:
                cross_check(options, run)
        except KeyboardInterrupt:
            interrupted = True
            say("interrupted; what was measured by then:")
        save(options, run)
    table = report.markdown(run, options.statistic)
    print(table)
    if not options.report:
        (options.out / "table.md").write_text(table)
    if options.document:
        report.write_into(options.document, table)
        if (drawn := options.document.parent / "pictures" / "allreduce.svg").exists():
            if options.colbench:
                picture.write(options.colbench, options.document, drawn)
            else:
                say(f"{drawn} is as it was: python3 tests/peers/picture.py COLBENCH {options.document} {drawn} draws it anew")
        if report.marks(gains.COMMAND)[0] in options.document.read_text():
            gains.write(options.document)
    return 130 if interrupted else int(report.bad(run))


if __name__ == "__main__":
    sys.exit(main())
