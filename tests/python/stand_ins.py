"""A GPU for each rank, by this project's stand-ins for CUDA and NCCL (tests/support/fake_gpu): meson.build puts them where programs
find them. Memory and streams of theirs, as a library of arrays has them, without one. With FAKE_GPU_PROTECT=0 the host may read
and write the memory."""

import ctypes
from contextlib import contextmanager

import numpy as np

import col

import ranks

LEGACY, PER_THREAD = 1, 2
_NOT_READY, _NON_BLOCKING = 600, 1


class Driver:
    """libcuda.so.1. What a call returns is looked at, but that of a look whether something has ended."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name):
        function = getattr(self._library, name)
        if name.startswith("fake_gpu_"):
            return function

        def call(*args):
            result = function(*args)
            assert result in (0, _NOT_READY), f"{name}: {result}"
            return result == 0

        return call

    def calls(self, name):
        """How often this process has called it."""
        self._library.fake_gpu_calls.restype = ctypes.c_size_t
        return self._library.fake_gpu_calls(name.encode())


def driver():
    return Driver()


def make_current(ordinal):
    context = ctypes.c_void_p()
    driver().cuInit(0)
    driver().cuCtxGetCurrent(ctypes.byref(context))
    if context.value is not None:
        return
    driver().cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal)
    driver().cuCtxSetCurrent(context)


def join(store, rank, size):
    make_current(rank)
    return col.init(store="file://" + store, rank=rank, world_size=size, timeout=ranks.LIMIT / 2, backend="nccl"), col.finalize


def run(size, function, *args):
    """Calls function(group, *args) on each rank, in a group of GPUs."""
    return ranks.run(size, function, *args, join=join)


def new_stream():
    """One that takes no part in the order of the legacy default stream, as those of cupy and torch."""
    stream = ctypes.c_void_p()
    driver().cuStreamCreateWithPriority(ctypes.byref(stream), _NON_BLOCKING, 0)
    return stream.value


def is_idle(stream):
    return driver().cuStreamQuery(ctypes.c_void_p(stream))


def synchronize(stream):
    driver().cuStreamSynchronize(ctypes.c_void_p(stream))


class Memory:
    """`count` numbers of float32 on the GPU that is current; `data` is the host's view of them."""

    def __init__(self, count):
        address = ctypes.c_uint64()
        driver().cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * count))
        self.address, self.count = address.value, count
        self.data = self._view(address.value)
        self._hosts = [self._new_host() for _ in range(4)]  # here: later, allocating would wait for what is on the GPU

    def _view(self, address):
        return np.frombuffer((ctypes.c_float * self.count).from_address(address), np.float32)

    def _new_host(self):
        host = ctypes.c_void_p()
        driver().cuMemHostAlloc(ctypes.byref(host), ctypes.c_size_t(4 * self.count), 0)
        return host.value

    def fill(self, value, stream):
        """A copy from the host, in the stream; held up by held_copies(). At most four at a time."""
        self._hosts.append(self._hosts.pop(0))
        self._view(self._hosts[-1])[:] = value
        driver().cuMemcpyAsync(
            ctypes.c_uint64(self.address), ctypes.c_uint64(self._hosts[-1]), ctypes.c_size_t(4 * self.count), ctypes.c_void_p(stream))


@contextmanager
def held_copies():
    """While it lasts, no copy to a GPU of this process begins, nor what comes after it in its stream."""
    driver().fake_gpu_hold_copies_to_device(1)
    try:
        yield
    finally:
        driver().fake_gpu_hold_copies_to_device(0)
