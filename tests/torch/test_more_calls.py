"""Calls of newer torch that not every backend has: split_group, shrink_group, memory of the backend's, a search for NaNs."""

import datetime
import gc
import inspect
import os
import tempfile
import weakref
from unittest import mock

import numpy as np
import pytest
import torch
import torch.distributed as dist

import col
import members
from test_beside import LIMIT, ORDERS, has_it, joined, on_fresh, own

CAN_SHRINK = hasattr(dist, "shrink_group") and has_it()
BACKEND_OPTIONS = getattr(getattr(torch._C._distributed_c10d, "Backend", None), "Options", None)
needs_shrink = pytest.mark.skipif(not CAN_SHRINK, reason="this torch has no shrink_group, or none for a backend in Python")


def can_split():
    """Older torch wants a GPU that is bound to the group."""
    return hasattr(dist, "split_group") and "opts=pg_options" in inspect.getsource(dist.split_group) and has_it()


def summed(group, value=1.0):
    x = torch.full((100,), value)
    dist.all_reduce(x, group=group)
    return x[0].item()


# ---- What torch makes a group like this one from


def options(rank, size, store, backend):
    joined(rank, size, store, backend)
    made = dist.group.WORLD._get_backend(torch.device("cpu")).options
    assert (made._timeout, made.backend) == (LIMIT, "col") and isinstance(made.group_name, str)
    made.global_ranks_in_group = [0]  # as torch writes into the options of a backend that it takes for its Gloo
    again = dist.new_group([0], pg_options=made)
    assert rank != 0 or summed(again) == 1
    return True


@pytest.mark.skipif(BACKEND_OPTIONS is None, reason="this torch has no options of backends")
@pytest.mark.parametrize("backend", ["col", *(ORDERS if has_it() else [])])
def test_options(backend):
    assert on_fresh(2, options, backend) == [True] * 2


# ---- split_group


def split(rank, size, store, backend):
    joined(rank, size, store, backend)
    mine = dist.split_group(split_ranks=[[2, 0], [1]], group_desc="halves")
    assert (dist.get_rank(mine), dist.get_world_size(mine)) == {0: (1, 2), 1: (0, 1), 2: (0, 2)}[rank]
    assert summed(mine, float(rank)) == {0: 2, 1: 1, 2: 2}[rank]
    assert dist.get_process_group_ranks(mine) == {0: [2, 0], 1: [1], 2: [2, 0]}[rank]
    assert dist.get_backend_config(mine) == dist.get_backend_config()
    again = dist.split_group(split_ranks=[[2, 0], [1]], timeout=datetime.timedelta(seconds=7))
    assert summed(again) == summed(mine) and again is not mine
    if backend != "col" and rank == 2:  # in no list
        with pytest.raises(RuntimeError, match="in none of the lists"):
            dist.split_group(split_ranks=[[0, 1]])
    if rank < 2 or backend == "col":
        some = dist.split_group(split_ranks=[[0, 1]])
        assert (some is dist.GroupMember.NON_GROUP_MEMBER) == (rank == 2)
    if rank < 2:
        inner = dist.split_group(some, [[1], [0]])
        assert summed(some) == 2 and summed(inner) == 1
    dist.destroy_process_group(mine)
    assert summed(None) == 3
    dist.destroy_process_group()
    return True


@pytest.mark.skipif(not can_split(), reason="this torch splits groups of GPUs only")
@pytest.mark.parametrize("backend", ["col", *ORDERS])
def test_split_group(backend):
    assert on_fresh(3, split, backend) == [True] * 3


def split_by_itself(groups):
    """Calls of the group's own, which have no name: the same on all ranks, also after a group that one of them is not in."""
    for ranks in ([0, 1], [1, 2], [2, 0, 1]):
        group = groups.col.split_group(ranks)
        assert (group is None) == (groups.rank not in ranks)
        if group is not None:
            assert group.group.allreduce(np.ones(1))[0] == len(ranks)
            group.shutdown()


