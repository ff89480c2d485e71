#!/usr/bin/env python3
"""Measures how long launchers take to start a job, beside a bare loop of fork and exec in the same run.

make -C tests/peers start builds what this needs. Launchers that are not installed
are named and left out. Times are from the start of the launcher to its end, for barriers to rank 0's leaving the first
one; everybody takes turns, and the table has medians.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import select
import shutil
import signal
import statistics
import sys
import tempfile
import time

from machine import machine, versions

HERE = pathlib.Path(__file__).resolve().parent
PRIORITY = 5


@dataclasses.dataclass(frozen=True)
class Launcher:
    name: str
    command: tuple  # "{n}" is the number of ranks
    program: str = ""  # of its ranks for the first barrier; empty: takes no part
    most_ranks: int = 1 << 20
    environment: dict = dataclasses.field(default_factory=dict)


def launchers(options):
    programs = options.programs.resolve()
    loop = str(programs / "start_loop")
    openmpi = ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "oob_tcp_if_include", "lo",
               "--mca", "btl", "self,vader", "-n", "{n}")
    return [
        Launcher("fork loop", (loop, "fork", "{n}")),
        Launcher("vfork loop", (loop, "vfork", "{n}")),
        Launcher("colrun", (options.colrun, "-n", "{n}"), "first_barrier_col"),
        Launcher("hydra", ("mpiexec.hydra", "-launcher", "fork", "-iface", "lo", "-n", "{n}"), "first_barrier_mpich"),
        Launcher("mpirun", openmpi, "first_barrier_openmpi"),
        # It imports torch, as does every rank of its barrier; 64 of them take minutes.
        # Underscores: every version of it takes these.
        Launcher("torchrun", ("torchrun", "--standalone", "--nproc_per_node", "{n}"), "first_barrier_torch.py",
                 most_ranks=8),
    ]


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ranks", type=numbers, default=[1, 8, 64], help="of `true`; default 1,8,64")
    parser.add_argument("--barriers", type=numbers, default=[2, 8, 32],
                        help="ranks of the first barrier; default 2,8,32")
    parser.add_argument("--rounds", type=int, default=20, help="default 20")
    parser.add_argument("--slow-rounds", type=int, default=3, help="of whoever takes more than a second; default 3")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a launch is killed; default 120")
    parser.add_argument("--only", type=lambda text: text.split(","), help="only these, such as 'vfork loop,colrun'")
    parser.add_argument("--colrun", default="colrun")
    parser.add_argument("--programs", type=pathlib.Path, default=pathlib.Path("build-peers"),
                        help="folder of what make has built")
    parser.add_argument("--undisturbed", action="store_true",
                        help="measure `true` at real-time priority, on a machine that has other work (needs the right)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="every time that was measured")
    return parser.parse_args()


def spawn(command, environment, files):
    """posix_spawn does not copy this process: it costs less than fork, and the same for everybody."""
    path = shutil.which(command[0])
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
               (os.POSIX_SPAWN_DUP2, files["out"], 1), (os.POSIX_SPAWN_DUP2, files["err"], 2)]
    return os.posix_spawn(path, command, environment, file_actions=actions, setpgroup=0)


def run(command, environment, scratch, limit):
    """(nanoseconds at its start, at its end), or what went wrong in words."""
    with open(f"{scratch}/out", "wb") as out, open(f"{scratch}/err", "wb") as err:
        began = time.monotonic_ns()
        pid = spawn(command, environment, {"out": out.fileno(), "err": err.fileno()})
        ended = os.pidfd_open(pid)
        try:
            in_time = select.select([ended], [], [], limit)[0]
            now = time.monotonic_ns()
            if not in_time:
                os.killpg(pid, signal.SIGTERM)
                if not select.select([ended], [], [], 10)[0]:
                    os.killpg(pid, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        finally:
            os.close(ended)
    if not in_time:
        return None, f"took more than {limit:g} s"
    if status != 0:
        words = pathlib.Path(f"{scratch}/err").read_text(errors="replace").strip().splitlines()
        return None, f"ended with {status}: {words[-1][:120] if words else 'no words'}"
    return (began, now), ""


def environment_of(launcher, scratch):
    # One thread each: nobody's start is to be that of its thread pools. Some print how many they chose otherwise.
    return {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": scratch, **launcher.environment}


def time_true(launcher, ranks, options, scratch):
    command = [word.replace("{n}", str(ranks)) for word in launcher.command]
    program = ["--no_python", "true"] if launcher.name == "torchrun" else ["true"]
    times, trouble = run(command + program, environment_of(launcher, scratch), scratch, options.limit)
    return (None, trouble) if trouble else ((times[1] - times[0]) / 1e6, "")


def time_barrier(launcher, ranks, options, scratch):
    mark = pathlib.Path(scratch) / "passed"
    mark.unlink(missing_ok=True)
    folder = HERE if launcher.program.endswith(".py") else options.programs.resolve()
    command = [word.replace("{n}", str(ranks)) for word in launcher.command]
    command += [str(folder / launcher.program), str(mark)]
    times, trouble = run(command, environment_of(launcher, scratch), scratch, options.limit)
    if trouble:
        return None, trouble
    return (int(mark.read_text()) - times[0]) / 1e6, ""


def measure(title, contestants, ranks, one, options):
    """{name: milliseconds of each round}; everybody once a round, so that what disturbs one disturbs all."""
    found = {launcher.name: [] for launcher in contestants}
    out = set()
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="launch-speed.", dir=shared) as scratch:
        for number in range(options.rounds + 1):
            for launcher in contestants:
                times = found[launcher.name]
                slow = bool(times) and times[0] > 1000
                if launcher.name in out or ranks > launcher.most_ranks or (slow and len(times) >= options.slow_rounds):
                    continue
                taken, trouble = one(launcher, ranks, options, scratch)
                if trouble:
                    out.add(launcher.name)
                    say(f"{title}, {ranks} ranks: {launcher.name} {trouble}")
                elif number > 0 or taken > 1000:  # the first round warms the file cache
                    times.append(taken)
    return {name: times for name, times in found.items() if times and name not in out}


def table(title, results, baseline):
    """One line for each launcher, one column for each number of ranks."""
    names = list(dict.fromkeys(name for times in results.values() for name in times))
    rows = [["", *(f"n = {ranks}" for ranks in results)]]
    for name in names:
        row = [name]
        for times in results.values():
            if name not in times:
                row.append("–")
                continue
            median = statistics.median(times[name])
            base = statistics.median(times[baseline]) if baseline in times else 0
            row.append(f"{median:.1f}" + (f" ({median / base:.2f})" if base else ""))
        rows.append(row)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print(title)
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  " + "  ".join([row[0].ljust(widths[0]), *cells]))


def available(all_launchers, options):
    chosen = []
    for launcher in all_launchers:
        if options.only and launcher.name not in options.only:
            continue
        if shutil.which(launcher.command[0]) is None:
            say(f"{launcher.name}: no {launcher.command[0]} here, left out")
        else:
            chosen.append(launcher)
    return chosen


def with_barrier(contestants, options):
    chosen = []
    for launcher in contestants:
        if not launcher.program:
            continue
        if launcher.program.endswith(".py") or (options.programs / launcher.program).exists():
            chosen.append(launcher)
        else:
            say(f"{launcher.name}: no {options.programs / launcher.program}, left out (make -C tests/peers start)")
    return chosen


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    options = parse_arguments()
    if options.rounds < 1 or options.slow_rounds < 1:
        sys.exit("launch_speed.py: give at least one round")
    contestants = available(launchers(options), options)
    if not contestants:
        sys.exit("launch_speed.py: nobody to measure; the names for --only are those in the code's list of launchers")
    installed = versions(options.programs, (("Open MPI", "libopenmpi3"), ("MPICH", "libmpich12")))
    record = {"machine": {**machine(), "versions": installed}, "rounds": options.rounds, "true_ms": {},
              "first_barrier_ms": {}}
    if options.undisturbed:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    for ranks in options.ranks:
        record["true_ms"][ranks] = measure("true", contestants, ranks, time_true, options)
    if options.undisturbed:  # ranks that spin at such a priority would leave nothing to anybody
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    for ranks in options.barriers:
        record["first_barrier_ms"][ranks] = measure("barrier", with_barrier(contestants, options), ranks, time_barrier,
                                                    options)
    table("start and end of n times `true`, ms (in brackets: over the fork loop)", record["true_ms"], "fork loop")
    table("from the start to the first barrier, ms", record["first_barrier_ms"], "")
    if options.json:
        options.json.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
