"""A GPU for a torch that was built without: torch.cuda's streams and events, as far as col.torch uses them, over the stand-ins of
tests/python/stand_ins.py, and tensors in their memory. torch itself computes nothing there: it sees the memory as the host's."""

import ctypes
import threading
from contextlib import contextmanager

import torch

import members
import stand_ins

_DISABLE_TIMING = 2


class Event:
    def __init__(self):
        stand_ins.make_current(_ordinal)  # in whatever thread, as the CUDA runtime does
        self._event = ctypes.c_void_p()
        stand_ins.driver().cuEventCreate(ctypes.byref(self._event), _DISABLE_TIMING)

    def record(self, stream):
        stand_ins.driver().cuEventRecord(self._event, ctypes.c_void_p(stream.cuda_stream))

    def hold_up(self, stream):
        stand_ins.driver().cuStreamWaitEvent(ctypes.c_void_p(stream.cuda_stream), self._event, 0)

    def query(self):
        return stand_ins.driver().cuEventQuery(self._event)

    def synchronize(self):
        stand_ins.driver().cuEventSynchronize(self._event)


class Stream:
    def __init__(self, device=None, cuda_stream=None):
        stand_ins.make_current(_ordinal)
        self.device = torch.device("cuda", _ordinal)
        self.cuda_stream = stand_ins.new_stream() if cuda_stream is None else cuda_stream

    def __eq__(self, other):
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def record_event(self):
        event = Event()
        event.record(self)
        return event

    def wait_event(self, event):
        event.hold_up(self)

    def query(self):
        return stand_ins.is_idle(self.cuda_stream)

    def synchronize(self):
        stand_ins.synchronize(self.cuda_stream)


class Tensor(torch.Tensor):
    """float32 in memory of the GPU."""

    device = property(lambda self: torch.device("cuda", _ordinal))
    is_cpu = property(lambda self: False)
    is_cuda = property(lambda self: True)

    def get_device(self):
        return _ordinal

    def fill(self, value, stream):
        """By a copy from the host in the stream."""
        self.memory.fill(value, stream.cuda_stream)


def tensor(count):
    memory = stand_ins.Memory(count)
    made = torch.Tensor._make_subclass(Tensor, torch.from_numpy(memory.data))
    made.memory = memory
    return made


_ordinal = 0
_own = threading.local()


def current_stream(device=None):
    return getattr(_own, "stream", None) or Stream(cuda_stream=stand_ins.LEGACY)


@contextmanager
def in_stream(stream):
    before, _own.stream = getattr(_own, "stream", None), stream
    try:
        yield
    finally:
        _own.stream = before


@contextmanager
def _on(device):
    stand_ins.make_current(_ordinal)
    yield


def join(store, rank, size):
    """As members' ranks, of which each has a GPU."""
    global _ordinal
    _ordinal = rank
    stand_ins.make_current(rank)
    groups, leave = members._join(store, rank, size)
    for name, ours in {
        "Event": Event, "Stream": Stream, "current_stream": current_stream, "stream": in_stream, "device": _on,
        "synchronize": lambda device=None: stand_ins.make_current(rank),
    }.items():
        setattr(torch.cuda, name, ours)
    return groups, leave
