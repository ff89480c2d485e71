"""The rank's side of `%%ranks`: cells run in its __main__."""

from __future__ import annotations

import ast
import linecache
import os
import sys
from typing import Any

import col

from ..launch.rank import cut

_KINDS = {"_repr_html_": "text/html", "_repr_svg_": "image/svg+xml"}
_own: set[str] = set()


def run(source: str, name: str) -> dict[str, str]:
    """Runs the cell; how the value of its last expression looks, by MIME type; empty if there is none."""
    space = sys.modules["__main__"].__dict__
    if not _own:
        _own.update(space, ("col", "world"))
    space.update(col=col, world=col.init())
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)  # for tracebacks
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec", dont_inherit=True), space)
    if last is None:
        return {}
    expression = ast.Expression(last.value)  # type: ignore[attr-defined]
    value = eval(compile(expression, name, "eval", dont_inherit=True), space)
    return {} if value is None else _looks(value)


def _looks(value: Any) -> dict[str, str]:
    looks = {"text/plain": cut(repr(value))}
    for method, kind in _KINDS.items():
        draw = getattr(type(value), method, None)
        drawn = draw(value) if draw is not None else None
        if drawn is not None:
            looks[kind] = str(drawn)
    return looks


def variables() -> tuple[int, list[str]]:
    """The pid of this process, and the names that its cells have made."""
    return os.getpid(), sorted(name for name in sys.modules["__main__"].__dict__ if name not in _own)
