"""The programs in src/examples/python, as a reader would start them."""

import json
import os
import pathlib
import platform
import re
import subprocess
import sys

import pytest

import col.run
import processes
from col.ray import theirs

EXAMPLES = pathlib.Path(__file__).parents[2] / "src" / "examples" / "python"
NOTEBOOK = EXAMPLES / "notebook" / "allreduce.ipynb"
RAYS_NOTEBOOK = EXAMPLES / "notebook" / "ray_allreduce.ipynb"  # tests/ray runs it


def colrun(size, *command):
    process = subprocess.Popen(
        [processes.COLRUN, "-n", str(size), *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    return processes.finish(process)


def example(size, name, *options):
    code, out, err = colrun(size, sys.executable, EXAMPLES / name, *options)
    assert code == 0, err
    return out.splitlines()


@pytest.mark.parametrize("size, total", [(1, 1), (4, 10)])
def test_hello(size, total):
    assert sorted(example(size, "hello.py")) == [f"rank {rank} of {size}: the sum is {total}" for rank in range(size)]


@pytest.mark.parametrize("size", [1, 4])
def test_the_tutorials_training_prints_what_the_one_in_cpp_prints(size):
    code, out, err = colrun(size, os.environ["TRAINING"])
    assert code == 0, err
    theirs = out.splitlines()[:-1]  # the last line is about the weights
    assert len(theirs) == 5 and theirs[-1].startswith("epoch 200")
    assert example(size, "training.py") == theirs


# ---- digits.py


def losses(lines):
    return [float(line.split()[3]) for line in lines if line.startswith("epoch")]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_digits_has_the_losses_of_the_cpp_trainer(size):
    """All additions are made in the same order, so the losses are the same to the last digit. Only a compiler that joins
    products and sums into single instructions changes their last bits; for x86-64 none does so unasked."""
    options = "--epochs", 4, "--seed", 5
    code, out, err = colrun(size, os.environ["DIGITS_TRAINER"], "--no-save", *options)
    assert code == 0, err
    theirs = losses(out.splitlines())
    assert len(theirs) == 4
    ours = losses(example(size, "digits.py", *options))
    assert ours == (theirs if platform.machine() == "x86_64" else pytest.approx(theirs, abs=1e-4))


def test_digits_learns():
    lines = example(2, "digits.py", "--epochs", 4, "--batch", 64, "--lr", 0.05)
    assert losses(lines)[-1] < 0.2 and float(lines[-1].split()[-1]) > 0.9, lines


def test_digits_says_what_is_wrong():
    code, out, err = colrun(2, sys.executable, EXAMPLES / "digits.py", "--lr", "1e20", "--epochs", "2")
    assert code != 0 and "try a smaller --lr" in err
    code, out, err = colrun(1, sys.executable, EXAMPLES / "digits.py", "--data", "none.csv")
    assert code != 0 and "none.csv" in err


def digits_alone(directory, *options, joins=(), **environment):
    """What ranks of no launcher print, three and those that join."""
    directory.mkdir()
    each = [("--join",) if rank in joins else () for rank in range(3 + len(joins))]
    ranks = [
        processes.start_alone(rank, max(3, rank + 1), directory, EXAMPLES / "digits.py", *options, *more, **environment)
        for rank, more in enumerate(each)
    ]
    return [processes.finish(process) for process in ranks]


EPOCHS = "--epochs", "3", "--digits", "17"


@pytest.mark.parametrize("rank, call", [(1, 22), (0, 20), (2, 35)])
def test_digits_goes_on_without_a_dead_rank(rank, call):
    """The losses are those of an undisturbed training, but for the order of the additions."""
    undisturbed = losses(example(3, "digits.py", *EPOCHS))
    fault = f"COL_FAULT=kill:rank={rank},op={call},group=default"
    command = ["env", fault, processes.COLRUN, "-n", "3", "--keep-going", sys.executable, EXAMPLES / "digits.py", "--elastic", *EPOCHS]
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    code, out, err = processes.finish(process)
    assert code == 137 and f"lost [{rank}], new []: 2 ranks go on after step" in out, (out, err)
    assert len(undisturbed) == 3 and losses(out.splitlines()) == pytest.approx(undisturbed, rel=1e-6), out


@pytest.mark.parametrize("rank, call", [(1, 22), (0, 20)])
def test_digits_has_the_same_losses_with_another_rank_in_the_place_of_a_dead_one(rank, call, tmp_path):
    """To the bit: all of them make the lost step again."""
    undisturbed = digits_alone(tmp_path / "undisturbed", *EPOCHS)
    assert [code for code, _, _ in undisturbed] == [0, 0, 0], undisturbed
    fault = f"kill:rank={rank},op={call},group=default"
    said = digits_alone(tmp_path / "disturbed", *EPOCHS, "--elastic", "--wait", "50", joins=[3], COL_FAULT=fault)
    assert [code for code, _, _ in said] == [-9 if each == rank else 0 for each in range(4)], said
    out = said[0][1] + (said[3][1] if rank == 0 else "")
    assert f"lost [{rank}], new [{rank}]: 3 ranks go on after step" in out, said
    assert losses(out.splitlines()) == losses(undisturbed[0][1].splitlines()), said


# ---- article.py

ALL = "0 1 2 3"
ARTICLE = {
    "reduce": ["10", "2", "3", "4"],
    "allreduce": ["10"] * 4,
    "scatter": ["0", "10", "20", "30"],
    "gather": [ALL],
    "allgather": [ALL] * 4,
    "broadcast": ["0.5"] * 4,
}


def test_article():
    want = [f"rank {rank}: {name}: {value}" for name, values in ARTICLE.items() for rank, value in enumerate(values)]
    assert sorted(example(4, "article.py")) == sorted(want)


def test_article_knows_its_examples():
    code, out, err = colrun(1, sys.executable, EXAMPLES / "article.py", "gathr")
    assert code != 0 and "no example 'gathr'; choose from reduce, " in err


# ---- The notebook

NOTEBOOK_CHECKS = """
import xml.etree.ElementTree

assert alpha > 0 and beta > 0 and len(times) == len(sizes)
assert bde_checked == {size: [True] * size for size in (1, 2, 4, 8)}
assert mst_checked == {size: [True] * size for size in (1, 2, 3, 6, 7, 8)}
assert run(2, check, lambda world, x: None) == [False] * 2
assert is_the_same
for plan in mst, bde, bde_of_6:
    assert plan.verify() and xml.etree.ElementTree.fromstring(plan._repr_svg_()).tag.endswith("svg")
assert all(predicted > 0 and seconds > 0 for predicted, seconds in table.values()) and len(table) == 6
assert table[2, "bde"][0] < table[2, "mst"][0] < table[2, "ring"][0]
assert table[2**18, "ring"][0] < table[2**18, "bde"][0]
assert not broken and broken.rank == lost["to"]



def fails(world):
    if world.rank == 1:
        raise ValueError("as a test wants")
    world.barrier()


try:
    run(2, fails)
    raise AssertionError("no error")
except col.RankFailed as error:
    assert error.rank == 1 and "ValueError: as a test wants" in str(error)
print("all good")
"""


def notebook(path=NOTEBOOK):
    return json.loads(path.read_text(encoding="utf-8"))


def code_cells(path=NOTEBOOK):
    return ["".join(cell["source"]) for cell in notebook(path)["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", [NOTEBOOK, RAYS_NOTEBOOK], ids=lambda path: path.stem)
def test_notebook_is_clean(path):
    book = notebook(path)
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    cells = book["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        assert set(cell) - {"outputs", "execution_count"} == {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            assert len(cell["source"]) <= 25, "a cell that long is hard to read: " + cell["source"][0]
    for link in re.findall(r"\]\(([^)]+)\)", "".join("".join(cell["source"]) for cell in cells)):
        assert (path.parent / link).exists(), link


def test_notebook_runs():
    pytest.importorskip("cloudpickle")
    process = subprocess.Popen(
        [sys.executable, "-c", "\n\n".join([*code_cells(), NOTEBOOK_CHECKS])], cwd=NOTEBOOK.parent,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    code, out, err = processes.finish(process)
    assert code == 0 and out.endswith("all good\n"), (out, err)
    assert "latency" in out and "mst <good: 6 rounds, 14 messages" in out and "waits to receive" in out


# ---- Types

MYPY = """
[mypy]
strict = True
[mypy-cells]
disallow_untyped_defs = False
disallow_untyped_calls = False
[mypy-torch_backend]
disallow_untyped_calls = False
[mypy-ray_actors,ray_cells,allreduce,declarative,messages,multigpu]
disallow_untyped_defs = False
disallow_untyped_calls = False
disable_error_code = attr-defined
[mypy-torch,ray,ray.*]
follow_imports = skip
[mypy-cupy]
ignore_missing_imports = True
"""  # torch takes long to read, and torch 1.13 has functions without types; to mypy, what @ray.remote decorates is a class without remote()


def test_mypy_finds_nothing_in_the_examples_and_something_in_a_wrong_program(tmp_path):
    cells = tmp_path / "cells.py"
    cells.write_text("\n\n".join(code_cells()), encoding="utf-8")
    rays = tmp_path / "ray_cells.py"
    rays.write_text("\n\n".join(code_cells(RAYS_NOTEBOOK)), encoding="utf-8")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import col\n"
        "world = col.init()\n"
        "world.allreduce(1.0, oper='sum')\n"
        "rank: str = world.rank\n"
        "col.plan.build('allreduce', 'ring', ranks='4')\n"
        "from col.ray import collective, types\n"
        "made = collective.GroupManager().create_collective_group(types.Backend.GLOO, 2, 0, 'g')\n"
        "made.allreduce([1.0], types.AllReduceOptions())\n"
        "value: int = types.ReduceOp['SUM'].value\n"
        "value = types.ReduceOp.SUM.name\n"
        "made.rank = 'first'\n"
        "from col.ray.collective_group.torch_gloo_collective_group import TorchGLOOGroup\n"
        "TorchGLOOGroup(2, 0, 'g').rank = 'first'\n"
        "TorchGLOOGroup(2, 0)\n"
        "import col.ray.collective_group.no_such\n",
        encoding="utf-8",
    )
    named = tmp_path / "named.py"
    named.write_text("\n".join(f"import col.ray.{name}" for name in theirs.MODULES) + "\nprint(col.ray.const.get_store_name('g'))\n")
    (tmp_path / "mypy.ini").write_text(MYPY)
    programs = [
        *EXAMPLES.glob("*.py"), *EXAMPLES.glob("collective_in_ray/*.py"), *NOTEBOOK.parent.glob("*.py"), cells, rays, wrong, named
    ]
    assert len(programs) >= 7
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", *map(str, programs)], cwd=tmp_path,
        env={**os.environ, "MYPYPATH": os.environ["PYTHONPATH"]}, capture_output=True, text=True, timeout=240,
    )
    errors = [line for line in answer.stdout.splitlines() if ": error: " in line]
    wanted = [f"wrong.py:{n}" for n in (3, 4, 5, 10, 11, 11, 13, 13, 14, 15)]
    assert [line.split(": ")[0] for line in errors] == wanted, answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["-n", "3", "hello.py"], 2),
        (["-n", "3", "hello.py", "--options", "other.py"], 2),
        (["-n", "3", sys.executable, "hello.py"], None),
        (["--", "python3", "hello.py"], None),
        (["-n", "3", "none.py"], None),
        (["-n", "3", "true"], None),
        ([], None),
    ],
)
def test_a_script_as_the_program_of_colrun(words, place, monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    wanted = words if place is None else [*words[:place], sys.executable, *words[place:]]
    assert col.run._with_python(words) == wanted
