"""Every collective of torch.distributed on col, against what it must be, and against Gloo."""

import os
import random

import pytest
import torch

import calls
import members
import trial

COUNTS = [0, 1, 15, 1001]
LARGE = 1 << 18  # elements: 1 MiB of float32
START = int(os.environ.get("COL_TEST_START", random.SystemRandom().randrange(1 << 30)))


@pytest.fixture(autouse=True)
def _start():
    print(f"COL_TEST_START={START} repeats it")


def over_types(groups, start, call, dtypes):
    """In every type and size. Returns the types in which Gloo confirms what is expected."""
    confirmed = []
    for dtype in dtypes:
        for count in COUNTS if dtype in (torch.float32, torch.uint8) else COUNTS[2:3]:
            trial.compare(groups, start + count, call, count, dtype=dtype)
        if trial.confirm(groups, start + 15, call, 15, dtype=dtype):
            confirmed.append(str(dtype))
    trial.compare(groups, start, call, LARGE)
    return confirmed


def over_ways(groups, start, call, dtypes):
    """In every layout and way to wait."""
    chosen = random.Random(start)
    for layout in trial.LAYOUTS:
        for way in trial.WAYS:
            for count in (15, chosen.choice(COUNTS)):
                dtype = chosen.choice(dtypes)
                trial.compare(groups, chosen.getrandbits(30), call, count, dtype=dtype, layout=layout, way=way)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("call", calls.REDUCTIONS + calls.OTHERS, ids=lambda call: call.__name__)
def test_call(call, size):
    dtypes = trial.NUMBERS if call in calls.REDUCTIONS else trial.DTYPES
    confirmed = members.run(size, over_types, START, call, dtypes)
    print(call.__name__, "confirmed by Gloo in", *confirmed[0])
    members.run(size, over_ways, START, call, dtypes)


@pytest.mark.parametrize("call", calls.REDUCTIONS + calls.OTHERS, ids=lambda call: call.__name__)
def test_four_ranks(call):
    members.run(4, over_ways, START, call, trial.NUMBERS if call in calls.REDUCTIONS else trial.DTYPES)


OPS = {
    "SUM": trial.NUMBERS + [torch.complex64],
    "PRODUCT": trial.NUMBERS,
    "MIN": trial.NUMBERS,
    "MAX": trial.NUMBERS,
    "AVG": trial.FLOATS[:2],
    "BAND": trial.NUMBERS[4:] + [torch.bool],
    "BOR": trial.NUMBERS[4:] + [torch.bool],
    "BXOR": trial.NUMBERS[4:] + [torch.bool],
}


def over_operators(groups, start, call):
    for op, dtypes in OPS.items():
        for dtype in dtypes:
            trial.compare(groups, start, call, 15, op, dtype=dtype)


@pytest.mark.parametrize("call", [calls.all_reduce, calls.reduce, calls.reduce_scatter, calls.reduce_scatter_tensor],
                         ids=lambda call: call.__name__)
def test_operators(call):
    members.run(2, over_operators, START, call)
    members.run(3, over_operators, START, call)


def some_wait_at_once(groups, start):
    """async_op is a rank's own affair."""
    for call in calls.REDUCTIONS + calls.OTHERS:
        way = "sync" if groups.rank == 0 else "wait"
        trial.compare(groups, start, call, 15, way=way)


def test_some_wait_at_once():
    members.run(3, some_wait_at_once, START)
