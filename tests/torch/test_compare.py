"""python -m col.compare: its rows and files, a wrong result, and all that may be missing. No time is asserted."""

import json
import os
import pathlib
import subprocess
import sys
import threading
import types

import numpy as np
import pytest
import torch

import col
import processes
from col.compare import __main__ as compare
from col.compare import contenders, measure, results, steps

HERE = pathlib.Path(__file__).resolve().parent
COLBENCH = os.environ["COLBENCH"]
SMALL = "--launches", "1", "--seconds", "0.01"


def compared(*options, code=0):
    path = os.pathsep.join([os.path.dirname(processes.COLRUN), os.path.dirname(COLBENCH), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "col.compare", *options], capture_output=True, text=True, timeout=2 * processes.LIMIT,
        env={**os.environ, "PATH": path, "PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{HERE}"},
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.mark.skipif(torch.__version__.startswith("2.8."), reason="Gloo of torch 2.8 adds where FSDP averages, which ends it")
def test_a_table_a_picture_and_a_file(tmp_path):
    file, picture = tmp_path / "all.json", tmp_path / "all.html"
    out = compared("-n", "2", "--sizes", "8,1000", "--parameters", "1000", "--json", str(file), "--picture", str(picture),
                   *SMALL).stdout
    rows = [line.split("  ")[0] for line in out.splitlines()]
    for operation in compare.OPERATIONS:
        assert f"{operation} 8 B" in rows and f"{operation} 1000 B" in rows
    assert "DDP step" in rows and "FSDP step" in rows
    assert results.processor() in out and "2 ranks" in out and "1 launch;" in out
    assert "To switch:" in out and "To go back:" in out
    assert "too few launches to say where col is behind (6 make an interval)\n" in out
    assert "<svg" in picture.read_text(encoding="utf-8")
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [cell["check"]["wrong"] for cell in found["cells"]] == [0] * len(found["cells"]) and len(found["cells"]) >= 4 * 2 * 3
    assert {step["backend"] for step in found["steps"]} == {"gloo", '"col"', "col.Group"}
    drawn = subprocess.run([COLBENCH, "draw", str(file)], capture_output=True, text=True, timeout=processes.LIMIT)
    assert drawn.returncode == 0 and "reduce_scatter" in drawn.stdout, drawn.stderr
    # colbench reads it as its own.
    assert subprocess.run([COLBENCH, "compare", str(file), str(file)], capture_output=True, timeout=processes.LIMIT).returncode == 0


def test_more_ranks_than_processors(tmp_path):
    """They are not bound then, and it does not say so."""
    ranks, file = max(len(os.sched_getaffinity(0)) + 1, 3), tmp_path / "all.json"
    out = compared("-n", str(ranks), "--sizes", "8,100", "--parameters", "0", "--json", str(file), *SMALL).stdout
    assert "broadcast 8 B" in out and " each, not bound;" in out
    assert f"# blocks of equal size for {ranks} ranks: all_gather 8 B has {4 * ranks} B, " in out
    assert json.loads(file.read_text(encoding="utf-8"))["processors_of_a_rank"] == [len(os.sched_getaffinity(0))] * 2


@pytest.mark.parametrize("bound, words", [
    ((1, 1), "bound by colrun to 1 of them each"), ((2, 3), "bound by colrun to 2 to 3 of them each"), ((8, 8), "not bound"),
])
def test_binding(bound, words):
    assert compare.binding(bound, 8) == words


def test_a_wrong_result_is_exit_1_without_a_table():
    done = compared("-n", "2", "--sizes", "80", "--ops", "all_gather,all_reduce", "--parameters", "0", "--with", "planted:Wrong",
                    *SMALL, code=1)
    assert done.stdout == ""
    assert done.stderr.startswith("col.compare: wrong data: planted, all_reduce of 80 bytes: element 19 of rank 0 is ")
    assert done.stderr.count("\n") == 1


def test_blocks_in_wrong_places_are_exit_1():
    done = compared("-n", "2", "--sizes", "1K", "--ops", "reduce_scatter", "--parameters", "0", "--with", "planted:Swapped",
                    *SMALL, code=1)
    assert "wrong data: swapped, reduce_scatter of 1024 bytes: element 0 of rank 0 is " in done.stderr


def filled(operation, ranks, elements, round):
    """All ranks' Data before a call, and the right result of each rank after it."""
    data = []
    for rank in range(ranks):
        data.append(measure.Data(operation, *contenders.buffers(operation, 4 * elements, ranks), rank, ranks))
        data[-1].fill(round)
    inputs = [each.x.copy() for each in data]
    if operation == "all_gather":
        return data, [np.concatenate(inputs)] * ranks
    if operation == "broadcast":
        return data, [inputs[0]] * ranks
    sums = np.sum(inputs, 0)
    return data, np.split(sums, ranks) if operation == "reduce_scatter" else [sums] * ranks


@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 16, 31])
@pytest.mark.parametrize("operation", compare.OPERATIONS)
def test_wrong_results_are_found(operation, ranks):
    elements = 256 * ranks
    data, right = filled(operation, ranks, elements, 2)
    before = filled(operation, ranks, elements, 1)[1]
    for rank, each in enumerate(data):
        got = each.out if len(each.out) else each.x

        def problem(result):
            got[:] = result
            return each.problem(2)

        assert problem(right[rank]) is None
        assert problem(before[rank]), "the previous round's"
        for by in (1, 8, 256):
            assert problem(np.roll(right[rank], by)) or by % len(got) == 0, "rolled"
        if operation == "reduce_scatter":
            assert all(problem(right[other]) for other in range(ranks) if (rank - other) % 31), "another rank's block"


