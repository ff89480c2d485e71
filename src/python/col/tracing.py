"""A timeline of a part of a program, for ui.perfetto.dev and chrome://tracing."""

import contextlib
import os

from . import _col


@contextlib.contextmanager
def trace(path, *, limit=256 << 20):
    """While it is open, this process keeps when its calls begin and end; then it adds them to the file `path`.

    The ranks of a job may name the same file: each adds its part. What is there from an earlier trace is replaced. Of
    many calls, the last ones stay, so that the file has at most `limit` bytes for each rank. `colrun --trace FILE`
    traces a whole job instead.
    """
    _col.start_trace(limit)
    try:
        yield
    finally:
        _col.end_trace(os.fspath(path))
