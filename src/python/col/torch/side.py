"""The stream in which a group's asynchronous calls run on its GPU, as torch's NCCL has one.

What the program does next in its own stream then runs beside the call, until work.wait() makes a stream wait for it. In the
caller's stream it would come after the call: DDP's backward, in a stream of the program's, would wait for each bucket.

The memory of a call needs no record_stream(): col keeps its tensors until it has ended, also where nobody waits for it.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import torch


class Side:
    def __init__(self, device: Any) -> None:
        with torch.cuda.device(device):
            self._before = torch.cuda.Event()
        self._stream = torch.cuda.Stream(device)
        self._lock = Lock()  # of the event

    def after(self, stream: Any) -> Any:
        """The side stream; what it gets from now on comes after what `stream` holds now. Joins a capture of that."""
        with self._lock:
            self._before.record(stream)
            self._stream.wait_event(self._before)
        return self._stream

    def synchronize(self) -> None:
        self._stream.synchronize()


def is_asynchronous(opts: Any) -> bool:
    """What the call's options say. Older torch has no word for it, and there the calls of torch's NCCL all take the side stream."""
    return bool(getattr(opts, "asyncOp", True))
