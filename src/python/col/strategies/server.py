"""What a parameter server does: it has a shard of the parameters, and the optimizer for it.

    worker                          server
      │── [push, clock] ─────────────→│  HEADER, taken from any worker
      │── gradient of the shard ─────→│  GRADIENT
      │                               │  applies it, and waits for slower workers if it has to
      │←─ [slowest clock] ────────────│  ANSWER
      │←─ parameters of the shard ────│  PARAMETERS

A worker's clock is the number of its pushes that the server has applied.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from .._col import Group, Work, wait_all

HEADER, GRADIENT, ANSWER, PARAMETERS, STATE = range(7301, 7306)  # tags
PUSH, ASK, GOODBYE = range(3)  # kinds of header
HEADER_LENGTH = 2  # int64: kind, clock


class Server:
    """Serves until every worker has said goodbye. staleness: None for sync."""

    def __init__(
        self, group: Group, workers: int, shard: Any, optimizer: Any, new: Any, staleness: Optional[int], clock: int
    ) -> None:
        self.group, self.shard, self.optimizer = group, shard, optimizer
        self.staleness = staleness
        self.clocks = dict.fromkeys(range(workers), clock)  # of those that have not said goodbye
        self.pushes = self.updates = self.held = self.lead = 0
        self._new = new
        # In sync, gradients wait for one another, and are added up in the order of ranks: so the sum is always the same.
        self._gradients = [new() for _ in range(workers if staleness is None else 1)]
        self._waiting: set[int] = set()  # workers without an answer to their last push
        self._sending: dict[int, list[Work]] = {}

    def serve(self) -> None:
        header = np.empty(HEADER_LENGTH, np.int64)
        while self.clocks:
            worker = self.group.recv_any(header, tag=HEADER)
            if header[0] == PUSH:
                self._take(worker)
            elif header[0] == ASK:
                self.group.send_object((self.shard, self.optimizer.state()), worker, tag=STATE)
            else:
                del self.clocks[worker]
            self._go_on()
        for works in self._sending.values():
            wait_all(works)

    def _take(self, worker: int) -> None:
        gradient = self._gradients[worker if self.staleness is None else 0]
        self.group.recv(gradient, worker, tag=GRADIENT)
        self.pushes += 1
        self._waiting.add(worker)
        if self.staleness is None:
            return
        self.optimizer.step([gradient])
        self.updates += 1
        self.clocks[worker] += 1
        if self._is_ahead(worker):
            self.held += 1

    def _is_ahead(self, worker: int) -> bool:
        return self.staleness is not None and self.clocks[worker] - min(self.clocks.values()) > self.staleness

    def _go_on(self) -> None:
        """Answers whom it may answer."""
        if self.staleness is None:
            if not self.clocks or len(self._waiting) < len(self.clocks):
                return
            self._update_for_all()
        for worker in sorted(self._waiting):
            if not self._is_ahead(worker):
                self._answer(worker)

    def _update_for_all(self) -> None:
        first, *others = sorted(self._waiting)
        total = self._gradients[first]
        for worker in others:
            total += self._gradients[worker]
        total /= len(self._waiting)
        self.optimizer.step([total])
        self.updates += 1
        for worker in self._waiting:
            self.clocks[worker] += 1

    def _answer(self, worker: int) -> None:
        self._waiting.discard(worker)
        slowest = min(self.clocks.values())
        self.lead = max(self.lead, self.clocks[worker] - slowest)
        wait_all(self._sending.get(worker, []))  # it has pushed again since, so they have arrived
        parameters = self._new()
        parameters[:] = self.shard  # others' gradients may change it while this one is on its way
        self._sending[worker] = [
            self.group.isend(np.array([slowest], np.int64), worker, tag=ANSWER),
            self.group.isend(parameters, worker, tag=PARAMETERS),
        ]
