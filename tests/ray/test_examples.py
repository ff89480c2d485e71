"""The examples that compare col with Ray's object store, small and without spaCy, as a reader would start them; and their
parts, without Ray."""

import os
import pathlib
import re
import subprocess
import sys
import threading
import types
import xml.etree.ElementTree

import numpy as np
import pytest

import clusters

EXAMPLES = pathlib.Path(__file__).parents[2] / "src" / "examples" / "python"
SPACY_NER = EXAMPLES / "spacy_ner"
sys.path.insert(0, str(SPACY_NER))

import corpus  # noqa: E402
import layout  # noqa: E402
import report  # noqa: E402
import store  # noqa: E402
import synthetic  # noqa: E402
import train  # noqa: E402


def example(script, *options):
    answer = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *map(str, options)], env={**os.environ, **clusters.ALONE},
        capture_output=True, text=True, timeout=120,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def cells(line):
    return [cell.strip() for cell in line.strip("| \n").split("|")]


def tables(text):
    """Each table as a list of rows, the header among them."""
    return [
        [cells(line) for line in block.splitlines() if not line.startswith("| -")]
        for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    ]


def test_training_by_the_store_and_by_col(tmp_path):
    """The program itself compares parameters and losses of the ways, and fails if they differ."""
    picture = tmp_path / "result.svg"
    out = example(
        "spacy_ner/train.py", "--synthetic", "--workers", 1, 2, "--updates", 20, "--trials", 1, "--block", 10,
        "--ways", "store", "store-shards", "col-keys", "col", "--plot", picture,
    )  # fmt: skip
    assert "24 parameters with 924,768 elements" in out
    runtime, scaling, *against, learning = tables(out)
    ways = ["store", "store-shards", "col-keys", "col"]
    assert runtime[0] == ["workers", *ways, *(f"col against {way}" for way in ways[:-1])]
    assert [row[0] for row in runtime[1:]] == ["1", "2"]
    assert scaling[1] == ["1", *["1.00"] * 5]
    assert [len(rows) for rows in against] == [2, 2, 2]  # nothing is exchanged by one worker
    for row in learning[1:]:
        for cell in row[1:]:
            first, last = map(float, cell.split(";")[0].split("->"))
            assert last < 0.5 * first, row
    assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_allreduce_by_the_object_store_and_by_a_collective():
    """The program itself verifies every sum."""
    out = example("allreduce_vs_objectstore.py", "--workers", 2, "--rounds", 2, "--bytes", 4000, 400000)
    (rows,) = tables(out)
    assert [row[0] for row in rows[1:]] == ["4,000", "400,000"]
    for row in rows[1:]:
        size = int(row[0].replace(",", ""))
        put, returned, collective = (int(cell.replace(",", "")) for cell in row[-3:])
        assert 3 * size <= put <= 3 * size + 3000  # two gradients and their sum, and what Ray adds
        assert returned == 0 if size < store.IN_CALL_BYTES else 3 * size <= returned <= 3 * size + 3000
        assert collective == 0


def test_spacys_project_runs_programs_that_there_are_with_options_that_they_have():
    """As `spacy project run` reads the file: it puts in the variables, and calls each line."""
    yaml = pytest.importorskip("yaml")
    project = yaml.safe_load((SPACY_NER / "project.yml").read_text(encoding="utf-8"))
    commands = {command["name"]: command for command in project["commands"]}
    assert "ray-train" in commands and set(project["workflows"]["all"]) <= set(commands)
    for name, command in commands.items():
        assert command["help"] and all((SPACY_NER / path).is_file() for path in command.get("deps", []))
        for line in command["script"]:
            python, script, *words = re.sub(r"\$\{vars\.(\w+)\}", lambda found: str(project["vars"][found[1]]), line).split()
            assert python == "python" and (SPACY_NER / script).is_file() and "$" not in " ".join(words)
            if script == "train.py":
                options = train.parser.parse_args(words)
                assert options.workers == [1, 2, 4] and options.synthetic == (name != "ray-train")


# ---- The parts


def test_layout_shares_out_all_keys():
    shapes = synthetic.tok2vec_shapes()
    assert (len(shapes), sum(int(np.prod(shape)) for shape in shapes.values())) == (24, 924_768)
    for owners in 1, 2, 3, 8, 16, 24:
        plan = layout.Layout(shapes, owners)
        assert sorted(key for keys in plan.keys_of for key in keys) == sorted(shapes)
        assert all(plan.keys_of)
        begins = [shard.start for shard in plan.shards]
        assert begins == [0, *(shard.stop for shard in plan.shards[:-1])] and plan.shards[-1].stop == plan.size == 924_768
        sizes = [shard.stop - shard.start for shard in plan.shards]
        assert max(sizes) <= max(924_768 / owners + 192_000, 192_000)
    with pytest.raises(ValueError, match="25 workers cannot share 24 parameters"):
        layout.Layout(shapes, 25)


class Peer:
    """Stands for an actor: a remote call is a call."""

    def __init__(self):
        self.inc_grad = self.set_param = types.SimpleNamespace(remote=self.receive)
        self.lost = False

    def receive(self, way, message, version, sender, value):
        assert way == "store"
        if not self.lost:
            self.store.receive(message, version, sender, value.copy())


