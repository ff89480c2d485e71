"""docs/torch.md says what torch tests of Gloo and what it gives on col: each row is true."""

import ast
import pathlib
import re
import types

import pytest
import torch
import torch.distributed as dist

import members

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "docs" / "torch.md"


def rows():
    """(what torch tests, the verdict, where or why) of each row."""
    table = DOCUMENT.read_text(encoding="utf-8").split("<!-- tests/torch/test_table.py -->")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]


def names_in(file):
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


ROWS = rows()


def test_the_table_is_one():
    assert len(ROWS) >= 20 and all(len(row) == 3 for row in ROWS)
    assert {row[1] for row in ROWS} <= {"has", "refuses", "missing"}


@pytest.mark.parametrize("what, where", [(what, where) for what, verdict, where in ROWS if verdict == "has"])
def test_what_col_has_is_tested(what, where):
    named = re.findall(r"`(\w+\.py)::(\w+)`", where)
    assert named, f"'{what}' names no test"
    for file, test in named:
        assert test in names_in(file), f"'{what}' names {file}::{test}, which is not there"


REFUSED = {
    "several tensors in the list of one call": lambda: dist.group.WORLD.allreduce([torch.ones(1), torch.ones(1)]),
    "a sum of sparse tensors with another operator": lambda: dist.all_reduce(
        torch.sparse_coo_tensor([[0]], [1.0], (2,)), op=dist.ReduceOp.MAX),
    "options of the backend: devices, threads": lambda: dist.new_group([0], pg_options=types.SimpleNamespace()),
}


def refused(_, what):
    with pytest.raises(Exception) as raised:
        REFUSED[what]()
    return f"{type(raised.value).__name__}: {raised.value}"


@pytest.mark.parametrize("what, why", [(what, why) for what, verdict, why in ROWS if verdict == "refuses"])
def test_what_col_refuses(what, why):
    [words] = re.findall(r"`([^`]+)`", why)
    for said in members.run(1, refused, what):
        assert words in said
