"""What tests do in an actor, which has the number `rank`."""

import time

import numpy as np

import col
import col.ray as collective


def torch_tensor(values):
    import torch  # takes a second: in actors that need it

    return torch.tensor(values, dtype=torch.float32)


LIBRARIES = {"numpy": lambda values: np.array(values, np.float32), "torch": torch_tensor}


def join(rank, size, name, **more):
    collective.init_collective_group(size, rank, "gloo", name, **more)
    return collective.get_rank(name), collective.get_collective_group_size(name), collective.is_group_initialized(name)


def leave(_rank, name):
    collective.destroy_collective_group(name)
    return collective.get_rank(name), collective.get_collective_group_size(name), collective.is_group_initialized(name)


def total(rank, name):
    """Whether all members are there: the sum of 1, 2, … over them."""
    x = np.full(3, rank + 1.0)
    collective.allreduce(x, name)
    return x[0]


def only_allreduce(rank, name):
    x = np.array([2.0**rank])
    collective.allreduce(x, name)
    return x[0], collective.get_rank(name)


def same(x, values):
    np.testing.assert_array_equal(np.asarray(x), values)


def every_call(rank, name, library):
    make, n = LIBRARIES[library], 4
    x = make([rank + 1, 2 * rank])
    collective.allreduce(x, name)
    same(x, [10, 12])
    x = make([rank + 1])
    collective.reduce(x, 2, name)
    same(x, [10] if rank == 2 else [rank + 1])
    x = make([rank])
    collective.broadcast(x, 3, name)
    same(x, [3])
    parts = [make([-1, -1]) for _ in range(n)]
    collective.allgather(parts, make([rank, 10 * rank]), name)
    same(np.stack(parts), [[r, 10 * r] for r in range(n)])
    x = make([-1])
    collective.reducescatter(x, [make([rank + 10 * r]) for r in range(n)], name)
    same(x, [6 + 40 * rank])
    parts = [make([-1]) for _ in range(n)]
    collective.gather(make([rank]), parts if rank == 1 else None, 1, name)
    same(np.stack(parts), [[r] for r in range(n)] if rank == 1 else [[-1]] * n)
    x = make([-1])
    collective.scatter(x, [make([r * r]) for r in range(n)] if rank == 0 else None, 0, name)
    same(x, [rank * rank])
    parts = [make([-1]) for _ in range(n)]
    collective.alltoall(parts, [make([10 * rank + r]) for r in range(n)], name)
    same(np.stack(parts), [[10 * r + rank] for r in range(n)])
    collective.barrier(name)
    return "right"


def heard_by(rank, name):
    """The error of a call, and when it came."""
    try:
        total(rank, name)
    except col.Error as error:
        return error, time.time()
    return None, time.time()
