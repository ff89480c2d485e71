"""The tables of a run."""

import re
import statistics

import loss
import targets
from contestants import OVERLAP, RIVALS
from plan import BY_NAME
from rows import Measured

COMMAND = "scripts/dev peers"
# What may stand for the samples of a launch; low quartiles are for a look on a machine that others use.
STATISTICS = {"median_us": "Median of the slowest rank's times", "low_us": "Lower quartile of the slowest rank's times",
              "elapsed_us": "Median of the times from the first rank's begin to the last one's end"}
WAYS = {"then_compute": "the call, then the work", "beside_compute": "start, work, wait",
        "beside_tests": "start, work with 100 tests, wait"}


def bad(run):
    """Whether anybody gave wrong data, or col failed."""
    wrong = any(line.get("wrong") for launch in run["launches"] for line in launch["lines"])
    own = [launch for launch in run["launches"] if BY_NAME[launch["contestant"]].family == "col"]
    own += [launch for launch in run.get("losses", []) if launch["name"] == "col"]
    return wrong or any(launch["trouble"] for launch in own)


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


def interval(ratio):
    if ratio is None:
        return "–"
    if ratio.rounds == 1:
        return f"{ratio.value:.2f} (one round)"
    return f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})" if ratio.high < 100 else f"{ratio.value:.2f} (unknown)"


def time(row, name):
    """A contestant's time with its marks, or why there is none."""
    cell = row.by_name.get(name)
    if cell is None:
        return "–"
    if cell.wrong:
        return "wrong data"
    trouble = cell.trouble.split(":", 1)[0]
    if cell.us is None:
        return trouble or "–"
    left_out = len(cell.us_by_round) < len(row.by_name["col"].us_by_round) and not trouble
    return number(cell.us) + cell.marks + "‡" * left_out + (f" (once: {trouble})" if trouble else "")


def family_time(row, family):
    """The time of its best setting, with the setting's name."""
    names = [name for name in row.by_name if BY_NAME[name].family == family]
    timed = [name for name in names if row.us(name) is not None]
    if not timed:
        return time(row, names[0]) if names else "–"
    best = min(timed, key=row.us)
    return time(row, best) + (f" {best.split('-', 1)[1]}" if len(names) > 1 else "")


def as_table(head, lines, numbers=0):
    """The last columns are numbers."""
    text = ["| " + " | ".join(head) + " |", "|" + "---|" * (len(head) - numbers) + "---:|" * numbers]
    return text + ["| " + " | ".join(line) + " |" for line in lines]


def section(title, head, lines, numbers=0):
    return [f"### {title}", "", *as_table(head, lines, numbers), ""] if lines else []


def parts(measured):
    """(ranks, state, its rows) for each of both."""
    for ranks in sorted({row.key[1] for row in measured.rows}):
        for state in measured.states:
            if rows := [row for row in measured.rows if row.key[1] == ranks and row.state == state]:
                yield ranks, state, rows


def means(measured):
    lines = []
    for ranks, state, rows in parts(measured):
        line = [str(ranks), state.name]
        for _, least, most in targets.RANGES:
            mean, cells = targets.mean_of(rows, least, most)
            line.append(f"{mean:.2f} in {cells}" if mean else "–")
        ratios = [ratio for row in rows if (ratio := row.to_best())]
        if ratios:
            lines.append([*line, str(len(ratios)), str(sum(ratio.is_behind for ratio in ratios)),
                          str(sum(ratio.may_be_behind for ratio in ratios))])
    return lines


def means_judged(measured):
    """Lines of the table of targets."""
    for ranks, state, rows in parts(measured):
        for wanted, (name, least, most) in zip(targets.MEANS.get(ranks, ()), targets.RANGES):
            mean, _ = targets.mean_of(rows, least, most)
            if mean:
                yield [f"mean of best ÷ col, {ranks} ranks, {name}", f"≥ {wanted}", state.name, f"{mean:.2f}",
                       "met" if mean >= wanted else "missed"]


def cells_behind(measured):
    found = [(ratio, row) for row in measured.rows
             if (ratio := row.to_best()) and (ratio.is_behind or ratio.may_be_behind)]
    found.sort(key=lambda pair: (not pair[0].is_behind, pair[0].value))
    for ratio, row in found:
        best = row.best()
        yield [cell_name(row.key), row.state.name, "behind" if ratio.is_behind else "not certain", interval(ratio),
               str(ratio.rounds), time(row, "col"), f"{time(row, best)} {best}"]


