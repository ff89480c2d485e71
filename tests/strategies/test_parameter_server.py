"""ParameterServer: as in one process if in step; within its staleness if not; the end of workers, in order and not."""

import os
import signal
import time

import numpy as np
import pytest

import col
import mortal
import ranks
from col.strategies import SGD, ParameterServer, shrink
from training import OPTIMIZERS, Net, alone, batch, check, check_same, in_numpy_order, torch_loss, torch_net


def make(group, library, optimizer, seed=1, **options):
    """The strategy, a function that makes a worker's step, and one that returns the parameters."""
    net, module = Net(seed), torch_net(seed)
    of_numpy, of_torch = OPTIMIZERS[optimizer]
    is_torch = library == "torch"
    strategy = ParameterServer(group, module if is_torch else net.parameters, of_torch if is_torch else of_numpy(), **options)

    def step(rank, size):
        part = batch(strategy.steps, rank, size)
        if is_torch:
            torch_loss(module, *part).backward()
        strategy.step(None if is_torch else net.gradients(*part))

    return strategy, step, lambda: in_numpy_order(module) if is_torch else net.parameters


def train(group, library, optimizer, servers):
    strategy, step, parameters = make(group, library, optimizer, seed=1 + group.rank, servers=servers)
    if strategy.is_server:
        strategy.serve()
        assert strategy.stats() == {"pushes": 10 * strategy.workers, "updates": 10, "held": 0, "lead": 0}
    else:
        for _ in range(10):
            step(group.rank, strategy.workers)
        check(parameters(), alone(optimizer, 10))
        strategy.close()
        stats = strategy.stats()
        assert stats["steps"] == 10 and stats["bytes"] >= 2 * 10 * 58 * 8 and 0 < stats["waiting"] < 60 and stats["lead"] == 0
    return parameters()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("size, servers", [(2, 1), (4, 1), (4, 2), (4, 3)])
def test_sync(size, servers, library, optimizer):
    """All ranks have the parameters in the end, servers, too."""
    results = ranks.run(size, train, library, optimizer, servers)
    check_same(results)
    check(results[0], alone(optimizer, 10))


def leave_early(group):
    """Worker 1 closes after 4 steps. Of then on, steps are those of worker 0 alone."""
    strategy, step, parameters = make(group, "numpy", "momentum")
    if strategy.is_server:
        strategy.serve()
    else:
        for i in range(4 if group.rank == 1 else 8):
            step(*(group.rank, 2) if i < 4 else (0, 1))
        strategy.close()
        with pytest.raises(col.InvalidArgument, match="after close"):
            step(0, 1)
    return parameters()


def test_a_worker_that_closes_earlier_holds_nobody_up():
    check(ranks.run(3, leave_early)[0], alone("momentum", 8))


# ---- Async


def record(group, staleness, servers, steps):
    """When each worker began each step, and when it began to push its gradient: by the machine's clock. The last worker
    computes 30 times as long as the others."""
    x = np.zeros(1000)
    strategy = ParameterServer(group, x, SGD(0.0), servers=servers, mode="async", staleness=staleness)
    begun, pushed = [], []
    if strategy.is_server:
        strategy.serve()
        return strategy.stats(), begun, pushed
    work = np.ones((60, 60))
    for _ in range(steps):
        begun.append(time.monotonic_ns())
        for _ in range(300 if group.rank == strategy.workers - 1 else 10):
            work = np.tanh(work @ work / 60)
        pushed.append(time.monotonic_ns())
        strategy.step(x)
    strategy.close()
    return strategy.stats(), begun, pushed


@pytest.mark.parametrize("staleness, servers", [(0, 1), (1, 1), (3, 1), (3, 2)])
def test_nobody_is_further_ahead_than_the_staleness(staleness, servers):
    """Judged by what the workers did and when, not by what the servers say. A push that has begun may not have arrived: so the
    true distances are what is found here, or more, by what is on its way; the servers' own count covers that."""
    workers, steps = 2, 25
    results = ranks.run(workers + servers, record, staleness, servers, steps)
    furthest = 0
    for stats, begun, _ in results[:workers]:
        for step, moment in enumerate(begun):
            for _, _, pushed in results[:workers]:
                made = sum(other < moment for other in pushed)
                assert made >= step - staleness, (step, made)
                furthest = max(furthest, step - made)
        assert stats["steps"] == steps and stats["lead"] <= staleness
    assert furthest == staleness  # the slow one was waited for, and no sooner than it had to be
    for stats, *_ in results[workers:]:
        assert stats["pushes"] == stats["updates"] == workers * steps
        assert stats["lead"] == staleness and stats["held"] > 0


def converge(group, library, staleness):
    strategy, step, parameters = make(group, library, "momentum", mode="async", staleness=staleness)
    if strategy.is_server:
        strategy.serve()
    else:
        for _ in range(60):
            step(group.rank, strategy.workers)
        strategy.close()
    return parameters()


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("staleness", [0, 4])
def test_async_converges(library, staleness):
    results = ranks.run(3, converge, library, staleness)
    check_same(results)

    def loss(parameters):
        net = Net()
        net.parameters = parameters
        net.gradients(*batch(12345))
        return net.loss

    assert loss(results[0]) < 0.2 * loss(Net().parameters)


