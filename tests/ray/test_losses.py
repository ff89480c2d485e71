"""Actors that die: the others hear which, within a second, and their other groups go on. A name can be used again."""

import os
import time

import numpy as np
import pytest
import ray

import col
import col.ray as collective
import workers as actors
from members import heard_by, join, leave, total
from workers import LIMIT, call, everywhere, outcome

WITHIN = 1.0  # seconds


@pytest.fixture
def three(cluster, request):
    """Three actors in two groups, the first of which is to break."""
    members = actors.start(3)
    for name in "breaks", "goes on":
        everywhere(members, join, 3, f"{name}: {request.node.name}")
    yield members, *(f"{name}: {request.node.name}" for name in ("breaks", "goes on"))
    for member in members:
        ray.kill(member)


def goes_on(members, name):
    """What is left of the other group of the same actors: messages between those who live."""

    def message(rank, peers):
        x = np.array([7.0 if rank == 0 else 0.0])
        if rank == 0:
            collective.send(x, peers[1], name)
        else:
            collective.recv(x, peers[0], name)
        return x[0]

    (first, _), (second, _) = members
    return everywhere([actor for _, actor in members], message, (first, second)) == [7, 7]


def dies_in(rank, name):
    """The third rank dies within its next call of the group: libcol's own fault hook."""
    if rank == 2:
        collective.destroy_collective_group(name)
        os.environ["COL_FAULT"] = "kill:rank=2,op=1,step=0"
    else:
        collective.destroy_collective_group(name)
    join(rank, 3, name)


def test_in_a_call(three):
    members, breaks, beside = three
    everywhere(members, dies_in, breaks)
    begin = time.time()
    heard = [outcome(reference) for reference in call(members, heard_by, breaks)]
    assert isinstance(heard[2], ray.exceptions.ActorDiedError)
    for error, when in heard[:2]:
        assert isinstance(error, col.PeerLost) and error.rank == 2 and "rank 2" in str(error)
        assert when - begin < WITHIN
    assert goes_on([(0, members[0]), (1, members[1])], beside)


@pytest.mark.parametrize("who", [0, 1])
def test_killed_while_the_others_wait(three, who):
    """Rank 0, which serves the store, is no special case."""
    members, breaks, beside = three
    alive = [rank for rank in range(3) if rank != who]
    waiting = [members[rank].run.remote(heard_by, rank, breaks) for rank in alive]
    assert ray.wait(waiting, timeout=0.5)[0] == []
    killed = time.time()
    ray.kill(members[who])
    for error, when in ray.get(waiting, timeout=LIMIT):
        assert isinstance(error, col.PeerLost) and error.rank == who and f"rank {who}" in str(error)
        assert when - killed < WITHIN
    assert goes_on([(rank, members[rank]) for rank in alive], beside)


def test_killed_before_the_call(three):
    members, breaks, beside = three
    ray.kill(members[1])
    end = time.time() + LIMIT
    with pytest.raises(ray.exceptions.ActorDiedError):
        while time.time() < end:  # ray.kill() does not wait: a call sent at once may still be answered
            ray.get(members[1].warm_up.remote(), timeout=LIMIT)
    begin = time.time()
    for rank in 0, 2:
        error, when = ray.get(members[rank].run.remote(heard_by, rank, breaks), timeout=LIMIT)
        assert isinstance(error, col.PeerLost) and error.rank == 1
        assert when - begin < 2 * WITHIN  # one after the other
    assert goes_on([(0, members[0]), (2, members[2])], beside)


def joins(rank, size, name):
    try:
        return join(rank, size, name, timeout=20)
    except col.Error as error:
        return error, time.time()


def test_declared_and_killed_before_it_comes(cluster):
    """The driver has said who the group is: nobody waits for the dead."""
    members = actors.start(3)
    collective.create_collective_group(members, 3, [0, 1, 2], "gloo", "declared")
    waiting = [member.run.remote(heard_by, rank, "declared") for rank, member in enumerate(members[:2])]
    assert ray.wait(waiting, timeout=0.5)[0] == []
    killed = time.time()
    ray.kill(members[2])
    for error, when in ray.get(waiting, timeout=LIMIT):
        assert isinstance(error, col.PeerLost) and error.rank == 2 and members[2]._actor_id.hex() in str(error)
        assert when - killed < WITHIN
    collective.destroy_collective_group("declared")


def exit_now(_rank):
    os._exit(1)


def test_rank_0_restarted(cluster):
    """Ray starts the actor again; the group is made again under its name, and other groups of the others go on."""
    members = actors.start(1, max_restarts=1) + actors.start(2)
    everywhere(members, join, 3, "restarted")
    for rank in 1, 2:
        members[rank].run.remote(join, rank - 1, 2, "of the others")
    waiting = [members[rank].run.remote(heard_by, rank, "restarted") for rank in (1, 2)]
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(members[0].run.remote(exit_now, 0), timeout=LIMIT)
    for error, _ in ray.get(waiting, timeout=LIMIT):
        assert isinstance(error, col.PeerLost) and error.rank == 0
    # Ray refuses a call to an actor that it starts again, unless it may repeat the call.
    ray.get(members[0].__ray_ready__.options(max_task_retries=-1).remote(), timeout=LIMIT)
    everywhere(members[1:], leave, "restarted")
    assert everywhere(members, join, 3, "restarted") == [(rank, 3, True) for rank in range(3)]
    assert everywhere(members, total, "restarted") == [6] * 3
    assert everywhere(members[1:], total, "of the others") == [3, 3]


def test_rank_0_killed_while_the_group_is_made(cluster):
    """What it has written in Ray's table leads nowhere; those who wait meet the next rank 0."""
    first, second, other = actors.start(3)
    abandoned = first.run.remote(join, 0, 2, "abandoned")
    assert ray.wait([abandoned], timeout=0.5)[0] == []
    ray.kill(first)
    waiting = other.run.remote(joins, 1, 2, "abandoned")
    assert ray.wait([waiting], timeout=0.5)[0] == []
    new = second.run.remote(joins, 0, 2, "abandoned")
    assert ray.get([new, waiting], timeout=LIMIT) == [(0, 2, True), (1, 2, True)]


def test_an_error_of_the_others_in_flight(three):
    """An operation in flight ends with the same error."""
    members, breaks, _ = three

    def in_flight(rank, name):
        work = collective.iallreduce(np.ones(1), name)
        try:
            work.wait()
        except col.PeerLost as error:
            return error.rank

    waiting = [members[rank].run.remote(in_flight, rank, breaks) for rank in (0, 1)]
    assert ray.wait(waiting, timeout=0.5)[0] == []
    ray.kill(members[2])
    assert ray.get(waiting, timeout=LIMIT) == [2, 2]


def without_a_head(rank, name):
    """As if the head node had ended: Ray's key-value store answers nothing."""
    from ray.experimental import internal_kv

    def gone(*_args, **_more):
        raise RuntimeError("failed to connect to GCS")

    answers, internal_kv._internal_kv_get = internal_kv._internal_kv_get, gone
    try:
        join(1, 2, name, timeout=60)
    except col.Error as error:
        return error
    finally:
        internal_kv._internal_kv_get = answers


def test_the_store_of_ray_is_lost(cluster):
    (member,) = actors.start(1)
    begin = time.time()
    error = ray.get(member.run.remote(without_a_head, 0, "no head"), timeout=LIMIT)
    assert isinstance(error, col.IoError) and time.time() - begin < 30
    for words in ("group 'no head'", "Ray's key-value store", "failed to connect to GCS", "(after 0.", "head node"):
        assert words in str(error), str(error)
    ray.kill(member)
