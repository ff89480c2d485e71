"""The commands that compile what combines elements: none may let the compiler round otherwise than the source says.

Usage: no_contraction.py BUILD COMPILER (gcc or clang)
"""

import json
import os
import shlex
import sys

# Archives with folds in them (src/lib/meson.build).
ARCHIVES = ("libcol_kernels.a.p/", "libcol_core.a.p/")
# One of these keeps a * b + c as two steps: in the dialects of the standard, GCC does so by itself.
KEEPS = {"gcc": ("-ffp-contract=off", "-std=c++20", "-std=c++23"), "clang": ("-ffp-contract=off",)}
REFUSED = ("-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-fassociative-math", "-freciprocal-math", "-mdaz-ftz",
           "-ffp-contract=fast", "-ffp-contract=on")


def problems_of(commands, compiler):
    found, seen = [], set()
    for entry in commands:
        archive = next((name for name in ARCHIVES if "src/lib/" + name in entry.get("output", "")), None)
        if archive is None:
            continue
        seen.add(archive)
        flags = shlex.split(entry["command"])
        wrong = [flag for flag in flags if flag in REFUSED]
        if not set(KEEPS[compiler]) & set(flags):
            wrong.append("none of " + ", ".join(KEEPS[compiler]))
        found += [f"{entry['output']}: {flag}" for flag in wrong]
    return found + [f"no command makes {name}" for name in ARCHIVES if name not in seen]


def with_kernel(commands, change):
    """The commands, of which the last one that makes a kernel is another."""
    changed = [dict(entry) for entry in commands]
    last = [entry for entry in changed if "src/lib/" + ARCHIVES[0] in entry.get("output", "")][-1]
    last["command"] = change(last["command"])
    return changed


def main():
    build, compiler = sys.argv[1:]
    with open(os.path.join(build, "compile_commands.json")) as file:
        commands = json.load(file)
    found = problems_of(commands, compiler)
    if found:
        sys.exit("\n".join(found))
    # It would see a command that lets go of what it had, and one that takes it back.
    assert problems_of(with_kernel(commands, lambda text: text.replace("-std=c++2", "-std=gnu++2").replace("-ffp-contract=off", "")), compiler)
    assert problems_of(with_kernel(commands, lambda text: text + " -ffp-contract=fast"), compiler)
    assert problems_of([], compiler)


main()
