#!/usr/bin/env python3
"""Measures col over several hosts, which are network namespaces of this machine, beside MPI and Gloo.

scripts/dev nodes builds what this needs and calls it, as root and with mounts of its own.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import re
import signal
import sys
import time

import nodes_plan as plan
import nodes_report
import nodes_start
from contestants import processors
from machine import machine, versions
from nodes_hosts import Hosts, NoHosts, scratch_folder

# Of the time that is left, by part: as much as its rounds need on a quiet machine.
SHARES = {"bytes": 0.25, "times": 0.4, "slow": 0.22, "fast_link": 0.13, "trainer": 0.0, "formation": 0.0}
MOST_ROUNDS = {"bytes": 2}  # they hardly differ
EPOCH = re.compile(r"^epoch +[0-9]+ .* ([0-9]+) images/s", re.MULTILINE)
FORMATIONS = (8, 16, 32, 64, 128)
FORMATION_HOSTS = (1, 2, 8)


def comma_list(text):
    return [word for word in text.split(",") if word]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/dev nodes", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true",
                        help="one round, fewer layouts and cells, col and Gloo alone; three minutes")
    parser.add_argument("--budget", type=float, metavar="MINUTES",
                        help="for all parts; each makes at least one round; default 20, with --quick 3")
    parser.add_argument("--rounds", type=int, help="at most; default 7, with --quick 1")
    parser.add_argument("--parts", type=comma_list, default=list(SHARES), help="only these: " + ",".join(SHARES))
    parser.add_argument("--only", type=comma_list, help="only these contestants: " + ",".join(nodes_start.BY_NAME))
    parser.add_argument("--document", type=pathlib.Path, help="a page whose tables are written anew")
    parser.add_argument("--report", type=pathlib.Path, metavar="RAW_JSON",
                        help="measure nothing, print that run's tables")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a launch is killed; default 60")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build-peers/results"),
                        help="folder for nodes.json and nodes.md")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build-peers"), help=argparse.SUPPRESS)
    parser.add_argument("--colrun", default="colrun", help=argparse.SUPPRESS)
    parser.add_argument("--trainer", default="digits_trainer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for given, known in ((options.parts, SHARES), (options.only or [], nodes_start.BY_NAME)):
        for word in given:
            if word not in known:
                parser.error(f"what is '{word}'? There are: {', '.join(known)}")
    options.budget = options.budget or (3 if options.quick else 20)
    options.rounds = options.rounds or (1 if options.quick else 7)
    options.only = options.only or (["col", "gloo"] if options.quick else list(nodes_start.BY_NAME))
    options.programs = options.programs.resolve()
    options.processors = processors()
    return options


class Run:
    """What was measured so far, and where it is kept."""

    def __init__(self, options):
        self.options = options
        self.data = {"started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                     "command": command_words(), "absent": nodes_start.absent(options.programs),
                     "machine": {**machine(), "versions": versions(options.programs)}, "launches": []}
        self.chance = random.Random(1)
        self.until = time.monotonic() + options.budget * 60
        self.parts_left = [part for part in SHARES if part in options.parts]

    def add(self, part, layout, number, contestant, cells, launch, rate="", **more):
        if launch.trouble:
            say(f"{contestant}, {layout.name}: {launch.trouble}")
        self.data["launches"].append(
            {"part": part, "counts": layout.counts, "in_turn": layout.in_turn, "rate": rate, "round": number,
             "contestant": contestant, "cells": list(cells), "trouble": launch.trouble, "lines": launch.lines,
             "foreign": round(launch.foreign, 3), "seconds": round(launch.seconds, 2), **more})
        save(self.options, self.data)

    def end_of(self, part):
        """Until when that part may begin another round: its share of what is left."""
        left = self.until - time.monotonic()
        shares = {name: SHARES[name] or 0.04 for name in self.parts_left}
        self.parts_left.remove(part)
        return time.monotonic() + left * shares[part] / sum(shares.values())


def hosts_for(options, layout):
    return Hosts(len(layout.counts), options.scratch, sorted(os.sched_getaffinity(0)), options.colrun)


def rounds(most, end):
    """Numbers of rounds, as long as one more of the same length ends in time."""
    longest = 0
    for number in range(most):
        begin = time.monotonic()
        if number and begin + longest > end:
            return
        yield number
        longest = max(longest, time.monotonic() - begin)


def measure_turns(run, part, turns):
    """Layout by layout, as making hosts takes a second; contestants take turns in each round."""
    options, end = run.options, run.end_of(part)
    most = min(options.rounds, MOST_ROUNDS.get(part, options.rounds))
    for place, layout in enumerate(dict.fromkeys(turn.layout for turn in turns)):
        own = [turn for turn in turns if turn.layout == layout]
        others = len({turn.layout for turn in turns}) - place
        layout_end = time.monotonic() + max(0, end - time.monotonic()) / others
        with hosts_for(options, layout) as hosts:
            for number in rounds(most, layout_end):
                for turn in own:
                    say(f"{part}: {layout.name}{', ' + turn.rate if turn.rate else ''}, round {number + 1}")
                    hosts.hold_links_to(turn.rate)
                    measure_turn(run, hosts, turn, number)


def measure_turn(run, hosts, turn, number):
    names = [name for name in run.options.only if name not in run.data["absent"]]
    for name in run.chance.sample(names, len(names)):
        contestant = nodes_start.BY_NAME[name]
        cells = nodes_start.cells_of(contestant, turn, run.options.processors)
        if not cells or has_given_up(run, name):
            continue
        launch = nodes_start.measure(contestant, hosts, turn, cells, run.options)
        run.add(turn.part, turn.layout, number, name, cells, launch, turn.rate)


def has_given_up(run, name):
    """A rival that has failed everywhere so far is not started again and again."""
    own = [launch for launch in run.data["launches"] if launch["contestant"] == name]
    return name != "col" and len(own) > 1 and not any(launch["lines"] for launch in own)


def measure_trainer(run):
    """The same ranks on several hosts and on one, in turns."""
    options, end = run.options, run.end_of("trainer")
    layouts = {"hosts": plan.TWO_BY_FOUR, "one host": plan.Layout((plan.TWO_BY_FOUR.ranks,))}
    program = [options.trainer, "--no-save", "--epochs", 3 if options.quick else 8]
    for number in rounds(options.rounds, end):
        for name, layout in layouts.items():
            say(f"trainer: {layout.name}, round {number + 1}")
            with hosts_for(options, layout) as hosts:
                launch = nodes_start.by_colrun(hosts, layout, program, options)
            rates = [int(rate) for rate in EPOCH.findall(launch.said)]
            run.add("trainer", layout, number, "col", [], launch, where=name, images_per_second=rates)


def measure_formation(run):
    """Over 1, 2 and 8 hosts; and how soon the loss of the last of most ranks is known."""
    options, end = run.options, run.end_of("formation")
    host_counts = FORMATION_HOSTS[1:2] if options.quick else FORMATION_HOSTS
    sizes = FORMATIONS[:3] if options.quick else FORMATIONS
    program = options.programs / "formation_col"
    for host_count in host_counts:
        with hosts_for(options, plan.Layout((1,) * host_count)) as hosts:
            for number in rounds(options.rounds, end):
                for ranks in sizes:
                    layout = plan.Layout((ranks // host_count,) * host_count)
                    say(f"formation: {layout.name}, round {number + 1}")
                    launch = nodes_start.by_colrun(hosts, layout, [program, "--split"], options)
                    run.add("formation", layout, number, "col", [("formation", 0)], launch)
                say(f"loss: {layout.name}, round {number + 1}")
                launch = nodes_start.by_colrun(hosts, layout, [program, "--lose"], options)
                known = [line for line in launch.lines if line["operation"] == "loss"]
                if len(known) == layout.ranks - 1:  # that it ends with an error is as it should be
                    launch.trouble = ""
                run.add("loss", layout, number, "col", [("loss", 0)], launch)


def measure(options, run):
    for name, why in run.data["absent"].items():
        say(f"{name} does not take part: {why}")
    turns = plan.turns(options.quick)
    for part in [part for part in SHARES if part in options.parts]:
        if part in turns:
            measure_turns(run, part, turns[part])
        elif part == "trainer":
            measure_trainer(run)
        else:
            measure_formation(run)


def command_words():
    """As one types it: without what scripts/dev adds."""
    words = sys.argv[1:]
    for own in ("--colrun", "--trainer", "--programs"):
        while own in words:
            place = words.index(own)
            del words[place:place + 2]
    return " ".join(["scripts/dev nodes", *words])


def say(text):
    print(text, file=sys.stderr, flush=True)


def save(options, data):
    options.out.mkdir(parents=True, exist_ok=True)
    new = options.out / "nodes.json.new"
    new.write_text(json.dumps(data, indent=None, separators=(",", ":")))
    new.replace(options.out / "nodes.json")


def interrupt(number, frame):
    signal.signal(number, signal.SIG_IGN)  # once is enough; the rest must not be interrupted
    raise KeyboardInterrupt


def measured(options):
    """The data of a run, and whether it was interrupted."""
    run = Run(options)
    interrupted = False
    with scratch_folder("col-nodes.") as options.scratch:
        try:
            measure(options, run)
        except KeyboardInterrupt:
            interrupted = True
            say("interrupted; what was measured by then:")
    save(options, run.data)
    return run.data, interrupted


def main():
    signal.signal(signal.SIGTERM, interrupt)  # as Ctrl-C: what was started is ended, what was measured is shown
    options = parse_arguments()
    interrupted = False
    try:
        if options.report:
            data = json.loads(options.report.read_text())
        else:
            data, interrupted = measured(options)
    except NoHosts as why:
        say(f"nodes: no hosts can be made here: {why}")
        return 2
    tables = nodes_report.markdown(data)
    print(tables)
    if not options.report:
        (options.out / "nodes.md").write_text(tables)
    if options.document:
        nodes_report.write_into(options.document, tables)
    return 130 if interrupted else int(nodes_report.bad(data))


if __name__ == "__main__":
    sys.exit(main())
