"""Memory that a call must not write, and memory that several ranks have: the result is right, or the call is refused."""

import os

import numpy as np
import pytest
import torch

import col
import ranks

# ---- Read-only memory


def writing_calls(group, x):
    """Every call that writes to x, which has 6 elements, as a function of no arguments."""
    n, other = group.size, 1 - group.rank
    block, whole, counts = np.ones(3), np.ones(6), [3] * n
    calls = {
        "allreduce": lambda: group.allreduce(x),
        "allreduce out": lambda: group.allreduce(whole, x),
        "reduce": lambda: group.reduce(x, root=group.rank),
        "reduce out": lambda: group.reduce(whole, x, root=group.rank),
        "broadcast": lambda: group.broadcast(x, root=other),
        "allgather": lambda: group.allgather(block, x),
        "allgatherv": lambda: group.allgatherv(block, counts, x),
        "gather": lambda: group.gather(block, x, root=group.rank),
        "gatherv": lambda: group.gatherv(block, counts, x, root=group.rank),
        "reduce_scatter": lambda: group.reduce_scatter(np.ones(12), x),
        "reduce_scatterv": lambda: group.reduce_scatterv(np.ones(12), [6] * n, x),
        "scatter": lambda: group.scatter(None, x, root=other),
        "scatterv": lambda: group.scatterv(None, None, x, root=other),
        "alltoall": lambda: group.alltoall(whole, x),
        "alltoallv": lambda: group.alltoallv(whole, counts, counts, x),
        "scan": lambda: group.scan(whole, x),
        "recv": lambda: group.recv(x, other),
        "recv_any": lambda: group.recv_any(x),
        "sendrecv": lambda: group.sendrecv(whole, other, x, other),
        "batch": lambda: group.batch([col.Message.recv(x, other)]),
        "iallreduce": lambda: group.iallreduce(x),
        "ireduce_scatter": lambda: group.ireduce_scatter(np.ones(12), x),
        "irecv": lambda: group.irecv(x, other),
        "ibatch": lambda: group.ibatch([col.Message.recv(x, other)]),
        "by name: allreduce": lambda: col.allreduce(x),
        "by name: reduce": lambda: col.reduce(x, group.rank),
        "by name: broadcast": lambda: col.broadcast(x, other),
        "by name: recv": lambda: col.recv(x, other),
        "by name: reducescatter": lambda: col.reducescatter(x, [whole] * n),
        "by name: allgather": lambda: col.allgather([x, np.ones(6)], whole),
        "by name: gather": lambda: col.gather(whole, [np.ones(6), x], group.rank),
        "by name: scatter": lambda: col.scatter(x, None, other),
        "by name: alltoall": lambda: col.alltoall([np.ones(6), x], [whole] * n),
        "by name: irecv": lambda: col.ray.irecv(x, other),
    }
    if group.rank == 1:
        calls["exscan"] = lambda: group.exscan(whole, x)
    return calls


def flagged(_path):
    x = np.arange(6.0)
    x.flags.writeable = False
    return x


def mapped(path):
    return np.memmap(path, np.float64, "r", shape=(6,))


class Lender:
    """Has DLPack alone, and says that its memory is read-only."""

    def __init__(self, array):
        from exchange import read_only_capsule

        self.array, self.capsule = array, read_only_capsule

    def __dlpack__(self, **arguments):
        return self.capsule(self.array)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def exchanged(_path):
    from exchange import make_exchanged_type

    return make_exchanged_type(read_only=True)(np.arange(6.0))


READ_ONLY = {
    "numpy": flagged,
    "a view of numpy's": lambda path: flagged(path)[:],
    "bytes": lambda path: memoryview(np.arange(6.0).tobytes()).cast("d"),
    "DLPack": lambda _path: Lender(np.arange(6.0)),
    "DLPack's functions": exchanged,
    "numpy, mapped": mapped,
    # Torch has no such flag; its pages have.
    "torch, mapped": lambda path: torch.from_numpy(mapped(path)),
    "torch, of a file": lambda path: torch.from_numpy(np.frombuffer(open_read_only(path))),
}


def open_read_only(path):
    import mmap

    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)


def values_in(x):
    return (x.array if hasattr(x, "array") else np.asarray(x)).tolist()


@pytest.mark.filterwarnings("ignore:The given")
@pytest.mark.parametrize("kind", READ_ONLY)
@pytest.mark.ranks(2)
def test_read_only(group, kind, path):
    x = READ_ONLY[kind](path)
    for name, call in writing_calls(group, x).items():
        with pytest.raises(col.InvalidArgument, match="copy"):
            call()
            raise AssertionError(f"{name} has written to it")
        assert values_in(x) == [0, 1, 2, 3, 4, 5], name
    # As an input, always.
    assert group.allreduce(x, np.ones(6)).tolist() == [0, 2, 4, 6, 8, 10]
    assert group.allgather(x, np.ones(12)).tolist() == [0, 1, 2, 3, 4, 5] * 2
    theirs = np.ones(6)
    assert group.broadcast(x if group.rank == 0 else theirs) is (x if group.rank == 0 else theirs)
    assert group.reduce(x if group.rank == 0 else theirs, root=1) is (None if group.rank == 0 else theirs)
    assert group.rank == 0 or theirs.tolist() == [0, 2, 4, 6, 8, 10]
    assert values_in(x) == [0, 1, 2, 3, 4, 5]


