"""col.run and col.ranks: results, failures, and that nothing is left of them."""

import atexit
import ctypes
import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import col
import processes
from col.launch import job, program, wire
from ranks import until

HERE = os.path.dirname(os.path.abspath(__file__))


def own_rank(*args):
    assert col.init().size == col.get_group().size
    return col.get_rank(), *args


def process():
    return os.getpid()


def test_results_are_in_order():
    assert col.run(3, own_rank, "x", 2) == [(rank, "x", 2) for rank in range(3)]
    assert col.run(1, process) != [os.getpid()]


def test_ranks_are_kept():
    with col.ranks(2) as ranks:
        first = ranks(process)
        assert ranks(process) == first and ranks.size == 2
        assert ranks(dict, a=1) == [{"a": 1}] * 2
        sums = ranks(total, np.ones(1 << 17))  # large enough to go beside its pickle
        assert [array.tolist() for array in sums] == [[2.0] * 3] * 2
    until(lambda: not any(map(is_alive, first)))
    ranks.close()
    assert ranks(process) != first  # anew
    ranks.close()


def total(x):
    return col.init().allreduce(x.copy())[:3]


def is_alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def leaves():
    col.finalize()


def test_a_function_may_finalize():
    with col.ranks(2) as ranks:
        ranks(leaves)
        assert ranks(own_rank) == [(0,), (1,)]


# ---- Output


def prints():
    rank = col.get_rank()
    print("of", rank)
    print("of all")
    os.write(1, b"not of Python\n")
    print("to stderr, no end", end="", file=sys.stderr)


@pytest.mark.parametrize("output", ["label", "plain", "none"])
def test_output_goes_to_sys_stdout(output, capsys):
    with col.ranks(2, output=output) as ranks:
        for _ in range(2):
            ranks(prints)
            lines = set()
            for line in capsys.readouterr().out.splitlines():
                both = line.startswith("[0-1] ")  # came at about the same time
                lines |= {line.replace("[0-1]", "[0]"), line.replace("[0-1]", "[1]")} if both else {line}
            said = ["not of Python", "of all", "to stderr, no end"]
            assert lines == {
                "label": {"[0] of 0", "[1] of 1", *(f"[{rank}] {line}" for rank in (0, 1) for line in said)},
                "plain": {"of 0", "of 1", *said},
                "none": set(),
            }[output]


def prints_much():
    print("\n".join(["x" * 100] * 50_000))


def test_much_output(capsys):
    col.run(2, prints_much)
    lines = capsys.readouterr().out.splitlines()
    assert sum(2 if line.startswith("[0-1]") else 1 for line in lines) == 100_000


# ---- Failures


class Unpicklable(Exception):
    def __init__(self, a, b):
        super().__init__("not to be pickled")
        self.lock = threading.Lock()


def raises(kind, where=1):
    group = col.init()
    if group.rank == where:
        raise {"value": ValueError("bad value"), "unpicklable": Unpicklable(1, 2), "exit": SystemExit(3),
               "long": ValueError("x" * (100 << 20))}[kind]
    group.allreduce(np.ones(3))


@pytest.mark.parametrize("kind, words", [
    ("value", "rank 1 raised ValueError: bad value"), ("unpicklable", "rank 1 raised Unpicklable: not to be pickled"),
    ("exit", r"rank 1 called sys.exit\(3\)"), ("long", "rank 1 raised ValueError: xxx"),
])
def test_a_rank_raises(kind, words):
    with col.ranks(3, timeout=60) as ranks:
        before = ranks(process)
        with pytest.raises(col.RankFailed, match="^" + words) as caught:
            ranks(raises, kind)
        error = caught.value
        assert error.rank == 1 and error.host and len(str(error)) < 1 << 19
        assert "in raises" in error.traceback and "launch" not in error.traceback
        assert set(error.tracebacks) == {0, 2} and "allreduce(np.ones(3))" in error.tracebacks[0]
        assert "test_run.py" in error.others
        assert ranks(own_rank) == [(0,), (1,), (2,)] and ranks(process) == before  # they live on
    causes = {"value": ValueError, "exit": SystemExit}
    assert type(error.__cause__) is causes.get(kind, type(None))


