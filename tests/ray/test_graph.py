"""Compiled graphs of Ray with col as their communicator."""

import mmap
import os
import re
import signal
import threading
import time

import pytest
import ray
import torch
from ray.dag import InputNode, MultiOutputNode
from ray.experimental import collective
from ray.experimental.channel.cpu_communicator import CPUCommunicator
from ray.experimental.util.types import ReduceOp

import col
import col.ray
import clusters
import graph_example
from col.ray import graph, pages
from workers import LIMIT

COMBINE = {
    ReduceOp.SUM: lambda x: x.sum(0),
    ReduceOp.PRODUCT: lambda x: x.prod(0),
    ReduceOp.MAX: lambda x: x.amax(0),
    ReduceOp.MIN: lambda x: x.amin(0),
    ReduceOp.AVG: lambda x: x.mean(0),
}


class Recorder(graph.Communicator):
    """Keeps the calls of its process: [name, when it ended or None, its error or None]."""

    calls: list = []

    def _call(self, name, *args, **options):
        call = [name, None, None]
        Recorder.calls.append(call)
        try:
            super()._call(name, *args, **options)
        except Exception as error:
            call[2] = error
            raise
        finally:
            call[1] = time.time()


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self, rank):
        self.rank = rank

    def values(self, shape, dtype):
        return make(self.rank, shape, dtype)

    def columns(self, count):
        return make(self.rank, (count, 2), torch.float64).t()

    def parameters(self, count):
        parameters = [make(self.rank, (count, 2), torch.float32), make(self.rank + 2, (count,), torch.float32)]
        return tuple(p.requires_grad_() for p in parameters)

    def rank_elements(self, _):
        return torch.ones(10 + self.rank)

    def batch(self, count):
        return batch_of(count)

    def is_batch(self, batch, count):
        expected = batch_of(count)
        assert batch.keys() == expected.keys() and batch.pop("name") == expected.pop("name")
        return all(batch[k].dtype == x.dtype and torch.equal(batch[k], x) for k, x in expected.items())

    def same(self, value):
        return value

    def die_if(self, condition, path):
        if condition:
            with open(path, "w") as file:
                file.write(repr(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.ones(4)

    def number_unless(self, condition, number):
        if condition:
            raise KeyError("no such batch")
        return torch.tensor([number])

    def ones(self, _):
        return torch.ones(4)

    def wait_for(self, path):
        deadline = time.monotonic() + 20
        while not os.path.exists(path) and time.monotonic() < deadline:
            time.sleep(0.01)
        return torch.ones(4)

    def calls(self):
        return Recorder.calls


def make(rank, shape, dtype):
    count = torch.Size(shape).numel()
    return ((torch.arange(count) * 7 + rank * 3) % 5 + 1).reshape(shape).to(dtype)


def batch_of(count):
    return {
        "name": "a batch",
        "values": make(0, (count, 3), torch.float32),
        "columns": make(1, (count, 3), torch.float64).t(),
        "mask": make(2, (count,), torch.int64) > 2,
        "half": make(3, (count,), torch.bfloat16),
        "phase": torch.ones(count, dtype=torch.complex64),
        "loss": torch.tensor(0.5),
        "nothing": torch.empty(0, 3),
        "weights": make(4, (count,), torch.float32).requires_grad_(),
    }


@pytest.fixture(scope="module")
def cluster():
    """Ray keeps ten megabytes for each output of a graph, and waits for seconds when its object store is full."""
    ray.init(address="local", num_cpus=clusters.CPUS, **{**clusters.NODE, "object_store_memory": 2 << 30})
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def three(cluster):
    actors = [Worker.remote(rank) for rank in range(3)]
    ray.get([actor.__ray_ready__.remote() for actor in actors], timeout=LIMIT)
    return actors


@pytest.fixture(scope="module")
def two(three):
    return three[:2]


class Compiled:
    """A graph that is torn down at the end of the block, in less than five seconds."""

    def __init__(self, build):
        with InputNode() as given:
            outputs = build(given)
        self._graph = MultiOutputNode(outputs).experimental_compile()
        self.start = self._graph.execute
        self.teardown = self._graph.teardown

    def __call__(self, *given):
        return ray.get(self.start(*given), timeout=LIMIT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        began = time.monotonic()
        self.teardown()
        assert time.monotonic() - began < 5


def until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline


# ---- Collectives


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_every_collective_with_every_operator(three, dtype):
    communicator = graph.Communicator(three)
    ops = [op for op in ReduceOp if op is not ReduceOp.AVG or dtype.is_floating_point]

    def build(given):
        xs = [worker.values.bind(given[0], given[1]) for worker in three]
        nodes = [collective.allreduce.bind(xs, op, transport=communicator) for op in ops]
        nodes += [collective.reducescatter.bind(xs, op, transport=communicator) for op in ops]
        nodes += [collective.allgather.bind(xs, transport=communicator)]
        return [worker.same.bind(node[rank]) for node in nodes for rank, worker in enumerate(three)]

    with Compiled(build) as compiled:
        for shape in [(6,), (3, 1000), (3, 40_000)]:
            results = compiled(shape, dtype)
            xs = torch.stack([make(rank, shape, dtype) for rank in range(3)])
            expected = [COMBINE[op](xs.double()).to(dtype) for op in ops]
            third = shape[0] // 3
            expected = [
                *(whole for whole in expected for rank in range(3)),
                *(whole[rank * third : (rank + 1) * third] for whole in expected for rank in range(3)),
                *(torch.cat(list(xs)) for rank in range(3)),
            ]
            assert len(results) == len(expected)
            for result, right in zip(results, expected):
                assert result.dtype == dtype
                torch.testing.assert_close(result, right, rtol=0.01 if dtype == torch.bfloat16 else 1e-6, atol=0)
    communicator.destroy()


def test_bind_makes_a_communicator_and_takes_the_names_of_operators(two):
    def build(given):
        xs = [worker.values.bind(given[0], given[1]) for worker in two]
        largest = graph.allreduce.bind(xs, op=col.ray.ReduceOp.MAX)
        return [*largest, *graph.allgather.bind(xs), *graph.reducescatter.bind(xs, ReduceOp.SUM)]

    with Compiled(build) as compiled:
        a, b = (make(rank, (4,), torch.float32) for rank in range(2))
        results = compiled((4,), torch.float32)
        expected = [torch.maximum(a, b)] * 2 + [torch.cat([a, b])] * 2 + [(a + b)[:2], (a + b)[2:]]
        assert all(map(torch.equal, results, expected))
    with InputNode() as given, pytest.raises(ValueError, match="band"):
        graph.allreduce.bind([worker.rank_elements.bind(given) for worker in two], "band")
    theirs = graph.allreduce.bind([worker.rank_elements.bind(given) for worker in two], transport=CPUCommunicator(2, two))
    assert theirs[0].collective_op.type_hint.get_custom_communicator().get_actor_handles() == two


def test_parameters_that_require_grad_in_one_allreduce(two):
    def build(given):
        pairs = [worker.parameters.options(num_returns=2).bind(given) for worker in two]
        by_parameter = graph.allreduce.bind([list(parameters) for parameters in zip(*pairs)], transport=communicator)
        return [worker.same.bind(node) for worker, nodes in zip(two, by_parameter) for node in nodes]

    communicator = graph.Communicator(two)
    with Compiled(build) as compiled:
        first = make(0, (5, 2), torch.float32) + make(1, (5, 2), torch.float32)
        second = make(2, (5,), torch.float32) + make(3, (5,), torch.float32)
        results = compiled(5)
        assert [torch.equal(result, right) for result, right in zip(results, [first, second] * 2)] == [True] * 4
    communicator.destroy()


def test_a_tensor_that_is_not_contiguous(two):
    with Compiled(lambda given: graph.allreduce.bind([worker.columns.bind(given) for worker in two])) as compiled:
        right = make(0, (7, 2), torch.float64).t() + make(1, (7, 2), torch.float64).t()
        assert [torch.equal(result, right) for result in compiled(7)] == [True, True]


def test_a_graph_that_goes_on_after_another_one_of_the_same_communicator_has_ended(two):
    communicator = graph.Communicator(two)

    def build(given):
        return graph.allreduce.bind([worker.ones.bind(given) for worker in two], transport=communicator)

    with Compiled(build) as first:
        first(0)
        with Compiled(build) as second:
            first.teardown()
            assert [result[0] for result in second(0)] == [2, 2]


def test_the_example(cluster, capsys):
    graph_example.main()
    assert capsys.readouterr().out.endswith("tensor([-9., -9., -9., -9.]) tensor([-9., -9., -9., -9.])\n")


# ---- From actor to actor


def test_tensors_of_any_kind_go_from_actor_to_actor_through_the_communicator(three):
    communicator = Recorder(three)

    def build(given):
        batch = communicator.carry(three[1].batch.bind(given))
        return [worker.is_batch.bind(batch, given) for worker in three]  # the one that has made it is among them

    before = ray.get([worker.calls.remote() for worker in three])
    with Compiled(build) as compiled:
        for count in (4, 50_000):
            assert compiled(count) == [True] * 3
    after = ray.get([worker.calls.remote() for worker in three])
    names = [[name for name, *_ in calls[len(old) :]] for calls, old in zip(after, before)]
    tensors = len(batch_of(4)) - 1
    assert names == [["recv"] * 2 * tensors, ["send"] * 4 * tensors, ["recv"] * 2 * tensors]


def test_with_tensor_transport_takes_the_communicator(two):
    communicator = graph.Communicator(two)
    assert communicator.get_transport_name() == "cpu"  # Ray's own channel in shared memory

    def build(given):
        values = two[0].values.bind(given[0], given[1]).with_tensor_transport(transport=communicator)
        return [two[1].same.bind(values)]

    with Compiled(build) as compiled:
        assert torch.equal(compiled((50,), torch.float32)[0], make(0, (50,), torch.float32))


def test_large_pages_for_outputs():
    if not os.path.exists("/sys/kernel/mm/transparent_hugepage"):
        pytest.skip("this kernel has none")
    for count, wanted in [(2_000_000, True), (100_000, False)]:
        area = mmap.mmap(-1, 4 * count)
        tensor = torch.frombuffer(area, dtype=torch.float32)
        tensor.fill_(3)
        assert pages.prefer_large(tensor) is tensor
        assert ("hg" in flags_of(tensor.data_ptr())) == wanted and tensor.min() == tensor.max() == 3


def flags_of(address):
    """The kernel's for the mapping of an address."""
    inside = False
    with open("/proc/self/smaps") as file:
        for line in file:
            if match := re.match("([0-9a-f]+)-([0-9a-f]+) ", line):
                inside = int(match[1], 16) <= address < int(match[2], 16)
            elif inside and line.startswith("VmFlags:"):
                return line.split()[1:]
    raise AssertionError(hex(address))


# ---- Errors


def test_shapes_that_differ(three):
    communicator = graph.Communicator(three)

    def build(given):
        sums = collective.allreduce.bind([worker.rank_elements.bind(given) for worker in three], transport=communicator)
        return [worker.same.bind(s) for worker, s in zip(three, sums)]

    with Compiled(build) as compiled:
        with pytest.raises(col.Mismatch, match="allreduce of 10 float32"):
            compiled(0)
        with pytest.raises(col.Aborted, match="mismatch"):
            compiled(0)

    def build_again(given):
        xs = [worker.values.bind(given[0], given[1]) for worker in three]
        return [worker.same.bind(s) for worker, s in zip(three, collective.allreduce.bind(xs, transport=communicator))]

    with Compiled(build_again) as compiled:  # with the same communicator
        assert len(compiled((3,), torch.float32)) == 3
    communicator.destroy()


def test_other_actors_than_the_communicator_has(three):
    communicator = graph.Communicator(three[:2])
    with InputNode() as given:
        xs = [worker.rank_elements.bind(given) for worker in three]
        with pytest.raises(ValueError, match="actor handles to match"):
            collective.allreduce.bind(xs, transport=communicator)
    with pytest.raises(ValueError, match="must include all of the actors"):
        Compiled(lambda given: [three[2].same.bind(communicator.carry(three[0].batch.bind(given)))])
    for actors, complaint in ([], "one at least"), ([three[0], 1], "handles"), ([three[0]] * 2, "twice"):
        with pytest.raises(col.InvalidArgument, match=complaint):
            graph.Communicator(actors)


@pytest.mark.parametrize("allreduce", [graph.allreduce, collective.allreduce])
def test_an_actor_that_dies_in_an_execution(two, tmp_path, allreduce):
    first, mortal, last = actors = [two[0], Worker.remote(1), two[1]]
    communicator = Recorder(actors)
    path = str(tmp_path / "died")

    def build(given):
        xs = [first.ones.bind(given[0]), mortal.die_if.bind(given[0], given[1]), last.ones.bind(given[0])]
        return allreduce.bind(xs, transport=communicator)

    with Compiled(build) as compiled:
        assert [result[0] for result in compiled(False, path)] == [3, 3, 3]
        with pytest.raises((ray.exceptions.ActorDiedError, col.PeerLost)):
            compiled(True, path)
    died = float(open(path).read())
    for survivor in first, last:
        name, when, error = ray.get(survivor.calls.remote())[-1]
        assert isinstance(error, col.PeerLost) and error.rank == 1 and when - died < 1, (when - died, error)
        assert re.search(f"rank 1.* actor {mortal._actor_id.hex()} .Worker, .* on node", str(error))
    communicator.destroy()


def test_a_method_that_raises_in_one_actor(two):
    communicator = graph.Communicator(two)

    def build(given):
        xs = [worker.number_unless.bind(given[rank], given[2]) for rank, worker in enumerate(two)]
        return graph.allreduce.bind(xs, transport=communicator)

    with Compiled(build) as compiled:
        assert compiled(False, False, 1) == [torch.tensor([2])] * 2
        for _ in range(2):  # in both, their calls stay the same
            with pytest.raises(KeyError, match="no such batch"):
                compiled(True, True, 1)
            assert compiled(False, False, 1) == [torch.tensor([2])] * 2
        failed, next_one = compiled.start(False, True, 10), compiled.start(False, False, 100)
        with pytest.raises(KeyError, match="no such batch"):
            ray.get(failed)
        with pytest.raises((col.Mismatch, col.Aborted), match="rank 1 called ibarrier"):  # rather than 110 and 200
            ray.get(next_one)


def test_an_actor_that_does_not_come_in_time(two, tmp_path):
    communicator = graph.Communicator(two, timeout=1)
    path = tmp_path / "go"

    def build(given):
        return graph.allreduce.bind([two[0].ones.bind(given), two[1].wait_for.bind(given)], transport=communicator)

    with Compiled(build) as compiled:
        refs = compiled.start(str(path))
        with pytest.raises(col.Timeout, match="rank 1 did not enter it.*Rank 1 is actor .* on node"):
            ray.get(refs)
        path.touch()


@pytest.mark.parametrize("end", ["teardown", "destroy"])
def test_the_end_of_a_group_ends_what_waits_in_it(two, tmp_path, end):
    communicator = Recorder(two)
    path = tmp_path / "go"

    def build(given):
        return graph.allreduce.bind([two[0].ones.bind(given), two[1].wait_for.bind(given)], transport=communicator)

    with Compiled(build) as compiled:
        before = len(ray.get(two[0].calls.remote()))
        refs = compiled.start(str(path))
        until(lambda: len(ray.get(two[0].calls.remote())) > before)  # rank 0 waits for rank 1
        ending = threading.Thread(target=compiled.teardown if end == "teardown" else communicator.destroy)
        ending.start()
        until(lambda: ray.get(two[0].calls.remote())[-1][1])
        error = ray.get(two[0].calls.remote())[-1][2]
        assert isinstance(error, ray.exceptions.RayChannelError) and "has been destroyed" in str(error)
        path.touch()
        ending.join(5)
        assert not ending.is_alive()
        if end == "destroy":
            with pytest.raises(ray.exceptions.RayChannelError, match="has been destroyed"):
                ray.get(refs, timeout=5)
            communicator.destroy()
