"""Data parallel, with the optimizer's state cut into shards: each rank has one, and updates its part of the parameters.

    rank 0   gradients ──┐                    ┌── optimizer of shard 0 ──┐               ┌── all parameters
    rank 1   gradients ──┼── reduce_scatter ──┼── optimizer of shard 1 ──┼── allgather ──┼── all parameters
    rank 2   gradients ──┘     (average)      └── optimizer of shard 2 ──┘               └── all parameters

The two collectives together move as much as one allreduce. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training
Trillion Parameter Models", 2020; this is its first stage.
"""

from __future__ import annotations

from typing import Any

from .._col import Group
from . import checkpoint
from .model import model_of, share
from .shards import Shards


class Zero:
    """Averages the gradients of all ranks; each rank makes the optimizer's step for its shard.

    model: a list of numpy arrays, or a torch module. optimizer: col.strategies.SGD or Adam, or for a module a function that
    makes a torch.optim optimizer of parameters. It must treat each parameter by itself, as SGD, Adam and AdamW do: it sees a
    shard as one parameter, so one learning rate and one weight decay are for all.

    Collective: all ranks of the group make the strategy, with like models, and make the same calls. Rank 0's parameters become
    those of all. Each call that communicates blocks for the group's timeout at most, and then raises a col.Error. When a
    rank is lost, its shard of the state is: make a Zero of the ranks that are left (col.strategies.shrink()), and load the last
    checkpoint. Wrong arguments are a col.InvalidArgument.
    """

    def __init__(self, group: Group, model: Any, optimizer: Any) -> None:
        self.group = group
        self.steps = 0
        self._model = model_of(model)
        self._shards = Shards(self._model, group.size)
        self._vector = self._shards.new_vector()  # of the gradients, later of the parameters
        self._shard, self._gradient = (self._model.new(self._shards.length) for _ in range(2))
        self._optimizer = self._model.optimizer(optimizer, [self._shard])
        share(group, self._model)
        self._take_shard()

    def _take_shard(self) -> None:
        self._shard[:] = self._model.gather(self._vector)[self._shards.part(self.group.rank)]

    def step(self, gradients: Any = None) -> None:
        """gradients: of numpy parameters, a list. A torch module's own ones count, and are gone afterwards. Blocks. After an
        error, parameters and state may be of different steps."""
        self._model.gather(self._vector, self._model.gradients(gradients))
        self.group.reduce_scatter(self._vector, self._gradient, op="avg")
        self._optimizer.step([self._gradient])
        self.group.allgather(self._shard, self._vector)
        self._model.scatter(self._vector)
        self._model.clear_gradients()
        self.steps += 1

    def memory(self) -> dict[str, int]:
        """Bytes that this rank holds: parameters, and the program's gradients of them, whole; optimizer: the state of its
        shard (torch's optimizers make it in the first step); buffers: of this strategy, one vector of all parameters and two
        of a shard."""
        whole, size = self._model.size, self._model.itemsize
        buffers = self._shards.length * (self._shards.count + 2)
        return {
            "parameters": whole * size, "gradients": whole * size, "optimizer": self._optimizer.state_bytes,
            "buffers": buffers * size,
        }  # fmt: skip

    # ---- Checkpoints

    def state_dict(self) -> dict[str, Any]:
        """Copies of the parameters and of the whole optimizer's state, the same on all ranks. Collective."""
        return self._shards.state(self.steps, self._shards.join(self.group.allgather_object(self._optimizer.state())))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """On all ranks, of any number, with the same state. Local."""
        checkpoint.check_kind(state, self._shards.kind)
        self._model.load(state["parameters"])
        self._optimizer.load(self._shards.cut(state["optimizer"], self.group.rank))
        self._take_shard()
        self.steps = state["steps"]

    def save(self, path: checkpoint.Path) -> None:
        """Rank 0 gathers the state and writes it to a file, which replaces the old one at once. Collective. Raises IoError on
        all ranks."""
        states = self.group.gather_object(self._optimizer.state())
        state = None if states is None else self._shards.state(self.steps, self._shards.join(states))
        checkpoint.save(self.group, path, state)

    def load(self, path: checkpoint.Path) -> None:
        """Rank 0 reads the file, which any number of ranks may have written. Collective. Raises IoError on all ranks."""
        self.load_state_dict(checkpoint.load(self.group, path))
