"""The GPU that a group takes whose ranks meet through Ray.

The library takes the one that the joining thread has made current. Ray runs what an actor does in threads of its choice, and torch makes
a GPU current only where it is used. So this looks further: what another thread of the process has started, and, where "nccl" was said,
what Ray has given to the actor.
"""

from __future__ import annotations

import os
import sys

from .. import _col
from ..hints import Optional, Sequence

_ADVICE = "torch.cuda.set_device() and a tensor there, before the group is joined, choose one"


def own(takes_assigned: bool) -> tuple[Optional[int], str]:
    """The number that this process gives the GPU; or None, and why."""
    used = _col.gpus_in_use()
    if len(used) == 1:
        return used[0], ""
    if used:
        return None, f"this process uses the GPUs {_listed(used)}, and none is current in the thread that joins; {_ADVICE}"
    if not takes_assigned:
        return None, ""
    assigned = _assigned()
    if len(assigned) != 1:
        return None, f"Ray gave this process the GPUs {_listed(assigned)}; {_ADVICE}" if assigned else (
            "this process has started no GPU, and Ray gave it none (num_gpus=1)")
    unavailable = _col.nccl_unavailable_reason()
    number = _number_of(assigned[0])
    if unavailable or number is None:
        return None, unavailable or f"Ray gave this process GPU {assigned[0]}, which CUDA_VISIBLE_DEVICES does not show"
    return number, ""


def _listed(gpus: Sequence[object]) -> str:
    return ", ".join(map(str, gpus))


def _assigned() -> Sequence[object]:
    ray = sys.modules.get("ray")
    return [] if ray is None else ray.get_gpu_ids()


def _number_of(gpu: object) -> Optional[int]:
    """Ray counts the GPUs of the node, and shows a process its own by CUDA_VISIBLE_DEVICES."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return int(str(gpu)) if str(gpu).isdecimal() else None
    names = [name.strip() for name in visible.split(",")]
    return names.index(str(gpu)) if str(gpu) in names else None
