"""One call of a driver, for all ranks of a group: what it checks, what it has each actor do, and how it ends."""

from __future__ import annotations

import time
from _thread import allocate_lock as Lock  # threading takes longer to import than all of col

from ..errors import Aborted, Error, InvalidArgument, Mismatch, NotInitialized, PeerLost, Timeout
from ..hints import Any, Mapping, Optional, Sequence
from . import cluster, collective, declare, direct, groups

_TIMEOUT = 300.0  # seconds, if neither the call nor the declaration says it
_SLACK = 5.0  # seconds for a rank to report its own timeout, before the driver's counts
_CONSEQUENCES = 1.5  # seconds in which the failure of a rank ends the calls of those that wait for it

_in_order = Lock()  # two calls reach all actors in the same order


class Operand:
    """An argument of a call: the refs, whether each holds a list with a tensor for each rank, and on which ranks they live
    (None: on all)."""

    def __init__(self, refs: Sequence[Any], lists: bool = False, ranks: Optional[Sequence[int]] = None) -> None:
        self.refs, self.lists, self.ranks = refs, lists, ranks


class RefsCall:
    """The driver's side."""

    def __init__(self, name: str, group_name: str, timeout: Optional[float]) -> None:
        self._name, self._group_name, self._timeout = name, group_name, timeout
        declared = declare.declaration(group_name)
        if declared is None:
            raise NotInitialized(
                f"{name}: no group '{group_name}' is declared in this Ray job; call create_collective_group() first",
                group=group_name,
            )
        if len(declared.ranks) != declared.world_size:
            raise InvalidArgument(
                f"{name}: group '{group_name}' has {declared.world_size} ranks, and only {len(declared.ranks)} of them are "
                "declared actors; the driver cannot call for the others", group=group_name,
            )
        self._rank_of = declared.ranks
        # The ranks take the group's timeout, if the call says none.
        self._budget = next((seconds for seconds in (timeout, declared.timeout) if seconds is not None), _TIMEOUT)
        self.actor_of = {rank: actor for actor, rank in self._rank_of.items()}

    def rank_of(self, ref: Any) -> int:
        """The rank whose actor holds the ref's tensors."""
        actor = direct.holder(ref)._actor_id.hex()
        if actor not in self._rank_of:
            raise InvalidArgument(
                f"{self._name}: the tensor of {ref} lives on {cluster.describe_actor(actor)}, which is no member of group "
                f"'{self._group_name}'", group=self._group_name,
            )
        return self._rank_of[actor]

    def who(self, rank: int) -> str:
        return f"rank {rank} of group '{self._group_name}', {cluster.describe_actor(self.actor_of[rank])}"

    def run(self, operands: Sequence[Operand], parts: Mapping[int, tuple[str, dict[str, Any]]]) -> None:
        """`parts`: the function of `collective` that each rank calls, and its options. Blocks until all have ended."""
        placed = [self._place(operand) for operand in operands]
        handles = {rank: direct.holder(ref) for refs in placed for rank, ref in refs.items()}
        for rank in parts:
            if direct.is_dead(handles[rank]):
                raise self._lost(rank)
        self._compare(operands, placed)
        tasks = {}
        with _in_order:
            for rank, (name, options) in parts.items():
                arguments = [
                    (refs[rank].hex(), operand.lists) if rank in refs else None for operand, refs in zip(operands, placed)
                ]
                # In the actor's default concurrency group: so the part comes after the calls that the driver has made to
                # this actor before, and before those that it makes next, as a method would. In a group of its own it
                # would write into a tensor while a method reads it.
                # Not again after a restart: the group is not the same then.
                task = handles[rank].__ray_call__.options(max_task_retries=0).remote(
                    _part, name, self._group_name, arguments, {**options, "timeout": self._timeout}
                )
                tasks[task] = rank
        self._wait(tasks)

    def _place(self, operand: Operand) -> dict[int, Any]:
        """The operand's refs by rank."""
        placed: dict[int, Any] = {}
        ranks = sorted(self.actor_of) if operand.ranks is None else operand.ranks
        for ref in operand.refs:
            rank = self.rank_of(ref)
            if rank not in ranks:
                raise self._wrong(f"{ref} must be of a tensor on rank {ranks[0]}, but it lives on {self.who(rank)}", rank)
            if rank in placed:
                raise self._wrong(f"two refs are of tensors of {self.who(rank)}", rank)
            placed[rank] = ref
        for rank in ranks:
            if rank not in placed:
                raise self._wrong(f"no ref is of a tensor of {self.who(rank)}", rank)
        return placed

    def _compare(self, operands: Sequence[Operand], placed: Sequence[Mapping[int, Any]]) -> None:
        """Refuses tensors that differ. Blocks until all have been made."""
        deadline = time.monotonic() + self._budget
        found: list[tuple[int, tuple[str, ...]]] = []  # by rank, what has to be the same on all
        for operand, refs in zip(operands, placed):
            for rank, ref in refs.items():
                try:
                    layout = direct.layout(ref, deadline)
                except direct.ActorDied as error:
                    raise self._lost(rank) from error
                wanted = len(self.actor_of) if operand.lists else 1
                any_number = len(operands) == 1 and len(layout) > 0
                if len(layout) != wanted and not any_number:
                    where = self.who(rank)
                    raise self._wrong(f"{ref} holds {len(layout)} torch tensors, not {wanted}; it lives on {where}", rank)
                found += [(rank, tuple(layout))] if any_number else [(rank, (one,)) for one in layout]
        layouts = [layout for _, layout in found]
        usual = max(layouts, key=layouts.count)
        for rank, layout in found:
            if layout != usual:
                odd, others = next(
                    (pair for pair in zip(layout, usual) if pair[0] != pair[1]),
                    (f"{len(layout)} tensors", f"{len(usual)} tensors"),
                )
                raise Mismatch(
                    f"{self._name}: {odd} on {self.who(rank)}, but {others} elsewhere; the tensors of a call have one shape "
                    "and one dtype", rank, rank, self._group_name,
                )

    def _wait(self, tasks: dict[Any, int]) -> None:
        import ray

        end = time.monotonic() + self._budget + _SLACK
        failures: list[Exception] = []
        while tasks and (left := end - time.monotonic()) > 0:
            for task in ray.wait(list(tasks), timeout=left, fetch_local=False)[0]:
                rank = tasks.pop(task)
                try:
                    direct.check(task)
                except Exception as error:
                    failures.append(self._lost(rank) if isinstance(error, direct.ActorDied) else error)
                    end = min(end, time.monotonic() + _CONSEQUENCES)
        for task in tasks:  # those that have not begun shall not run later, when nobody waits for them
            ray.cancel(task)
        if failures:
            nearest = min(failures, key=_distance)
            raise self._with_actor(nearest) from nearest.__cause__
        if tasks:
            rank = min(tasks.values())
            raise Timeout(
                f"{self._name}: {len(tasks)} ranks did not end in time, the first of them {self.who(rank)}; is that actor "
                "busy with another call?", rank, rank, self._group_name,
            )

    def _with_actor(self, error: Exception) -> Exception:
        """The same, with the actor of the rank that it is about."""
        if not isinstance(error, Error) or error.rank not in self.actor_of or self.actor_of[error.rank] in str(error):
            return error
        text = f"{self._name}: {error}; that is {self.who(error.rank)}"
        return type(error)(text, error.rank, error.world_rank, error.group)

    def _wrong(self, what: str, rank: int) -> InvalidArgument:
        return InvalidArgument(f"{self._name}: {what}", rank, rank, self._group_name)

    def _lost(self, rank: int) -> direct.ActorDied:
        return direct.ActorDied(f"{self._name}: dead: {self.who(rank)}", rank, rank, self._group_name)


