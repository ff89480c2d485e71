"""`await work` in asyncio."""


async def _ended(work):
    import asyncio  # costs more to import than all of col

    if not work.done():
        loop = asyncio.get_running_loop()
        ended = loop.create_future()

        def end():
            if not ended.done():  # the task may have been cancelled
                ended.set_result(None)

        def tell(error):
            try:
                loop.call_soon_threadsafe(end)
            except RuntimeError:  # the loop was closed meanwhile: nobody waits any more
                pass

        work.then(tell)
        await ended
    return work.wait()


def await_work(work):
    """Other tasks run until the operation has ended. Gives its result, or raises its error."""
    return _ended(work).__await__()
