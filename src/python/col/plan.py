"""Plans: collective algorithms as data.

    plan = col.plan.build("allreduce", "ring", ranks=4)
    plan                                  # a notebook draws it; print(plan) draws it in text
    plan.steps(0)[1]                      # what rank 0 does in round 1
    plan.verify().good                    # proven, not tried
    plan.simulate(alpha=2e-6).seconds     # how long it would take with 2 µs a message
    plan.save("ring.json")                # world.allreduce(x, out, algorithm="file:ring.json") runs it

Nothing here communicates, and no rank is needed. docs/plans.md explains what plans are made of, and their files.
"""

from __future__ import annotations

import os

from . import _col
from ._col import Simulation, Verdict
from .errors import InvalidArgument
from .hints import Any, Optional, Sequence, Union

__all__ = ["Plan", "Simulation", "Verdict", "algorithms", "build", "load", "parse"]


class Plan:
    """What every rank does in one collective. Made by build(), load() and parse(); it never changes."""

    def __init__(self, plans: _col.PlanSet) -> None:
        self._plans = plans

    @property
    def name(self) -> str:
        return self._plans.name

    @property
    def collective(self) -> str:
        return self._plans.collective

    @property
    def ranks(self) -> int:
        return self._plans.ranks

    def steps(self, rank: int) -> list[list[dict[str, Any]]]:
        """The rounds of one rank. Each is a list of steps such as {"send": ["input", 0, 1], "to": 3}."""
        plans: list[list[list[dict[str, Any]]]] = self.document()["plans"]
        if not 0 <= rank < len(plans):
            raise IndexError(f"rank {rank} is not one of the {len(plans)} ranks of the plan")
        return plans[rank]

    def verify(self) -> Verdict:
        """Executes the plans of all ranks with symbols for numbers, and looks whether every rank gets what it should.

        The verdict is true if so. Otherwise its `problem` says what is wrong, and where. It also counts messages and
        elements.
        """
        return self._plans.verify()

    def simulate(
        self, *, alpha: float = 1e-6, beta: float = 1e-10, gamma: float = 2e-10, copy: float = 0,
        inter_alpha: Optional[float] = None, inter_beta: Optional[float] = None, cores: int = 0,
        cpu_per_message: float = 0, memory_bandwidth: float = 0, nic_shared: bool = False,
    ) -> Simulation:
        """How long it would take, in seconds, and how many messages and bytes.

        A message of n bytes takes alpha + n beta seconds; between nodes, inter_alpha and inter_beta, which are the same
        if left out. To reduce a byte takes gamma, to copy one takes copy. For the others, which say what the ranks of a
        node share, see CostModel in <col/plan.hpp>; 0 means no limit.
        """
        return self._plans.simulate(
            alpha=alpha, beta=beta, gamma=gamma, copy=copy, inter_alpha=inter_alpha, inter_beta=inter_beta, cores=cores,
            cpu_per_message=cpu_per_message, memory_bandwidth=memory_bandwidth, nic_shared=nic_shared,
        )

    def draw(self) -> str:
        """A picture, as SVG. For at most 64 ranks and 256 rounds; InvalidArgument above."""
        return self._plans.svg()

    def document(self) -> dict[str, Any]:
        """The plan as its file would have it, in elements. Change it, and parse() makes a plan of it."""
        import json

        return dict(json.loads(self.to_json()))

    def to_json(self) -> str:
        return self._plans.json()

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a file that calls take as algorithm="file:PATH", if they are what the plan was made for: of the same count,
        and in place if it was made with in_place."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_json())

    def _repr_svg_(self) -> Optional[str]:
        try:
            return self.draw()
        except InvalidArgument:  # too large, or its messages do not pair
            return None

    def __str__(self) -> str:
        try:
            return self._plans.text()
        except InvalidArgument:
            return repr(self)

    def __repr__(self) -> str:
        return f"<col.plan.Plan: {self.collective} {self.name}, {self.ranks} ranks>"


def _flat(counts: Sequence[Any]) -> list[int]:
    """The rows of an alltoallv, one after the other; other lists as they are."""
    return [each for row in counts for each in (row if isinstance(row, (list, tuple)) else [row])]


def algorithms(collective: str) -> dict[str, str]:
    """The algorithms that col has for a collective: their names, and one line about each."""
    return _col.plan_algorithms(collective)


def build(
    collective: str, algorithm: str, ranks: int, count: Optional[int] = None, *, root: int = 0,
    counts: Optional[Sequence[Any]] = None, in_place: bool = False, widens: bool = False, wide_input: bool = False,
    nodes: Sequence[int] = (), element_size: int = 4,
) -> Plan:
    """The plan of an algorithm, named as in a call: "ring", "knomial:radix=3", "file:my.json".

    `count` is in elements, as in the call; if left out, there is one for each rank. The v-forms take `counts` instead:
    one for each rank, and for alltoallv a list of rows, where row r is what rank r sends to each. `widens` means that
    partial results have a wider type than the elements, as sums of floats of 8 and 16 bits have, and `wide_input` that the input
    has it already. `nodes` has the node of each rank; if left out, all are on one.
    """
    return Plan(_col.make_plan(
        collective, algorithm, ranks=ranks, count=ranks if count is None else count, root=root, counts=_flat(counts or ()),
        in_place=in_place, widens=widens, wide_input=wide_input, nodes=list(nodes), element_size=element_size))


def parse(source: Union[str, dict[str, Any]], count: Optional[int] = None) -> Plan:
    """The plan in a JSON text, or in what document() returns. `count` is for plans in chunks: if left out, it is the
    number of chunks, and a plan that is good for that is good for every count."""
    import json

    text = source if isinstance(source, str) else json.dumps(source)
    collective, ranks, chunks = _col.read_plan(text)
    members = json.loads(text)
    given = {name: members[name] for name in ("root", "in_place", "widens", "wide_input") if name in members}
    return Plan(_col.make_plan(
        collective, "", file_text=text, ranks=ranks, count=members.get("count", chunks) if count is None else count,
        counts=_flat(members.get("counts", ())), element_size=2 if given.get("widens") else 4, **given))


def load(path: Union[str, os.PathLike[str]], count: Optional[int] = None) -> Plan:
    """The plan in a file: see parse()."""
    with open(path, encoding="utf-8") as file:
        return parse(file.read(), count)
