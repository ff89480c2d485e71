"""The example that is for both: on col it prints what it prints on Gloo."""

import pathlib
import subprocess
import sys

import pytest

import processes

EXAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "src/examples/python/torch_backend.py"


def printed(size, *arguments):
    done = subprocess.run(
        [processes.COLRUN, "-n", str(size), sys.executable, "-W", "ignore", str(EXAMPLE), *arguments],
        capture_output=True, text=True, timeout=processes.LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return processes.lines(done.stdout)


@pytest.mark.parametrize("size", [1, 2])
def test_the_same_on_col_as_on_gloo(size):
    """To the last printed digit: two numbers have one sum."""
    on_col = printed(size)
    assert on_col == printed(size, "gloo")
    assert on_col[:6] == [
        f"reduce: [{size * (size + 1) / 2}]", f"all_reduce: [{size * (size + 1) / 2}]", "scatter: [0.0]",
        f"gather: {[r + 1.0 for r in range(size)]}", f"all_gather: {[r + 1.0 for r in range(size)]}", "broadcast: [1.0]",
    ]
    losses = [float(line.split()[-1]) for line in on_col[6:]]
    assert len(losses) == 3 and losses == sorted(losses, reverse=True) and losses[-1] < 0.2
