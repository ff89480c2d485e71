"""The state of a pipeline, when the same layers are on another number of stages.

Layers stay in their order. So all parameters of all stages, one after another, are the same list, however it is cut.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Sequence

import numpy as np

from ..errors import InvalidArgument


def restage(stages: list[dict[str, Any]], shapes: Sequence[Sequence[Any]], trainable: Sequence[int]) -> list[dict[str, Any]]:
    """The states of new stages, which have parameters of these shapes, so many of which (torch) have an optimizer's state.

    Raises InvalidArgument if the layers are not the same."""
    old = [[tuple(parameter.shape) for parameter in state["parameters"]] for state in stages]
    new = [[tuple(shape) for shape in own] for own in shapes]
    if old == new:
        return stages
    if sum(old, []) != sum(new, []):
        raise InvalidArgument(
            f"the checkpoint is of other layers: its {len(old)} stages have parameters of shapes {old}, and the {len(new)} "
            f"stages here {new}"
        )
    parameters: list[Any] = sum((state["parameters"] for state in stages), [])
    ends = list(accumulate(len(own) for own in new))
    cut = [parameters[end - len(own) : end] for end, own in zip(ends, new)]
    optimizers = [state["optimizer"] for state in stages]
    if "param_groups" in optimizers[0]:
        made = _restage_torch(optimizers, [state["trainable"] for state in stages], trainable)
    else:
        made = _restage_numpy(optimizers, [sum(parameter.size for parameter in own) for own in cut])
    return [
        {"parameters": own, "optimizer": optimizer, "trainable": count} for own, optimizer, count in zip(cut, made, trainable)
    ]


def _restage_numpy(states: list[dict[str, Any]], sizes: list[int]) -> list[dict[str, Any]]:
    """Of col.strategies' optimizers: flat vectors."""
    ends = list(accumulate(sizes))[:-1]
    vectors = {name: np.split(np.concatenate([state[name] for state in states]), ends) for name in states[0] if name != "steps"}
    return [
        {"steps": states[0]["steps"], **{name: parts[i] for name, parts in vectors.items()}} for i in range(len(sizes))
    ]


def _restage_torch(states: list[dict[str, Any]], old: Sequence[int], new: Sequence[int]) -> list[dict[str, Any]]:
    """Of torch's optimizers: a dict for each parameter, by its number."""
    if any(len(state["param_groups"]) > 1 for state in states):
        raise InvalidArgument("an optimizer with several groups of parameters cannot be moved to other stages")
    begins = accumulate([0, *old[:-1]])
    moved = {begin + i: own for begin, state in zip(begins, states) for i, own in state["state"].items()}
    made, begin = [], 0
    for count in new:
        own = {i: moved[begin + i] for i in range(count) if begin + i in moved}
        made.append({"state": own, "param_groups": [{**states[0]["param_groups"][0], "params": list(range(count))}]})
        begin += count
    return made
