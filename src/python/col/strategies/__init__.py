"""Ways to train one model on many ranks, over a col.Group: numpy arrays and torch modules.

    from col.strategies import SGD, AllReduce

    strategy = AllReduce(col.init(), [weights, biases], SGD(lr=0.1))
    for batch in batches:
        strategy.step(gradients(batch))  # all ranks now have the same parameters

docs/strategies.md compares them. They need numpy. torch is imported only for a program that has.
"""

from .all_reduce import AllReduce
from .optimizers import SGD, Adam, Optimizer
from .parameter_server import ParameterServer
from .pipeline import Pipeline
from .recovery import shrink
from .zero import Zero

__all__ = ["Adam", "AllReduce", "Optimizer", "ParameterServer", "Pipeline", "SGD", "Zero", "shrink"]
