import os

import pytest

import clusters
import workers as actors
from members import join, leave


@pytest.fixture(scope="module")
def cluster(request):
    """One Ray for all tests of a file: of two nodes if the file says NODES = 2."""
    kind = clusters.two_nodes if getattr(request.module, "NODES", 1) == 2 else clusters.one_node
    with (clusters.given if "RAY_ADDRESS" in os.environ else kind)() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def workers(cluster):
    """Four actors that stay for all tests of a file."""
    return actors.start(4)


@pytest.fixture
def group(workers, request):
    """The name of a group of all four workers, in their order."""
    name = request.node.name
    actors.everywhere(workers, join, len(workers), name)
    yield name
    actors.everywhere(workers, leave, name)
