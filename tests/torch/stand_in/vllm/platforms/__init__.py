"""Which platform this process has: the one plug-in that names a class, else vLLM's own."""

import importlib
import os
from importlib.metadata import entry_points

OWN = os.environ.get("STAND_IN_DEVICE", "cpu")


def cpu_platform_plugin():
    return {"cpu": "vllm.platforms.cpu.CpuPlatform", "other cpu": "vllm.platforms.cpu.OtherCpuPlatform"}.get(OWN)


def named():
    """The classes that plug-ins name, by plug-in. One that fails is left out, as vLLM does it."""
    chosen = os.environ.get("VLLM_PLUGINS")
    found = {}
    for entry in entry_points(group="vllm.platform_plugins"):
        if chosen is None or entry.name in chosen.split(","):
            name = entry.load()()
            if name is not None:
                found[entry.name] = name
    return found


def find():
    if os.environ.get("VLLM_TARGET_DEVICE") == "cpu":  # no plug-in is asked
        return getattr(importlib.import_module("vllm.platforms.cpu"), "CpuPlatform")()
    names = list(named().values())
    if len(names) > 1:
        raise RuntimeError(f"more than one plug-in of a platform: {names}")
    module, _, name = (names + [cpu_platform_plugin() or "vllm.platforms.cpu.Gpu"])[0].rpartition(".")
    return getattr(importlib.import_module(module), name)()


def __getattr__(name):
    if name != "current_platform":
        raise AttributeError(name)
    globals()[name] = find()
    return globals()[name]