def waits(folder):
    group = col.init()
    if group.rank == 0:
        until(lambda: in_a_call(folder))
        raise ValueError("now")
    (folder / str(os.getpid())).touch()
    group.barrier()


def in_a_call(folder):
    """Whether coljob sees that both wait."""
    said = subprocess.run([program.find("coljob"), "why", os.environ["COL_JOB_ID"]], capture_output=True, text=True)
    return "ranks 1-2 have waited" in said.stdout and "test_run.py" in said.stdout


def test_a_message_in_a_cycle():
    # CPython 3.12.1 crashes as it collects a cycle that holds the buffer of a BytesIO.
    program = """
import gc
from col.launch import wire
for _ in range(100):
    cycle = [wire.packed([1])]
    cycle.append(cycle)
    del cycle
    gc.collect()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_others_wait_in_a_call(tmp_path):
    with pytest.raises(col.RankFailed, match="(?s)ranks 1-2 have waited for .* in barrier #1 of group 'default'.*test_run.py") as caught:
        col.run(3, waits, tmp_path)
    assert "rank 0 (pid" in caught.value.others


def ends(how):
    group = col.init()
    if group.rank == 1:
        if how == "exit":
            os._exit(3)
        if how == "exit well":
            os._exit(0)
        if how == "SIGSEGV":
            ctypes.string_at(0)
        os.kill(os.getpid(), getattr(signal, how))
    group.barrier()


@pytest.mark.parametrize("how, words", [
    ("SIGKILL", "rank 1 was killed by SIGKILL"), ("SIGSEGV", "rank 1 was killed by SIGSEGV"),
    ("exit", "rank 1's process exited with code 3"), ("exit well", "rank 1"),
])
def test_a_process_ends(how, words):
    with col.ranks(2) as ranks:
        before = ranks(process)
        with pytest.raises(col.RankFailed, match="^" + words) as caught:
            ranks(ends, how)
        assert caught.value.rank == 1 and caught.value.code == "peer_lost"
        assert "in ends" in caught.value.others
        if how == "SIGSEGV":
            assert "Segmentation fault" in caught.value.traceback and "in ends" in caught.value.traceback
        after = ranks(process)
        assert not set(before) & set(after) and not any(map(is_alive, before))


def forks_and_ends(folder):
    group = col.init()
    if group.rank == 1:
        if os.fork() == 0:
            try:
                until((folder / "go").exists)
            finally:
                os._exit(0)
        (folder / str(os.getpid())).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    until(lambda: any(not is_alive(int(path.name)) for path in folder.iterdir()))
    raise col.PeerLost("as a transport says it")


def test_a_process_ends_that_has_forked(tmp_path):
    with pytest.raises(col.RankFailed, match="^rank 1 was killed by SIGKILL") as caught:
        col.run(2, forks_and_ends, tmp_path)
    (tmp_path / "go").touch()
    assert caught.value.rank == 1 and caught.value.code == "peer_lost"


def hangs_in_c():
    if col.init().rank == 1:
        ctypes.PyDLL(None).pause()  # with the GIL: no handler of Python's runs
    col.init().barrier()


def test_time_is_up():
    with col.ranks(2) as ranks:
        ranks(process)  # their start takes as long as the machine wants
        ranks._timeout = 3
        with pytest.raises(col.RankFailed, match="^time is up after 3 s") as caught:
            ranks(hangs_in_c)
    assert caught.value.code == "timeout" and caught.value.rank in (1, -1)
    assert "in hangs_in_c" in caught.value.tracebacks[0] and "in hangs_in_c" in caught.value.tracebacks[1]


def stops_in_its_answer():
    def half(to, parts):
        to.sendall(b"".join(parts)[:-1])
        os.kill(os.getpid(), signal.SIGSTOP)

    if col.get_rank() == 1:
        wire.send = half


@pytest.mark.parametrize("of", ["arguments", "answer"])
def test_a_message_that_is_stuck_counts_towards_the_time(of):
    with col.ranks(2) as ranks:
        before = ranks(process)
        ranks._timeout = 2
        if of == "arguments":  # larger than what a socket holds
            os.kill(before[1], signal.SIGSTOP)
        with pytest.raises(col.RankFailed, match="^time is up after 2 s") as caught:
            ranks(*((len, bytes(64 << 20)) if of == "arguments" else (stops_in_its_answer,)))
        assert caught.value.code == "timeout"
        ranks._timeout = None
        assert ranks(len, b"123") == [3, 3]  # anew
    assert not any(map(is_alive, before))


def test_arguments_that_nobody_takes_end_a_call_without_a_timeout(monkeypatch):
    with col.ranks(2) as ranks:
        pids = ranks(process)
        monkeypatch.setattr(job, "START_LIMIT", 2)
        os.kill(pids[1], signal.SIGSTOP)
        caught = raised_within_the_limit(ranks, pids, len, bytes(64 << 20))  # larger than what a socket holds
        assert str(caught).startswith("rank 1 has taken nothing of its arguments for 2 s") and caught.code == "timeout"
        monkeypatch.undo()
        assert ranks(len, b"123") == [3, 3]  # anew
    assert not any(map(is_alive, pids))


def stops_while_another_raises(stops, go, is_last):
    stops_in_its_answer()
    if col.get_rank() == 1:
        return waits_for(go)
    if is_last:
        go.touch()
        until(lambda: is_stopped(stops))
    raise ValueError("bad value")


def is_stopped(pid):
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("is_last", [False, True])
def test_half_an_answer_does_not_hold_a_failure(is_last, tmp_path, monkeypatch):
    """Without a timeout: the error is read before the half answer, or after it."""
    def who_waits(_):  # the caller has read the error by now, and nothing of the answer
        go.touch()
        until(lambda: is_stopped(pids[1]))
        return {}

    go = tmp_path / "go"
    with col.ranks(2) as ranks:
        pids = ranks(process)
        monkeypatch.setattr(job, "START_LIMIT", 5)
        if not is_last:
            monkeypatch.setattr(job.failure, "who_waits", who_waits)
        caught = raised_within_the_limit(ranks, pids, stops_while_another_raises, pids[1], go, is_last)
        assert isinstance(caught, col.RankFailed) and str(caught).startswith("rank 0 raised ValueError: bad value")
    assert not any(map(is_alive, pids))


def test_half_an_answer_takes_no_longer_than_the_timeout(monkeypatch):
    with col.ranks(2) as ranks:
        pids = ranks(process)
        monkeypatch.setattr(job, "STOP_LIMIT", 10 * processes.LIMIT)
        ranks._timeout = 2
        caught = raised_within_the_limit(ranks, pids, stops_in_its_answer)
        monkeypatch.undo()
        assert str(caught).startswith("time is up after 2 s")


def raised_within_the_limit(ranks, pids, *call):
    """In a thread: a call that does not end is no end of the tests."""
    def run():
        try:
            ranks(*call)
        except BaseException as error:
            caught.append(error)

    caught = []
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(processes.LIMIT / 2)
    if thread.is_alive():
        os.kill(pids[1], signal.SIGKILL)
        thread.join(processes.LIMIT)
        raise AssertionError("the call ended only with its ranks")
    return caught[0]


def test_the_time_of_a_message_counts_as_a_whole():
    """Also where each piece of it comes in time."""
    here, there = socket.socketpair()
    seconds = [0, *range(5, 15)]

    def left():
        if seconds[-1]:
            there.sendall(b"x")
        return seconds.pop() and processes.LIMIT

    with here, there:
        there.sendall(b"".join(wire.packed(bytes(100)))[:20])
        with pytest.raises(TimeoutError):
            wire.receive(here, left)
    assert not seconds


def has_no_pickle():
    return (x for x in "ab")


def has_no_unpickle():
    return Broken()


class Broken:
    def __reduce__(self):
        return int, ("no number",)


def test_results_that_cannot_be_pickled():
    with col.ranks(2) as ranks:
        with pytest.raises(col.RankFailed, match="rank [01] raised TypeError: its result, of type generator, cannot be pickled"):
            ranks(has_no_pickle)
        with pytest.raises(col.RankFailed, match="the result of rank 0 cannot be unpickled here: ValueError"):
            ranks(has_no_unpickle)
        assert ranks(own_rank) == [(0,), (1,)]


def with_lambda():
    return lambda: 1


def test_what_needs_cloudpickle(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    program.colrun()
    monkeypatch.setattr(subprocess, "Popen", None)
    for function, args in ((lambda: 1, ()), (own_rank, (threading.Lock(),))):
        with pytest.raises(col.InvalidArgument, match="without cloudpickle: pip install cloudpickle") as caught:
            col.run(2, function, *args)
        assert "\n" not in str(caught.value)


def test_cloudpickle():
    pytest.importorskip("cloudpickle")
    x = 3
    assert col.run(2, lambda: (col.get_rank(), x)) == [(0, 3), (1, 3)]
    assert [function() for function in col.run(2, with_lambda)] == [1, 1]
    with pytest.raises(col.InvalidArgument, match="cannot be pickled: TypeError"):
        col.run(2, own_rank, threading.Lock())


# ---- Refused before a process starts


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2"])
def test_number_of_ranks(n, monkeypatch):
    program.colrun()
    monkeypatch.setattr(subprocess, "Popen", None)
    for function in (lambda: col.run(n, own_rank), lambda: col.ranks(n)):
        with pytest.raises(col.InvalidArgument, match="a whole number from 1 on"):
            function()
    with pytest.raises(col.InvalidArgument, match="one of label, plain, none"):
        col.ranks(1, output="colour")


@pytest.mark.parametrize("call, words", [
    (lambda: col.run(2, process()), r"is no function; write col.run\(4, f, x\), not col.run\(4, f\(x\)\)"),
    (lambda: col.run(2, own_rank, timeout="60"), "timeout='60'; it must be a number of seconds above 0"),
    (lambda: col.ranks(2, timeout=0), "timeout=0; it must be"), (lambda: col.ranks(2, env={"A": 1}), "must be of type str"),
])
def test_arguments(call, words, monkeypatch):
    program.colrun()
    monkeypatch.setattr(subprocess, "Popen", None)
    with pytest.raises(col.InvalidArgument, match=words):
        call()


def arguments():
    return sys.argv


def test_numbers_of_numpy_and_arguments_of_a_rank():
    assert col.run(np.int64(2), arguments, timeout=np.float32(60)) == [["-c"]] * 2


def calls_run():
    return col.run(2, own_rank)


def test_inside_a_rank():
    with pytest.raises(col.RankFailed, match="InvalidArgument: col.run: this process is in a rank already"):
        col.run(2, calls_run)


def test_colrun_is_missing_or_another(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "_PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(col.Unavailable, match="there is no colrun in PATH"):
        col.run(2, own_rank)
    for text, words in (("echo colrun 9.9", "is colrun 9.9, and this package is"), ("exit 3", "is no colrun")):
        (tmp_path / "colrun").write_text("#!/bin/sh\n" + text)
        (tmp_path / "colrun").chmod(0o755)
        os.utime(tmp_path / "colrun", (len(text), len(text)))
        with pytest.raises(col.Unavailable, match=words) as caught:
            col.run(2, own_rank)
        assert "\n" not in str(caught.value)


# ---- Several at once, and what is left


def test_two_callers_at_once():
    results = {}
    threads = [threading.Thread(target=lambda n=n: results.update({n: col.run(n, own_rank)})) for n in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(processes.LIMIT)
    assert results == {n: [(rank,) for rank in range(n)] for n in (2, 3)}


def waits_for(path):
    until(path.exists)


def test_two_threads_on_the_same_ranks(tmp_path):
    with col.ranks(2) as ranks:
        ranks(process)
        thread = threading.Thread(target=ranks, args=(says_and_waits, tmp_path))
        thread.start()
        until((tmp_path / "begun").exists)
        with pytest.raises(col.InvalidArgument, match="another thread calls these ranks"):
            ranks(own_rank)
        (tmp_path / "go").touch()
        thread.join(processes.LIMIT)
        assert ranks(own_rank) == [(0,), (1,)]


def says_and_waits(folder):
    (folder / "begun").touch()
    waits_for(folder / "go")


class OfTheCaller(Exception):
    pass


@pytest.fixture
def press(tmp_path):
    """Sends this thread a signal when ranks have begun with says_and_waits. The handler of SIGALRM raises."""
    def handle(*_):
        raise OfTheCaller

    def wait(number):
        until((tmp_path / "begun").exists)
        signal.pthread_kill(threading.main_thread().ident, number)

    def press(number):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()

    threads = []
    before = signal.signal(signal.SIGALRM, handle)
    yield press
    for thread in threads:
        thread.join(processes.LIMIT)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("number, kind", [(signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, OfTheCaller)])
def test_the_caller_raises_in_a_call(tmp_path, press, number, kind):
    with col.ranks(2) as ranks:
        before = ranks(process)
        press(number)
        with pytest.raises(kind):
            ranks(says_and_waits, tmp_path)
        assert ranks(process) == before


def test_the_caller_raises_again(tmp_path, press, monkeypatch):
    def stop(*_):
        monkeypatch.undo()
        raise OfTheCaller

    with col.ranks(2) as ranks:
        ranks(process)
        monkeypatch.setattr(job.Job, "_stop", stop)
        press(signal.SIGINT)
        with pytest.raises(OfTheCaller):
            ranks(says_and_waits, tmp_path)
        assert ranks(own_rank) == [(0,), (1,)]


def test_forked_child():
    with col.ranks(2) as ranks:
        ranks(process)
        child = os.fork()
        if child == 0:
            try:
                ranks(process)
            except col.InvalidArgument:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert ranks(own_rank) == [(0,), (1,)]


def busy(folder):
    (folder / str(os.getpid())).touch()
    while True:
        pass


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_caller_is_killed(number, tmp_path):
    caller = subprocess.Popen([sys.executable, "-c", f"""
