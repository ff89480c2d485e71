"""How ranks meet, leave, and die. Each test has processes of its own."""

import gc
import os
import signal
import socket
import textwrap
import time
import weakref

import pytest
import torch
import torch.distributed as dist

import col
import members
import processes
import trial


def begin(where, rank, size, seconds=30):
    import col.torch  # noqa: F401

    torch.set_num_threads(1)
    dist.init_process_group("col", where, trial.timeout_of(seconds), size, rank)


def total(group=None):
    x = torch.full((1000,), float(dist.get_rank() + 1))
    dist.all_reduce(x, group=group)
    return x[0].item()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def by_environment(rank, size, port):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    begin(None, -1, -1)
    return dist.get_backend(), total()


def test_env_without_colrun():
    assert members.fresh(2, by_environment, 2, free_port()) == [(0, ("col", 3.0))] * 2


def at(rank, size, where):
    begin(where, rank, size)
    return total()


def test_tcp():
    assert members.fresh(2, at, 2, "tcp://127.0.0.1:" + free_port()) == [(0, 3.0)] * 2


def again(rank, places):
    """Leaves and meets again, with groups of the same names."""
    totals = []
    for place in places:
        begin(place, rank, 2)
        both, own = dist.new_group([0, 1]), [dist.new_group([r]) for r in (0, 1)][rank]
        totals += [total(), total(both), total(own)]
        job = weakref.ref(dist.group.WORLD._job)
        dist.barrier()
        dist.destroy_process_group()
        assert not dist.is_initialized()
        del both, own
        gc.collect()
        assert job() is None  # and with it the store's thread; older torch does not tell a group of its end
    return totals


def test_again(tmp_path):
    ended = members.fresh(2, again, [f"file://{tmp_path}/{name}" for name in "abc"])
    assert ended == [(0, [3.0, 3.0, rank + 1.0] * 3) for rank in (0, 1)]


def beside_gloo(rank, place):
    """The default group is another backend's. Groups that overlap are jobs of their own."""
    import col.torch  # noqa: F401

    dist.init_process_group("gloo", place, world_size=3, rank=rank)
    totals = []
    for ranks in ([0, 1], [1, 2], [0, 2], [0, 1, 2], [1]):
        group = dist.new_group(ranks, backend="col")
        if rank in ranks:
            assert dist.get_backend(group) == "col"
            totals.append(total(group))
    dist.barrier()
    return totals


def test_groups_beside_a_default_group_of_gloo(tmp_path):
    ended = members.fresh(3, beside_gloo, f"file://{tmp_path}/meet")
    assert ended == [(0, [3, 4, 6]), (0, [3, 5, 6, 2]), (0, [5, 4, 6])]


def others_die(rank, place):
    """What each rank learns, and after how many seconds."""
    begin(place, rank, 4)
    assert total() == 10
    if rank == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    x = torch.ones(1000)
    calls = [
        lambda: dist.all_reduce(x), lambda: dist.all_reduce(x, async_op=True).get_future().wait(), lambda: dist.recv(x, 3),
    ]
    with pytest.raises(RuntimeError, match="peer_lost: .*rank 3"):
        calls[rank]()
    with pytest.raises(col.Aborted, match="rank 3"):
        dist.barrier()
    seconds = time.monotonic() - start
    dist.destroy_process_group()
    begin(place + " of the living", rank, 3)
    return seconds, total()


def test_a_rank_dies(tmp_path):
    """Who waits learns it, and who has a future, and who wants a message of it; so does the next call. Then the others meet."""
    *living, dead = members.fresh(4, others_die, f"file://{tmp_path}/meet")
    assert dead == (-signal.SIGKILL, None)
    for code, (seconds, without) in living:
        assert code == 0 and seconds < 3 and without == 6


def alone_of_two(rank, where, me):
    start = time.monotonic()
    try:
        begin(where, me, 2, seconds=1)
    except col.Timeout as error:
        return str(error), time.monotonic() - start
    return None


def test_a_rank_that_never_comes(tmp_path):
    """A file does not tell who has come: col does. With tcp://, rank 1 waits in torch for rank 0's store."""
    for me, words in ((0, "rank 1"), (1, "rank 0 has not come in 1 s")):
        code, (text, seconds) = members.fresh(1, alone_of_two, f"file://{tmp_path}/{me}", me)[0]
        assert code == 0 and "init_process_group" in text and words in text, text
        assert 1 <= seconds < 5


def test_exit_with_work_in_flight():
    """Of a whole interpreter, without destroy_process_group(): receives of messages that nobody sends. Nobody waits for the
    first, the second has a future, and the third a function."""
    code, _, err = processes.run(2, textwrap.dedent("""
        import torch, torch.distributed as dist
        import col.torch
        dist.init_process_group("col")
        peer = 1 - dist.get_rank()
        outs = [torch.zeros(5, 2)[:, 0] for _ in range(3)]
        works = [dist.irecv(out, peer, tag=tag) for tag, out in enumerate(outs)]
        future = works[1].get_future()
        last = works[2].get_future().then(lambda future: print("never"))
        dist.all_reduce(torch.ones(5), async_op=True).get_future().wait()
        dist.barrier()
        """))
    assert code == 0, err
    for word in ("terminate", "SIG", "Traceback", "leak"):
        assert word not in err, err
