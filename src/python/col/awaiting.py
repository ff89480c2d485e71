"""`await work` in asyncio."""

_LONGEST_PAUSE = 0.001  # seconds


async def _ended(work):
    import asyncio  # costs more to import than all of col

    pause = 0.0
    while not work.done():
        await asyncio.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 2 + 0.00005)
    return work.result


def await_work(work):
    """Other tasks run until the operation has ended. Gives its result, or raises its error."""
    return _ended(work).__await__()
