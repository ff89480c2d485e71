#!/usr/bin/env python3
"""Writes a header with the name of what a module and libcol must have in common: the public headers, and the compiler.

build_id.py OUTPUT VERSION COMPILER HEADER...
"""

import hashlib
import pathlib
import sys

output, version, compiler, *headers = sys.argv[1:]
digest = hashlib.sha256()
for header in sorted(headers, key=lambda path: pathlib.Path(path).name):
    digest.update(pathlib.Path(header).name.encode() + b"\0" + pathlib.Path(header).read_bytes() + b"\0")
build_id = f"{version} {compiler} {digest.hexdigest()[:16]}"
pathlib.Path(output).write_text(
    "// Made by build_id.py.\n#pragma once\n\n#include <string_view>\n\n"
    f'namespace col::backend {{\ninline constexpr std::string_view kBuildId = "{build_id}";\n}}\n')
