"""Arrays of other libraries say in which stream these work on them, and a call comes after that: over stand-ins for GPUs."""

import ctypes
import os

import numpy as np
import pytest

import col

import exchange
import stand_ins
from stand_ins import LEGACY, PER_THREAD, held_copies, is_idle, new_stream

COUNT = 1000

pytestmark = pytest.mark.skipif("STAND_INS" not in os.environ, reason="there are no stand-ins for GPUs")


class Array(stand_ins.Memory):
    """Of a library that works in `stream`."""

    def __init__(self, count=COUNT):
        super().__init__(count)
        self.stream = new_stream()

    @property
    def __cuda_array_interface__(self):
        return {
            "data": (self.address, False), "shape": (self.count,), "typestr": "<f4", "version": 3, "stream": self.stream,
        }


class Lent(Array):
    """By DLPack, in which the library brings its own work in order; the interface's second version knows no streams."""

    asked = ()

    @property
    def __cuda_array_interface__(self):
        return {"data": (self.address, False), "shape": (self.count,), "typestr": "<f4", "version": 2}

    def __dlpack_device__(self):
        return 2, col.get_group().rank

    def __dlpack__(self, **arguments):
        self.asked = arguments.get("stream")
        return exchange.gpu_capsule(self.address, self.count, col.get_group().rank)


def in_order(group, make, own, call):
    """The call is made while the library's work, in `own`, is held up."""
    make_stream = {"none": lambda: 0, "other": new_stream, "legacy": lambda: LEGACY}
    stream = make_stream[call]()
    x = make()
    x.stream = {"own": x.stream, "thread": PER_THREAD}[own]
    with held_copies():
        x.fill(group.rank + 1, x.stream)
        work = group.iallreduce(x, stream=stream or None)
        # What the call's stream gets from now on waits, too.
        assert not is_idle(stream or LEGACY)
        assert not work.done()
    work.wait()
    assert (x.data == sum(range(1, group.size + 1))).all(), x.data[:4]


@pytest.mark.parametrize("call", ["none", "other", "legacy"])
@pytest.mark.parametrize("own", ["own", "thread"])
def test_a_call_comes_after_the_work_of_the_arrays_library(own, call):
    stand_ins.run(2, in_order, Array, own, call)


def by_functions(group):
    in_order(group, exchange.make_gpu_type(Array, group.rank), "own", "none")


def test_dlpacks_functions_name_the_stream():
    stand_ins.run(2, by_functions)


def in_each_call(group):
    x, out = Array(), Array(2 * COUNT)
    peer = 1 - group.rank

    def ordered(call):
        with held_copies():
            out.fill(0, out.stream)
            work = call()
            assert not is_idle(LEGACY)
        work.wait()

    x.data[:] = group.rank + 1
    ordered(lambda: group.iallgather(x, out))
    assert (out.data == np.repeat([1, 2], COUNT)).all()
    for start in (
        lambda: group.ibatch([col.Message.send(x, peer), col.Message.recv(half, peer)]),
        lambda: (group.isend(x, peer), group.irecv(half, peer))[1],
    ):
        half = Array()
        half.stream = out.stream
        ordered(start)
        assert (half.data == peer + 1).all()


def test_outputs_and_messages():
    stand_ins.run(2, in_each_call)


def nothing_asked(group):
    x = Array()
    x.data[:] = 1
    before = [stand_ins.driver().calls(name) for name in ("cuEventRecord", "cuStreamWaitEvent")]
    own = new_stream()
    for x.stream in (None, own):
        group.allreduce(x, stream=own)
        group.barrier()
    x.stream = None
    plain = [stand_ins.driver().calls(name) for name in ("cuEventRecord", "cuStreamWaitEvent")]
    group.allreduce(x, stream=own)
    after = [stand_ins.driver().calls(name) for name in ("cuEventRecord", "cuStreamWaitEvent")]
    per_call = [now - then for then, now in zip(plain, after)]
    assert per_call[1] == 0 and per_call[0] <= 1, (before, plain, after)
    x.stream = own
    group.allreduce(x, stream=own)
    again = [stand_ins.driver().calls(name) for name in ("cuEventRecord", "cuStreamWaitEvent")]
    assert [now - then for then, now in zip(after, again)] == per_call


def test_no_event_where_no_order_is_asked_for():
    stand_ins.run(2, nothing_asked)


def by_dlpack(group):
    x, own = Lent(), new_stream()
    x.data[:] = 1
    for stream in (None, own):
        group.allreduce(x, stream=stream)
        assert x.asked == stream
    graph, capture = ctypes.c_void_p(), ctypes.c_void_p(own)
    driver = stand_ins.driver()
    driver.cuStreamBeginCapture_v2(capture, 1)
    group.allreduce(x, stream=own)
    driver.cuStreamEndCapture(capture, ctypes.byref(graph))
    assert x.asked == -1
    driver.cuGraphDestroy(graph)


def test_dlpack_is_told_the_calls_stream():
    stand_ins.run(2, by_dlpack)


def captured(group):
    """A captured call is not spoilt by an array that names another stream, and names none that is captured."""
    x, own = Array(), new_stream()
    group.allreduce(x)
    driver, graph, capture = stand_ins.driver(), ctypes.c_void_p(), ctypes.c_void_p(own)
    driver.cuStreamBeginCapture_v2(capture, 1)
    group.allreduce(x, stream=own)
    x.stream = own
    with pytest.raises(col.InvalidArgument, match="x: the stream that its library works in: it is being captured"):
        group.allreduce(x)
    driver.cuStreamEndCapture(capture, ctypes.byref(graph))
    driver.cuGraphDestroy(graph)
    x.stream = None
    group.allreduce(x)


def test_captures():
    stand_ins.run(2, captured)


def wrong(group):
    x = Array()
    for x.stream in (0, "a", -1):
        with pytest.raises(col.InvalidArgument, match="'stream' of its __cuda_array_interface__ is .*names no stream.*cudaStream_t"):
            group.allreduce(x)


def test_what_names_no_stream_is_refused():
    stand_ins.run(2, wrong)
