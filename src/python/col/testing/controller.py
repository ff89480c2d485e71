"""The side of the plug-in that reports: it keeps ranks for each number of them, and sends them the tests."""

from __future__ import annotations

import pickle
import time
from typing import Any, Optional

import pytest
from pytest_col import size_of

from ..errors import Error, RankFailed
from ..launch import Ranks, ranks
from ..launch.failure import names, sentence
from . import merge, session

# Options that only the session which reports follows. Of the tests, ranks have all.
_NOT_FOR_RANKS: dict[str, Any] = {
    "keyword": "", "markexpr": "", "deselect": None, "lf": False, "failedfirst": False, "newfirst": False, "stepwise": False,
    "stepwise_skip": False, "maxfail": 0, "xmlpath": None, "cov_source": [], "numprocesses": None, "dist": "no", "tx": [],
    "cacheclear": False, "cacheshow": None, "durations": None, "pastebin": None, "collectonly": False,
    "setupshow": False, "setuponly": False, "setupplan": False, "log_file": None, "report_log": None,
}


def of(config: Any) -> Controller:
    """The one of this session."""
    controller = config.pluginmanager.get_plugin("col-controller")
    if controller is None:
        controller = Controller(config)
        config.pluginmanager.register(controller, "col-controller")
    return controller  # type: ignore[no-any-return]


class _Kept:
    """Ranks with a session each."""

    def __init__(self, ranks: Ranks, collected: list[tuple[list[str], list[str]]]) -> None:
        self.ranks = ranks
        self._errors = [errors for _, errors in collected]
        self._collected = [set(ids) for ids, _ in collected]

    def missing(self, nodeid: str) -> str:
        """The ranks that have not collected the test, and why; empty if all ranks have."""
        lacking = [rank for rank, ids in enumerate(self._collected) if nodeid not in ids]
        if not lacking:
            return ""
        why = "\n".join(error for rank in lacking for error in self._errors[rank])
        return f"{names(lacking)} collected other tests, without {nodeid}" + (f":\n{why}" if why else "")


