"""A small regression in numpy and in torch, and what one process makes of it.

All is in float64. The ranks add gradients up in another order than one process does, so results may differ by rounding: after
some ten steps by far less than TOLERANCE, which is far less than what any mistake would make.
"""

import functools

import numpy as np
import torch

from col.strategies import SGD, Adam

TOLERANCE = 1e-10
ROWS = 24  # of a batch; the ranks' parts are alike for 1, 2, 3 and 4 ranks
OPTIMIZERS = {
    "sgd": (lambda: SGD(0.1), functools.partial(torch.optim.SGD, lr=0.1)),
    "momentum": (lambda: SGD(0.05, momentum=0.9), functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9)),
    "adam": (lambda: Adam(0.01), functools.partial(torch.optim.Adam, lr=0.01)),
}


def batch(step, rank=0, size=1):
    """This rank's part of the inputs and of the wanted outputs."""
    rng = np.random.default_rng(1000 + step)
    x = rng.normal(size=(ROWS, 5))
    y = np.sin(x @ np.arange(10).reshape(5, 2) / 10)
    return np.array_split(x, size)[rank], np.array_split(y, size)[rank]


class Net:
    """5 inputs, 7 tanh units, 2 outputs; the mean of the squared errors."""

    def __init__(self, seed=1):
        rng = np.random.default_rng(seed)
        shapes = (5, 7), (7,), (7, 2), (2,)
        self.parameters = [rng.normal(size=shape) / 2 for shape in shapes]

    def gradients(self, x, y):
        w1, b1, w2, b2 = self.parameters
        hidden = np.tanh(x @ w1 + b1)
        error = hidden @ w2 + b2 - y
        self.loss = float(np.mean(error**2))
        delta = 2 * error / error.size
        below = delta @ w2.T * (1 - hidden**2)
        return [x.T @ below, below.sum(axis=0), hidden.T @ delta, delta.sum(axis=0)]


def torch_net(seed=1):
    """The same network with the same first parameters."""
    module = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2)).double()
    w1, b1, w2, b2 = (torch.from_numpy(array) for array in Net(seed).parameters)
    with torch.no_grad():
        for parameter, value in zip(module.parameters(), (w1.T, b1, w2.T, b2)):
            parameter.copy_(value)
    return module


def torch_loss(module, x, y):
    return (module(torch.from_numpy(x)) - torch.from_numpy(y)).square().mean()


def in_numpy_order(module):
    """A torch_net's parameters as those of Net."""
    return [parameter.detach().numpy().T.copy() for parameter in module.parameters()]


@functools.lru_cache(maxsize=None)
def alone(optimizer, steps):
    """The parameters after so many steps in one process, by torch."""
    module = torch_net()
    made = OPTIMIZERS[optimizer][1](module.parameters())
    for step in range(steps):
        made.zero_grad()
        torch_loss(module, *batch(step)).backward()
        made.step()
    return in_numpy_order(module)


def check(parameters, wanted, tolerance=TOLERANCE):
    for parameter, value in zip(parameters, wanted):
        np.testing.assert_allclose(parameter, value, rtol=0, atol=tolerance)


def check_same(results):
    """The ranks' parameters, to the last bit."""
    for result in results[1:]:
        for one, other in zip(results[0], result):
            np.testing.assert_array_equal(one, other)
