"""The programs that are in the package when pip has installed it. `python -m col.run` is colrun."""

import os
import sys


def _become(name):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        print(f"{name}: cannot run '{program}': {error.strerror}; pip installs it, with the rest of libcol", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def colrun():
    _become("colrun")


def colbench():
    _become("colbench")


def colcheck():
    _become("colcheck")


if __name__ == "__main__":
    colrun()
