"""python -m col.compare: torch's Gloo, col as torch's backend and col's own Group, on this machine, in the same processes.

__main__.py has the command line and starts the ranks, rank.py is what each of them does. contenders.py has who is compared,
measure.py times and verifies calls, steps.py whole training steps, results.py makes the table and colbench's JSON of it.
"""

from __future__ import annotations

from typing import Any, Optional


def take_part(request: dict[str, Any]) -> Optional[dict[str, Any]]:
    """rank.main(), whose module imports torch, which the process that starts the ranks does not need."""
    from .rank import main

    return main(request)
