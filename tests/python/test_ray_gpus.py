"""Which GPU a group takes that meets through Ray: over stand-ins for GPUs, and for what this asks of Ray."""

import os
import sys
import threading
import types
import warnings

import numpy as np
import pytest

import col

import ranks
import stand_ins

pytestmark = pytest.mark.skipif("STAND_INS" not in os.environ, reason="there are no stand-ins for GPUs")


def _join(store, rank, size):
    return (store, rank, size), lambda: None


def run(name, function, *args):
    """On two new processes: what they start on GPUs stays."""
    return ranks.run(2, function, *args, join=_join, env=(("COL_TEST_NAME", name),))


def joined(place, backend, assigned):
    """The group, and the warnings of joining it, on a rank to which Ray has given GPUs."""
    store, rank, size = place
    ray = types.ModuleType("ray")
    ray.get_gpu_ids = lambda: assigned
    sys.modules["ray"] = ray
    from col.ray import cluster, groups, rendezvous

    class Meeting:
        server = None

        def __init__(self, name, rank, world_size, timeout, members):
            self._place = rank, world_size

        def run(self):
            return col.Context(*self._place, store="file://" + store, timeout=ranks.LIMIT / 2)

    rendezvous.Meeting = Meeting
    cluster.meets_through_ray = lambda: True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        group = groups.join(size, rank, backend, "grouped", ranks.LIMIT / 2)
    x = np.full(4, rank + 1.0, np.float32)
    group.allreduce(x)
    assert (x == 3).all()
    return group, [str(warning.message) for warning in caught if warning.category is RuntimeWarning]


def leave(group):
    group.barrier()
    from col.ray import groups

    groups._members.pop("grouped").job.end()


def given_by_ray(place, backend):
    """Nothing has started a GPU yet."""
    os.environ["CUDA_VISIBLE_DEVICES"] = str(place[1])  # as Ray does
    group, said = joined(place, backend, [place[1]])
    found = group.backend, group.device, said
    leave(group)
    return found


def test_the_gpu_that_ray_gave():
    assert run("given", given_by_ray, "nccl") == [("nccl", "cuda:0", [])] * 2


def test_who_does_not_say_nccl_starts_none():
    assert run("not said", given_by_ray, "auto") == [("shm", "cpu", [])] * 2


def in_another_thread(place, backend):
    thread = threading.Thread(target=stand_ins.make_current, args=(place[1],))
    thread.start()
    thread.join()
    group, said = joined(place, backend, [])
    found = group.backend, group.device, said
    assert col._col.gpus_in_use() == [place[1]]
    leave(group)
    return found


@pytest.mark.parametrize("backend", ["nccl", "auto"])
def test_a_gpu_that_another_thread_uses(backend):
    assert run("thread " + backend, in_another_thread, backend) == [("nccl", f"cuda:{rank}", []) for rank in range(2)]


def none_to_choose(place, which):
    if which == "several used" and place[1] == 0:
        threads = [threading.Thread(target=stand_ins.make_current, args=(gpu,)) for gpu in range(2)]
        for thread in threads:
            thread.start()
            thread.join()
    assigned = {"none": [], "several used": [1], "several given": [0, 1], "hidden": ["GPU-7"]}[which]
    group, said = joined(place, "nccl", assigned if place[1] == 0 or which != "several used" else [1])
    found = group.backend, said
    leave(group)
    return found


SAID = {
    "none": "this process has started no GPU, and Ray gave it none",
    "several used": "this process uses the GPUs 0, 1, and none is current in the thread that joins; torch.cuda.set_device",
    "several given": "Ray gave this process the GPUs 0, 1; torch.cuda.set_device",
    "hidden": "Ray gave this process GPU GPU-7, which CUDA_VISIBLE_DEVICES does not show",
}


@pytest.mark.parametrize("which", SAID)
def test_a_warning_where_the_host_is_taken(which):
    (backend, first), (other, second) = run(which, none_to_choose, which)
    assert backend == other == "shm"
    assert [text.startswith('group \'grouped\': backend "nccl" was asked for, and all data goes through the host (shm): ')
            for text in (*first, *second)] == [True, True]
    assert SAID[which] in first[0]
    assert ("another rank has no GPU" if which == "several used" else SAID[which]) in second[0]
