"""One rank of one launch, in col.run(). __main__.py makes the request."""

from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np
import torch
import torch.distributed as dist

from .. import _col
from .contenders import Contender, Missing, Mpi, Own, Torch, has_mpi, named
from .measure import Clock, Wrong, measure
from .steps import measure_steps


def main(request: dict[str, Any]) -> Optional[dict[str, Any]]:
    """Takes part. Collective over the ranks of the launch.

    Returns on rank 0 {"torch": version, "bound": [fewest, most processors of a rank], "notes": [text], "rows": …}, where "rows"
    are those of measure() and measure_steps(); or on the rank that is wrong {"wrong": text}; and None on the others.
    """
    torch.set_num_threads(request["threads"])
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # one host; not every host's own name leads to it
    import col.torch  # noqa: F401  # the table of backends

    world = _col.init()
    store = f"file://{request['store']}/torch {request['launch']}"
    dist.init_process_group("gloo", init_method=store, rank=world.rank, world_size=world.size)
    beside = world.dup()  # to agree and to start by; `world` is measured
    groups = [Torch("gloo", dist.group.WORLD, beside), Torch('"col"', dist.new_group(backend="col"), beside)]
    contenders: list[Contender] = [*groups, Own(world)]
    notes: list[str] = []
    if has_mpi():
        try:
            contenders.append(Mpi(world))
        except (Missing, ImportError, RuntimeError) as missing:
            notes.append(str(missing))
    contenders += [named(path, world) for path in request["with"]]
    own = len(os.sched_getaffinity(0))
    ends = np.array([-own, own])
    beside.allreduce(ends, op="max")
    answer: dict[str, Any] = {"torch": torch.__version__, "bound": [-int(ends[0]), int(ends[1])], "notes": notes, "rows": []}
    clock, is_mine = Clock(beside, request["processors"]), world.rank == 0
    try:
        for turn, (operation, size) in enumerate(request["cells"]):
            for row in measure(clock, contenders, operation, size, request["seconds"], turn + request["launch"]):
                answer["rows"].append({"operation": operation, "bytes": size, **row})
        if request["parameters"]:
            answer["rows"] += measure_steps(clock, groups, request["parameters"], request["launch"])
    except Wrong as wrong:
        answer, is_mine = {"wrong": str(wrong)}, bool(str(wrong))
    world.barrier()  # rank 0 has torch's store, which the others may need to its end
    dist.destroy_process_group()
    return answer if is_mine else None
