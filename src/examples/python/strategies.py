"""Trains the network of digits.py by each of the strategies of col.strategies:

    colrun -n 4 python3 strategies.py --strategy allreduce
    colrun -n 3 python3 strategies.py --strategy ps-async
    colrun -n 2 python3 strategies.py --strategy pipeline
    python3 strategies.py --strategy zero --ray 4        # the same between Ray actors

Rank 0 says the loss of its own part of the images, and how many of the test images it recognizes.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any, Callable

import numpy as np

import col
import digits
from col.strategies import SGD, AllReduce, ParameterServer, Pipeline, Zero

Array = digits.Array
Say = Callable[[str], Any]
MICRO_BATCHES = 4


class Training:
    """The images in the order of digits.py, the network, and what rank 0 says after each epoch."""

    def __init__(self, options: argparse.Namespace, say: Say) -> None:
        self.options, self.say = options, say
        self.images, self.labels, self.test_images, self.test_labels = digits.read_images(options.data)
        self.network = digits.Network(options.seed)
        self.parameters = list(digits.Network.parts(self.network.parameters))
        self.steps_per_epoch = -(-len(self.images) // options.batch)
        self.steps = options.epochs * self.steps_per_epoch
        self.optimizer = SGD(options.lr, momentum=0.9)
        self.losses: list[float] = []
        self.epoch, self.order = -1, np.empty(0, int)

    def batch(self, step: int) -> Array:
        epoch, number = divmod(step, self.steps_per_epoch)
        if epoch != self.epoch:
            self.epoch, self.order = epoch, digits.epoch_order(self.options.seed, epoch, len(self.images))
        return self.order[number * self.options.batch :][: self.options.batch]

    def gradients(self, step: int, rank: int, size: int) -> list[Array]:
        """Of this rank's part of the batch; their average over the ranks is that of the mean loss."""
        batch = self.batch(step)
        mine = np.array_split(batch, size)[rank]
        gradient = np.zeros(self.network.parameters.size)
        loss = self.network.add_gradient(self.images[mine], self.labels[mine], gradient)
        self.losses.append(loss / max(len(mine), 1))
        gradient *= size / len(batch)
        return list(digits.Network.parts(gradient))

    def report(self, steps: int) -> None:
        if steps % self.steps_per_epoch == 0:
            accuracy = self.network.count_correct(self.test_images, self.test_labels) / len(self.test_images)
            loss = np.mean(self.losses)
            self.say(f"epoch {steps // self.steps_per_epoch:3}  loss {loss:.6f}  test accuracy {accuracy:.4f}")
            self.losses.clear()


def resume(world: col.Group, strategy: Any, path: pathlib.Path | None) -> None:
    if path is not None and world.broadcast_object(path.exists()):
        strategy.load(path)


def train_parallel(world: col.Group, training: Training, path: pathlib.Path | None) -> None:
    """AllReduce and Zero: every rank computes gradients of its part of the batch."""
    kind = AllReduce if training.options.strategy == "allreduce" else Zero
    strategy: Any = kind(world, training.parameters, training.optimizer)
    resume(world, strategy, path)
    while strategy.steps < training.steps:
        group, step = strategy.group, strategy.steps
        try:
            strategy.step(training.gradients(step, group.rank, group.size))
            if path is not None and strategy.steps % training.steps_per_epoch == 0:
                strategy.save(path)
        except (col.PeerLost, col.Aborted) as error:
            if not isinstance(strategy, AllReduce):
                raise
            strategy.recover()
            print(f"{error}\nnow {strategy.group.size} ranks go on after step {strategy.steps}", file=sys.stderr)
            continue
        if group.rank == 0:
            training.report(strategy.steps)
    if strategy.group.rank == 0:
        found = strategy.stats() if isinstance(strategy, AllReduce) else strategy.memory()
        training.say(", ".join(f"{name} {value}" for name, value in found.items()))


def train_by_server(world: col.Group, training: Training, path: pathlib.Path | None) -> None:
    is_async = training.options.strategy == "ps-async"
    if is_async:  # each worker's gradients make a step of their own
        training.optimizer.lr /= max(world.size - 1, 1)
    strategy = ParameterServer(
        world, training.parameters, training.optimizer, mode="async" if is_async else "sync", staleness=4 if is_async else 0
    )
    resume(world, strategy, path)
    if strategy.is_server:
        strategy.serve()
        return
    while strategy.steps < training.steps:
        strategy.step(training.gradients(strategy.steps, world.rank, strategy.workers))
        if path is not None and strategy.steps % training.steps_per_epoch == 0:
            strategy.save(path)
        if world.rank == 0:
            training.report(strategy.steps)
    strategy.close()
    if world.rank == 0:
        training.say(", ".join(f"{name} {value}" for name, value in strategy.stats().items()))


# ---- The two layers as stages of a pipeline