class Controller:
    def __init__(self, config: Any) -> None:
        self._config = config
        self._kept: dict[int, _Kept] = {}
        self._not_started: dict[int, str] = {}  # why; the next test would wait as long for the same
        self._at_end: list[str] = []
        self._timeout = config.getoption("col_timeout")

    # ---- Tests

    def run(self, item: Any, nextitem: Any, size: int) -> None:
        """Runs the test on its ranks, and reports it once."""
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = self._reports(item, nextitem, size)
        # Fixtures of ordinary tests before it, which none after it needs.
        ended = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), "teardown",
                                           reraise=(KeyboardInterrupt, pytest.exit.Exception))
        if ended.excinfo is not None:
            reports.append(hook.pytest_runtest_makereport(item=item, call=ended))
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if self._config.getoption("col_fresh") and size in self._kept:
            self._end(size)

    def _reports(self, item: Any, nextitem: Any, size: int) -> list[Any]:
        began = time.monotonic()
        when = "setup"
        if size in self._not_started:
            return [self._failed(item, when, self._not_started[size], began)]
        try:
            kept = self._kept.get(size) or self._begin(item.session, size)
            missing = kept.missing(item.nodeid)
            if missing:
                return [self._failed(item, when, missing, began)]
            when = "call"
            shared = self._config._tmp_path_factory.mktemp("ranks")
            following = self._following(item, nextitem, size)
            parts = kept.ranks(session.run, item.nodeid, following, str(shared))
        except Error as error:
            text = _with_all(error)
            if size in self._kept:
                text += self._failures(self._kept[size].ranks)
                self._end(size)
            else:
                self._not_started[size] = text
            return [self._failed(item, when, text, began)]
        return self._merged(parts, size, sentence(kept.ranks.finding))

    def _merged(self, of_ranks: list[list[dict[str, Any]]], size: int, others: str) -> list[Any]:
        phases: dict[str, list[merge.Part]] = {}
        for rank, reports in enumerate(of_ranks):
            for data in reports:
                report = self._config.hook.pytest_report_from_serializable(config=self._config, data=data)
                phases.setdefault(report.when, []).append(merge.Part(rank, report))
        merge.forgive_setup(phases)
        results: list[Any] = []
        for when in ("setup", "call", "teardown"):
            if when in phases and not (when == "call" and results and not results[0].passed):
                results.append(merge.merged(phases[when], size, others))
                if len(results) > 1:  # JUnit's file has those of the last phase
                    known = results[-1].user_properties
                    known += [pair for pair in results[-2].user_properties if pair not in known]
        return results

    def _failures(self, of: Ranks) -> str:
        """Those of ranks that have ended the test, where another rank has not."""
        text = ""
        for rank, reports in of._answers().items():
            for data in reports or []:
                report = self._config.hook.pytest_report_from_serializable(config=self._config, data=data)
                text += f"\n\nrank {rank} failed:\n{report.longrepr}" if report.failed else ""
        return text

    def _failed(self, item: Any, when: str, text: str, began: float) -> Any:
        return pytest.TestReport(
            item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "failed", text, when,  # type: ignore[arg-type]
            duration=time.monotonic() - began)

    def _following(self, item: Any, nextitem: Any, size: int) -> Optional[str]:
        """The next test of these ranks, which keep the fixtures that it uses."""
        items = item.session.items
        if hasattr(self._config, "workerinput"):  # xdist: others may run those that follow here
            items = [item, nextitem] if nextitem is not None else [item]
        at = next(i for i, other in enumerate(items) if other is item)
        return next((other.nodeid for other in items[at + 1 :] if size_of(other) == size), None)

    # ---- Ranks

    def _begin(self, of_session: Any, size: int) -> _Kept:
        files = sorted({str(item.path) for item in of_session.items if size_of(item) == size})
        temporary = str(self._config._tmp_path_factory.mktemp(f"of-{size}-ranks"))
        is_shown = self._config.getoption("capture") == "no"
        started = ranks(size, timeout=self._timeout, output="label" if is_shown else "none")
        try:
            collected: Any = started(session.begin, self._options(), files, str(self._config.invocation_params.dir), temporary)
        except BaseException:
            started.close()
            raise
        self._kept[size] = _Kept(started, collected)
        return self._kept[size]

    def _options(self) -> dict[str, Any]:
        options = {}
        for name, value in {**vars(self._config.option), **_NOT_FOR_RANKS}.items():
            try:
                pickle.dumps(value)
            except Exception:
                continue  # a plug-in's own object, of this process
            options[name] = value
        options.pop("file_or_dir", None)
        options["plugins"] = [*options.get("plugins", []), "no:terminal", "no:faulthandler", "no:cacheprovider"]
        options["override_ini"] = [*(options.get("override_ini") or []), "log_file="]
        options["rootdir"] = str(self._config.rootpath)
        options["inifilename"] = str(self._config.inipath) if self._config.inipath else None
        return options

    def _end(self, size: int) -> None:
        kept = self._kept.pop(size)
        try:
            if not kept.ranks.is_over:
                kept.ranks(session.end)
        except Error as error:
            self._at_end.append(f"at the end of the session on {size} ranks: {_with_all(error)}")
        for rank, stack in kept.ranks._end(self._timeout).items():
            self._at_end.append(f"rank {rank} of {size} has not exited within {self._timeout:g} s:\n{stack}")

    def end(self, of_session: Any) -> None:
        """Ends all ranks. What goes wrong is a failure of the run."""
        for size in list(self._kept):
            self._end(size)
        if self._at_end:
            of_session.testsfailed += 1

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for text in self._at_end:
            terminalreporter.section("ranks", sep="=", red=True)
            terminalreporter.write_line(text)


def _with_all(error: Error) -> str:
    """With the traceback or stack of each rank, equal ones once."""
    text = str(error)
    ranks_at: dict[str, list[int]] = {}
    for rank, trace in error.tracebacks.items() if isinstance(error, RankFailed) else ():
        where = "\n".join(line for line in trace.rstrip().splitlines() if "most recent call first" not in line)
        if rank != error.rank:
            ranks_at.setdefault(where, []).append(rank)
    return text + "".join(f"\n\n{names(who)}:\n{where}" for where, who in ranks_at.items())
