"""Model parallel: each rank has some layers of the model, and a batch goes through all ranks in micro-batches.

    inputs ─→ rank 0: layers 0, 1 ── activations ─→ rank 1: layers 2, 3 ── activations ─→ rank 2: layers 4, 5 ─→ loss
                            ←── gradients of them ──              ←── gradients of them ──          targets ─────┘

schedule.py draws the order of the work. Each rank's optimizer makes its step when all micro-batches are through: so the result
is that of one process that adds the gradients of the micro-batches up.
"""

from __future__ import annotations

import time
from typing import Any, Callable

import numpy as np

from .._col import Group
from ..errors import Error, InvalidArgument
from . import checkpoint
from .channel import Channel
from .model import agree, check_count
from .restage import restage
from .schedule import one_forward_one_backward
from .stages import NumpyStage, stage_of


class Pipeline:
    """Rank r of the group has stage r.

    stage: a torch module; or for numpy an object with parameters and gradients (lists of arrays of the same shapes),
    forward(x), which returns (y, saved), and backward(saved, dy), which adds to the gradients and returns dx. loss(y, target):
    for the last stage; the mean over a micro-batch; for numpy it returns (loss, dy). optimizer: as of AllReduce, for this
    stage's parameters. micro_batches: how many a batch is cut into; many of them keep the stages busy (docs/strategies.md).

    Collective: all ranks make the strategy, and make the same calls. Each wait is for the group's timeout at most, and then
    raises a col.Error. When a rank is lost, so are its layers: start again with the layers on the ranks that are left, and load
    the last checkpoint. Wrong arguments are a col.InvalidArgument.
    """

    def __init__(
        self, group: Group, stage: Any, loss: Callable[[Any, Any], Any], optimizer: Any, *, micro_batches: int = 1
    ) -> None:
        self.group = group
        self.steps = 0
        self._count = check_count("micro_batches", micro_batches, 1)
        if not callable(loss):
            raise InvalidArgument("loss is a function of the last stage's output and of the target")
        self._is_first, self._is_last = group.rank == 0, group.rank == group.size - 1
        self._stage = stage_of(stage, loss, optimizer, self._is_first)
        self._library = "numpy" if isinstance(self._stage, NumpyStage) else "torch"
        agree(group, library=self._library, micro_batches=self._count)
        self._channel = Channel(group, self._stage.empty)
        self._peak = 0
        self._computing = self._elapsed = 0.0

    def step(self, inputs: Any = None, targets: Any = None) -> float:
        """Trains on a batch. inputs: on the first stage; targets: on the last one; the first axis is cut into micro-batches of
        one size. Returns the mean loss, on all ranks. Blocks until the batch is through."""
        xs = self._cut("inputs", inputs, self._is_first)
        wanted = self._cut("targets", targets, self._is_last)
        began = time.perf_counter()
        saved: dict[int, Any] = {}
        loss = np.zeros(1)
        for kind, i in one_forward_one_backward(self.group.rank, self.group.size, self._count):
            if kind == "forward":
                x = xs[i] if self._is_first else self._channel.receive(self.group.rank - 1)
                loss += self._forward(i, x, wanted[i] if self._is_last else None, saved)
                self._peak = max(self._peak, len(saved))
            else:
                self._backward(*saved.pop(i))
            self._channel.drop_what_has_arrived()
        self._channel.finish()
        self._stage.step()
        self.steps += 1
        self.group.broadcast(loss, root=self.group.size - 1)
        self._elapsed += time.perf_counter() - began
        return float(loss[0])

    def _forward(self, i: int, x: Any, target: Any, saved: dict[int, Any]) -> float:
        """Its share of the loss, on the last stage."""
        began = time.perf_counter()
        y, kept = self._stage.forward(x)
        loss, dy = 0.0, None
        if self._is_last:
            loss, kept, dy = self._stage.finish(y, kept, target, 1 / self._count)
        saved[i] = kept, tuple(y.shape), y.dtype, dy
        self._computing += time.perf_counter() - began
        if not self._is_last:
            self._channel.send(y, self.group.rank + 1)
        return loss

    def _backward(self, kept: Any, shape: Any, dtype: Any, dy: Any) -> None:
        if not self._is_last:
            dy = self._channel.receive_gradient(shape, dtype, self.group.rank + 1)
        began = time.perf_counter()
        dx = self._stage.backward(kept, dy)
        self._computing += time.perf_counter() - began
        if not self._is_first:
            self._channel.send_gradient(dx, self.group.rank - 1)

    def _cut(self, name: str, batch: Any, is_here: bool) -> list[Any]:
        if not is_here:
            return []
        where = "first" if name == "inputs" else "last"
        if batch is None:
            raise InvalidArgument(f"step() needs {name} on the {where} stage, which is this rank")
        if len(batch) == 0 or len(batch) % self._count:
            raise InvalidArgument(f"{len(batch)} {name} cannot be cut into {self._count} micro-batches of one size")
        found: list[Any] = self._stage.split(batch, self._count)
        return found

    def stats(self) -> dict[str, Any]:
        """steps; peak_saved: the most micro-batches that were between forward and backward here; computing: seconds in the
        stage's forward and backward; idle: the share of the steps' time in which this rank did not compute."""
        idle = 1 - self._computing / self._elapsed if self._elapsed else 0.0
        return {"steps": self.steps, "peak_saved": self._peak, "computing": self._computing, "idle": idle}

    # ---- Checkpoints

    def _own(self) -> dict[str, Any]:
        trainable = len(self._stage.model.sizes)
        return {"parameters": self._stage.parameters(), "optimizer": self._stage.optimizer.state(), "trainable": trainable}

    def _take(self, own: dict[str, Any], steps: int) -> None:
        self._stage.load(own["parameters"])
        self._stage.optimizer.load(own["optimizer"])
        self.steps = steps

    def state_dict(self) -> dict[str, Any]:
        """Copies of this stage's parameters and optimizer's state. Local."""
        return {**checkpoint.header(f"stage {self._library}", self.steps), **self._own()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """What the same stage's state_dict() has returned. Local."""
        checkpoint.check_kind(state, f"stage {self._library}")
        self._take(state, state["steps"])

    def save(self, path: checkpoint.Path) -> None:
        """Rank 0 gathers the states of all stages and writes them to one file, which replaces the old one at once. Collective.
        Raises IoError on all ranks."""
        stages = self.group.gather_object(self._own())
        state = None if stages is None else {**checkpoint.header(f"stages {self._library}", self.steps), "stages": stages}
        checkpoint.save(self.group, path, state)

    def load(self, path: checkpoint.Path) -> None:
        """Rank 0 reads the file, and each stage gets its own state. The layers may be on another number of stages than when it
        was written, in the same order. Collective. Raises IoError or InvalidArgument on all ranks."""
        own = self._stage.parameters(), len(self._stage.model.sizes)
        answers: Any = None
        everybody = self.group.gather_object(([tuple(parameter.shape) for parameter in own[0]], own[1]))
        if everybody is not None:
            try:
                state = checkpoint.read_or_raise(path)
                checkpoint.check_kind(state, f"stages {self._library}")
                stages = restage(state["stages"], *zip(*everybody))
                answers = [(stage, state["steps"]) for stage in stages]
            except Error as error:
                answers = [error] * self.group.size
        answer = self.group.scatter_object(answers)
        if isinstance(answer, Error):
            raise answer
        self._take(*answer)
