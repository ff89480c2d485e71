"""src/examples/python/strategies.py under colrun, as a reader would start it."""

import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

import processes

EXAMPLE = pathlib.Path(__file__).parents[2] / "src" / "examples" / "python" / "strategies.py"


def start(size, *options, colrun=()):
    command = [processes.COLRUN, "-n", size, *colrun, sys.executable, EXAMPLE, *options]
    return subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def accuracies(out):
    return [float(line.split()[-1]) for line in out.splitlines() if line.startswith("epoch")]


@pytest.mark.parametrize(
    ("size", "strategy"), [(3, "allreduce"), (3, "zero"), (3, "ps"), (3, "ps-async"), (2, "pipeline"), (1, "pipeline")]
)
def test_it_learns_and_resumes(tmp_path, size, strategy):
    options = "--strategy", strategy, "--checkpoint", tmp_path / "checkpoint", "--epochs"
    code, out, err = processes.finish(start(size, *options, 3))
    assert code == 0, err
    first = accuracies(out)
    assert len(first) == 3 and out.startswith(f"{strategy} on {size} ranks over ")
    code, out, err = processes.finish(start(size, *options, 4))
    assert code == 0, err
    assert re.findall(r"^epoch +(\d+)", out, re.MULTILINE) == ["4"]
    assert accuracies(out)[0] > 0.9, (first, out)


def below(pid):
    """The processes that it has started, and those that these have."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    return [child for own in found for child in (int(own), *below(own))]


def test_allreduce_goes_on_without_a_rank_that_is_killed():
    process = start(3, "--epochs", 60, colrun=["--keep-going"])
    for line in process.stdout:
        if line.startswith("epoch   2"):
            break
    (rank_1,) = [pid for pid in below(process.pid) if b"\0COL_RANK=1\0" in pathlib.Path(f"/proc/{pid}/environ").read_bytes()]
    os.kill(rank_1, signal.SIGKILL)
    code, out, err = processes.finish(process)
    assert err.count("now 2 ranks go on after step") == 2 and accuracies(out)[-1] > 0.95, (out, err)


def test_what_is_wrong_is_said():
    code, _, err = processes.finish(start(3, "--strategy", "pipeline"))
    assert code != 0 and "start 2 ranks" in err
    code, _, err = processes.finish(start(1, "--strategy", "ps"))
    assert code != 0 and "start more ranks" in err
