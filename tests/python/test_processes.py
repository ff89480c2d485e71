"""The interpreter: Ctrl-C, threads, fork, spawn, its end, imports, and what many calls leave behind."""

import ast
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import col
import processes
import ranks


def test_import_is_light():
    code, out, err = processes.alone(
        """
        import sys
        before = set(sys.modules)
        import col
        print([m for m in ("numpy", "torch", "ray", "typing", "asyncio", "pickle") if m in set(sys.modules) - before])
        """
    )
    assert code == 0 and out.strip() == "[]", (out, err)


@pytest.mark.parametrize("order", ["col, torch", "torch, col", "numpy, col, torch", "col, numpy"])
def test_import_orders(order):
    code, out, err = processes.run(
        2,
        f"""
        import {order}
        world = col.init()
        import torch, numpy
        x = torch.ones(3)
        y = numpy.ones(3)
        world.allreduce(x)
        world.allreduce(y)
        print(x.tolist() == y.tolist() == [2, 2, 2])
        col.finalize()
        """,
    )
    assert code == 0 and out.split() == ["True", "True"], err


INTERRUPTED = {
    "collective": "world.allreduce(np.ones(3))",
    "wait": "world.iallreduce(np.ones(3)).wait()",
    "wait_for": "world.iallreduce(np.ones(3)).wait_for(60)",
    "recv": "world.recv(np.ones(3), 1)",
    "barrier": "world.barrier()",
    "object": "world.broadcast_object(root=1)",
    "dup": "world.dup()",
}


BACKENDS = [("shm", call) for call in INTERRUPTED]
if col.gloo_available():
    BACKENDS += [("gloo", "collective"), ("gloo", "recv")]


@pytest.mark.parametrize("backend, call", BACKENDS)
def test_interrupt(call, backend):
    code, out, err = processes.run(
        2,
        f"""
        import os, signal, sys, threading, time, numpy as np, col
        world = col.init(timeout=60, backend="{backend}")
        assert world.backend == "{backend}"
        own = world.dup()
        world.barrier()
        if world.rank == 0:
            began = 0
            def press():
                global began
                began = time.monotonic()
                os.kill(os.getpid(), signal.SIGINT)
            threading.Timer(0.3, press).start()
            try:
                {INTERRUPTED[call]}
            except KeyboardInterrupt:
                print("interrupted after", time.monotonic() - began < 0.5)
            try:
                world.barrier()
            except col.Aborted as error:
                print("broken")
            own.barrier()
            sys.exit(0)
        own.barrier()
        """,
    )
    assert "interrupted after True\n" in out and "broken" in out, (code, out, err)


def test_others_are_told_of_an_interrupt():
    code, out, err = processes.run(
        3,
        """
        import os, signal, threading, numpy as np, col
        world = col.init(timeout=60)
        world.barrier()
        try:
            if world.rank == 0:
                threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            if world.rank < 2:
                world.allreduce(np.ones(3))
            else:
                world.recv(np.ones(3), 0)
        except KeyboardInterrupt:
            print("interrupted")
        except col.Error as error:
            print("told", type(error).__name__)
        """,
    )
    assert out.count("interrupted") == 1 and out.count("told Aborted") == 2, (code, out, err)


def test_interrupt_while_the_group_is_made(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", f"import col; print('waiting', flush=True); col.init(store='file://{tmp_path}', rank=0, world_size=2)"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    assert process.stdout.readline() == "waiting\n"
    ranks.until(lambda: any(tmp_path.iterdir()))  # its announcement: the signal finds it waiting
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in err and time.monotonic() - began < 5


@pytest.mark.ranks(2)
def test_a_group_for_each_thread(group):
    import threading

    groups = [group.dup() for _ in range(3)]
    errors = []

    def calls(own):
        try:
            for k in range(200):
                x = np.full(50, float(k))
                assert (own.allreduce(x) == k * own.size).all()
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=calls, args=(own,)) for own in groups]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for own in groups:
        own.destroy()
    assert not errors, errors


def gil_is_released(group, counted):
    import threading

    own = group.dup()
    if group.rank == 0:
        calls = threading.Event()

        def count():
            calls.wait()
            sum(1 for _ in range(1000))
            counted.touch()

        thread = threading.Thread(target=count)
        thread.start()
        calls.set()
        own.barrier()
        thread.join()
    else:
        ranks.until(counted.exists)  # the other one, which waits for this rank, has a thread that runs
        own.barrier()
    own.destroy()


