"""col.plan: every algorithm as a plan; what verify, simulate and the drawings say; files; a plan of one's own that runs."""

import json
import pathlib
import re
import xml.etree.ElementTree

import numpy as np
import pytest

import col
import ranks

DOCS = pathlib.Path(__file__).parents[2] / "docs"
COLLECTIVES = [
    "allreduce", "reduce", "broadcast", "allgather", "allgatherv", "reduce_scatter", "reduce_scatterv", "gather",
    "gatherv", "scatter", "scatterv", "alltoall", "alltoallv", "scan", "exscan", "barrier",
]
ALGORITHMS = [(collective, name) for collective in COLLECTIVES for name in col.plan.algorithms(collective)]
EQUAL_BLOCKS_ONLY = {("gatherv", "binomial"), ("scatterv", "binomial"), ("alltoallv", "bruck")}
ROOTED = {"reduce", "broadcast", "gather", "gatherv", "scatter", "scatterv"}


def problem_of(collective, size):
    """Arguments of build(): an odd count, another root than 0, and blocks of different lengths, empty ones among them."""
    problem = {"root": size - 1} if collective in ROOTED else {}
    if collective == "alltoallv":
        problem["counts"] = [[(3 * row + column) % 4 for column in range(size)] for row in range(size)]
    elif collective.endswith("v"):
        problem["counts"] = [(r + 1) % 3 for r in range(size)]
    else:
        problem["count"] = 0 if collective == "barrier" else 7
    return problem


def test_every_collective_has_algorithms():
    assert {collective for collective, _ in ALGORITHMS} == set(COLLECTIVES)
    assert "bde" in col.plan.algorithms("allreduce") and all(col.plan.algorithms("allreduce").values())


@pytest.mark.parametrize("collective, algorithm", sorted(EQUAL_BLOCKS_ONLY))
def test_an_algorithm_that_cannot_says_so(collective, algorithm):
    with pytest.raises(col.InvalidArgument, match=f"plan: {algorithm}.* use "):
        col.plan.build(collective, algorithm, 4, **problem_of(collective, 4))


@pytest.mark.parametrize("collective, algorithm", sorted(set(ALGORITHMS) - EQUAL_BLOCKS_ONLY))
def test_plans_are_good_and_survive_json(collective, algorithm):
    nodes = [0, 0, 1, 1] if algorithm.startswith("two_level") else []
    plan = col.plan.build(collective, algorithm, 4, nodes=nodes, **problem_of(collective, 4))
    assert (plan.collective, plan.name, plan.ranks) == (collective, algorithm, 4)
    verdict = plan.verify()
    assert verdict and verdict.good and verdict.problem == "" and verdict.messages > 0
    for again in col.plan.parse(plan.to_json()), col.plan.parse(plan.document()):
        assert (again.collective, again.name, again.ranks) == (collective, algorithm, 4)
        assert [again.steps(r) for r in range(4)] == [plan.steps(r) for r in range(4)]
        assert again.verify() and again.verify().elements_sent == verdict.elements_sent


def test_steps():
    plan = col.plan.build("broadcast", "mst", ranks=2, count=3, root=1)
    assert plan.steps(1) == [[{"send": ["output", 0, 3], "to": 0}]]
    assert plan.steps(0) == [[{"recv": ["output", 0, 3], "from": 1}]]
    for rank in -1, 2:
        with pytest.raises(IndexError, match="not one of the 2 ranks"):
            plan.steps(rank)


def test_count_is_one_element_for_each_rank():
    assert col.plan.build("allreduce", "ring", 5).document()["count"] == 5


def test_parameters():
    def rounds(algorithm, **problem):
        return col.plan.build("broadcast", algorithm, 9, **problem).verify().rounds

    assert rounds("knomial:radix=9") < rounds("knomial:radix=3")
    # 64 bytes are 16 elements of 4 bytes, or 8 of 8.
    of_4, of_8 = (rounds("chain_pipelined:segment=64", count=64, element_size=size) for size in (4, 8))
    assert of_8 == of_4 + 4


