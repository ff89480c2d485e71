"""A rank of col.run: carries out what the caller asks for, and answers.

The caller's end is seen by the kernel: a second socket is closed then, and its signal kills this process wherever it is. To
stop a call, the caller sends a word and then STOP: faulthandler writes down where each thread is, and the handler raises.
"""

from __future__ import annotations

# Each module that is not imported here is a millisecond less for a call: socket, signal and typing are what these wrap.
import _signal  # type: ignore[import-not-found,unused-ignore]
import _socket
import faulthandler
import fcntl
import os
import struct
import sys

from .. import _col
from ..errors import Aborted, Error, InvalidArgument, PeerLost
from ..hints import Any, Optional
from . import wire

ADDRESS = "COL_RUN_ADDRESS"
STOP: int = _signal.SIGRTMAX - 2
MARK = "\x1e\x04 end of the call"  # a line that no program prints; it says that all before it has come
TEXT_LIMIT = 1 << 16


class Stops:
    """The result of a function that has failed in its own way: ranks that are still in the call are stopped after so long."""

    def __init__(self, value: object, patience: float) -> None:
        self.value = value
        self.patience = patience


class Outcome:
    """How a call has ended on this rank. `parts` is the result, or an exception that can be pickled."""

    def __init__(self, is_good: bool, parts: Optional[list[Any]], error: Optional[BaseException] = None) -> None:
        self.is_good = is_good
        self.is_joined = _col.is_group_initialized()
        self.parts = parts
        self.patience: Optional[float] = None  # of Stops
        self.kind = type(error).__name__
        self.message = self.trace = ""
        # By another rank, or by the caller.
        self.is_caused = isinstance(error, (Aborted, PeerLost, KeyboardInterrupt))


def user(connection: Any) -> int:
    """The one whose process is at the other end of the socket."""
    _, uid, _ = struct.unpack("3i", connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
    return int(uid)


class Channel:
    """This rank's end. `serve` may be called inside of a call: then the caller's next calls are carried out there."""

    def __init__(self, address: str, token: str) -> None:
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.connect("\0" + address)
        if user(self._socket) != os.getuid():
            raise InvalidArgument("col.run: another user listens at the address of the caller")
        self._printed = os.dup(1)
        self._ended = self._leaves = False
        self._is_in_call = False
        self.may_be_stopped = True  # where not, it waits in `stopped_by`
        self.stopped_by: Optional[BaseException] = None
        stacks = os.memfd_create("col-stacks")
        self._life, theirs = _socket.socketpair()
        hello = wire.packed((token, int(os.environ["COL_RANK"]), os.getpid(), os.environ.get("COL_JOB_ID", "")))
        descriptors = struct.pack("2i", stacks, theirs.fileno())
        self._socket.sendmsg([b"".join(hello)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
        theirs.close()
        fcntl.fcntl(self._life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(self._life, fcntl.F_SETSIG, _signal.SIGKILL)
        fcntl.fcntl(self._life, fcntl.F_SETFL, fcntl.fcntl(self._life, fcntl.F_GETFL) | os.O_ASYNC)
        _signal.signal(STOP, self._stop)
        faulthandler.enable(stacks)
        faulthandler.register(STOP, stacks, all_threads=True, chain=True)

    def _stop(self, number: int, frame: Any) -> None:
        if self._is_in_call:  # else the call has ended just now, and serve() reads the word
            self._is_in_call = False
            self.stopped_by = wire.unpacked(wire.receive(self._socket))[1]
            assert self.stopped_by is not None
            if self.may_be_stopped:
                raise self.stopped_by

    def _stop_if_told(self) -> None:
        """For a word that has come before the call: the handler has left it to serve()."""
        try:
            self._socket.recv(1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        self._stop(STOP, None)

    def serve(self) -> None:
        """Carries out calls until the caller says end."""
        was_in_call, self._is_in_call = self._is_in_call, False
        while not self._ended:
            try:
                word, *rest = wire.unpacked(wire.receive(self._socket))
            except (EOFError, ConnectionError):
                os._exit(1)  # the caller has ended
            if word == "end":
                self._ended = True
            elif word == "call":
                outcome = self._carry_out(wire.receive(self._socket), *rest)
                if self._leaves:
                    self._leaves = False
                    break
                self.answer(outcome)
        self._is_in_call = was_in_call

    def leave(self) -> None:
        """In a call inside of a call: its end is the answer."""
        self._leaves = True

    def answer(self, outcome: Outcome) -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass  # the program has closed it
        parts, outcome.parts = outcome.parts, None
        wire.send(self._socket, wire.packed(outcome))
        wire.send(self._socket, parts or wire.packed(None))
        try:
            os.write(self._printed, (MARK + "\n").encode())
        except OSError:
            pass

    def _carry_out(self, call: list[bytearray], is_renewed: bool) -> Outcome:
        try:
            self.stopped_by = None
            self._is_in_call = True
            try:
                self._stop_if_told()
                if is_renewed:
                    _leave()
                if not _col.is_group_initialized():
                    _col.init()
                function, args, kwargs = wire.unpacked(call)
                del call
                value = function(*args, **kwargs)
                del args, kwargs
                outcome = Outcome(True, _result(value.value if isinstance(value, Stops) else value))
                outcome.patience = value.patience if isinstance(value, Stops) else None
            finally:
                self._is_in_call = False
        except BaseException as error:
            return failed(error)
        return outcome


def _leave() -> None:
    try:
        _col.finalize()
    except Error:
        pass  # of the call that has failed; a new group begins


def _result(value: Any) -> list[Any]:
    try:
        return wire.packed(value)
    except InvalidArgument as error:
        raise TypeError(f"its result, of type {type(value).__name__}, cannot be pickled: {error}") from None


def failed(error: BaseException) -> Outcome:
    """The outcome of a call that raises."""
    import traceback

    parts = None
    try:
        parts = wire.packed(error)
    except Exception:
        pass  # its words are enough
    if parts and sum(map(len, parts)) > TEXT_LIMIT:
        parts = None
    outcome = Outcome(False, parts, error)
    error.__traceback__ = _without_own(error.__traceback__, os.path.dirname(__file__))
    outcome.trace = cut("".join(traceback.format_exception(error)))
    try:
        outcome.message = cut(str(error))
    except Exception as unspeakable:
        outcome.message = f"(its words raise {type(unspeakable).__name__})"
    return outcome


def _without_own(trace: Any, folder: str) -> Any:
    while trace is not None and os.path.dirname(trace.tb_frame.f_code.co_filename) == folder:
        trace = trace.tb_next
    return trace


def cut(text: str) -> str:
    """Its begin and end, if it is long."""
    if len(text) <= TEXT_LIMIT:
        return text
    half = TEXT_LIMIT // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters ...\n{text[-half:]}"


channel: Optional[Channel] = None  # of this process, if it is a rank of col.run


def main() -> None:
    global channel
    address, token = os.environ.pop(ADDRESS).split()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    channel = Channel(address, token)
    channel.serve()
    _leave()
