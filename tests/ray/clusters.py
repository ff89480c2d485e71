"""Ray on this machine for tests: one node, or two nodes that Ray takes for two machines."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import ray
from ray.cluster_utils import Cluster

CPUS = 8  # in Ray's books, over all nodes: so many actors that ask for one run at once
NODE = {"include_dashboard": False, "object_store_memory": 256 << 20}
# For a program that starts a Ray of its own: else it joins two_nodes() of a test beside it, or waits for one that was killed.
ALONE = {"RAY_ADDRESS": "local"}


@contextlib.contextmanager
def one_node(**options: Any) -> Iterator[None]:
    """Ray of one node, which ends with the block. The options are more of ray.init()'s."""
    ray.init(address="local", num_cpus=CPUS, **NODE, **options)
    try:
        yield
    finally:
        ray.shutdown()


@contextlib.contextmanager
def two_nodes(**options: Any) -> Iterator[Cluster]:
    """Ray of two nodes with half of the CPUs each: actors that ask for one CPU each, more than half, are on both."""
    cluster = Cluster()
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=CPUS // 2, **NODE)
        ray.init(address=cluster.address, **options)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextlib.contextmanager
def given(**options: Any) -> Iterator[None]:
    """The Ray of two hosts that hosts.sh has started, and RAY_ADDRESS names."""
    ray.init(**options)
    try:
        yield None
    finally:
        ray.shutdown()