def test_a_lost_message_is_found():
    document = col.plan.build("allreduce", "mst", 4, 1).document()
    assert document["plans"][0][-1].pop() == {"send": ["output", 0, 1], "to": 1}
    verdict = col.plan.parse(document).verify()
    assert not verdict and not verdict.good
    assert verdict.rank == 1 and verdict.round == 3
    assert "from rank 0" in verdict.problem and verdict.problem in repr(verdict)


def test_a_wrong_sum_is_found():
    document = col.plan.build("allreduce", "bde", 2, 1).document()
    for step in document["plans"][1][0]:
        if "reduce" in step:
            step["reduce"] = [step["reduce"][0]] * 2
    verdict = col.plan.parse(document).verify()
    assert not verdict and verdict.rank == 1


def test_verdict():
    verdict = col.plan.build("allreduce", "mst", 8, 5).verify()
    assert (verdict.rounds, verdict.messages, verdict.elements_sent, verdict.most_elements_sent) == (6, 14, 70, 15)
    assert verdict.order == "contiguous"
    assert repr(verdict) == "<good: 6 rounds, 14 messages, 70 elements sent>"


def test_simulate():
    mst = col.plan.build("allreduce", "mst", 8, 100)
    bde = col.plan.build("allreduce", "bde", 8, 100)
    free = {"beta": 0, "gamma": 0}
    assert mst.simulate(alpha=1, **free).seconds == pytest.approx(6)
    assert bde.simulate(alpha=1, **free).seconds == pytest.approx(3)
    assert bde.simulate(alpha=0, beta=1, gamma=0).seconds == pytest.approx(3 * 400)
    assert bde.simulate(alpha=0, beta=0, gamma=1).seconds == pytest.approx(3 * 400)
    simulation = mst.simulate()
    assert simulation.messages == 14 and simulation.bytes_intra == 14 * 400 and simulation.bytes_inter == 0
    assert len(simulation.rank_seconds) == 8 and max(simulation.rank_seconds) == simulation.seconds


def test_simulate_nodes_and_cores():
    plan = col.plan.build("allreduce", "bde", 4, 100, nodes=[0, 0, 1, 1], element_size=8)
    simulation = plan.simulate(alpha=1, inter_alpha=10, beta=0, gamma=0)
    assert simulation.seconds == pytest.approx(11)
    assert simulation.bytes_intra == simulation.bytes_inter == 4 * 800
    assert simulation.node_bytes_out == simulation.node_bytes_in == [2 * 800, 2 * 800]
    assert plan.simulate(alpha=1, beta=0, gamma=0).seconds == pytest.approx(2)  # between nodes the same, if not said
    assert plan.simulate(alpha=0, beta=0, gamma=1, cores=1).seconds > plan.simulate(alpha=0, beta=0, gamma=1).seconds


def test_simulate_wide():
    """Sums of narrow floats travel as float32."""
    plain, wide = (col.plan.build("allreduce", "bde", 4, 100, widens=w, element_size=2) for w in (False, True))
    assert wide.verify() and wide.simulate().bytes_intra > plain.simulate().bytes_intra


def test_drawings():
    plan = col.plan.build("allreduce", "ring", 4)
    for picture in plan.draw(), plan._repr_svg_():
        root = xml.etree.ElementTree.fromstring(picture)
        assert root.tag.endswith("svg") and "allreduce ring" in picture
    assert str(plan).startswith("allreduce ring: 4 ranks, 6 rounds, 24 messages\n") and "→1 x0[0]" in str(plan)
    assert repr(plan) == "<col.plan.Plan: allreduce ring, 4 ranks>"


def test_too_large_for_a_drawing():
    plan = col.plan.build("allreduce", "bde", 65)
    assert plan._repr_svg_() is None  # a notebook shows repr() then
    assert str(plan) == repr(plan)
    with pytest.raises(col.InvalidArgument, match="65 ranks is too large to draw"):
        plan.draw()


def example_of_the_docs():
    return re.search(r"```json\n(.*?)```", (DOCS / "plans.md").read_text(encoding="utf-8"), re.DOTALL)[1]


