"""A parameter server in pieces, by Ray's calls and object store: the way of spacy-ray.

Each worker owns some keys. It sends the gradients of the others' keys to their owners by a remote call of inc_grad(). When
an owner has the gradients of all workers, it updates its parameters, puts them into the object store once, and hands the
reference to the other workers by a remote call of set_param(). spacy-ray goes on without waiting for parameters; here the
workers wait, so that the result does not depend on who was fast.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Sequence

import ray

from layout import Array, Layout, State

IN_CALL_BYTES = 100 * 1024  # Ray sends arguments up to this size with the call, larger ones through the object store


class Store:
    """A message has the gradients or the parameters of a key, or of all keys of an owner; the first key is its name.
    receive() is called in another thread than exchange(), for what other workers send."""

    def __init__(
        self, way: str, rank: int, layout: Layout, peers: Sequence[Any], by_key: bool, timeout: float
    ) -> None:
        self.way, self.rank, self.timeout = way, rank, timeout
        self.others = [*peers[rank + 1 :], *peers[:rank]]  # everybody begins with another peer
        self.mine: list[int] = []
        self.theirs: dict[int, tuple[int, Any]] = {}  # owner, by rank and as an actor
        self.parts: dict[int, slice] = {}
        self.keys: dict[int, list[Any]] = {}
        for distance in range(len(peers)):
            owner = (rank + distance) % len(peers)
            shard = layout.keys_of[owner]
            for keys in [[key] for key in shard] if by_key else [shard]:
                message = keys[0]
                self.keys[message] = keys
                self.parts[message] = slice(layout.parts[keys[0]].start, layout.parts[keys[-1]].stop)
                if owner == rank:
                    self.mine.append(message)
                else:
                    self.theirs[message] = owner, peers[owner]
        self.version = 0
        self.changed = threading.Condition()
        self.arrived: dict[tuple[int, int], dict[int, Array]] = {}  # by message and version: from whom what

    def receive(self, message: int, version: int, sender: int, value: Array) -> None:
        with self.changed:
            self.arrived.setdefault((message, version), {})[sender] = value
            self.changed.notify()

    def _take(self, message: int, count: int) -> dict[int, Array]:
        """What `count` workers have sent. Blocks until they have; an error after the timeout."""
        at = message, self.version
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.arrived.get(at, ())) == count, self.timeout):
                raise TimeoutError(
                    f"worker {self.rank}: after {self.timeout:g} s, message {message} of update {self.version} has come"
                    f" from {sorted(self.arrived.get(at, ()))}, and should have from {count} workers"
                )
            return self.arrived.pop(at)

    def exchange(self, state: State, apply: Callable[[State, list[Any]], None]) -> None:
        """Sums the gradients over all workers, has them applied, and brings all parameters up to date."""
        self.version += 1
        for message, (_, peer) in self.theirs.items():
            gradient = state.gradients[self.parts[message]]
            peer.inc_grad.remote(self.way, message, self.version, self.rank, gradient)

        for message in self.mine:
            part = self.parts[message]
            if self.others:
                values = self._take(message, len(self.others))
                for sender in sorted(values):  # in this order, so that a run can be repeated
                    state.gradients[part] += values[sender]
            apply(state, self.keys[message])
            value: Any = state.parameters[part]
            if self.others and value.nbytes > IN_CALL_BYTES:
                value = ray.put(value)  # once for all
            for peer in self.others:
                peer.set_param.remote(self.way, message, self.version, self.rank, value)

        for message, (owner, _) in self.theirs.items():
            state.parameters[self.parts[message]] = self._take(message, 1)[owner]
