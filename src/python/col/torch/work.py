"""What a call returns: torch's Work over those of col."""

from __future__ import annotations

from datetime import timedelta
from threading import Lock
from typing import Any, Callable, Optional, Sequence

import torch
import torch.distributed as dist

from .. import _col
from ..errors import Error

TorchWork: Any = getattr(dist, "Work", None) or torch._C._distributed_c10d.Work


# Older versions of torch let go of the Python half of what they return to C++ (DDP's constructor, say), whose wait() then never
# ends. So everything that nobody has waited for yet is kept here.
_not_waited_for: set[Work] = set()


class Work(TorchWork):
    """One or several operations of col, and what is left to do once they have ended: copies to where the caller wants it.

    torch waits for it in several ways: wait() from Python, wait() from C++ with a timeout of zero for none, and the future,
    which DDP waits for in C++. Only who asks for the future starts col's progress thread, which completes it.
    """

    def __init__(
        self, works: Sequence[_col.Work], outputs: Any, finish: Optional[Callable[[], None]] = None, timeout: Optional[float] = None
    ) -> None:
        super().__init__()
        self._works = works
        self._outputs = outputs
        self._finish = finish
        self._timeout = timeout
        self._error: Optional[BaseException] = None
        self._future: Any = None
        self._lock = Lock() if finish is not None else None
        _not_waited_for.add(self)

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Blocks until all has ended, or raises the first error. Without a timeout, those of the calls count."""
        seconds = timeout.total_seconds() if timeout else 0  # C++ says "none" so
        works = self._works
        try:
            if seconds > 0:
                _col.wait_all(works, seconds)
            else:
                for work in works:
                    work.wait()
        except BaseException as error:
            self._error = error
            raise
        finally:
            _not_waited_for.discard(self)
        if self._finish is not None:
            self._end()
        return True

    def _end(self) -> None:
        """The copies, once, whoever comes first: the one that waits, or the thread that completes the future."""
        with self._lock:  # type: ignore[union-attr]
            finish, self._finish = self._finish, None
            if finish is not None:
                with torch.no_grad():
                    finish()

    def is_completed(self) -> bool:
        try:
            ended = all(work.done() for work in self._works)
        except Error as error:
            self._error = error
            return True
        if ended and self._finish is not None:
            self._end()
        return ended

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Optional[BaseException]:
        return self._error

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
        if self._future is None:
            self._future = future = torch.futures.Future()
            left = [len(self._works)]

            def ended(error: Optional[BaseException]) -> None:
                left[0] -= 1
                if error is not None and self._error is None:
                    self._error = error
                if left[0] > 0:
                    return
                if self._error is not None:
                    future.set_exception(self._error)
                    return
                try:
                    if self._finish is not None:
                        self._end()
                    future.set_result(self._outputs)
                except BaseException as failure:
                    future.set_exception(failure)

            _not_waited_for.discard(self)  # ended() holds it from here on
            for work in self._works:
                work.then(ended)
            if not self._works:
                future.set_result(self._outputs)
        return self._future

    get_future_result = get_future
