"""Pipeline: the parameters of one process, at most as many activations as there are stages, checkpoints, lost ranks."""

import os
import signal

import numpy as np
import pytest
import torch

import col
import mortal
import ranks
from col.strategies import SGD, Adam, Pipeline, shrink
from col.strategies.schedule import one_forward_one_backward
from training import OPTIMIZERS, TOLERANCE, check

WIDTHS = [5, 8, 7, 6, 2]  # four layers
LAYERS = len(WIDTHS) - 1


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("micro_batches", [1, 2, 4, 9])
def test_schedule(stages, micro_batches):
    """Every stage can go on to the end, with few micro-batches at a time."""
    orders = [list(one_forward_one_backward(stage, stages, micro_batches)) for stage in range(stages)]
    done = [set() for _ in orders]
    for stage, order in enumerate(orders):
        for kind in "forward", "backward":
            assert [i for other, i in order if other == kind] == list(range(micro_batches))
        saved = np.cumsum([1 if kind == "forward" else -1 for kind, _ in order])
        assert saved.max() == min(stages - stage, micro_batches) and saved.min() == 0
    while any(orders):
        moved = False
        for stage, order in enumerate(orders):
            while order:
                kind, i = order[0]
                needed = stage - 1 if kind == "forward" else stage + 1
                if 0 <= needed < stages and (kind, i) not in done[needed]:
                    break
                done[stage].add(order.pop(0))
                moved = True
        assert moved, "the stages wait for one another"


class Layers:
    """Layers from one to another, as a stage."""

    def __init__(self, begin, end, seed=1):
        rng = np.random.default_rng(seed)
        all_parameters = []
        for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
            all_parameters += [rng.normal(size=(inputs, outputs)) / 2, rng.normal(size=outputs) / 2]
        self.parameters = all_parameters[2 * begin : 2 * end]
        self.gradients = [np.ones_like(parameter) for parameter in self.parameters]  # the strategy clears them

    def forward(self, x):
        saved = []
        for weights, biases in zip(self.parameters[::2], self.parameters[1::2]):
            y = np.tanh(x @ weights + biases)
            saved.append((x, y))
            x = y
        return x, saved

    def backward(self, saved, dy):
        for layer in reversed(range(len(saved))):
            x, y = saved[layer]
            below = dy * (1 - y**2)
            self.gradients[2 * layer] += x.T @ below
            self.gradients[2 * layer + 1] += below.sum(axis=0)
            dy = below @ self.parameters[2 * layer].T
        return dy


def torch_layers(begin, end, seed=1):
    """The same as a torch module."""
    parts = []
    parameters = iter(Layers(begin, end, seed).parameters)
    for inputs, outputs in zip(WIDTHS[begin:end], WIDTHS[begin + 1 : end + 1]):
        linear = torch.nn.Linear(inputs, outputs).double()
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(next(parameters).T))
            linear.bias.copy_(torch.from_numpy(next(parameters)))
        parts += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*parts)


def squares(y, target):
    return np.mean((y - target) ** 2), 2 * (y - target) / y.size


def torch_squares(y, target):
    return (y - target).square().mean()


def batch(step, rows=24):
    rng = np.random.default_rng(step)
    x = rng.normal(size=(rows, WIDTHS[0]))
    return x, np.tanh(x[:, : WIDTHS[-1]])


def layers_of(rank, size):
    """Some layers for each rank: 1 and 3 of 2, 1, 1 and 2 of 3."""
    cuts = {1: [0, 4], 2: [0, 1, 4], 3: [0, 1, 2, 4], 4: [0, 1, 2, 3, 4]}[size]
    return cuts[rank], cuts[rank + 1]


