"""How ranks meet, leave, and die. Each test has processes of its own."""

import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import types
import weakref

import pytest
import torch
import torch.distributed as dist

import col
import members
import processes
import ranks
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


def growth(rank, place):
    """Of mappings and descriptors: over groups of one job, and over jobs. Nobody waits for their last calls but one."""
    def state():
        gc.collect()
        return len(open("/proc/self/maps").readlines()), len(os.listdir("/proc/self/fd"))

    def use(group=None):
        dist.all_reduce(torch.ones(300_000), group=group)
        dist.all_reduce(torch.ones(300_000), group=group, async_op=True)
        dist.barrier(group, async_op=True)
        dist.barrier(group)

    def grown(round):
        for number in range(25):
            round(number)
            if number == 4:
                before = state()
        return [has - had for had, has in zip(before, state())]

    def group(_):
        own = dist.new_group([0, 1])
        use(own)
        dist.destroy_process_group(own)

    def job(number):
        begin(f"{place}/{number}", rank, 2)
        use()
        dist.destroy_process_group()

    begin(f"{place}/first", rank, 2)
    of_groups = grown(group)
    dist.destroy_process_group()
    return of_groups + grown(job)


def test_ended_groups_leave_nothing_behind(tmp_path):
    for code, grown in members.fresh(2, growth, f"file://{tmp_path}"):
        assert code == 0 and max(grown) < 5, grown


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


def some_of_them():
    dist.new_group([0, 1])


def without_rank_0():
    dist.new_group([1, 2])


def one_that_is_left_first():
    group = dist.new_group()
    if group != dist.GroupMember.NON_GROUP_MEMBER:
        dist.destroy_process_group(group)


def nothing():
    pass


def one_call():
    dist.broadcast(torch.ones(1), 0)


def rank_0_leaves_first(rank, where, left, between):
    """The others come out of the barriers of init_process_group() and new_group() when rank 0 has left, or half a second later."""
    clock = dist.distributed_c10d.time

    def look_late(_):
        until = clock.monotonic() + 0.5
        while not os.path.exists(left) and clock.monotonic() < until:
            clock.sleep(0.01)

    if rank != 0:
        dist.distributed_c10d.time = types.SimpleNamespace(**{**vars(clock), "sleep": look_late})
    begin(where, rank, 3)
    between()
    dist.destroy_process_group()
    if rank == 0:
        open(left, "w").close()


BETWEEN = [nothing, one_call, some_of_them, without_rank_0, one_that_is_left_first]


@pytest.mark.parametrize("between", BETWEEN, ids=lambda between: between.__name__)
def test_rank_0_leaves_first(tmp_path, between):
    """It serves torch's store."""
    ended = members.fresh(3, rank_0_leaves_first, "tcp://127.0.0.1:" + free_port(), f"{tmp_path}/left", between)
    assert ended == [(0, None)] * 3


def stays_longer(rank, where, left):
    begin(where, rank, 2)
    from col.torch import meeting

    meeting._IN_ORDER = 0.2
    if rank == 1:
        ranks.until(lambda: os.path.exists(left))
    dist.destroy_process_group()
    if rank == 0:
        open(left, "w").close()


def test_rank_0_does_not_wait_for_ever(tmp_path):
    assert members.fresh(2, stays_longer, "tcp://127.0.0.1:" + free_port(), f"{tmp_path}/left") == [(0, None)] * 2


def test_a_group_that_is_kept_to_the_end():
    """Of whole interpreters. Older torch does not tell a group of its end; the others look late, as above."""
    ended = processes.run(3, """
        import time, types
        import torch.distributed as dist
        import col.torch
        clock = dist.distributed_c10d.time
        if int(__import__("os").environ["RANK"]) > 0:
            dist.distributed_c10d.time = types.SimpleNamespace(**{**vars(clock), "sleep": lambda _: clock.sleep(0.3)})
        dist.init_process_group("col")
        world, group = dist.group.WORLD, dist.new_group()
        dist.destroy_process_group()
        """)
    assert ended == (0, "", "")


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
        assert code == 0 and text.startswith("init_process_group: ") and words in text and text.count("init_process") == 1, text
        assert 1 <= seconds < 5


def store_is_lost(rank):
    from col.torch import meeting

    serve = (
        "import os, sys, torch.distributed as dist\n"
        "store = dist.TCPStore('127.0.0.1', 0, None, True, wait_for_workers=False)\n"
        "print(store.port, flush=True)\n"
        "sys.stdin.read()\n"
        "os._exit(1)\n"
    )
    server = subprocess.Popen([sys.executable, "-c", serve], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    store = dist.TCPStore("127.0.0.1", int(server.stdout.readline()), None, False, trial.timeout_of(30))
    server.communicate()  # not killed: a reset ends this process too, in a thread of torch 1.13
    start = time.monotonic()
    try:
        meeting.Job(store, 1, 2, 1800.0)
    except col.Error as error:
        return error.code, str(error), time.monotonic() - start
    return None


def test_torchs_store_is_lost():
    """With the process that serves it: that is said, and no time that has not passed."""
    code, (kind, text, seconds) = members.fresh(1, store_is_lost)[0]
    assert code == 0 and kind == "io" and seconds < 30
    assert text.startswith("init_process_group: torch's store was lost after ") and "rank 0" in text, text
    assert "1800" not in text and "has not come" not in text, text


@pytest.mark.parametrize("ending", ["", "world = dist.group.WORLD; dist.destroy_process_group()"])
def test_exit_with_work_in_flight(ending):
    """Of a whole interpreter, without destroy_process_group(), or with a group that is kept: receives of messages that nobody sends. Nobody waits for the
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
        dist.all_reduce(torch.ones(5), async_op=True).get_future().then(lambda future: future.value()).wait()
        """) + ending)
    assert code == 0, err
    for word in ("terminate", "SIG", "Traceback", "leak"):
        assert word not in err, err
