#!/usr/bin/env python3
"""compare_plans.py BEFORE AFTER: compares what print_plans of two builds prints.

A problem's plans are the same step by step; or they are as good, combine in the same order (up to 9 ranks: to the same
bits), send as many messages and elements, and take the same simulated time within 1 %, or less. BEFORE and AFTER are
files. To have BEFORE, build print_plans.cpp in a copy of the tree as it was.
"""

import collections
import sys

Plans = collections.namedtuple("Plans", "promise steps seconds")


def read(path):
    plans = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            problem, *rest = line.rstrip("\n").split("\t")
            if len(rest) == 1:
                plans[problem] = Plans(rest[0], "", [])
            else:
                plans[problem] = Plans(rest[0], rest[1], [float(s) for s in rest[2].split()])
    return plans


def main():
    before, after = read(sys.argv[1]), read(sys.argv[2])
    algorithms = collections.defaultdict(collections.Counter)
    wrong, faster = [], collections.Counter()
    for problem in before.keys() | after.keys():
        name = problem.split(",")[0]
        old, new = before.get(problem), after.get(problem)
        if old is None or new is None:
            wrong.append(f"{problem}: only {'after' if old is None else 'before'}")
            continue
        algorithms[name]["all"] += 1
        if old.promise != new.promise:
            wrong.append(f"{problem}: {old.promise} before, {new.promise} after")
        elif old.steps == new.steps:
            algorithms[name]["same"] += 1
            continue
        ratios = [b / a if a else 1.0 for a, b in zip(old.seconds, new.seconds)]
        if ratios and max(ratios) > 1.01:
            wrong.append(f"{problem}: simulated {old.seconds} before, {new.seconds} after; {old.steps}, {new.steps}")
        elif ratios and min(ratios) < 0.99:
            faster[name] += 1
    for name, counts in sorted(algorithms.items()):
        if counts["same"] < counts["all"]:
            print(f"{name}: {counts['same']} of {counts['all']} the same step by step, {faster[name]} faster")
    total = sum(c["all"] for c in algorithms.values())
    same = sum(c["same"] for c in algorithms.values())
    print(f"{len(algorithms)} algorithms, {total} problems, {same} the same step by step, {len(wrong)} wrong")
    for text in sorted(wrong)[:40]:
        print("  " + text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
