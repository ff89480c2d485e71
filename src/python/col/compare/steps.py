"""Whole training steps: one of DDP and one of FSDP, of a model of a given size, over each process group.

The optimizer's rate is 0, so that every step begins with the same parameters, and its gradients can be compared with those that
a rank computes alone from the batches of all ranks.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from math import isqrt
from typing import Any, Callable, Optional, Sequence

import torch
import torch.distributed as dist
from torch import nn

from .contenders import Torch
from .measure import Clock, agree, order

LAYERS, BATCH = 4, 8
WARM, STEPS = 2, 5  # of each contender in one launch
TOLERANCE = 1e-4  # of the largest gradient: sums of float32 in another order


def model_of(parameters: int) -> Any:
    """LAYERS square layers, with about so many parameters. The same on all ranks."""
    torch.manual_seed(0)
    width = max(isqrt(parameters // LAYERS), 1)
    layers: list[Any] = []
    for _ in range(LAYERS):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _loss(model: Any, rank: int) -> Any:
    generator = torch.Generator().manual_seed(1 + rank)
    return model(torch.randn(BATCH, model_width(model), generator=generator)).pow(2).mean()


def model_width(model: Any) -> int:
    inner = getattr(model, "module", model)
    return int(inner[0].in_features)


def expected(parameters: int, ranks: int) -> list[Any]:
    """The mean of the ranks' gradients, computed by one rank alone."""
    model = model_of(parameters)
    for rank in range(ranks):
        (_loss(model, rank) / ranks).backward()
    return [parameter.grad for parameter in model.parameters()]


def _problem(model: Any, gradients: Sequence[Any]) -> Optional[str]:
    """The first that is wrong. It goes on behind that, as full_tensor() is a call of all ranks."""
    first: Optional[str] = None
    for place, (parameter, wanted) in enumerate(zip(model.parameters(), gradients)):
        got = parameter.grad
        got = got.full_tensor() if hasattr(got, "full_tensor") else got
        off, most = float((got - wanted).abs().max()), float(wanted.abs().max())
        if first is None and not off <= TOLERANCE * most:
            first = f"the gradient of parameter {place} is off by {off:g}, of {most:g}"
    return first


def _ddp(parameters: int, group: Any, hook: Any) -> Any:
    model = nn.parallel.DistributedDataParallel(model_of(parameters), process_group=group)
    if hook is not None:
        model.register_comm_hook(group, hook)
    return model


def _sharding() -> Any:
    """fully_shard and DeviceMesh. Raises ImportError or AttributeError where torch has not both, and ValueError where it is too old
    for this Python to import them: 1.13 on 3.11."""
    return import_module("torch.distributed.fsdp").fully_shard, import_module("torch.distributed.device_mesh").DeviceMesh


def _fsdp(parameters: int, group: Any) -> Any:
    fully_shard, device_mesh = _sharding()
    mesh, model = device_mesh.from_group(group, "cpu"), model_of(parameters)
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def measure_steps(clock: Clock, contenders: Sequence[Torch], parameters: int, turn: int) -> list[dict[str, Any]]:
    """The rows of all steps, as of measure(). Collective; raises Wrong."""
    from ..torch import allreduce_hook

    gradients = expected(parameters, clock.world.size)
    makers: list[tuple[str, str, Callable[[], Any]]] = []
    for contender in contenders:
        makers.append(("DDP step", contender.name, partial(_ddp, parameters, contender.group, None)))
        if dist.get_backend(contender.group) == "col":
            makers.append(("DDP step", "col.Group", partial(_ddp, parameters, contender.group, allreduce_hook)))
    rows = _in_turns(clock, makers, gradients, turn)
    try:
        _sharding()
    except (ImportError, AttributeError, ValueError):
        return rows + [{"operation": "FSDP step", "backend": contender.name, "seconds": [],
                        "note": f"torch {torch.__version__} has no fully_shard for processors; 2.6 and later have it"}
                       for contender in contenders]
    makers = [("FSDP step", each.name, partial(_fsdp, parameters, each.group)) for each in contenders]
    return rows + _in_turns(clock, makers, gradients, turn)


def _in_turns(
    clock: Clock, makers: Sequence[tuple[str, str, Callable[[], Any]]], gradients: Sequence[Any], turn: int
) -> list[dict[str, Any]]:
    models = [make() for _, _, make in makers]
    optimizers = [torch.optim.SGD(model.parameters(), 0.0) for model in models]
    rows: list[dict[str, Any]] = [{"operation": step, "backend": name, "seconds": []} for step, name, _ in makers]
    for round in range(WARM + STEPS):
        for place in order(len(makers), turn, round):
            model, optimizer = models[place], optimizers[place]

            def step() -> None:
                optimizer.zero_grad()
                _loss(model, clock.world.rank).backward()
                optimizer.step()

            took = clock.time(step)
            agree(clock.world, _problem(model, gradients), f"{rows[place]['backend']}, {rows[place]['operation']}")
            if round >= WARM:
                rows[place]["seconds"].append(took)
    for row in rows:
        row["seconds"] = clock.slowest(row["seconds"])
    return rows
