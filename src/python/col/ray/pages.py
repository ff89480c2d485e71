"""Large pages for memory that is about to be written for the first time.

Ray makes the output of every call anew. For 32 MiB, the first write to its 8,192 pages takes longer than the call itself;
with large pages, a quarter of that. Only where the kernel allows it: /sys/kernel/mm/transparent_hugepage/enabled.
"""

from __future__ import annotations

import ctypes
import mmap

_LEAST = 4 << 20  # bytes; a smaller piece may hold no aligned large page, or few
_madvise = getattr(ctypes.CDLL(None), "madvise", None)
_advice = getattr(mmap, "MADV_HUGEPAGE", None)


def prefer_large(address: int, size_bytes: int) -> None:
    """Asks for them; never fails. The memory keeps its contents."""
    if size_bytes < _LEAST or _madvise is None or _advice is None:
        return
    begin = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    _madvise(ctypes.c_void_p(begin), ctypes.c_size_t(address + size_bytes - begin), ctypes.c_int(_advice))
