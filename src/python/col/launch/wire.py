"""Messages between caller and rank, and what may be pickled.

A message is a pickle and the large buffers of what is in it (arrays), which are not copied: numbers of bytes first. A call
is packed once for all ranks. Functions and classes of __main__ are another's there, so that they go by value: by cloudpickle.
"""

from __future__ import annotations

import _pickle  # pickle itself imports what is not needed here, which each rank would wait for
import _socket
import io
import struct

from ..errors import InvalidArgument
from ..hints import Any, Callable, Optional, Sequence

_COUNT = struct.Struct("<Q")
_CHUNK = 1 << 20
_FUNCTION = type(lambda: None)


class _NotByReference(Exception):
    pass


class _Pickler(_pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (_FUNCTION, type)) and value.__module__ == "__main__":
            raise _NotByReference(f"{value.__qualname__} is of __main__")
        return NotImplemented


def _by_cloudpickle(value: Any, buffers: list[_pickle.PickleBuffer], why: BaseException) -> bytes:
    try:
        import cloudpickle  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise InvalidArgument(
            f"col.run: {why}, and cannot be pickled without cloudpickle: pip install cloudpickle, or define it in a module"
        ) from None
    del buffers[:]
    try:
        return bytes(cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append))
    except Exception as error:
        raise InvalidArgument(f"col.run: it cannot be pickled: {type(error).__name__}: {error}") from error


def packed(value: Any) -> list[Any]:
    """The message as parts. Raises InvalidArgument for what cannot be pickled."""
    buffers: list[_pickle.PickleBuffer] = []
    stream = io.BytesIO()
    pickler = _Pickler(stream, protocol=5, buffer_callback=buffers.append)
    try:
        pickler.dump(value)
        # Not getbuffer(): CPython 3.12.1 may crash when it collects what holds that.
        body = stream.getvalue()
    except _NotByReference as why:
        body = _by_cloudpickle(value, buffers, why)
    except Exception as error:  # whatever a __reduce__ raises
        body = _by_cloudpickle(value, buffers, error)
    parts = [body, *(buffer.raw() for buffer in buffers)]
    return [struct.pack(f"<{len(parts) + 1}Q", len(parts), *(len(part) for part in parts)), *parts]


def send(to: _socket.socket, parts: Sequence[Any], left: Optional[Callable[[], float]] = None) -> None:
    """left: the seconds that the next piece may still take; then it raises TimeoutError."""
    for part in [b"".join(parts)] if sum(len(part) for part in parts) < _CHUNK else parts:
        view = memoryview(part)
        while view:
            if left is not None:
                to.settimeout(max(left(), 1e-3))  # 0 would be another mode
            view = view[to.send(view) :]


def receive(of: _socket.socket, left: Optional[Callable[[], float]] = None) -> list[bytearray]:
    """The parts of the next message. Raises EOFError at the end of the connection. left: as for send()."""
    count = _COUNT.unpack(_exactly(of, _COUNT.size, left))[0]
    sizes = struct.unpack(f"<{count}Q", _exactly(of, count * _COUNT.size, left))
    return [_exactly(of, size, left) for size in sizes]


def _exactly(of: _socket.socket, size: int, left: Optional[Callable[[], float]]) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        if left is not None:
            of.settimeout(max(left(), 1e-3))
        got = of.recv_into(view, min(len(view), 1 << 30))
        if got == 0:
            raise EOFError
        view = view[got:]
    return data


def unpacked(parts: Sequence[bytearray]) -> Any:
    return _pickle.loads(parts[0], buffers=parts[1:])
