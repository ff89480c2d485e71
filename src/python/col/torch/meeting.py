"""How the ranks of torch's default group find each other.

Rank 0 serves a store of col's and writes its address and its token into torch's store, in which the ranks have met already
(env://, tcp://, file://). The others read it there. Once all have come, rank 0 deletes it: a program may use its store again, for
its next default group. All other groups of the process are groups of this job.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
import uuid
from typing import Any, Optional

from .. import _col
from ..errors import Error, PeerLost, Timeout

_KEY = "col"


class Job:
    """One process's place in the job of a default group. Its groups hold it, and it ends with the last of them."""

    def __init__(self, store: Any, rank: int, size: int, timeout: float) -> None:
        self.rank = rank
        self.server: Optional[_col.StoreServer] = None  # of rank 0; the groups need it to their end
        deadline = time.monotonic() + timeout
        try:
            record = self._record(store, size, timeout)
            self.context = _col.Context(
                rank, size, store=record["url"], token=record["token"], job_id=record["job"],
                timeout=max(deadline - time.monotonic(), 0.001),
                serialize=True,  # DDP calls from threads of autograd's
            )
        except Error as error:
            raise _explained(error, store) from None
        finally:
            if self.server is not None:
                with contextlib.suppress(RuntimeError):  # the store may be what failed
                    store.delete_key(_KEY)

    def _record(self, store: Any, size: int, timeout: float) -> dict[str, Any]:
        if size == 1:
            return {"url": None, "token": None, "job": "torch"}
        if self.rank == 0:
            self.server = _col.StoreServer(own_address(store))
            record = {"url": self.server.url, "token": self.server.token, "job": f"torch {uuid.uuid4().hex}"}
            store.set(_KEY, json.dumps(record))
            return record
        from datetime import timedelta

        try:
            store.wait([_KEY], timedelta(seconds=timeout))
            return dict(json.loads(store.get(_KEY)))
        except RuntimeError as error:
            raise Timeout(
                f"init_process_group: rank 0 has not come in {timeout:g} s; look at what it prints, or allow more time (timeout=): "
                f"{error}", 0, 0,
            ) from None


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


def _explained(error: Error, store: Any) -> Error:
    if isinstance(error, (Timeout, PeerLost)) or error.code == "io":
        text = f"init_process_group: {error}"
        if "FileStore" in type(getattr(store, "underlying_store", store)).__name__:
            text += "; if init_method's file is of an earlier run, delete it"
        return type(error)(text, error.rank, error.world_rank)
    return error
