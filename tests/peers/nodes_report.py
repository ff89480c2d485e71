"""The tables of a run over hosts."""

import collections
import math
import statistics

import report
from comparison import ratio_of
from nodes_plan import BITS_PER_SECOND, COLLECTIVES, MIB, TWO_BY_TWO, Layout, bound, bound_seconds
from report import number, operation_name, section, size

COMMAND = "scripts/dev nodes"
MOST_BYTES, MOST_SLOW, MOST_FAST_LINK_MS, LEAST_TRAINER = 1.05, 1.25, 340, 0.6


def wrong_data(run):
    return any(line.get("wrong") for launch in run["launches"] for line in launch["lines"])


def bad(run):
    """Whether anybody gave wrong data, or col failed."""
    return wrong_data(run) or any(launch["trouble"] for launch in run["launches"] if launch["contestant"] == "col")


def layout_of(launch):
    return Layout(tuple(launch["counts"]), launch["in_turn"])


def busiest(line, layout):
    """(out, in) of the hosts that send and receive most in one call, in units of the vector; None if nobody counted."""
    wire = line.get("wire")
    if not wire:
        return None
    # All ranks of a host have its counters.
    by_host = [wire[layout.ranks_of(host)[0]] for host in range(len(layout.counts))]
    return tuple(max(host[way] for host in by_host) / line["bytes_moved"] for way in (0, 1))


class Measured:
    """{(part, layout, rate, operation, bytes): {contestant: its lines, one a round}}, and who failed where."""

    def __init__(self, run):
        self.lines = collections.defaultdict(lambda: collections.defaultdict(list))
        self.trouble = {}
        for launch in run["launches"]:
            place = (launch["part"], layout_of(launch), launch["rate"])
            seen = {(line["operation"], line["bytes"]) for line in launch["lines"]}
            for line in launch["lines"]:
                line["round"] = launch["round"]
                if not line.get("missing"):
                    self.lines[(*place, line["operation"], line["bytes"])][launch["contestant"]].append(line)
            for cell in map(tuple, launch["cells"]):
                if launch["trouble"] and cell not in seen:
                    self.lines[(*place, *cell)].setdefault(launch["contestant"], [])
                    self.trouble[(*place, *cell, launch["contestant"])] = launch["trouble"].split(":", 1)[0]
        names = {launch["contestant"] for launch in run["launches"]}
        # col first, in all its forms.
        self.contestants = sorted(names, key=lambda name: (name != "col", not name.startswith("col-"), name))
        self.rivals = [name for name in self.contestants if name.split("-", 1)[0] != "col"]

    def of_part(self, part):
        return {key: value for key, value in self.lines.items() if key[0] == part}

    def us(self, key, name):
        lines = self.lines.get(key, {}).get(name)
        return statistics.median(line["median_us"] for line in lines) if lines else None

    def behind(self, key, name):
        """Whether col is slower there: for certain, or perhaps."""
        own, other = ({line["round"]: line["median_us"] for line in self.lines[key].get(who, [])} for who in ("col", name))
        ratio = ratio_of(own, other)
        return (ratio.is_behind, ratio.may_be_behind) if ratio else (False, False)

    def wrong(self, key, name):
        return any(line.get("wrong") for line in self.lines[key].get(name, []))

    def time(self, key, name, unit=number):
        """A contestant's time, or why there is none."""
        if self.wrong(key, name):
            return "wrong data"
        us = self.us(key, name)
        return unit(us) if us is not None else self.trouble.get((*key, name), "–")

    def bytes(self, key, name):
        """(out, in) of the busiest hosts: the most of all rounds, as no round may send more than it has to."""
        found = [pair for line in self.lines[key].get(name, []) if (pair := busiest(line, key[1]))]
        return tuple(max(way) for way in zip(*found)) if found else None


def milliseconds(us):
    return number(us / 1000)


def wire_text(pair, least):
    if pair is None:
        return "–"
    both = f"{pair[0]:.2f} / {pair[1]:.2f}"
    return f"**{both}**" if max(pair) > MOST_BYTES * least else both


