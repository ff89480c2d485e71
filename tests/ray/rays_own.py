"""Runs Ray's own tests of collectives on col.ray: their imports change, and actors copy the arrays that they are given.

Ray hands out arguments as read-only arrays, which Ray's collectives write all the same; col's refuse to.

scripts/dev ray-tests fetches the wheel of Ray whose tests these are, and calls this. Nothing of them stays in the sources.
"""

from __future__ import annotations

import argparse
import collections
import functools
import logging
import os
import pathlib
import re
import signal
import sys
import zipfile
from typing import Any, Callable, Iterator, Optional

import pytest
import ray

import clusters
import col.ray

IN_WHEEL = "ray/util/collective/tests/"
FOLDERS = ("single_node_cpu_tests", "distributed_cpu_tests")
PACKAGE = "rays_own_tests"
LIMIT = 300  # seconds a test may take
ONTO = {
    "col.ray": "col.ray in place of ray.util.collective",
    "registered": "ray.util.collective, where col is registered as GLOO and NCCL",
    "ray": "ray.util.collective as it is, to compare",
}

# Tests of later versions, which no wheel holds: where a checkout has them, and what stands for what in them.
TRANSPORT = "python/ray/tests/rdt/test_rdt_gloo.py"
REGISTRY = "python/ray/util/collective/tests/test_backend_registry.py"
NEWER = {TRANSPORT: [(r"\b(torch_)?gloo\b(?=[\"'])", "col"), (r"\bGLOO\b", "COL")], REGISTRY: []}

# Tests that are to fail: what they raise, and why.
WRONG, OTHERWISE = "wrong in itself", "otherwise on purpose"
TO_FAIL: dict[str, tuple[type, str, str]] = {
    "test_two_groups_in_one_cluster": (TypeError, WRONG, "its actor's method has no self"),
    "test_failure_when_initializing": (TypeError, WRONG, "its actor's method has no self"),
    "test_intra_rdt_tensor_transfer": (TypeError, WRONG, "today's pytest.approx refuses a tensor in a list"),
    "test_p2p_errors_before_group_creation": (pytest.fail.Exception, OTHERWISE, "COL needs no group"),
    "test_send_fails": (Exception, OTHERWISE, "COL says what failed, and Ray need not kill both actors"),
    "test_send_actor_dies_before_sending": (Exception, OTHERWISE, "COL says which actor died"),
    "test_recv_actor_dies": (RuntimeError, OTHERWISE, "the actor that sends lives on"),
    **{
        f"test_broadcast_torch_numpy[{root}-gloo]": (AssertionError, WRONG, "from any root it expects what actor 1 has")
        for root in (2, 5, 6, 7)
    },
}


def rewritten(text: str, module: str) -> str:
    """The same test with the collectives of `module`, with the helpers where they were unpacked, and with arrays of its own."""
    text = re.sub(r"\b(python\.)?ray\.util\.collective\.tests\b", PACKAGE, text)
    text = text.replace("self.buffer = data", "self.buffer = data.copy() if hasattr(data, 'copy') else data.clone()")
    return re.sub(r"\b(python\.)?ray\.util\.collective\b", module, text)


def unpack(wheel: pathlib.Path, folder: pathlib.Path, module: str) -> list[pathlib.Path]:
    """Writes the tests of the wheel as a package into the folder; returns their files."""
    files = []
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            path = pathlib.PurePosixPath(name.removeprefix(IN_WHEEL))
            if not name.startswith(IN_WHEEL) or path.name == "conftest.py":
                continue
            if path.parts[0] not in (*FOLDERS, "__init__.py", "cpu_util.py"):
                continue
            target = folder / PACKAGE / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(rewritten(archive.read(name).decode(), module))
            if path.name.startswith("test_"):
                files.append(target)
    return files


