"""Messages, batches and objects."""

import numpy as np
import pytest
import torch

import col


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.ranks(2, 3, 5)
def test_ring(group, library):
    n, r = group.size, group.rank
    make = np.full if library == "numpy" else lambda count, value: torch.full((count,), value)
    x, out = make(3, r), make(3, -1)
    assert group.sendrecv(x, (r + 1) % n, out, (r - 1) % n) is out
    assert out.tolist() == [(r - 1) % n] * 3
    out = make(3, -1)
    works = [group.isend(x, (r + 1) % n, tag=4), group.irecv(out, (r - 1) % n, tag=4)]
    assert works[0].wait() is None and works[1].wait() is out
    assert out.tolist() == [(r - 1) % n] * 3 and works[1].source == (r - 1) % n


@pytest.mark.ranks(3)
def test_any_source(group):
    if group.rank == 0:
        seen = set()
        for _ in range(group.size - 1):
            out = np.zeros(1)
            source = group.recv_any(out, tag=2)
            assert out[0] == source
            seen.add(source)
        assert seen == set(range(1, group.size))
        work = group.irecv_any(out := np.zeros(1), tag=3)
        assert work.wait() is out and work.source == 1
    else:
        group.send(np.array([float(group.rank)]), 0, tag=2)
        if group.rank == 1:
            group.send(np.array([1.0]), 0, tag=3)


@pytest.mark.ranks(2, 3)
def test_batches(group):
    n, r = group.size, group.rank
    for form in ("batch", "ibatch"):
        outs = [np.full(2, -1) for _ in range(n)]
        messages = [col.Message.recv(outs[p], source=p, tag=1) for p in range(n) if p != r]
        messages += [col.Message.send(np.full(2, 10 * r + p), destination=p, tag=1) for p in range(n) if p != r]
        result = getattr(group, form)(messages)
        if form == "ibatch":
            result.wait()
        for p in range(n):
            assert outs[p].tolist() == ([-1, -1] if p == r else [10 * p + r] * 2)


@pytest.mark.ranks(1, 2)
def test_to_oneself(group):
    work = group.isend(np.array([3.0]), group.rank)
    assert group.recv(np.zeros(1), group.rank).tolist() == [3.0]
    work.wait()


@pytest.mark.ranks(2)
def test_unequal_counts(group):
    own = group.dup()
    with pytest.raises(col.Mismatch):
        if group.rank == 0:
            own.send(np.ones(1 << 20), 1, timeout=20)
        else:
            own.recv(np.ones(3), 0, timeout=20)
    own.destroy()


OBJECTS = [None, 3, "text", [1, {"a": (2.5, b"x")}], np.arange(5), {"big": "x" * 100_000}]


@pytest.mark.ranks(1, 2, 3, 5)
def test_objects(group):
    n, r = group.size, group.rank
    for thing in OBJECTS:
        same = (lambda a: np.array_equal(a, thing)) if isinstance(thing, np.ndarray) else lambda a: a == thing
        assert same(group.broadcast_object(thing if r == n - 1 else None, root=n - 1))
        assert all(same(a) for a in group.allgather_object(thing))
        gathered = group.gather_object(thing, root=0)
        assert gathered is None if r else all(same(a) for a in gathered)
    assert group.scatter_object([{"for": p} for p in range(n)] if r == 0 else None) == {"for": r}
    if r == 0 and n > 1:
        group.send_object({"hello": 1}, 1, tag=5)
    if r == 1:
        assert group.recv_object(0, tag=5) == {"hello": 1}


@pytest.mark.ranks(2)
def test_objects_of_classes(group):
    assert [type(e) for e in group.allgather_object(col.Timeout("m", 1))] == [col.Timeout] * group.size
    with pytest.raises(Exception, match="pickle|lambda"):
        group.allgather_object(lambda: 0)
    with pytest.raises(col.InvalidArgument, match="one for each rank"):
        group.scatter_object(root=group.rank)