@pytest.fixture
def four_stores(monkeypatch):
    monkeypatch.setattr(store.ray, "put", lambda value: value)
    peers = [Peer() for _ in range(4)]

    def make(by_key, timeout):
        for rank, peer in enumerate(peers):
            task = synthetic.SyntheticTask(rank, 4, work=0)
            plan = layout.Layout(task.shapes, 4)
            peer.store = store.Store("store", rank, plan, peers, by_key, timeout)
            peer.task, peer.state, peer.error = task, task.new_state(plan), None
        return peers

    return make


def update(peer):
    try:
        peer.task.compute(peer.state)
        peer.store.exchange(peer.state, peer.task.apply)
    except TimeoutError as error:
        peer.error = error


def update_all(peers):
    threads = [threading.Thread(target=update, args=[peer]) for peer in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("by_key", [True, False])
def test_the_store_makes_the_updates_of_one_worker_with_all_points(four_stores, by_key):
    peers = four_stores(by_key, timeout=10)
    wanted = {key: value.copy() for key, value in peers[0].task.initial.items()}
    for _ in range(3):
        update_all(peers)
        for key, value in wanted.items():
            value -= synthetic.RATE * np.mean([value - peer.task.points[key] for peer in peers], axis=0)
    for peer in peers:
        assert peer.error is None
        assert not peer.store.arrived
        np.testing.assert_array_equal(peer.state.parameters, peers[0].state.parameters)
        for key, value in wanted.items():
            np.testing.assert_allclose(peer.state.parameter[key], value, atol=1e-5)


def test_the_store_says_who_is_missing(four_stores):
    peers = four_stores(False, timeout=0.5)
    update_all(peers[:3])
    assert "has come from [1, 2], and should have from 3 workers" in str(peers[0].error)


class FakeRun(train.Run):
    """Has results instead of workers."""

    def __init__(self, **parameters):
        self.ways = [way for way in parameters if way != "alone"]
        self.parameter_lists = parameters
        self.result = report.Measured(2)

    def all(self, method, way, *arguments, updates=0):
        return self.parameter_lists[way] if method == "parameters" else []


def test_the_check_of_parameters():
    start, end = np.zeros(10), np.ones(10)
    near, far = end + 1e-5, end * 1.01
    FakeRun(alone=[start] * 2, store=[end] * 2, col=[near] * 2).check()
    with pytest.raises(SystemExit, match="col: the workers have different parameters"):
        FakeRun(alone=[start] * 2, store=[end] * 2, col=[end, near]).check()
    with pytest.raises(SystemExit, match="col: the parameters moved by 3.16, and are 0.0316 from those of store"):
        FakeRun(alone=[start] * 2, store=[end] * 2, col=[far] * 2).check()


@pytest.mark.parametrize("name, hint", [("spacy", "pip install spacy, or use --synthetic"), ("ray", "pip install ray$")])
def test_what_is_not_installed_is_named(monkeypatch, name, hint):
    monkeypatch.setattr(train.importlib.util, "find_spec", lambda other: other != name)
    with pytest.raises(SystemExit, match=f"not installed: {name}. {hint}"):
        train.main(train.parser.parse_args([]))


def test_the_check_of_losses():
    run = FakeRun(store=[], col=[])
    run.result.losses = {"store": (4.0, 1.0), "col": (4.0, 1.0)}
    run.check_losses({"store": [4.0, 1.0], "col": [4.0, 1.1]})
    with pytest.raises(SystemExit, match="mean loss is 3 by col, but 2.5 by store"):
        run.check_losses({"store": [4.0, 1.0], "col": [4.0, 2.0]})
    run.result.losses["col"] = 4.0, 4.5
    with pytest.raises(SystemExit, match="col: the loss was 4 at first and is 4.5 in the end"):
        run.check_losses({"store": [4.0, 1.0], "col": [4.0, 4.5]})


def test_the_report_has_amdahls_bound_and_the_crossing():
    row = report.Measured(4)
    row.steps = {"alone": [20.0, 22.0], "store": [60.0, 66.0], "col": [24.0, 26.4]}
    row.exchanges = {"store": [40.0], "col": [4.0]}
    header, line = tables(report.against([report.Measured(1), row], "store", "col"))[0]
    found = dict(zip(header[:3] + ["exchange: col"] + header[4:6] + ["share: col"] + header[7:], line))
    assert found["compute"] == "21.0 ms" and found["gain"] == "10.0x"
    assert found["compute's share: store"] == "33 %" and found["share: col"] == "83 %"
    assert found["update: gain"] == "2.50x" and found["Amdahl's bound"] == "3.00x"
    crossing = 40 - 2 * 4
    assert found["2x up to a compute of"] == f"{crossing} ms"
    assert (crossing + 40) / (crossing + 4) == 2


def test_the_corpus_is_always_the_same_and_labels_are_where_names_are():
    texts = corpus.make_texts(500, seed=1)
    assert texts == corpus.make_texts(500, seed=1) != corpus.make_texts(500, seed=2)
    names = {"PERSON": corpus.GIVEN, "ORG": corpus.FIRM, "PLACE": corpus.PLACE}
    found = set()
    for text, entities in texts:
        for begin, end, label in entities:
            words = names[label].split("|")
            assert any(text[begin:end].startswith(word) for word in words), text
            assert text[end] == " " and (begin == 0 or text[begin - 1] in ' "')
            found.add(label)
    assert found == set(names)
