"""The programs of the documents that col began with, written anew, as a reader starts them. test_notebook.py has the notebook, and
test_multigpu.py the program for GPUs."""

import os
import pathlib
import subprocess
import sys

import clusters

EXAMPLES = pathlib.Path(__file__).parents[2] / "src" / "examples" / "python"


def run(script, *options, **environment):
    answer = subprocess.run(
        [sys.executable, str(script), *options], env={**os.environ, **clusters.ALONE, **environment},
        capture_output=True, text=True, timeout=200,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout.splitlines()


def example(name, **environment):
    """Without the machine's GPUs: allreduce.py would take them, and col another backend."""
    return run(EXAMPLES / "collective_in_ray" / name, **{"CUDA_VISIBLE_DEVICES": "", **environment})


def test_allreduce():
    ones = "[2.0, 2.0, 2.0, 2.0]"
    assert example("allreduce.py") == [
        "moved by shm", *(f"rank {rank}: send {ones}, recv {ones}" for rank in range(2)), "still in the group: False False"
    ]  # fmt: skip


def test_declarative():
    assert example("declarative.py") == ["the actors called: 2.0 2.0", "the driver called: 4.0 4.0"]


def test_messages():
    *lines, last = example("messages.py")
    assert lines == ["both ends: 1.0 1.0", "sum: 2.0 2.0", "A has what B had: 2.0"]
    assert last.startswith("one end alone: ") and "rank 0" in last


def test_multigpu_without_gpus_says_where_stand_ins_are():
    answer = subprocess.run(
        [sys.executable, str(EXAMPLES / "collective_in_ray" / "multigpu.py")], env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert answer.returncode == 1 and "docs/ray.md" in answer.stderr
