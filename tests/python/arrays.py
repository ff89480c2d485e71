"""The data of the tests, in numpy and torch, and the obvious reference."""

import numpy as np
import torch

NUMPY_DTYPES = [
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
    "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2",
]
TORCH_DTYPES = [
    "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]


def numpy_dtype(name):
    if name == "bfloat16" or name.startswith("float8"):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


class Numpy:
    dtypes = NUMPY_DTYPES

    @staticmethod
    def make(values, dtype):
        return np.array(values).astype(numpy_dtype(dtype))

    @staticmethod
    def plain(array):
        """As float64 or complex128, so that all can be compared."""
        assert isinstance(array, np.ndarray)
        return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)

    @staticmethod
    def is_same_kind(array, dtype):
        return isinstance(array, np.ndarray) and array.dtype == numpy_dtype(dtype)


class Torch:
    dtypes = TORCH_DTYPES

    @staticmethod
    def make(values, dtype):
        return torch.tensor(values).to(getattr(torch, dtype))

    @staticmethod
    def plain(tensor):
        assert isinstance(tensor, torch.Tensor)
        return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64).numpy()

    @staticmethod
    def is_same_kind(tensor, dtype):
        return isinstance(tensor, torch.Tensor) and tensor.dtype == getattr(torch, dtype)


LIBRARIES = {"numpy": Numpy, "torch": Torch}


def values_of(rank, count, seed=0):
    """Small whole numbers, which every type holds. All but 8-bit floats hold sums over five ranks, too."""
    return np.random.default_rng(1000 * seed + rank).integers(0, 5, count).astype(np.float64)
