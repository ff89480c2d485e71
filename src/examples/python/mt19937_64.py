"""The random numbers of C++'s std::mt19937_64, so that digits.py starts where digits_trainer does.

numpy has the 32-bit generator alone. Both classes are what the C++ standard says, so they give the same numbers
everywhere.
"""

from __future__ import annotations

from typing import Iterable

WORDS, SHIFTED = 312, 156  # the size of the state, and the distance of the words that are mixed
LOW32, LOW64 = 2**32 - 1, 2**64 - 1
UPPER, LOWER = LOW64 - (2**31 - 1), 2**31 - 1  # the bits of a word that go with the next word's


class Engine:
    """std::mt19937_64, made from a seed or from the 624 words of a seed_seq."""

    def __init__(self, seed: int | list[int]) -> None:
        if isinstance(seed, int):
            self.state = [seed & LOW64]
            for i in range(1, WORDS):
                last = self.state[-1]
                self.state.append((6364136223846793005 * (last ^ last >> 62) + i) & LOW64)
        else:
            self.state = [low | high << 32 for low, high in zip(seed[::2], seed[1::2])]
        self.next = WORDS

    def __call__(self) -> int:
        if self.next == WORDS:
            self._mix()
        x = self.state[self.next]
        self.next += 1
        x ^= x >> 29 & 0x5555555555555555
        x ^= x << 17 & 0x71D67FFFEDA60000
        x ^= x << 37 & 0xFFF7EEE000000000
        return x ^ x >> 43

    def _mix(self) -> None:
        state = self.state
        for i in range(WORDS):
            pair = state[i] & UPPER | state[(i + 1) % WORDS] & LOWER
            state[i] = state[(i + SHIFTED) % WORDS] ^ pair >> 1 ^ (0xB5026F5AA96619E9 if pair & 1 else 0)
        self.next = 0


def seed_seq(seeds: Iterable[int], count: int = 2 * WORDS) -> list[int]:
    """What std::seed_seq makes of some 32-bit words: `count` of them. Requires: count >= 623."""
    seeds = list(seeds)
    words = [0x8B8B8B8B] * count
    shift, gap = 11, (count - 11) // 2
    rounds = max(len(seeds) + 1, count)

    def scrambled(x: int, factor: int) -> int:
        return (x ^ x >> 27) * factor & LOW32

    for k in range(rounds):
        mixed = scrambled(words[k % count] ^ words[(k + gap) % count] ^ words[(k - 1) % count], 1664525)
        added = len(seeds) if k == 0 else k % count + (seeds[k - 1] if k <= len(seeds) else 0)
        words[(k + gap) % count] = words[(k + gap) % count] + mixed & LOW32
        words[(k + gap + shift) % count] = words[(k + gap + shift) % count] + mixed + added & LOW32
        words[k % count] = mixed + added & LOW32
    for k in range(rounds, rounds + count):
        last = words[(k - 1) % count]
        mixed = scrambled(words[k % count] + words[(k + gap) % count] + last & LOW32, 1566083941)
        added = mixed - k % count & LOW32
        words[(k + gap) % count] ^= mixed
        words[(k + gap + shift) % count] ^= added
        words[k % count] = added
    return words
