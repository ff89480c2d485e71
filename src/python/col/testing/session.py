"""The session of pytest that each rank has. It collects the same files, and then waits for the tests that it is to run."""

from __future__ import annotations

import os
import pathlib
from typing import Any, Optional

import pytest
from _pytest.config import Config
from _pytest.runner import runtestprotocol

from ..errors import Aborted, Mismatch, PeerLost, Timeout
from ..launch import rank as of_rank
from ..launch import wire

SKIP_PATIENCE = 1.0  # seconds, for the other ranks to skip it, too


def _stoppable(when: str) -> Any:
    """A hook: in that phase of a test, the call may be stopped."""

    @pytest.hookimpl(hookwrapper=True, trylast=True, specname=f"pytest_runtest_{when}")
    def wrapper(self: Session) -> Any:
        self._channel.may_be_stopped = True
        yield
        self._channel.may_be_stopped = False

    return wrapper


class Session:
    """The plug-in of this rank's pytest."""

    def __init__(self, channel: of_rank.Channel) -> None:
        self.rank = int(os.environ["COL_RANK"])
        self.shared_tmp_path: Optional[pathlib.Path] = None
        self._channel = channel
        self._errors: list[str] = []
        self._reports: list[Any] = []
        self._of_subtests: list[Any] = []  # those of failures
        self._items: dict[str, Any] = {}
        self.has_collected = False
        self.error = ""  # of pytest itself
        self.config: Any = None

    # ---- Hooks

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._errors.append(str(report.longrepr))

    def pytest_internalerror(self, excrepr: Any) -> None:
        self.error = f":\n{excrepr}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        self.has_collected = True
        self._items = {item.nodeid: item for item in session.items}
        self._channel.answer(of_rank.Outcome(True, wire.packed((list(self._items), self._errors))))
        self._channel.serve()
        return True

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        outcome = yield
        error = call.excinfo.value if call.excinfo is not None else None
        outcome.get_result()._col_caused = 2 * isinstance(error, (Aborted, PeerLost)) + isinstance(error, (Mismatch, Timeout))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Of subtests, the only ones that are logged here. They hold all exceptions, also the one that stops a call."""
        if report.failed:
            self._of_subtests.append(report)
        if self._channel.stopped_by is not None:
            raise self._channel.stopped_by

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        self._reports = runtestprotocol(item, log=False, nextitem=nextitem)
        return True

    # A call that is stopped raises in the test, not in pytest.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        if self._channel.stopped_by is not None:
            raise self._channel.stopped_by

    pytest_stoppable_setup, pytest_stoppable_call, pytest_stoppable_teardown = map(_stoppable, ("setup", "call", "teardown"))

    # ---- Orders

    def run(self, nodeid: str, next_nodeid: Optional[str], shared: str) -> Any:
        """Runs a test. Its reports; None if it was not collected."""
        item = self._items.get(nodeid)
        if item is None:
            return of_rank.Stops(None, 0.0)
        self.shared_tmp_path = pathlib.Path(shared)
        self._of_subtests = []
        following = self._items.get(next_nodeid) if next_nodeid else None
        self._channel.may_be_stopped = False
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)  # in the wrappers of others: warnings, asserts
        reports = self._reports
        for report in reports:
            self._add_subtests(report)
        hook = self.config.hook
        result = [hook.pytest_report_to_serializable(config=self.config, report=report) for report in reports]
        if any(report.failed or hasattr(report, "wasxfail") for report in reports):
            return of_rank.Stops(result, 0.0)
        return of_rank.Stops(result, SKIP_PATIENCE) if any(report.skipped for report in reports) else result

    def _add_subtests(self, report: Any) -> None:
        if report.when == "call" and self._of_subtests and (report.passed or report._col_caused):
            report.outcome = "failed"
            report.longrepr = "\n\n".join(f"rank {self.rank}, {sub.head_line}:\n{sub.longrepr}" for sub in self._of_subtests)
            report._col_caused = min(sub._col_caused for sub in self._of_subtests)


_session: Optional[Session] = None


def begin(options: dict[str, Any], files: list[str], directory: str, temporary: str) -> int:
    """A call that lasts as long as the session. It answers with what was collected; end() ends it."""
    global _session
    channel = of_rank.channel
    assert channel is not None
    channel.may_be_stopped = False
    os.chdir(directory)
    _session = Session(channel)
    options = {**options, "basetemp": os.path.join(temporary, f"rank{_session.rank}")}
    # As xdist makes the sessions of its workers.
    config = _session.config = Config.fromdictargs(options, files)
    config.pluginmanager.register(_session, "col-rank")
    code = int(config.hook.pytest_cmdline_main(config=config))
    if not _session.has_collected:
        raise RuntimeError(f"pytest ended on this rank with exit code {code}, before it had collected tests{_session.error}")
    return code


def run(nodeid: str, next_nodeid: Optional[str], shared: str) -> Any:
    assert _session is not None
    return _session.run(nodeid, next_nodeid, shared)


def end() -> None:
    assert of_rank.channel is not None
    of_rank.channel.leave()
