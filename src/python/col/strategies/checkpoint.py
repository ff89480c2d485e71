"""Checkpoints: one file, written by one rank, which is either whole or the one before.

A state is made of dicts, lists, numbers, strings, None, and numpy arrays or torch tensors. In the file, `tree` is JSON that
says where each array belongs. The file is an .npz, or with torch tensors torch.save()'s. Neither runs code when it is read.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import sys
import zipfile
from typing import Any, Optional, Union

import numpy as np

from .._col import Group
from ..errors import Error, InvalidArgument, IoError

Path = Union[str, "os.PathLike[str]"]
FORMAT = "col.strategies 1"


def write(path: Path, state: dict[str, Any]) -> None:
    """Replaces the file at once: a crash at any time leaves the old one or the new one. Raises OSError."""
    target = pathlib.Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(beside, "wb") as file:
            _encode(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name, too, survives a loss of power
    finally:
        os.close(folder)


def read(path: Path) -> dict[str, Any]:
    """Raises OSError, and InvalidArgument if the file is no checkpoint."""
    data = pathlib.Path(path).read_bytes()
    try:
        state: dict[str, Any] = _decode(data)
        if state["format"] != FORMAT:
            raise ValueError(f"its format is {state['format']!r}, and should be {FORMAT!r}")
    except Exception as error:  # whatever a broken file leads to
        raise InvalidArgument(f"'{path}' is no checkpoint of a strategy: {error}") from None
    return state


def write_or_raise(path: Path, state: dict[str, Any]) -> None:
    """write(), with col's error."""
    try:
        write(path, state)
    except OSError as error:
        raise IoError(f"the checkpoint '{path}' could not be written ({error}); one that was there before still is") from None


def save(group: Group, path: Path, state: Optional[dict[str, Any]]) -> None:
    """Rank 0 writes its state. Collective: all ranks learn whether it could. Raises IoError on all."""
    problem = None
    if group.rank == 0:
        assert state is not None
        try:
            write_or_raise(path, state)
        except IoError as error:
            problem = error
    problem = group.broadcast_object(problem)
    if problem is not None:
        raise problem


def read_or_raise(path: Path) -> dict[str, Any]:
    """read(), with col's error."""
    try:
        return read(path)
    except OSError as error:
        raise IoError(f"the checkpoint '{path}' could not be read by rank 0: {error}") from None


def load(group: Group, path: Path) -> dict[str, Any]:
    """Rank 0 reads the file, and all get its contents. Collective. Raises IoError or InvalidArgument on all."""
    answer: Any = None
    if group.rank == 0:
        try:
            answer = read_or_raise(path)
        except Error as error:
            answer = error
    answer = group.broadcast_object(answer)
    if isinstance(answer, Error):
        raise answer
    state: dict[str, Any] = answer
    return state


def header(kind: str, steps: int) -> dict[str, Any]:
    """How every state begins. Strategies of one kind can read each other's."""
    return {"format": FORMAT, "kind": kind, "steps": steps}


def check_kind(state: Any, kind: str) -> None:
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InvalidArgument("this is no state of a strategy: pass what state_dict() has returned")
    if state["kind"] != kind:
        raise InvalidArgument(
            f"this state is of kind '{state['kind']}', and this strategy needs kind '{kind}': docs/strategies.md says which "
            "strategies can read each other's checkpoints"
        )


# ---- Files


def _encode(state: dict[str, Any], file: Any) -> None:
    arrays: list[Any] = []
    tree = json.dumps(_pack(state, arrays))
    if any(not isinstance(array, np.ndarray) for array in arrays):
        sys.modules["torch"].save({"tree": tree, "arrays": arrays}, file)
    else:
        words = np.frombuffer(tree.encode(), np.uint8)
        np.savez(file, tree=words, **{f"a{i}": array for i, array in enumerate(arrays)})


def _pack(value: Any, arrays: list[Any]) -> Any:
    if isinstance(value, dict):
        return {"dict": [[name, _pack(member, arrays)] for name, member in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"list": [_pack(member, arrays) for member in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    arrays.append(value)
    return {"array": len(arrays) - 1}


def _decode(data: bytes) -> Any:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        is_npz = "tree.npy" in archive.namelist()
    if is_npz:
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            arrays = [found[f"a{i}"] for i in range(len(found.files) - 1)]
            return _unpack(json.loads(found["tree"].tobytes()), arrays)
    import torch

    # weights_only: nothing is run. torch 1.13 then reads no floats, which is why the rest is JSON.
    content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return _unpack(json.loads(content["tree"]), content["arrays"])


def _unpack(tree: Any, arrays: list[Any]) -> Any:
    ((kind, value),) = tree.items()
    if kind == "dict":
        return {name: _unpack(member, arrays) for name, member in value}
    if kind == "list":
        return [_unpack(member, arrays) for member in value]
    return arrays[value] if kind == "array" else value
