"""Contenders for tests of col.compare."""

import numpy as np


class Wrong:
    """Adds up all but the last element."""

    name = "planted"

    def __init__(self, world):
        self.world = world

    def call(self, operation, x, out):
        if operation == "all_gather":
            return lambda: self.world.allgather(x, out)
        return lambda: self.world.allreduce(x[:-1])


class Swapped:
    """Gives each rank its neighbour's block of reduce_scatter."""

    name = "swapped"

    def __init__(self, world):
        self.world = world

    def call(self, operation, x, out):
        def call():
            sums = x.copy()
            self.world.allreduce(sums)
            out[:] = np.roll(sums, len(out))[self.world.rank * len(out) :][: len(out)]

        return call
