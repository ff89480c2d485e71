#!/usr/bin/env python3
"""Makes one archive of all objects of several, thin ones included.

merge_archives.py AR OUTPUT ARCHIVE...
"""

import pathlib
import subprocess
import sys

ar, output, *archives = sys.argv[1:]
pathlib.Path(output).unlink(missing_ok=True)
script = [f"create {output}", *(f"addlib {archive}" for archive in archives), "save", "end"]
subprocess.run([ar, "-M"], input="\n".join(script) + "\n", text=True, check=True)
