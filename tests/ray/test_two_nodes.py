"""Groups over two nodes of Ray, as Ray's own distributed tests have them: on one machine, or those of hosts.sh."""

import os
import pathlib

import numpy as np
import pytest
import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

import col
import col.ray as collective
import clusters
import workers as actors
from members import LIBRARIES, every_call, heard_by, join, leave, only_allreduce, same, total
from workers import LIMIT, everywhere

NODES = 2
ALL = clusters.CPUS


def node_of(_rank):
    return ray.get_runtime_context().get_node_id()


def backend_of(_rank, name):
    return collective.get_group(name).backend


def test_in_a_placement_group(cluster):
    """Two actors in each of two bundles on different nodes: the first test here, as the others' actors take all CPUs."""
    bundles = placement_group([{"CPU": 2}] * 2, strategy="STRICT_SPREAD")
    ray.get(bundles.ready(), timeout=LIMIT)
    places = [PlacementGroupSchedulingStrategy(bundles, placement_group_bundle_index=index) for index in (0, 0, 1, 1)]
    placed = [actor for place in places for actor in actors.start(1, num_cpus=1, scheduling_strategy=place)]
    nodes = everywhere(placed, node_of)
    assert nodes[0] == nodes[1] != nodes[2] == nodes[3]
    everywhere(placed, join, 4, "placed")
    assert everywhere(placed, total, "placed") == [10] * 4
    hosts = {node["NodeManagerAddress"] for node in ray.nodes()}
    assert everywhere(placed, backend_of, "placed") == ["shm" if len(hosts) == 1 else "hosts"] * 4
    everywhere(placed, leave, "placed")
    for actor in placed:
        ray.kill(actor)
    remove_placement_group(bundles)


@pytest.fixture(scope="module")
def members(cluster):
    """As many actors as there are CPUs, sorted by their node."""
    members = actors.start(ALL, num_cpus=1)
    nodes = everywhere(members, node_of)
    assert len(set(nodes)) == 2
    return [member for _, member in sorted(zip(nodes, members), key=lambda pair: pair[0])]


@pytest.fixture
def group(members, request):
    """The name of a group of all actors. Neighbours are on different nodes."""
    name = request.node.name
    order = [member for pair in zip(members[: ALL // 2], members[ALL // 2 :]) for member in pair]
    everywhere(order, join, ALL, name)
    yield order, name
    everywhere(order, leave, name)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_call(members, library):
    two_of_each = [members[i] for i in (0, ALL - 1, 1, ALL - 2)]
    everywhere(two_of_each, join, 4, library)
    hosts = {node["NodeManagerAddress"] for node in ray.nodes()}
    assert everywhere(two_of_each, backend_of, library) == ["shm" if len(hosts) == 1 else "hosts"] * 4
    assert everywhere(two_of_each, every_call, library, library) == ["right"] * 4
    everywhere(two_of_each, leave, library)


def large(rank, name):
    """Each rank is the root once; arrays of 4 MiB, and messages between nodes."""
    n = 1 << 20
    x = np.full(n, rank + 1.0, np.float32)
    collective.allreduce(x, name)
    same(x[[0, -1]], [36, 36])
    for root in range(ALL):
        x = np.full(n, rank, np.float32)
        collective.reduce(x, root, name)
        same(x[[0, -1]], [28, 28] if rank == root else [rank, rank])
        x = np.full(n, rank, np.float32)
        collective.broadcast(x, root, name)
        same(x[[0, -1]], [root, root])
    if rank % 2 == 0:
        collective.send(np.full(n, rank, np.float32), rank + 1, name)
    else:
        collective.recv(x, rank - 1, name)
        same(x[[0, -1]], [rank - 1, rank - 1])
    return "right"


def test_eight_ranks(group):
    assert everywhere(group[0], large, group[1]) == ["right"] * ALL


def lists(rank, name):
    for dtype in np.uint8, np.int32, np.float64:
        parts = [np.zeros((2, 3), dtype) for _ in range(ALL)]
        collective.allgather(parts, np.full((2, 3), rank, dtype), name)
        same(np.stack(parts)[:, 1, 2], range(ALL))
        x = np.zeros(5, dtype)
        collective.reducescatter(x, [np.full(5, r, dtype) for r in range(ALL)], name)
        same(x, [ALL * rank] * 5)
    return "right"


def test_lists_of_eight(group):
    assert everywhere(group[0], lists, group[1]) == ["right"] * ALL


@pytest.mark.parametrize("size", [2, 3, 5])
def test_groups_of_other_sizes(members, size):
    """One after the other and beside each other, the ranks in another order each time."""
    for shift in range(3):
        some = [members[(3 * number + shift) % ALL] for number in range(size)]
        everywhere(some, join, size, f"{size} {shift}")
    for shift in range(3):
        some = [members[(3 * number + shift) % ALL] for number in range(size)]
        assert everywhere(some, total, f"{size} {shift}") == [size * (size + 1) / 2] * size
        everywhere(some, leave, f"{size} {shift}")


def test_the_driver_declares(members):
    ranks = list(reversed(range(ALL)))
    collective.create_collective_group(members, ALL, ranks, "gloo", "declared")
    assert everywhere(members, only_allreduce, "declared") == [(255, rank) for rank in ranks]
    collective.destroy_collective_group("declared")


def take_down(cluster, node_id):
    if cluster is None:
        pathlib.Path(os.environ["TAKE_DOWN"]).touch()  # hosts.sh waits for that
    else:
        node = next(node for node in cluster.worker_nodes if node.node_id == node_id)
        cluster.remove_node(node, allow_graceful=False)


def test_the_other_node_goes_down(cluster, members):
    """The last test here: half of the actors end with it. Each of the others names one that was there."""
    everywhere(members, join, ALL, "broken")
    mine = ray.get_runtime_context().get_node_id()
    nodes = everywhere(members, node_of)
    waiting = [member.run.remote(heard_by, rank, "broken") for rank, member in enumerate(members) if nodes[rank] == mine]
    assert ray.wait(waiting, timeout=0.5)[0] == []
    take_down(cluster, next(node for node in nodes if node != mine))
    for error, _ in ray.get(waiting, timeout=LIMIT):
        assert isinstance(error, col.PeerLost) and nodes[error.rank] != mine
