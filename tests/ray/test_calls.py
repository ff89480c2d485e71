"""Every call of col.ray, on numpy arrays and torch tensors, from actors of all kinds."""

import asyncio

import numpy as np
import pytest
import ray

import col.ray as collective
import workers as actors
from members import LIBRARIES, every_call, join, same
from workers import LIMIT, call, everywhere


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_call(workers, group, library):
    assert everywhere(workers, every_call, group, library) == ["right"] * 4


def reduce_what_came(_rank, name, array):
    assert not array.flags.writeable
    collective.allreduce(array, name)
    return array[0]


def test_arrays_from_the_object_store(workers, group):
    """Ray hands them out read-only, and Ray's own collectives write into them."""
    for size in 3, 100_000:  # within the message, and in shared memory
        references = [
            worker.run.remote(reduce_what_came, rank, group, ray.put(np.full(size, rank + 1.0)))
            for rank, worker in enumerate(workers)
        ]
        # Top-level arguments alone are fetched by Ray: this one is.
        assert ray.get(references, timeout=LIMIT) == [10] * 4


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
