"""One contestant beside another in one cell and one state of the machine, round by round."""

import dataclasses
import math
import statistics

BEHIND = 0.95  # a cell is behind when the whole interval of the ratio lies below this

# Of Student's distribution: what 95 % lie within, for 1, 2, … degrees of freedom; beyond the last, that of the normal one
# is near enough.
STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
NORMAL = 1.96


@dataclasses.dataclass(frozen=True)
class Ratio:
    """How many times as long the other takes: above 1, the first is ahead."""

    value: float  # the geometric mean over the rounds
    low: float  # its 95 % interval, over rounds
    high: float
    rounds: int

    @property
    def is_behind(self):
        return self.high < BEHIND

    @property
    def may_be_behind(self):
        return self.value < BEHIND and not self.is_behind


def ratio_of(own, other):
    """From {round: µs} of both; only rounds that have both count. None without any."""
    logs = [math.log(other[number] / own[number]) for number in own if number in other]
    if not logs:
        return None
    middle = statistics.fmean(logs)
    if len(logs) == 1:
        return Ratio(math.exp(middle), 0.0, math.inf, 1)
    degrees = len(logs) - 1
    factor = STUDENT[degrees - 1] if degrees <= len(STUDENT) else NORMAL
    half = factor * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))


def geometric_mean(values):
    values = [value for value in values if value]
    return math.exp(statistics.fmean(map(math.log, values))) if values else None
