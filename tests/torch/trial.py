"""One call of torch.distributed on each rank of a group, with the results that are expected of it.

A test's function makes a Trial, whose values every rank can compute for all ranks, makes the call, and says what must be in
each tensor afterwards. The same function runs on Gloo, which thereby confirms what is expected, wherever Gloo has the call.
"""

import contextlib
import os
import random
import time
from datetime import timedelta

import torch

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64,
    torch.bool, torch.complex64,
]
FLOATS = DTYPES[:4]
NUMBERS = [dtype for dtype in DTYPES if dtype not in (torch.bool, torch.complex64)]

# How a tensor lies in memory, and how a call is waited for.
LAYOUTS = ["plain", "transposed", "strided", "offset", "grad"]
WAYS = ["sync", "wait", "timed", "poll", "future", "then"]

# Where the tensors are: "cuda" on a machine with GPUs (docs/gpu-first-run.md).
DEVICE = torch.device(os.environ.get("COL_TEST_DEVICE", "cpu"))

UNTOUCHED = 77  # what is in outputs before a call; no value is ever that


class Trial:
    def __init__(self, group, rank, size, start, dtype=torch.float32, layout="plain", way="sync"):
        self.group, self.rank, self.size, self.dtype, self.layout, self.way = group, rank, size, dtype, layout, way
        self.random = random.Random(start)  # the same on every rank
        self.mode = self.call_mode = None  # whether tensors are made, and calls, in inference mode; None: as the caller is

    def values(self, *shape):
        """A tensor of small integers, whose sums and products are exact in every type."""
        generator = torch.Generator().manual_seed(self.random.getrandbits(30))
        values = torch.randint(0, 4, shape, generator=generator)
        if self.dtype == torch.complex64:
            return torch.complex(values.float(), torch.randint(0, 4, shape, generator=generator).float())
        return values.to(self.dtype)

    def of_ranks(self, *shape):
        return [self.values(*shape) for _ in range(self.size)]

    def lay(self, values):
        """A copy on the trial's device that lies in memory as the trial wants."""
        with mode(self.mode):
            return self._lay(values)

    def _lay(self, values):
        values = values.to(DEVICE)
        if self.layout == "transposed" and values.dim() == 2:
            return values.t().contiguous().t()
        if self.layout == "strided":
            room = torch.full((*values.shape, 2), UNTOUCHED).to(values)
            room[..., 0] = values
            return room[..., 0]
        if self.layout == "offset":
            room = torch.full((values.numel() + 3,), UNTOUCHED).to(values)
            room[1 : 1 + values.numel()] = values.reshape(-1)
            return room[1 : 1 + values.numel()].view(values.shape)
        if self.layout == "grad" and (values.dtype.is_floating_point or values.dtype.is_complex):
            return values.clone().requires_grad_()
        return values.clone()

    def empty(self, *shape):
        return self.lay(torch.full(shape, UNTOUCHED).to(self.dtype))

    def call(self, function, *args, **more):
        """Makes the call, and waits for its end in the trial's way."""
        way = self.way
        with mode(self.call_mode):
            work = function(*args, group=self.group, async_op=way != "sync", **more)
            if way == "sync":
                assert work is None
            else:
                wait(work, way)


def mode(on):
    return contextlib.nullcontext() if on is None else torch.inference_mode(on)


def wait(work, way):
    if isinstance(work, torch._C.Future):  # what the calls return that are "coalesced"
        work.wait()
        assert work.done()
    elif way == "wait":
        assert work.wait()
    elif way == "timed":
        assert work.wait(timeout_of(20))
        assert work.is_completed() and work.get_future().done()
    elif way == "poll":
        until = time.monotonic() + 20
        while not work.is_completed():
            assert time.monotonic() < until
            time.sleep(0)
        assert work.wait()
    elif way == "future":
        work.get_future().wait()
        assert work.is_completed()
    elif way == "then":
        assert work.get_future().then(lambda future: (future.value(), 5)[1]).wait() == 5


def timeout_of(seconds):
    return timedelta(seconds=seconds)


def check(call, trial, pairs):
    """Compares what the tensors hold with what they must."""
    for place, (actual, expected) in enumerate(pairs):
        actual = actual.detach().cpu()
        assert actual.dtype == expected.dtype and actual.shape == expected.shape, (actual.dtype, expected.dtype)
        assert torch.equal(actual, expected), (
            f"{call.__name__}, output {place} of rank {trial.rank} of {trial.size}, "
            f"{trial.dtype}, {trial.layout}, {trial.way}:\n{actual}\nmust be\n{expected}"
        )


def compare(groups, start, call, *args, **how):
    """Makes the call on col."""
    trial = Trial(groups.col, groups.rank, groups.size, start, **how)
    check(call, trial, call(trial, *args))


def confirm(groups, start, call, *args, **how):
    """Makes the call on Gloo. Returns whether Gloo has it. Some of Gloo's calls crash if there are no elements."""
    if DEVICE.type != "cpu":
        return False
    trial = Trial(groups.gloo, groups.rank, groups.size, start, **how)
    try:
        pairs = call(trial, *args)
    except (RuntimeError, ValueError):  # every rank's: it has no such type, reduction or call
        return False
    check(call, trial, pairs)
    return True
