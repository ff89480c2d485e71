"""From the raw numbers of a run to rows: what each contestant took in one cell and one state of the machine."""

import collections
import statistics

import states
from comparison import ratio_of
from contestants import OVERLAP, RIVALS
from plan import BY_NAME, OPERATIONS

FEWEST_SAMPLES = 20  # over all rounds
BUSY = 0.05  # share of the machine that others may take before a time is marked


class Cell:
    """What a contestant did in a cell, over all rounds of one state."""

    def __init__(self):
        self.us_by_round, self.call_us, self.foreign = {}, [], []
        self.samples = 0
        self.trouble = ""
        self.wrong = False

    @property
    def us(self):
        return statistics.median(self.us_by_round.values()) if self.us_by_round and not self.wrong else None

    def add(self, number, line, launch, statistic):
        self.wrong = self.wrong or line["wrong"] > 0
        self.us_by_round[number] = line[statistic]
        self.call_us.append(line.get("call_us", 0.0))
        self.foreign.append(launch["foreign"])
        self.samples += line["samples"]

    @property
    def marks(self):
        return ("\\*" if statistics.median(self.foreign) > BUSY else "") + ("†" if self.samples < FEWEST_SAMPLES else "")


class Row:
    """One cell in one state."""

    def __init__(self, key, state):
        self.key = key  # (operation, ranks, bytes)
        self.state = state
        self.by_name = collections.defaultdict(Cell)

    def us(self, name):
        return self.by_name[name].us if name in self.by_name else None

    def best(self, families=tuple(RIVALS)):
        """Name of the fastest, of those that were measured in a round in which col was; None without any."""
        own = self.by_name["col"].us_by_round if "col" in self.by_name else {}
        names = [name for name in self.by_name if BY_NAME[name].family in families and self.us(name) is not None
                 and set(own) & set(self.by_name[name].us_by_round)]
        return min(names, key=self.us, default=None)

    def ratio(self, own, other):
        """How many times as long `other` takes as `own`; None where one of them has no time."""
        if self.us(own) is None or other is None or self.us(other) is None:
            return None
        return ratio_of(self.by_name[own].us_by_round, self.by_name[other].us_by_round)

    def to_best(self):
        return self.ratio("col", self.best()) if self.key[0] not in OVERLAP else None

    def quotient(self, name, other):
        mine, its = self.us(name), self.us(other)
        return mine / its if mine and its else None


class Measured:
    """All rows of a run, and what its states were."""

    def __init__(self, run, statistic):
        self.states, during = states.of_launches(run["launches"])
        self.launches, self.changed = len(run["launches"]), during.count(None)
        rows = {}
        for launch, state in zip(run["launches"], during):
            found = {(line["operation"], line["bytes"]): line for line in launch["lines"]}
            for operation, bytes_ in map(tuple, launch["cells"]):
                line = found.get((operation, bytes_), {})
                # Who failed is shown whatever the state was.
                if state is None and not (launch["trouble"] or line.get("wrong")):
                    continue
                key = operation, launch["ranks"], bytes_
                row = rows.setdefault((key, state or self.states[0]), Row(key, state or self.states[0]))
                cell = row.by_name[launch["contestant"]]
                if "wrong" in line:
                    cell.add(launch["round"], line, launch, statistic)
                elif not line:
                    # What the bare loops have no bound for they leave out.
                    cell.trouble = cell.trouble or launch["trouble"]
        self.rows = sorted(rows.values(), key=lambda row: (row.key[1], self.states.index(row.state),
                                                           OPERATIONS.index(row.key[0]), row.key[2]))

    def unusable(self):
        """(a rival's name, ranks, its barrier's µs, the fastest barrier's) where a rival was left out as time slices."""
        for row in self.rows:
            if row.key[0] != "barrier":
                continue
            alike = [other for other in self.rows if other.key[1] == row.key[1] and other is not row]
            for family, name in RIVALS.items():
                own = [one for one in row.by_name if BY_NAME[one].family == family and row.us(one) is not None]
                elsewhere = any(BY_NAME[one].family == family for other in alike if other.key[0] != "barrier"
                                for one in other.by_name)
                if own and alike and not elsewhere:
                    yield name, row, min(map(row.us, own))
