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
from ..errors import Error, InvalidArgument
from . import checkpoint
from .copies import Held, choose
from .model import agree, model_of, share
from .optimizers import Optimizer
from .recovery import go_on, has_epochs
from .shards import Shards


class Zero:
    """Averages the gradients of all ranks; each rank makes the optimizer's step for its shard.

    model: a list of numpy arrays, or a torch module. optimizer: col.strategies.SGD or Adam, or for a module a function that
    makes a torch.optim optimizer of parameters. It must treat each parameter by itself, as SGD, Adam and AdamW do: it sees a
    shard as one parameter, so one learning rate and one weight decay are for all.

    Collective: all ranks of the group make the strategy, with like models, and make the same calls. Rank 0's parameters become
    those of all. Each call that communicates blocks for the group's timeout at most, and then raises a col.Error. When a
    rank is lost, its shard of the state is: make a Zero of the ranks that are left (col.strategies.shrink()), and load the last
    checkpoint. copies: the next rank has a copy of it, and recover() goes on without a checkpoint. In an epoch that ranks have
    joined (col.join()), a newcomer with copies takes its part of the others' state, who are in recover(). Wrong arguments are a
    col.InvalidArgument.
    """

    def __init__(self, group: Group, model: Any, optimizer: Any, *, copies: bool = False) -> None:
        if not isinstance(copies, bool):
            raise InvalidArgument(f"copies is {copies!r}, and must be True or False")
        self.group = group
        self.steps = 0
        self._copies = copies
        self._held: list[Held] = []  # with copies: of the last cut; of the one before it, too, until all ranks hold the last
        self._lost = -1  # the rank that the last error was about
        self._checkpoint = "none was written or read"
        self._model = model_of(model)
        self._given = optimizer
        self._cut()
        if copies and group.epoch > 0 and has_epochs(group) and group.newcomers and self._take_over():
            return
        share(group, self._model, copies=copies)
        self._take_shard()
        if copies:
            self._hold(0, self._optimizer.state(), self._optimizer.state())  # all begin with the same one

    def _cut(self) -> None:
        self._shards = Shards(self._model, self.group.size)
        self._vector = self._shards.new_vector()  # of the gradients, later of the parameters
        self._shard, self._gradient = (self._model.new(self._shards.length) for _ in range(2))
        self._optimizer = self._model.optimizer(self._given, [self._shard])

    def _take_shard(self) -> None:
        self._shard[:] = self._model.gather(self._vector)[self._shards.part(self.group.rank)]

    def step(self, gradients: Any = None) -> None:
        """gradients: of numpy parameters, a list. A torch module's own ones count, and are gone afterwards. Blocks. After an
        error, parameters and state may be of different steps, until recover() or load()."""
        self._model.gather(self._vector, self._model.gradients(gradients))
        try:
            self.group.reduce_scatter(self._vector, self._gradient, op="avg")
            self._optimizer.step([self._gradient])
            if self._copies:
                own = self._piece(self._shard, self._optimizer.state())
                copy = self._shards.pass_on(own, self.group) if self.group.size > 1 else own
                self._held[-1].add(self.steps + 1, {self._before: copy, self.group.rank: own})
            self.group.allgather(self._shard, self._vector)
        except Error as error:
            self._lost = error.rank
            raise
        self._model.scatter(self._vector)
        self._model.clear_gradients()
        self.steps += 1

    def memory(self) -> dict[str, int]:
        """Bytes that this rank holds: parameters, and the program's gradients of them, whole; optimizer: the state of its
        shard (torch's optimizers make it in the first step); buffers: of this strategy, one vector of all parameters and two
        of a shard; copies: with copies, four times the optimizer's state and a shard of the parameters: this rank's own
        ones and those of the rank before, after each of the last two steps; twice, where there is one rank alone."""
        whole, size, length = self._model.size, self._model.itemsize, self._shards.length
        optimizer = self._optimizer.state_bytes
        return {
            "parameters": whole * size, "gradients": whole * size, "optimizer": optimizer,
            "buffers": length * (self._shards.count + 2) * size,
            "copies": 2 * min(2, self._shards.count) * (optimizer + length * size) if self._copies else 0,
        }  # fmt: skip

    # ---- After the loss of a rank

    def recover(self, wait: float = 0.0) -> int:
        """Goes on without the ranks that have died, and with those that have joined: call it on all others, after a
        col.PeerLost, Aborted or Timeout. Needs copies=True.

        `group` is then another one, as after AllReduce.recover(), and the state is cut into as many shards as it has ranks. All
        have the parameters of the last step of which all shards are left: no step is lost that any of them has completed.
        Returns `steps`, which says where to go on; gradients of a step that failed are gone. Waits for `wait` seconds
        at most until there are as many ranks as before. Blocks, for a few times the group's timeout at most. After another
        error that is a loss, call it again. Raises PeerLost on all ranks if two neighbours are lost at once: it names them
        and the checkpoint to go back to. Under colrun, this needs --keep-going. Raises IoError if the lost rank served the
        store by which the ranks meet.
        """
        if not self._copies:
            raise InvalidArgument(
                "recover() needs Zero(…, copies=True). Without copies, make a Zero of the ranks that are left "
                "(col.strategies.shrink()), and load() the last checkpoint"
            )
        self.group = go_on(self.group, self.steps, wait, self._lost)
        self._lost = -1
        self._take_over()
        self._model.clear_gradients()
        return self.steps

    @property
    def _before(self) -> int:
        return (self.group.rank - 1) % self.group.size

    def _piece(self, shard: Any, optimizer: Any) -> dict[str, Any]:
        own = self._model.new(self._shards.length)
        own[:] = shard
        return {"shard": own, "optimizer": optimizer}

    def _hold(self, cut: int, optimizer: Any, of_the_one_before: Any) -> None:
        """This rank's shard and that of the rank before, when all parameters are known. Local."""
        held = Held(cut, self.group.size)
        whole = self._model.gather(self._vector)
        copy = self._piece(whole[self._shards.part(self._before)], of_the_one_before)
        own = self._piece(whole[self._shards.part(self.group.rank)], optimizer)
        held.add(self.steps, {self._before: copy, self.group.rank: own})
        self._held = [held]

    def _take_over(self) -> bool:
        """Shards that are held become the whole again, which is cut for the ranks that there are now. False if nobody holds
        any. Collective over survivors and newcomers. After an error, nothing that was held is gone."""
        group, model = self.group, self._model
        agree(group, library=model.kind, dtype=str(model.dtype), sizes=model.sizes, copies=True)
        choice = choose(group.allgather_object([held.offer() for held in self._held]), self._checkpoint)
        if choice is None:
            return False
        root = min(choice.suppliers)
        mine = [shard for shard, rank in enumerate(choice.suppliers) if rank == group.rank]
        held = next((held for held in self._held if held.cut == choice.cut), None)
        parts = group.gather_object({shard: held.pieces[choice.step][shard] for shard in mine} if held else {}, root=root)
        state = None
        if parts is not None:
            pieces = [parts[rank][shard] for shard, rank in enumerate(choice.suppliers)]
            shards = Shards(model, choice.shards)
            model.scatter(shards.join([piece["shard"] for piece in pieces]))
            state = shards.state(choice.step, shards.join([piece["optimizer"] for piece in pieces]))
        state = group.broadcast_object(state, root=root)
        if isinstance(self._given, Optimizer):
            self._given.release()
        self._cut()
        before = self._held
        self._load(state, choice.newest + 1)
        self._held = before + self._held
        group.barrier()  # who is behind it knows that all hold the new shards
        self._held = self._held[-1:]
        return True

    # ---- Checkpoints

    def state_dict(self) -> dict[str, Any]:
        """Copies of the parameters and of the whole optimizer's state, the same on all ranks. Collective."""
        return self._shards.state(self.steps, self._shards.join(self.group.allgather_object(self._optimizer.state())))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """On all ranks, of any number, with the same state. Local."""
        checkpoint.check_kind(state, self._shards.kind)
        self._load(state, self._held[-1].cut + 1 if self._copies else 0)

    def _load(self, state: dict[str, Any], cut: int) -> None:
        own, of_the_one_before = (self._shards.cut(state["optimizer"], rank) for rank in (self.group.rank, self._before))
        self._model.load(state["parameters"])
        self._optimizer.load(own)
        self._take_shard()
        self.steps = state["steps"]
        if self._copies:
            self._hold(cut, own, of_the_one_before)

    def save(self, path: checkpoint.Path) -> None:
        """Rank 0 gathers the state and writes it to a file, which replaces the old one at once. Collective. Raises IoError on
        all ranks."""
        states = self.group.gather_object(self._optimizer.state())
        state = None if states is None else self._shards.state(self.steps, self._shards.join(states))
        checkpoint.save(self.group, path, state)
        self._checkpoint = f"'{path}', of step {self.steps}"

    def load(self, path: checkpoint.Path) -> None:
        """Rank 0 reads the file, which any number of ranks may have written. Collective. Raises IoError on all ranks."""
        self.load_state_dict(checkpoint.load(self.group, path))
        self._checkpoint = f"'{path}', of step {self.steps}"
