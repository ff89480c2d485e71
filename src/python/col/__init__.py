"""col: collective communication for processes.

    import numpy as np
    import col

    world = col.init()
    gradients = np.full(1000, world.rank, np.float32)
    world.allreduce(gradients)  # every rank now holds the sum
    col.finalize()

Start it with `colrun -n 8 python trainer.py`. docs/python.md has more.
"""

import atexit

from . import _col
from ._col import (
    Group, Message, Op, Work, alloc, destroy_collective_group, finalize, get_collective_group_size, get_group, get_rank,
    init, init_collective_group, is_group_initialized, premul_sum, user_op,
)
from .errors import (
    BY_CODE, Aborted, AlreadyInitialized, Error, Internal, InvalidArgument, IoError, Mismatch, NotInitialized, PeerLost,
    Resource, Timeout, Unavailable,
)

version = _col.version()
__version__ = version

_col.set_error_classes(BY_CODE)
atexit.register(_col.close)
