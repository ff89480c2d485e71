"""Calls a function on ranks that are kept from test to test: col.ranks, for tests that compare what ranks return, or whose ranks
join a job in a way of their own. Others have @pytest.mark.ranks."""

import os
import shutil
import tempfile
import time

import col

LIMIT = 60  # seconds a test's function may take; a rank that takes longer is a failure, and ends

_kept = {}  # ranks and the folder where they meet, by size, way to join and variables
_joined = {}  # on a rank: what its functions are given, and what ends it


def until(condition):
    """Waits for what another process or thread does."""
    latest = time.monotonic() + LIMIT / 2
    while not condition():
        assert time.monotonic() < latest, f"not within {LIMIT / 2} s"
        time.sleep(0.005)


def _join(store, rank, size):
    return col.init(), col.finalize


def _call(join, store, function, args):
    if join is _join:  # after a failure it is another group
        return function(col.init(), *args)
    if join not in _joined:
        col.finalize()
        _joined[join] = join(store, int(os.environ["COL_RANK"]), int(os.environ["COL_WORLD_SIZE"]))
    return function(_joined[join][0], *args)


def _leave():
    for _, leave in _joined.values():
        leave()
    _joined.clear()


def run(size, function, *args, join=_join, env=()):
    """Calls function(group, *args) on each rank, and returns the list of results. Raises the exception of the rank that failed."""
    key = size, join, *env
    if key not in _kept:
        variables = {"COL_TIMEOUT": str(LIMIT / 2), **dict(env)}
        _kept[key] = col.ranks(size, timeout=LIMIT, env=variables), tempfile.mkdtemp(prefix="col-python-")
    kept, store = _kept[key]
    try:
        return kept(_call, join, store, function, args)
    except BaseException as error:
        _end(key)  # the next test gets new ones
        if isinstance(error, col.RankFailed):
            print(error)
            raise error.__cause__ or error
        raise


def _end(key):
    kept, store = _kept.pop(key)
    kept.close()
    shutil.rmtree(store, ignore_errors=True)


def end_all():
    for key, (kept, _) in list(_kept.items()):
        if not kept.is_over:
            kept(_leave)
        _end(key)
