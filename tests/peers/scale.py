#!/usr/bin/env python3
"""Starts real ranks by the hundred over hosts that are network namespaces of this machine, and says what a group costs each.

scripts/dev scale builds what this needs and calls it, as root and with mounts of its own.
"""

import argparse
import datetime
import json
import os
import pathlib
import signal
import sys

import nodes_start
import scale_report
from contestants import processors
from machine import machine
from nodes_hosts import Hosts, NoHosts, scratch_folder
from nodes_plan import Layout

# What a rank is taken to need before one was measured, beside what the machine keeps for itself.
FIRST_GUESS_KIB, LEFT_FREE_KIB = 16 << 10, 1 << 20


def numbers(text):
    return sorted({int(word) for word in text.split(",")})


def parse_arguments():
    parser = argparse.ArgumentParser(prog="scripts/dev scale", description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=numbers, default=[64, 128, 256, 512], metavar="LIST",
                        help="how many ranks a group has, one after the other; at most 512; default 64,128,256,512")
    parser.add_argument("--hosts", type=int, default=8, help="over so many hosts; default 8")
    parser.add_argument("--rounds", type=int, default=3, help="launches of each; their median counts; default 3")
    parser.add_argument("--document", type=pathlib.Path, help="a page whose tables are written anew")
    parser.add_argument("--report", type=pathlib.Path, metavar="RAW_JSON", help="measure nothing, print that run's tables")
    parser.add_argument("--limit", type=float, default=240, help="seconds after which a launch is killed; default 240")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build-peers/results"),
                        help="folder for scale.json and scale.md")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build-peers"), help=argparse.SUPPRESS)
    parser.add_argument("--colrun", default="colrun", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.hosts < 2 or options.rounds < 1:
        parser.error("it takes two hosts and one round at least")
    for ranks in options.ranks:
        if ranks % options.hosts or not 0 < ranks <= 512:
            parser.error(f"{ranks} ranks: up to 512, equally many on each of {options.hosts} hosts")
    options.programs = options.programs.resolve()
    options.processors = processors()
    return options


def available_kib():
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    return 0


def no_room(ranks, launches):
    """Why so many do not fit into the memory that is left; empty if they do."""
    known = [line["most_memory_kib"] for launch in launches for line in launch["lines"]]
    # Twice what a rank of a smaller group had at most: it may grow with the group.
    needed = LEFT_FREE_KIB + ranks * (2 * max(known) if known else FIRST_GUESS_KIB)
    free = available_kib()
    return f"{ranks} ranks may need {needed >> 20} GiB, and {free >> 20} are free" if needed > free else ""


def measure(options, data):
    for ranks in options.ranks:
        layout = Layout((ranks // options.hosts,) * options.hosts)
        if why := no_room(ranks, data["launches"]):
            say(f"left out: {why}")
            data["left_out"].append(why)
            continue
        with Hosts(options.hosts, options.scratch, sorted(os.sched_getaffinity(0)), options.colrun) as hosts:
            for number in range(options.rounds):
                say(f"{layout.name}, round {number + 1}")
                launch = nodes_start.by_colrun(hosts, layout, [options.programs / "formation_col"], options)
                if launch.trouble:
                    say(f"{layout.name}: {launch.trouble}")
                data["launches"].append({"ranks": ranks, "hosts": options.hosts, "round": number, "lines": launch.lines,
                                         "trouble": launch.trouble, "foreign": round(launch.foreign, 3)})


def command_words():
    words = sys.argv[1:]
    for own in ("--colrun", "--programs"):
        while own in words:
            del words[words.index(own):words.index(own) + 2]
    return " ".join(["scripts/dev scale", *words])


def say(text):
    print(text, file=sys.stderr, flush=True)


def interrupt(number, frame):
    signal.signal(number, signal.SIG_IGN)  # once is enough; the rest must not be interrupted
    raise KeyboardInterrupt


def measured(options):
    data = {"started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": command_words(), "machine": {**machine(), "versions": {}}, "left_out": [], "launches": []}
    with scratch_folder("col-scale.") as options.scratch:
        try:
            measure(options, data)
        except KeyboardInterrupt:
            data["left_out"].append("interrupted")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "scale.json").write_text(json.dumps(data))
    return data


def main():
    signal.signal(signal.SIGTERM, interrupt)
    options = parse_arguments()
    try:
        data = json.loads(options.report.read_text()) if options.report else measured(options)
    except NoHosts as why:
        say(f"scale: no hosts can be made here: {why}")
        return 2
    tables = scale_report.markdown(data)
    print(tables)
    if not options.report:
        (options.out / "scale.md").write_text(tables)
    if options.document:
        scale_report.write_into(options.document, tables)
    return 130 if "interrupted" in data["left_out"] else int(scale_report.bad(data))


if __name__ == "__main__":
    sys.exit(main())
