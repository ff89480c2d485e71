"""The caller's end of col.run: colrun, a socket to each rank, and one loop that waits for all of them."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from typing import Any, Mapping, Optional

from ..errors import Aborted, InvalidArgument, RankFailed
from . import failure, program, wire
from . import rank as of_rank
from .output import Output
from .rank import ADDRESS, STOP, Outcome

START_LIMIT = 60  # seconds, from colrun to the last rank, and for the next piece of a message
STOP_LIMIT = 5  # for ranks to end a call, or their processes
LONGEST = 1e6  # for a call without a limit; a socket takes not much more
PRINT_LIMIT = 1  # for what they have printed, after they have answered
HOLD = 0.1  # a line waits so long for the same line of other ranks
_BEGIN = "import sys; sys.path[:] = sys.argv[1:]; del sys.argv[1:]; from col.launch.rank import main; main()"


class _Peer:
    """A rank, as the caller knows it."""

    def __init__(self, connection: socket.socket, pid: int, stacks: int, life: int) -> None:
        self.socket = connection
        self.pid = pid
        self.stacks = stacks
        self.life = life
        self.read = 0  # of its stacks, in bytes
        self.outcome: Optional[Outcome] = None
        self.is_stuck = False  # in the middle of an answer, of which nothing more is read

    def stack(self) -> str:
        """The text that faulthandler has written since the last time."""
        data = os.pread(self.stacks, 1 << 16, self.read)
        self.read += len(data)
        return data.decode(errors="replace")

    def has_ended(self) -> bool:
        try:
            with open(f"/proc/{self.pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    def close(self) -> None:
        self.socket.close()
        os.close(self.stacks)
        os.close(self.life)


_jobs: weakref.WeakSet[Job] = weakref.WeakSet()


def _close_in_child() -> None:
    """Else ranks would outlive this process's parent for as long as this process lives."""
    for job in list(_jobs):
        for peer in job._peers.values():
            peer.close()
        for caller in job._callers:
            caller.close()


os.register_at_fork(after_in_child=_close_in_child)


def _give_up(colrun: Any, made_by: int, peers: dict[int, _Peer]) -> None:
    """For a program that has forgotten its ranks, and at its exit."""
    if os.getpid() == made_by:
        for peer in peers.values():
            peer.close()
        for stream in (colrun.stdout, colrun.stderr):
            stream.close()
        if colrun.poll() is None:
            colrun.terminate()


