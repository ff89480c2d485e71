"""The lines that ranks print, as colrun labels them, on their way to sys.stdout of the caller."""

from __future__ import annotations

import sys
from collections import deque

from . import rank as of_rank

MOST_HELD = 1000  # lines of one rank that wait for the same line of the others


class Output:
    """Takes what colrun writes, and prints it. What is not of a rank is kept: colrun's report comes last."""

    def __init__(self, size: int, how: str) -> None:
        self.marks = 0  # ends of calls that have come
        self.report = bytearray()
        self.said = bytearray()  # by colrun itself
        self._how = how
        self._rest = b""
        self._held: list[deque[str]] = [deque() for _ in range(size)]

    @property
    def holds(self) -> bool:
        return any(self._held)

    def keep(self, data: bytes) -> None:
        self.said += data
        del self.said[: -(1 << 16)]

    def take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            label, bracket, text = line.partition(b"] ")
            if not (bracket and label.startswith(b"[") and label[1:].isdigit()):
                self.report += line + b"\n"
                continue
            said = text.decode(errors="replace")
            if said.endswith(of_rank.MARK):
                self.marks += 1
                said = said[: -len(of_rank.MARK)]
                if not said:
                    continue
            if self._how != "none":
                self._hold(int(label[1:]), said)

    def _hold(self, rank: int, line: str) -> None:
        self._held[rank].append(line)
        while all(self._held):
            lines = [held.popleft() for held in self._held]
            if len(lines) > 1 and all(other == lines[0] for other in lines):
                self._print(f"0-{len(lines) - 1}", lines[0])
            else:
                for number, other in enumerate(lines):
                    self._print(str(number), other)
        if len(self._held[rank]) > MOST_HELD:
            self.release()

    def release(self) -> None:
        """Prints what is held: the same lines of the others have not come."""
        for rank, held in enumerate(self._held):
            while held:
                self._print(str(rank), held.popleft())

    def _print(self, ranks: str, line: str) -> None:
        if self._how == "none":
            return
        try:
            sys.stdout.write(f"[{ranks}] {line}\n" if self._how == "label" else line + "\n")
        except (OSError, ValueError):
            self._how = "none"  # it is closed: once is enough, and the ranks have to end
            raise