def wire_tables(measured):
    keys = list(measured.of_part("bytes"))
    layouts = list(dict.fromkeys(key[1] for key in keys))
    own = [[layout.name, *(
        f"{wire_text(measured.bytes(('bytes', layout, '', operation, 32 * MIB), 'col'), bound(operation, layout))} "
        f"[{bound(operation, layout):.2f}]" for operation in COLLECTIVES)] for layout in layouts]
    lines = section("Bytes between hosts, 32 MiB", ["hosts × ranks", *map(operation_name, COLLECTIVES)], own,
                    numbers=len(COLLECTIVES))
    for layout in layouts:
        names = [name for name in measured.contestants
                 if any(measured.lines[key].get(name) for key in keys if key[1] == layout)]
        if len(names) < 2:
            continue
        rows = [[operation_name(operation), f"{bound(operation, layout):.2f}",
                 *(wire_text(measured.bytes(("bytes", layout, "", operation, 32 * MIB), name), bound(operation, layout))
                   for name in names)] for operation in COLLECTIVES]
        lines += section(f"The same beside others, {layout.name}", ["", "bound", *names], rows, numbers=1 + len(names))
    return lines


def times_table(measured, part, unit, head):
    lines = []
    for layout, rate in dict.fromkeys(key[1:3] for key in measured.of_part(part)):
        rows = []
        for key in [key for key in measured.of_part(part) if key[1:3] == (layout, rate)]:
            row = [operation_name(key[3]), size(key[4])]
            row += [measured.time(key, name, unit) for name in measured.contestants]
            own = measured.us(key, "col")
            if rate:
                least = bound_seconds(key[3], layout, key[4], BITS_PER_SECOND[rate]) * 1e6
                row += [unit(least), f"{own / least:.2f}" if own else "–"]
            else:
                row += [ratio_to(measured, key, names) for names in (("gloo",), measured.rivals)]
            rows.append(row)
        more = ["bound", "col ÷ bound"] if rate else ["Gloo ÷ col", "best ÷ col"]
        title = f"{head}, {layout.name}" + (f", {rate[:-4]} {rate[-4].upper()}bit/s" if rate else "")
        lines += section(title, ["operation", "size", *measured.contestants, *more], rows,
                         numbers=len(measured.contestants) + 2)
    return lines


def ratio_to(measured, key, names):
    own = measured.us(key, "col")
    others = [us for name in names if (us := measured.us(key, name)) is not None and not measured.wrong(key, name)]
    return f"{min(others) / own:.2f}" if own and others else "–"


def images_per_second(run, where):
    rates = [statistics.median(launch["images_per_second"]) for launch in run["launches"]
             if launch["part"] == "trainer" and launch["where"] == where and launch["images_per_second"]]
    return statistics.median(rates) if rates else None


def trainer_table(run):
    rates = {where: images_per_second(run, where) for where in ("hosts", "one host")}
    if not all(rates.values()):
        return []
    return section("The digits trainer, 8 ranks, images a second", ["2 hosts of 4", "one host", "ratio"],
                   [[f"{rates['hosts']:,.0f}", f"{rates['one host']:,.0f}", f"{rates['hosts'] / rates['one host']:.2f}"]],
                   numbers=3)


