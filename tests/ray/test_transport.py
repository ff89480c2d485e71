"""Tensors that go from actor to actor by Ray's tensor transport "COL"."""

import os
import time

import pytest
import ray
import torch

import col
import col.ray as collective
import holders as actors
from col.ray import direct, transport
from workers import LIMIT


@pytest.fixture(scope="module")
def six(cluster):
    return actors.start(6, max_restarts=1, max_task_retries=-1)


@pytest.fixture(scope="module")
def holders(six):
    return six[:3]


@pytest.fixture(scope="module")
def others(six):
    """Two that die, and one that starts again."""
    return six[3:]


def get(ref):
    return ray.get(ref, timeout=LIMIT)


VALUES = {
    "types": [
        torch.arange(-6, 6).to(dtype).view(3, 4)
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16,
                      torch.int32, torch.int64, torch.bool, torch.complex64)
    ],
    "shapes": [torch.tensor(3.5), torch.empty(0), torch.empty(2, 0, 3), torch.ones(1, 1, 1), torch.zeros(7)],
    "not contiguous": [
        torch.arange(12).view(3, 4).t(), torch.arange(12)[::3], torch.ones(1).expand(4), torch.ones(4, 4)[1:, 2:]
    ],
    "of a parameter": [torch.ones(3, requires_grad=True)],
    "nested": {"weights": [torch.ones(2), torch.zeros(3)], "step": 7, "name": "x" * 1000},
    "no tensor": {"step": 7},
    "a thousand": [torch.full((rank % 5,), float(rank)) for rank in range(1000)],
    "a large one": torch.arange(3 << 20),
}


def same(one, other):
    if isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    if isinstance(other, (list, dict)):
        pairs = zip(one, other) if isinstance(other, list) else ((one[key], other[key]) for key in other)
        return len(one) == len(other) and all(same(*pair) for pair in pairs)
    return one == other


@pytest.mark.parametrize("case", VALUES)
def test_any_value(holders, case):
    source, destination, _ = holders
    ref = source.hold.remote(case, VALUES[case])
    for _ in range(2):  # the ref stays good
        assert same(get(destination.take.remote(ref)), VALUES[case])
    assert same(get(source.take.remote(ref)), VALUES[case])  # and its own actor has it at once


def test_what_cannot_be_moved(holders):
    with pytest.raises(col.InvalidArgument, match="to_dense"):
        get(holders[0].hold.remote("x", torch.ones(3).to_sparse()))


class Plain:
    """Has no method that Ray's decorator says to be of a transport."""

    def take(self, value):
        return value


def test_an_actor_without_a_transport(holders):
    """It is refused before anything is sent; the same class takes tensors where it asks for a transport."""
    plain = ray.remote(num_cpus=0)(Plain).remote()
    able = ray.remote(num_cpus=0, enable_tensor_transport=True)(Plain).options(name="able").remote()
    known, unknown = holders[0].fill.remote("x", 10, 1.0), holders[0].run.remote(time.sleep, 0.1)
    ray.wait([known], timeout=LIMIT, fetch_local=False)
    for ref in known, holders[0].fill.remote("y", 10, 1.0):  # the second one may not have been made yet
        with pytest.raises(col.InvalidArgument, match="Plain.*enable_tensor_transport=True"):
            plain.take.remote(ref)
        for taker in able, ray.get_actor("able"):
            assert get(taker.take.remote(ref))[-1] == 1
    assert get(plain.take.remote(unknown)) is None and get(plain.take.remote(3)) == 3  # ordinary values go to any actor
    for actor in plain, able:
        ray.kill(actor)


def has_manager():
    from ray._private.worker import global_worker

    return global_worker._rdt_manager is not None


def test_an_actor_has_one_manager_before_its_first_transfer(cluster):
    """If two threads make one each at the first transfer, one never finds what the other has received."""
    (fresh,) = actors.start(1)
    direct.manager().wait_until_custom_transports_registered(fresh)
    assert get(fresh.run.remote(has_manager))
    ray.kill(fresh)