def test_other_threads_run_meanwhile(tmp_path):
    ranks.run(2, gil_is_released, tmp_path / "counted")


@pytest.mark.ranks(2)
def test_two_threads_on_one_group(group):
    import threading

    own = group.dup()
    entered = threading.Event()
    outcome = []

    def waits():
        entered.set()
        try:
            own.recv(np.zeros(1), 1 - group.rank, timeout=20)
            outcome.append("received")
        except col.Error as error:
            outcome.append(error)

    thread = threading.Thread(target=waits)
    thread.start()
    entered.wait()
    refused = None
    while refused is None and thread.is_alive():
        try:
            own.explain("allreduce", 8)  # any thread may
            own.send(np.zeros(1), group.rank, tag=9)
            own.recv(np.zeros(1), group.rank, tag=9)
        except col.InvalidArgument as error:
            refused = str(error)
    group.barrier()
    own_answer = group.dup()
    own_answer.destroy()
    while True:
        try:
            own.send(np.zeros(1), 1 - group.rank)
            break
        except col.InvalidArgument:  # the other thread is still in its call
            own.destroy()
            break
    thread.join()
    if refused is None:  # the other thread came while this one was in its call, so it was the one to be refused
        refused = str(outcome[0])
    assert "in use by another thread" in refused


AT_EXIT = {
    "message": "world.irecv(np.zeros(1000), 1 - world.rank)",
    "kept message": "work = world.irecv(np.zeros(1000), 1 - world.rank)",
    "collective": "work = world.iallreduce(np.zeros(1 << 20))",
    "dropped collective": "world.iallreduce(np.zeros(1 << 20))",
    "own function": "work = world.iallreduce(np.zeros(1 << 16), op=lambda a, b: a + b)",
    "shared memory": "memory = col.alloc(1 << 20); work = world.iallreduce(memory)",
    "daemon thread": "threading.Thread(target=world.recv, args=(np.zeros(10), 1 - world.rank), daemon=True).start(); time.sleep(0.1)",
    "exception": "work = world.irecv(np.zeros(1000), 1 - world.rank); raise SystemExit(0)",
    "finalized": "work = world.irecv(np.zeros(1000), 1 - world.rank); finalize()",
}


@pytest.mark.parametrize("progress", ["", "thread"])
@pytest.mark.parametrize("what", AT_EXIT)
def test_exit_with_work_in_flight(what, progress):
    began = time.monotonic()
    os.environ["COL_PROGRESS"] = progress
    try:
        code, out, err = processes.run(
            2,
            f"""
            import threading, time, numpy as np, col
            def finalize():
                try:
                    col.finalize()
                except col.Error as error:
                    print(error)
            world = col.init()
            world.barrier()
            {AT_EXIT[what]}
            """,
        )
    finally:
        del os.environ["COL_PROGRESS"]
    assert code == 0 and "Traceback" not in err and "rror" not in err, (code, out, err)
    assert time.monotonic() - began < 20


def test_exit_inside_a_callback():
    code, out, err = processes.alone(
        """
        import threading, numpy as np, col
        started = threading.Event()
        def endless(error):
            started.set()
            return sum(1 for _ in iter(int, 1))
        world = col.init()
        world.ibarrier().then(endless)
        assert started.wait(20)
        """
    )
    assert code == 0 and err == "", (code, out, err)


# The reduction runs in a thread of the library: rank 1 starts later.
def ends_inside(rank, store):
    return processes.alone(
        f"""
        import threading, numpy as np, col
        started = threading.Event()
        def endless(a, b):
            started.set()
            return sum(1 for _ in iter(int, 1))
        world = col.init(store="file://{store}", rank={rank}, world_size=2, timeout=30)
        memory = col.alloc(1 << 12)
        start = lambda op: world.iallreduce(np.zeros(8), op=col.user_op(op, commutative=True, name="op"), algorithm="ring")
        if world.rank == 0:
            start(endless).then(print)
            world.send(np.zeros(1), 1)
            assert started.wait(20)
        else:
            world.recv(np.zeros(1), 0)
            try:
                start(np.add).wait()
            except col.Error:
                pass  # rank 0 has gone
        """
    )