def test_a_plan_in_chunks():
    text = example_of_the_docs()
    assert col.plan.parse(text).document()["count"] == 3
    for count in 0, 1, 3, 1000:
        plan = col.plan.parse(text, count)
        assert plan.name == "ring of three" and plan.verify()


def allreduce_by_file(group, path, count, in_place):
    x = np.arange(count) * 10.0 + group.rank
    return group.allreduce(x, x if in_place else np.empty_like(x), algorithm=f"file:{path}")


@pytest.mark.parametrize("in_place", [False, True])
def test_a_saved_plan_runs(tmp_path, in_place):
    path = tmp_path / "mine.json"
    plan = col.plan.build("allreduce", "mst", 3, 20, in_place=in_place)
    plan.save(path)
    assert col.plan.load(path).steps(2) == plan.steps(2)
    want = np.arange(20) * 30.0 + 3
    for result in ranks.run(3, allreduce_by_file, path, 20, in_place):
        np.testing.assert_array_equal(result, want)
    built = col.plan.build("allreduce", f"file:{path}", 3, 20, in_place=in_place)
    assert built.steps(1) == plan.steps(1)


def build(*args, **kwargs):
    return lambda: col.plan.build(*args, **kwargs)


def parse(change):
    def call():
        document = json.loads(example_of_the_docs())
        document.update(change)
        return col.plan.parse(document)

    return call


REFUSED = {
    "collective": (build("alreduce", "ring", 4), "allreduce"),
    "message": (build("send", "ring", 4), "send has no algorithm 'ring', nor any other"),
    "algorithm": (build("allreduce", "rong", 4), "no algorithm 'rong'; choose from .*ring"),
    "algorithms": (lambda: col.plan.algorithms("alreduce"), "allreduce"),
    "no parameter": (build("allreduce", "ring:radix=3", 4), "ring has no parameter 'radix'"),
    "no segment": (build("allreduce", "ring:segment=3", 4), "ring has no parameter 'segment'"),
    "count": (build("allreduce", "ring", 4, -1), "count is -1"),
    "counts": (build("allgatherv", "ring", 2, counts=[1, -2]), "a count is -2"),
    "number of counts": (build("allgatherv", "ring", 2, counts=[1]), "count"),
    "ranks": (build("allreduce", "ring", 0), "0"),
    "root": (build("reduce", "mst", 4, root=4), "root"),
    "nodes": (build("allreduce", "ring", 4, nodes=[0, 0]), "node"),
    "element_size": (build("allreduce", "ring", 4, element_size=-4), "element_size is -4"),
    "not JSON": (lambda: col.plan.parse("{"), "not valid JSON at line 1"),
    "version": (parse({"version": 2}), "/version"),
    "member": (parse({"plan": []}), "plan"),
    "peer": (parse({"ranks": 2}), "ranks"),
    "simulate": (lambda: col.plan.build("allreduce", "ring", 4).simulate(alpha=-1.0), "at least 0"),
    "not a number": (lambda: col.plan.build("allreduce", "ring", 4).simulate(beta=float("nan")), "at least 0"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    call, words = REFUSED[what]
    with pytest.raises(col.InvalidArgument, match=words):
        call()


def test_a_plan_is_for_its_count(tmp_path):
    col.plan.build("allreduce", "ring", 4, 20).save(tmp_path / "of20.json")
    with pytest.raises(col.InvalidArgument, match="20"):
        col.plan.load(tmp_path / "of20.json", count=21)
    with pytest.raises(FileNotFoundError):
        col.plan.load(tmp_path / "none.json")
    with pytest.raises(col.IoError, match="none.json"):
        col.plan.build("allreduce", f"file:{tmp_path / 'none.json'}", 4)


def test_the_example_of_the_docs(tmp_path, monkeypatch):
    example = re.search(r"```python\n(plan = .*?)```", (DOCS / "python.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    names = {"col": col}
    exec(example, names)
    assert repr(names["plan"].verify()) in example
    assert col.plan.load("mine.json").verify()