# ---- Checkpoints


def run_with_checkpoint(group, library, servers, path, first, last, mode="sync"):
    strategy, step, parameters = make(group, library, "adam", seed=1 if first == 0 else 9, servers=servers, mode=mode)
    if first:
        strategy.load(path)
    assert strategy.steps == first
    if strategy.is_server:
        strategy.serve()
    else:
        while strategy.steps < last:
            step(group.rank, strategy.workers)
        strategy.save(path)
        strategy.close()
    return parameters()


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_run_goes_on_from_a_checkpoint_on_other_ranks(tmp_path, library):
    path = str(tmp_path / "checkpoint")
    for size, servers, first, last in (4, 2, 0, 4), (3, 1, 4, 8), (4, 3, 8, 12):
        results = ranks.run(size, run_with_checkpoint, library, servers, path, first, last)
        check_same(results)
    check(results[0], alone("adam", 12))


def test_an_interrupted_run_is_the_uninterrupted_one_to_the_last_bit(tmp_path):
    whole = ranks.run(3, run_with_checkpoint, "numpy", 1, str(tmp_path / "whole"), 0, 8)
    ranks.run(3, run_with_checkpoint, "numpy", 1, str(tmp_path / "half"), 0, 4)
    check_same(whole + ranks.run(3, run_with_checkpoint, "numpy", 1, str(tmp_path / "half"), 4, 8))


def test_async_with_one_worker_is_exact_and_resumes(tmp_path):
    path = str(tmp_path / "checkpoint")
    for first, last in (0, 5), (5, 10):
        results = ranks.run(2, run_with_checkpoint, "numpy", 1, path, first, last, "async")
    check(results[0], alone("adam", 10))


# ---- Ranks that are lost


def lose_one(group, mode, lost, path):
    me, servers = group.rank, 2
    strategy, step, parameters = make(group, "numpy", "adam", servers=servers, mode=mode)
    errors = []
    while True:
        try:
            if strategy.is_server:
                if me == lost:
                    os.kill(os.getpid(), signal.SIGKILL)
                strategy.serve()
                break
            while strategy.steps < 12:
                if me == lost and strategy.steps == 7:
                    os.kill(os.getpid(), signal.SIGKILL)
                step(strategy.group.rank, strategy.workers)
                if strategy.steps == 6:
                    strategy.save(path)
            strategy.close()
            break
        except (col.PeerLost, col.Aborted) as error:
            errors.append((type(error).__name__, error.rank))
            smaller = shrink(strategy.group, error.rank)
            strategy, step, parameters = make(smaller, "numpy", "adam", seed=9, mode=mode)
            if os.path.exists(path):
                strategy.load(path)
    assert [rank for _, rank in errors] == [lost]
    return parameters()


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("lost", [1, 3])  # a worker; a server, which dies at once
def test_a_lost_rank_is_named_and_the_others_start_again(tmp_path, mode, lost):
    results = mortal.run(4, lose_one, mode, lost, str(tmp_path / "checkpoint"))
    assert sorted(results) == [rank for rank in range(4) if rank != lost]
    check_same(list(results.values()))
    if mode == "sync" and lost == 1:
        check(results[0], alone("adam", 12))


# ---- What is wrong


def refusals(group):
    x = np.zeros(3)
    for options, words in [
        ({"servers": 2}, "nobody would be left"), ({"servers": 0}, "servers is 0"), ({"mode": "both"}, "mode is 'both'"),
        ({"staleness": 2}, "staleness is for mode 'async'"), ({"mode": "async", "staleness": -1}, "staleness is -1"),
        ({"mode": "async", "staleness": 1.5}, "staleness is 1.5"),
    ]:
        with pytest.raises(col.InvalidArgument, match=words):
            ParameterServer(group, x, SGD(0.1), **options)
    with pytest.raises(col.InvalidArgument, match="SGD or Adam"):
        ParameterServer(group, x, None)
    strategy = ParameterServer(group, x, SGD(1.0))
    if strategy.is_server:
        for call in lambda: strategy.step(x), strategy.close, strategy.state_dict, lambda: strategy.save("x"):
            with pytest.raises(col.InvalidArgument, match="is for workers"):
                call()
        strategy.serve()
        with pytest.raises(col.InvalidArgument, match="after close"):
            strategy.serve()
    else:
        with pytest.raises(col.InvalidArgument, match="is for servers"):
            strategy.serve()
        with pytest.raises(col.InvalidArgument, match="gradient 0 is float64 of shape"):
            strategy.step(np.ones(4))
        strategy.step(np.ones(3))
        state = strategy.state_dict()
        with pytest.raises(col.InvalidArgument, match="before the first step"):
            strategy.load_state_dict(state)
        with pytest.raises(col.IoError, match="could not be written"):
            strategy.save("/none/at all")
        strategy.step(np.ones(3))
        strategy.close()
    assert (x == -2).all()


def test_refusals():
    ranks.run(2, refusals)
