"""The states that the machine was in while it was measured, found from what a bare exchange of a cache line took.

A machine that others share may change, for minutes at a time, what a line takes from one processor to the other. Times of
one state say nothing about those of another. Nothing here knows what is usual: the probes of the run are put in order,
those that are nearly alone are set aside, and a gap between two neighbours divides two states.
"""

import dataclasses

# In one state probes differ by some percent, and states by several times. Two neighbours that differ by this factor belong
# to two states.
GAP = 1.5
# A probe with fewer others within this factor found the machine on its way, or disturbed.
NEAR = 1.15
LEAST_SHARE = 0.05  # of all probes


@dataclasses.dataclass(frozen=True)
class State:
    low_ns: float
    high_ns: float

    def holds(self, probe):
        return self.low_ns / NEAR <= probe <= self.high_ns * NEAR

    @property
    def name(self):
        return "not known" if self == ANY else f"{self.low_ns:.0f} to {self.high_ns:.0f} ns"


ANY = State(0, float("inf"))  # where nothing could be probed, or no two probes are alike


def find(probes):
    """The states, the fastest first; `probes` in ns, those that failed being None."""
    known = sorted(probe for probe in probes if probe)
    usual = [probe for probe in known
             if sum(probe / NEAR <= other <= probe * NEAR for other in known) >= LEAST_SHARE * len(known)]
    if not usual:
        return [ANY]
    groups = [[usual[0]]]
    for before, probe in zip(usual, usual[1:]):
        if probe > GAP * before:
            groups.append([])
        groups[-1].append(probe)
    return [State(group[0], group[-1]) for group in groups]


def state_during(probes, states):
    """The one that the probes before and after a launch agree on; None when they do not."""
    if states == [ANY]:
        return ANY
    before, after = (next((state for state in states if probe and state.holds(probe)), None) for probe in probes)
    return before if before == after else None


def of_launches(launches):
    """(the states, the state of each launch)."""
    states = find([probe for launch in launches for probe in launch["probes_ns"]])
    return states, [state_during(launch["probes_ns"], states) for launch in launches]