def test_exit_inside_a_reduction(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for code, out, err in pool.map(ends_inside, range(2), [tmp_path] * 2):
            assert code == 0 and err == "", (code, out, err)


def finalizes_under_a_call(rank, store):
    import threading

    import col

    group = col.init(store=store, rank=rank, world_size=2, timeout=30)
    if rank == 1:
        group.barrier()
        col.finalize()
        return None
    group.barrier()
    said = []
    inside = threading.Event()

    def receives():
        inside.set()
        try:
            group.recv(np.zeros(1), 1, tag=3)
        except col.Error as error:
            said.append(error)

    thread = threading.Thread(target=receives)
    thread.start()
    inside.wait()
    col.finalize()
    thread.join(30)
    return len(said)


def test_finalize_while_another_thread_is_in_a_call(tmp_path):
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(2) as pool:
        calls = [pool.apply_async(finalizes_under_a_call, (r, f"file://{tmp_path}")) for r in range(2)]
        assert [call.get(60) for call in calls] == [1, None]


def test_an_interrupted_wait_leaves_nothing_for_the_end():
    for wait in ("col.wait_any([work])", "work.then(print).wait()"):
        code, out, err = processes.alone(
            f"""
            import os, signal, sys, threading, numpy as np, col
            work = col.init().irecv(np.zeros(1), 0, tag=8)
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                {wait}
            except KeyboardInterrupt:
                print("interrupted")
                sys.exit(3)
            """
        )
        assert code == 3 and out == "interrupted\n", (code, out, err)


def test_fork():
    code, out, err = processes.run(
        2,
        """
        import os, sys, numpy as np, col
        world = col.init()
        work = world.iallreduce(np.ones(1000))
        child = os.fork()
        if child == 0:
            for call in [world.barrier, world.dup, col.init, col.get_group, col.barrier,
                         lambda: col.init_collective_group(2, world.rank, "auto", "more")]:
                try:
                    call()
                except col.NotInitialized as error:
                    print("child refused", "forked" in str(error), flush=True)
            print("child", col.is_group_initialized(), col.get_rank(), col.destroy_collective_group(), flush=True)
            world.destroy()
            col.finalize()
            print("own job", col.init(rank=0, world_size=1).size, col.get_rank(), flush=True)
            del work
            sys.exit(0)  # with all that Python does at its end
        assert os.waitpid(child, 0)[1] == 0
        work.wait()
        world.barrier()
        print("parent", world.allreduce(np.ones(1))[0], col.is_group_initialized())
        col.finalize()
        """,
    )
    assert code == 0 and out.count("child refused True") == 2 * 6, (code, out, err)
    for line in ("child False -1 False", "own job 1 0", "parent 2.0 True"):
        assert out.count(line) == 2, (line, out, err)


@pytest.mark.parametrize("init", ["col.init()", "col.init(rank=0, world_size=1)"])
def test_fork_of_a_process_that_is_alone(init, tmp_path):
    """Its children begin anew: alone, or by what their environment says then."""
    code, out, err = processes.alone(
        f"""
        import multiprocessing, os, numpy as np, col
        assert {init}.size == 1

        def alone():
            return col.is_group_initialized(), col.init().size, float(col.init().allreduce(np.ones(1))[0])

        def ranks(rank):
            os.environ.update(COL_RANK=str(rank), COL_WORLD_SIZE="2", COL_STORE="file://{tmp_path}")
            total = float(col.init().allreduce(np.ones(1))[0])
            col.finalize()
            return total

        def in_children(function, arguments):
            with multiprocessing.get_context("fork").Pool(len(arguments)) as pool:
                return [call.get(60) for call in [pool.apply_async(function, given) for given in arguments]]

        print(in_children(alone, [()]), in_children(ranks, [(0,), (1,)]), col.init().size, col.get_rank())
        col.finalize()
        """
    )
    assert code == 0 and out == "[(False, 1, 1.0)] [2.0, 2.0] 1 0\n", (code, out, err)


def in_a_pool(rank, size, store, token=None, job_id=None):
    import col

    group = col.init(store=store, rank=rank, world_size=size, token=token, job_id=job_id)
    total = float(group.allreduce(np.ones(1))[0])
    col.finalize()
    return total


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_multiprocessing(method, tmp_path):
    import multiprocessing

    with multiprocessing.get_context(method).Pool(2) as pool:
        calls = [pool.apply_async(in_a_pool, (r, 2, f"file://{tmp_path}")) for r in range(2)]
        assert [call.get(60) for call in calls] == [2.0, 2.0]


def test_a_store_in_this_process():
    import multiprocessing

    server = col.StoreServer("127.0.0.1")
    assert server.url.startswith("tcp://127.0.0.1:") and len(server.token) == 32
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        for job_id in ("first", "second"):
            calls = [pool.apply_async(in_a_pool, (r, 2, server.url, server.token, job_id)) for r in range(2)]
            assert [call.get(60) for call in calls] == [2.0, 2.0]
        stranger = pool.apply_async(in_a_pool, (0, 2, server.url, "another token", "third"))
        with pytest.raises(col.Mismatch):
            stranger.get(60)
    server.stop()
    with pytest.raises(col.IoError):
        col.StoreServer("203.0.113.7")  # no address of this host


@pytest.mark.parametrize("host", ["", "*", "0.0.0.0", "::"])
def test_a_store_at_all_addresses(host):
    import multiprocessing

    server = col.StoreServer(host)
    assert f"//{host}:" not in server.url and "[::]" not in server.url
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        calls = [pool.apply_async(in_a_pool, (r, 2, server.url, server.token, "job")) for r in range(2)]
        assert [call.get(60) for call in calls] == [2.0, 2.0]
    server.stop()


def test_ranks_of_another_launcher_that_disagree():
    """Over several hosts, as they are told. Rank 0 serves their store, to its own end, which is that of an interpreter."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{probe.getsockname()[1]}"
    ranks_ = []
    for rank, world_size in ((0, 2), (1, 3)):
        variables = {"RANK": rank, "LOCAL_RANK": 0, "GROUP_RANK": rank, "GROUP_WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 1}
        variables |= {"WORLD_SIZE": world_size, "COL_RDZV_ENDPOINT": endpoint, "COL_TIMEOUT": "60s"}
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        program = [sys.executable, "-c", "import col; col.init()"]
        ranks_.append(subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True))
    for one in ranks_:
        _, err = one.communicate(timeout=50)
        assert one.returncode == 1 and "mismatch: group 'default': ranks disagree on the world size" in err, err


def test_init_again(tmp_path):
    code, out, err = processes.alone(
        f"""
        import col, numpy as np
        for k in range(3):
            group = col.init(store="file://{tmp_path}", rank=0, world_size=1, job_id=str(k))
            assert group.allreduce(np.ones(1))[0] == 1
            try:
                col.init(store="file://{tmp_path}", rank=0, world_size=1)
            except col.AlreadyInitialized as error:
                print("refused")
            assert col.init().rank == 0  # the same
            col.finalize()
        """
    )
    assert code == 0 and out.count("refused") == 3, err


@pytest.mark.ranks(2)
def test_many_calls_leave_nothing_behind(group):
    def state():
        import resource

        return (
            len(os.listdir("/proc/self/fd")),
            int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize(),
            sys.getrefcount(x), sys.getrefcount(x.dtype), sys.getrefcount(None), sys.getrefcount("sum"),
        )

    x = np.ones(4)
    out = np.ones(4 * group.size)

    def calls(count):
        for _ in range(count):
            group.allreduce(x, op="max", timeout=20)
            group.allgather(x, out)
            group.allgather(x)
            group.iallreduce(x, op="max").wait()
            group.iallreduce(x, op="max")
            try:
                group.broadcast(x, root=99)
            except col.InvalidArgument:
                pass
        group.barrier()
        group.barrier()

    calls(1000)
    before = state()
    calls(17_000)  # of six calls each
    after = state()
    assert after[0] == before[0]
    assert after[1] - before[1] < 4 << 20
    for had, has in zip(before[2:], after[2:]):
        assert abs(has - had) < 100, (before, after)


def ended_groups(group, backend):
    def state():
        import gc

        gc.collect()
        return (
            len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")),
            len(open("/proc/self/maps").readlines()), int(open("/proc/self/statm").read().split()[2]),
        )

    x, n, r = np.ones(150_000), group.size, group.rank
    base = col.init_collective_group(n, r, backend, "base")
    made = {
        "dup": base.dup, "split": lambda: base.split(0), "shrink": lambda: base.shrink([]),
        "subgroup": lambda: base.subgroup(range(n), "some"), "named": lambda: col.init_collective_group(n, r, backend, "other"),
    }

    def round(kind, dropped):
        own = made[kind]()
        own.allreduce(x)
        own.iallreduce(x)
        own.ibarrier()
        own.barrier()  # what nobody has waited for has ended, too
        with pytest.raises(col.Error):
            own.allreduce(np.ones(5 + r))
        if not dropped:
            own.destroy()

    grown = {}
    for kind in made:
        for dropped in (False, True) if kind in ("dup", "split", "shrink") else (False,):
            for _ in range(3):
                round(kind, dropped)
            group.barrier()
            before = state()
            for _ in range(10):
                round(kind, dropped)
            group.barrier()
            grown[kind, dropped] = [has - had for had, has in zip(before, state())]
    base.destroy()
    # A leak is one of each a group, or more.
    assert all(max(one[:3]) < 5 and one[3] < 500 for one in grown.values()), grown


@pytest.mark.parametrize("backend", ["shm", "gloo"])
def test_ended_groups_leave_nothing_behind(backend):
    """Destroyed, and dropped where no name could find them; with operations that nobody waited for, and broken."""
    ranks.run(2, ended_groups, backend)


@pytest.mark.ranks(2)
def test_a_named_group_that_is_let_go_of_is_a_resource_warning(group):
    import gc
    import warnings

    def warned(what):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            what()
            gc.collect()
        return [str(one.message) for one in caught if one.category is ResourceWarning]

    n, r, x = group.size, group.rank, np.ones(2)
    made = {
        "named": lambda: col.init_collective_group(n, r, "auto", "named"),
        "some": lambda: group.subgroup(range(n), "some"), "rest": lambda: group.shrink([], "rest"),
    }
    for name, make in made.items():
        (text,) = warned(lambda: make().allreduce(x))
        assert f"'{name}' was let go of" in text and f"col.destroy_collective_group('{name}')" in text
        assert col.destroy_collective_group(name)
        # By its name, the usual way, and in good order.
        assert warned(lambda: (make(), col.allreduce(x, name), col.get_group(name).barrier())) == []
        assert col.destroy_collective_group(name)
        assert warned(lambda: (own := make(), own.allreduce(x), own.destroy())) == []
    assert warned(lambda: (group.dup().allreduce(x), group.split(0).allreduce(x))) == []


def test_weak_references():
    import gc
    import weakref

    server = col.StoreServer()
    group = col.Context(0, 1).init_group()
    kept = [
        col.Context(0, 1), server, group, group.ibarrier(), group.coalesce(), col.premul_sum(2), col.Message.send(np.ones(1), 0),
        col.plan.build("allreduce", "ring", ranks=2, count=2)._plans, col.alloc(4, group=group).base,
    ]
    references = weakref.WeakSet(kept)
    assert len(references) == len(kept)
    server.stop()
    del group, server
    kept.clear()
    gc.collect()
    assert len(references) == 0


def words(text):
    return (text or "").split()


def test_stubs():
    """The stub names what the module has, with the same arguments and words."""
    path = os.path.join(os.path.dirname(col.__file__), "_col.pyi")
    tree = ast.parse(open(path).read())
    module = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert set(module) == {name for name in dir(col._col) if not name.startswith("_")}
    documented = [(name, node, getattr(col._col, name)) for name, node in module.items()]  # of overloads, the first has the words
    documented += [(f"{kind.name}.{node.name}", node, vars(getattr(col._col, kind.name))[node.name])
                   for kind in module.values() if isinstance(kind, ast.ClassDef)
                   for node in kind.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("__")]
    for name, node, real in {name: (name, node, real) for name, node, real in reversed(documented)}.values():
        said = re.sub(r"\A\w*\(.*?\) -> [^\n]*(\n\n|\Z)", "", real.__doc__ or "", flags=re.S)  # nanobind puts the arguments first
        assert words(ast.get_docstring(node)) == words(said), f"{name}: _col.pyi has not the module's words: {said}"
    for kind in (node for node in module.values() if isinstance(node, ast.ClassDef)):
        functions = {node.name: node for node in kind.body if isinstance(node, ast.FunctionDef)}
        real = getattr(col._col, kind.name)
        public = {name for name in vars(real) if not name.startswith("_")}
        assert {name for name in functions if not name.startswith("__")} == public, kind.name
        for name, function in functions.items():
            text = getattr(vars(real).get(name), "__text_signature__", None)
            if text is None:
                continue
            arguments = function.args
            stub = [a.arg for a in arguments.args] + ["*"] * bool(arguments.kwonlyargs) + [a.arg for a in arguments.kwonlyargs]
            stub += ["*" + arguments.vararg.arg] if arguments.vararg else []
            stub += ["**" + arguments.kwarg.arg] if arguments.kwarg else []
            assert stub == [a.split("=")[0].strip("$ ") for a in text.strip("()").split(",")], name


def test_threads_take_turns():
    code, out, err = processes.run(
        2,
        """
        import threading
        import numpy as np
        import col

        world = col.init(serialize=True)
        sums = []

        def work():
            for _ in range(50):
                x = np.ones(1000)
                world.allreduce(x)
                sums.append(float(x[-1]))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(sums), set(sums))
        col.finalize()
        """,
    )
    assert code == 0 and out.splitlines() == ["200 {2.0}"] * 2, err


def test_turns_that_come_too_late_are_refused():
    code, out, err = processes.alone(
        """
        import col
        col.init()
        try:
            col.init(serialize=True)
        except col.AlreadyInitialized as error:
            print("first one" in str(error))
        """
    )
    assert code == 0 and out.strip() == "True", err


def test_colrun_names_the_exception():
    code, out, err = processes.run(
        2,
        """
        import col

        def fails():
            raise ValueError("no such thing")

        world = col.init()
        if world.rank == 1:
            fails()
        world.barrier()
        """,
    )
    assert code == 1
    assert "exited with code 1 after" in err and " s: ValueError: no such thing\n" in err, err


def test_await_ends_with_a_loop_that_is_closed():
    code, out, err = processes.run(
        2,
        """
        import asyncio
        import numpy as np
        import col

        world = col.init()

        async def gives_up():
            task = asyncio.create_task(wait_for(world.irecv(np.ones(1), 1 - world.rank)))
            await asyncio.sleep(0)  # it begins
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                print("cancelled")

        async def wait_for(work):
            return await work

        asyncio.run(gives_up())
        world.barrier()  # nothing is sent before both have given up
        world.send(np.ones(1), 1 - world.rank)  # what was started goes on
        world.barrier()
        col.finalize()
        """,
    )
    assert code == 0 and out.split() == ["cancelled"] * 2 and "Traceback" not in err, err


def test_trace_has_labels_and_ends_with_its_block(tmp_path):
    path = tmp_path / "trace.json"
    code, out, err = processes.run(
        2,
        f"""
        import col, numpy as np
        world = col.init()
        x = np.ones(8)
        world.allreduce(x)
        with col.trace({str(path)!r}):
            world.annotate("backward")
            world.allreduce(x)
            world.allreduce(x)
        world.allreduce(x)
        col.finalize()
        """,
    )
    assert code == 0, err
    slices = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert sorted((s["pid"], s["name"]) for s in slices) == [(rank, "allreduce backward") for rank in (0, 0, 1, 1)]
    assert all(s["args"]["label"] == "backward" and s["args"]["bytes"] == 64 for s in slices)


def test_a_long_wait_says_where_it_was_called():
    """The record of a rank has the line of the program, not one of col's own files."""
    code, out, err = processes.run(
        2,
        """
        import subprocess, os, time, json
        import col, numpy as np
        world = col.init()
        if world.rank == 0:
            world.barrier()  # the line
        else:
            end = time.monotonic() + 20
            place = ""
            while not place and time.monotonic() < end:
                page = open(os.environ["COL_CONTROL"], "rb").read()
                at = page.find(b":6\\0")
                place = page[page.rfind(b"\\0", 0, at) + 1 : at + 2].decode() if at > 0 else ""
            print(place)
            world.barrier()
        col.finalize()
        """,
    )
    assert code == 0, err
    assert out.split() == ["<string>:6"], (out, err)