class Layer:
    """Weights and biases; ReLU after the first layer."""

    def __init__(self, weights: Array, biases: Array, has_relu: bool) -> None:
        self.weights, self.biases, self.has_relu = weights, biases, has_relu
        self.parameters = [weights, biases]
        self.gradients = [np.zeros_like(weights), np.zeros_like(biases)]

    def forward(self, x: Array) -> tuple[Array, Any]:
        y = x @ self.weights.T + self.biases
        if self.has_relu:
            y = np.maximum(y, 0)
        return y, (x, y)

    def backward(self, saved: Any, dy: Array) -> Array:
        x, y = saved
        if self.has_relu:
            dy = dy * (y > 0)
        self.gradients[0] += dy.T @ x
        self.gradients[1] += dy.sum(axis=0)
        return np.asarray(dy @ self.weights)


class Layers:
    """Several layers in one stage."""

    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers
        self.parameters = [parameter for layer in layers for parameter in layer.parameters]
        self.gradients = [gradient for layer in layers for gradient in layer.gradients]

    def forward(self, x: Array) -> tuple[Array, Any]:
        saved = []
        for layer in self.layers:
            x, own = layer.forward(x)
            saved.append(own)
        return x, saved

    def backward(self, saved: Any, dy: Array) -> Array:
        for layer, own in zip(reversed(self.layers), reversed(saved)):
            dy = layer.backward(own, dy)
        return dy


def cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    mine = np.arange(len(labels)), labels
    logits = logits - logits.max(axis=1, keepdims=True)
    sums = np.exp(logits).sum(axis=1, keepdims=True)
    delta = np.exp(logits) / sums
    delta[mine] -= 1
    return float(np.mean(np.log(sums[:, 0]) - logits[mine])), delta / len(labels)


def train_pipeline(world: col.Group, training: Training, path: pathlib.Path | None) -> None:
    weights1, biases1, weights2, biases2 = training.parameters
    layers = [Layer(weights1, biases1, True), Layer(weights2, biases2, False)]
    if world.size > len(layers):
        sys.exit(f"the network has {len(layers)} layers, so there can be no {world.size} stages: start {len(layers)} ranks")
    stage = Layers(layers if world.size == 1 else [layers[world.rank]])
    strategy = Pipeline(world, stage, cross_entropy, training.optimizer, micro_batches=MICRO_BATCHES)
    resume(world, strategy, path)
    while strategy.steps < training.steps:
        batch = training.batch(strategy.steps)
        batch = batch[: len(batch) // MICRO_BATCHES * MICRO_BATCHES]
        training.losses.append(strategy.step(training.images[batch], training.labels[batch]))
        if strategy.steps % training.steps_per_epoch == 0:
            for parameter in layers[-1].parameters:  # rank 0 tests the whole network
                world.broadcast(parameter, root=world.size - 1)
            if path is not None:
                strategy.save(path)
        if world.rank == 0:
            training.report(strategy.steps)
    if world.rank == 0:
        training.say(", ".join(f"{name} {value}" for name, value in strategy.stats().items()))


TRAIN = {
    "allreduce": train_parallel, "zero": train_parallel, "ps": train_by_server, "ps-async": train_by_server,
    "pipeline": train_pipeline,
}  # fmt: skip


def train(world: col.Group, options: argparse.Namespace, say: Say) -> None:
    if world.rank == 0:
        say(f"{options.strategy} on {world.size} ranks over {world.backend}")
    TRAIN[options.strategy](world, Training(options, say), options.checkpoint)


# ---- Under Ray


class Worker:
    def train(self, rank: int, size: int, options: argparse.Namespace) -> list[str]:
        import col.ray as collective

        lines: list[str] = []
        collective.init_collective_group(size, rank, group_name="training")
        train(collective.get_group("training"), options, lines.append)
        collective.destroy_collective_group("training")
        return lines


def train_under_ray(options: argparse.Namespace) -> None:
    import ray

    ray.init(include_dashboard=False)
    workers = [ray.remote(Worker).remote() for _ in range(options.ray)]
    answers = ray.get([worker.train.remote(rank, options.ray, options) for rank, worker in enumerate(workers)])
    print("\n".join(answers[0]))
    ray.shutdown()


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                 parents=[digits.parser], add_help=False)  # fmt: skip
parser.add_argument("--strategy", choices=TRAIN, default="allreduce", help="(default %(default)s)")
parser.add_argument("--checkpoint", type=pathlib.Path, metavar="FILE", help="go on from it, and write it after each epoch")
parser.add_argument("--ray", type=int, default=0, metavar="N", help="N Ray actors, instead of ranks of colrun")

if __name__ == "__main__":
    options = parser.parse_args()
    if options.ray:
        train_under_ray(options)
    else:
        train(col.init(), options, lambda line: print(line, flush=True))
        col.finalize()
