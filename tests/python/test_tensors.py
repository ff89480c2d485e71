"""What is accepted as a tensor, and what is refused."""

import array
import ctypes

import numpy as np
import pytest
import torch

import col


@pytest.mark.ranks(3)
def test_buffers(group):
    n = group.size
    total = sum(range(1, n + 1))
    block = bytearray([group.rank + 1] * 4)
    assert group.allreduce(block) is block
    assert block == bytes([total] * 4)
    numbers = array.array("d", [group.rank + 1.0])
    group.allreduce(numbers)
    assert numbers[0] == total
    view = memoryview(np.full(3, group.rank + 1, np.int32))
    group.allreduce(view)
    assert view.tolist() == [total] * 3
    pair = (ctypes.c_float * 2)(group.rank + 1, 0)
    group.allreduce(pair)
    assert list(pair) == [total, 0]
    out = np.zeros(4 * n, np.uint8)
    group.allgather(b"abcd", out)  # bytes are an input
    assert out.tobytes() == b"abcd" * n


class Lender:
    """Has DLPack alone."""

    def __init__(self, array, knows_versions):
        self.array, self.knows_versions = array, knows_versions

    def __dlpack__(self, **arguments):
        if arguments and not self.knows_versions:
            raise TypeError("unexpected keyword argument")
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("knows_versions", [False, True])
@pytest.mark.ranks(2)
def test_dlpack(group, knows_versions):
    data = np.full(5, group.rank + 1, np.float32)
    lender = Lender(data, knows_versions)
    assert group.allreduce(lender) is lender
    np.testing.assert_array_equal(data, 3)
    with pytest.raises(col.InvalidArgument, match="not contiguous"):
        group.allreduce(Lender(np.ones((4, 4), np.float32).T[1:], knows_versions))


@pytest.mark.ranks(2)
def test_dlpack_exchange_functions(group):
    from exchange import make_exchanged_type

    exchanged = make_exchanged_type()
    data = np.full(5, group.rank + 1, np.float32)
    x = exchanged(data)
    assert group.allreduce(x) is x
    np.testing.assert_array_equal(data, 3)
    with pytest.raises(col.InvalidArgument, match="does not lend"):
        group.allreduce(exchanged(None))


class OnGpu:
    def __init__(self, **members):
        self.__cuda_array_interface__ = {
            "data": (4096, False), "shape": (2, 3), "typestr": "<f4", "strides": None, "version": 3, **members,
        }


@pytest.mark.ranks(1)
def test_cuda_array_interface(group):
    with pytest.raises(col.Error, match="GPU|device|nccl|CUDA"):
        group.allreduce(OnGpu())
    with pytest.raises(col.InvalidArgument, match="not contiguous"):
        group.allreduce(OnGpu(strides=(4, 8)))
    with pytest.raises(col.InvalidArgument, match="dtype"):
        group.allreduce(OnGpu(typestr="<M8"))
    with pytest.raises(col.InvalidArgument, match="read-only"):
        group.allreduce(OnGpu(data=(4096, True)))


@pytest.mark.ranks(2)
def test_torch_tensors(group):
    base = torch.arange(6.0)
    group.allreduce(base[2:4])
    assert base.tolist() == [0, 1, 4, 6, 4, 5]
    parameter = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(col.InvalidArgument, match="requires grad.*detach"):
        group.allreduce(parameter)
    group.allreduce(parameter.data)
    with torch.no_grad():
        group.allreduce(parameter)
    assert parameter.tolist() == [4.0] * 3
    assert group.allgather(parameter).tolist() == [4.0] * 6  # an input may
    with pytest.raises(col.InvalidArgument, match="x.contiguous"):
        group.allreduce(torch.ones(4, 4).t()[1:])
    with pytest.raises(col.InvalidArgument, match="resolve_conj"):
        group.allreduce(torch.ones(2, dtype=torch.complex64).conj())
    with pytest.raises(col.InvalidArgument, match="no dense tensor"):
        group.allreduce(torch.eye(3).to_sparse())
    with pytest.raises(col.InvalidArgument, match="meta"):
        group.allreduce(torch.ones(3, device="meta"))


@pytest.mark.ranks(2)
def test_torch_booleans(group):
    x = torch.tensor([True, group.rank == 0])
    assert group.allreduce(x, op="band").tolist() == [True, False]


BAD = {
    "list": (lambda: [1.0, 2.0], "numpy.array"),
    "number": (lambda: 3.0, "numpy.array"),
    "None": (lambda: None, "pass a numpy array"),
    "object": (lambda: object(), "broadcast_object"),
    "text": (lambda: "abc", "broadcast_object"),
    "transposed": (lambda: np.ones((4, 4)).T[1:], "ascontiguousarray"),
    "stepped": (lambda: np.ones(8)[::2], "ascontiguousarray"),
    "dates": (lambda: np.ones(2, "M8[s]"), "datetime64"),
    "records": (lambda: np.zeros(2, [("a", "f4")]), "dtype"),
    "long double": (lambda: np.ones(2, np.longdouble), "dtype"),
    "texts": (lambda: np.array(["a"]), "dtype"),
    "objects": (lambda: np.array([None]), "dtype"),
    "other byte order": (lambda: np.ones(2, ">f4"), "byte order"),
    "read-only": (lambda: np.frombuffer(b"12345678"), "x.copy()"),
    "bytes": (lambda: b"abc", "pass a copy"),
    "pointers": (lambda: (ctypes.c_void_p * 2)(), "dtype"),
}


@pytest.mark.parametrize("what", BAD)
def test_refused(what):
    make, words = BAD[what]
    group = col.init()
    with pytest.raises(col.InvalidArgument, match=words) as caught:
        group.allreduce(make())
    assert caught.value.code == "invalid_argument" and str(caught.value).startswith("invalid_argument: allreduce: ")


def test_subclasses_and_scalars():
    group = col.init()
    matrix = np.ones((2, 2)).view(np.matrix)
    assert group.allreduce(matrix) is matrix
    assert group.allreduce(np.array(3.0)).shape == ()
    assert group.allgather(np.float32(3)[None]).tolist() == [3.0]


@pytest.mark.ranks(2)
def test_alloc(group):
    memory = col.alloc((3, 4), "float32", group)
    assert memory.shape == (3, 4) and memory.dtype == np.float32 and not memory.any()
    memory[:] = group.rank + 1
    group.allreduce(memory)
    assert (memory == 3).all()
    part = memory[1:]
    del memory
    assert (part == 3).all()  # lives as long as an array on it
    assert col.alloc(5, np.int64).shape == (5,)
    assert col.alloc((), torch.float64, group).shape == ()
    with pytest.raises(col.InvalidArgument, match="negative"):
        col.alloc((-1,), group=group)
    with pytest.raises(col.InvalidArgument, match="dtype|valid|use one of"):
        col.alloc(3, "float31" if False else "datetime64[s]", group)


@pytest.mark.ranks(2)
def test_alloc_is_freed(group):
    def resident():
        with open("/proc/self/maps") as maps:
            return len(maps.read().splitlines())

    for _ in range(3):
        col.alloc(1 << 20, group=group)
    before = resident()
    for _ in range(50):
        col.alloc(1 << 20, group=group)
    assert resident() <= before + 5
