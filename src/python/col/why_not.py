"""Says in one line why the module _col cannot be loaded, and what to do. Imported when that has happened; also by a Python older
than the package is for, so that it keeps to what all of Python 3 has."""

import glob
import importlib.machinery
import os
import re
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def reason(error: ImportError) -> str:
    """Of the ImportError of `from . import _col`."""
    modules = sorted(glob.glob(os.path.join(glob.escape(_PACKAGE), "_col.*so")))
    if not modules:
        return ("col: there is no module _col in {}; install the package by pip, or name the one of a build in PYTHONPATH "
                "(build/src/python)".format(_PACKAGE))
    names = [os.path.basename(module)[len("_col"):] for module in modules]
    if not set(names) & set(importlib.machinery.EXTENSION_SUFFIXES) or (names == [".abi3.so"] and sys.version_info < (3, 12)):
        return "col: {} is for {}, and this is {}; install a wheel that is made for this one (docs/wheel.md)".format(
            modules[0], _interpreter(names[0]), _interpreter(importlib.machinery.EXTENSION_SUFFIXES[0]))
    text = str(error)
    older = re.match(r"(.*?): version `(\w+?)_([\w.]+)' not found \(required by (.*?)\)", text)
    if older:
        path, interface, version, needs = older.groups()
        return ("col: {} needs {} {} or later, and {} is older{}; use a newer system, or make the package there "
                "(pip install . in its sources)".format(needs, interface, version, path, _glibc()))
    if "undefined symbol" in text:
        return "col: {}; the libcol.so that it finds is of another build: install both from one{}".format(text, _others())
    return "col: cannot load its module: {}".format(text)


def _interpreter(suffix: str) -> str:
    """Of .cpython-311-x86_64-linux-gnu.so and the like: what a person calls it."""
    found = re.match(r"\.cpython-(\d)(\d+)(t?)\w*-(\w+)-linux-(gnu|musl)", suffix)
    if suffix == ".abi3.so":
        return "Python 3.12 and later"
    if not found:
        return "another Python ({})".format(suffix)
    major, minor, threads, processor, libc = found.groups()
    return "Python {}.{}{} on {} with {}".format(
        major, minor, threads, processor, {"gnu": "glibc", "musl": "musl, not glibc"}[libc])


def _glibc() -> str:
    try:
        return " ({})".format(os.confstr("CS_GNU_LIBC_VERSION"))
    except (AttributeError, ValueError):
        return ""


def _others() -> str:
    folders = filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    found = [folder for folder in folders if glob.glob(os.path.join(glob.escape(folder), "libcol.so*"))]
    return ", and take {} out of LD_LIBRARY_PATH".format(" and ".join(found)) if found else ""