def test_from_actor_to_actor(holders):
    """Both ways at once, and on from there; what the source has is not changed by what others do with theirs."""
    x, y = holders[0].fill.remote("x", 1 << 18, 1.0), holders[1].fill.remote("y", 1 << 18, 2.0)
    taken = [holders[1].hold.remote("x", x), holders[0].hold.remote("y", y)]
    further = [holders[2].hold.remote(name, ref) for name, ref in zip("xy", taken)]
    get([holder.run.remote(torch.Tensor.zero_, ref) for holder, ref in zip((holders[1], holders[0]), taken)])
    for name, value in (("x", 1.0), ("y", 2.0)):
        assert get(holders[2].read.remote(name))[-1] in (0.0, value)  # zeroed before it was passed on, or after
    assert get(holders[0].read.remote("x"))[-1] == 1 and get(holders[1].read.remote("y"))[-1] == 2
    del further


def test_beside_a_call_of_a_group(holders):
    """The source's own thread waits in a collective meanwhile."""
    waiting, taker, late = holders
    collective.create_collective_group([waiting, taker, late], group_name="three", timeout=LIMIT)
    get([holder.run.remote(collective.barrier, "three") for holder in holders])
    ref = waiting.fill.remote("x", 1 << 20, 3.0)
    call = waiting.run.remote(collective.barrier, "three")
    for _ in range(5):
        assert get(taker.take.remote(ref))[-1] == 3
    assert not ray.wait([call], timeout=0)[0]
    get([call, *(holder.run.remote(collective.barrier, "three") for holder in (taker, late))])
    collective.destroy_collective_group("three")


def drive(source, destination, name):
    for number in range(30):
        assert get(destination.take.remote(source.fill.remote(name, 1000, float(number))))[-1] == number


def test_two_drivers(holders):
    """Their tasks may come in one order to the source, and in another one to the destination."""
    other = holders[2].run.remote(drive, *holders[:2], "x")
    drive(*holders[:2], "y")
    get(other)


def keep_pairs(count):
    transport.KEPT_PAIRS = count


def test_more_peers_than_groups_are_kept(holders):
    get([holder.run.remote(keep_pairs, 1) for holder in holders])
    refs = [holder.fill.remote("x", 1000, float(number)) for number, holder in enumerate(holders)]
    for _ in range(2):
        for number in range(3):
            for other in (1, 2):
                assert get(holders[(number + other) % 3].take.remote(refs[number]))[-1] == number
    get([holder.run.remote(keep_pairs, 64) for holder in holders])


# ---- Actors that die, and transfers that fail


def forget():
    """What the store of this actor's tensors holds."""
    ray._private.worker.global_worker.rdt_manager.rdt_store._rdt_store.clear()


def fails(ref, kind, source):
    """Ray looks at the transfers that run once a second."""
    began = time.monotonic()
    with pytest.raises(kind, match=f"transfer of a tensor from actor {source._actor_id.hex()}"):
        get(ref)
    assert time.monotonic() - began < 4


def test_a_tensor_that_is_gone(holders, others):
    """The transfer fails, whether the two have passed tensors to each other before or not, and both go on."""
    source, destination = others[0], holders[0]
    for _ in range(2):
        ref = source.fill.remote("x", 10, 1.0)
        ray.wait([ref], timeout=LIMIT, fetch_local=False)
        get(source.run.remote(forget))
        fails(destination.take.remote(ref), col.Aborted, source)
        assert get(destination.take.remote(source.fill.remote("x", 10, 3.0)))[-1] == 3


def test_an_actor_that_starts_again(holders, others):
    source, destination = holders[0], others[2]
    ref = source.fill.remote("x", 10, 1.0)
    assert get(destination.take.remote(ref))[-1] == 1
    old = get(destination.run.remote(os.getpid))
    ray.kill(destination, no_restart=False)
    deadline = time.monotonic() + LIMIT
    while get(destination.run.remote(os.getpid)) == old:
        assert time.monotonic() < deadline
    assert get(destination.take.remote(ref))[-1] == 1


def test_actors_that_die(holders, others):
    """The destination hears of it, whether the two have passed tensors to each other before or not. Nobody else dies."""
    refs = [dying.fill.remote("x", 10, 2.0) for dying in others[:2]]
    ray.wait(refs, num_returns=2, timeout=LIMIT, fetch_local=False)
    for dying, ref in zip(others, refs):
        actors.kill(dying)
        fails(holders[0].take.remote(ref), (col.PeerLost, col.Aborted), dying)
        with pytest.raises(ray.exceptions.RayActorError):
            get(dying.take.remote(holders[0].fill.remote("x", 10, 2.0)))
        assert get(holders[0].take.remote(holders[1].fill.remote("x", 10, 3.0)))[-1] == 3
