"""Collectives that the driver calls, on tensors that live on actors."""

import contextlib
import os
import random
import time

import numpy as np
import pytest
import ray
import torch
from ray.experimental.collective import create_collective_group as create_group_of_rays

import col
import col.ray as collective
import holders as actors
import refs_example
from workers import LIMIT

WITHIN = 1.0  # seconds: what a driver can see is refused, and a death is noticed


def test_the_example(cluster, capsys):
    refs_example.main()
    assert capsys.readouterr().out.endswith("sum: 3.0\n")


@pytest.fixture(scope="module")
def five(cluster):
    return actors.start(5)


@pytest.fixture(scope="module")
def others(five):
    """Two that are not in the group, and die in the end."""
    return five[3:]


@pytest.fixture(scope="module")
def holders(five):
    """Three actors in group 'trio'. Ranks do not follow their order."""
    three = five[:3]
    collective.create_collective_group(three, 3, [2, 0, 1], group_name="trio", timeout=LIMIT)
    yield [three[1], three[2], three[0]]  # by rank
    collective.destroy_collective_group("trio")


def held(holders, name, values):
    """Holder r holds values[r] by the name. The refs, in any order."""
    made = [holder.hold.remote(name, value) for holder, value in zip(holders, values)]
    return random.sample(made, len(made))


def check(holders, name, wanted):
    """Whether holder r has wanted[r] by the name: tensors, or lists of them."""
    for rank, (found, right) in enumerate(zip(ray.get([holder.read.remote(name) for holder in holders]), wanted)):
        for one, other in zip(found, right) if isinstance(right, list) else [(found, right)]:
            assert one.dtype == other.dtype and torch.equal(one, other), f"rank {rank}: {found} instead of {right}"


def tensors(count=3, dtype=torch.float32):
    return [torch.randint(1, 9, (4, 2)).to(dtype) for _ in range(count)]


