"""scripts/wheel-symbols names what a wheel asks for above its tag: library, symbol, and version."""

import pathlib
import subprocess
import sys
import zipfile

import pytest

import planted

pytest.importorskip("auditwheel", reason="scripts/test --all installs it")
SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "wheel-symbols"
TAG = "manylinux_2_34_x86_64"


@pytest.fixture
def symbols(tmp_path):
    """symbols({name: (soname, version, symbol)}, *options): what it says of a wheel with these libraries, and its exit code."""
    wheel = tmp_path / f"libcol-1-cp311-cp311-{TAG}.whl"

    def run(libraries, *options):
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("col/__init__.py", "")
            for name, (soname, version, symbol) in libraries.items():
                planted.asks(tmp_path / name, soname, version, symbol)
                archive.write(tmp_path / name, f"col/lib/{name}")
        done = subprocess.run([sys.executable, SCRIPT, *options, wheel], capture_output=True, text=True, timeout=60)
        assert not done.stderr, done.stderr
        return done.returncode, done.stdout.splitlines()

    return run


def test_what_is_above(symbols):
    code, lines = symbols({
        "new.so": ("libm.so.6", "GLIBC_2.35", "hypot"),
        "newer.so": ("libstdc++.so.6", "GLIBCXX_3.4.30", "waits"),
        "exceptions.so": ("libstdc++.so.6", "CXXABI_1.3.14", "throws"),
        "private.so": ("libc.so.6", "GLIBC_PRIVATE", "inside"),
    })
    assert code == 1 and lines == [
        f"col/lib/new.so: hypot of libm.so.6 is GLIBC_2.35, above {TAG}",
        f"col/lib/newer.so: waits of libstdc++.so.6 is GLIBCXX_3.4.30, above {TAG}",
        f"col/lib/exceptions.so: throws of libstdc++.so.6 is CXXABI_1.3.14, above {TAG}",
        f"col/lib/private.so: inside of libc.so.6 is GLIBC_PRIVATE, above {TAG}",
    ]


def test_what_is_not_above(symbols):
    assert symbols({
        "old.so": ("libc.so.6", "GLIBC_2.34", "dlopen"),
        "older.so": ("libstdc++.so.6", "GLIBCXX_3.4.29", "waits"),
        "own.so": ("libother.so.1", "OTHER_99", "of_the_wheel"),
    }) == (0, [])


def test_another_tag(symbols):
    assert symbols({"new.so": ("libm.so.6", "GLIBC_2.35", "hypot")}, "--tag", "manylinux_2_35_x86_64") == (0, [])


@pytest.mark.parametrize("words, says", [
    (["none-manylinux_2_34_x86_64.whl"], "none-manylinux_2_34_x86_64.whl is no wheel: "),
    (["none-linux_x86_64.whl"], "linux_x86_64 is no tag for glibc; name one by --tag, as manylinux_2_34_x86_64"),
    (["--tag", "manylinux_9_9_x86_64", "none.whl"], "auditwheel has no tag manylinux_9_9_x86_64"),
])
def test_refusals(words, says):
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith(f"wheel-symbols: {says}") and done.stderr.count("\n") == 1, done.stderr
