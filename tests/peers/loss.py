#!/usr/bin/env python3
"""A rank is killed in an allreduce: when do the others have an error, and when a right sum without it?

scripts/dev peers prints this as one of its tables (run.py), where what it needs is built. Everybody takes turns, in another
order each round: col renews the group, Open MPI 5 revokes and shrinks it (ULFM), PyTorch makes a new one with Gloo.
"""

import collections
import math
import os
import pathlib
import random
import socket
import statistics
import subprocess
import tempfile

from comparison import ratio_of
from contestants import HERE, RIVALS
from launch import launch_commands

NAMES = {"col": "col, renew()", "openmpi5": f"{RIVALS['openmpi5']}, ULFM", "torch": "PyTorch, Gloo, told whom"}


def contestants(places):
    """{name: function of (ranks, the file for the times, the scratch folder) that gives what is to be started}"""
    ours, ulfm = (places.programs / f"loss_loop_{name}" for name in ("col", "openmpi5"))
    mpirun = places.launcher_of("openmpi5", "mpirun", "")
    found = {}
    if ours.exists():
        found["col"] = lambda n, times, scratch: [([places.colrun, "--keep-going", "-n", str(n), str(ours), times], {})]
    if ulfm.exists() and mpirun:
        always = ["--allow-run-as-root", "--oversubscribe", "--with-ft", "ulfm", "--mca", "btl", "self,sm", "--mca", "pml", "ob1"]
        found["openmpi5"] = lambda n, times, scratch: [
            ([mpirun, *always, "--mca", "btl_sm_backing_directory", scratch, "-n", str(n), str(ulfm), times], {})]
    python = "/usr/bin/python3"  # the distribution's, whose PyTorch scripts/dev peers installs
    if subprocess.run([python, "-c", "import torch.distributed"], capture_output=True, check=False).returncode == 0:
        found["torch"] = lambda n, times, scratch: torch_ranks(python, n, times)
    return found


def torch_ranks(python, ranks, times):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    common = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    command = [python, str(HERE / "loss_loop_torch.py"), times]
    return [(command, {**common, "RANK": str(rank)}) for rank in range(ranks)]


def launch_once(commands, ranks, limit):
    """(ms until the last survivor has its error, ms until it has a right sum, why there is none)"""
    with tempfile.NamedTemporaryFile(prefix="col-loss.") as times:
        def prepare(scratch):
            common = {**os.environ, "OMP_NUM_THREADS": "1", "CONTEST_START_LINE": f"{scratch}/start_line", "TMPDIR": f"{scratch}/tmp"}
            return [(command, {**common, **own}) for command, own in commands(ranks, times.name, scratch)]

        # The rank that is killed makes the launch fail: whether all went well is in the file.
        done = launch_commands(prepare, limit, "/dev/shm" if os.path.isdir("/dev/shm") else None, fail_alone=True)
        found = collections.defaultdict(list)
        for line in pathlib.Path(times.name).read_text().splitlines():
            word, when = line.split()
            found[word].append(int(when) / 1e6)
    if [len(found[word]) for word in ("killed", "caught", "right")] != [1, ranks - 1, ranks - 1]:
        return None, None, done.trouble or "a survivor had no right sum"
    return max(found["caught"]) - found["killed"][0], max(found["right"]) - found["killed"][0], ""


def measure(places, counts, rounds, limit, launches, say):
    """Adds one dictionary to `launches` for each."""
    found = contestants(places)
    chance = random.Random(1)
    for number in range(rounds):
        for ranks in counts:
            say(f"a rank dies, round {number + 1} of {rounds}: {ranks} ranks")
            for name in chance.sample(list(found), len(found)):
                caught, right, trouble = launch_once(found[name], ranks, min(limit, 30))
                launches.append({"round": number, "name": name, "ranks": ranks, "caught_ms": caught, "right_ms": right,
                                 "trouble": trouble})
                if trouble:
                    say(f"{name}, {ranks} ranks, a rank dies: {trouble}")


def lines(launches):
    """Of the table: medians by ranks and contestant, and how many times as long as col each took."""
    for ranks in sorted({launch["ranks"] for launch in launches}):
        by_name = {name: [launch for launch in launches if (launch["ranks"], launch["name"]) == (ranks, name)] for name in NAMES}
        good = {name: [launch for launch in own if not launch["trouble"]] for name, own in by_name.items()}
        times = {name: {launch["round"]: launch["right_ms"] for launch in own} for name, own in good.items()}
        for name, own in by_name.items():
            right = sorted(times[name].values())
            if own:
                figures = [statistics.median(launch["caught_ms"] for launch in good[name]), statistics.median(right),
                           right[math.ceil(0.95 * len(right)) - 1]] if right else []
                yield [str(ranks), NAMES[name], *([f"{figure:.1f}" for figure in figures] or ["–"] * 3),
                       ratio_of(times["col"], times[name]), f"{len(own) - len(right)} of {len(own)}"]


HEAD = ["ranks", "", "error, ms", "right sum, ms", "95 % of these", "÷ col (95 %)", "failed"]
