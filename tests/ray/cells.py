"""Runs the cells of a notebook that was written for ray.util.collective, over col.ray: its import changes, and nothing else.

    python3 tests/ray/cells.py PATH                        # all cells, with Ray's own `types`
    python3 tests/ray/cells.py PATH --types col            # and with col.ray's
    python3 tests/ray/cells.py PATH --order 1-18,1-3,7     # some of them, or some again in the same process

PATH is a notebook (.ipynb), or the text of a printed one: "In [n]:" before each cell, and outputs after it.
"""

from __future__ import annotations

import argparse
import ast
import json
import linecache
import pathlib
import re
import sys
import time
from typing import Any

IMPORT = r"^import ray\.util\.collective as (\w+)$", r"import col.ray as \1"
TYPES = r"^from ray\.util\.collective import types$", "from col.ray import types"


def parses(lines: list[str]) -> bool:
    try:
        ast.parse("\n".join(lines))
    except SyntaxError:
        return False
    return True


def code_of(printed: str) -> str:
    """The cell at the beginning of the text: as many lines as are Python. Outputs and prose follow, which are not."""
    lines = printed.splitlines()
    count = next(count for count in range(len(lines), -1, -1) if parses(lines[:count]))
    return "\n".join(lines[:count]).strip()


def read(path: pathlib.Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return [code_of(part) for part in re.split(r"^In \[\d+\]:", text, flags=re.MULTILINE)[1:]]


def numbers(order: str) -> list[int]:
    """'1-3,7' is 1, 2, 3, 7."""
    ends = [part.split("-") for part in order.split(",")]
    return [number for part in ends for number in range(int(part[0]), int(part[-1]) + 1)]


class Kernel:
    """Runs cells as a notebook does: one after the other in one namespace, and shows a last expression."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"__name__": "__main__"}  # so that Ray sends its classes by their code

    def run(self, number: int, cell: str) -> None:
        name = f"<cell {number}>"
        linecache.cache[name] = len(cell), None, cell.splitlines(keepends=True), name
        tree = ast.parse(cell, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), self._names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), self._names)
            if value is not None:
                print(repr(value), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("--types", choices=("ray", "col"), default="ray", help="whose operators (default %(default)s)")
    parser.add_argument("--order", help="numbers of cells, from 1 (default: all)")
    parser.add_argument("--sub", nargs=2, action="append", default=[], metavar=("PATTERN", "NEW"), help="a change more")
    options = parser.parse_args()

    cells = read(options.path)
    changes = [IMPORT, *([TYPES] if options.types == "col" else []), *map(tuple, options.sub)]
    made = 0
    for index, cell in enumerate(cells):
        for pattern, new in changes:
            cell, count = re.subn(pattern, new, cell, flags=re.MULTILINE)
            made += count
        cells[index] = cell
    print(f"{len(cells)} cells, {made} changes", flush=True)
    kernel, seen = Kernel(), set()
    for number in numbers(options.order or f"1-{len(cells)}"):
        begin = time.perf_counter()
        try:
            kernel.run(number, cells[number - 1])
        except RuntimeError as error:
            if number not in seen or "ray.init twice" not in str(error):
                raise
            print(f"cell {number}: its ray.init() says that Ray runs already", flush=True)  # the last line of the cell
        seen.add(number)
        print(f"cell {number}: {time.perf_counter() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
