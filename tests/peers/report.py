"""From the raw numbers of a run to its tables."""

import collections
import json
import math
import pathlib
import platform
import re
import statistics
import subprocess
import tempfile

from contestants import CONTESTANTS, processors

BEGIN = "<!-- written by scripts/dev peers: begin -->"
END = "<!-- written by scripts/dev peers: end -->"
FEWEST_SAMPLES = 20
BUSY = 0.05  # share of the machine that others may take before a cell is marked
# What may stand for the samples of a launch; low quartiles are for a look on a machine that others use.
STATISTICS = {"median_us": "Median of the slowest rank's times", "low_us": "Lower quartile of the slowest rank's times",
              "elapsed_us": "Median of the times from the first rank's begin to the last one's end"}
MPI = ("openmpi", "mpich")
BY_NAME = {contestant.name: contestant for contestant in CONTESTANTS}


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
                cell.samples = min(cell.samples or line["samples"], line["samples"])
    return cells


def bad(run):
    """Whether anybody gave wrong data, or col failed."""
    wrong = any(line.get("wrong") for launch in run["launches"] for line in launch["lines"])
    return wrong or any(launch["trouble"] and launch["contestant"] == "col" for launch in run["launches"])


def keys(run):
    """Of cells, in the order of the first round."""
    seen = {}
    for launch in run["launches"]:
        for operation, bytes_ in launch["cells"]:
            seen.setdefault((operation, launch["ranks"], bytes_))
    return sorted(seen, key=lambda key: key[1])


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


def text(cell):
    """A cell of the table: a time with its marks, or why there is none."""
    if cell is None or (cell.us is None and not (cell.trouble or cell.wrong)):
        return "–"
    if cell.wrong:
        return "wrong data"
    if cell.us is None:
        return cell.trouble.split(":", 1)[0]
    marks = ("*" if statistics.median(cell.foreign) > BUSY else "") + ("†" if cell.samples < FEWEST_SAMPLES else "")
    once = f" (once: {cell.trouble.split(':', 1)[0]})" if cell.trouble else ""
    return number(cell.us) + marks.replace("*", "\\*") + once


class Row:
    def __init__(self, cells, key):
        self.key = key
        self.by_name = {name: cells[(*key, name)] for name in BY_NAME if (*key, name) in cells}

    def us(self, name):
        cell = self.by_name.get(name)
        return cell.us if cell else None

    def best(self, families, only_default=False):
        """Name of the fastest, or None."""
        names = [name for name, contestant in BY_NAME.items() if contestant.family in families
                 and self.us(name) is not None and (contestant.default or not only_default)]
        return min(names, key=self.us, default=None)

    def ratio(self, name):
        """How many times as long as col."""
        own = self.us("col")
        return self.us(name) / own if name and own else None

    def cells(self):
        best_of = {family: self.best((family,)) for family in (*MPI, "gloo")}
        tuned = {f: text(self.by_name.get(best_of[f])) + self.settings(best_of[f]) for f in best_of}
        bound = self.us("bare")
        own = self.us("col")
        return [
            self.key[0].replace("_", " "), size(self.key[2]), text(self.by_name.get("col")),
            text(self.by_name.get("openmpi")), tuned["openmpi"], text(self.by_name.get("mpich")), tuned["mpich"],
            text(self.by_name.get("gloo")), tuned["gloo"], text(self.by_name.get("bare")),
            times(self.ratio(self.best(MPI, only_default=True))), times(self.ratio(self.best(MPI))),
            times(self.ratio(best_of["gloo"])), times(own / bound if own and bound else None),
        ]

    @staticmethod
    def settings(name):
        return "" if name is None or BY_NAME[name].default else " " + name.split("-", 1)[1]


HEAD = ["operation", "size", "col", "Open MPI", "its best", "MPICH", "its best", "Gloo", "its best", "bound",
        "default ÷ col", "best ÷ col", "Gloo ÷ col", "col ÷ bound"]


def as_table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def geometric_mean(values):
    values = [value for value in values if value]
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def means(rows):
    """Of the ratios, by kind of cell, with the smallest of them."""
    kinds = collections.defaultdict(list)
    for row in rows:
        operation, ranks, bytes_ = row.key
        if row.us("col") is None:
            continue
        if operation == "allreduce" and 1 << 10 <= bytes_ <= 1 << 20:
            kinds["allreduce, 1 KiB to 1 MiB"].append(row)
        if operation in ("allreduce", "barrier") and bytes_ <= 1 << 10 and ranks > 2:
            kinds["allreduce up to 1 KiB and barrier, more than 2 ranks"].append(row)
        if operation not in ("allreduce", "allreduce_in_place", "barrier", "send", "round_trip"):
            kinds[f"broadcast to alltoall, {ranks} ranks"].append(row)
            kinds["broadcast to alltoall"].append(row)
    for name, members in sorted(kinds.items()):
        entry = [name, str(len(members))]
        for families, only_default in ((MPI, True), (MPI, False), (("gloo",), False)):
            ratios = [ratio for row in members if (ratio := row.ratio(row.best(families, only_default)))]
            entry += [times(geometric_mean(ratios)), times(min(ratios, default=None))]
        yield entry


def circumstances(run, statistic):
    facts = run["machine"]
    rounds = 1 + max((launch["round"] for launch in run["launches"]), default=0)
    foreign = statistics.median([launch["foreign"] for launch in run["launches"]] or [0])
    versions_ = "; ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return (f"{run['started']}, {facts['cpu']}, {facts['processors']} processors, Linux {facts['kernel']}; {versions_}. "
            f"{STATISTICS[statistic]}, median over {rounds} round{'s' * (rounds != 1)}, µs. "
            f"Other programs took {foreign:.0%} of the machine.")


def markdown(run, statistic):
    cells = collect(run, statistic)
    rows = [Row(cells, key) for key in keys(run)]
    lines = [circumstances(run, statistic), ""]
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


def machine():
    cpu = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {"cpu": cpu.group(1) if cpu else platform.machine(), "processors": processors(),
            "kernel": platform.release(), "versions": versions()}


def versions():
    found = {}
    for name, package in (("Open MPI", "libopenmpi3"), ("MPICH", "libmpich12"), ("Gloo", "libgloo0")):
        query = ["dpkg-query", "-W", "-f=${Version}", package]
        asked = subprocess.run(query, capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            found[name] = asked.stdout
    return found


def colbench_row(colbench, ranks, bytes_, limit):
    """One row of colbench's, out of place; None when it does not run."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "row.json"
        try:
            subprocess.run([colbench, "allreduce", "--size", str(bytes_), "-n", str(ranks), "--json", str(path)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=limit, check=True)
            row = json.loads(path.read_text())["cells"][0]
            return {"ranks": ranks, "bytes": bytes_, "us": row["stats"]["p50"] / 1000}
        except (OSError, subprocess.SubprocessError, KeyError, IndexError, ValueError):
            return None