class Trained:
    def __init__(self, group, library, optimizer, micro_batches, seed=1):
        of_numpy, of_torch = OPTIMIZERS[optimizer]
        self.begin, self.end = layers_of(group.rank, group.size)
        if library == "numpy":
            self.stage = Layers(self.begin, self.end, seed)
            self.strategy = Pipeline(group, self.stage, squares, of_numpy(), micro_batches=micro_batches)
        else:
            self.stage = torch_layers(self.begin, self.end, seed)
            self.strategy = Pipeline(group, self.stage, torch_squares, of_torch, micro_batches=micro_batches)
        self.is_torch = library == "torch"

    def step(self, rows=24):
        x, target = batch(self.strategy.steps, rows)
        if self.is_torch:
            x, target = torch.from_numpy(x), torch.from_numpy(target)
        group = self.strategy.group
        return self.strategy.step(x if group.rank == 0 else None, target if group.rank == group.size - 1 else None)

    @property
    def parameters(self):
        if self.is_torch:
            return [parameter.detach().numpy().T.copy() for parameter in self.stage.parameters()]
        return self.stage.parameters


def alone(optimizer, steps, rows=24):
    """The whole batch at once through the whole network, by torch. The parameters and the losses."""
    module = torch_layers(0, LAYERS)
    made = OPTIMIZERS[optimizer][1](module.parameters())
    losses = []
    for step in range(steps):
        made.zero_grad()
        x, target = batch(step, rows)
        loss = torch_squares(module(torch.from_numpy(x)), torch.from_numpy(target))
        loss.backward()
        made.step()
        losses.append(loss.item())
    return [parameter.detach().numpy().T.copy() for parameter in module.parameters()], losses


def train(group, library, optimizer, micro_batches):
    trained = Trained(group, library, optimizer, micro_batches)
    losses = [trained.step() for _ in range(8)]
    stats = trained.strategy.stats()
    assert stats["steps"] == 8 and 0 < stats["computing"] and 0 <= stats["idle"] < 1
    return trained.parameters, losses, stats["peak_saved"]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("size, micro_batches", [(1, 3), (2, 1), (2, 4), (3, 2), (4, 8), (4, 12)])
def test_training(size, micro_batches, library, optimizer):
    results = ranks.run(size, train, library, optimizer, micro_batches)
    wanted, wanted_losses = alone(optimizer, 8)
    check(sum((parameters for parameters, *_ in results), []), wanted)
    for rank, (_, losses, peak) in enumerate(results):
        np.testing.assert_allclose(losses, wanted_losses, atol=TOLERANCE)
        assert losses == results[0][1]
        assert peak == min(size - rank, micro_batches)


def other_shapes(group):
    """Batches may differ in size, and activations may be of any shape."""
    trained = Trained(group, "numpy", "sgd", 4)
    for rows in 8, 40, 4:
        trained.step(rows)
    return trained.parameters


def test_batches_of_different_sizes():
    module = torch_layers(0, LAYERS)
    made = torch.optim.SGD(module.parameters(), lr=0.1)
    for step, rows in enumerate((8, 40, 4)):
        made.zero_grad()
        x, target = batch(step, rows)
        torch_squares(module(torch.from_numpy(x)), torch.from_numpy(target)).backward()
        made.step()
    wanted = [parameter.detach().numpy().T for parameter in module.parameters()]
    check(sum(ranks.run(3, other_shapes), []), wanted)


