"""One version, wherever it is written: meson.build has it.

versions.py SOURCES [BUILD PROGRAM…]: of the sources alone, or of what was built of them as well; the programs say theirs by --version.
"""
import pathlib
import re
import subprocess
import sys

sources, *built = map(pathlib.Path, sys.argv[1:])
wrong = []


def in_text(path, pattern):
    """What the pattern finds there, at least once and the same each time."""
    found = set(re.findall(pattern, path.read_text(), re.M))
    return found.pop() if len(found) == 1 else f"{sorted(found) or 'nothing'}"


version = in_text(sources / "meson.build", r"^  version: '(.*)',$")
# The interface has a number of its own (docs/abi.md), by which the distributions' packages call the library, too.
soname = "libcol.so." + in_text(sources / "src/lib/meson.build", r"'soversion': '(.*)'")


def expect(where, found, wanted=version):
    if found != wanted:
        wrong.append(f"{where} says {found}, and meson.build {wanted}")


def output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60, **options).stdout


# The newest entry of what has changed, and names of files in the documents.
expect("CHANGELOG.md", re.search(r"^## (\S+)", (sources / "CHANGELOG.md").read_text(), re.M)[1])
expect("CITATION.cff", in_text(sources / "CITATION.cff", r"^version: (\S+)"))
expect("docs/wheel.md", in_text(sources / "docs/wheel.md", r"\blibcol[- ](\d+\.\d+\.\d+)"))
expect("docs/install.md", in_text(sources / "docs/install.md", r"\bcol-(\d+\.\d+\.\d+)-"))
for name, pattern in {"conda/recipe.yaml": r'^  version: "(.*)"', "spack/packages/col/package.py": r'(?:\bversion\("|/libcol-)([\d.]+)(?="|\.tar)',
                      "vcpkg/col/vcpkg.json": r'"version": "(.*)"', "nix/default.nix": r'^  version = "(.*)"'}.items():
    expect(f"packaging/{name}", in_text(sources / "packaging" / name, pattern))
for path in (sources / "packaging/abi").glob("libcol.so.*"):
    expect(f"packaging/abi/{path.name}", path.name.split("-")[0], soname)
expect("packaging/debian/control", "libcol.so." + in_text(sources / "packaging/debian/control", r"^Package: libcol(\d+)$"), soname)

if built:
    build, *programs = built
    for program in programs:
        expect(program, output(program, "--version").strip(), f"{program.name} {version}")
    expect("col.__version__", output(sys.executable, "-c", "import col; print(col.__version__)", cwd=build / "src/python").strip())
    library = build / "src/lib/libcol.so"
    expect(library, library.resolve().name, f"libcol.so.{version}")
    expect("SONAME", re.search(r"SONAME\s+(\S+)", output("objdump", "-p", library))[1], soname)
    for name in "col.pc", "col-config-version.cmake":
        expect(name, in_text(build / "src/lib/install" / name, r'(?:^Version: |PACKAGE_VERSION "?)(\d[\d.]*\d)'))
sys.exit("\n".join(wrong) or None)