REFUSED = {
    "no size": (["--sizes", "8,x"], "'x' is no size in bytes; write a whole number from 4 on"),
    "half a float": (["--sizes", "10"], "10 bytes hold no whole float32; write a multiple of 4"),
    "no operation": (["--ops", "gather"], "there is no 'gather' here; choose from all_reduce"),
    "one rank": (["-n", "1"], "'1' is no number of ranks; write a whole number from 2 on"),
    "no time": (["--seconds", "0"], "--seconds must be more than 0"),
    "no limit": (["--limit", "-1"], "--limit must be more than 0"),
    "no picture": (["--picture", "x.gif"], "end it with .html or .svg"),
    "no folder": (["--json", "/none/x.json"], "there is no folder /none"),
    "a folder": (["--json", "/"], "cannot write /: it is a folder"),
    "no picture there": (["--picture", "/none.svg/x.svg"], "there is no folder /none.svg"),
    "no contender": (["--with", "none:Such"], "No module named 'none'; write MODULE:CLASS"),
    "no option": (["--sises", "8"], "unrecognized arguments: --sises"),
}


@pytest.mark.parametrize("options, words", REFUSED.values(), ids=REFUSED)
def test_refused(options, words, capsys, monkeypatch):
    monkeypatch.setattr(compare, "find", lambda name: name)
    monkeypatch.setattr(compare, "run", lambda *_, **more: pytest.fail("it has started ranks"))
    with pytest.raises(SystemExit) as ended:
        compare.main(options)
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.out == "" and words in said.err and said.err.count("\n") == 1


def test_units():
    options = compare.arguments(["--parameters", "30M", "--sizes", "64K,1M", "--ops", "broadcast,all_reduce,broadcast"])
    assert options.parameters == 30_000_000 and options.sizes == [1 << 16, 1 << 20]
    assert options.ops == ["broadcast", "all_reduce"], "each counts once"
    assert compare.arguments([]).parameters == 1_000_000


def test_a_file_that_may_not_be_written(monkeypatch, capsys, tmp_path):
    file = tmp_path / "x.json"
    file.write_text("kept")
    may = os.access
    monkeypatch.setattr(compare.os, "access", lambda path, mode: path != str(file) and may(path, mode))
    monkeypatch.setattr(compare, "find", lambda name: name)
    with pytest.raises(SystemExit):
        compare.main(["--json", str(file)])
    assert f"cannot write {file}: this user may not write to it" in capsys.readouterr().err and file.read_text() == "kept"


