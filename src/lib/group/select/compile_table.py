"""Turns a selection table into a C++ source, so that nobody reads its text at run time.

usage: compile_table.py INPUT OUTPUT

A slip in the table ends the build here or in the compiler, or fails the test that compares both.
"""
import json
import pathlib
import sys

UNITS = {"K": 10, "M": 20, "G": 30}


def number(end):
    if isinstance(end, str) and end[-1] in UNITS:
        return int(end[:-1]) << UNITS[end[-1]]
    return int(end)


def limits(ends, least, kind):
    low, high = ends or (None, None)
    return f"{least if low is None else number(low)}, {f'kMost<{kind}>' if high is None else number(high)}"


def row(rule):
    unknown = set(rule) - {"collective", "ranks", "nodes", "ranks_per_node", "bytes", "backend", "power_of_two",
                           "algorithm"}
    if unknown:
        sys.exit(f"{sys.argv[1]}: unknown members {sorted(unknown)} in {rule}")
    only = {None: "any", True: "powers_of_two", False: "others"}[rule.get("power_of_two")]
    return (f"    {{Collective::{rule['collective']}, {limits(rule.get('ranks'), 1, 'int')}, "
            f"{limits(rule.get('nodes'), 1, 'int')}, {limits(rule.get('ranks_per_node'), 1, 'int')}, "
            f"{limits(rule.get('bytes'), 0, 'std::size_t')}, {json.dumps(rule.get('backend', ''))}, "
            f"BuiltInRule::Ranks::{only}, {json.dumps(rule['algorithm'])}}},\n")


source, target = map(pathlib.Path, sys.argv[1:])
table = json.loads(source.read_text(encoding="ascii"))
if table["version"] != 1:
    sys.exit(f"{source}: version {table['version']}, and this reads 1")
evidence = "; ".join(f"{name}: {table['evidence'][name]}" for name in ("machine", "date", "command"))
target.write_text(f"""#include "group/select/built_in.hpp"

namespace col::group {{
namespace {{

constexpr BuiltInRule kRules[] = {{
{''.join(map(row, table['rules']))}}};

}}  // namespace

constinit const std::span<const BuiltInRule> kBuiltInRules = kRules;
constinit const std::string_view kBuiltInEvidence = {json.dumps(evidence)};

}}  // namespace col::group
""", encoding="ascii")