def test_split_by_the_group_itself():
    members.run(3, split_by_itself)


def bound(rank, size, store):
    """A group that is bound to the CPU: torch then splits for every new group."""
    import col.torch  # noqa: F401

    dist.init_process_group("col", init_method=f"file://{store}/torch", rank=rank, world_size=size, timeout=LIMIT,
                            device_id=torch.device("cpu:0"))
    group = dist.new_group([0, 1])
    assert rank == 2 or summed(group) == 2
    assert summed(dist.split_group(split_ranks=[[0], [1, 2]])) == (1 if rank == 0 else 2)
    dist.destroy_process_group()
    return True


@pytest.mark.skipif(not can_split(), reason="this torch splits groups of GPUs only")
def test_a_group_bound_to_the_cpu():
    with tempfile.TemporaryDirectory() as store:
        assert [result for _, result in members.fresh(3, bound, 3, store)] == [True] * 3


def no_split(groups):
    with pytest.raises(RuntimeError, match="split"):
        dist.split_group(split_ranks=[[0], [1]])


@pytest.mark.skipif(can_split() or not hasattr(dist, "split_group"), reason="this torch splits them, or has no split_group")
def test_no_split():
    members.run(2, no_split)


# ---- shrink_group


def shrunk(rank, size, store, dies):
    world = joined(rank, size, store, "col")
    side = dist.new_group()
    assert summed(side) == size
    if rank == 1:
        if dies:
            os._exit(9)
        return True
    if dies:
        with pytest.raises(col.Error):
            summed(world)
    smaller = dist.shrink_group([1])
    del world
    gc.collect()  # the old group, with which the job must not end
    assert smaller is dist.group.WORLD and dist.get_world_size() == size - 1 and dist.get_rank() == (rank + 1) // 2
    assert summed(None, float(rank)) == sum(range(size)) - 1
    assert dist.get_backend() == "col"
    objects = [None] * (size - 1)
    dist.all_gather_object(objects, rank)
    assert objects == [each for each in range(size) if each != 1]
    dist.destroy_process_group()
    return True


@needs_shrink
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("dies", [False, True])
def test_shrink_group(size, dies):
    with tempfile.TemporaryDirectory() as store:
        outcomes = members.fresh(size, shrunk, size, store, dies)
    assert [outcomes[rank] for rank in range(size) if rank != 1] == [(0, True)] * (size - 1)


def collected(rank, size, store):
    """The backend's own part of it, for a torch that has no shrink_group()."""
    from col.torch import process_group

    class Absent:
        of = staticmethod(lambda group: group)

        def __bool__(self):
            return False

    joined(rank, size, store, "col")
    old = process_group.own_of(dist.group.WORLD)
    if rank == 1:
        return True
    process_group.STAND_IN = Absent()
    new = old.shrink([1])
    left = weakref.ref(old)
    del old
    dist.destroy_process_group()
    gc.collect()
    return left() is None, new.group.allreduce(np.ones(1))[0]


@pytest.mark.skipif(CAN_SHRINK, reason="test_shrink_group does it")
def test_the_job_goes_on_with_the_smaller_group():
    with tempfile.TemporaryDirectory() as store:
        outcomes = members.fresh(3, collected, 3, store)
    assert [outcomes[rank] for rank in (0, 2)] == [(0, (True, 2.0))] * 2


def shrunk_beside(groups):
    """Another group than the default one, which goes on."""
    if dist.is_initialized():
        group = dist.new_group()
        if groups.rank < 2:
            smaller = dist.shrink_group([2], group)
            assert summed(smaller) == 2 and dist.get_rank(smaller) == groups.rank
        else:
            dist.destroy_process_group(group)
        assert summed(None) == 3
        if groups.rank < 2:
            dist.destroy_process_group(smaller)


@needs_shrink
def test_shrink_a_group_of_several():
    members.run(3, shrunk_beside)


# ---- Memory


