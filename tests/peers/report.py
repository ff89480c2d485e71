"""From the raw numbers of a run to its tables."""

import collections
import re
import statistics

import targets
from plan import BY_NAME, OPERATIONS
from targets import BLOCKED, KIB, MIB, MPI, geometric_mean

BEGIN = "<!-- written by scripts/dev peers: begin -->"
END = "<!-- written by scripts/dev peers: end -->"
FEWEST_SAMPLES = 20  # over all rounds
BUSY = 0.05  # share of the machine that others may take before a cell is marked
# What may stand for the samples of a launch; low quartiles are for a look on a machine that others use.
STATISTICS = {"median_us": "Median of the slowest rank's times", "low_us": "Lower quartile of the slowest rank's times",
              "elapsed_us": "Median of the times from the first rank's begin to the last one's end"}


class Cell:
    """What a contestant did in a cell, over all rounds."""

    def __init__(self):
        self.medians, self.foreign = [], []
        self.samples = 0
        self.trouble = ""
        self.missing = self.wrong = False

    @property
    def us(self):
        return statistics.median(self.medians) if self.medians and not self.wrong else None


def collect(run, statistic):
    cells = collections.defaultdict(Cell)
    for launch in run["launches"]:
        found = {(line["operation"], line["bytes"]): line for line in launch["lines"]}
        for operation, bytes_ in launch["cells"]:
            cell = cells[operation, launch["ranks"], bytes_, launch["contestant"]]
            line = found.get((operation, bytes_))
            if line is None:
                # What the bare loops have no bound for they leave out.
                cell.trouble = cell.trouble or launch["trouble"]
            elif line.get("missing"):
                cell.missing = True
            else:
                cell.wrong = cell.wrong or line["wrong"] > 0
                cell.medians.append(line[statistic])
                cell.foreign.append(launch["foreign"])
                cell.samples += line["samples"]
    return cells


def bad(run):
    """Whether anybody gave wrong data, or col failed."""
    wrong = any(line.get("wrong") for launch in run["launches"] for line in launch["lines"])
    own = [launch for launch in run["launches"] if BY_NAME[launch["contestant"]].family == "col"]
    return wrong or any(launch["trouble"] for launch in own)


def keys(run):
    """Of cells, in the order of the tables."""
    seen = {(operation, launch["ranks"], bytes_) for launch in run["launches"] for operation, bytes_ in launch["cells"]}
    return sorted(seen, key=lambda key: (key[1], OPERATIONS.index(key[0]), key[2]))


def number(us):
    if us is None:
        return "–"
    if us < 99.95:
        return f"{us:.3g}" if us >= 1 else f"{us:.2f}"
    return f"{us:,.0f}"


def times(value):
    return "–" if value is None else f"{value:.2f}" if value < 9.95 else f"{value:,.0f}"


def size(bytes_):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if bytes_ >= unit:
            return f"{bytes_ // unit} {name}"
    return f"{bytes_} B" if bytes_ else ""


def operation_name(operation):
    return operation.replace("_", " ")


def cell_name(key):
    return ", ".join(filter(None, (operation_name(key[0]), size(key[2]), f"{key[1]} ranks")))


def text(cell, rounds=0):
    """A cell of the table: a time with its marks, or why there is none."""
    if cell is None or (cell.us is None and not (cell.trouble or cell.wrong)):
        return "–"
    if cell.wrong:
        return "wrong data"
    if cell.us is None:
        return cell.trouble.split(":", 1)[0]
    marks = ("*" if statistics.median(cell.foreign) > BUSY else "") + ("†" if cell.samples < FEWEST_SAMPLES else "")
    marks += "‡" if len(cell.medians) < rounds and not cell.trouble else ""
    once = f" (once: {cell.trouble.split(':', 1)[0]})" if cell.trouble else ""
    return number(cell.us) + marks.replace("*", "\\*") + once


class Row:
    def __init__(self, cells, key):
        self.key = key
        self.by_name = {name: cells[(*key, name)] for name in BY_NAME if (*key, name) in cells}
        self.beside_float32 = None  # of bfloat16: how many times as long the sum of as many float32 takes

    def us(self, name):
        cell = self.by_name.get(name)
        return cell.us if cell else None

    def best(self, families, only_default=False):
        """Name of the fastest, or None."""
        names = [name for name, contestant in BY_NAME.items() if contestant.family in families
                 and self.us(name) is not None and (contestant.default or not only_default)]
        return min(names, key=self.us, default=None)

    def failed(self, name):
        """Whether it was asked for this and did not do it, or not right."""
        return name in self.by_name and self.us(name) is None

    def quotient(self, name, other):
        """Of their times; None when one of them has none."""
        mine, its = self.us(name) if name else None, self.us(other)
        return mine / its if mine and its else None

    def ratio(self, name):
        """How many times as long as col."""
        return self.quotient(name, "col")

    def text(self, name):
        own = self.by_name.get("col")
        return text(self.by_name.get(name), len(own.medians) if own else 0)

    def cells(self):
        best_of = {family: self.best((family,)) for family in (*MPI, "gloo")}
        tuned = {family: self.text(name) + self.settings(name) for family, name in best_of.items()}
        return [
            operation_name(self.key[0]), size(self.key[2]), self.text("col"), self.text("col-alloc"),
            self.text("openmpi"), tuned["openmpi"], self.text("mpich"), tuned["mpich"],
            self.text("gloo"), tuned["gloo"], self.text("bare"),
            times(self.ratio(self.best(MPI, only_default=True))), times(self.ratio(self.best(MPI))),
            times(self.ratio(best_of["gloo"])), times(self.quotient("col", "bare")),
            times(self.quotient("col-alloc", "bare")),
        ]

    @staticmethod
    def settings(name):
        return "" if name is None or BY_NAME[name].default else " " + name.split("-", 1)[1]


