"""Whether communication beside the computation pays: measured in the first steps."""

from __future__ import annotations

import statistics
from typing import Union

import numpy as np

from .._col import Group
from ..errors import InvalidArgument

WARM_UP = 1  # steps; the first one makes connections and allocates memory
ROUNDS = 5  # steps of each kind, in turns, so that a disturbance hits both


class Choice:
    """`is_on` says how the step that comes is to be made. All ranks say the same, because they decide by the same sums."""

    def __init__(self, wanted: Union[bool, str]) -> None:
        if wanted not in (True, False, "auto"):
            raise InvalidArgument(f"overlap is {wanted!r}, and must be True, False or 'auto'")
        self.wanted = wanted
        self.restart()

    def restart(self) -> None:
        self._step = 0
        self._seconds: dict[bool, list[float]] = {False: [], True: []}
        self.is_decided = self.wanted != "auto"
        self.is_on = self.wanted is True

    def add(self, group: Group, seconds: float) -> None:
        """A step has ended, which took so long on this rank, with all that the program did in it. Collective when the last
        one has been measured."""
        if self.is_decided:
            return
        self._step += 1
        if self._step > WARM_UP:
            self._seconds[self.is_on].append(seconds)
            self.is_on = not self.is_on
        if self._step == WARM_UP + 2 * ROUNDS:
            own = [statistics.median(self._seconds[is_on]) for is_on in (False, True)]
            without, with_overlap = group.allreduce(np.array(own, np.float64), op="sum")
            self.is_on = bool(with_overlap < without)
            self.is_decided = True
