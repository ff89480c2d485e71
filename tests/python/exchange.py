"""A type that lends its memory by DLPack's C functions, as torch's does from 2.9 on, written in ctypes."""

import ctypes

import numpy as np


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]


ManagedFromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed)))
FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))

CurrentStream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p), ("managed_from_object", ManagedFromObject),
        ("object_from_managed", ctypes.c_void_p), ("tensor_from_object", FromObject), ("current_stream", ctypes.c_void_p),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def describe(array, shape, tensor):
    describe_at(array.ctypes.data, (1, 0), 8 * array.itemsize, shape, tensor)


def describe_at(address, device, bits, shape, tensor):
    tensor.data = address
    tensor.device_type, tensor.device_id = device
    tensor.ndim = 1
    tensor.code, tensor.bits, tensor.lanes = 2, bits, 1
    tensor.shape = shape
    tensor.strides = None
    tensor.byte_offset = 0


def describe_read_only(array, shape):
    managed = Managed(major=1, minor=0, flags=1)
    describe(array, shape, managed.tensor)
    return managed


def shape_of(array):
    return (ctypes.c_int64 * 1)(0 if array is None else np.size(array))


_lent = []  # their capsules have no destructor


def read_only_capsule(array):
    """What an array's __dlpack__() returns in a library that can say that it is read-only."""
    shape = shape_of(array)
    _lent.append((array, shape, describe_read_only(array, shape)))
    return new_capsule(ctypes.addressof(_lent[-1][-1]), b"dltensor_versioned", None)


def gpu_capsule(address, count, ordinal):
    """What __dlpack__() returns for float32 on a GPU."""
    managed, shape = Managed(major=1, minor=0), (ctypes.c_int64 * 1)(count)
    describe_at(address, (2, ordinal), 32, shape, managed.tensor)
    _lent.append((shape, managed))
    return new_capsule(ctypes.addressof(managed), b"dltensor_versioned", None)


def make_gpu_type(base, ordinal):
    """As `base`, of stand_ins.Memory, whose library works in the `stream` of the array that was made last."""

    @FromObject
    def lend(lender, tensor):
        lender.shape = (ctypes.c_int64 * 1)(lender.count)
        describe_at(lender.address, (2, ordinal), 32, lender.shape, tensor.contents)
        return 0

    @CurrentStream
    def current(device_type, device_id, stream):
        assert (device_type, device_id) == (2, ordinal)
        stream[0] = Exchanged.latest.stream
        return 0

    api = Api(major=1, minor=3, tensor_from_object=lend, current_stream=ctypes.cast(current, ctypes.c_void_p))

    class Exchanged(base):
        __dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(api), b"dlpack_exchange_api", None)
        kept = (api, lend, current)

        def __init__(self, *args):
            super().__init__(*args)
            Exchanged.latest = self

    return Exchanged


def make_exchanged_type(read_only=False):
    @FromObject
    def lend(lender, tensor):
        if lender.array is None:
            return -1  # ctypes cannot set an exception as well
        describe(lender.array, lender.shape, tensor.contents)
        return 0

    @ManagedFromObject
    def lend_read_only(lender, managed):
        lender.managed = describe_read_only(lender.array, lender.shape)
        managed[0] = ctypes.pointer(lender.managed)
        return 0

    api = Api(major=1, minor=3, tensor_from_object=lend)
    if read_only:
        api.managed_from_object = lend_read_only
    name = b"dlpack_exchange_api"

    class Exchanged:
        __dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(api), name, None)
        kept = (api, lend, lend_read_only, name)

        def __init__(self, array):
            self.array = array
            self.shape = shape_of(array)

    return Exchanged
