"""Errors by their names, with what they know."""

import pickle
import re

import numpy as np
import pytest

import col
import processes
import ranks

CLASSES = {
    "invalid_argument": (col.InvalidArgument, ValueError), "not_initialized": (col.NotInitialized, RuntimeError),
    "already_initialized": (col.AlreadyInitialized, RuntimeError), "mismatch": (col.Mismatch, RuntimeError),
    "timeout": (col.Timeout, TimeoutError), "peer_lost": (col.PeerLost, ConnectionError),
    "aborted": (col.Aborted, RuntimeError), "unavailable": (col.Unavailable, RuntimeError),
    "resource": (col.Resource, RuntimeError), "io": (col.IoError, OSError), "internal": (col.Internal, RuntimeError),
}


@pytest.mark.parametrize("code", CLASSES)
def test_classes(code):
    kind, base = CLASSES[code]
    assert issubclass(kind, col.Error) and issubclass(kind, base) and issubclass(kind, RuntimeError)
    error = kind("what happened", 3, 5, "g")
    assert (error.code, error.rank, error.world_rank, error.group, str(error)) == (code, 3, 5, "g", "what happened")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert again == error and type(again) is kind and hash(again) == hash(error)
    assert error != kind("what happened", 3, 5, "h") and error != col.Error("what happened", 3, 5, "g")
    assert error.is_loss == (code == "peer_lost")
    loss = kind("what happened", 3, 5, "g", True)
    assert loss.is_loss and (code == "peer_lost" or loss != error) and pickle.loads(pickle.dumps(loss)) == loss


def mismatch(group):
    own = group.dup()
    with pytest.raises(col.Mismatch, match="odd one|differ") as caught:
        own.allreduce(np.ones(3 if group.rank == 1 else 4), timeout=20)
    error = caught.value
    with pytest.raises(col.Aborted):
        own.barrier()
    own.destroy()
    return error.rank, error.world_rank, error.group == own_name(error)


def own_name(error):
    return error.group if error.group.startswith("default") else None


def test_mismatch():
    assert ranks.run(3, mismatch) == [(1, 1, True)] * 3


def timeout(group):
    own = group.dup()
    if group.rank == 1:
        group.barrier()  # the other gives up meanwhile
        own.destroy()
        return "waited"
    with pytest.raises(TimeoutError, match="timed out") as caught:
        own.allreduce(np.ones(3), timeout=0.3)
    assert isinstance(caught.value, col.Timeout) and caught.value.rank == 1
    group.barrier()
    own.destroy()
    return "timed out"


def test_timeout():
    assert ranks.run(2, timeout) == ["timed out", "waited"]


