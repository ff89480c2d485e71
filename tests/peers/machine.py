"""What a run was measured on, and with which versions."""

import pathlib
import platform
import re
import subprocess

from contestants import processors


def machine():
    cpu = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {"cpu": cpu.group(1) if cpu else platform.machine(), "processors": processors(),
            "kernel": platform.release()}


def versions(programs, packages=(("Open MPI 4", "libopenmpi3"), ("Gloo", "libgloo0"))):
    """Of the rivals that are installed: the distribution's packages, and what pip has put into environments of theirs."""
    found = {}
    for name, package in packages:
        query = ["dpkg-query", "-W", "-f=${Version}", package]
        asked = subprocess.run(query, capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            found[name] = asked.stdout
    for name, family, package in (("Open MPI 5", "openmpi5", "openmpi"), ("MPICH 5", "mpich5", "mpich"),
                                  ("Intel MPI", "intel", "impi_rt")):
        for folder in (programs / "rivals" / family).glob(f"lib/python*/site-packages/{package}-*.dist-info"):
            found[name] = folder.name.removesuffix(".dist-info").split("-", 1)[1]
    return found
