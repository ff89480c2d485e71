"""Ranks that a test may kill. They begin with torch imported, as those of ranks.py do, and serve one test."""

import ranks


def run(size, function, *args):
    """Calls function(group, *args) on each rank. Returns the results of those that lived, by rank."""
    started = ranks.Ranks(size)
    try:
        for pipe in started.pipes:
            pipe.send((function, args))
        results = {}
        for rank, pipe in enumerate(started.pipes):
            assert pipe.poll(ranks.LIMIT), f"rank {rank} did not end"
            try:
                is_good, answer = pipe.recv()
            except EOFError:
                continue  # it was killed
            assert is_good, f"rank {rank}:\n{answer[1]}"
            results[rank] = answer
        return results
    finally:
        started.end()