import sys, pathlib
sys.path.insert(0, {HERE!r})
import col, test_run
col.run(2, test_run.busy, pathlib.Path({str(tmp_path)!r}))
"""])
    until(lambda: len(list(tmp_path.iterdir())) == 2)
    pids = [int(path.name) for path in tmp_path.iterdir()]
    colrun = int(open(f"/proc/{pids[0]}/stat").read().rpartition(")")[2].split()[1])
    caller.send_signal(number)
    caller.wait(processes.LIMIT)
    until(lambda: not any(map(is_alive, [*pids, colrun])))


def hangs_at_exit(folder):
    atexit.register(busy, folder)


@pytest.mark.parametrize("what", ["forks", "closes"])
def test_the_caller_is_killed_when_it(what, tmp_path):
    """Forks a child that lives on, or has told its ranks to end, and one of them does not."""
    go = tmp_path.with_name(tmp_path.name + "-go")
    caller = subprocess.Popen([sys.executable, "-c", f"""
import os, pathlib, sys
sys.path.insert(0, {HERE!r})
import col, test_run
with col.ranks(2) as ranks:
    ranks(test_run.process)
    if {what!r} == "forks":
        if os.fork() == 0:
            test_run.until(pathlib.Path({str(go)!r}).exists)
            os._exit(0)
        ranks(test_run.busy, pathlib.Path({str(tmp_path)!r}))
    ranks(test_run.hangs_at_exit, pathlib.Path({str(tmp_path)!r}))
