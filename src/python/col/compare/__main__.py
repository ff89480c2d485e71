"""The command line of python -m col.compare: starts the ranks several times, and prints what they have found."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from time import gmtime, monotonic, strftime
from typing import Any, Callable, NoReturn, Optional, Sequence

from .. import run
from ..errors import InvalidArgument, RankFailed
from ..launch.program import find
from . import take_part
from .results import Samples, document, processor, rounded, table, verdicts

MEASURED, WRONG, USAGE, RANK_DIED = 0, 1, 2, 5  # exit codes, as colbench has them
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
UNITS = "KMG"
EXAMPLES = """examples:
  python -m col.compare                                  2 ranks or one for each processor, 8 B to 64 MiB: some minutes
  python -m col.compare -n 4 --sizes 8,64K,16M --ops all_reduce,broadcast
  python -m col.compare --parameters 30M --sizes 8       steps of a model of 30 million parameters
  python -m col.compare --json mine.json --picture mine.html
  colbench draw mine.json -o mine.svg                    the picture again, in another form

exit code: 0 measured; 1 wrong data; 2 usage, or something is not installed; 5 a rank died"""
SWITCH = """To switch:  import col.torch, and dist.init_process_group("col") where it says "gloo"; beside NCCL "cpu:col,cuda:nccl".
            DDP, where "col.Group" is faster in its row: model.register_comm_hook(None, col.torch.allreduce_hook).
To go back: write "gloo" again; nothing else has changed."""


def fail(text: str, code: int = USAGE) -> NoReturn:
    """Says it in one line, and ends."""
    print("col.compare: " + " ".join(text.split()), file=sys.stderr)
    sys.exit(code)


def whole(name: str, least: int, base: int = 1000) -> Callable[[str], int]:
    """A parser of a whole number with K, M or G, which stand for powers of `base`."""

    def parse(text: str) -> int:
        digits, power = (text[:-1], 1 + UNITS.index(text[-1].upper())) if text and text[-1].upper() in UNITS else (text, 0)
        number: int = int(digits) * base**power if digits.isascii() and digits.isdigit() else -1
        if number < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no {name}; write a whole number from {least} on, such as 8, 64K or 1M")
        return number

    return parse


def sizes(text: str) -> list[int]:
    """'8,64K,16M' in bytes."""
    found = sorted({whole("size in bytes", 4, 1024)(word) for word in text.split(",")})
    odd = next((each for each in found if each % 4), None)
    if odd is not None:
        raise argparse.ArgumentTypeError(f"{odd} bytes hold no whole float32; write a multiple of 4")
    return found


def operations(text: str) -> list[str]:
    """'all_reduce,broadcast'."""
    for word in text.split(","):
        if word not in OPERATIONS:
            raise argparse.ArgumentTypeError(f"there is no '{word}' here; choose from {', '.join(OPERATIONS)}")
    return list(dict.fromkeys(text.split(",")))


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        fail(f"{message}; python -m col.compare --help has all options")


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """The options. Ends the process where they are wrong."""
    processors = len(os.sched_getaffinity(0))
    parser = Parser(
        prog="python -m col.compare", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compares torch's Gloo, col as torch's backend and col's own Group on this machine, with mpi4py where it is "
        "installed: the same processes, threads and processors for all, in turns, every result verified.",
    )
    add = parser.add_argument
    add("-n", "--ranks", type=whole("number of ranks", 2), default=max(processors, 2), help="default: one for each processor")
    add("--sizes", type=sizes, default=sizes("8,1K,32K,1M,8M,64M"), metavar="LIST", help="bytes; default: 8,1K,32K,1M,8M,64M")
    add("--ops", type=operations, default=list(OPERATIONS), metavar="LIST", help="default: " + ",".join(OPERATIONS))
    add("--parameters", type=whole("number of parameters", 0), default=1_000_000, metavar="N",
        help="of the model whose DDP and FSDP steps are timed; 0: none; default: 1M")
    add("--launches", type=whole("number of launches", 1), default=6, metavar="N",
        help="how often the ranks are started; an interval takes 6; default: 6")
    add("--seconds", type=float, default=0.2, help="for the samples of one row in one launch, about; default: 0.2")
    add("--limit", type=float, default=1800, metavar="SECONDS", help="after which a launch counts as hung; default: 1800")
    add("--threads", type=whole("number of threads", 1), metavar="N", help="of torch in each rank; default: processors over ranks")
    add("--json", metavar="FILE", help="write everything, every sample too, as colbench does")
    add("--picture", metavar="FILE", help="curves: .html or .svg")
    add("--with", dest="more", action="append", default=[], metavar="MODULE:CLASS",
        help="a contender of your own; col/compare/contenders.py says what it has")
    options = parser.parse_args(words)
    for name in ("seconds", "limit"):
        if not getattr(options, name) > 0:
            fail(f"--{name} must be more than 0")
    if options.picture and not options.picture.endswith((".html", ".svg")):
        fail(f"--picture {options.picture}: end it with .html or .svg")
    options.threads = options.threads or max(processors // options.ranks, 1)
    options.processors = processors
    return options


def check(options: argparse.Namespace) -> None:
    """Says what is missing, before anything starts. Ends the process where something is."""
    for module in ("numpy", "torch"):
        if importlib.util.find_spec(module) is None:
            fail(f"there is no {module} in {sys.executable}; pip install {module}")
    for name in ["colrun"] + (["colbench"] if options.picture else []):
        if find(name) is None:
            fail(f"there is no {name} beside the package nor on PATH; pip install libcol has it, or put its folder on PATH")
    if options.more:
        from .contenders import named

        try:
            for path in options.more:
                named(path)
        except InvalidArgument as error:
            fail(str(error))
    for path in (options.json, options.picture):
        folder = os.path.dirname(os.path.abspath(path)) if path else os.curdir
        if not os.access(folder, os.W_OK):
            fail(f"cannot write {path}: there is no folder {folder} that this user may write to")
        if path and os.path.exists(path) and (os.path.isdir(path) or not os.access(path, os.W_OK)):
            fail(f"cannot write {path}: " + ("it is a folder" if os.path.isdir(path) else "this user may not write to it"))


def launch(options: argparse.Namespace, number: int) -> dict[str, Any]:
    """Starts the ranks once, and returns what they have found. Ends the process where they fail, or a result is wrong."""
    request = {
        "cells": [(operation, size) for operation in options.ops for size in options.sizes], "launch": number,
        "seconds": options.seconds, "threads": options.threads, "processors": options.processors,
        "parameters": options.parameters, "with": options.more,
    }
    environment = {"OMP_NUM_THREADS": str(options.threads), "PYTHONWARNINGS": "ignore"}
    try:
        with tempfile.TemporaryDirectory(prefix="col compare ") as folder:
            answers = run(
                options.ranks, take_part, {**request, "store": folder}, timeout=options.limit, env=environment, output="none")
    except RankFailed as failed:
        print(failed, file=sys.stderr)
        if failed.code == "timeout":
            fail(f"launch {number} has not ended after {options.limit:g} s; --limit allows it more", RANK_DIED)
        fail(f"a rank of launch {number} has failed; its own words are above", RANK_DIED)
    answer: dict[str, Any] = next(each for each in answers if each)
    if "wrong" in answer:
        hint = "; --parameters 0 leaves steps out" if " step" in answer["wrong"] else ""
        fail(f"wrong data: {answer['wrong']}; nothing is said about times{hint}", WRONG)
    return answer


def measured(options: argparse.Namespace) -> tuple[Samples, dict[Any, str], list[str], dict[str, Any]]:
    """The samples of all launches, the reason of each row that has none, other notes, and the last launch's answer."""
    samples: Samples = {}
    notes: dict[Any, str] = {}
    others: list[str] = []
    answer: dict[str, Any] = {}
    for number in range(options.launches):
        if sys.stderr.isatty():
            print(f"\rlaunch {number + 1} of {options.launches} ", end="", file=sys.stderr, flush=True)
        answer = launch(options, number)
        others += [note for note in answer["notes"] if note not in others]
        for row in answer["rows"]:
            key = row["operation"], row.get("bytes", 0)
            samples.setdefault(key, {}).setdefault(row["backend"], []).append(row["seconds"])
            if "note" in row:
                notes[key, row["backend"]] = row["note"]
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return samples, notes, others, answer


