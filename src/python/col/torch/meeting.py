"""How the ranks of torch's default group find each other.

Rank 0 serves a store of col's and writes its address and its token into torch's store, in which the ranks have met already
(env://, tcp://, file://). The others read it there. Once all have come, rank 0 deletes it: a program may use its store again, for
its next default group. All other groups of the process are groups of this job.

Rank 0 mostly serves torch's store too. Both have to last until nobody needs them: init_process_group() and new_group() may end
with a barrier of torch's over the store, and rank 0 may be the first to come out of it. So each of the others writes into torch's
store that it has left, and rank 0 waits for that when it leaves.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import time
import uuid
import warnings
from datetime import timedelta
from typing import Any, Optional
from weakref import WeakSet

import torch.distributed as dist

from .. import _col
from ..errors import Error, IoError, PeerLost, Timeout
from .work import callbacks

_KEY = "col"

# Seconds that rank 0 waits for the others when it leaves: in good order, and after an error.
_IN_ORDER, _BROKEN = 10.0, 1.0


class Job:
    """One process's place in the job of a default group. Its groups hold it; it ends when the default group ends."""

    def __init__(self, store: Any, rank: int, size: int, timeout: float) -> None:
        self.rank, self._pid = rank, os.getpid()
        self.server: Optional[_col.StoreServer] = None  # of rank 0; the groups need it to their end
        self.world: Optional[_col.Group] = None  # its first group
        self._store: Any = None  # torch's, until this rank has left
        began = time.monotonic()
        try:
            record = self._record(store, size, timeout)
            self.context = _col.Context(
                rank, size, store=record["url"], token=record["token"], job_id=record["job"],
                timeout=timeout, spent=time.monotonic() - began,
                serialize=True,  # DDP calls from threads of autograd's
            )
        except Error as error:
            raise _explained(error, store) from None
        finally:
            if self.server is not None:
                with contextlib.suppress(RuntimeError):  # the store may be what failed
                    store.delete_key(_KEY)
        self._store, self._left = store, [f"{record['job']} left {other}" for other in range(1, size)]
        _jobs.add(self)

    def end(self) -> None:
        """Leaves all groups of the job. Raises the difference of the ranks' calls, if this rank is the last."""
        if self._store is None or self._pid != os.getpid():
            return
        patience = _IN_ORDER if self._is_sound() else _BROKEN
        try:
            self.context.finalize()
        finally:
            self.let_go_of_stores(patience)
            self._store = None

    def let_go_of_stores(self, patience: float = 0) -> None:
        """This rank needs them no more. Rank 0 waits until the others do not."""
        if self.rank > 0:
            with contextlib.suppress(RuntimeError):  # rank 0 has ended
                self._store.set(self._left[self.rank - 1], "")
        until = time.monotonic() + patience
        while self.rank == 0 and self._left and (left := until - time.monotonic()) > 0:
            began = time.monotonic()
            try:  # one second at a time: Ctrl-C comes between two waits
                return self._store.wait(self._left, timedelta(seconds=min(left, 1)))
            except RuntimeError:
                if time.monotonic() - began < min(left, 1) / 2:
                    return  # the store itself has gone

    def leave_out(self, lost: set[int], world: _col.Group) -> None:
        """After the default group has lost ranks: `world` takes its place, and nobody waits for them at the end."""
        self.world = world
        if self.rank == 0:
            self._left = [key for key in self._left if int(key.rsplit(" ", 1)[1]) not in lost]

    def _is_sound(self) -> bool:
        """Else others may never leave."""
        try:
            if self.world is not None:
                self.world.batch([], timeout=0.001)  # another thread may be in a call of it
        except Error:
            return False
        return self.world is not None

    def end_quietly(self) -> None:
        """For a group that is destroyed without a word, as older torch does it."""
        try:
            self.end()
        except Error as error:
            warnings.warn(f"while leaving the job: {error}", RuntimeWarning, stacklevel=2)

    def _record(self, store: Any, size: int, timeout: float) -> dict[str, Any]:
        if size == 1:
            return {"url": None, "token": None, "job": "torch"}
        if self.rank == 0:
            self.server = _col.StoreServer(own_address(store))
            record = {"url": self.server.url, "token": self.server.token, "job": f"torch {uuid.uuid4().hex}"}
            try:
                store.set(_KEY, json.dumps(record))
            except RuntimeError as error:
                raise _lost(0, error) from None
            return record
        began = time.monotonic()
        try:
            store.wait([_KEY], timedelta(seconds=timeout))
            return dict(json.loads(store.get(_KEY)))
        except RuntimeError as error:
            waited = time.monotonic() - began
            if waited < 0.9 * timeout:  # not every torch has an exception of its own for either
                raise _lost(waited, error) from None
            raise Timeout(
                f"rank 0 has not come in {timeout:g} s; look at what it prints, or allow more time (timeout=): {error}", 0, 0
            ) from None


_jobs: WeakSet[Job] = WeakSet()  # that this process may be in


@atexit.register
def _at_exit() -> None:
    """Operations end here, too, and have callbacks: who runs these is ended last."""
    for job in [job for job in _jobs if job._store is not None and job._pid == os.getpid()]:
        if not dist.is_initialized():  # the program has kept a group that it has destroyed
            job.end_quietly()
        else:  # it has not left: the others are to learn at once that they lose it
            job.let_go_of_stores()
            job._store = None
    callbacks.end()


def own_address(store: Any) -> str:
    """The address by which the other ranks reach this process: that of the way to the host that serves torch's store."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    host = getattr(store, "host", None) or os.environ.get("MASTER_ADDR") or socket.gethostname()
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.connect(address)  # sends nothing
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def _lost(waited: float, error: RuntimeError) -> IoError:
    return IoError(
        f"torch's store was lost after {waited:.1f} s, before all ranks had met ({error}); the process that serves it (rank 0, "
        "or the launcher) has ended or was killed, or the network is down: see what it says last, and start the job again"
    )


def _explained(error: Error, store: Any) -> Error:
    if isinstance(error, (Timeout, PeerLost)) or error.code == "io":
        text = f"init_process_group: {error}"
        if "FileStore" in type(getattr(store, "underlying_store", store)).__name__:
            text += "; if init_method's file is of an earlier run, delete it"
        return type(error)(text, error.rank, error.world_rank)
    return error
