"""`import col` where its module cannot be loaded: one line, which says what to do."""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig

import pytest

import col
import planted

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
THIS = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {platform.machine()} with glibc"
MACHINE = platform.machine()


@pytest.fixture
def package(tmp_path):
    """The package without its module."""
    return shutil.copytree(os.path.dirname(col.__file__), tmp_path / "col", ignore=shutil.ignore_patterns("_col.*", "__pycache__"))


def says(package):
    """The last line of an import, which fails; the lines before are Python's."""
    done = subprocess.run([sys.executable, "-c", "import col"], cwd=package.parent, env={**os.environ, "PYTHONPATH": str(package.parent)},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "During handling" not in done.stderr, done.stderr
    line = done.stderr.splitlines()[-1]
    assert line.startswith("ImportError: col: "), done.stderr
    return line.replace(str(package.parent), "")


def test_no_module(package):
    assert says(package) == (
        "ImportError: col: there is no module _col in /col; install the package by pip, or name the one of a build in PYTHONPATH "
        "(build/src/python)")


@pytest.mark.parametrize("suffix, other", [
    (f".cpython-38-{MACHINE}-linux-gnu.so", f"Python 3.8 on {MACHINE} with glibc"),
    (f".cpython-314t-{MACHINE}-linux-gnu.so", f"Python 3.14t on {MACHINE} with glibc"),
    (SUFFIX.replace("-gnu", "-musl"), THIS.replace("glibc", "musl, not glibc")),
    (".pypy311-pp73.so", "another Python (.pypy311-pp73.so)"),
])
def test_a_module_for_another_python(package, suffix, other):
    (package / f"_col{suffix}").write_bytes(b"")
    assert says(package) == (
        f"ImportError: col: /col/_col{suffix} is for {other}, and this is {THIS}; install a wheel that is made for this one "
        "(docs/wheel.md)")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the stable ABI serves this Python")
def test_a_stable_abi_for_later_pythons(package):
    (package / "_col.abi3.so").write_bytes(b"")
    assert f"/col/_col.abi3.so is for Python 3.12 and later, and this is {THIS};" in says(package)


@pytest.mark.parametrize("soname, version", [("libc.so.6", "GLIBC_9.9"), ("libstdc++.so.6", "GLIBCXX_9.9.9")])
def test_a_system_that_is_too_old(package, soname, version):
    planted.asks(package / f"_col{SUFFIX}", soname, version)
    line = says(package)
    name, number = version.split("_")
    assert line.startswith(f"ImportError: col: /col/_col{SUFFIX} needs {name} {number} or later, and "), line
    assert f"/{soname} is older (glibc " in line and line.endswith("; use a newer system, or make the package there (pip install . in its sources)"), line


def test_a_libcol_of_another_build(package, monkeypatch):
    module = package / f"_col{SUFFIX}"
    planted.asks(module, "libcol.so.0", "ANOTHER")
    # The one that comes first has no such symbol.
    subprocess.run([*planted.COMPILER, "-shared", "-o", package / "libcol.so.0", "-Wl,-soname,libcol.so.0", "-xc", os.devnull], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{package}")
    line = says(package)
    assert "undefined symbol: planted_symbol" in line, line
    assert line.endswith("; the libcol.so that it finds is of another build: install both from one, and take /col out of LD_LIBRARY_PATH"), line


def test_a_module_that_is_broken(package):
    (package / f"_col{SUFFIX}").write_bytes(b"no library")
    assert f"ImportError: col: cannot load its module: /col/_col{SUFFIX}: " in says(package)