class Embedding(torch.nn.Module):
    """From whole numbers to activations with three axes, in bfloat16."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, x):
        return self.table(x).bfloat16()


class Rest(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)

    def forward(self, x):
        assert x.dtype == torch.bfloat16 and x.dim() == 3
        return self.linear(x.float()).mean(dim=(1, 2))


def embed(group):
    torch.manual_seed(0)
    parts = [Embedding(), Rest()]
    loss = torch.nn.functional.mse_loss
    strategy = Pipeline(group, parts[group.rank], loss, OPTIMIZERS["adam"][1], micro_batches=2)
    numbers = torch.arange(24).reshape(8, 3) % 10
    return [strategy.step(numbers, numbers.float().mean(dim=1)) for _ in range(30)]


def test_other_dtypes():
    losses = ranks.run(2, embed)[0]
    assert losses[-1] < 0.9 * losses[0]


# ---- Checkpoints and lost ranks


def run_with_checkpoint(group, library, path, first, last):
    trained = Trained(group, library, "adam", 4, seed=1 if first == 0 else 9)
    if first:
        trained.strategy.load(path)
    assert trained.strategy.steps == first
    while trained.strategy.steps < last:
        trained.step()
    trained.strategy.load_state_dict(trained.strategy.state_dict())
    trained.strategy.save(path)
    return trained.parameters


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_run_goes_on_from_a_checkpoint_with_the_layers_elsewhere(tmp_path, library):
    path = str(tmp_path / "checkpoint")
    for size, first, last in (3, 0, 3), (3, 3, 5), (2, 5, 7), (4, 7, 9), (1, 9, 10):
        results = ranks.run(size, run_with_checkpoint, library, path, first, last)
    check(results[0], alone("adam", 10)[0])


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_an_interrupted_run_is_the_uninterrupted_one_to_the_last_bit(tmp_path, library):
    whole = ranks.run(3, run_with_checkpoint, library, str(tmp_path / "whole"), 0, 6)
    ranks.run(3, run_with_checkpoint, library, str(tmp_path / "half"), 0, 3)
    for one, other in zip(whole, ranks.run(3, run_with_checkpoint, library, str(tmp_path / "half"), 3, 6)):
        for mine, theirs in zip(one, other):
            np.testing.assert_array_equal(mine, theirs)


def lose_one(group, library, path, lost):
    me = group.rank
    trained = Trained(group, library, "adam", 4)
    while trained.strategy.steps < 10:
        try:
            if me == lost and trained.strategy.steps == 7:
                os.kill(os.getpid(), signal.SIGKILL)
            trained.step()
            if trained.strategy.steps % 3 == 0:
                trained.strategy.save(path)
        except (col.PeerLost, col.Aborted) as error:
            trained = Trained(shrink(trained.strategy.group, error.rank), library, "adam", 4, seed=9)
            trained.strategy.load(path)
            assert trained.strategy.steps == 6
    return trained.parameters


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("lost", [0, 1, 2])
def test_the_others_take_its_layers_and_go_on_from_the_checkpoint(tmp_path, library, lost):
    results = mortal.run(3, lose_one, library, str(tmp_path / "checkpoint"), lost)
    assert sorted(results) == [rank for rank in range(3) if rank != lost]
    check(sum(results.values(), []), alone("adam", 10)[0])


# ---- What is wrong


def refusals(group, path):
    first, last = group.rank == 0, group.rank == 1
    with pytest.raises(col.InvalidArgument, match="lacks forward, backward, parameters, gradients"):
        Pipeline(group, "stage", squares, SGD(0.1))
    with pytest.raises(col.InvalidArgument, match="loss is a function"):
        Pipeline(group, Layers(0, 1), None, SGD(0.1))
    with pytest.raises(col.InvalidArgument, match="micro_batches is 0"):
        Pipeline(group, Layers(0, 1), squares, SGD(0.1), micro_batches=0)
    with pytest.raises(col.InvalidArgument, match="SGD or Adam"):
        Pipeline(group, Layers(0, 1), squares, torch.optim.SGD)
    short = Layers(0, 1)
    short.gradients = short.gradients[:1]
    with pytest.raises(col.InvalidArgument, match="1 gradients for 2 parameters"):
        Pipeline(group, short, squares, SGD(0.1))

    trained = Trained(group, "numpy", "sgd", 4)
    with pytest.raises(col.InvalidArgument, match=f"needs {'inputs on the first' if first else 'targets on the last'} stage"):
        trained.strategy.step()
    with pytest.raises(col.InvalidArgument, match="6 (inputs|targets) cannot be cut into 4"):
        trained.strategy.step(np.zeros((6, 5)) if first else None, np.zeros((6, 2)) if last else None)
    with pytest.raises(col.IoError, match="could not be read by rank 0"):
        trained.strategy.load(path)
    trained.strategy.save(path)
    with pytest.raises(col.InvalidArgument, match="kind 'stages numpy'"):
        Trained(group, "torch", "sgd", 4).strategy.load(path)
    with pytest.raises(col.InvalidArgument, match="of other layers"):
        Pipeline(group, Layers(0, 2), squares, SGD(0.1)).load(path)
    with pytest.raises(col.InvalidArgument, match="another optimizer"):
        Pipeline(group, Layers(trained.begin, trained.end), squares, Adam()).load(path)
    trained.strategy.load(path)
    assert trained.step() > 0  # it has survived all that


def test_refusals(tmp_path):
    ranks.run(2, refusals, str(tmp_path / "checkpoint"))