def overlaps(measured):
    for _, state, rows in parts(measured):
        by_operation = {row.key[0]: row for row in rows if row.key[0] in OVERLAP}
        for name in BY_NAME:
            row = by_operation.get("then_compute")
            if row is None or row.us(name) is None:
                continue
            call = statistics.median(row.by_name[name].call_us)
            for way in OVERLAP[1:]:
                if way in by_operation and (took := by_operation[way].us(name)):
                    yield [name, state.name, number(call), number(row.us(name)), WAYS[way], number(took),
                           f"{took / row.us(name):.2f}", f"{(row.us(name) - took) / call:.0%}"]


def machine_and_command(run):
    facts = run["machine"]
    return (f"{run['started']}, {facts['cpu']}, {facts['processors']} processors, Linux {facts['kernel']}; "
            + "; ".join(f"{name} {version}" for name, version in facts["versions"].items()) + f". `{run['command']}`.")


def circumstances(run, measured, statistic):
    rounds = 1 + max((launch["round"] for launch in run["launches"]), default=0)
    foreign = statistics.median([launch["foreign"] for launch in run["launches"]] or [0])
    lines = [
        f"{machine_and_command(run)} {STATISTICS[statistic]}, median over {rounds} round{'s' * (rounds != 1)}, µs. "
        f"Other programs took {foreign:.0%} of the machine; "
        f"all turns together {sum(launch['seconds'] for launch in run['launches']) / 60:.1f} minutes.",
        "",
        f"States of the machine, by what a cache line took there and back: {', '.join(s.name for s in measured.states)}. "
        f"Of {measured.launches} launches, {measured.changed} are left out because the state changed meanwhile."]
    lines += [f"{name} does not take part: {why}." for name, why in run["absent"].items()]
    unusable = {(name, row.key[1]): (row, us) for name, row, us in measured.unusable()}
    lines += [f"{name} is unusable with {ranks} ranks: a barrier takes {number(us)} µs, col's {time(row, 'col')}. "
              "Nothing else of it was measured there." for (name, ranks), (row, us) in unusable.items()]
    return "\n".join(lines) + "\n"


def markdown(run, statistic):
    measured = Measured(run, statistic)
    lines = [circumstances(run, measured, statistic)]
    lines += section("Best rival ÷ col: geometric means (above 1, col is ahead)",
                     ["ranks", "state", *(name for name, _, _ in targets.RANGES), "all cells", "behind", "perhaps"],
                     means(measured), numbers=3)
    lines += section("Cells behind", ["cell", "state", "", "best ÷ col (95 %)", "rounds", "col", "best rival"],
                     list(cells_behind(measured)), numbers=4)
    lines += section("Allreduce of 32 MiB beside work, 2 ranks",
                     ["contestant", "state", "the call", WAYS["then_compute"], "", "took", "ratio", "of the call hidden"],
                     list(overlaps(measured)))
    for ranks, state, rows in parts(measured):
        head = ["operation", "size", "col", "col::alloc", *RIVALS.values(), "bound", "best ÷ col (95 %)", "col ÷ bound"]
        shown = [[operation_name(row.key[0]), size(row.key[2]), time(row, "col"), time(row, "col-alloc"),
                  *(family_time(row, family) for family in RIVALS), time(row, "bare"), interval(row.to_best()),
                  times(row.quotient("col", "bare"))] for row in rows if row.key[0] not in OVERLAP and time(row, "col") != "–"]
        lines += section(f"{ranks} ranks, {state.name}", head, shown, numbers=len(head) - 2)
    lines += section("A rank dies in an allreduce of 1,000 floats: the last survivor has an error, and then a right sum",
                     loss.HEAD, [[*line[:-2], interval(line[-2]), line[-1]] for line in loss.lines(run.get("losses", []))], numbers=5)
    checks = [[f"allreduce, {entry['ranks']} ranks", size(entry["bytes"]), number(entry["us"]), row.state.name,
               number(row.us("col"))] for entry in run["colbench"] for row in measured.rows
              if row.key == ("allreduce", entry["ranks"], entry["bytes"])]
    lines += section("The same cells by colbench", ["operation", "size", "colbench", "state", "here"], checks)
    lines += section("Targets", ["cells", "wanted", "state", "reached", "verdict"],
                     [*means_judged(measured), *targets.judged(measured, cell_name)])
    return "\n".join(lines)


def marks(command):
    return f"<!-- written by {command}: begin -->", f"<!-- written by {command}: end -->"


def write_into(document, table, command=COMMAND):
    page = document.read_text()
    begin, end = marks(command)
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{document} has no lines '{begin}' and '{end}' for the table to go between")
    document.write_text(pattern.sub(lambda _: f"{begin}\n{table}\n{end}", page))
