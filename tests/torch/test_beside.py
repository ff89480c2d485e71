"""Backend col for one device, beside another backend: "cpu:col,cuda:nccl". Gloo takes NCCL's place on machines without GPUs."""

import datetime
import inspect
import os
import tempfile

import pytest
import torch
import torch.distributed as dist

import calls
import members
import trial

LIMIT = datetime.timedelta(seconds=30)


def has_it():
    """Looks whether this torch tells a backend of the group that it is made for, and lets it be written in Python."""
    import col.torch  # noqa: F401
    from col.torch.process_group import STAND_IN

    made = inspect.getsource(dist.distributed_c10d._new_process_group_helper)
    return STAND_IN is not None and ".process_group =" in made


pytestmark = pytest.mark.skipif(not has_it(), reason="this torch has one backend in the place of both")
ORDERS = ["cpu:col,cuda:gloo", "cuda:gloo,cpu:col"]


def joined(rank, size, store, backend):
    import col.torch  # noqa: F401

    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=f"file://{store}/torch", rank=rank, world_size=size, timeout=LIMIT)
    return dist.group.WORLD


def own(group):
    from col.torch.process_group import own_of

    return own_of(group)


def calls_counted(rank, size, store, backend):
    """Each call is col's: its operations are counted by col's group, and Gloo's sequence does not move."""
    world = joined(rank, size, store, backend)
    config = dist.get_backend_config()
    assert sorted(str(config).split(",")) == ["cpu:col", "cuda:gloo"], config
    assert own(world) is not None and type(world) is dist.ProcessGroup
    before = own(world)._get_sequence_number_for_group()
    for call in calls.REDUCTIONS + calls.OTHERS:
        for way in ("sync", "wait", "then"):  # is_completed() stays false: C++ has put another Work around it
            one = trial.Trial(world, rank, size, 7, way=way)
            trial.check(call, one, call(one, 15))
    assert own(world)._get_sequence_number_for_group() >= before + 3 * len(calls.REDUCTIONS + calls.OTHERS)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": each} for each in range(size)]
    dist.barrier()
    dist.monitored_barrier()
    if size > 1:
        messages = [dist.P2POp(dist.isend, torch.full((3,), float(rank)), (rank + 1) % size),
                    dist.P2POp(dist.irecv, torch.zeros(3), (rank - 1) % size)]
        for work in dist.batch_isend_irecv(messages):
            work.wait()
        assert messages[1].tensor.tolist() == [float((rank - 1) % size)] * 3
    group = dist.new_group(list(range(size)), backend=backend)
    assert own(group)._job is own(world)._job
    x = torch.ones(3)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [size] * 3
    dist.destroy_process_group()
    return True


def trained(rank, size, store, backend):
    joined(rank, size, store, backend)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4))
    torch.manual_seed(rank)
    model(torch.randn(5, 8)).pow(2).mean().backward()
    gradient = next(model.parameters()).grad.clone()
    if backend != "gloo":
        import col.torch

        model.register_comm_hook(None, col.torch.allreduce_hook)
        torch.manual_seed(rank)
        model.zero_grad()
        model(torch.randn(5, 8)).pow(2).mean().backward()
        assert torch.equal(next(model.parameters()).grad, gradient)
    dist.destroy_process_group()
    return gradient.tolist()


def with_nan(rank, size, store, backend):
    """torch's own check fires where calls go through its dispatcher."""
    os.environ["TORCH_DIST_NAN_CHECK"] = "1"
    joined(rank, size, store, backend)
    with pytest.raises(RuntimeError, match="(?i)nan"):
        dist.all_reduce(torch.tensor([float("nan")]))
    dist.destroy_process_group()
    return True


def recorded(rank, size, store, backend):
    """torch's flight recorder has col's calls."""
    world = joined(rank, size, store, backend)
    dist.all_reduce(torch.ones(5))
    found = torch._C._distributed_c10d._dump_fr_trace_json(backend="col")
    assert b"all_reduce" in (found if isinstance(found, bytes) else found.encode()), found
    assert world is dist.group.WORLD
    dist.destroy_process_group()
    return True


def on_fresh(size, function, backend):
    with tempfile.TemporaryDirectory() as store:
        outcomes = members.fresh(size, function, size, store, backend)
    assert [code for code, _ in outcomes] == [0] * size
    return [result for _, result in outcomes]


@pytest.mark.parametrize("backend", ORDERS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_calls(size, backend):
    assert on_fresh(size, calls_counted, backend) == [True] * size


@pytest.mark.parametrize("backend", ORDERS)
def test_ddp(backend):
    on_col, on_gloo = on_fresh(2, trained, backend), on_fresh(2, trained, "gloo")
    assert on_col == on_gloo


@pytest.mark.skipif(not hasattr(torch._C._distributed_c10d, "NanCheckHook"), reason="torch has it from 2.14 on")
def test_torchs_own_nan_check():
    on_fresh(2, with_nan, ORDERS[0])


@pytest.mark.skipif(not hasattr(torch._C._distributed_c10d, "FlightRecorderHook"), reason="torch has it from 2.15 on")
def test_torchs_flight_recorder():
    on_fresh(2, recorded, ORDERS[0])
