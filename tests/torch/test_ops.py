"""torch.ops.col: its collectives on every kind of tensor, what it refuses, and graphs of torch.compile with it."""

import os
import pathlib
import subprocess
import sys

import pytest
import torch

import members
import processes
import trial

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


def calls(groups, layout, dtype):
    import col.torch

    one = trial.Trial(groups.col, groups.rank, groups.size, 3, dtype=dtype, layout=layout)
    name, own, size = col.torch.ops_name(groups.col), groups.rank, groups.size
    assert col.torch.ops_name(groups.col.group) == col.torch.ops_name(None) == name
    ops = torch.ops.col
    values = one.of_ranks(2 * size, 3)
    total = torch.stack(values).sum(0).to(dtype)
    with torch.no_grad():
        x = one.lay(values[own])
        out = ops.all_reduce(x, name)
        assert out.is_contiguous() and torch.equal(x.detach(), values[own])
        pairs = [(out, total), (ops.all_reduce(x, name, "max"), torch.stack(values).max(0).values),
                 (ops.all_gather(x, name), torch.cat(values)), (ops.reduce_scatter(x, name), total.chunk(size)[own])]
        assert ops.all_reduce_(x, name) is None
        y = one.lay(values[own])
        ops.broadcast_(y, name, size - 1)
        pairs += [(x, total), (y, values[-1]), (ops.all_gather(torch.tensor(own).to(dtype), name), torch.arange(size).to(dtype))]
    trial.check(calls, one, pairs)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("layout", trial.LAYOUTS)
def test_calls(size, layout):
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        members.run(size, calls, layout, dtype)


def in_inference_mode(groups):
    import col.torch

    with torch.inference_mode():
        x = torch.ones(4, 4).t()
        torch.ops.col.all_reduce_(x, col.torch.ops_name(groups.col))
    assert x.is_inference() and x.eq(groups.size).all()


def test_inference_mode():
    members.run(2, in_inference_mode)


def refusals(groups):
    import col
    import col.torch
    import torch.distributed as dist

    name = col.torch.ops_name(groups.col)
    said = []
    for call in (
        lambda: torch.ops.col.all_reduce_(torch.ones(3), "tp:0"),
        lambda: torch.ops.col.all_reduce(torch.ones(3, requires_grad=True), name),
        lambda: torch.ops.col.reduce_scatter(torch.ones(3), name),
        lambda: torch.ops.col.all_reduce_(torch.ones(3), name, "plus"),
        lambda: torch.ops.col.all_reduce_(torch.ones(1).expand(3), name),
        lambda: col.torch.ops_name(groups.gloo),
    ):
        with pytest.raises(col.InvalidArgument) as raised:
            call()
        said.append(str(raised.value))
    x = torch.ones(3)  # no rank has made any of these calls
    torch.ops.col.all_reduce_(x, name)
    assert x.tolist() == [2] * 3
    return said


def test_what_is_refused():
    for said in members.run(2, refusals):
        for words, text in zip(
            ("there is no group 'tp:0'", "have no gradients", "3 rows cannot be cut in 2 equal parts", "plus",
             "more than one element", "torch.ops.col: the group is not of backend 'col'"), said):
            assert words in text


def named_anew(groups):
    import gc

    import col
    import col.torch

    first, second = col.init_collective_group(1, 0, "shm", "tp"), groups.col.group
    name = col.torch.ops_name(first)
    assert name == "tp" and col.torch.ops_name(second) not in ("tp", "")
    torch.ops.col.all_reduce_(torch.ones(3), name)
    col.destroy_collective_group("tp")
    del first
    gc.collect()
    with pytest.raises(col.InvalidArgument, match="there is no group 'tp'"):
        torch.ops.col.all_reduce_(torch.ones(3), name)


def test_a_group_is_not_kept():
    members.run(1, named_anew)


@pytest.mark.skipif(VERSION < (2, 4), reason=f"torch {torch.__version__}: its compiler is older than what is tried, 2.4")
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_without_a_break(backend):
    """The same results as eagerly, one graph, and no other for another length of the first axis where it is said to vary."""
    if backend == "inductor" and not any(os.access(os.path.join(folder, "c++"), os.X_OK) for folder in os.environ["PATH"].split(":")):
        pytest.skip("inductor asks for a compiler")
    program = pathlib.Path(__file__).with_name("compiled.py")
    done = subprocess.run(
        [os.environ["COLRUN"], "-n", "2", sys.executable, "-W", "ignore", str(program), backend],
        capture_output=True, text=True, timeout=4 * processes.LIMIT)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines() == ["good"] * 2
