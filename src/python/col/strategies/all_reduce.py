"""Data parallel: every rank has all parameters, and its own part of each batch.

    rank 0   batch part 0 ── gradients ──┐               ┌── optimizer ── the same parameters
    rank 1   batch part 1 ── gradients ──┼── allreduce ──┼── optimizer ── the same parameters
    rank 2   batch part 2 ── gradients ──┘    (average)  └── optimizer ── the same parameters
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, Iterator, Optional, Union

from .. import _col
from ..errors import Error, InvalidArgument
from . import checkpoint
from .buckets import Buckets
from .model import check_count, model_of, share
from .overlap import Choice
from .recovery import go_on, has_epochs


class AllReduce:
    """Averages the gradients of all ranks, and makes the step of the optimizer.

    model: a list of numpy arrays, or a torch module. optimizer: col.strategies.SGD or Adam, or for a module a torch.optim
    optimizer, or a function that makes one; without one, reduce() is there, and the program makes the steps. overlap: whether
    gradients are on their way while others are still computed; "auto" measures both in the first 11 steps and stays with the
    faster one. Gradients travel in buckets of `bucket_bytes`, the first one of `first_bucket_bytes`.

    Collective: all ranks of the group make the strategy, with like models, and make the same calls. Rank 0's parameters become
    those of all. In an epoch that ranks have joined (col.join()), the state of rank group.source does: there a newcomer makes the
    strategy, and the others are in recover(), or make theirs anew. Blocks, in every call that communicates, for the group's
    timeout at most; then, and when a rank is lost, it raises a col.Error, and the parameters are those of the last complete
    step. Wrong arguments are a col.InvalidArgument.
    """

    def __init__(
        self, group: _col.Group, model: Any, optimizer: Any = None, *, overlap: Union[bool, str] = "auto",
        bucket_bytes: int = 25 << 20, first_bucket_bytes: int = 1 << 20,
    ) -> None:  # fmt: skip
        self.group = group
        self.steps = 0  # complete ones
        self._model = model_of(model)
        self._choice = Choice(overlap)
        self._sizes = check_count("bucket_bytes", bucket_bytes, 1), check_count("first_bucket_bytes", first_bucket_bytes, 1)
        self._buckets = Buckets(self._model, *self._sizes)
        self._optimizer = None if optimizer is None else self._model.optimizer(optimizer)
        self._is_accumulating = False
        self._lost = -1  # the rank that the last error was about
        self._communicating = self._waiting = 0.0
        self._reduced = 0
        if group.epoch > 0 and has_epochs(group) and group.newcomers:
            self._take_state(group.source)
        else:
            share(group, self._model, overlap=overlap, bucket_bytes=self._sizes)
        if self._model.kind == "torch":
            self._model.on_gradient(self._on_gradient)
        self._step_began = time.perf_counter()

    # ---- A step

    def ready(self, i: int, gradient: Any) -> None:
        """The gradient of numpy parameter i is complete; it is copied. With overlap, its bucket may start now. Before step(),
        once for each i, in any order; the last parameter first is best."""
        i = check_count("i", i, 0)
        if self._model.kind == "torch" or i >= len(self._buckets.views):
            raise InvalidArgument(f"ready({i}): there are {len(self._buckets.views)} {self._model.kind} parameters; those of a "
                                  "torch module need no ready()")  # fmt: skip
        self._put(i, self._model.gradient(i, gradient))

    def reduce(self, gradients: Any = None) -> list[Any]:
        """Averages the gradients over all ranks. numpy: of all parameters, or None if each was ready(). Returns the averages
        in the parameters' shapes, in memory that the next step uses again. torch: the averages are in .grad. Blocks."""
        is_torch = self._model.kind == "torch"
        if gradients is None and not is_torch:
            missing = [i for i in range(len(self._buckets.views)) if not self._buckets.has(i)]
            if missing:
                raise InvalidArgument(f"gradients {missing} are missing: pass all to step(), or call ready() for each")
            listed = []
        else:
            listed = self._model.gradients(gradients)
        for i in reversed(range(len(listed))):  # in the order of the buckets
            if not (is_torch and self._buckets.has(i)):
                self._put(i, listed[i])
        with self._noting_the_lost():
            busy, waited = self._buckets.finish(self.group, self._choice.is_on)
        self._communicating += busy
        self._waiting += waited
        self._reduced += 1
        if is_torch:
            return [parameter.grad for parameter in self._model.parameters]
        return [view.reshape(array.shape) for view, array in zip(self._buckets.views, self._model.arrays)]

    def step(self, gradients: Any = None) -> None:
        """reduce(), and the optimizer's step. A torch module's gradients are gone afterwards. Blocks."""
        if self._optimizer is None:
            raise InvalidArgument("step() needs an optimizer: give AllReduce one, or call reduce() and make the step yourself")
        self.reduce(gradients)
        # From here on, nothing can fail: this rank has the step, or it does not.
        self._optimizer.step(self._buckets.views if self._model.kind == "numpy" else None)
        self._model.clear_gradients()
        self.steps += 1
        now = time.perf_counter()
        with self._noting_the_lost():
            self._choice.add(self.group, now - self._step_began)
        self._step_began = time.perf_counter()

    @contextlib.contextmanager
    def accumulate(self) -> Iterator[None]:
        """In this block, backward() only adds to the gradients of a torch module. The last backward() before step() comes
        after the block."""
        self._is_accumulating = True
        try:
            yield
        finally:
            self._is_accumulating = False

    def _on_gradient(self, i: int) -> None:
        if not self._is_accumulating and self._choice.is_on:
            self._put(i, self._model.gradient(i))

    def _put(self, i: int, flat: Any) -> None:
        with self._noting_the_lost():
            self._buckets.put(self.group, i, flat, self._choice.is_on)
        if self._model.kind == "torch":
            self._model.show_gradient(i, self._buckets.views[i])

    # ---- After the loss of a rank

    @contextlib.contextmanager
    def _noting_the_lost(self) -> Iterator[None]:
        try:
            yield
        except Error as error:
            self._lost = error.rank
            raise

    def recover(self, wait: float = 0.0) -> int:
        """Goes on without the ranks that have died, and with those that have joined: call it on all others, after a
        col.PeerLost, Aborted or Timeout.

        `group` is then its next epoch (Group.renew()), maybe with new rank numbers. Of a group that was made from another one,
        it is a smaller group beside it (shrink()), which nobody joins. All ranks have the parameters and the optimizer's state
        of the last step that any of them has completed. Returns `steps`, which says where to go on; gradients of a step that
        failed are gone. Waits for `wait` seconds at most until there are as many ranks as before. Blocks, for a few times the
        group's timeout at most. Under colrun, this needs --keep-going. Raises IoError if the lost rank served the store by
        which the ranks meet.
        """
        if self._optimizer is None:
            raise InvalidArgument("recover() needs the strategy's own optimizer, whose state goes with the parameters")
        self.group = go_on(self.group, self.steps, wait, self._lost)
        if has_epochs(self.group):
            root = self.group.source
        else:
            counts = self.group.allgather_object(self.steps)
            root = counts.index(max(counts))
        self._lost = -1
        self._buckets = Buckets(self._model, *self._sizes)  # the old ones may still be written to
        self._model.clear_gradients()
        self._choice.restart()
        self._take_state(root)
        self._step_began = time.perf_counter()
        return self.steps

    def _take_state(self, root: int) -> None:
        """Nobody ends a step before all have begun it. So some have completed one step more than others, at most."""
        state = self.group.broadcast_object(self.state_dict() if self.group.rank == root else None, root=root)
        if self.group.rank != root:
            self.load_state_dict(state)

    # ---- What it has done

    def stats(self) -> dict[str, Any]:
        """steps; bytes of gradients that were averaged; communicating: seconds in which any bucket was on its way; waiting:
        those of them that the program spent in calls; hidden: the share of communicating beside the computation; overlap:
        True, False, or None while it is measured; buckets; all of this rank alone."""
        return {
            "steps": self.steps, "bytes": self._reduced * self._model.size * self._model.itemsize,
            "communicating": self._communicating, "waiting": self._waiting,
            "hidden": 1 - self._waiting / self._communicating if self._communicating else 0.0,
            "overlap": self._choice.is_on if self._choice.is_decided else None, "buckets": self._buckets.count,
        }  # fmt: skip

    # ---- Checkpoints

    def state_dict(self) -> dict[str, Any]:
        """Copies of parameters and optimizer's state; the same on all ranks. Local."""
        return {
            **checkpoint.header(self._model.kind, self.steps), "parameters": self._model.state(),
            "optimizer": None if self._optimizer is None else self._optimizer.state(),
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """On all ranks, of any number, with the same state. Local."""
        checkpoint.check_kind(state, self._model.kind)
        self._model.load(state["parameters"])
        if self._optimizer is not None:
            self._optimizer.load(state["optimizer"])
        self.steps = state["steps"]

    def save(self, path: checkpoint.Path) -> None:
        """Rank 0 writes the state to a file, which replaces the old one at once. Collective. Raises IoError on all ranks."""
        checkpoint.save(self.group, path, self.state_dict() if self.group.rank == 0 else None)

    def load(self, path: checkpoint.Path) -> None:
        """Rank 0 reads the file, which any number of ranks may have written. Collective. Raises IoError on all ranks."""
        self.load_state_dict(checkpoint.load(self.group, path))
