"""Messages, batches of them, and objects."""

import gc
import weakref

import pytest
import torch
import torch.distributed as dist

import members
import trial

SIZES = [1, 2, 3]


def ring(groups, dtype, count, layout):
    """Each rank sends to the next, in the several ways there are."""
    this = trial.Trial(groups.col, groups.rank, groups.size, 5, dtype=dtype, layout=layout)
    inputs = this.of_ranks(count, 3)
    after, before = (groups.rank + 1) % groups.size, (groups.rank - 1) % groups.size
    x, expected = this.lay(inputs[groups.rank]), inputs[before]

    out = this.empty(count, 3)
    sent = dist.isend(x, after)
    assert dist.recv(out, before) == before
    assert sent.wait()
    trial.check(ring, this, [(out, expected)])

    for way in trial.WAYS[1:]:
        out = this.empty(count, 3)
        received = dist.irecv(out, before, tag=7)
        if groups.rank % 2:
            dist.send(x, after, tag=7)
        else:
            trial.wait(dist.isend(x, after, tag=7), way)
        trial.wait(received, way)
        trial.check(ring, this, [(out, expected)])

    out = this.empty(count, 3)
    operations = [dist.P2POp(dist.irecv, out, before), dist.P2POp(dist.isend, x, after)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    trial.check(ring, this, [(out, expected)])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("layout", trial.LAYOUTS)
def test_ring(size, layout):
    for dtype in trial.DTYPES:
        members.run(size, ring, dtype, 5, layout)
    members.run(size, ring, torch.float32, 0, layout)
    members.run(size, ring, torch.float32, 1 << 16, layout)


def from_anybody(groups):
    """Rank 0 learns from whom a message came."""
    if groups.rank > 0:
        dist.send(torch.full((4,), groups.rank), 0)
        dist.send(torch.full((4,), 10 * groups.rank), 0, tag=3)
        return
    seen = set()
    for _ in range(1, groups.size):
        out = torch.zeros(4, dtype=torch.int64).unsqueeze(1).expand(4, 2).contiguous()[:, 0]
        source = dist.recv(out)
        assert out.tolist() == [source] * 4
        seen.add(source)
    for _ in range(1, groups.size):
        out = torch.zeros(4, dtype=torch.int64)
        work = dist.irecv(out, tag=3)
        work.wait()
        assert out.tolist() == [10 * work.source_rank()] * 4 if hasattr(work, "source_rank") else True
        seen.add(10 * work.source_rank())
    assert seen == {k * rank for k in (1, 10) for rank in range(1, groups.size)}


@pytest.mark.parametrize("size", [2, 3, 4])
def test_from_anybody(size):
    members.run(size, from_anybody)


def tags_out_of_order(groups):
    outs = [torch.zeros(1000) for _ in range(3)]
    if groups.rank == 0:
        for work in [dist.isend(torch.full((1000,), float(tag)), 1, tag=tag) for tag in (2, 0, 1)]:
            work.wait()
    else:
        for work in [dist.irecv(outs[tag], 0, tag=tag) for tag in (0, 1, 2)]:
            work.wait()
        assert [out.unique().item() for out in outs] == [0, 1, 2]


def test_tags_out_of_order():
    members.run(2, tags_out_of_order)


def many_in_a_batch(groups):
    """All to all, by messages: both directions of many pairs at once."""
    xs = [torch.full((50_000,), 10.0 * groups.rank + r) for r in range(groups.size)]
    outs = [torch.zeros(50_000) for _ in range(groups.size)]
    operations = [dist.P2POp(dist.isend, x, r) for r, x in enumerate(xs)]
    operations += [dist.P2POp(dist.irecv, out, r) for r, out in enumerate(outs)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert [out.unique().tolist() for out in outs] == [[10.0 * r + groups.rank] for r in range(groups.size)]


@pytest.mark.parametrize("size", SIZES)
def test_many_in_a_batch(size):
    members.run(size, many_in_a_batch)


def objects(groups):
    mine = {"rank": groups.rank, "text": "x" * (1000 * groups.rank)}
    every = [{"rank": r, "text": "x" * (1000 * r)} for r in range(groups.size)]
    for group in (groups.col, groups.gloo):
        got = [None] * groups.size
        dist.all_gather_object(got, mine, group=group)
        assert got == every

        root = groups.size - 1
        got = [None] * groups.size if groups.rank == root else None
        dist.gather_object(mine, got, dst=root, group=group)
        assert got == (every if groups.rank == root else None)

        got = [mine, 5] if groups.rank == root else [None, None]
        dist.broadcast_object_list(got, src=root, group=group)
        assert got == [every[root], 5]

        got = [None]
        dist.scatter_object_list(got, every if groups.rank == 0 else None, src=0, group=group)
        assert got == [mine]


@pytest.mark.parametrize("size", SIZES)
def test_objects(size):
    members.run(size, objects)


def object_messages(groups):
    if groups.rank == 0:
        dist.send_object_list(["text", {"a": 1}], dst=1)
    else:
        got = [None, None]
        assert dist.recv_object_list(got, src=0) == 0
        assert got == ["text", {"a": 1}]


@pytest.mark.skipif(not hasattr(dist, "send_object_list"), reason="torch 2.4 and later have it")
def test_object_messages():
    members.run(2, object_messages)


def barriers(groups):
    dist.barrier()
    for way in trial.WAYS[1:]:
        trial.wait(dist.barrier(async_op=True), way)
    groups.col.monitored_barrier()
    groups.col.monitored_barrier(trial.timeout_of(20), True)


@pytest.mark.parametrize("size", SIZES)
def test_barriers(size):
    members.run(size, barriers)


def nobody_waits(groups):
    """Works that are dropped, or only polled, let go of their tensors in the end."""
    kept = []
    for i in range(300):
        x = torch.ones(10)
        kept.append(weakref.ref(x))
        work = dist.all_reduce(x, async_op=True)
        if i % 2:
            while not work.is_completed():
                pass
        dist.send(x, 1) if groups.rank == 0 else dist.recv(torch.zeros(10), 0)
    del work, x
    dist.barrier()
    assert sum(reference() is not None for reference in kept) < 100


def test_nobody_waits():
    members.run(2, nobody_waits)


def cpp_waits_for_each(groups):
    """Older torch lets go of the Python half of a Work, and waits for that of several tensors once for each: it must be there."""
    x = [torch.ones(10), torch.ones(10)]
    kept = weakref.ref(groups.col.allreduce_coalesced(x))
    for _ in x:
        assert kept().wait(trial.timeout_of(0))  # as C++ says that it has no timeout
        dist.barrier()
    gc.collect()
    assert kept() is None
    assert all((one == groups.size).all() for one in x)


def test_cpp_waits_for_each():
    members.run(2, cpp_waits_for_each)
