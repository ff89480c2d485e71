"""Groups of some of the ranks, several groups at once, and threads."""

import random
import threading

import pytest
import torch
import torch.distributed as dist

import members


def own_sum(group, value=1.0):
    x = torch.full((100,), value)
    dist.all_reduce(x, group=group)
    return x[0].item()


def subsets(groups):
    """Every rank makes all groups, and is member of some."""
    for ranks in ([0], [groups.size - 1], [0, groups.size - 1], list(range(groups.size)), list(range(1, groups.size))):
        ranks = sorted(set(ranks))
        if not ranks:
            continue
        group = dist.new_group(ranks)
        if groups.rank not in ranks:
            assert group == dist.GroupMember.NON_GROUP_MEMBER
            continue
        assert dist.get_world_size(group) == len(ranks)
        assert dist.get_rank(group) == ranks.index(groups.rank)
        assert dist.get_backend(group) == "col"
        assert own_sum(group, float(groups.rank)) == sum(ranks)
        x = torch.full((3,), float(groups.rank))
        dist.broadcast(x, ranks[-1], group=group)  # the rank in the world
        assert x.tolist() == [ranks[-1]] * 3
        outputs = [torch.zeros(2) for _ in ranks]
        dist.all_gather(outputs, torch.full((2,), float(groups.rank)), group=group)
        assert [out[0].item() for out in outputs] == ranks
        if len(ranks) > 1:
            if groups.rank == ranks[0]:
                dist.send(torch.ones(3), ranks[-1], group=group)
            elif groups.rank == ranks[-1]:
                out = torch.zeros(3)
                assert dist.recv(out, group=group) == ranks[0]
        dist.destroy_process_group(group)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_subsets(size):
    members.run(size, subsets)


def of_subgroups(groups):
    mine, every = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
    assert own_sum(mine, float(groups.rank)) == (2 if groups.rank in (0, 2) else 4)


@pytest.mark.skipif(torch.__version__ < "2", reason="torch 1 makes them only where CUDA is")
def test_subgroups():
    members.run(4, of_subgroups)


def two_in_flight(groups):
    """Operations on two groups at once, waited for in another order on each rank."""
    first, second = dist.new_group(), dist.new_group()
    for round in range(20):
        xs = [torch.full((1000 * (i % 3),), float(i)) for i in range(6)]
        works = [dist.all_reduce(x, group=(first, second)[i % 2], async_op=True) for i, x in enumerate(xs)]
        order = list(range(6))
        random.Random(round + groups.rank).shuffle(order)
        for i in order:
            works[i].wait()
            assert (xs[i] == i * groups.size).all()
    # A message that waits does not hold up a collective of the same group, nor of another.
    out = torch.zeros(1)
    after, before = (groups.rank + 1) % groups.size, (groups.rank - 1) % groups.size
    received = dist.irecv(out, before, group=first)
    assert own_sum(first) == own_sum(second) == groups.size
    assert not received.is_completed()
    dist.barrier(first)
    dist.send(torch.ones(1), after, group=first)
    received.wait()
    assert out.item() == 1


@pytest.mark.parametrize("size", [2, 3])
def test_two_in_flight(size):
    members.run(size, two_in_flight)


def in_threads(functions):
    failures = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def a_thread_each(groups):
    def use(group, value):
        for i in range(50):
            x = torch.full((1 + 97 * i,), value)
            dist.all_reduce(x, group=group)
            assert (x == value * groups.size).all()

    several = [dist.new_group() for _ in range(3)]
    in_threads([lambda g=group, i=i: use(g, float(i)) for i, group in enumerate(several)])


@pytest.mark.parametrize("size", [2, 3])
def test_a_thread_each(size):
    members.run(size, a_thread_each)


def one_group(groups):
    """Each thread exchanges messages over the same group, and none keeps the others from theirs."""
    def exchange(tag):
        peer = 1 - groups.rank
        for i in range(10):
            out = torch.zeros(1 + 97 * i)
            received = dist.irecv(out, peer, tag=tag)
            sent = dist.isend(torch.full((1 + 97 * i,), 10.0 * tag + groups.rank), peer, tag=tag)
            sent.wait()
            received.wait()
            assert (out == 10.0 * tag + peer).all()

    in_threads([lambda tag=tag: exchange(tag) for tag in range(4)])


def test_one_group():
    members.run(2, one_group)


def a_thread_that_listens(groups):
    """It waits for a message that a rank sends only after collectives of all of them."""
    peer = 1 - groups.rank

    def listen():
        out = torch.zeros(1)
        dist.recv(out, peer, tag=5)
        assert out.item() == peer

    def work():
        for _ in range(3):
            assert own_sum(groups.col) == 2
            dist.barrier()
        dist.send(torch.full((1,), float(groups.rank)), peer, tag=5)

    in_threads([listen, work])


def test_a_thread_that_listens():
    members.run(2, a_thread_that_listens)


def started_here_waited_for_there(groups):
    """A thread polls what another waits for, and whose future a third has."""
    for i in range(30):
        outs = [torch.zeros(5000, 2)[:, 0] for _ in range(groups.size)]  # is copied to after the call
        work = dist.all_gather(outs, torch.full((5000,), float(groups.rank + i)), async_op=True)

        def complete():
            assert all((out == float(r + i)).all() for r, out in enumerate(outs))

        def poll():
            while not work.is_completed():
                pass
            complete()

        def wait():
            work.wait()
            complete()

        def future():
            work.get_future().wait()
            complete()

        in_threads([poll, wait, future])


@pytest.mark.parametrize("size", [1, 2])
def test_started_here_waited_for_there(size):
    members.run(size, started_here_waited_for_there)
