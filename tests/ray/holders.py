"""Actors that hold tensors for refs."""

from __future__ import annotations

import contextlib
from typing import Any, Callable

import ray
import torch

import col.ray
from workers import LIMIT

col.ray.register()


@ray.remote(num_cpus=0, enable_tensor_transport=True)
class Holder:
    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    @ray.method(tensor_transport="COL")
    def hold(self, name: str, value: Any) -> Any:
        """Keeps what it returns: the driver's ref and the actor have the same tensors."""
        self.held[name] = value
        return value

    @ray.method(tensor_transport="COL")
    def fill(self, name: str, elements: int, value: float) -> torch.Tensor:
        self.held[name] = torch.full((elements,), value)
        return self.held[name]

    @ray.method(tensor_transport="COL")
    def fail(self) -> torch.Tensor:
        raise ValueError("no tensor today")

    def ordinary(self) -> torch.Tensor:
        return torch.ones(3)

    def read(self, name: str) -> Any:
        return self.held[name]

    def take(self, value: Any) -> Any:
        return value

    def run(self, function: Callable, *args: Any) -> Any:
        return function(*args)


def start(count: int, **options: Any) -> list[Any]:
    """Holders that are up."""
    holders = [Holder.options(**options).remote() for _ in range(count)]
    ray.get([holder.run.remote(int) for holder in holders], timeout=LIMIT)
    return holders


def kill(holder: Any) -> None:
    """Returns when Ray knows that it is dead."""
    ray.kill(holder)
    with contextlib.suppress(ray.exceptions.RayActorError):
        while True:
            ray.get(holder.run.remote(int), timeout=LIMIT)
