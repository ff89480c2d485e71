"""Some ranks serve the parameters; the others compute gradients.

    worker 0 ── push gradients ──┐                                  server 0: shard 0 and its optimizer
    worker 1 ── push gradients ──┼── each server gets its shard ──  server 1: shard 1 and its optimizer
    worker 2 ── push gradients ──┘   ←── pull parameters ──

The first ranks of the group work, the last ones serve. In mode "sync", a step is the average of all workers' gradients, as in
AllReduce. In mode "async", each push is a step of its own, and nobody waits, unless a worker would be too far ahead of the
slowest one: Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", 2013.
"""

from __future__ import annotations

import time
from typing import Any, Optional

import numpy as np

from .._col import Group, Work, wait_all
from ..errors import InvalidArgument
from . import checkpoint
from .model import check_count, model_of, share
from .server import ANSWER, ASK, GOODBYE, GRADIENT, HEADER, PARAMETERS, PUSH, STATE, Server
from .shards import Shards


class ParameterServer:
    """Workers call step() and in the end close(); servers call serve(), which returns when all workers have closed.

    model: a list of numpy arrays, or a torch module. optimizer: as of Zero; it runs on the servers. servers: how many ranks
    serve. mode: "sync" or "async". staleness: in async, a worker that begins a step has made at most so many more steps than
    the slowest one that has not closed.

    Collective: all ranks of the group make the strategy, with like models. Rank 0's parameters become those of all. Each wait
    is for the group's timeout at most: no worker may compute for longer. When a rank is lost, all others get col.PeerLost or
    Aborted: start again, on fewer ranks if need be, and load the last checkpoint. Wrong arguments are a col.InvalidArgument.
    """

    def __init__(
        self, group: Group, model: Any, optimizer: Any, *, servers: int = 1, mode: str = "sync", staleness: int = 0
    ) -> None:
        self.group = group
        self.servers = check_count("servers", servers, 1)
        self.workers = group.size - self.servers
        if self.workers < 1:
            raise InvalidArgument(f"servers is {servers}, of {group.size} ranks: nobody would be left to work; start more ranks")
        if mode not in ("sync", "async"):
            raise InvalidArgument(f"mode is {mode!r}, and must be 'sync' or 'async'")
        self._staleness: Optional[int] = check_count("staleness", staleness, 0)
        if mode == "sync":
            if staleness:
                raise InvalidArgument("staleness is for mode 'async': in 'sync' nobody is ahead")
            self._staleness = None
        self.is_server = group.rank >= self.workers
        self.steps = 0  # of this worker
        self._is_open, self._has_begun = True, False
        self._model = model_of(model)
        self._shards = Shards(self._model, self.servers)
        self._vector = self._shards.new_vector()
        self._number = group.rank - self.workers  # of a server
        self._server: Optional[Server] = None
        self._waiting, self._lead = 0.0, 0
        self._shard = self._model.new(self._shards.length if self.is_server else 0)
        # Bound on workers, too, to nothing: what is wrong with it is said on all ranks.
        self._optimizer = self._model.optimizer(optimizer, [self._shard])
        share(group, self._model, servers=self.servers, mode=mode, staleness=staleness)
        self._take_shard()

    def _take_shard(self) -> None:
        if self.is_server:
            self._shard[:] = self._model.gather(self._vector)[self._shards.part(self._number)]

    def _require(self, is_server: bool, call: str) -> None:
        if self.is_server != is_server:
            raise InvalidArgument(f"{call} is for {'servers' if is_server else 'workers'}: look at is_server")
        if not self._is_open:
            raise InvalidArgument(f"{call} comes after close()")

    # ---- Workers

    def step(self, gradients: Any = None) -> None:
        """Pushes gradients, and pulls parameters; on workers. gradients: of numpy parameters, a list. A torch module's own ones
        count, and are gone afterwards. Blocks until all servers have answered."""
        self._require(False, "step()")
        self._has_begun = True
        self._model.gather(self._vector, self._model.gradients(gradients))
        began = time.perf_counter()
        header = np.array([PUSH, self.steps], np.int64)
        sent: list[Work] = []
        for server in range(self.servers):
            sent.append(self.group.isend(header, self.workers + server, tag=HEADER))
            sent.append(self.group.isend(self._vector[self._shards.part(server)], self.workers + server, tag=GRADIENT))
        wait_all(sent)  # then the memory takes the answer
        slowest = np.empty((self.servers, 1), np.int64)
        got: list[Work] = []
        for server in range(self.servers):
            got.append(self.group.irecv(slowest[server], self.workers + server, tag=ANSWER))
            got.append(self.group.irecv(self._vector[self._shards.part(server)], self.workers + server, tag=PARAMETERS))
        wait_all(got)
        self._waiting += time.perf_counter() - began
        self._model.scatter(self._vector)
        self._model.clear_gradients()
        self.steps += 1
        self._lead = max(self._lead, self.steps - int(slowest.min()))

    def close(self) -> None:
        """Says goodbye to the servers, once, on each worker. Blocks until all workers have; then all ranks have the final
        parameters."""
        self._require(False, "close()")
        self._tell(GOODBYE)
        self._finish()

    def _tell(self, kind: int) -> None:
        header = np.array([kind, self.steps], np.int64)
        for server in range(self.servers):
            self.group.send(header, self.workers + server, tag=HEADER)

    # ---- Servers

    def serve(self) -> None:
        """Serves until all workers have closed; on servers. Then all ranks have the final parameters. Blocks."""
        self._require(True, "serve()")
        self._has_begun = True
        self._server = Server(
            self.group, self.workers, self._shard, self._optimizer, lambda: self._model.new(self._shards.length),
            self._staleness, self.steps,
        )  # fmt: skip
        self._server.serve()
        self._vector[self._shards.part(self._number)] = self._shard
        self._finish()

    def _finish(self) -> None:
        for server in range(self.servers):
            self.group.broadcast(self._vector[self._shards.part(server)], root=self.workers + server)
        self._model.scatter(self._vector)
        self._is_open = False

    def stats(self) -> dict[str, Any]:
        """On a worker, steps; bytes that it has sent and received; waiting: seconds in step(); lead: the most steps that it
        was ahead of the slowest when it went on. On a server, pushes; updates; held: answers that had to wait for slower
        workers; lead: the most steps that an answered worker was ahead."""
        if self._server is not None:
            server = self._server
            return {"pushes": server.pushes, "updates": server.updates, "held": server.held, "lead": server.lead}
        size = 2 * self.steps * self._shards.length * self.servers * self._model.itemsize
        return {"steps": self.steps, "bytes": size, "waiting": self._waiting, "lead": self._lead}

    # ---- Checkpoints

    def state_dict(self) -> dict[str, Any]:
        """Copies of parameters and optimizer's state, as the servers have them now; on a worker, whose parameters become these.
        Not collective: other workers go on. In sync, all shards are of this worker's last step. In async with several
        servers, each shard is of a moment of its own. Blocks until the servers have answered."""
        self._require(False, "state_dict()")
        self._tell(ASK)
        answers = [self.group.recv_object(self.workers + server, tag=STATE) for server in range(self.servers)]
        for server, (shard, _) in enumerate(answers):
            self._vector[self._shards.part(server)] = shard
        self._model.scatter(self._vector)
        return self._shards.state(self.steps, self._shards.join([state for _, state in answers]))

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """On all ranks, before the first step() and before serve(), with the same state. Local."""
        if self._has_begun or not self._is_open:
            raise InvalidArgument("load a checkpoint before the first step() and before serve()")
        checkpoint.check_kind(state, self._shards.kind)
        self._model.load(state["parameters"])
        if self.is_server:
            self._optimizer.load(self._shards.cut(state["optimizer"], self._number))
        self._take_shard()
        self.steps = state["steps"]

    def save(self, path: checkpoint.Path) -> None:
        """On rank 0, which writes state_dict() to a file that replaces the old one at once; other workers may call it, and
        do nothing. Raises IoError on rank 0."""
        self._require(False, "save()")
        if self.group.rank == 0:
            checkpoint.write_or_raise(path, self.state_dict())

    def load(self, path: checkpoint.Path) -> None:
        """Rank 0 reads the file, which any number of ranks may have written. Collective, over servers, too; before the first
        step() and before serve(). Raises IoError on all ranks."""
        self.load_state_dict(checkpoint.load(self.group, path))
