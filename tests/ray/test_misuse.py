"""Ranks that do not fit together, and calls that are wrong: every member hears soon what is wrong."""

import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import ray

import col
import col.ray as collective
from members import join, leave, only_allreduce, total
from workers import LIMIT, everywhere, outcome, outcomes


@pytest.mark.parametrize(
    "count, size, ranks, words",
    [
        (2, 2, [0], "2 actors, but 1 ranks"), (2, 2, [0, 0], "two actors have rank 0"),
        (2, 2, [0, 2], "rank 2 does not fit"), (0, 0, [], "no actors"),
    ],
)
def test_declarations_that_are_wrong(workers, count, size, ranks, words):
    with pytest.raises(col.InvalidArgument, match=words):
        collective.create_collective_group(workers[:count], size, ranks, "gloo", "wrong")


def join_as(rank, size, name, timeout):
    try:
        return join(rank, size, name, timeout=timeout)
    finally:
        collective.destroy_collective_group(name)


def each_joins(workers, places, name, timeout):
    """What each worker hears that joins as (rank, size), and after how many seconds the last has heard it."""
    begin = time.monotonic()
    references = [worker.run.remote(join_as, *place, name, timeout) for worker, place in zip(workers, places)]
    return [outcome(reference) for reference in references], time.monotonic() - begin


@pytest.mark.parametrize("ranks", [(0, 1, 1), (0, 0, 1)])
def test_a_rank_twice(workers, ranks):
    heard, seconds = each_joins(workers, [(rank, 3) for rank in ranks], f"twice {ranks}", 20)
    for error in heard:
        assert isinstance(error, col.Mismatch) and f"rank {ranks[1]}" in str(error)
    assert seconds < 10


def test_world_sizes_that_disagree(workers):
    heard, seconds = each_joins(workers, [(0, 3), (1, 2), (2, 3)], "disagree", 20)
    assert all(isinstance(error, (col.Mismatch, col.InvalidArgument)) for error in heard), heard
    assert all("2" in str(error) and "3" in str(error) for error in heard)
    assert seconds < 10


@pytest.mark.parametrize("absent", [0, 2])
def test_a_rank_that_does_not_come(workers, absent):
    places = [(rank, 3) for rank in range(3) if rank != absent]
    heard, seconds = each_joins(workers, places, f"without {absent}", 1)
    assert all(isinstance(error, col.Timeout) and f"rank {absent}" in str(error) for error in heard), heard
    assert seconds < 10


def test_a_declared_actor_that_does_not_come(workers):
    """The others name it as Ray does: by its actor and its node."""
    collective.create_collective_group(workers[:3], 3, [0, 1, 2], "gloo", "absent", timeout=1)
    heard = outcomes(workers[:2], only_allreduce, "absent")
    for error in heard:
        assert isinstance(error, col.Timeout) and "rank 2" in str(error), heard
        assert workers[2]._actor_id.hex() in str(error) and ray.nodes()[0]["NodeID"] in str(error)
    collective.destroy_collective_group("absent")


def other_shape(rank, name):
    collective.allreduce(np.ones(3 if rank == 1 else 4), name)


def test_shapes_that_disagree(workers):
    everywhere(workers, join, 4, "shapes")
    everywhere(workers, join, 4, "beside")
    heard = outcomes(workers, other_shape, "shapes")
    assert all(isinstance(error, col.Mismatch) and "rank 1" in str(error) for error in heard), heard
    assert everywhere(workers, total, "beside") == [10] * 4
    for name in "shapes", "beside":
        everywhere(workers, leave, name)


def wrong_calls(rank, name):
    told = []
    for function in (
        lambda: collective.allreduce(np.ones(1), "nobody"),
        lambda: join(rank, 4, name),
        lambda: join(4, 4, "new"),
        lambda: join(-1, 4, "new"),
        lambda: join(0, 0, "new"),
        lambda: join(0, 1, ""),
        lambda: collective.init_collective_group(1, 0, "smoke", "new"),
        lambda: collective.allreduce("text", name),
        lambda: collective.broadcast(np.ones(1), 9, name),
        lambda: collective.send(np.ones(1), 9, name),
        lambda: collective.allgather([np.ones(1)] * 3, np.ones(1), name),
        lambda: collective.allreduce(np.ones(1), name, "plus"),
    ):
        try:
            function()
            told.append("nothing")
        except (ValueError, RuntimeError, TypeError) as error:
            told.append(type(error).__name__)
    collective.barrier(name)  # none of them broke the group
    return told


def test_calls_that_are_wrong(workers, group):
    expected = ["NotInitialized", "AlreadyInitialized", *["InvalidArgument"] * 10]
    for told in everywhere(workers, wrong_calls, group):
        assert [name.replace("TypeError", "InvalidArgument") for name in told] == expected


WITHOUT_RAY = """
    import sys
    class Blocker:
        def find_spec(self, name, path=None, target=None):
            if name == "ray" or name.startswith("ray."):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Blocker())
    import col.ray as collective
    assert "numpy" not in sys.modules and "torch" not in sys.modules
    class Handle:
        _actor_id = b"1"
    try:
        collective.create_collective_group([Handle()], 1, [0])
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""


def test_without_ray():
    """It says in one line what to install."""
    program = textwrap.dedent(WITHOUT_RAY)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert "pip install ray" in done.stdout and len(done.stdout.splitlines()) == 1, done.stdout
