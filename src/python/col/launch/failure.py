"""One exception of what the ranks, coljob and colrun say about a call that has failed."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Optional

from ..errors import RankFailed
from . import program, wire
from .rank import MARK, Outcome, cut

LIMIT = 5  # seconds, for coljob
_OWN = os.path.dirname(__file__)
_TESTING = os.path.join(os.path.dirname(_OWN), "testing")


def names(ranks: list[int]) -> str:
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and parts[-1][1] == rank - 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    words = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
    return f"rank{'s' if len(ranks) > 1 else ''} {words}"


def who_waits(job_id: str) -> dict[str, Any]:
    """The finding of `coljob why` about the running job; empty if nobody can say."""
    path = program.find("coljob")
    if path is None:
        return {}
    try:
        asked = subprocess.run([path, "why", "--json", job_id], capture_output=True, timeout=LIMIT)
        found = json.loads(asked.stdout)
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return {}


def sentence(finding: dict[str, Any]) -> str:
    return str(finding.get("sentence", "")) if finding.get("waiting") else ""


def own_part(stack: str) -> str:
    """A stack of faulthandler without what is below the program: pytest, and this package."""
    return "".join(
        line for line in stack.splitlines(True)
        if not any(word in line for word in ("/_pytest/", "/pluggy/", _OWN, _TESTING, 'File "<string>", line 1 in <module>')))


def _place(trace: str) -> str:
    """The innermost line of a traceback or stack."""
    lines = [line.strip() for line in trace.splitlines() if line.lstrip().startswith("File ")]
    lines = [line for line in lines if _OWN not in line]  # the handler that has stopped it
    if not lines:
        return ""
    is_stack = "most recent call first" in trace
    return lines[0] if is_stack else lines[-1]


def _where(traces: dict[int, str], but: int) -> list[str]:
    """Each place once, with the ranks that were there."""
    at: dict[str, list[int]] = {}
    for rank, trace in sorted(traces.items()):
        if rank != but and _place(trace):
            at.setdefault(_place(trace), []).append(rank)
    return [f"{names(ranks)} {'was' if len(ranks) == 1 else 'were'} at {place}" for place, ranks in at.items()]


def of_exception(rank: int, outcome: Outcome, finding: dict[str, Any], traces: dict[int, str]) -> RankFailed:
    """A rank has raised. Has the exception itself as __cause__, if it could be pickled."""
    words = outcome.message.split("\n", 1)[0]
    first = f"rank {rank} raised {outcome.kind}" + (f": {words}" if words else "")
    if outcome.kind == "SystemExit":
        first = f"rank {rank} called sys.exit({words})"
    error = _made(first, rank, finding, traces, outcome.trace)
    try:
        error.__cause__ = wire.unpacked([bytearray(part) for part in (outcome.parts or [])[1:]])
    except Exception:
        pass  # its class cannot be made here: the traceback has its words
    return error


def of_time(first: str, finding: dict[str, Any], traces: dict[int, str]) -> RankFailed:
    culprits = finding.get("culprits") or [-1]
    error = _made(first, culprits[0] if len(culprits) == 1 else -1, finding, traces, "")
    error.code = "timeout"
    return error


def of_death(report: bytes, said: str, dead: Optional[int], traces: dict[int, str]) -> RankFailed:
    """A process has ended, or colrun could not start it. The report is colrun's, as JSON, if there is one."""
    try:
        job = json.loads(report)
    except ValueError:
        job = {}
    rank = job.get("first_failure")
    rank = rank if isinstance(rank, int) else dead if dead is not None else -1
    ended: dict[str, Any] = next((r for r in job.get("ranks", []) if r["rank"] == rank), {})
    if ended.get("signal"):
        first = f"rank {rank} was killed by {ended['signal']}"
        if ended.get("out_of_memory"):
            first += ": the machine ran out of memory"
    elif ended.get("exit_code") is not None:
        first = f"rank {rank}'s process exited with code {ended['exit_code']} in the call"
    else:
        first = "the ranks ended: " + (job.get("error") or (said.strip() or "colrun says nothing").splitlines()[0])
    last = [line for line in ended.get("last_stderr", []) if MARK not in line]
    error = _made(first, rank, job.get("why") or {}, traces, traces.get(rank) or "\n".join(last))
    error.code = "peer_lost"
    return error


def _made(first: str, rank: int, finding: dict[str, Any], traces: dict[int, str], trace: str) -> RankFailed:
    lines = [sentence(finding)] if sentence(finding) else []
    lines += _where(traces, rank)
    trace = trace or traces.get(rank, "")
    others = "\n".join(lines)
    message = first + (f"\n{others}" if others else "") + (f"\n\nrank {rank}:\n{cut(trace).rstrip()}" if trace else "")
    return RankFailed(message, rank, host=os.uname().nodename, traceback=trace, others=others, tracebacks=traces)