def test_the_table_is_there_where_a_file_cannot_be_written(monkeypatch, capsys, tmp_path):
    folder = tmp_path / "goes"
    folder.mkdir()

    def measured(*_):
        folder.rmdir()
        return {("all_reduce", 8): {"gloo": [[1.0]], '"col"': [[1.0]]}}, {}, [], {"torch": "9", "bound": [1, 1]}

    monkeypatch.setattr(compare, "find", lambda name: name)
    monkeypatch.setattr(compare, "measured", measured)
    with pytest.raises(SystemExit) as ended:
        compare.main(["--json", str(folder / "x.json")])
    said = capsys.readouterr()
    assert ended.value.code == 2 and "all_reduce 8 B" in said.out and "cannot write" in said.err


def test_without_colrun(monkeypatch, capsys):
    monkeypatch.setattr(compare, "find", lambda name: None)
    with pytest.raises(SystemExit) as ended:
        compare.main([])
    assert ended.value.code == 2
    assert "there is no colrun beside the package nor on PATH; pip install libcol" in capsys.readouterr().err


def test_without_torch(monkeypatch, capsys):
    monkeypatch.setattr(compare.importlib.util, "find_spec", lambda name: None if name == "torch" else name)
    with pytest.raises(SystemExit):
        compare.main([])
    assert f"there is no torch in {sys.executable}; pip install torch" in capsys.readouterr().err


def fails(request):
    raise ValueError("its own words")


def hangs(request):
    threading.Event().wait()


def test_ranks_that_fail(monkeypatch, capsys):
    monkeypatch.setattr(compare, "take_part", fails)
    with pytest.raises(SystemExit) as ended:
        compare.main(["-n", "2"])
    said = capsys.readouterr()
    assert ended.value.code == 5 and said.out == "" and "raised ValueError: its own words\n" in said.err
    assert said.err.endswith("col.compare: a rank of launch 0 has failed; its own words are above\n")


def test_ranks_that_hang(monkeypatch, capsys):
    monkeypatch.setattr(compare, "take_part", hangs)
    with pytest.raises(SystemExit) as ended:
        compare.main(["-n", "2", "--limit", "0.5"])
    assert ended.value.code == 5 and "launch 0 has not ended after 0.5 s; --limit allows it more" in capsys.readouterr().err


def test_a_wrong_gradient_leaves_no_rank_alone():
    """The ranks that have one ask for all others, too: to see a sharded one whole is a call of all ranks."""
    seen = []

    class Sharded:
        def __init__(self, place):
            self.place = place

        def full_tensor(self):
            seen.append(self.place)
            return torch.full((2,), float(self.place))

    parameters = [types.SimpleNamespace(grad=Sharded(place)) for place in range(4)]
    model = types.SimpleNamespace(parameters=lambda: parameters)
    problem = steps._problem(model, [torch.full((2,), wanted) for wanted in (0.0, 7.0, 7.0, 3.0)])
    assert problem == "the gradient of parameter 1 is off by 6, of 7" and seen == [0, 1, 2, 3]


class Other:
    """A world of two ranks, of which the other one's answers are known."""

    def __init__(self, *works):
        self.works = iter(works)

    def allreduce(self, x, op):
        x[0] = min(x[0], next(self.works))


def raises(error):
    def call():
        raise error

    return call


def test_the_ranks_choose_the_same_call():
    first, second = (lambda: 1), (lambda: 2)
    assert contenders._first_that_works("gloo", Other(1), first, second) is first
    assert contenders._first_that_works("gloo", Other(0, 1), first, second) is second
    assert contenders._first_that_works("gloo", Other(1, 1), raises(RuntimeError("none")), second) is second
    with pytest.raises(contenders.Missing, match="no such call in this torch: none"):
        contenders._first_that_works("gloo", Other(1), raises(RuntimeError("none\nat all")))
    with pytest.raises(col.PeerLost):  # no missing call, but a failure
        contenders._first_that_works('"col"', Other(1, 1), raises(col.PeerLost("rank 1", 1, 1)), second)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_nobody_always_follows_the_same(size):
    orders = [measure.order(size, 3, round) for round in range(2 * size)]
    assert all(sorted(each) == list(range(size)) for each in orders)
    assert sorted(each[0] for each in orders) == sorted(2 * list(range(size)))
    followed = {after: {each[i - 1] for each in orders for i in range(1, size) if each[i] == after} for after in range(size)}
    assert all(len(before) >= min(size - 1, 2) for before in followed.values())


