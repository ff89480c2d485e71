"""Starts a contestant, waits for it under a limit, and reads what it measured."""

import dataclasses
import json
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import time

from contestants import commands

TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Launch:
    lines: list  # what the program printed, as dictionaries
    trouble: str  # empty when all went well
    foreign: float  # share of the machine's time that went to other programs
    seconds: float
    said: str = ""  # all of its standard output


def busy_seconds():
    """Of all processors, since the start: (busy with anything, all)."""
    fields = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / TICKS, sum(fields) / TICKS


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def belonging(scratch):
    """Every process of the launch. Launchers put their ranks into sessions of their own, but hand on the environment."""
    mark = f"CONTEST_START_LINE={scratch}/".encode()
    found = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and mark in pathlib.Path(f"/proc/{entry}/environ").read_bytes():
                found.append(int(entry))
        except OSError:
            continue  # has ended meanwhile, or is another user's
    return found


def end(processes, scratch):
    """A moment for launchers to clean up, then nothing of the launch is left."""
    for number, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
        for pid in belonging(scratch):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        until = time.monotonic() + patience
        while time.monotonic() < until and any(process.poll() is None for process in processes):
            time.sleep(0.02)
    for process in processes:
        process.wait()


def wait(processes, limit, fail_alone):
    """Empty, or what went wrong. One rank that fails ends them all, unless they `fail_alone`."""
    until = time.monotonic() + limit
    while True:
        codes = [process.poll() for process in processes]
        failed = [code for code in codes if code not in (None, 0)]
        if failed and not (fail_alone and None in codes):
            return f"exit code {failed[0]}" if failed[0] > 0 else f"signal {-failed[0]}"
        if all(code == 0 for code in codes):
            return ""
        if time.monotonic() > until:
            return f"hung: over {limit:.0f} s"
        time.sleep(0.005)


def parse(text):
    lines = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # a launcher's own words
        if isinstance(entry, dict) and "operation" in entry:
            lines.append(entry)
    return lines


def last_words(text):
    said = [line.strip() for line in text.splitlines() if line.strip().strip("-=")]
    return said[-1][:160] if said else ""


def start(prepared, scratch, processes):
    with open(f"{scratch}/stdout", "wb") as out, open(f"{scratch}/stderr", "wb") as err:
        for command, environment in prepared:
            processes.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                              start_new_session=True))


def launch(contestant, ranks, arguments, places, limit):
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    return launch_commands(lambda scratch: commands(contestant, ranks, arguments, places, scratch), limit, shared)


def launch_commands(prepare, limit, folder, fail_alone=False):
    """`prepare` gives the command lines with their environments for a scratch folder, which is made in `folder`."""
    began, busy, ours = time.monotonic(), busy_seconds(), children_seconds()
    with tempfile.TemporaryDirectory(prefix="col-peers.", dir=folder, ignore_cleanup_errors=True) as scratch:
        for name in ("store", "tmp"):
            os.mkdir(f"{scratch}/{name}")
        pathlib.Path(f"{scratch}/start_line").touch()
        processes = []
        try:
            start(prepare(scratch), scratch, processes)
            trouble = wait(processes, limit, fail_alone)
        except OSError as error:
            trouble = f"not started: {error}"
        finally:
            end(processes, scratch)
        said = pathlib.Path(f"{scratch}/stdout").read_text(errors="replace")
        words = last_words(pathlib.Path(f"{scratch}/stderr").read_text(errors="replace"))
    if trouble and words:
        trouble += ": " + words
    now = busy_seconds()
    foreign = max(0.0, (now[0] - busy[0]) - (children_seconds() - ours)) / max(0.01, now[1] - busy[1])
    return Launch(parse(said), trouble, foreign, time.monotonic() - began, said)