@pytest.mark.ranks(2)
def test_invalid_arguments(group):
    with pytest.raises(col.InvalidArgument, match="root 7"):
        group.broadcast(np.ones(3), root=7)
    with pytest.raises(col.InvalidArgument, match="fork|elements"):
        group.allreduce(np.ones(3), np.ones(4))
    with pytest.raises(col.InvalidArgument, match="float32|dtype"):
        group.allreduce(np.ones(3), np.ones(3, np.float32))
    with pytest.raises(col.InvalidArgument, match="algorithm"):
        group.allreduce(np.ones(3), algorithm="magic")
    with pytest.raises(col.InvalidArgument, match="one of sum"):
        group.allreduce(np.ones(3), op="add")
    with pytest.raises(col.InvalidArgument, match="op must be"):
        group.allreduce(np.ones(3), op=3)
    with pytest.raises(col.InvalidArgument, match="bitwise"):
        group.allreduce(np.ones(3), op="band")
    with pytest.raises(col.InvalidArgument, match="above zero"):
        group.allreduce(np.ones(3), timeout=0)
    with pytest.raises(col.InvalidArgument, match="cut into"):
        group.reduce_scatter(np.ones(2 * group.size + 1))
    with pytest.raises(col.InvalidArgument, match="negative"):
        group.allgatherv(np.ones(1), [-1, 2])
    with pytest.raises(col.InvalidArgument, match="one count per rank"):
        group.allgatherv(np.ones(1), [1])
    if group.rank == 1:
        with pytest.raises(col.InvalidArgument, match="only the root knows"):
            group.scatter()
    with pytest.raises(col.InvalidArgument, match="rank"):
        group.send(np.ones(1), 99)
    with pytest.raises(col.InvalidArgument, match="batch is a list"):
        group.batch([np.ones(1)])
    group.barrier()  # none of these broke it


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda g: g.allreduce(), "missing required argument: 'x'"),
        (lambda g: g.allreduce(np.ones(1), opp="sum"), "unexpected keyword argument 'opp'"),
        (lambda g: g.allreduce(np.ones(1), None, "sum"), "at most 2 positional"),
        (lambda g: g.allreduce(np.ones(1), x=np.ones(1)), "multiple values for argument 'x'"),
        (lambda g: g.allgather(np.ones(1), op="sum"), "unexpected keyword argument 'op'"),
        (lambda g: g.allreduce(np.ones(1), root=0), "unexpected keyword argument 'root'"),
        (lambda g: g.allgatherv(np.ones(1)), "missing required argument: 'counts'"),
        (lambda g: g.broadcast(np.ones(1), root="a"), "integer"),
        (lambda g: g.allreduce(np.ones(1), timeout="soon"), "number|real"),
        (lambda g: g.allgatherv(np.ones(1), 3), "counts must be a list"),
    ],
)
def test_calls_that_python_refuses(call, words):
    with pytest.raises(TypeError, match=words):
        call(col.init())


def test_not_initialized():
    code, out, err = processes.alone(
        """
        import col
        assert not col.is_group_initialized() and col.get_rank() == -1 and col.get_collective_group_size() == -1
        assert col.destroy_collective_group("x") is False
        try:
            col.get_group("x")
        except col.NotInitialized as error:
            assert error.group == "x"
            print("good")
        group = col.init()
        try:
            col.init_collective_group(1, 0)
        except col.AlreadyInitialized:
            print("good")
        group.destroy()
        try:
            group.barrier()
        except col.NotInitialized:
            print("good", group)
        """
    )
    assert code == 0 and out.count("good") == 3, err


@pytest.mark.parametrize(
    "arguments, words",
    [
        ("rank=0", "belong together"), ("rank=2, world_size=2, store='file:///tmp/x'", "ranks count from 0"),
        ("rank=0, world_size=2", "need a store="), ("rank=0, world_size=2, store='http://x'", "scheme"),
        ("rank=0, world_size=2, store='tcp://nowhere', token='t'", "host"), ("backend='smoke'", "auto|shm"),
        ("timeout=-1", "above zero"),
    ],
)
def test_init_refuses(arguments, words):
    code, out, err = processes.alone(f"import col; col.init({arguments})")
    assert code == 1 and "col.errors.InvalidArgument: invalid_argument" in err
    assert re.search(words, err), err


def test_peer_lost():
    code, out, err = processes.run(
        2,
        """
        import os, numpy as np, col
        world = col.init()
        world.barrier()
        if world.rank == 1:
            os._exit(3)
        try:
            world.allreduce(np.ones(3))
        except ConnectionError as error:
            assert isinstance(error, col.PeerLost) and error.rank == 1 and error.code == "peer_lost"
            print("told:", error)
        """,
    )
    assert code == 3 and "told: peer_lost" in out, (out, err)


def test_shrink_after_a_loss():
    code, out, err = processes.run(
        3,
        """
        import os, numpy as np, col
        world = col.init()
        world.barrier()
        if world.rank == 1:
            os._exit(3)
        try:
            world.allreduce(np.ones(3))
        except col.PeerLost as error:
            rest = world.shrink([error.rank])
            print("left:", rest.allreduce(np.ones(1))[0], rest.ranks)
        """,
        "--keep-going",
    )
    assert out.count("left: 2.0 [0, 2]") == 2, (code, out, err)
