"""Zero: the same parameters as in one process, with a part of the state on each rank."""

import os
import signal

import numpy as np
import pytest
import torch

import col
import mortal
import ranks
from col.strategies import SGD, Adam, AllReduce, Zero, checkpoint, shrink
from training import OPTIMIZERS, Net, alone, batch, check, check_same, in_numpy_order, torch_loss, torch_net

COUNT = 5 * 7 + 7 + 7 * 2 + 2  # of the net's parameters


class Trained:
    """A Zero of numpy arrays or of a torch module, and what both have in common."""

    def __init__(self, group, library, optimizer, seed=1):
        self.library, self.net, self.module = library, Net(seed), torch_net(seed)
        of_numpy, of_torch = OPTIMIZERS[optimizer]
        is_torch = library == "torch"
        self.strategy = Zero(group, self.module if is_torch else self.net.parameters, of_torch if is_torch else of_numpy())

    def step(self):
        group = self.strategy.group
        part = batch(self.strategy.steps, group.rank, group.size)
        if self.library == "numpy":
            self.strategy.step(self.net.gradients(*part))
        else:
            torch_loss(self.module, *part).backward()
            self.strategy.step()
            assert all(parameter.grad is None for parameter in self.module.parameters())

    @property
    def parameters(self):
        return self.net.parameters if self.library == "numpy" else in_numpy_order(self.module)


def train(group, library, optimizer):
    trained = Trained(group, library, optimizer, seed=1 + group.rank)  # rank 0's counts
    for _ in range(10):
        trained.step()
    return trained.parameters, trained.strategy.memory()