@pytest.fixture
def path(tmp_path):
    np.arange(6.0).tofile(tmp_path / "memory")
    return str(tmp_path / "memory")


@pytest.mark.ranks(2)
def test_objects_of_read_only_arrays(group):
    x = flagged(None)
    answers = group.allgather_object({"x": x, "rank": group.rank})
    answers.append(group.broadcast_object({"x": x, "rank": 0}))
    for answer in answers:
        assert answer["x"].tolist() == x.tolist() and (answer["x"] is x or not np.shares_memory(answer["x"], x))
    with pytest.raises(col.InvalidArgument, match="copy"):  # and what has come of it is read-only, too
        group.allreduce(answers[1 - group.rank]["x"])


# ---- One piece of memory on all ranks


COUNTS = (1, 100, 3000, 200_000)  # in the line of a flag, in a slot, in many, and by the kernel's copy


BY_KERNEL, BY_SLOTS = (("COL_CMA", "on"),), (("COL_CMA", "off"),)


def of_numpy(path, count):
    return np.memmap(path, np.float64, "r+", shape=(count,))


def of_torch(path, count):
    return torch.from_file(path, shared=True, size=count, dtype=torch.float64)


def common(group, path, make):
    n, r = group.size, group.rank
    for count in COUNTS:
        names = group.algorithms("allreduce") if count == 100 else []  # by their rounds, and not by the size, they differ
        algorithms = [None, *(name for name in names if not name.startswith("two_level"))]
        memory, other = make(path, 2 * n * count)[: n * count], make(path, 2 * n * count)[n * count :]
        values, private = np.arange(n * count) % 1000 + 1.0, np.arange(n * count) % 1000 + r + 1.0
        sums = sum(np.arange(n * count) % 1000 + p + 1.0 for p in range(n))

        def check(what, call, expected, results):
            group.barrier()
            if r == 0:
                np.asarray(memory)[:], np.asarray(other)[:] = values, 0.0
            group.barrier()
            call()
            group.barrier()
            assert np.array_equal(np.asarray(results), expected), f"{what} of {count}: {np.asarray(results)[:3]}"

        for algorithm in algorithms:
            more = {"algorithm": algorithm}
            check(f"allreduce by {algorithm}", lambda: group.allreduce(memory, **more), n * values, memory)
            check(f"iallreduce by {algorithm}", lambda: group.iallreduce(memory, **more).wait(), n * values, memory)
            check(f"allreduce into one output by {algorithm}", lambda: group.allreduce(private, other, **more), sums, other)
            check("both", lambda: group.allreduce(memory, other, **more), n * values, other)
            # The output of one is the input of the others.
            crossed = np.zeros(n * count)
            check(f"allreduce, crossed, by {algorithm}",
                  lambda: group.allreduce(*((memory, crossed) if r else (private, memory)), **more),
                  (n - 1) * values + np.arange(n * count) % 1000 + 1.0, crossed if r else memory)
        check("allreduce, avg", lambda: group.allreduce(memory, op="avg"), values, memory)
        check("reduce", lambda: group.reduce(memory), n * values, memory)
        check("broadcast", lambda: group.broadcast(memory), values, memory)
        mine = slice(r * count, (r + 1) * count)
        check("allgather", lambda: group.allgather(memory[mine], memory), values, memory)
        check("gather", lambda: group.gather(memory[mine], memory if r == 0 else None), values, memory)
        check("scatter", lambda: group.scatter(memory if r == 0 else None, memory[mine]), values, memory)
        check("reduce_scatter", lambda: group.reduce_scatter(memory, memory[mine]), n * values, memory)
        check("a message to the same place", lambda: group.sendrecv(
            memory[mine], (r + 1) % n, other[((r - 1) % n) * count : ((r - 1) % n + 1) * count], (r - 1) % n), values, other)


@pytest.mark.parametrize("n, make, env", [(2, of_numpy, BY_KERNEL), (2, of_torch, BY_SLOTS), (3, of_numpy, BY_SLOTS)])
def test_one_memory(n, make, env, tmp_path):
    path = str(tmp_path / "memory")
    np.zeros(2 * n * COUNTS[-1]).tofile(path)
    ranks.run(n, common, path, make, env=env)


def allocated(group):
    for count in COUNTS:
        x, out = (col.alloc(count, "float64", group) for _ in range(2))
        for target in (x, out):
            x[:] = np.arange(count) + group.rank
            group.allreduce(x, target)
            group.barrier()
            assert np.array_equal(target, 2 * np.arange(count) + 1.0), count


@pytest.mark.parametrize("env", [BY_KERNEL, BY_SLOTS])
def test_memory_of_alloc(env):
    ranks.run(2, allocated, env=env)


def alike(group, path):
    """A message of the same peer, tag and size as the one before is looked at, too."""
    x, memory = np.ones(6), np.memmap(path, np.float64, "r", shape=(6,))
    if group.rank == 0:
        group.send(x, 1)
        group.send(x, 1)
        return
    group.recv(x, 0)
    with pytest.raises(col.InvalidArgument, match="pass a copy"):
        group.recv(torch.from_numpy(memory), 0)  # which keeps no flag
    group.recv(x, 0)


@pytest.mark.filterwarnings("ignore:The given")
def test_message_like_the_one_before(tmp_path):
    np.zeros(6).tofile(tmp_path / "memory")
    ranks.run(2, alike, str(tmp_path / "memory"))