class Job:
    """n ranks under one colrun. After a failure of a process it is over."""

    def __init__(self, n: int, env: Optional[Mapping[str, str]], output: str) -> None:
        self.is_over = False
        self.finding: dict[str, Any] = {}  # of coljob, where ranks of the last call were stopped
        self._n = n
        self._pid = os.getpid()
        self._busy = threading.Lock()
        self._latest = 0.0  # when the call has to end
        self._peers: dict[int, _Peer] = {}
        self._is_renewed = False
        self._job_id = ""
        self._output = Output(n, output)
        self._held_since = 0.0
        self._is_closed = False
        self._token = secrets.token_hex(16)
        address = "col-run-" + secrets.token_hex(16)
        self._callers: list[socket.socket] = []  # have connected, and not yet said who they are
        self._listener: Optional[socket.socket] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind("\0" + address)
        self._listener.listen(n)
        # COLRUN_* are options that would change what is read here.
        variables = {name: value for name, value in os.environ.items() if not name.startswith("COLRUN_")}
        variables.update(env or {})
        variables[ADDRESS] = f"{address} {self._token}"
        command = [
            program.colrun(), "-n", str(n), "--standalone", "-q", "-l", "--merge", "--stdin", "none", "--json", "-",
            "--grace", "2s", "--term-grace", "2s", "--", sys.executable, "-c", _BEGIN, *sys.path,
        ]
        # In a session of its own, so that Ctrl-C comes to this process alone.
        self._colrun = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables,
            start_new_session=True)
        assert self._colrun.stdout and self._colrun.stderr
        self._streams = {self._colrun.stdout.fileno(): self._output.take, self._colrun.stderr.fileno(): self._output.keep}
        for stream in self._streams:
            os.set_blocking(stream, False)
        self._finalizer = weakref.finalize(self, _give_up, self._colrun, self._pid, self._peers)
        _jobs.add(self)

    # ---- The loop

    def _wait(self, seconds: float) -> None:
        """Waits for anything to come, and takes it: connections, answers, output."""
        poll = select.poll()
        watched: dict[int, Any] = {stream: None for stream in self._streams}
        if self._listener is not None:
            watched[self._listener.fileno()] = self._accept
        for caller in self._callers:
            watched[caller.fileno()] = lambda caller=caller: self._greet(caller)
        for peer in self._peers.values():
            if peer.outcome is None and peer.socket.fileno() >= 0:
                watched[peer.socket.fileno()] = peer
        for descriptor in watched:
            poll.register(descriptor, select.POLLIN)
        if self._output.holds:
            seconds = min(seconds, HOLD)
        for descriptor, _ in poll.poll(max(0.0, seconds) * 1000):
            what = watched[descriptor]
            if isinstance(what, _Peer):
                self._answer(what)
            elif what is not None:
                what()
            else:
                self._read(descriptor)
        if not self._output.holds:
            self._held_since = time.monotonic()
        elif time.monotonic() - self._held_since > HOLD:
            self._output.release()

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return
        if data:
            self._streams[descriptor](data)
        else:
            del self._streams[descriptor]

    def _accept(self) -> None:
        assert self._listener is not None
        connection, _ = self._listener.accept()
        if of_rank.user(connection) == os.getuid():  # else nothing of it is read
            self._callers.append(connection)
        else:
            connection.close()

    def _greet(self, connection: socket.socket) -> None:
        """The first words of one that has connected, which come at once."""
        self._callers.remove(connection)
        descriptors: list[int] = []
        try:
            data, descriptors, _, _ = socket.recv_fds(connection, 1 << 12, 2, socket.MSG_CMSG_CLOEXEC)
            body = data[int.from_bytes(data[:8], "little") * 8 + 8 :]
            token, rank, pid, job_id = wire.unpacked([bytearray(body)])
            if token == self._token:
                connection.settimeout(START_LIMIT)
                self._peers[rank] = _Peer(connection, pid, *descriptors)
                self._job_id = job_id
                return
        except Exception:
            pass  # it has left, or says nonsense
        connection.close()  # a stranger
        for descriptor in descriptors:
            os.close(descriptor)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        while self._callers:
            self._callers.pop().close()

    def _answer(self, peer: _Peer) -> None:
        try:
            outcome = wire.unpacked(wire.receive(peer.socket, self._left_of_message))
            outcome.parts = [None, *wire.receive(peer.socket, self._left_of_message)]
            peer.outcome = outcome
        except BaseException as error:  # the rest of the answer is lost
            peer.socket.close()
            peer.is_stuck = isinstance(error, TimeoutError)
            if not isinstance(error, (EOFError, OSError)):
                raise

    def _dead(self) -> Optional[int]:
        """A rank whose process has closed its end."""
        return next((rank for rank, peer in self._peers.items() if peer.socket.fileno() < 0), None)

    def _ended(self) -> Optional[int]:
        """A rank whose process has ended, also where a process that it has forked still has its socket."""
        return next((rank for rank, peer in self._peers.items() if peer.has_ended()), None)

    # ---- Calls

    def call(self, parts: list[Any], timeout: Optional[float]) -> list[Any]:
        """The results of all ranks, or RankFailed."""
        if os.getpid() != self._pid:
            raise InvalidArgument("col.ranks: these ranks are those of the process that this one was forked from")
        if not self._busy.acquire(blocking=False):
            raise InvalidArgument("col.ranks: another thread calls these ranks; each thread needs ranks of its own")
        try:
            return self._call(parts, timeout)
        except RankFailed:
            raise
        except BaseException as error:  # a handler of a signal: a late answer would be taken for that of the next call
            self.is_over = True  # if it is raised in here again
            self._stop(error if isinstance(error, KeyboardInterrupt) else Aborted(f"the caller raised {type(error).__name__}"))
            self.is_over = len(self._peers) < self._n or any(peer.outcome is None for peer in self._peers.values())
            raise
        finally:
            self._busy.release()

    def _call(self, parts: list[Any], timeout: Optional[float]) -> list[Any]:
        began = time.monotonic()
        self.finding = {}
        self._start(timeout)
        self._output.marks = 0
        for peer in self._peers.values():
            peer.outcome = None
            peer.stack()
        self._latest = began + (timeout or float("inf"))
        try:
            for rank, peer in self._peers.items():
                wire.send(peer.socket, wire.packed(("call", self._is_renewed)), self._left_of_message)
                wire.send(peer.socket, parts, self._left_of_message)
        except TimeoutError:
            if timeout is not None and self._left() <= 0:
                raise self._out_of_time(timeout) from None
            raise self._out_of_time(START_LIMIT, f"rank {rank} has taken nothing of its arguments for") from None
        except OSError:
            raise self._died() from None
        self._is_renewed = False
        gave_up = float("inf")
        while any(peer.outcome is None for peer in self._peers.values()):
            left = self._left()
            if left <= 0:
                raise self._out_of_time(timeout or LONGEST)
            dead = self._dead()
            is_stuck = dead is not None and self._peers[dead].is_stuck
            if is_stuck:
                self._wait(0)  # for others that have failed while its answer was waited for
            bad = next((r for r, p in self._peers.items() if p.outcome and not p.outcome.is_good), None)
            if dead is not None and not (is_stuck and bad is not None):
                raise self._died()
            if bad is not None:
                break
            patience = self._patience()
            if patience is not None:
                gave_up = min(gave_up, time.monotonic() + patience)
                if gave_up <= time.monotonic():
                    self._stop_others()
                    break
            self._wait(min(left, gave_up - time.monotonic()))
        self._is_renewed = self._is_renewed or self._patience() == 0
        return self._results()

    def _start(self, timeout: Optional[float]) -> None:
        """Waits for the ranks, of which each connects once."""
        limit = min(START_LIMIT, timeout or START_LIMIT)
        latest = time.monotonic() + limit
        while len(self._peers) < self._n:
            if not self._streams:  # colrun has ended
                raise self._died()
            if time.monotonic() > latest:
                self.is_over = True
                raise self._out_of_time(limit)
            self._wait(latest - time.monotonic())
        if self._listener is not None:
            self._stop_listening()
            for rank in range(self._n):  # in their order
                self._peers[rank] = self._peers.pop(rank)

    def _results(self) -> list[Any]:
        bad = {rank: peer.outcome for rank, peer in self._peers.items() if peer.outcome and not peer.outcome.is_good}
        if bad:
            raise self._raised(bad)
        self._print_all()
        outcomes = [peer.outcome for peer in self._peers.values() if peer.outcome]
        self._is_renewed = self._is_renewed or not all(outcome.is_joined for outcome in outcomes)
        results = []
        for rank, outcome in enumerate(outcomes):
            try:
                results.append(wire.unpacked((outcome.parts or [])[1:]))
            except Exception as error:
                raise RankFailed(
                    f"the result of rank {rank} cannot be unpickled here: {type(error).__name__}: {error}", rank) from error
        return results

    def answers(self) -> dict[int, Any]:
        """Of the ranks that have given one in the last call, also where others have not."""
        good = {rank: peer.outcome for rank, peer in self._peers.items() if peer.outcome and peer.outcome.is_good}
        return {rank: wire.unpacked((outcome.parts or [])[1:]) for rank, outcome in good.items()}

    # ---- Failures

    def _raised(self, bad: dict[int, Outcome]) -> RankFailed:
        if any(peer.outcome is None for peer in self._peers.values()):
            self.finding = failure.who_waits(self._job_id)
        first = next((rank for rank, outcome in bad.items() if not outcome.is_caused), next(iter(bad)))
        name = f"rank {first} raised {bad[first].kind}"
        self._stop(Aborted(f"{name}: {bad[first].message}"))
        if bad[first].is_caused and self._ended() is not None:
            return self._died()
        for rank, peer in self._peers.items():  # one that has failed by itself meanwhile is the cause of the first
            if peer.outcome and not peer.outcome.is_good and not peer.outcome.is_caused and bad[first].is_caused:
                bad[rank], first = peer.outcome, rank
        return failure.of_exception(first, bad[first], self.finding, self._traces(but=first))

    def _left(self) -> float:
        """Seconds that the call may still take."""
        return min(self._latest - time.monotonic(), LONGEST)

    def _left_of_message(self) -> float:
        """For its next piece: a rank that stops half way is not to hold a call without a limit, nor others' failures from it."""
        return min(self._left(), START_LIMIT)

    def _patience(self) -> Optional[float]:
        all_of_them = [p.outcome.patience for p in self._peers.values() if p.outcome and p.outcome.patience is not None]
        return min(all_of_them, default=None)

    def _stop_others(self) -> None:
        self.finding = failure.who_waits(self._job_id)
        ended = next(r for r, peer in self._peers.items() if peer.outcome and peer.outcome.patience is not None)
        self._stop(Aborted(f"rank {ended} has ended it"))
        if self.is_over:
            first = f"rank {ended} has ended it, and others have not within {STOP_LIMIT} s"
            raise failure.of_time(first, self.finding, self._traces())

    def _out_of_time(self, seconds: float, words: str = "time is up after") -> RankFailed:
        self.finding = failure.who_waits(self._job_id) if self._job_id else {}
        self._stop(Aborted(f"{words} {seconds:g} s"))
        return failure.of_time(f"{words} {seconds:g} s", self.finding, self._traces())

    def _died(self) -> RankFailed:
        dead = self._ended() if self._dead() is None else self._dead()
        self._latest = min(self._latest, time.monotonic() + STOP_LIMIT / 2)
        self._wait_for_end(STOP_LIMIT / 2)
        if self._streams:  # colrun does not end the others where one has exited with 0
            self._stop(Aborted(f"rank {dead} has ended"))
        traces = self._traces()
        self.end()
        return failure.of_death(bytes(self._output.report), self._output.said.decode(errors="replace"), dead, traces)

    def _traces(self, but: int = -1) -> dict[int, str]:
        """Where each rank is or was: of its exception, else of faulthandler."""
        traces = {}
        for rank, peer in self._peers.items():
            is_bad = peer.outcome is not None and not peer.outcome.is_good
            trace = peer.outcome.trace if peer.outcome and is_bad else failure.own_part(peer.stack())
            if trace and rank != but:
                traces[rank] = trace
        return traces

    def _stop(self, why: BaseException) -> None:
        """Ends the call on ranks that are still in it. Ranks that do not stop are killed."""
        word = wire.packed(("stop", why))
        waiting = [p for p in self._peers.values() if p.outcome is None and p.socket.fileno() >= 0]
        for peer in waiting:
            try:
                with contextlib.suppress(TimeoutError):  # it does not even read, and is killed; its stack may still come
                    wire.send(peer.socket, word, _at_once)
                os.kill(peer.pid, STOP)
            except OSError:
                pass  # it ends just now
        self._latest = latest = time.monotonic() + STOP_LIMIT  # for answers that have begun, too
        while any(p.outcome is None and p.socket.fileno() >= 0 for p in waiting) and time.monotonic() < latest:
            self._wait(latest - time.monotonic())
        self._is_renewed = True
        self._print_all()
        if any(p.outcome is None for p in self._peers.values()) or len(self._peers) < self._n:
            self.is_over = True
            self._kill()

    def _print_all(self) -> None:
        """Waits for what the ranks have printed in the call."""
        answered = sum(peer.outcome is not None for peer in self._peers.values())
        latest = time.monotonic() + PRINT_LIMIT
        while self._output.marks < answered and self._streams and time.monotonic() < latest:
            self._wait(latest - time.monotonic())
        self._output.release()

    # ---- The end

    def _wait_for_end(self, seconds: float) -> None:
        latest = time.monotonic() + seconds
        while self._streams and time.monotonic() < latest:
            self._wait(latest - time.monotonic())
        self._output.release()

    def _kill(self) -> None:
        for how in (signal.SIGTERM, signal.SIGKILL):
            if self._streams:
                self._colrun.send_signal(how)
                self._wait_for_end(STOP_LIMIT)

    def has_died(self) -> bool:
        """A process has ended, also between calls."""
        return self.is_over or (os.getpid() == self._pid and self._colrun.poll() is not None)

    def end(self, limit: float = STOP_LIMIT) -> dict[int, str]:
        """Ends the ranks, within so many seconds; then they are killed. The stacks of those that were, by rank."""
        if os.getpid() != self._pid or self._is_closed:
            return {}
        for peer in self._peers.values():
            try:
                wire.send(peer.socket, wire.packed(("end",)), _at_once)
            except OSError:
                pass  # it has ended
        if not self._peers or len(self._peers) < self._n:
            self._colrun.terminate()
        self._wait_for_end(limit)
        stacks = self._last_stacks() if self._streams else {}
        self._kill()
        self.is_over = True
        self._colrun.wait(STOP_LIMIT)
        for peer in self._peers.values():
            peer.close()
        self._is_closed = True
        self._stop_listening()
        for stream in (self._colrun.stdout, self._colrun.stderr):
            assert stream
            stream.close()
        self._finalizer.detach()
        _jobs.discard(self)
        return stacks

    def _last_stacks(self) -> dict[int, str]:
        stacks = {}
        for rank, peer in self._peers.items():
            peer.stack()
            try:
                os.kill(peer.pid, STOP)
            except OSError:
                continue  # this one has ended
            latest = time.monotonic() + PRINT_LIMIT
            while not (stack := peer.stack()) and time.monotonic() < latest:
                self._wait(0.01)
            stacks[rank] = failure.own_part(stack)
        return stacks


def _at_once() -> float:
    return 0.0
