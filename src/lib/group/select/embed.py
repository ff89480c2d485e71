"""Turns a text file into a C++ source. usage: embed.py INPUT OUTPUT HEADER NAMESPACE NAME"""
import json
import pathlib
import sys

source, target, header, namespace, name = sys.argv[1:]
lines = pathlib.Path(source).read_text(encoding="utf-8").splitlines(keepends=True)
# The string literals that dumps() makes are C++'s, too, but for \u: so there must be nothing that it escapes like that.
if not all(line.isascii() and line.rstrip("\n").isprintable() for line in lines):
    sys.exit(f"{source}: should be printable ASCII")
literals = "\n".join("    " + json.dumps(line) for line in lines)
pathlib.Path(target).write_text(
    f'#include "{header}"\n\nnamespace {namespace} {{\n\nconst std::string_view {name} =\n{literals};\n\n}}\n',
    encoding="utf-8")
