"""One report of a phase of a test, of those that its ranks have made."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..launch.failure import names


class Part(NamedTuple):
    """A rank's report of a phase."""

    rank: int
    report: Any

    @property
    def is_own(self) -> bool:
        """It is a failure that no other rank has caused for sure."""
        return bool(self.report.failed and self.report._col_caused < 2)


def _is_skip(report: Any) -> bool:
    return bool(report.skipped and not hasattr(report, "wasxfail"))


def forgive_setup(phases: dict[str, list[Part]]) -> None:
    """Ranks that were stopped in their setup say nothing where another one has failed, or skipped, in its call."""
    if any(part.is_own or part.report.skipped for parts in phases.values() for part in parts):
        for part in phases["setup"]:
            if part.report.failed and not part.is_own:
                part.report.outcome, part.report.longrepr = "passed", None


def merged(parts: list[Part], size: int, others: str) -> Any:
    """The worst outcome: the first rank that has failed on its own, ranks that do not agree on a skip, xfail, skip.

    What ranks have printed goes into sections of the report, with their numbers.
    """
    failed = sorted((part for part in parts if part.report.failed), key=lambda part: int(part.report._col_caused))
    own = [part for part in failed if part.is_own]
    skips = [part for part in parts if _is_skip(part.report)]
    expected = [part for part in parts if hasattr(part.report, "wasxfail") and part.report.skipped]
    chosen = (own or ([] if skips or expected else failed) or skips or expected or parts)[0]
    report = chosen.report
    if skips and not own and len(skips) < size:
        skipped = [part.rank for part in skips]
        reason = skips[0].report.longrepr
        report.outcome = "failed"
        report.longrepr = (
            f"{names(skipped)} skipped the test ({reason[2] if isinstance(reason, tuple) else reason}), and "
            f"{names([rank for rank in range(size) if rank not in skipped])} did not: all ranks must skip, or none")
    report.sections = [
        (f"rank {part.rank} {title.removeprefix('Captured ')}", text) for part in parts for title, text in part.report.sections]
    report.duration = max(part.report.duration for part in parts)
    if report.failed:
        report.user_properties.append(("rank", chosen.rank))
        if size > 1 and isinstance(report.longrepr, str) is False:
            report.sections.insert(0, ("ranks", f"this is of rank {chosen.rank}" + (f"; {others}" if others else "")))
    return report
