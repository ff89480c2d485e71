"""The collective way: every worker sums the gradients of all workers by allreduce, and updates all parameters itself."""

from __future__ import annotations

import importlib
from typing import Any, Callable

from layout import Layout, State

MODULES = {"col": ("col.ray", "auto"), "gloo": ("ray.util.collective", "GLOO")}  # Ray's own has the same names


class Allreduce:
    """A way that ends in -keys calls allreduce for each key, as in the document. Otherwise one call takes all
    gradients, which lie side by side: a large call is faster than many small ones."""

    def __init__(self, way: str, rank: int, layout: Layout, timeout: float) -> None:
        base, _, by_key = way.partition("-")
        module, backend = MODULES[base]
        self.collective = importlib.import_module(module)
        self.group = f"spacy_ner {way}"
        self.keys = list(layout.parts)
        self.parts = list(layout.parts.values()) if by_key else [slice(0, layout.size)]
        self.size = len(layout.shards)
        self.collective.init_collective_group(self.size, rank, backend, self.group, int(1000 * timeout))

    def exchange(self, state: State, apply: Callable[[State, list[Any]], None]) -> None:
        """Sums the gradients over all workers, and applies them."""
        if self.size > 1:
            for part in self.parts:
                self.collective.allreduce(state.gradients[part], self.group)
        apply(state, self.keys)
