"""Messages between the GPUs of two ranks, which the other ranks of their group need not come for.

NCCL's connections are made by all ranks that share them. So a pair of ranks has its own, as with torch's NCCL. A thread makes them:
ranks in a ring that each send first would otherwise wait for one another in their first send. What is called meanwhile begins, in its
order, as soon as they are there.
"""

from __future__ import annotations

from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Callable, Optional

import torch

from .. import _col
from ..errors import Timeout

Told = Optional[Callable[[Optional[BaseException]], None]]  # of then()


class Later:
    """A message whose connections are still being made: what a _col.Work is, as far as Work uses one."""

    def __init__(self, what: str, call: str, arguments: dict[str, Any], stream: Any, seconds: Optional[float]) -> None:
        self._what, self._call, self._arguments = what, call, arguments
        self._seconds = seconds  # that a wait gives the connections; None: as long as they may take
        self._before = torch.cuda.Event()  # where the caller's stream was
        self._before.record(stream)
        self._begun, self._lock = Event(), Lock()
        self._work: Any = None
        self._failure: Optional[BaseException] = None
        self._functions: list[Told] = []

    def begin(self, group: _col.Group, side: Any) -> None:
        try:
            side.wait_event(self._before)
            self._work = getattr(group, self._call)(**self._arguments, stream=side.cuda_stream)
        except BaseException as error:  # what the call raises, its waits raise
            self._failure = error
        self._go_on()

    def fail(self, error: BaseException) -> None:
        self._failure = error
        self._go_on()

    def _go_on(self) -> None:
        self._arguments = {}  # the operation has them now
        with self._lock:
            self._begun.set()
        for function in self._functions:
            if self._failure is None:
                try:
                    self._work.then(function)
                    continue
                except BaseException as error:  # nobody would learn of its end: this thread makes the others begin
                    self._failure = error
            _tell(function, self._failure)

    def _begun_work(self) -> Any:
        if self._failure is not None:
            raise self._failure
        return self._work

    def wait(self, stream: int) -> Any:
        if not self._begun.wait(self._seconds):
            raise self.overdue(self._seconds or 0)
        return self._begun_work().wait(stream=stream)

    def wait_for(self, seconds: float) -> bool:
        until = monotonic() + seconds
        if not self._begun.wait(seconds):
            return False
        return bool(self._begun_work().wait_for(max(until - monotonic(), 0)))

    def done(self) -> bool:
        return self._begun.is_set() and (self._failure is not None or bool(self._work.done()))

    def then(self, function: Told) -> None:
        with self._lock:
            if not self._begun.is_set():
                self._functions.append(function)
                return
        if self._failure is not None:
            _tell(function, self._failure)
        else:
            self._work.then(function)

    def overdue(self, seconds: float) -> BaseException:
        if self._work is not None:
            error: BaseException = self._work.overdue(seconds)
            return error
        return Timeout(f"{self._call} has not begun after {seconds:g} s: {self._what} has not come to connect; look at what it does")

    @property
    def error(self) -> Optional[BaseException]:
        return self._failure if self._failure is not None or self._work is None else self._work.error

    @property
    def source(self) -> int:
        return -1 if self._work is None else int(self._work.source)


def _tell(function: Told, error: BaseException) -> None:
    if function is not None:
        function(error)


class Pair:
    """Any thread may use it. `place` is the other rank's number in the group that `make` makes: in the pair's thread, where `device` is
    current, and within `timeout` seconds, after which it raises."""

    def __init__(self, peer: int, place: int, device: Any, timeout: float, make: Callable[[], _col.Group]) -> None:
        self._what, self._place, self._device = f"rank {peer}", place, device
        self._until = monotonic() + timeout
        self._lock = Lock()
        self._group: Optional[_col.Group] = None
        self._error: Optional[BaseException] = None
        self._waiting: list[Later] = []
        self._has_ended = False
        Thread(target=self._make, args=(make,), name="col.torch pair", daemon=True).start()

    def isend(self, x: Any, stream: Any, **more: Any) -> Any:
        """Returns a _col.Work, or what is like one; so does irecv(). `stream`: the caller's."""
        return self._start("isend", {**more, "x": x, "destination": self._place}, stream)

    def irecv(self, out: Any, stream: Any, **more: Any) -> Any:
        return self._start("irecv", {**more, "out": out, "source": self._place}, stream)

    def _start(self, call: str, arguments: dict[str, Any], stream: Any) -> Any:
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._group is None:
                self._waiting.append(Later(self._what, call, arguments, stream, self._seconds_of(arguments.get("timeout"))))
                return self._waiting[-1]
        return getattr(self._group, call)(**arguments, stream=stream.cuda_stream)

    def _seconds_of(self, timeout: Optional[float]) -> Optional[float]:
        """Connections that are to give up first say themselves who is missing: a message's own time must not end at that moment, too."""
        return timeout if timeout is not None and monotonic() + timeout < self._until else None

    def _make(self, make: Callable[[], _col.Group]) -> None:
        try:
            with torch.cuda.device(self._device):
                torch.cuda.Event().record(torch.cuda.current_stream(self._device))  # starts the GPU for this thread
                group = make()
                side = torch.cuda.Stream(self._device)
        except BaseException as error:
            with self._lock:
                self._error = error
            for later in self._waiting:
                later.fail(error)
            return
        with self._lock:  # what is called now comes behind what has been called
            for later in self._waiting:
                later.begin(group, side)
            self._waiting.clear()
            self._group = group
            has_ended = self._has_ended
        if has_ended:
            group.destroy()

    def end(self) -> None:
        with self._lock:
            self._has_ended = True
            group = self._group
        if group is not None:
            group.destroy()
