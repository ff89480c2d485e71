"""The same strategies between Ray actors, over their groups."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest
import ray

import clusters
import col
import col.ray as collective
import workers as actors
from col.strategies import SGD, Adam, AllReduce, ParameterServer, Pipeline, Zero

EXAMPLE = pathlib.Path(__file__).parents[2] / "src" / "examples" / "python" / "strategies.py"
STEPS = 12


@pytest.fixture(scope="module")
def cluster():
    with clusters.one_node():
        yield


def join(rank, size, name):
    collective.init_collective_group(size, rank, "gloo", name, timeout=30)
    return collective.get_group(name)


def every_strategy(rank, size):
    import test_pipeline
    from training import Net, batch

    group = join(rank, size, "all")
    results = []
    for kind in AllReduce, Zero, ParameterServer:
        net = Net()
        strategy = kind(group, net.parameters, Adam(0.01))
        if kind is ParameterServer and strategy.is_server:
            strategy.serve()
        else:
            workers = size - 1 if kind is ParameterServer else size
            for step in range(STEPS):
                strategy.step(net.gradients(*batch(step, rank, workers)))
            if kind is ParameterServer:
                strategy.close()
        results.append(net.parameters)
    stage = test_pipeline.Layers(*test_pipeline.layers_of(rank, size))
    pipeline = Pipeline(group, stage, test_pipeline.squares, SGD(0.1), micro_batches=4)
    for step in range(8):
        pipeline.step(*test_pipeline.batch(step))
    collective.destroy_collective_group("all")
    return results, stage.parameters


def test_every_strategy(cluster):
    import test_pipeline
    from training import alone, check

    results = actors.everywhere(actors.start(3), every_strategy, 3)
    for by_kind, _ in results:
        for parameters in by_kind:
            check(parameters, alone("adam", STEPS))
    check(sum((stage for _, stage in results), []), test_pipeline.alone("sgd", 8)[0])


def train_until(rank, size, killed):
    from training import Net, batch

    net = Net()
    strategy = AllReduce(join(rank, size, "mortal"), net.parameters, Adam(0.01))
    while strategy.steps < STEPS:
        group = strategy.group
        try:
            gradients = net.gradients(*batch(strategy.steps, group.rank, group.size))
            if rank == killed and strategy.steps == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            strategy.step(gradients)
        except (col.PeerLost, col.Aborted):
            strategy.recover()
    return net.parameters, strategy.group.size


def test_allreduce_goes_on_without_an_actor_that_has_died(cluster):
    """Rank 0 has the store by which the others meet: the loss of that one is an error."""
    from training import alone, check, check_same

    calls = actors.call(actors.start(4), train_until, 4, 2)
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(calls[2], timeout=actors.LIMIT)
    parameters, sizes = zip(*ray.get([calls[i] for i in (0, 1, 3)], timeout=actors.LIMIT))
    assert sizes == (3, 3, 3)
    check_same(parameters)
    check(parameters[0], alone("adam", STEPS))


def test_the_example():
    command = [sys.executable, EXAMPLE, "--strategy", "ps", "--ray", "3", "--epochs", "3"]
    env = {**os.environ, **clusters.ALONE}
    answer = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, timeout=90)
    assert answer.returncode == 0, answer.stderr
    lines = [line for line in answer.stdout.splitlines() if line.startswith("epoch")]
    assert len(lines) == 3 and float(lines[-1].split()[-1]) > 0.9, answer.stdout
