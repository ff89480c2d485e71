"""The place of col in torch's table of backends."""

from __future__ import annotations

import inspect
from typing import Any

from ..errors import Unavailable

OLDEST = (1, 13)


def register() -> None:
    """Makes "col" a backend of torch.distributed in this process. May be called again.

    Errors: Unavailable (torch cannot be imported, is too old, or was built without torch.distributed).
    """
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        raise Unavailable(f"col.torch needs torch, which cannot be imported: {error}") from None
    found = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if found < OLDEST:
        raise Unavailable(
            f"col.torch needs torch {OLDEST[0]}.{OLDEST[1]} or later: torch {torch.__version__} has no backend that is given the "
            "ranks of its group"
        )
    if not dist.is_available():
        raise Unavailable(f"torch {torch.__version__} was built without torch.distributed; install one that has it")
    if "COL" in dist.Backend._plugins:
        return

    def create(options: Any, backend_options: Any = None) -> Any:
        from .process_group import create

        return create(options, backend_options)

    more = {}
    if "devices" in inspect.signature(dist.Backend.register_backend).parameters:
        more["devices"] = ["cpu", "cuda"]
    before = dict(getattr(dist.Backend, "default_device_backend_map", {}))
    dist.Backend.register_backend("col", create, extended_api=True, **more)
    if before:
        dist.Backend.default_device_backend_map.update(before)  # what torch takes when no backend is named stays as it was