def _distance(error: Exception) -> int:
    """How far an error is from the cause: one rank's failure makes the others lose a peer, or find their group aborted."""
    kinds = (direct.ActorDied, Timeout, PeerLost, Aborted)
    return next((distance for distance, kind in enumerate(kinds, 1) if isinstance(error, kind)), 0)


def _part(actor: Any, name: str, group_name: str, arguments: Sequence[Any], options: dict[str, Any]) -> None:
    """The actor's side."""
    groups.get(group_name)
    try:
        originals = [argument and direct.tensors(argument[0]) for argument in arguments]
    except Exception:
        groups.leave(group_name)  # the others learn of it now, instead of when their time is up
        raise
    dense = [[tensor.detach().contiguous() for tensor in tensors or ()] for tensors in originals]
    function = getattr(collective, name)
    if len(dense) == 1:
        for tensor in dense[0]:
            function(tensor, group_name=group_name, **options)
    else:
        given = [
            None if argument is None else tensors if argument[1] else tensors[0]
            for argument, tensors in zip(arguments, dense)
        ]
        function(*given, group_name=group_name, **options)
    for tensors, copies in zip(originals, dense):
        for tensor, copy in zip(tensors or (), copies):
            if tensor.data_ptr() != copy.data_ptr():  # it was not contiguous
                tensor.detach().copy_(copy)