@pytest.mark.parametrize("optimizer, vectors", [("sgd", 0), ("momentum", 1), ("adam", 2)])
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("size", [1, 3, 4])
def test_training_and_memory(size, library, optimizer, vectors):
    results, memories = zip(*ranks.run(size, train, library, optimizer))
    check_same(results)
    check(results[0], alone(optimizer, 10))
    shard = -(-COUNT // size)  # 58 on 3 and on 4 ranks: the last shard is short
    for memory in memories:
        assert memory == {
            "parameters": 8 * COUNT, "gradients": 8 * COUNT, "optimizer": 8 * vectors * shard, "buffers": 8 * shard * (size + 2),
            "copies": 0,
        }  # fmt: skip


def more_ranks_than_parameters(group):
    x = np.array([1.0, 2.0])
    strategy = Zero(group, x, Adam(0.1))
    for _ in range(3):
        strategy.step(np.array([1.0, -1.0]))
    strategy.load_state_dict(strategy.state_dict())
    return x


def test_more_ranks_than_parameters():
    for x in ranks.run(4, more_ranks_than_parameters):
        np.testing.assert_allclose(x, [0.7, 2.3], atol=1e-7)  # Adam's first steps are lr, but for its eps


def run_with_checkpoint(group, library, path, first, last):
    trained = Trained(group, library, "adam", seed=1 if first == 0 else 9)
    if first:
        trained.strategy.load(path)
    assert trained.strategy.steps == first
    while trained.strategy.steps < last:
        trained.step()
    trained.strategy.save(path)
    return trained.parameters


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_run_goes_on_from_a_checkpoint_on_other_ranks(tmp_path, library):
    path = str(tmp_path / "checkpoint")
    for size, first, last in (3, 0, 4), (4, 4, 8), (1, 8, 10), (2, 10, 12):
        results = ranks.run(size, run_with_checkpoint, library, path, first, last)
        check_same(results)
    check(results[0], alone("adam", 12))


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_an_interrupted_run_is_the_uninterrupted_one_to_the_last_bit(tmp_path, library):
    whole = ranks.run(3, run_with_checkpoint, library, str(tmp_path / "whole"), 0, 8)
    ranks.run(3, run_with_checkpoint, library, str(tmp_path / "half"), 0, 4)
    check_same(whole + ranks.run(3, run_with_checkpoint, library, str(tmp_path / "half"), 4, 8))


def from_all_reduce(group, path):
    net = Net()
    first = AllReduce(group, net.parameters, Adam(0.01))
    for step in range(4):
        first.step(net.gradients(*batch(step, group.rank, group.size)))
    first.save(path)
    return run_with_checkpoint(group, "numpy", path, 4, 8)


def test_it_reads_checkpoints_of_all_reduce(tmp_path):
    check(ranks.run(3, from_all_reduce, str(tmp_path / "checkpoint"))[0], alone("adam", 8))


def lose_one(group, library, path):
    """Rank 1 dies in step 7. The checkpoint is of step 6, and one is written every third step."""
    me = group.rank
    trained = Trained(group, library, "adam")
    while trained.strategy.steps < 12:
        try:
            if me == 1 and trained.strategy.steps == 7:
                os.kill(os.getpid(), signal.SIGKILL)
            trained.step()
            if trained.strategy.steps % 3 == 0:
                trained.strategy.save(path)
        except (col.PeerLost, col.Aborted) as error:
            trained = Trained(shrink(trained.strategy.group, error.rank), library, "adam", seed=9)
            trained.strategy.load(path)
            assert trained.strategy.steps == 6
    return trained.parameters


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_the_others_go_on_from_the_checkpoint(tmp_path, library):
    results = mortal.run(3, lose_one, library, str(tmp_path / "checkpoint"))
    assert sorted(results) == [0, 2]
    check_same(list(results.values()))
    check(results[0], alone("adam", 12))


# ---- Checkpoints as such


def bad_checkpoints(group, folder):
    strategy = Zero(group, Net().parameters, SGD(0.1))
    module = Zero(group, torch_net(), OPTIMIZERS["adam"][1])
    strategy.save(folder + "/good")
    module.save(folder + "/of torch")
    if group.rank == 0:
        with open(folder + "/good", "rb") as file:
            whole = file.read()
        for name, content in ("cut", whole[: len(whole) // 2]), ("empty", b""), ("text", b"no checkpoint"):
            with open(f"{folder}/{name}", "wb") as file:
                file.write(content)
    for name in "cut", "empty", "text":
        with pytest.raises(col.InvalidArgument, match=f"{name}' is no checkpoint"):
            strategy.load(f"{folder}/{name}")
    with pytest.raises(col.InvalidArgument, match="kind 'torch flat'.*needs kind 'numpy'"):
        strategy.load(folder + "/of torch")
    with pytest.raises(col.IoError, match="could not be read by rank 0"):
        strategy.load(folder + "/none")
    with pytest.raises(col.IoError, match="could not be written"):
        strategy.save(folder + "/none/at all")
    with pytest.raises(col.InvalidArgument, match="another optimizer"):
        Zero(group, Net().parameters, Adam()).load(folder + "/good")
    with pytest.raises(col.InvalidArgument, match="another model"):
        Zero(group, [np.zeros(3)], SGD(0.1)).load(folder + "/good")
    strategy.load(folder + "/good")
    module.load(folder + "/of torch")


def test_bad_checkpoints_are_named_on_all_ranks(tmp_path):
    ranks.run(2, bad_checkpoints, str(tmp_path))


def test_a_write_that_fails_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    checkpoint.write(path, {**checkpoint.header("numpy", 1), "parameters": [np.zeros(3)]})

    def fail(*unused):
        raise OSError("no space")

    for call in "fsync", "replace":
        with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
            patch.setattr(os, call, fail)
            checkpoint.write(path, {**checkpoint.header("numpy", 2), "parameters": [np.ones(3)]})
    assert checkpoint.read(path)["steps"] == 1
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_what_is_wrong():
    ranks.run(2, refusals)


def refusals(group):
    with pytest.raises(col.InvalidArgument, match="function that makes one of parameters"):
        module = torch_net()
        Zero(group, module, torch.optim.SGD(module.parameters(), lr=0.1))
    strategy = Zero(group, Net().parameters, SGD(0.1))
    with pytest.raises(col.InvalidArgument, match="pass the gradients"):
        strategy.step()
    with pytest.raises(col.InvalidArgument, match="2 gradients for 4"):
        strategy.step(Net().parameters[:2])
    with pytest.raises(col.InvalidArgument, match="pass no gradients"):
        Zero(group, torch_net(), OPTIMIZERS["sgd"][1]).step([])