"""])
    until(lambda: len(list(tmp_path.iterdir())) == 2)
    caller.kill()
    caller.wait(processes.LIMIT)
    try:
        until(lambda: not any(is_alive(int(path.name)) for path in tmp_path.iterdir()))
    finally:
        go.touch()


class Closed:
    def write(self, text):
        raise BrokenPipeError

    def flush(self):
        pass


def test_stdout_is_closed(monkeypatch):
    before = state()
    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(BrokenPipeError):
        col.run(2, prints)
    assert state() == before


def test_what_is_known_of_ranks(tmp_path):
    with col.ranks(3) as ranks:
        with pytest.raises(col.RankFailed):
            ranks(waits, tmp_path)
        assert "ranks 1-2 have waited" in ranks.finding["sentence"]
        assert not ranks.is_over and ranks(process) and ranks.finding == {}
        os.kill(ranks(process)[0], signal.SIGKILL)
        until(lambda: ranks.is_over)
    assert col.tracing.trace is col.trace


def test_strangers_at_the_socket():
    with col.ranks(2) as ranks:
        address = ranks._job._listener.getsockname()
        silent, ends, says = (socket.socket(socket.AF_UNIX) for _ in range(3))
        for stranger in (silent, ends, says):
            stranger.connect(address)
        ends.close()
        socket.send_fds(says, [b"nonsense of another program"], [says.fileno()] * 2)
        until(lambda: ranks._job._wait(0.1) or is_refused(says))
        assert not is_refused(silent)  # it might be a rank that is slow
        assert ranks(own_rank) == [(0,), (1,)]
        assert is_refused(silent)
        silent.close()
        says.close()


def is_refused(connection):
    try:
        return connection.recv(1, socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False


def test_forgotten_ranks_end():
    before = state()[0]
    gc.disable()
    try:
        ranks = col.ranks(2)
        pids = ranks(process)
        del ranks
        until(lambda: not any(map(is_alive, pids)))
        assert state()[0] == before
        until(lambda: subprocess._cleanup() or not subprocess._active)  # colrun, too
    finally:
        gc.enable()


def state():
    children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    return len(os.listdir("/proc/self/fd")), len(children), threading.active_count()


def test_many_calls_leave_nothing():
    col.run(2, own_rank)
    before = state()
    for _ in range(3):
        col.run(2, own_rank)
    assert state() == before
    with col.ranks(2) as ranks:
        ranks(state)
        kept, here = ranks(state), state()
        for _ in range(500):
            ranks(own_rank)
        assert ranks(state) == kept and state() == here
    assert state() == before


@pytest.mark.parametrize("folder, words", [
    ("/dev/shm", "[(0,), (1,)]"),  # shared memory needs no name
    ("/mnt", "the ranks ended: cannot allocate control page"),
])
def test_full_shared_memory(folder, words):
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no mount namespaces here")
    script = f"""
