"""Actors that run the functions which tests send them."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import ray

LIMIT = 60  # seconds for any one answer


class Worker:
    def run(self, function: Callable, *args: Any) -> Any:
        return function(*args)

    def warm_up(self) -> None:
        """Imports, before a test measures anything."""
        import numpy  # noqa: F401

        import col.ray  # noqa: F401


def start(count: int, **options: Any) -> list[Any]:
    """Actors that are up. The options are Ray's for an actor."""
    workers = [ray.remote(Worker).options(**{"num_cpus": 0, **options}).remote() for _ in range(count)]
    ray.get([worker.warm_up.remote() for worker in workers], timeout=LIMIT)
    return workers


def call(workers: Sequence[Any], function: Callable, *args: Any) -> list[Any]:
    """Worker number r begins function(r, *args). Returns references, at once."""
    return [worker.run.remote(function, number, *args) for number, worker in enumerate(workers)]


def everywhere(workers: Sequence[Any], function: Callable, *args: Any) -> list[Any]:
    """The results of function(r, *args) on worker number r, on all at the same time."""
    return ray.get(call(workers, function, *args), timeout=LIMIT)


def outcome(reference: Any) -> Any:
    """The result, or the exception that the worker raised, or that says that it is dead."""
    try:
        return ray.get(reference, timeout=LIMIT)
    except ray.exceptions.RayTaskError as error:
        return error.cause
    except ray.exceptions.RayActorError as error:
        return error


def outcomes(workers: Sequence[Any], function: Callable, *args: Any) -> list[Any]:
    """As everywhere, with the exception in place of the result where a worker raised one."""
    return [outcome(reference) for reference in call(workers, function, *args)]
