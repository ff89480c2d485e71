"""Makes libraries that ask for what no machine has."""

import os
import subprocess

COMPILER = os.environ.get("CC", "cc").split()


def asks(path, soname, version, symbol="planted_symbol", more=""):
    """Makes `path`, a shared library that asks for that version of a symbol of that library: asks(p, "libc.so.6", "GLIBC_9.9").
    `more` is C that stands in it, too."""
    folder = path.parent / (path.name + ".made")
    folder.mkdir()
    (folder / "asked.c").write_text(f"int {symbol}(void) {{ return 0; }}\n")
    (folder / "asked.map").write_text(f"{version} {{ {symbol}; }};\n")
    (folder / "asking.c").write_text(f"extern int {symbol}(void);\nint (*planted_user)(void) = {symbol};\n{more}\n")
    link = [*COMPILER, "-shared", "-fPIC", "-nostdlib"]
    subprocess.run([*link, "-o", folder / soname, folder / "asked.c", f"-Wl,-soname,{soname}",
                    f"-Wl,--version-script={folder}/asked.map"], check=True)
    subprocess.run([*link, "-o", path, folder / "asking.c", folder / soname, "-Wl,--unresolved-symbols=ignore-all"], check=True)