def allocated(groups):
    backend = groups.col._get_backend(torch.device("cpu"))
    assert backend.supports_tensor_alloc(torch.device("cpu")) and not backend.supports_tensor_alloc(torch.device("cuda"))
    places = set()
    for _ in range(6):
        for dtype in (torch.float32, torch.bfloat16, torch.int8):
            x = backend.allocate_tensor(1000, dtype=dtype, device=torch.device("cpu"))
            assert x.dtype == dtype and x.shape == (1000,) and x.is_contiguous()
            x.fill_(groups.rank + 1)
            dist.all_reduce(x)
            assert (x == 3).all()
            places.add((dtype, x.data_ptr()))
            del x
    assert len(places) == 3, "a block is used again"
    # A rank that frees later than another: neither waits for the other's block.
    held = backend.allocate_tensor(10, dtype=torch.float32)
    kept = held if groups.rank == 0 else None
    del held
    other = backend.allocate_tensor(10, dtype=torch.float32)
    assert kept is None or kept.data_ptr() != other.data_ptr()
    # A program's default device is no matter.
    with mock.patch.object(torch, "tensor", lambda values: torch.empty(len(values), device="meta")):
        assert backend.allocate_tensor(10, dtype=torch.float32).shape == (10,)
    with pytest.raises(col.Unavailable, match="share no memory"):
        backend.allocate_tensor(10, dtype=torch.float32, device=torch.device("cuda"))


def test_memory():
    members.run(2, allocated)


# ---- NaNs, and parameters


def nans(rank, size, store):
    os.environ["TORCH_DIST_NAN_CHECK"] = "1"
    joined(rank, size, store, "col")
    nan = torch.tensor([1.0, float("nan")])
    sparse = torch.sparse_coo_tensor([[0, 2]], nan, (3,))
    for call in (lambda: dist.all_reduce(nan), lambda: dist.all_reduce(sparse),
                 lambda: dist.all_gather([torch.zeros(2) for _ in range(size)], nan), lambda: dist.send(nan, 1 - rank),
                 lambda: dist.reduce_scatter_tensor(torch.zeros(1), nan) if size == 2 else dist.all_reduce(nan)):
        with pytest.raises(col.InvalidArgument, match=f"element 1 of what rank {rank} gives is NaN"):
            call()
    into = nan.clone()
    dist.broadcast(torch.ones(2) if rank == 0 else into, 0)  # what is written may be anything
    assert rank == 0 or into.tolist() == [1, 1]
    counts = torch.ones(3, dtype=torch.int64)
    dist.all_reduce(counts)
    dist.destroy_process_group()
    return True


def test_nans_are_refused_where_torch_is_told_to():
    with tempfile.TemporaryDirectory() as store:
        assert [result for _, result in members.fresh(2, nans, 2, store)] == [True] * 2


def verified(groups):
    parameters = [torch.zeros(3, 4), torch.zeros(2)]
    dist._verify_params_across_processes(groups.col, parameters, None)
    with pytest.raises(RuntimeError, match="same model across all ranks"):
        dist._verify_params_across_processes(groups.col, parameters[groups.rank :], None)


def test_verify_params():
    members.run(2, verified)


def missing(rank, size, store, backend):
    joined(rank, size, store, backend)
    assert not dist._supports_window() and (backend != "col" or not dist._supports_reconfigure())
    with pytest.raises(NotImplementedError), dist._time_estimator():
        pass
    if backend == "col":
        for call, words in ((dist._new_window, "no one-sided calls"), (dist._get_reconfigure_handle, "takes in no new ranks"),
                            (lambda: dist.group.WORLD.merge_remote_group(None, 1, LIMIT), "no groups over several jobs")):
            with pytest.raises(col.Unavailable, match=words):
                call()
    dist.destroy_process_group()
    return True


@pytest.mark.skipif(not hasattr(dist, "_supports_window"), reason="this torch does not ask for them")
@pytest.mark.parametrize("backend", ["col", ORDERS[0]])
def test_what_is_missing_says_so(backend):
    assert on_fresh(2, missing, backend) == [True] * 2