import sys
sys.path.insert(0, {HERE!r})
import col, test_run
try:
    print(col.run(2, test_run.own_rank, timeout=60))
except col.RankFailed as error:
    print(error)
"""
    commands = f'mount -t tmpfs -o size=64k tmpfs {folder} || exit 77; head -c 64k /dev/zero >{folder}/full; exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", commands, sys.executable, script], capture_output=True, text=True,
        env={**os.environ, "TMPDIR": "/mnt" if folder == "/mnt" else "/tmp"}, timeout=2 * processes.LIMIT)
    if done.returncode == 77:
        pytest.skip("no tmpfs here")
    assert done.stdout.startswith(words) and len(done.stdout.splitlines()) == 1, (done.stdout, done.stderr)


def large():
    return np.full((1 << 31) + 8, col.get_rank(), np.uint8)


@pytest.mark.skipif(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") < 8 << 30, reason="needs 8 GiB of free memory")
def test_a_result_above_2_gib():
    results = col.run(1, large, timeout=300)
    assert results[0].size == (1 << 31) + 8 and results[0][-1] == 0


TYPED = """
import col
import pytest

def sums(x: int) -> int:
    return x

answers: list[object] = col.run(2, sums, 1, timeout=3.0, env={"A": "b"}, output="none")
with col.ranks(2, output="plain") as ranks:
    size: int = ranks.size
    try:
        ranks(sums, 2)
    except col.RankFailed as error:
        text: str = error.tracebacks[error.rank] + error.others + error.host
col.run("2", sums)
col.no_such_name

@pytest.mark.ranks(2)
def test_it(group: col.Group, rank: int) -> None:
    group.barrier()
"""


def test_types(tmp_path):
    (tmp_path / "typed.py").write_text(TYPED)
    package = os.path.dirname(os.path.dirname(os.path.abspath(col.__file__)))
    files = [f"{package}/pytest_col.py"] + [
        f"{package}/col/{folder}/{name}" for folder in ("launch", "testing") for name in os.listdir(f"{package}/col/{folder}")
        if name.endswith(".py")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path), "typed.py", *files],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": package}, capture_output=True, text=True, timeout=240)
    assert [line.split(": ")[0] for line in done.stdout.splitlines() if ": error: " in line] == ["typed.py:15", "typed.py:16"], done.stdout


def test_the_module_of_that_name_can_be_called():
    importlib.import_module("col.run")
    assert col.run(1, own_rank, 5) == [(0, 5)]
