"""Every call of col.ray, on numpy arrays and torch tensors, from actors of all kinds."""

import asyncio

import numpy as np
import pytest
import ray

import col
import col.ray as collective
import workers as actors
from members import LIBRARIES, every_call, join, same
from workers import LIMIT, call, everywhere


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_call(workers, group, library):
    assert everywhere(workers, every_call, group, library) == ["right"] * 4


def refuses_to_write(rank, name, array, make):
    """Every call that would write to the store's object, which other actors have, too."""
    x, n, other = make(array), 4, (rank + 1) % 4
    private = make(array.copy())
    calls = {
        "allreduce": lambda: collective.allreduce(x, name),
        "reduce": lambda: collective.reduce(x, rank, name),
        "broadcast": lambda: collective.broadcast(x, other, name),
        "allgather": lambda: collective.allgather([private, x, private, private], private, name),
        "reducescatter": lambda: collective.reducescatter(x, [private] * n, name),
        "gather": lambda: collective.gather(private, [x] * n, rank, name),
        "scatter": lambda: collective.scatter(x, None, other, name),
        "alltoall": lambda: collective.alltoall([x] * n, [private] * n, name),
        "recv": lambda: collective.recv(x, other, name),
        "iallreduce": lambda: collective.iallreduce(x, name),
        "irecv": lambda: collective.irecv(x, other, name),
    }
    for call in calls.values():
        with pytest.raises(col.InvalidArgument, match="copy"):
            call()
    # As inputs, they are what others get.
    collective.reduce(private if rank == 0 else x, 0, name)
    same(private, n * array if rank == 0 else array)
    collective.broadcast(x if rank == 0 else private, 0, name)
    same(private, n * array if rank == 0 else array)
    parts = [make(np.zeros_like(array)) for _ in range(n)]
    collective.allgather(parts, x, name)
    same(np.stack(parts), np.stack([array] * n))
    same(x, array)
    return "right"


def from_numpy(array):
    import torch

    return torch.from_numpy(array)  # which keeps no flag of it


@pytest.mark.parametrize("make", [np.asarray, from_numpy])
def test_arrays_from_the_object_store(workers, group, make):
    """All actors have the same memory for an object, and nobody writes there."""
    for size in 3, 100_000:
        values = np.arange(size) + 1.0
        ref = ray.put(values)
        assert everywhere(workers, refuses_to_write, group, ref, make) == ["right"] * 4
        same(ray.get(ref), values)


def messages(rank, name):
    """Around the ring, odd shapes, and both directions between two at the same time."""
    right, left = (rank + 1) % 4, (rank - 1) % 4
    for make in LIBRARIES.values():
        for shape in (1,), (5, 9, 10), (300, 1000):
            mine, theirs = make(np.full(shape, rank)), make(np.full(shape, -1))
            if rank % 2 == 0:
                collective.send(mine, right, name)
                collective.recv(theirs, left, name)
            else:
                collective.recv(theirs, left, name)
                collective.send(mine, right, name)
            same(theirs, np.full(shape, left))
    return "right"


def test_messages(workers, group):
    assert everywhere(workers, messages, group) == ["right"] * 4


def operators(rank, name):
    from ray.util.collective.types import ReduceOp as TheirOp

    from col.ray.types import ReduceOp

    results = []
    for op in ("SUM", "PRODUCT", "MIN", "MAX"):
        for kind in TheirOp, ReduceOp:
            x = np.array([rank + 1.0, -rank])
            collective.allreduce(x, name, getattr(kind, op))
            results.append(x.tolist())
    return results


def test_operators_are_rays_and_ours(workers, group):
    expected = [[10, -6]] * 2 + [[24, 0]] * 2 + [[1, -3]] * 2 + [[4, 0]] * 2
    assert everywhere(workers, operators, group) == [expected] * 4


@ray.remote(num_cpus=0, max_concurrency=4)
class Threads(actors.Worker):
    pass


def many(rank, name):
    for _ in range(20):
        x = np.array([rank + 1.0])
        collective.allreduce(x, name)
        same(x, [3])
    return "right"


def test_actors_with_threads(cluster):
    """Calls of several threads at once: on groups of their own, and on one group."""
    members = [Threads.remote() for _ in range(2)]
    names = ["thread 0", "thread 1", "shared"]
    ray.get([reference for name in names for reference in call(members, join, 2, name)], timeout=LIMIT)
    references = [reference for name in [*names, "shared"] for reference in call(members, many, name)]
    assert ray.get(references, timeout=LIMIT) == ["right"] * len(references)


@ray.remote(num_cpus=0)
class Asynchronous:
    async def join(self, rank, size, name):
        await asyncio.to_thread(join, rank, size, name)

    async def reduce(self, rank, name):
        x = np.array([rank + 1.0])
        await collective.iallreduce(x, name)
        return x[0]

    async def reduce_both(self, rank):
        """Two calls that the other actor makes in the other order: neither keeps the loop from the other."""
        names = ["one", "other"]
        return await asyncio.gather(*(self.reduce(rank, name) for name in (names if rank == 0 else reversed(names))))


def test_actors_with_asyncio(cluster):
    members = [Asynchronous.remote() for _ in range(2)]
    for name in "one", "other":
        ray.get([member.join.remote(rank, 2, name) for rank, member in enumerate(members)], timeout=LIMIT)
    assert ray.get([member.reduce_both.remote(rank) for rank, member in enumerate(members)], timeout=LIMIT) == [[3, 3]] * 2
