"""One version, wherever it is written: meson.build has it.

versions.py SOURCES BUILD PROGRAM…: the programs say theirs by --version.
"""
import json
import pathlib
import re
import subprocess
import sys

sources, build, *programs = map(pathlib.Path, sys.argv[1:])
version = json.loads((build / "meson-info/intro-projectinfo.json").read_text())["version"]
wrong = []


def expect(where, found, wanted=version):
    if found != wanted:
        wrong.append(f"{where} says {found}, and meson.build {wanted}")


def in_text(path, pattern):
    """What the pattern finds there, at least once and the same each time."""
    found = set(re.findall(pattern, path.read_text(), re.M))
    return found.pop() if len(found) == 1 else f"{sorted(found) or 'nothing'}"


def output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60, **options).stdout


for program in programs:
    expect(program, output(program, "--version").strip(), f"{program.name} {version}")
expect("col.__version__", output(sys.executable, "-c", "import col; print(col.__version__)", cwd=build / "src/python").strip())

# The interface is the major version's; before 1.0, all have that of 0.
major = version.split(".")[0]
library = build / "src/lib/libcol.so"
expect(library, library.resolve().name, f"libcol.so.{version}")
expect("SONAME", re.search(r"SONAME\s+(\S+)", output("objdump", "-p", library))[1], f"libcol.so.{major}")
for name in "col.pc", "col-config-version.cmake":
    expect(name, in_text(build / "src/lib/install" / name, r'(?:^Version: |PACKAGE_VERSION "?)(\d[\d.]*\d)'))

# The newest entry of what has changed, and names of files in the documents.
expect("CHANGELOG.md", re.search(r"^## (\S+)", (sources / "CHANGELOG.md").read_text(), re.M)[1])
expect("docs/wheel.md", in_text(sources / "docs/wheel.md", r"\blibcol[- ](\d+\.\d+\.\d+)"))
expect("docs/install.md", in_text(sources / "docs/install.md", r"\bcol-(\d+\.\d+\.\d+)-"))
# Where somebody adds these, they are compared as well.
for name, pattern in {"CITATION.cff": r"^version: (\S+)", "packaging/debian/changelog": r"\Acol \(([^)-]+)"}.items():
    if (sources / name).exists():
        expect(name, re.search(pattern, (sources / name).read_text(), re.M)[1])
sys.exit("\n".join(wrong) or None)
