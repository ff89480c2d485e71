"""Trains a small neural network on images of handwritten digits, data-parallel over all ranks:

    colrun -n 4 python3 digits.py

The numpy twin of digits_trainer, the C++ example: same network, same first weights, same order of images, same losses. With
--elastic, it goes on when a rank dies:

    colrun -n 4 --keep-going python3 digits.py --elastic
"""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

import col
from mt19937_64 import Engine, seed_seq

DATA = pathlib.Path(__file__).parent.parent / "data" / "digits.csv"
PIXELS, HIDDEN, CLASSES = 64, 128, 10
MOMENTUM = np.float32(0.9)
Array = NDArray[Any]


def read_images(path: pathlib.Path) -> tuple[Array, Array, Array, Array]:
    """Pixels from -1 to 1, and labels, for training and for testing: every fifth image is for testing."""
    table = np.loadtxt(path, delimiter=",", dtype=np.float32)
    pixels, labels = table[:, :-1] / 8 - 1, table[:, -1].astype(int)
    is_test = np.arange(len(table)) % 5 == 4
    return pixels[~is_test], labels[~is_test], pixels[is_test], labels[is_test]


def epoch_order(seed: int, epoch: int, count: int) -> Array:
    """The images in an order of their own for every epoch, the same on all ranks: nobody has to send it."""
    engine = Engine(seed_seq([seed & 0xFFFFFFFF, seed >> 32, epoch, 0]))
    order = list(range(count))
    for left in range(count, 1, -1):
        other = engine() % left
        order[left - 1], order[other] = order[other], order[left - 1]
    return np.array(order)


def add_product(total: Array, a: Array, b: Array) -> Array:
    """total += a @ b, one term after the other, as the C++ program adds. @ adds in an order of its own, and then the last
    bits of the sums differ."""
    for i in range(len(b)):
        total += a[:, i, None] * b[i]
    return total


class Network:
    """64 pixels, 128 ReLU units, softmax over 10 classes. All parameters are one array, so that all gradients are one
    array, and one allreduce a step is enough."""

    def __init__(self, seed: int) -> None:
        self.parameters = np.zeros(PIXELS * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES, np.float32)
        self.weights1, self.biases1, self.weights2, self.biases2 = self.parts(self.parameters)
        engine = Engine(seed)
        for weights in self.weights1, self.weights2:
            units = np.array([engine() >> 11 for _ in range(weights.size)]) * 2.0**-53  # from 0 to 1
            weights[:] = ((2 * units - 1) * np.sqrt(6 / weights.shape[1])).reshape(weights.shape)

    @staticmethod
    def parts(array: Array) -> tuple[Array, Array, Array, Array]:
        """Views of the four parts of an array as large as the parameters."""
        first = PIXELS * HIDDEN
        second = first + HIDDEN
        third = second + HIDDEN * CLASSES
        return (array[:first].reshape(HIDDEN, PIXELS), array[first:second],
                array[second:third].reshape(CLASSES, HIDDEN), array[third:])  # fmt: skip

    def forward(self, images: Array) -> tuple[Array, Array]:
        hidden = add_product(np.tile(self.biases1, (len(images), 1)), images, self.weights1.T)
        hidden = np.maximum(hidden, 0)
        return hidden, add_product(np.tile(self.biases2, (len(images), 1)), hidden, self.weights2.T)

    def add_gradient(self, images: Array, labels: Array, gradient: Array) -> float:
        """Adds the gradient of the cross-entropy, summed over the images; returns the summed loss. Sums in float64, so
        that cutting a batch differently over ranks changes no more than the last bits."""
        hidden, logits = self.forward(images)
        mine = np.arange(len(images)), labels
        logits -= logits.max(axis=1, keepdims=True)
        exps = np.exp(logits, dtype=np.float64)
        sums = exps.cumsum(axis=1)[:, -1:]  # sum() would add pairwise
        losses = np.log(sums[:, 0]) - logits[mine]

        delta = (exps / sums).astype(np.float32)
        delta[mine] -= 1
        weights1, biases1, weights2, biases2 = self.parts(gradient)
        add_product(weights2, delta.T, hidden)
        biases2 += delta.sum(axis=0, dtype=np.float64)
        hidden_delta = add_product(np.zeros_like(hidden), delta, self.weights2)
        hidden_delta[hidden <= 0] = 0  # no gradient through a unit that is off
        add_product(weights1, hidden_delta.T, images)
        biases1 += hidden_delta.sum(axis=0, dtype=np.float64)
        return float(losses.cumsum()[-1]) if len(losses) else 0.0

    def count_correct(self, images: Array, labels: Array) -> int:
        return int(np.count_nonzero(self.forward(images)[1].argmax(axis=1) == labels))


def my_part(world: col.Group, array: Array) -> Array:
    """A contiguous part of about equal length for each rank."""
    return np.array_split(array, world.size)[world.rank]


