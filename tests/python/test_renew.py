"""The epochs of a group: renew() after a loss, and join()."""

import gc
import textwrap
import threading

import numpy as np
import pytest

import col
import processes


def test_the_others_go_on_after_a_death():
    code, out, err = processes.run(
        3,
        """
        import os, signal, numpy as np, col
        world = col.init()
        half = world.dup()
        world.barrier()
        if world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            while True:
                world.allreduce(np.ones(3))
        except col.Error as error:
            assert error.is_loss and isinstance(error, (col.PeerLost, col.Aborted)), error
        old, world = world, world.renew(min=2, progress=5 + world.rank)
        assert (world.epoch, world.lost, world.newcomers, world.name) == (1, [1], [], "default")
        assert (world.source, world.progress(0), world.progress(1)) == (1, 5, 7)
        assert col.get_group().epoch == 1 and not world.renewal_wanted()
        for ended in old, half:
            try:
                ended.barrier()
            except col.Aborted as error:
                assert error.is_loss and "epoch 1 has taken its place" in str(error), error
        half = world.dup()
        assert half.epoch == 1
        print("left:", world.allreduce(np.ones(2))[0], half.allreduce(np.ones(2))[1], world.ranks)
        col.finalize()
        """,
        "--keep-going",
    )
    assert out.count("left: 2.0 2.0 [0, 2]") == 2, (code, out, err)


def test_a_newcomer_takes_the_place_of_a_dead_rank(tmp_path):
    works = """
        import os, signal, numpy as np, col
        world = col.init()
        world.barrier()
        if world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            while True:
                world.allreduce(np.ones(3))
        except col.Error as error:
            assert error.is_loss, error
        world = world.renew(wait=50, progress=3)
        """
    joins = """
        import numpy as np, col
        world = col.join(timeout=50)
        """
    checks = """
        assert (world.epoch, world.lost, world.newcomers, world.source, world.size) == (1, [1], [1], 0, 3)
        assert [world.progress(rank) for rank in range(3)] == [3, 0, 3]
        print("rank", world.rank, world.allreduce(np.full(2, 1.0 + world.rank))[0])
        col.finalize()
        """
    programs = [works] * 3 + [joins]
    ranks = [
        processes.start_alone(rank, max(3, rank + 1), tmp_path, "-c", textwrap.dedent(program + checks))
        for rank, program in enumerate(programs)
    ]
    said = [processes.finish(process) for process in ranks]
    assert [code for code, _, _ in said] == [0, -9, 0, 0], said
    assert [out for _, out, _ in said] == ["rank 0 6.0\n", "", "rank 2 6.0\n", "rank 1 6.0\n"], said


@pytest.mark.ranks(2)
def test_wrong_calls(group):
    for arguments, words in [
        ({"size": -1}, "size = -1"), ({"min": 0}, "min = 0"), ({"size": 1, "min": 2}, "less than min"),
        ({"wait": -1}, "wait must be zero seconds or more"), ({"wait": float("nan")}, "wait must be"),
        ({"excluded": [7]}, "excluded rank 7"), ({"excluded": [1, 1]}, "listed twice"),
    ]:  # fmt: skip
        with pytest.raises(col.InvalidArgument, match=words):
            group.renew(**arguments)
    for arguments in {"wait": "soon"}, {"progress": -1}, {"excluded": 1}, {"sizes": 1}:
        with pytest.raises(TypeError):
            group.renew(**arguments)
    with pytest.raises(TypeError):
        group.renew(3)
    with pytest.raises(col.InvalidArgument, match="progress: rank 7"):
        group.progress(7)
    own = group.dup()
    for ask in (lambda: own.renew(), lambda: own.source, lambda: own.renewal_wanted()):
        with pytest.raises(col.InvalidArgument, match="made from 'default'"):
            ask()
    own.destroy()
    with pytest.raises(col.AlreadyInitialized):
        col.join()
    with pytest.raises(col.Timeout, match="nobody has made a group 'nobody's'"):
        col.join("nobody's", timeout=0.1)
    with pytest.raises(col.InvalidArgument, match="above zero"):
        col.join("nobody's", timeout=0)
    group.barrier()  # none of these broke it


def test_threads_as_ranks_and_a_planned_leave(tmp_path):
    """Each call needs the others at the same time, so none of them may keep the GIL. The groups keep their contexts."""
    sums = {}

    def rank(number):
        group = col.Context(number, 3, store=f"file://{tmp_path}", timeout=50).init_group()
        for _ in range(3):
            group = group.renew()
            gc.collect()
            assert group.allreduce(np.ones(1))[0] == 3
        left = group.renew(excluded=[0])
        assert (left is None) == (number == 0)
        sums[number] = left and (left.epoch, left.rank, left.allreduce(np.ones(1))[0])

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == {0: None, 1: (4, 0, 2.0), 2: (4, 1, 2.0)}
