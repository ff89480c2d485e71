"""What a call returns: torch's Work over those of col."""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from datetime import timedelta
from queue import SimpleQueue
from threading import Condition, Event, Lock, Thread, local
from time import monotonic
from typing import Any, Callable, Optional, Sequence

import torch
import torch.distributed as dist

from .. import _col
from ..errors import Error, Unavailable

TorchWork: Any = getattr(dist, "Work", None) or torch._C._distributed_c10d.Work


# Older versions of torch let go of the Python half of what they return to C++ (DDP's constructor, say), whose wait() then never
# ends. So what nobody has waited for yet is kept here: of several tensors, such as those of all_reduce_coalesced() in a compiled
# graph, until C++ has waited as often, once for each. C++ waits for one of the latest; the others, which a program does not wait
# for, are kept only until they have ended.
_not_waited_for: OrderedDict[Work, None] = OrderedDict()
_LATEST = 64


class _Last(local):
    """The Work that this thread's C++ has waited for: it may ask for the future next, as DDP's join() does."""

    work: Optional[Work] = None


_last = _Last()


class _Threads:
    """Run callbacks of futures, which may wait for other operations, as hooks of DDP do; col's thread must not."""

    def __init__(self) -> None:
        self._functions: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._changed = Condition()
        self._busy = self._started = 0

    def run(self, function: Callable[[], None]) -> None:
        with self._changed:
            self._busy += 1
            is_short = self._busy > self._started
            self._started += is_short
        self._functions.put(function)
        try:
            if is_short:
                Thread(target=self._serve, name="col.torch", daemon=True).start()
        except RuntimeError:  # no thread can be started
            with self._changed:
                self._started -= 1
            if self._started == 0:
                self._run_one()

    def _serve(self) -> None:
        while True:
            self._run_one()

    def _run_one(self) -> None:
        self._functions.get()()
        with self._changed:
            self._busy -= 1
            self._changed.notify_all()

    def end(self) -> None:
        """At the very end of the process: a thread that comes back from C++ later would take it down."""
        with self._changed:
            self._changed.wait_for(lambda: self._busy == 0, _LAST)


_LAST = 1.0  # seconds
callbacks = _Threads()
os.register_at_fork(after_in_child=callbacks.__init__)  # type: ignore[misc]  # the child has none of them

_NONE = timedelta(0)  # how C++ says that a wait has no timeout


def let_go_of_ended_groups() -> None:
    """Nobody may ever wait for what is kept here, and each of col's works keeps its group: those that have ended need it no more."""
    kept = list(_not_waited_for) if _last.work is None else [*_not_waited_for, _last.work]
    for work in kept:
        if work._has_ended():
            work._failure, work._source, work._works = work.exception(), work.source_rank(), ()


# Seconds for which a wait may keep the program's other threads from the group.
_BRIEF = 0.02


def _wait(work: _col.Work, until: Optional[float], seconds: float) -> None:
    """Raises the operation's error, or Timeout. A long wait is left to col's thread: others may use the group meanwhile."""
    left = None if until is None else max(until - monotonic(), 0)
    if work.wait_for(_BRIEF if left is None else min(_BRIEF, left)):
        return
    ended = Event()
    work.then(lambda _: ended.set())
    if not ended.wait(None if until is None else max(until - monotonic(), 0)):
        raise work.overdue(seconds)
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
    which DDP waits for in C++. Who asks for the future starts col's progress thread, which sees the end; on a GPU, every
    call starts it.

    On a GPU, wait() without a timeout is for the current stream, as with torch's NCCL: the host goes on. With one, the host
    waits. The call was made in `stream`, a torch.cuda.Stream; None for the CPU. It may run in another one.
    """

    def __init__(
        self, works: Sequence[_col.Work], outputs: Any, finish: Optional[Callable[[], Any]] = None, stream: Any = None
    ) -> None:
        super().__init__()
        self._works = works
        self._waits = len(works)  # that C++ may make
        self._failure: Optional[BaseException] = None  # of those that have been let go of
        self._source = -1
        self._stream = stream
        self._copied: Any = None  # on a GPU, where the stream is past the copies
        self._outputs = outputs
        self._finish = finish  # None when it has been done
        self._future: Any = None
        self._all_ended: Any = None  # the future before it, until that is completed
        self._lock = Lock()  # of the members that change
        _last.work = None
        _not_waited_for[self] = None
        if len(_not_waited_for) > _LATEST:
            oldest, _ = _not_waited_for.popitem(last=False)
            if not oldest._has_ended():
                _not_waited_for[oldest] = None

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Blocks until all has ended, or raises the first error. Without a timeout, those of the calls count."""
        seconds = timeout.total_seconds() if timeout else 0
        until = monotonic() + seconds if seconds > 0 else None
        try:
            for work in self._works:
                if self._stream is None or until is not None or not _let_stream_wait(work, self._stream.device):
                    _wait(work, until, seconds)
            if self._failure is not None:
                raise self._failure
        finally:
            self._waits = self._waits - 1 if timeout == _NONE else 0
            if self._waits <= 0:
                _not_waited_for.pop(self, None)
        if timeout == _NONE:
            _last.work = self
        here = torch.cuda.current_stream(self._stream.device) if self._stream is not None else None
        self._end(here)
        if self._copied is not None:
            here.wait_event(self._copied)
            if until is not None:  # the host has waited for the rest
                self._copied.synchronize()
        if self._future is not None and (self._stream is None or until is not None):
            self._complete_future()
        return True

    def _end(self, stream: Any) -> None:
        """The copies, by whoever comes first: one that waits, or the thread of the future. The others wait for it."""
        if self._finish is None:
            return
        with self._lock:
            if self._finish is None:
                return
            with contextlib.nullcontext() if stream is None else torch.cuda.stream(stream):
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
        if self._copied is not None and not self._copied.query():
            return False
        self._complete_future()
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[BaseException]:
        return next((work.error for work in self._works if work.error is not None), self._failure)

    def result(self) -> Any:
        self.wait()
        return self._outputs

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return self._works[0].source if self._works else self._source

    _source_rank = source_rank

    def get_future(self) -> Any:
        """Completed with the outputs or the error: at once, or by who comes first, a wait or a thread that col's thread tells."""
        with self._lock:
            if self._future is not None:
                return self._future
            self._all_ended = torch.futures.Future()
            # Only the future of a function that raises has an error that C++ sees, such as DDP; set_exception() is Python's.
            self._future = self._all_ended.then(lambda _: self._all_outputs())
        _not_waited_for.pop(self, None)  # the function above holds it from here on
        works = self._works  # another thread may let go of them once they have ended
        if _last.work is self:  # C++ takes the value at once, also where only a stream has waited
            for work in works:
                _wait(work, None, 0)
        left = [None] * len(works)

        def ended(_: Optional[BaseException]) -> None:
            left.pop()
            if not left:
                callbacks.run(self._complete_future)

        if self._has_ended():
            self._complete_future()
        else:
            for work in works:
                work.then(ended)
        return self._future

    def _complete_future(self) -> None:
        """For an end that has been seen. Where another thread has begun with it, that one is waited for."""
        if self._future is None:
            return
        with self._lock:
            before, self._all_ended = self._all_ended, None
        if before is not None:
            before.set_result(None)
        elif not self._future.done():
            with contextlib.suppress(RuntimeError):  # the operation's error
                self._future.wait()

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