def lists(count=3):
    return [tensors() for _ in range(count)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("op", ["sum", "max"])
def test_allreduce(holders, dtype, op):
    x = tensors(dtype=dtype)
    collective.allreduce_refs(held(holders, "x", x), "trio", op)
    result = sum(x) if op == "sum" else torch.maximum(torch.maximum(x[0], x[1]), x[2])
    check(holders, "x", [result] * 3)


def test_rays_own_operators(holders):
    x = tensors()
    collective.allreduce_refs(held(holders, "x", x), "trio", ray.util.collective.types.ReduceOp.PRODUCT)
    check(holders, "x", [x[0] * x[1] * x[2]] * 3)


def test_reduce_and_broadcast(holders):
    x = tensors()
    collective.reduce_refs(held(holders, "x", x), 1, "trio")
    check(holders, "x", [x[0], sum(x), x[2]])
    x = tensors()
    collective.broadcast_refs(held(holders, "x", x), 2, "trio")
    check(holders, "x", [x[2]] * 3)


def test_allgather_and_reducescatter(holders):
    x, y = tensors(), lists()
    collective.allgather_refs(held(holders, "y", y), held(holders, "x", x), "trio")
    check(holders, "y", [x] * 3)
    x, y = tensors(), lists()
    collective.reducescatter_refs(held(holders, "x", x), held(holders, "y", y), "trio")
    check(holders, "x", [y[0][rank] + y[1][rank] + y[2][rank] for rank in range(3)])


def test_gather_and_scatter(holders):
    x, y = tensors(), tensors()
    collective.gather_refs(held(holders, "x", x), holders[2].hold.remote("y", y), 2, "trio")
    check(holders[2:], "y", [x])
    x, y = tensors(), tensors()
    collective.scatter_refs(held(holders, "x", x), holders[1].hold.remote("y", y), 1, "trio")
    check(holders, "x", y)


def test_alltoall(holders):
    x, y = lists(), lists()
    collective.alltoall_refs(held(holders, "y", y), held(holders, "x", x), "trio")
    check(holders, "y", [[x[source][rank] for source in range(3)] for rank in range(3)])


def test_send_and_recv(holders):
    for function in (collective.send_ref, lambda src, dst, group: collective.recv_ref(dst, src, group)):
        x = tensors(2)
        function(holders[2].hold.remote("x", x[0]), holders[0].hold.remote("x", x[1]), "trio")
        check(holders[:1], "x", x[:1])


def test_several_tensors_in_one_ref(holders):
    x = [[torch.full((2, 3), float(rank)), torch.full((5,), rank, dtype=torch.int32)] for rank in range(3)]
    collective.allreduce_refs(held(holders, "x", x), "trio")
    check(holders, "x", [[torch.full((2, 3), 3.0), torch.full((5,), 3, dtype=torch.int32)]] * 3)


def test_memory_of_any_shape(holders):
    """Not contiguous, of a parameter that requires grad, with no axis, with no element."""
    x = [
        [torch.full((3, 2), float(rank)).t(), torch.full((3,), float(rank), requires_grad=True), torch.tensor(float(rank)),
         torch.empty(0, 3)]
        for rank in range(3)
    ]
    collective.allreduce_refs(held(holders, "x", x), "trio")
    check(holders, "x", [[torch.full((2, 3), 3.0), torch.full((3,), 3.0), torch.tensor(3.0), torch.empty(0, 3)]] * 3)


def test_order_among_the_actors_calls(holders):
    """It sees what calls before it did, and calls after it see what it did."""
    made = [holder.fill.remote("x", 1 << 20, 1.0) for holder in holders]
    for holder in holders:
        holder.run.remote(time.sleep, 0.1)
    for _ in range(3):
        collective.allreduce_refs(made, "trio")
    assert ray.get([holder.read.remote("x") for holder in holders[:1]])[0][-1] == 27


def test_the_transport_may_be_another_one(holders):
    create_group_of_rays(holders, "gloo")
    x = tensors()
    made = [holder.hold.options(tensor_transport="gloo").remote("x", value) for holder, value in zip(holders, x)]
    collective.allreduce_refs(made, "trio")
    check(holders, "x", [sum(x)] * 3)


def bytes_stored():
    """The memory that Ray's object store has ever written to: it keeps what an object has left for the next ones."""
    raylet = f"/proc/{ray._private.worker._global_node.all_processes['raylet'][0].process.pid}/fd"
    files = [os.path.join(raylet, name) for name in os.listdir(raylet)]
    stores = [os.stat(file).st_blocks * 512 for file in files if "/plasma" in os.readlink(file)]
    assert stores
    return sum(stores)


def test_nothing_in_the_object_store(holders):
    size = 16 << 20  # far more than what earlier tests have put there
    before = bytes_stored()
    x = [holder.fill.remote("x", size // 4, 1.0) for holder in holders]
    y = [holder.fill.remote("y", size // 4, 1.0) for holder in holders]
    collective.allreduce_refs(x, "trio")
    collective.broadcast_refs(y, 1, "trio")
    collective.send_ref(x[0], y[1], "trio")
    received = holders[0].recv_ref(x[1])
    assert bytes_stored() - before < size / 100
    before = bytes_stored()
    assert ray.get(received, _use_object_store=True)[-1] == 3  # this one takes that way
    assert bytes_stored() - before > size / 2  # less than all of it, when Ray drops what earlier tests left meanwhile


# ---- What is wrong


@contextlib.contextmanager
def refused(kind, words, rank=None, within=WITHIN):
    began = time.monotonic()
    with pytest.raises(kind, match=words) as caught:
        yield
    assert time.monotonic() - began < within
    assert isinstance(caught.value, col.Error) and (rank is None or caught.value.rank == rank), caught.value


def good(holders):
    return [holder.hold.remote("x", torch.ones(3)) for holder in holders]


def with_last(holders, ref):
    return [*good(holders)[:2], ref]


WRONG = {
    "ordinary": (col.InvalidArgument, r'put @ray.method\(tensor_transport="COL"\)', None,
                 lambda h, s: with_last(h, h[2].ordinary.remote())),
    "no ref": (col.InvalidArgument, "not Tensor", None, lambda h, s: with_last(h, torch.ones(3))),
    "no member": (col.InvalidArgument, "no member of group 'trio'", None,
                  lambda h, s: with_last(h, s.hold.remote("x", torch.ones(3)))),
    "twice": (col.InvalidArgument, "two refs are of tensors of rank 0", 0, lambda h, s: with_last(h, good(h)[0])),
    "missing": (col.InvalidArgument, "no ref is of a tensor of rank 2", 2, lambda h, s: good(h)[:2]),
    "shape": (col.Mismatch, r"float32\[4\] on rank 2.*float32\[3\]", 2,
              lambda h, s: with_last(h, h[2].hold.remote("x", torch.ones(4)))),
    "dtype": (col.Mismatch, r"int64\[3\] on rank 2.*float32\[3\]", 2,
              lambda h, s: with_last(h, h[2].hold.remote("x", torch.ones(3, dtype=torch.int64)))),
    "number": (col.Mismatch, "2 tensors on rank 2.* 1 tensors", 2,
               lambda h, s: with_last(h, h[2].hold.remote("x", [torch.ones(3), torch.ones(3)]))),
    "no tensor": (col.InvalidArgument, "0 torch tensors", 2,
                  lambda h, s: with_last(h, h[2].hold.remote("x", np.ones(3)))),
}


@pytest.mark.parametrize("case", WRONG)
def test_refused_before_any_rank_starts(holders, others, case):
    kind, words, rank, make = WRONG[case]
    wrong = make(holders, others[0])
    with refused(kind, words, rank):
        collective.allreduce_refs(wrong, "trio")
    collective.allreduce_refs(good(holders), "trio")  # it was no harm
    check(holders, "x", [torch.full((3,), 3.0)] * 3)


def test_other_wrong_calls(holders):
    with refused(col.NotInitialized, "no group 'nobody'"):
        collective.allreduce_refs(good(holders), "nobody")
    with refused(col.InvalidArgument, "must be of a tensor on rank 1, but it lives on rank 0"):
        collective.gather_refs(good(holders), holders[0].hold.remote("y", tensors()), 1, "trio")
    with refused(col.InvalidArgument, "holds 2 torch tensors, not 3", 1):
        collective.allgather_refs(held(holders, "y", [tensors(3), tensors(2), tensors(3)]), good(holders), "trio")
    with refused(col.InvalidArgument, "both tensors live on rank 1"):
        collective.send_ref(holders[1].hold.remote("x", torch.ones(3)), holders[1].hold.remote("y", torch.ones(3)), "trio")
    with refused(col.InvalidArgument, "root 7|rank 7"):
        collective.broadcast_refs(good(holders), 7, "trio")
    with refused(col.InvalidArgument, "one of sum"):
        collective.allreduce_refs(good(holders), "trio", "add")
    collective.allreduce_refs(good(holders), "trio")
    check(holders, "x", [torch.full((3,), 3.0)] * 3)


def test_a_method_that_fails(holders):
    made = good(holders)
    with pytest.raises(ValueError, match="no tensor today"):
        collective.allreduce_refs([*made[:2], holders[2].fail.remote()], "trio")
    collective.allreduce_refs(good(holders), "trio")


def test_a_busy_actor_is_named(holders, tmp_path):
    pair = holders[:2]
    collective.create_collective_group(pair, 2, [0, 1], group_name="busy", timeout=LIMIT)
    collective.allreduce_refs(good(pair), "busy")
    made = good(pair)
    os.mkfifo(tmp_path / "reads")
    pair[1].run.remote((tmp_path / "reads").read_text)
    try:
        with refused(col.Timeout, "rank 1", 1, within=0.3 + 1.5 + WITHIN):
            collective.allreduce_refs(made, "busy", timeout=0.3)
    finally:
        (tmp_path / "reads").write_text("")
    collective.destroy_collective_group("busy")
    collective.allreduce_refs(good(holders), "trio")  # other groups of the same actors go on


# ---- Methods of handles


def test_receiving_into_a_new_tensor(holders):
    """The example of the documents that this project began with: A.recv_ref(B.get_buffer.remote())."""
    A, B = holders[:2]
    x = {"a": torch.arange(6).view(2, 3), "b": [torch.tensor(7.0)]}
    received = A.recv_ref(B.hold.remote("x", x))
    found = ray.get(A.take.remote(received))
    assert torch.equal(found["a"], x["a"]) and found["b"] == x["b"]
    sent = B.send_ref(B.hold.remote("x", torch.ones(2)), A)
    assert torch.equal(ray.get(A.take.remote(sent)), torch.ones(2))
    again = B.recv_ref(sent)  # what was received can be passed on
    assert torch.equal(ray.get(B.take.remote(again)), torch.ones(2))


def test_receiving_into_a_tensor(holders):
    A, B = holders[:2]
    received = A.recv_ref(B.hold.remote("x", torch.ones(2)), A.hold.remote("y", torch.zeros(2)), "trio")
    check([A], "y", [torch.ones(2)])
    B.send_ref(B.hold.remote("x", torch.full((2,), 5.0)), received, "trio")
    check([A], "y", [torch.full((2,), 5.0)])


def test_wrong_receivers(holders):
    A, B = holders[:2]
    with refused(col.InvalidArgument, "lives on .* already"):
        A.recv_ref(good(holders)[0])
    with refused(col.InvalidArgument, "does not live on"):
        A.recv_ref(good(holders)[1], good(holders)[2], "trio")
    with refused(col.InvalidArgument, "does not live on"):
        A.send_ref(good(holders)[1], B)
    with refused(col.InvalidArgument, "tensor_transport"):
        A.recv_ref(B.ordinary.remote())
    with pytest.raises(ValueError, match="no tensor today"):
        A.recv_ref(B.fail.remote())


def test_an_actors_own_method_wins(cluster):
    @ray.remote(num_cpus=0)
    class Own:
        def recv_ref(self, x):
            return x + 1

    assert ray.get(Own.remote().recv_ref.remote(1)) == 2


def do_send(rank, elements):
    collective.send(torch.ones(elements), rank, "lone", timeout=0.5)


def test_a_lone_send_names_the_rank_that_does_not_receive(holders):
    """The anti-pattern of those documents: ray.get([a.do_send.remote(target_rank=1)])."""
    for joined in (False, True):
        collective.create_collective_group(holders[:2], group_name="lone", timeout=1 if not joined else LIMIT)
        if joined:
            ray.get([holder.run.remote(collective.barrier, "lone") for holder in holders[:2]], timeout=LIMIT)
        with pytest.raises(col.Timeout, match="rank 1 (did not come|may not have entered it)") as caught:
            ray.get(holders[0].run.remote(do_send, 1, 1 << 20), timeout=LIMIT)
        assert joined or holders[1]._actor_id.hex() in str(caught.value)
        collective.destroy_collective_group("lone")


# ---- Actors that die


def test_dead_actors_are_named(holders, others):
    late = [holders[0], others[0], holders[1]]
    collective.create_collective_group(late, group_name="before", timeout=LIMIT)
    made = good(late)
    ray.wait(made, num_returns=3, timeout=LIMIT)
    actors.kill(others[0])
    with refused(col.PeerLost, others[0]._actor_id.hex(), 1):
        collective.allreduce_refs(made, "before")

    within = [holders[0], others[1], holders[1]]
    collective.create_collective_group(within, group_name="within", timeout=LIMIT)
    collective.allreduce_refs(good(within), "within")
    made = good(within)
    ray.wait(made, num_returns=3, timeout=LIMIT)
    others[1].run.remote(time.sleep, LIMIT)
    holders[2].run.remote(kill_after, 0.5, others[1])
    with refused(col.PeerLost, others[1]._actor_id.hex(), 1, within=0.5 + 1.5 + WITHIN):
        collective.allreduce_refs(made, "within")
    for name in ("before", "within"):
        collective.destroy_collective_group(name)
    collective.allreduce_refs(good(holders), "trio")


def kill_after(seconds, actor):
    time.sleep(seconds)
    ray.kill(actor)