HEAD = ["operation", "size", "col", "col::alloc", "Open MPI", "its best", "MPICH", "its best", "Gloo", "its best",
        "bound", "default ÷ col", "best ÷ col", "Gloo ÷ col", "col ÷ bound", "col::alloc ÷ bound"]


def as_table(head, rows, numbers=None):
    """The last columns, all but two unless told, are numbers."""
    numbers = len(head) - 2 if numbers is None else numbers
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * (len(head) - numbers) + "---:|" * numbers]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def means(rows):
    """Of the ratios, by kind of cell, with the smallest of them."""
    kinds = collections.defaultdict(list)
    for row in rows:
        operation, ranks, bytes_ = row.key
        if row.us("col") is None:
            continue
        for which in (f"{ranks} ranks", "all"):
            if operation == "allreduce" and KIB <= bytes_ <= MIB:
                kinds[f"allreduce, 1 KiB to 1 MiB, {which}"].append(row)
            if operation in BLOCKED:
                kinds[f"broadcast to alltoall, {which}"].append(row)
        if operation in ("allreduce", "barrier") and bytes_ <= KIB and ranks > 2:
            kinds["allreduce up to 1 KiB and barrier, more than 2 ranks"].append(row)
        if operation in BLOCKED:
            kinds[f"{operation_name(operation)}, all"].append(row)
    for name, members in sorted(kinds.items()):
        entry = [name, str(len(members))]
        for ratio_of in (targets.to_default, targets.to_best, targets.to_gloo):
            ratios = [ratio for row in members if (ratio := ratio_of(row))]
            entry += [times(geometric_mean(ratios)), times(min(ratios, default=None))]
        yield entry


def circumstances(run, statistic):
    facts = run["machine"]
    rounds = 1 + max((launch["round"] for launch in run["launches"]), default=0)
    foreign = statistics.median([launch["foreign"] for launch in run["launches"]] or [0])
    versions_ = "; ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return (f"{run['started']}, {facts['cpu']}, {facts['processors']} processors, Linux {facts['kernel']}; "
            f"{versions_}. {STATISTICS[statistic]}, median over {rounds} round{'s' * (rounds != 1)}, µs. "
            f"Other programs took {foreign:.0%} of the machine; "
            f"all turns together {sum(launch['seconds'] for launch in run['launches']) / 60:.1f} minutes.")


def beside_float32(row, rows):
    operation, ranks, bytes_ = row.key
    if operation != "allreduce_bfloat16" or not row.us("col"):
        return None
    as_many = [other.us("col") for other in rows if other.key == ("allreduce", ranks, 2 * bytes_)]
    return as_many[0] / row.us("col") if as_many and as_many[0] else None


def markdown(run, statistic):
    cells = collect(run, statistic)
    rows = [Row(cells, key) for key in keys(run)]
    for row in rows:
        row.beside_float32 = beside_float32(row, rows)
    lines = [circumstances(run, statistic), ""]
    if judged := targets.lines(rows, cell_name):
        lines += ["### Targets", ""]
        lines += as_table(["cells", "wanted", "reached", "verdict"], judged, numbers=0) + [""]
    for ranks in sorted({row.key[1] for row in rows}):
        lines += [f"### {ranks} ranks", ""]
        lines += as_table(HEAD, [row.cells() for row in rows if row.key[1] == ranks]) + [""]
    summary = list(means(rows))
    if summary:
        lines += ["### Ratios to col: geometric mean and smallest", ""]
        head = ["cells", "number", "default", "smallest", "best", "smallest", "Gloo", "smallest"]
        lines += as_table(head, summary) + [""]
    if run["colbench"]:
        lines += ["### The same cells by colbench", ""]
        checks = []
        for entry in run["colbench"]:
            here = Row(cells, ("allreduce", entry["ranks"], entry["bytes"])).us("col")
            name = f"allreduce, {entry['ranks']} ranks"
            checks.append([name, size(entry["bytes"]), number(entry["us"]), number(here)])
        lines += as_table(["operation", "size", "colbench", "here"], checks) + [""]
    return "\n".join(lines)


def write_into(document, table):
    page = document.read_text()
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{document} has no lines '{BEGIN}' and '{END}' for the table to go between")
    document.write_text(pattern.sub(lambda _: f"{BEGIN}\n{table}\n{END}", page))
