"""The pytest plug-in of col: tests that run on several ranks. docs/testing.md teaches it.

    @pytest.mark.ranks(4)
    def test_sum(group, rank):
        assert group.allreduce(numpy.full(3, rank)).tolist() == [6, 6, 6]

pytest imports this file wherever libcol is installed. It imports nothing of col before it meets a test with that mark.
"""

from __future__ import annotations

import os
import pathlib
import re
from typing import Any, Generator, Optional

import pytest

SIZE = "_col_ranks"  # the parameter of a test that runs on several numbers of ranks
MARK = re.compile(r"\bmark\.ranks\(([\d, ]+)\)")


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise pytest.UsageError(f"--col-ranks {text}: it takes numbers of ranks, such as 2,4")
    return numbers


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise pytest.UsageError(f"--col-timeout {text}: it takes seconds above 0")
    return seconds


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("col", "tests on several ranks (@pytest.mark.ranks)")
    group.addoption("--col-ranks", metavar="N,…", type=_numbers, help="numbers of ranks, in place of those of the marks")
    group.addoption("--col-timeout", metavar="SECONDS", type=_seconds, default=60.0,
                    help="time for each test, and for ranks to start and end; then they are killed (default: 60)")
    group.addoption("--col-fresh", action="store_true", help="new processes for each test")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ranks(n, ...): run the test on n ranks of col, for each n")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("ranks")
    if mark is None:
        return
    if not mark.args or not all(type(n) is int and n > 0 for n in mark.args):
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: @pytest.mark.ranks takes numbers of ranks: ranks(2, 4)")
    numbers = metafunc.config.getoption("col_ranks") or mark.args
    if len(numbers) > 1 or metafunc.config.getoption("col_ranks"):
        metafunc.fixturenames.append(SIZE)
        metafunc.parametrize(SIZE, numbers, ids=[f"{n} ranks" for n in numbers])


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Optional[int]:
    """`-n auto`: a processor for each rank of a worker. Nothing is collected yet, so the files' text tells the largest mark."""
    numbers = config.getoption("col_ranks") or []
    for path in (config.invocation_params.dir / arg.partition("::")[0] for arg in ([] if numbers else config.args)):
        files = [path] if path.is_file() else [each for name in config.getini("python_files") for each in path.rglob(name)]
        for marks in (MARK.findall(file.read_text(errors="replace")) for file in files):
            numbers += [int(number) for mark in marks for number in re.findall(r"\d+", mark)]
    return max(len(os.sched_getaffinity(0)) // max(numbers), 1) if numbers else None  # xdist's own


def size_of(item: Any) -> Optional[int]:
    """How many ranks the test runs on; None if it is an ordinary one."""
    mark = item.get_closest_marker("ranks")
    if mark is None:
        return None
    if not hasattr(item, "fixturenames") or not mark.args:
        raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.ranks(2) is for test functions, and takes numbers of ranks")
    size = item.callspec.params.get(SIZE, mark.args[0]) if hasattr(item, "callspec") else mark.args[0]
    return int(size)


def _in_rank(config: pytest.Config) -> bool:
    return config.pluginmanager.has_plugin("col-rank")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if size_of(item) is not None]
    if marked and not _in_rank(config) and (config.getoption("usepdb", False) or config.getoption("trace", False)):
        raise pytest.UsageError(
            f"--pdb and --trace do not reach ranks, and {marked[0].nodeid} runs on some: leave it out, or call breakpoint() "
            "in a script under colrun --pty")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Optional[bool]:
    size = size_of(item)
    if size is None or _in_rank(item.config):
        return None
    from col.testing import controller

    controller.of(item.config).run(item, nextitem, size)
    return True


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, None, None]:
    yield
    controller = session.config.pluginmanager.get_plugin("col-controller")
    if controller is not None:
        controller.end(session)


def _rank_plugin(request: pytest.FixtureRequest) -> Any:
    plugin = request.config.pluginmanager.get_plugin("col-rank")
    if plugin is None:
        pytest.fail(f"{request.fixturename} is of tests with @pytest.mark.ranks", pytrace=False)
    return plugin


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Any:
    """The group of all ranks that the test runs on, a col.Group. After a failure, it is a new one."""
    _rank_plugin(request)
    import col

    return col.init()


@pytest.fixture(scope="session")
def rank(request: pytest.FixtureRequest) -> int:
    """The number of this rank."""
    return int(_rank_plugin(request).rank)


@pytest.fixture
def shared_tmp_path(request: pytest.FixtureRequest) -> pathlib.Path:
    """A folder of this test, the same one on all ranks; a pathlib.Path. tmp_path is another one on each rank."""
    return pathlib.Path(_rank_plugin(request).shared_tmp_path)
