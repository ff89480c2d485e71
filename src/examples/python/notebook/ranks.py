"""Ranks for a notebook: run(4, function) calls function(world) in four processes."""

from __future__ import annotations

import multiprocessing
import tempfile
import traceback
from multiprocessing.connection import Connection
from typing import Any, Callable

import col

TIMEOUT = 60  # seconds that a rank waits for another


def _serve(answers: Connection, store: str, rank: int, size: int, function: Callable[..., Any], args: Any) -> None:
    try:
        world = col.init(store=f"file://{store}", rank=rank, world_size=size, timeout=TIMEOUT)
        answer = function(world, *args)
        col.finalize()
        answers.send((answer, ""))
    except Exception:
        answers.send((None, traceback.format_exc()))


def run(size: int, function: Callable[..., Any], *args: Any) -> list[Any]:
    """Calls function(world, *args) on `size` ranks at once. Returns their answers, rank by rank.

    The ranks are forked from the notebook: they know all that it has defined, and what they change is theirs alone.
    """
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as store:
        pipes, processes = [], []
        for rank in range(size):
            mine, theirs = context.Pipe(duplex=False)
            processes.append(context.Process(target=_serve, args=(theirs, store, rank, size, function, args)))
            processes[-1].start()
            theirs.close()  # so that recv() ends when the rank does
            pipes.append(mine)
        try:
            answers = [pipe.recv() for pipe in pipes]
        except EOFError:
            raise RuntimeError("a rank ended without an answer") from None
        finally:
            for process in processes:
                process.terminate()  # nothing to those that have ended
                process.join()
    failures = [f"rank {rank}:\n{failure}" for rank, (_, failure) in enumerate(answers) if failure]
    if failures:
        raise RuntimeError("\n".join(failures))
    return [answer for answer, _ in answers]
