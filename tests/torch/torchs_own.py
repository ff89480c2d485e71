#!/usr/bin/env python3
"""Runs torch's own tests of torch.distributed on col, in place of Gloo, and counts what passes.

The tests are those that torch's wheel holds: torch/testing/_internal/distributed/distributed_test.py. A test that asks for Gloo
gets col. scripts/torch-tests calls this.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
WORLD = 3  # most of the tests want three ranks

# What cannot pass, and why: names of tests, on any torch and on some versions.
LISTED = json.loads((HERE / "to_fail.json").read_text())
TO_FAIL = dict(LISTED["any"])


def stand_in_for_gloo(dist) -> None:
    """backend="gloo" means col from here on, in this process and in those that it forks."""
    import col.torch  # noqa: F401

    c10d = dist.distributed_c10d
    plugins = dist.Backend._plugins
    if hasattr(c10d, "_register_builtin_gloo_backend"):  # torch that has its own as plugins, too
        plugin = plugins["COL"]

        def alone(options, backend_options=None):
            options.process_group = None  # which says that Gloo is there, too
            return plugin.creator_fn(options, backend_options)

        plugins["GLOO"] = plugin._replace(creator_fn=alone)
        return
    from types import SimpleNamespace

    from col.torch.process_group import ProcessGroup, create

    class OnCol(type):
        def __instancecheck__(cls, group):  # torch 2.8 asks what it has got
            return isinstance(group, ProcessGroup)

        def __call__(cls, store, rank, size, timeout):
            is_default = not dist.is_initialized()
            return create(
                SimpleNamespace(
                    store=store, group_rank=rank, group_size=size, timeout=timeout, group_id=str(c10d._group_count),
                    global_ranks_in_group=[] if is_default else list(range(size)),
                )
            )

    c10d.ProcessGroupGloo = OnCol("ProcessGroupGloo", (), {})
    c10d._create_process_group_wrapper = lambda wrapped_pg, **_: wrapped_pg  # it makes another Gloo for itself


def cases(distributed_test):
    import torch

    base = distributed_test.TestDistBackend

    class TestOnCol(base, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)  # spawned ones would read torch again

    return TestOnCol


class Counts(unittest.TestResult):
    """Says each test's end at once: a run takes half an hour."""

    def __init__(self):
        super().__init__()
        self.kinds = collections.Counter()
        self.surprises = []
        self.times = {}

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def _say(self, test, kind, text=""):
        name = test._testMethodName
        known = name in TO_FAIL
        if kind == "failed" and known:
            kind = "fails as it must"
        if kind == "passed" and known:
            kind = "passed, and is listed to fail"
        self.kinds[kind] += 1
        if kind in ("failed", "passed, and is listed to fail"):
            self.surprises.append((name, text))
        print(f"{time.monotonic() - self.began:6.1f} s  {kind:8}  {name}", flush=True)

    def addSuccess(self, test):
        self._say(test, "passed")

    def addSkip(self, test, reason):
        self._say(test, "skipped")

    def addFailure(self, test, error):
        self._say(test, "failed", self._exc_info_to_string(error, test))

    addError = addFailure


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="only tests whose names match this regular expression")
    parser.add_argument("--ranks", type=int, default=WORLD)
    parser.add_argument("--on", choices=("col", "gloo"), default="col", help="gloo: torch's own, for comparison")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="col-torch-", ignore_cleanup_errors=True) as folder:
        os.environ.update(BACKEND="gloo", WORLD_SIZE=str(options.ranks), TEMP_DIR=folder, INIT_METHOD="")
        return run(options)


def run(options) -> int:
    import torch
    import torch.distributed as dist

    if options.on == "col":
        stand_in_for_gloo(dist)
        TO_FAIL.update(LISTED.get(".".join(torch.__version__.split(".")[:2]), {}))
    else:
        TO_FAIL.clear()
    from torch.testing._internal.distributed import distributed_test

    distributed_test.PROFILING_SUPPORTED_BACKENDS.clear()  # col makes no events for torch's profiler
    kind = cases(distributed_test)
    names = unittest.TestLoader().getTestCaseNames(kind)
    names = [name for name in names if re.search(options.only or "", name)]
    counts = Counts()
    for name in names:
        kind(name).run(counts)
    for name, text in counts.surprises:
        print(f"\n==== {name}\n{text[-3000:]}")
    print(f"\ntorch {torch.__version__}, {options.ranks} ranks, on {options.on}: "
          + ", ".join(f"{number} {kind}" for kind, number in counts.kinds.most_common()))
    return 1 if counts.surprises else 0


if __name__ == "__main__":
    sys.exit(main())
