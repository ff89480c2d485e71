"""Gradients on their way: parameters in buckets, one iallreduce a bucket.

    parameters      0   1   2   3   4   5          backward() ends with parameter 0
    buckets         └─2──┘  └─1──┘  └─0──┘         bucket 0 is ready first, and is small: it starts early
    order of start          0, 1, 2                on every rank, whatever the order in which gradients are ready

A bucket starts when it and all before it are full. So all ranks make the same calls in the same order.
"""

from __future__ import annotations

import time
from typing import Any, Optional

from .._col import Group, Work
from ..errors import InvalidArgument


class Bucket:
    def __init__(self, model: Any, indices: list[int]) -> None:
        self.indices = indices
        self.buffer = model.new(sum(model.sizes[i] for i in indices))
        self.missing = len(indices)
        self.started = self.ended = 0.0

    def start(self, group: Group, is_early: bool) -> Work:
        self.started, self.ended = time.perf_counter(), 0.0
        work = group.iallreduce(self.buffer, op="avg")
        if is_early:
            work.then(self._end)  # the library's thread then moves it on while the program computes
        return work

    def reduce(self, group: Group) -> None:
        self.started = time.perf_counter()
        group.allreduce(self.buffer, op="avg")
        self.ended = time.perf_counter()

    def _end(self, error: Optional[BaseException]) -> None:
        self.ended = time.perf_counter()


class Buckets:
    """The buckets of one model, for one step after another."""

    def __init__(self, model: Any, bucket_bytes: int, first_bytes: int) -> None:
        self._model = model
        self._buckets: list[Bucket] = []
        indices: list[int] = []
        filled = 0
        for i in reversed(range(len(model.sizes))):
            limit = bucket_bytes if self._buckets else first_bytes
            size = model.sizes[i] * model.itemsize
            if indices and filled + size > limit:
                self._buckets.append(Bucket(model, indices))
                indices, filled = [], 0
            indices.append(i)
            filled += size
        self._buckets.append(Bucket(model, indices))
        self.views: list[Any] = [None] * len(model.sizes)  # of parameter i, flat
        self._bucket_of: list[Any] = [None] * len(model.sizes)
        for bucket in self._buckets:
            begin = 0
            for i in bucket.indices:
                self.views[i] = bucket.buffer[begin : begin + model.sizes[i]]
                self._bucket_of[i] = bucket
                begin += model.sizes[i]
        self._works: list[Work] = []
        self._is_ready = [False] * len(model.sizes)
        self._calling = 0.0

    @property
    def count(self) -> int:
        return len(self._buckets)

    def has(self, i: int) -> bool:
        return self._is_ready[i]

    def put(self, group: Group, i: int, gradient: Any, is_early: bool) -> None:
        """Copies the gradient into its bucket. Starts what can start, if it is early: before the step."""
        if self._is_ready[i]:
            raise InvalidArgument(
                f"gradient {i} came twice in one step: call step() after each backward(), or add up several under "
                "accumulate()"
            )
        self._is_ready[i] = True
        if gradient is not self.views[i]:
            self.views[i][:] = gradient
        self._bucket_of[i].missing -= 1
        if is_early:
            self._start(group, True)

    def _start(self, group: Group, is_early: bool) -> None:
        began = time.perf_counter()
        while len(self._works) < len(self._buckets) and not self._buckets[len(self._works)].missing:
            self._works.append(self._buckets[len(self._works)].start(group, is_early))
        self._calling += time.perf_counter() - began

    def finish(self, group: Group, overlaps: bool) -> tuple[float, float]:
        """Requires: all gradients are there; none has been put early, unless it `overlaps`, which is so on all ranks or on
        none. Blocks. Returns the seconds in which anything was on its way, and those of them that the program spent in calls."""
        began = time.perf_counter()
        if overlaps:
            self._start(group, False)
            began = time.perf_counter()
            for work in self._works:
                work.wait()
        else:  # the blocking call is the faster one
            for bucket in self._buckets:
                bucket.reduce(group)
        now = time.perf_counter()
        waited = self._calling + now - began
        busy, until = 0.0, 0.0
        for bucket in self._buckets:
            ended = bucket.ended or now
            busy += max(0.0, ended - max(bucket.started, until))
            until = max(until, ended)
        self.reset()
        return max(busy, waited), waited

    def reset(self) -> None:
        """For the next step."""
        self._works.clear()
        self._calling = 0.0
        self._is_ready = [False] * len(self.views)
        for bucket in self._buckets:
            bucket.missing = len(bucket.indices)
