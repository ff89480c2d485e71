"""Arrays on a GPU without cupy or torch, for multigpu.py: a program that has one of them takes its arrays.

They are made by the CUDA driver (libcuda.so.1), and col reads them by their __cuda_array_interface__.
"""

from __future__ import annotations

import ctypes
from typing import Any, Sequence


def _driver() -> Any:
    """None where there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return driver if driver.cuInit(0) == 0 else None


def count() -> int:
    """How many GPUs this process sees."""
    driver, number = _driver(), ctypes.c_int(0)
    if driver is not None:
        driver.cuDeviceGetCount(ctypes.byref(number))
    return number.value


def make_current(gpu: int) -> None:
    """The GPU that a group takes for this process's, if it joins one now."""
    driver, device, context = _driver(), ctypes.c_int(), ctypes.c_void_p()
    if driver is None or driver.cuDeviceGet(ctypes.byref(device), gpu) != 0:
        raise RuntimeError(f"this process has no GPU {gpu}")
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) != 0 or driver.cuCtxSetCurrent(context) != 0:
        raise RuntimeError(f"GPU {gpu} cannot be used")


class Device:
    def __init__(self, id: int) -> None:
        self.id = id


class Array:
    """float32 on one GPU of this process. It lives as long as the process."""

    def __init__(self, gpu: int, values: Sequence[float]) -> None:
        make_current(gpu)
        self.device, self._driver, self._count = Device(gpu), _driver(), len(values)
        self._pointer = ctypes.c_uint64()
        host = (ctypes.c_float * self._count)(*values)
        if self._driver.cuMemAlloc_v2(ctypes.byref(self._pointer), ctypes.c_size_t(ctypes.sizeof(host))) != 0:
            raise MemoryError(f"GPU {gpu} has no memory left")
        self._copy(self._pointer.value, ctypes.addressof(host), host)

    def _copy(self, to: int, source: int, host: ctypes.Array[Any]) -> None:
        """The driver knows by the addresses which memory is whose."""
        words = ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(ctypes.sizeof(host))
        failed = self._driver.cuMemcpyAsync(*words, None)
        if failed or self._driver.cuStreamSynchronize(None):
            raise RuntimeError(f"GPU {self.device.id} cannot copy")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self._count,), "typestr": "<f4", "data": (self._pointer.value, False), "version": 3}

    def values(self) -> list[float]:
        make_current(self.device.id)
        host = (ctypes.c_float * self._count)()
        self._copy(ctypes.addressof(host), self._pointer.value, host)
        return list(host)
