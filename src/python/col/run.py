"""The programs that are in the package when pip has installed it. `python -m col.run` is colrun, and takes a script
of Python's as its program, too: python -m col.run -n 4 hello.py."""

import os
import sys
import types
from functools import partial

import col.launch


class _Module(types.ModuleType):
    """An import of this module takes the place of the function col.run: it can be called like that."""

    def __call__(self, n, function, *args, **options):
        return col.launch.run(n, function, *args, **options)


sys.modules[__name__].__class__ = _Module


def _become(name, arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    try:
        os.execv(program, [program, *arguments])
    except OSError as error:
        print(f"{name}: cannot run '{program}': {error.strerror}; pip installs it, with the rest of libcol", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def _with_python(arguments):
    """Those of colrun, where a script of Python's may stand in the place of the program."""
    for place, word in enumerate(arguments):
        if word == "--" or os.path.basename(word).startswith("python"):
            break
        if word.endswith(".py") and os.path.isfile(word):
            return [*arguments[:place], sys.executable, *arguments[place:]]
    return arguments


# The commands of the wheel.
colrun, colbench, colcheck, coljob = (partial(_become, name) for name in ("colrun", "colbench", "colcheck", "coljob"))


if __name__ == "__main__":
    _become("colrun", _with_python(sys.argv[1:]))