def take_newer(sources: Optional[pathlib.Path], folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes the tests of the checkout into the folder; returns their files. Says which are not run."""
    files = []
    for name, replacements in NEWER.items():
        if sources is None or not (sources / name).is_file():
            print(f"not run: {name}, {'for which --sources DIR is needed' if sources is None else f'which {sources} lacks'}")
            continue
        text = (sources / name).read_text()
        for pattern, replacement in replacements:
            text = re.sub(pattern, replacement, text)
        files.append(folder / PACKAGE / "newer" / pathlib.Path(name).name)
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        files[-1].write_text(text)
    return files


class Fixtures:
    """The fixtures that the tests ask for. A cluster goes on from test to test as long as they want the same one and pass:
    what a failed test holds, actors and their CPUs, would be missing in the next."""

    def __init__(self, runtime_env: Callable[[], dict[str, Any]]) -> None:
        self._runtime_env = runtime_env  # made for each cluster: Ray changes what it is given
        self._cluster: Any = None
        self._kind: Any = None

    def use(self, kind: Any) -> None:
        if self._kind is kind and ray.is_initialized():
            return
        self.end()
        self._cluster, self._kind = kind(runtime_env=self._runtime_env()), kind
        self._cluster.__enter__()

    def end(self) -> None:
        cluster, self._cluster, self._kind = self._cluster, None, None
        if cluster is not None:
            cluster.__exit__(None, None, None)

    @pytest.fixture
    def ray_start_single_node(self) -> None:
        self.use(clusters.one_node)

    ray_start_regular = ray_start_single_node
    ray_start_regular_shared = ray_start_single_node

    @pytest.fixture
    def ray_start_distributed_2_nodes(self) -> None:
        self.use(clusters.two_nodes)

    @pytest.fixture
    def shutdown_only(self) -> Iterator[None]:
        self.end()
        yield
        ray.shutdown()

    @pytest.fixture
    def propagate_logs(self) -> Iterator[None]:
        """Ray's messages reach pytest's caplog."""
        logger = logging.getLogger("ray")
        before, logger.propagate = logger.propagate, True
        yield
        logger.propagate = before

    @pytest.fixture(autouse=True)
    def limit(self) -> Iterator[None]:
        def over(_signal: int, _frame: Any) -> None:
            raise TimeoutError(f"the test took more than {LIMIT} s")

        signal.signal(signal.SIGALRM, over)
        signal.alarm(LIMIT)
        yield
        signal.alarm(0)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        for item in items:
            row = TO_FAIL.get(item.originalname) or TO_FAIL.get(item.name.lower())
            if row is not None:
                raises, kind, why = row
                item.add_marker(pytest.mark.xfail(reason=f"{kind}: {why}", raises=raises, strict=True))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        if report.failed:
            self.end()
        return report

    def pytest_sessionfinish(self) -> None:
        self.end()


class Counts:
    """How many tests of each file passed."""

    def __init__(self) -> None:
        self._files: dict[str, collections.Counter] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        counts = self._files.setdefault(report.nodeid.split("::")[0], collections.Counter())
        if hasattr(report, "wasxfail") and report.skipped:
            counts[report.wasxfail.split(":")[0]] += 1
        elif report.when == "call" or not report.passed:
            counts[report.outcome] += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        total: collections.Counter = sum(self._files.values(), collections.Counter())
        for name, counts in [*self._files.items(), ("all", total)]:
            words = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
            terminalreporter.write_line(f"{name}: {words}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/dev ray-tests", description=__doc__)
    parser.add_argument("--wheel", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="where the tests are unpacked")
    parser.add_argument("--sources", type=pathlib.Path, help="a checkout of Ray, for tests that no wheel holds")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="as pytest's -k")
    parser.add_argument("--on", choices=ONTO, default="col.ray", help="; ".join(f"{k}: {v}" for k, v in ONTO.items()))
    options = parser.parse_args()

    files = unpack(options.wheel, options.folder, "col.ray" if options.on == "col.ray" else "ray.util.collective")
    runtime_env: Callable[[], dict[str, Any]] = dict
    if options.on == "registered":
        runtime_env = functools.partial(col.ray.runtime_env, "GLOO", "NCCL")
    newer = take_newer(options.sources, options.folder)
    if newer:
        from col.ray import transport  # noqa: F401  registers "COL"

        runtime_env = col.ray.runtime_env if runtime_env is dict else runtime_env
        files += newer
    # Actors import what tests send them by its name.
    sys.path.insert(0, str(options.folder))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(options.folder), os.environ.get("PYTHONPATH", "")])
    words = ["-q", "-p", "no:cacheprovider", "--tb=short", "--continue-on-collection-errors"]
    words += [f"--rootdir={options.folder / PACKAGE}"]
    if options.only:
        words += ["-k", " or ".join(f"({pattern})" for pattern in options.only)]
    return pytest.main([*words, *map(str, files)], plugins=[Fixtures(runtime_env), Counts()])


if __name__ == "__main__":
    sys.exit(main())
