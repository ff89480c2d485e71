"""Checks a trace against the description of the trace event format, and prints what it has.

    check_trace.py FILE [--overlap]

With --overlap, each barrier must be on all ranks at one time, but for the error of their clocks. Prints a line for each name of a call, with how many there are on each rank; then the tracks, arrows, and rounds.
"""
import collections
import json
import sys


def need(condition, what, event=None):
    if not condition:
        sys.exit(f"{what}: {event}" if event is not None else what)


def number(event, name):
    value = event.get(name)
    need(isinstance(value, (int, float)) and not isinstance(value, bool), f"no number '{name}'", event)
    return value


def nanoseconds(event, name):
    return round(number(event, name) * 1000)


def check_slices(slices):
    """The slices of a track are either apart or one within the other."""
    open_until = []
    for begin, end, event in sorted(slices, key=lambda one: (one[0], -one[1])):
        while open_until and open_until[-1] <= begin:
            open_until.pop()
        need(not open_until or end <= open_until[-1], "a slice that is only in part within another", event)
        open_until.append(end)


def check_overlap(barriers, error_ns):
    """Nobody leaves a barrier before the last one has come."""
    for (call, group), slices in barriers.items():
        last_begin, first_end = max(begin for begin, _ in slices), min(end for _, end in slices)
        need(first_end + 2 * error_ns >= last_begin, f"ranks are at different times in barrier {call} of {group}", slices)
    print(f"every barrier is on all ranks at one time, to {error_ns // 1000} µs")


def main(path, *options):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    need(isinstance(trace, dict) and isinstance(trace.get("traceEvents"), list), "no object with a list traceEvents")
    need(trace.get("displayTimeUnit") in ("ms", "ns"), "displayTimeUnit is ms or ns")
    # Of the clocks of hosts, and of a process's two clocks.
    error_ns = int(trace["otherData"]["clock_error_ns"]) + 5000
    tracks, arrows, names = collections.defaultdict(list), collections.defaultdict(dict), {}
    calls, rounds, counters, labels = collections.Counter(), 0, 0, set()
    for event in trace["traceEvents"]:
        phase = event.get("ph")
        need(phase in ("X", "M", "C", "s", "f"), "an unknown phase", event)
        need(isinstance(event.get("name"), str) and event["name"], "no name", event)
        need(isinstance(event.get("pid"), int), "no pid", event)
        if phase == "M":
            need(event["name"] in ("process_name", "process_sort_index", "thread_name", "thread_sort_index"), "unknown", event)
            names[event["name"], event["pid"], event.get("tid")] = event["args"]
            continue
        need(nanoseconds(event, "ts") >= 0, "a time before the file's beginning", event)
        if phase == "C":
            need(all(isinstance(value, (int, float)) and value >= 0 for value in event["args"].values()), "no counter", event)
            counters += 1
            continue
        need(isinstance(event.get("tid"), int) and isinstance(event.get("cat"), str), "no tid or cat", event)
        track = event["pid"], event["tid"]
        if phase == "X":
            begin = nanoseconds(event, "ts")
            need(nanoseconds(event, "dur") >= 0, "a negative duration", event)
            tracks[track].append((begin, begin + nanoseconds(event, "dur"), event))
            if event["cat"] == "round":
                rounds += 1
            else:
                calls[event["name"], event["pid"]] += 1
                labels.add(event["args"].get("label", ""))
        else:
            need(isinstance(event.get("id"), str), "an arrow without id", event)
            need(phase == "s" or event.get("bp") == "e", "an arrow's end that binds to the next slice", event)
            need(phase not in arrows[event["id"]], "two arrows with one id", event)
            arrows[event["id"]][phase] = nanoseconds(event, "ts"), track
    whole = 0
    for ends in arrows.values():
        for time, track in ends.values():
            need(any(begin <= time <= end for begin, end, _ in tracks[track]), "an arrow that ends in no slice", ends)
        if len(ends) == 2:
            whole += 1
            need(ends["s"][0] <= ends["f"][0] + 2 * error_ns, "an arrow into the past", ends)
    if "--overlap" in options:
        barriers = collections.defaultdict(list)
        for track, slices in tracks.items():
            for begin, end, event in slices:
                if event["name"].split()[0] == "barrier":
                    barriers[event["args"]["call"], names["thread_name", *track]["name"]].append((begin, end))
        need(barriers, "no barrier")
        check_overlap(barriers, error_ns)
    for track, slices in tracks.items():
        check_slices(slices)
        need(("process_name", track[0], None) in names, "a process without a name", track)
        need(("thread_name", *track) in names, "a track without a name", track)
    for (name, pid), count in sorted(calls.items()):
        print(f"call {name} of rank {pid}: {count}")
    print(f"arrows {whole}, of them without an end {len(arrows) - whole}")
    print(f"rounds {'some' if rounds else 'none'}, counters {'some' if counters else 'none'}")
    print(f"tracks {len(tracks)}, labels {sorted(labels)}")


main(*sys.argv[1:])
