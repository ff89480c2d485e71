"""What a run was measured on, and with which versions."""

import pathlib
import platform
import re
import subprocess

from contestants import processors


def machine():
    cpu = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {"cpu": cpu.group(1) if cpu else platform.machine(), "processors": processors(),
            "kernel": platform.release(), "versions": versions()}


def versions():
    found = {}
    for name, package in (("Open MPI", "libopenmpi3"), ("MPICH", "libmpich12"), ("Gloo", "libgloo0")):
        query = ["dpkg-query", "-W", "-f=${Version}", package]
        asked = subprocess.run(query, capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            found[name] = asked.stdout
    return found
