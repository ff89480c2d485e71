"""Trains a spaCy pipeline that finds names, data-parallel over Ray actors, in several ways, and compares their speed:

    python3 train.py --workers 1 2 4 8 --updates 100
    python3 train.py --synthetic                       # without spaCy: arrays of the same shapes

The case of the document "Collective in Ray": docs/ray-spacy.md explains it. Every worker makes the given number of updates,
with texts of its own. The ways take turns in short blocks, so that a disturbance of the machine hits all of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import pathlib
import sys
import time
from typing import Any

import numpy as np

from ways import ALONE, WAYS

CHECKED_UPDATES = 5  # before rounding has made the parser decide differently somewhere
EXCHANGES = 5  # are measured alone at a time
STARTING = 40  # a worker may take as long as so many updates


class Run:
    """One number of workers: their actors, and what they measure. Use as a context: the end takes the actors away."""

    def __init__(self, workers: int, options: argparse.Namespace) -> None:
        import ray

        import report
        import worker

        self.ray, self.options, self.ways = ray, options, options.ways
        self.result = report.Measured(workers)
        self.workers = worker.start(workers, options)
        self.keys, self.elements = self.all("connect", self.workers, updates=STARTING)[0]

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: Any) -> None:
        for actor in self.workers:
            self.ray.kill(actor)

    def all(self, method: str, *arguments: Any, updates: int = 0) -> list[Any]:
        """Calls a method of all workers, and waits; longer if the method makes updates."""
        calls = [getattr(actor, method).remote(*arguments) for actor in self.workers]
        return list(self.ray.get(calls, timeout=self.options.timeout * (2 + updates / 10)))

    def check(self) -> None:
        """All workers must have the same parameters, to the last bit, and all ways the same but for rounding: a sum of
        floating-point numbers depends on the order."""
        first = self.all("parameters", ALONE)[0]
        after = {}
        for way in self.ways:
            self.all("run", way, CHECKED_UPDATES, updates=CHECKED_UPDATES)
            parameters = self.all("parameters", way)
            if any(not np.array_equal(p, parameters[0]) for p in parameters):
                sys.exit(f"{way}: the workers have different parameters")
            after[way] = parameters[0]
        reference = after[self.ways[0]]
        moved = np.linalg.norm(reference - first)
        for way, parameters in after.items():
            apart = np.linalg.norm(parameters - reference)
            if not apart < 1e-3 * moved:
                sys.exit(f"{way}: the parameters moved by {moved:.3g}, and are {apart:.3g} from those of {self.ways[0]}")

    def trial(self, number: int) -> None:
        """Trains from the first parameters on, in all ways."""
        self.all("reset")
        turns = [ALONE, *self.ways]
        seconds = dict.fromkeys(turns, 0.0)
        losses: dict[str, list[float]] = {way: [] for way in turns}
        for begin in range(0, self.options.updates, self.options.block):
            updates = min(self.options.block, self.options.updates - begin)
            shift = (number + begin // self.options.block) % len(turns)
            for way in turns[shift:] + turns[:shift]:
                start = time.perf_counter()
                losses[way] += list(np.mean(self.all("run", way, updates, updates=updates), axis=0))
                passed = time.perf_counter() - start
                seconds[way] += passed
                self.result.steps.setdefault(way, []).append(1e3 * passed / updates)
                if way != ALONE:
                    start = time.perf_counter()
                    self.all("run_exchange", way, EXCHANGES, updates=EXCHANGES)
                    passed = time.perf_counter() - start
                    self.result.exchanges.setdefault(way, []).append(1e3 * passed / EXCHANGES)
        for way in turns:
            self.result.seconds.setdefault(way, []).append(seconds[way])
            tenth = max(len(losses[way]) // 10, 1)
            self.result.losses[way] = float(np.mean(losses[way][:tenth])), float(np.mean(losses[way][-tenth:]))
            self.result.score[way] = float(np.mean(self.all("score", way)))
        self.check_losses(losses)

    def check_losses(self, losses: dict[str, list[float]]) -> None:
        """The losses of all ways must fall, and over the whole trial be about the same."""
        reference = float(np.mean(losses[self.ways[0]]))
        for way in self.ways:
            first, last = self.result.losses[way]
            if not last < first:
                sys.exit(f"{way}: the loss was {first:.4g} at first and is {last:.4g} in the end")
            mean = float(np.mean(losses[way]))
            if not abs(mean - reference) < 0.1 * reference:
                sys.exit(f"the mean loss is {mean:.4g} by {way}, but {reference:.4g} by {self.ways[0]}")

    def measure(self) -> Any:
        self.check()
        for number in range(self.options.trials):
            self.trial(number)
        return self.result


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


parser = argparse.ArgumentParser(
    description="Trains a spaCy pipeline over Ray actors, in several ways, and compares their speed.",
    epilog="ways: " + "; ".join(f"{way}: {meaning}" for way, meaning in WAYS.items()),
)
parser.add_argument(
    "--workers", type=positive, nargs="+", default=[1, 2, 4, 8, 16], metavar="N", help="how many (default 1 2 4 8 16)"
)
parser.add_argument("--updates", type=positive, default=1000, help="in a trial (default %(default)s)")
parser.add_argument("--trials", type=positive, default=3, help="from the first parameters on (default %(default)s)")
parser.add_argument("--texts", type=positive, default=8, help="of each worker in an update (default %(default)s)")
parser.add_argument(
    "--ways", nargs="+", choices=WAYS, default=["store", "store-shards", "col"],
    help="the last is compared with the others (default store store-shards col)",
)  # fmt: skip
parser.add_argument("--synthetic", action="store_true", help="no spaCy: arrays with the shapes of its tok2vec")
parser.add_argument("--work", type=int, default=0, help="with --synthetic: matrix products in an update (default 0)")
parser.add_argument("--block", type=positive, default=25, help="updates of a way at a time (default %(default)s)")
parser.add_argument("--address", default="local", help="of a Ray cluster (default: one of its own, on this machine)")
parser.add_argument("--timeout", type=float, default=60, help="seconds that a worker waits for others (default 60)")
parser.add_argument("--plot", type=pathlib.Path, help="write a picture to this file (SVG)")


def main(options: argparse.Namespace) -> None:
    missing = [name for name in ["ray"] + ["spacy"] * (not options.synthetic) if not importlib.util.find_spec(name)]
    if missing:
        hint = ", or use --synthetic" if missing == ["spacy"] else ""
        sys.exit(f"not installed: {', '.join(missing)}. pip install {' '.join(missing)}{hint}")
    import ray

    import plot
    import report

    arguments = {"num_cpus": 1, "include_dashboard": False} if options.address == "local" else {}
    ray.init(address=options.address, logging_level="warning", **arguments)
    measured = []
    for workers in options.workers:
        with Run(workers, options) as run:
            measured.append(run.measure())
            if len(measured) == 1:
                print(f"{run.keys} parameters with {run.elements:,} elements")
            steps = ", ".join(f"{way} {measured[-1].step(way):.1f} ms" for way in measured[-1].steps)
            print(f"{workers} worker(s), an update: {steps}", flush=True)
    ray.shutdown()
    print(report.report(measured, options.ways, options.updates))
    if options.plot:
        options.plot.write_text(plot.draw(measured, options.ways), encoding="utf-8")


if __name__ == "__main__":
    main(parser.parse_args())
