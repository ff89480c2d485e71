"""`%%ranks` and col.run in a real notebook, with a kernel of Jupyter."""

import os

import pytest

import col
import processes

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("cloudpickle")


def run(*cells, **options):
    """The cells' outputs as text: what is printed, results and errors."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(book, allow_errors=True, **{"timeout": processes.LIMIT, **options})
    package = os.path.dirname(os.path.dirname(os.path.abspath(col.__file__)))
    client.execute(env={**os.environ, "PYTHONPATH": package})
    return [[said(output) for output in cell.outputs] for cell in book.cells], book


def said(output):
    if output.output_type == "stream":
        return output.text
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    return output.data["text/plain"]


def test_cells_on_ranks():
    outputs, book = run(
        "%load_ext col",
        "%ranks",
        "%%ranks 2 60\nimport array\nx = array.array('f', [world.rank + 1])\nprint('made')\nx[0]",
        "%%ranks\nworld.allreduce(x)\nx[0]",
        "%ranks",
        "%%ranks\ncol.plan.build('allreduce', 'ring', ranks=2, count=4)",
        "%%ranks\nif world.rank == 1:\n    raise ValueError('as a test wants')\nworld.barrier()",
        "%%ranks\nx[0]",
        "%ranks end",
        "%%ranks nonsense\n1",
        "import col\ny = 5\ndef of_a_cell(x):\n    return col.get_rank() * x + y\ncol.run(2, of_a_cell, 3)",
    )
    assert "no ranks" in outputs[1][0]
    assert "made" in "".join(outputs[2]) and "rank 0: 1.0\nrank 1: 2.0" in outputs[2][-1]
    assert outputs[3][-1] == "ranks 0-1: 3.0"
    assert "array, x" in outputs[4][0] and outputs[4][0].count("rank ") == 2
    assert "<svg" in book.cells[5].outputs[-1].data["text/html"]
    assert outputs[6][-1].startswith("RankFailed: rank 1 raised ValueError: as a test wants")
    assert "<ranks cell" in outputs[6][-1]
    assert outputs[7][-1] == "ranks 0-1: 3.0"
    assert outputs[8] == [] and outputs[9][-1].startswith("InvalidArgument: %%ranks N")
    assert outputs[10] == ["[5, 8]"]


def test_the_interrupt_button():
    outputs, _ = run(
        "%load_ext col",
        "%%ranks 2\nimport os\npid = os.getpid()\nprint('ready')",
        "%%ranks\nimport time\nwhile world.rank == 1:\n    time.sleep(0.01)\nworld.barrier()",
        "%%ranks\npid == os.getpid(), world.size",
        interrupt_on_timeout=True, timeout=10)
    assert outputs[2][-1].startswith("KeyboardInterrupt")
    assert outputs[3][-1] == "ranks 0-1: (True, 2)"
