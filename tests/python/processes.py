"""Runs programs as ranks, each test with processes of its own."""

import multiprocessing
import os
import subprocess
import sys
import textwrap

COLRUN = os.environ.get("COLRUN", "colrun")
LIMIT = 60

# For ranks of no launcher: those that join by themselves, or that a test kills while the others' results count, where
# colrun would end all. They are forked where numpy and torch are imported already.
context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["numpy", "torch", "col"])


def start(size, program, *options):
    """The program as ranks under colrun."""
    command = [COLRUN, "-n", str(size), *options, sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def start_alone(rank, size, directory, *command, **environment):
    """A rank of no launcher, with the job's store in the directory."""
    place = {"COL_RANK": str(rank), "COL_WORLD_SIZE": str(size), "COL_STORE": f"file://{directory}", "COL_JOB_ID": "alone"}
    return subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **place, **environment},
    )


def finish(process):
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate(timeout=LIMIT)
        raise AssertionError(f"it has not ended after {LIMIT} s:\n{out}\n{err}")
    return process.returncode, out, err


def lines(out):
    """Those of a program. Torch 2.8's Gloo prints its own beside them."""
    return [line for line in out.splitlines() if not line.startswith("[Gloo]")]


def run(size, program, *options):
    """Its exit code, and what it wrote to stdout and stderr."""
    return finish(start(size, program, *options))


def alone(program, **environment):
    """One process without a launcher."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    )
    return finish(process)
