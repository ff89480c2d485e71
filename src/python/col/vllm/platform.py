"""vLLM's platform for CPUs, with col as its way to communicate."""

from __future__ import annotations

import importlib
from typing import Any

from ..torch import register

_module, _, _name = importlib.import_module("vllm.platforms").cpu_platform_plugin().rpartition(".")
_Theirs: Any = getattr(importlib.import_module(_module), _name)  # vLLM has several for CPUs

register()  # before vLLM asks torch for the backend


class Platform(_Theirs):  # type: ignore[misc]
    """What vLLM would take on this CPU, and groups of backend "col"."""

    dist_backend = "col"

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """The class that serves each group of ranks."""
        return "col.vllm.communicator.Communicator"
