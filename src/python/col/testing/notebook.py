"""`%%ranks 4` in a notebook: a cell that runs on ranks, which are kept. `%load_ext col` brings it."""

from __future__ import annotations

import html
from typing import Any, Optional

from ..errors import InvalidArgument
from ..launch import Ranks, ranks
from ..launch.failure import names
from . import cells

USAGE = "%%ranks N [TIMEOUT]: N ranks for the cell, and the seconds that it may take; %ranks lists them, %ranks end ends them"


class Magics:
    """The ranks of this notebook."""

    def __init__(self) -> None:
        self._ranks: Optional[Ranks] = None
        self._timeout: Optional[float] = None
        self._count = 0

    def cell(self, line: str, cell: str) -> None:
        """Runs the cell on ranks. Variables stay there from cell to cell; `col` and `world`, the group, are there.

        The value of a last expression is shown, equal ones once. Another number of ranks starts new ones.
        """
        try:
            words = line.split()
            size = int(words[0]) if words else self._ranks.size if self._ranks else 0
            timeout = float(words[1]) if len(words) > 1 else None if words else self._timeout
        except ValueError:
            raise InvalidArgument(USAGE) from None
        if len(words) > 2 or not size:
            raise InvalidArgument(USAGE)
        if self._ranks is None or self._ranks.size != size:
            self._end()
            self._ranks = ranks(size)
        self._ranks._timeout = self._timeout = timeout
        self._count += 1
        _show(self._ranks(cells.run, cell, f"<ranks cell {self._count}>"))

    def line(self, line: str) -> None:
        """Lists the ranks and their variables; `%ranks end` ends them."""
        if line.strip() == "end":
            self._end()
        elif line.strip():
            raise InvalidArgument(USAGE)
        elif self._ranks is None:
            print("no ranks; " + USAGE)
        else:
            for rank, (pid, variables) in enumerate(self._ranks(cells.variables)):
                print(f"rank {rank} (pid {pid}): {', '.join(variables) or 'no variables'}")

    def _end(self) -> None:
        if self._ranks is not None:
            self._ranks.close()
        self._ranks = None


def _show(results: list[dict[str, str]]) -> None:
    """A row for each result, and the ranks that have it."""
    from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

    having: list[tuple[dict[str, str], list[int]]] = []
    for rank, result in enumerate(results):
        same = next((who for other, who in having if other == result), None)
        if same is not None:
            same.append(rank)
        elif result:
            having.append((result, [rank]))
    if not having:
        return
    plain = "\n".join(f"{names(who)}: {result['text/plain']}" for result, who in having)
    rows = "".join(f"<tr><th>{names(who)}</th><td style='text-align:left'>{_rich(result)}</td></tr>" for result, who in having)
    display({"text/plain": plain, "text/html": f"<table>{rows}</table>"}, raw=True)  # type: ignore[no-untyped-call,unused-ignore]


def _rich(result: dict[str, Any]) -> str:
    for kind in ("text/html", "image/svg+xml"):
        if kind in result:
            return str(result[kind])
    return f"<pre>{html.escape(result['text/plain'])}</pre>"


def load(shell: Any) -> None:
    magics = Magics()
    shell.register_magic_function(magics.cell, "cell", "ranks")
    shell.register_magic_function(magics.line, "line", "ranks")
