"""What a call returns: torch's Work over those of col."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from datetime import timedelta
from threading import Event, Lock
from time import monotonic
from typing import Any, Callable, Optional, Sequence

import torch
import torch.distributed as dist

from .. import _col
from ..errors import Error, Timeout, Unavailable

TorchWork: Any = getattr(dist, "Work", None) or torch._C._distributed_c10d.Work


# Older versions of torch let go of the Python half of what they return to C++ (DDP's constructor, say), whose wait() then never
# ends. So what nobody has waited for yet is kept here. C++ waits for one of the latest; the others, which a program does not wait
# for, are kept only until they have ended.
_not_waited_for: OrderedDict[Work, None] = OrderedDict()
_LATEST = 64


# Seconds for which a wait may keep the program's other threads from the group.
_BRIEF = 0.02


def _wait(work: _col.Work, until: Optional[float]) -> None:
    """Raises the operation's error, or Timeout. A long wait is left to col's thread: others may use the group meanwhile."""
    left = None if until is None else max(until - monotonic(), 0)
    if work.wait_for(_BRIEF if left is None else min(_BRIEF, left)):
        return
    ended = Event()
    work.then(lambda _: ended.set())
    if not ended.wait(None if until is None else max(until - monotonic(), 0)):
        raise Timeout("wait: the operation has not ended in time; it goes on")
    if work.error is not None:
        raise work.error


def _let_stream_wait(work: _col.Work, device: Any) -> bool:
    """The current stream waits for the operation, and not the host. Returns False where only the host sees the end."""
    try:
        work.wait(stream=torch.cuda.current_stream(device).cuda_stream)
    except Unavailable:
        return False
    return True


class Work(TorchWork):
    """One or several operations of col, and what is left to do once they have ended: copies to where the caller wants it.

    torch waits for it in several ways: wait() from Python, wait() from C++ with a timeout of zero for none, and the future,
    which DDP waits for in C++. Who asks for the future starts col's progress thread, which completes it; on a
    GPU, every call starts it.

    On a GPU, wait() without a timeout is for the current stream, as with torch's NCCL: the host goes on. With one, the host
    waits. The call was made in `stream`, a torch.cuda.Stream; None for the CPU.
    """

    def __init__(
        self, works: Sequence[_col.Work], outputs: Any, finish: Optional[Callable[[], Any]] = None, stream: Any = None
    ) -> None:
        super().__init__()
        self._works = works
        self._stream = stream
        self._copied: Any = None  # on a GPU, where the stream is past the copies
        self._outputs = outputs
        self._finish = finish  # None when it has been done
        self._future: Any = None
        self._lock = Lock()  # of the members that change
        _not_waited_for[self] = None
        if len(_not_waited_for) > _LATEST:
            oldest, _ = _not_waited_for.popitem(last=False)
            if not oldest._has_ended():
                _not_waited_for[oldest] = None

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Blocks until all has ended, or raises the first error. Without a timeout, those of the calls count."""
        seconds = timeout.total_seconds() if timeout else 0  # C++ says "none" so
        until = monotonic() + seconds if seconds > 0 else None
        try:
            for work in self._works:
                if self._stream is None or until is not None or not _let_stream_wait(work, self._stream.device):
                    _wait(work, until)
        finally:
            _not_waited_for.pop(self, None)
        here = torch.cuda.current_stream(self._stream.device) if self._stream is not None else None
        self._end(here)
        if self._copied is not None:
            here.wait_event(self._copied)
            if until is not None:  # the host has waited for the rest
                self._copied.synchronize()
        return True

    def _end(self, stream: Any) -> None:
        """The copies, by whoever comes first: one that waits, or the thread of the future. The others wait for it."""
        if self._finish is None:
            return
        with self._lock:
            if self._finish is None:
                return
            with torch.no_grad(), contextlib.nullcontext() if stream is None else torch.cuda.stream(stream):
                self._finish()
            if stream is not None:
                self._copied = stream.record_event()
                if stream != self._stream:  # it gets the buffers' memory back
                    self._stream.wait_event(self._copied)
            self._finish = None

    def _has_ended(self) -> bool:
        try:
            return all([work.done() for work in self._works])
        except Error:
            return True

    def is_completed(self) -> bool:
        if not self._has_ended():
            return False
        _not_waited_for.pop(self, None)
        if self.exception() is None:
            self._end(self._stream)
        return self._copied is None or self._copied.query()

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[BaseException]:
        return next((work.error for work in self._works if work.error is not None), None)

    def result(self) -> Any:
        self.wait()
        return self._outputs

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return self._works[0].source

    _source_rank = source_rank

    def get_future(self) -> Any:
        """Completed by a thread of col's, with the outputs or the error."""
        with self._lock:
            if self._future is not None:
                return self._future
            all_ended = torch.futures.Future()
            # Only the future of a function that raises has an error that C++ sees, such as DDP; set_exception() is Python's.
            self._future = all_ended.then(lambda _: self._all_outputs())
        left = [None] * len(self._works)

        def ended(_: Optional[BaseException]) -> None:
            left.pop()
            if not left:
                all_ended.set_result(None)

        _not_waited_for.pop(self, None)  # the function above holds it from here on
        for work in self._works:
            work.then(ended)
        if not self._works:
            all_ended.set_result(None)
        return self._future

    def _all_outputs(self) -> Any:
        failure = self.exception()
        if failure is not None:
            raise failure
        # The operations have ended. The call's stream may have got others since, which this thread must not wait for.
        self._end(None if self._stream is None else torch.cuda.Stream(self._stream.device))
        if self._copied is not None:
            self._copied.synchronize()
        return self._outputs

    get_future_result = get_future
