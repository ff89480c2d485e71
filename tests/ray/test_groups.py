"""Who is in a group, and how it comes about: under any name, again and again, declared by the driver, late."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import ray

import col.ray as collective
import workers as actors
from members import join, leave, only_allreduce, total
from workers import LIMIT, call, everywhere


def test_from_init_to_destroy(workers):
    assert everywhere(workers, join, 4, "first") == [(rank, 4, True) for rank in range(4)]
    assert everywhere(workers, total, "first") == [10] * 4
    assert everywhere(workers, leave, "first") == [(-1, -1, False)] * 4


def join_in_another_order(rank, name):
    """The group where the last worker is rank 0, beside the first one."""
    order = 3 - rank
    join(order, 4, name + " reversed")
    x = np.array([rank])
    collective.broadcast(x, 0, name + " reversed")
    y = np.array([rank])
    collective.broadcast(y, 0, name)
    return collective.get_rank(name + " reversed"), x[0], y[0]


def test_groups_with_other_orders_of_ranks(workers, group):
    assert everywhere(workers, join_in_another_order, group) == [(3 - rank, 3, 0) for rank in range(4)]
    # A message goes to the rank of the group that is named.
    def message(rank, name):
        x = np.array([rank])
        if rank == 0:
            collective.send(x, 0, name)
        elif rank == 3:
            collective.recv(x, 3, name)
        return x[0]

    assert everywhere(workers, message, group + " reversed") == [0, 1, 2, 0]
    everywhere(workers, leave, group + " reversed")


def test_made_again_under_its_name(workers):
    for size in 4, 2, 3:
        members = workers[:size]
        everywhere(members, join, size, "again")
        assert everywhere(members, total, "again") == [size * (size + 1) / 2] * size
        everywhere(members, leave, "again")


def test_actors_that_end_leave_the_name_to_others(cluster):
    """Nobody destroys the group: what rank 0 left in Ray's table must not lead the next ones astray."""
    for _ in range(2):
        members = actors.start(2)
        everywhere(members, join, 2, "left behind")
        assert everywhere(members, total, "left behind") == [3, 3]
        for member in members:
            ray.kill(member)


def test_odd_names(workers):
    names = ["123?34!", "a b/c\\d", "ünïcödé ☃", "x" * 300, "%s{0}\n", "default:0"]
    for name in names:  # all of them at once
        everywhere(workers[:2], join, 2, name)
    for name in names:
        assert everywhere(workers[:2], total, name) == [3, 3]
    for name in names:
        everywhere(workers[:2], leave, name)


def in_a_task(rank):
    join(rank, 2, "tasks")
    result = total(rank, "tasks")
    leave(rank, "tasks")
    return result


def test_tasks_are_members_as_well(cluster):
    task = ray.remote(in_a_task)
    assert ray.get([task.remote(rank) for rank in range(2)], timeout=LIMIT) == [3, 3]


def test_a_late_actor(workers):
    """Those who came wait for it: in a group that they make, and in one that the driver has declared for them."""
    collective.create_collective_group(workers[:2], 3, [0, 1], "gloo", "declared")
    early = call(workers[:2], join, 3, "made")
    assert ray.wait(early, timeout=0.5)[0] == []
    late = actors.start(1)[0]
    last = late.run.remote(join, 2, 3, "made")
    assert ray.get([*early, last], timeout=LIMIT) == [(rank, 3, True) for rank in range(3)]
    early = call(workers[:2], only_allreduce, "declared")
    assert ray.wait(early, timeout=0.5)[0] == []
    assert ray.get(late.run.remote(join, 2, 3, "declared"), timeout=LIMIT) == (2, 3, True)
    last = late.run.remote(only_allreduce, 2, "declared")
    assert ray.get([*early, last], timeout=LIMIT) == [(7, rank) for rank in range(3)]
    everywhere([*workers[:2], late], leave, "made")
    everywhere([*workers[:2], late], leave, "declared")


def make_pair(rank, name):
    """A group of the last and the first of the other one."""
    part = collective.create_subgroup([3, 0], name + " pair", name)
    if part is None:
        return collective.get_rank(name + " pair")
    x = np.array([2.0**rank])
    collective.allreduce(x, name + " pair")
    collective.destroy_collective_group(name + " pair")
    return x[0], part.rank


def test_a_group_within_a_group(workers, group):
    assert everywhere(workers, make_pair, group) == [(9, 1), -1, -1, (9, 0)]


def test_the_driver_is_a_member(workers):
    other = workers[0].run.remote(join, 0, 2, "with the driver")
    assert join(1, 2, "with the driver") == (1, 2, True)
    assert ray.get(other, timeout=LIMIT) == (0, 2, True)
    other = workers[0].run.remote(total, 0, "with the driver")
    assert total(1, "with the driver") == ray.get(other, timeout=LIMIT) == 3
    assert leave(1, "with the driver") == (-1, -1, False)
    ray.get(workers[0].run.remote(leave, 0, "with the driver"), timeout=LIMIT)


def test_the_driver_declares_two_groups_that_overlap(workers):
    collective.create_collective_group(workers[:3], 3, [2, 0, 1], "gloo", "three")
    # The example of "Collective in Ray", with its name of the function and its options.
    options = {"group_name": "two", "world_size": 2, "ranks": [0, 1], "backend": "nccl"}
    collective.declare_collective_group(workers[2:], **options)
    assert everywhere(workers[:3], only_allreduce, "three") == [(7, 2), (7, 0), (7, 1)]
    assert everywhere(workers[2:], only_allreduce, "two") == [(3, 0), (3, 1)]
    # Both at the same time, in the order that each likes: worker 2 has them one after the other.
    references = call(workers[2:], only_allreduce, "two") + call(workers[:3], only_allreduce, "three")
    assert [value for value, _ in ray.get(references, timeout=LIMIT)] == [3, 3, 7, 7, 7]

    with pytest.raises(RuntimeError, match="two"):
        collective.create_collective_group(workers[2:], 2, [0, 1], "gloo", "two")
    collective.destroy_collective_group("two")
    collective.destroy_collective_group("three")
    collective.create_collective_group(workers[:2], 2, [1, 0], "gloo", "two")
    assert everywhere(workers[:2], only_allreduce, "two") == [(3, 1), (3, 0)]
    collective.destroy_collective_group("two")


OTHER_JOB = """
    import ray, sys
    import workers as actors
    from members import join, total
    ray.init(address=sys.argv[1], log_to_driver=False)
    members = actors.start(2)
    actors.everywhere(members, join, 2, "of both jobs")
    print(actors.everywhere(members, total, "of both jobs"))
"""


def test_two_jobs_have_groups_of_one_name(workers):
    everywhere(workers, join, 4, "of both jobs")
    address = ray.get_runtime_context().gcs_address
    other = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(OTHER_JOB), address], capture_output=True, text=True, timeout=LIMIT
    )
    assert other.stdout.splitlines()[-1:] == ["[3.0, 3.0]"], other.stderr
    assert everywhere(workers, total, "of both jobs") == [10] * 4
    everywhere(workers, leave, "of both jobs")