class Training:
    """What a rank needs to go on with the training: the same on all ranks before each step, and complete after each. A step
    is a batch; the last one of an epoch is the test."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.images, self.labels, self.test_images, self.test_labels = read_images(options.data)
        self.network = Network(options.seed)
        self.velocity = np.zeros_like(self.network.parameters)
        self.steps = 0
        self.total = 0.0  # loss of the epoch, until now
        self.lines: list[str] = []  # what has been printed of the epochs before

    def share(self, world: col.Group) -> None:
        """All ranks take the state of one that has come furthest, at once or not at all, and compare what they have."""
        root = world.source
        mine = self.steps, self.total, self.lines, self.network.parameters, self.velocity
        steps, total, lines, parameters, velocity = world.broadcast_object(mine if world.rank == root else None, root=root)
        words = repr((steps, total, lines)).encode() + parameters.tobytes() + velocity.tobytes()
        checksums = world.allgather_object(hashlib.sha256(words).hexdigest())
        if len(set(checksums)) > 1:
            sys.exit(f"the state of rank {root} has not arrived whole on all ranks: their checksums are {checksums}")
        if world.rank == 0 and world.epoch == 0:
            print(f"{world.size} ranks over {world.backend}, {len(self.images)} training and {len(self.test_images)} test images")
        elif world.rank == 0:
            for line in lines[len(self.lines) :] if 0 not in world.newcomers else []:
                print(line)  # the rank that came so far may have been another one
            print(f"lost {world.lost}, new {world.newcomers}: {world.size} ranks go on after step {steps}", flush=True)
        self.steps, self.total, self.lines, self.velocity = steps, total, lines, velocity
        self.network.parameters[:] = parameters

    def run(self, world: col.Group) -> None:
        size = self.options.batch
        batches = -(-len(self.images) // size)
        while self.steps < self.options.epochs * (batches + 1):
            epoch, first = divmod(self.steps, batches + 1)
            order = epoch_order(self.options.seed, epoch, len(self.images))
            for batch in range(first, batches):
                self.train(world, order[batch * size : (batch + 1) * size])
            self.test(world, epoch, self.total / len(order))

    def train(self, world: col.Group, batch: Array) -> None:
        mine = my_part(world, batch)
        gradient = np.zeros(len(self.network.parameters))
        loss = self.network.add_gradient(self.images[mine], self.labels[mine], gradient)

        fused = np.append(gradient, loss).astype(np.float32)  # one buffer, so one allreduce a step
        world.allreduce(fused)
        # All ranks hold the same sums and the same weights, so they take the same step and stay equal.
        self.velocity *= MOMENTUM
        self.velocity -= np.float32(self.options.lr / len(batch)) * fused[:-1]
        self.network.parameters += self.velocity
        self.total += float(fused[-1])
        self.steps += 1

    def test(self, world: col.Group, epoch: int, loss: float) -> None:
        if not np.isfinite(loss):
            sys.exit(f"the loss is not a number any more after epoch {epoch + 1}; try a smaller --lr")
        correct = np.array([self.network.count_correct(my_part(world, self.test_images), my_part(world, self.test_labels))])
        world.allreduce(correct)
        accuracy = correct[0] / len(self.test_images)
        self.lines = [*self.lines, f"epoch {epoch + 1:3}  loss {loss:.{self.options.digits}f}  test accuracy {accuracy:.4f}"]
        self.total = 0.0
        self.steps += 1
        if world.rank == 0:
            print(self.lines[-1], flush=True)


parser = argparse.ArgumentParser(description="Trains a classifier of digits, data-parallel over all ranks.")
parser.add_argument("--epochs", type=int, default=15, help="passes over the training images (default %(default)s)")
parser.add_argument("--batch", type=int, default=128, help="images a step, over all ranks (default %(default)s)")
parser.add_argument("--lr", type=float, default=0.1, help="learning rate (default %(default)s)")
parser.add_argument("--seed", type=int, default=1, help="decides first weights and order (default %(default)s)")
parser.add_argument("--data", type=pathlib.Path, default=DATA, help="images as CSV (default: those that come with col)")
parser.add_argument("--digits", type=int, default=6, help="of the losses that are printed (default %(default)s)")
parser.add_argument("--elastic", action="store_true", help="go on with the ranks that live when one is lost (colrun --keep-going)")
parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait then for a rank that joins (default 0)")
parser.add_argument("--join", action="store_true", help="take the place of a rank that was lost, or will be")

if __name__ == "__main__":
    options = parser.parse_args()
    # [readme]
    world = col.join() if options.join else col.init()
    training = Training(options)
    while True:
        try:
            training.share(world)  # broadcasts the state of rank world.source
            training.run(world)
            break
        except col.Error as error:
            if not (options.elastic and error.is_loss):
                raise
            world = world.renew(wait=options.wait, progress=training.steps)
    # [/readme]
    col.finalize()