def slope(points):
    """Of the straight line through the logarithms: the exponent with which y grows."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x, mean_y = (statistics.fmean(column) for column in zip(*logs))
    return (sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs))


def store_bound(ranks, hosts):
    """The most bytes that a group may move through the store."""
    return 1024 * ranks + 64 * ranks * hosts


def formation_table(measured):
    """One for each number of hosts."""
    by_hosts = collections.defaultdict(list)
    for key, lines in measured.of_part("formation").items():
        if lines["col"]:
            by_hosts[len(key[1].counts)].append((key[1].ranks, lines["col"]))
    losses = {len(key[1].counts): lines["col"] for key, lines in measured.of_part("loss").items() if lines["col"]}
    tables = []
    for hosts, found in sorted(by_hosts.items()):
        if len(found) > 1:
            tables += formation_of(hosts, sorted(found, key=lambda one: one[0]), losses.get(hosts))
    return tables


def formation_of(hosts, found, losses):
    def median(name):
        return [(ranks, statistics.median(line[name] for line in lines)) for ranks, lines in found]

    def row(words, name, text, with_slope=False):
        values = median(name)
        return [words, *(text(value) for _, value in values), f"{slope(values):.2f}" if with_slope else ""]

    rows = [row("time, ms", "median_us", milliseconds, True),
            row("bytes through the store", "store_bytes", "{:,.0f}".format, True),
            ["of the bytes that may be", *(f"{value / store_bound(ranks, hosts):.0%}"
                                           for ranks, value in median("store_bytes")), ""],
            row("rounds of a rank", "rounds", "{:.0f}".format),
            row("rounds of rank 0", "most_rounds", "{:.0f}".format),
            row("descriptors, the most of a rank", "most_descriptors", "{:.0f}".format),
            row("split into two, ms", "split_ms", "{:.1f}".format)]
    name = "one host" if hosts == 1 else "two hosts" if hosts == 2 else f"{hosts} hosts"
    text = section(f"Forming a group over {name}", ["ranks", *(str(ranks) for ranks, _ in found), "exponent"], rows,
                   numbers=len(found) + 1)
    if losses:
        last = max(line["median_us"] for line in losses)
        text += [f"A rank of {losses[0]['ranks']} is killed: the last of the others knows it after {milliseconds(last)} ms.", ""]
    return text


def targets(run, measured):
    """(what, wanted, reached, whether it is met) of those that were measured."""
    ratios = [max(pair) / bound(key[3], key[1]) for key in measured.of_part("bytes")
              if (pair := measured.bytes(key, "col")) and key[3] != "alltoall"]
    if ratios:
        yield ("bytes ÷ bound, all but alltoall, the worst", f"≤ {MOST_BYTES}", f"{max(ratios):.3f}",
               max(ratios) <= MOST_BYTES)
    for key in measured.of_part("slow"):
        if us := measured.us(key, "col"):
            ratio = us / 1e6 / bound_seconds(key[3], key[1], key[4], BITS_PER_SECOND[key[2]])
            yield (f"{operation_name(key[3])}, {size(key[4])}, 200 Mbit/s: time ÷ bound", f"≤ {MOST_SLOW}", f"{ratio:.2f}",
                   ratio <= MOST_SLOW)
    for key in measured.of_part("fast_link"):
        if us := measured.us(key, "col"):
            yield (f"{operation_name(key[3])}, {size(key[4])}, 1 Gbit/s: ms", f"≤ {MOST_FAST_LINK_MS}",
                   milliseconds(us), us / 1000 <= MOST_FAST_LINK_MS)
    key = ("times", TWO_BY_TWO, "", "allreduce", 8)
    own, others = measured.us(key, "col"), [measured.us(key, name) for name in ("openmpi4-han", "openmpi5-han")]
    if own and any(others):
        wanted = min(filter(None, others))
        yield ("allreduce, 8 B, 2×2: not behind Open MPI with HAN", f"≤ {number(wanted)}", number(own), own <= wanted)
    timed = [key for part in ("times", "slow", "fast_link") for key in measured.of_part(part)
             if measured.us(key, "col") and measured.us(key, "gloo")]
    found = [(f"{operation_name(key[3])} {size(key[4])} {key[1].name}", *measured.behind(key, "gloo")) for key in timed]
    behind = [name for name, certain, _ in found if certain]
    perhaps = [name for name, _, perhaps in found if perhaps]
    if timed:
        yield ("cells behind Gloo", "none", (", ".join(behind) or "none") + (f"; perhaps {', '.join(perhaps)}" * bool(perhaps)),
               not behind)
    rates = [images_per_second(run, where) for where in ("hosts", "one host")]
    if all(rates):
        yield ("the trainer over 2×4 ÷ on one host", f"≥ {LEAST_TRAINER}", f"{rates[0] / rates[1]:.2f}",
               rates[0] / rates[1] >= LEAST_TRAINER)


def circumstances(run, measured):
    foreign = statistics.median([launch["foreign"] for launch in run["launches"]] or [0])
    lines = [f"{report.machine_and_command(run)} Other programs took {foreign:.0%} of the machine. All data was verified"
             + (", and **some was wrong**." if wrong_data(run) else "."), ""]
    lines += [f"{name} does not take part: {why}." for name, why in run["absent"].items()]
    failed = {launch["contestant"]: launch["trouble"] for launch in run["launches"] if launch["trouble"]}
    lines += [f"{name} failed in {sum(launch['contestant'] == name and bool(launch['trouble']) for launch in run['launches'])}"
              f" of {sum(launch['contestant'] == name for launch in run['launches'])} launches; the last time: {why}."
              for name, why in failed.items()]
    return [*lines, ""]


def markdown(run):
    measured = Measured(run)
    lines = circumstances(run, measured)
    lines += section("Targets", ["", "wanted", "reached", ""],
                     [[what, wanted, reached, "met" if met else "**missed**"]
                      for what, wanted, reached, met in targets(run, measured)])
    lines += wire_tables(measured)
    lines += times_table(measured, "times", number, "Times in µs")
    lines += times_table(measured, "slow", milliseconds, "Times in ms")
    lines += times_table(measured, "fast_link", milliseconds, "Times in ms")
    lines += trainer_table(run)
    lines += formation_table(measured)
    return "\n".join(lines)


def write_into(document, tables):
    report.write_into(document, tables, COMMAND)
