"""1F1B: the order in which a stage of a pipeline works on micro-batches. Narayanan et al., "PipeDream", 2019.

    stage 0   F0 F1 F2 F3 -- -- B0 F4 B1 F5 B2 -- B3 -- B4 -- B5       time →
    stage 1      F0 F1 F2 -- B0 F3 B1 F4 B2 F5 B3 -- B4 -- B5
    stage 2         F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 -- B5
    stage 3            F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5

A stage begins with one forward for each stage behind it, then makes one forward and one backward in turns. So stage s of n has
at most n - s micro-batches between forward and backward, however many there are; all forwards first would have all of them.
"""

from __future__ import annotations

from typing import Iterator


def one_forward_one_backward(stage: int, stages: int, micro_batches: int) -> Iterator[tuple[str, int]]:
    """("forward", i) and ("backward", i), each i once, in this order."""
    first = min(stages - stage - 1, micro_batches)
    for i in range(first):
        yield "forward", i
    for i in range(micro_batches):
        if first + i < micro_batches:
            yield "forward", first + i
        yield "backward", i
