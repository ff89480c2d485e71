"""Finds the programs, and says before any process starts what would not work."""

from __future__ import annotations

import operator
import os
import shutil
import subprocess
from typing import Any, Optional

from .. import _col
from ..errors import InvalidArgument, Unavailable

OUTPUTS = ("label", "plain", "none")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PLACES = ("bin/{0}", "../../tools/{0}/{0}")  # of a wheel, of a build
LIMIT = 20  # seconds, for a program that says its version

_checked: set[tuple[str, float]] = set()  # path and time of change


def refuse(n: Any, output: str, timeout: Any, env: Any) -> int:
    """The number of ranks. Raises if they cannot be started like this."""
    try:
        size = 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        size = 0
    if size < 1:
        raise InvalidArgument(f"col.run: {n!r} ranks; it must be a whole number from 1 on")
    try:
        is_time = timeout is None or timeout > 0
    except TypeError:
        is_time = False
    if not is_time:
        raise InvalidArgument(f"col.run: timeout={timeout!r}; it must be a number of seconds above 0")
    if env is not None and not all(isinstance(word, str) for pair in env.items() for word in pair):
        raise InvalidArgument(f"col.run: env={env!r}; its names and values must be of type str")
    if output not in OUTPUTS:
        raise InvalidArgument(f"col.run: output={output!r}; it is one of {', '.join(OUTPUTS)}")
    if "COL_RANK" in os.environ:
        raise InvalidArgument(
            f"col.run: this process is in a rank already (rank {os.environ['COL_RANK']}); call it from a program that "
            "is started without colrun, or make a part of this group by split()")
    colrun()
    return size


def refuse_function(function: Any) -> None:
    if not callable(function):
        raise InvalidArgument(
            f"col.run: {repr(function)[:60]} is no function; write col.run(4, f, x), not col.run(4, f(x))".replace("\n", " "))


def colrun() -> str:
    """Its path: the one that was made with this package, else the first in PATH."""
    path = find("colrun")
    if path is None:
        raise Unavailable("col.run: there is no colrun in PATH; pip installs it with libcol, and a build has it in src/tools/colrun")
    key = (path, os.stat(path).st_mtime)
    if key not in _checked:
        try:
            said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=LIMIT).stdout.split()
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"col.run: cannot run '{path}': {error}") from None
        if said != ["colrun", _col.version()]:
            raise Unavailable(
                f"col.run: '{path}' is {' '.join(said) or 'no colrun'}, and this package is {_col.version()}; put the "
                "colrun of this version first in PATH")
        _checked.add(key)
    return path


def find(name: str) -> Optional[str]:
    """The path of one of col's programs."""
    for place in _PLACES:
        path = os.path.join(_PACKAGE, place.format(name))
        if os.access(path, os.X_OK):
            return os.path.normpath(path)
    return shutil.which(name)
