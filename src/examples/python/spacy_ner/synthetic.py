"""The work of one worker without spaCy: parameters with the shapes of the pipeline's tok2vec, and a loss that costs next to
nothing to compute: half the squared distance to a point of each worker's own. The best parameters are the mean of all
points."""

from __future__ import annotations

from typing import Any, Iterable

import numpy as np

from layout import Layout, State

WIDTH, PIECES, ROWS, LAYERS, RATE = 96, 3, (2000, 1000, 1000, 1000), 5, 0.1
WORK = (104, 3 * WIDTH), (3 * WIDTH, PIECES * WIDTH)  # a layer's product for the tokens of eight texts


def tok2vec_shapes() -> dict[int, tuple[int, ...]]:
    """24 parameters with 924,768 elements."""
    shapes: list[tuple[int, ...]] = [(rows, WIDTH) for rows in ROWS]
    for layer in range(LAYERS):
        inputs = WIDTH * (len(ROWS) if layer == 0 else 3)
        shapes += [(WIDTH, PIECES, inputs), (WIDTH, PIECES), (WIDTH,), (WIDTH,)]
    return dict(enumerate(shapes))


class SyntheticTask:
    """work: how many products of two matrices stand for the computation of an update."""

    def __init__(self, rank: int, size: int, work: int) -> None:
        self.size, self.work = size, work
        self.shapes = tok2vec_shapes()
        dice = np.random.default_rng(0)
        self.initial = {key: dice.random(shape, np.float32) for key, shape in self.shapes.items()}
        dice = np.random.default_rng(1 + rank)
        self.points = {key: dice.random(shape, np.float32) for key, shape in self.shapes.items()}
        self.matrices = [dice.random(shape, np.float32) for shape in WORK]

    def new_state(self, layout: Layout) -> State:
        return State(layout, self.initial)

    def compute(self, state: State) -> float:
        for _ in range(self.work):
            self.matrices[0] @ self.matrices[1]
        for key, gradient in state.gradient.items():
            np.subtract(state.parameter[key], self.points[key], out=gradient)
        state.step += 1
        return float(state.gradients @ state.gradients) / 2

    def apply(self, state: State, keys: Iterable[int]) -> None:
        for key in keys:
            state.gradient[key] *= RATE / self.size
            state.parameter[key] -= state.gradient[key]

    def score(self, state: State) -> float:
        """How near the parameters are to the best for this worker: 1 is there."""
        first = sum(float(np.square(self.initial[key] - point).sum()) for key, point in self.points.items())
        last = sum(float(np.square(state.parameter[key] - point).sum()) for key, point in self.points.items())
        return 1 - last / first