def binding(bound: Sequence[int], processors: int) -> str:
    """In words, to how many of the processors the ranks were bound: the fewest and the most of a rank."""
    fewest, most = bound
    if fewest >= processors:
        return "not bound"
    return f"bound by colrun to {fewest}" + (f" to {most}" if most > fewest else "") + " of them each"


def main(words: Optional[Sequence[str]] = None) -> int:
    """Compares, prints and writes. Returns the exit code. Blocks for minutes."""
    options = arguments(sys.argv[1:] if words is None else words)
    check(options)
    began, started = monotonic(), strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())
    samples, notes, others, answer = measured(options)
    from .. import version

    contenders = list(dict.fromkeys(name for each in samples.values() for name in each))
    how = f"{options.ranks} ranks on {processor()} ({options.processors} processors), {options.threads} thread" + \
        ("s" if options.threads > 1 else "") + f" each, {binding(answer['bound'], options.processors)}"
    warnings = list(dict.fromkeys([*notes.values(), *others, *rounded(samples, options.ranks)]))
    if options.ranks > options.processors:
        warnings.append(f"{options.ranks} ranks on {options.processors} processors: they take turns")
    if options.launches < 6:
        warnings.append("fewer than 6 launches: no intervals")
    facts = {
        "version": version, "command": ["python", "-m", "col.compare", *(sys.argv[1:] if words is None else words)],
        "started": started, "ranks": options.ranks, "launches": options.launches, "seconds": round(monotonic() - began, 3),
    }
    results = document(samples, notes, facts, warnings)
    results["versions"] = {"python": sys.version.split()[0], "torch": answer["torch"], "parameters": options.parameters}
    results["processors_of_a_rank"] = answer["bound"]  # the fewest and the most
    print(f"# {how}; torch {answer['torch']}, col {version}")
    launches = "1 launch" if options.launches == 1 else f"{options.launches} launches"
    print(f"# medians of {launches}; × how many times as fast as gloo [95 % interval]; every result is verified")
    print(table(samples, contenders))
    print(*(f"# {warning}" for warning in warnings), *verdicts(samples, contenders), SWITCH, sep="\n", flush=True)
    return write(options, results)  # after the table, which is then not lost where a file cannot be written


def write(options: argparse.Namespace, results: dict[str, Any]) -> int:
    """The files that were asked for."""
    with tempfile.TemporaryDirectory(prefix="col compare ") as folder:
        path = options.json or os.path.join(folder, "results.json")
        try:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(results, file)
        except OSError as error:
            fail(f"cannot write {path}: {error.strerror}")
        if not options.picture:
            return MEASURED
        colbench = find("colbench")
        assert colbench is not None
        done = subprocess.run([colbench, "draw", path, "-o", options.picture], stdin=subprocess.DEVNULL)
        return USAGE if done.returncode else MEASURED


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        fail("interrupted", 130)