def test_all_are_warmed_up_alike(monkeypatch):
    made = []

    class One:
        def __init__(self, name):
            self.name = name

        def call(self, operation, x, out):
            return lambda: made.append(self.name)

    class OfTorch(contenders.Torch):
        def _calls(self, operation, x, out):
            return [lambda: made.append(self.name)]

    alone = types.SimpleNamespace(rank=0, size=1, allreduce=lambda x, op: None)
    monkeypatch.setattr(measure.Data, "problem", lambda *_: None)
    rows = measure.measure(measure.Clock(alone, 1), [OfTorch("torch", None, alone), One("own")], "all_reduce", 8, 1e-9, 0)
    assert made.count("torch") == made.count("own") == 3 + len(rows[0]["seconds"])


# ---- The statistics


@pytest.mark.parametrize("launches, ends", [(5, None), (6, (0, 5)), (11, (0, 10)), (20, (2, 17)), (40, (8, 31))])
def test_interval(launches, ends):
    """As colbench's: docs/benchmarking.md."""
    assert results.interval([float(each) for each in reversed(range(launches))]) == ends


def test_where_col_is_behind():
    def of(own):
        return {"gloo": [[1.0, 2.0, 1.0]] * 6, '"col"': [[each] for each in own]}

    samples = {
        ("all_reduce", 8): of([0.5] * 6), ("all_reduce", 1024): of([2.0] * 6), ("broadcast", 8): of([0.5, 2.0] * 3),
        ("reduce_scatter", 8): {"gloo": [[]], '"col"': [[1.0]]},
    }
    assert results.verdicts(samples, ["gloo", '"col"']) == [
        'col is behind: all_reduce 1 KiB: "col" takes 2.00 times as long as Gloo',
        'no difference shown: broadcast 8 B ("col", Gloo)',
    ]
    assert results.table(samples, ["gloo", '"col"']).splitlines()[1] == "all_reduce 8 B      1.00 s  500 ms  2.00× [2.00, 2.00]"
    del samples["all_reduce", 1024]
    assert results.verdicts(samples, ["gloo", '"col"'])[0] == "col is behind in no row."


def test_where_col_is_behind_another_than_gloo():
    one = {"gloo": [[3.0]] * 6, '"col"': [[2.0]] * 6, "col.Group": [[1.0]] * 6, "mpi4py": [[1.0]] * 6}
    assert results.verdicts({("all_reduce", 8): one}, list(one)) == [
        'col is behind: all_reduce 8 B: "col" takes 2.00 times as long as mpi4py',
        "no difference shown: all_reduce 8 B (col.Group, mpi4py)",
    ]


def test_too_few_launches_say_nothing():
    slow = {"gloo": [[1.0]] * 5, '"col"': [[2.0]] * 5}
    few = "too few launches to say where col is behind (6 make an interval)"
    assert results.verdicts({("all_reduce", 8): slow}, list(slow)) == [few]
    assert results.verdicts({("all_reduce", 8): {**slow, '"col"': [[0.5]] * 5}}, list(slow)) == [few]


@pytest.mark.parametrize("samples", [{}, {("all_reduce", 8): {"gloo": [[]] * 6, '"col"': [[1.0]] * 6}}], ids=["no row", "no Gloo"])
def test_nothing_compared(samples):
    assert results.verdicts(samples, ["gloo", '"col"']) == ["col was compared in no row; the notes say why."]


def test_bytes_and_elements_are_the_real_ones():
    rows = {(operation, 8): {"gloo": [[1.0, 1.0], [1.0]]} for operation in compare.OPERATIONS}
    assert results.rounded(rows, 3) == [
        "blocks of equal size for 3 ranks: all_gather 8 B has 12 B, reduce_scatter 8 B has 12 B"]
    assert results.rounded(rows, 2) == []
    for ranks, wanted in ((2, [4, 4, 2, 4]), (3, [6, 9, 3, 6])):  # that all ranks have compared of one result
        cells = results.document(rows, {}, {"ranks": ranks}, [])["cells"]
        assert [cell["check"]["elements"] for cell in cells] == [3 * each for each in wanted]
        for cell, operation in zip(cells, compare.OPERATIONS):
            x, out = contenders.buffers(operation, 8, ranks)
            assert cell["check"]["elements"] == 3 * ranks * (len(out) or len(x))
