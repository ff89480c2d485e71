"""The notebook in which actors sum by messages, small; and the script that runs cells, such as those of the notebook that it
was written after."""

import re

import pytest

import cells
from test_documents import EXAMPLES, run

NOTEBOOK = EXAMPLES / "notebook" / "ray_allreduce.ipynb"


@pytest.mark.parametrize("whose", ["col", "ray"])
def test_notebook(whose):
    """With either's operators; and with col's once more from the first cell on, in the same process: Ray starts anew."""
    changes = [(r"^size = 1 << 23", "size = 1 << 10"), (r"^num_trials = 10", "num_trials = 2"), ("^world_size = 8", "world_size = 4")]
    if whose == "ray":
        changes += [("^from col.ray import types", "from ray.util.collective import types")]
    words = [word for change in changes for word in ("--sub", *change)]
    lines = run(cells.__file__, str(NOTEBOOK), *words, "--order", "1-10" if whose == "ray" else "1-10,1-8")
    assert lines[0] == f"10 cells, {len(changes)} changes"
    right = str(dict.fromkeys(["p2p", "ray_all_reduce", "bde_all_reduce", "mst_all_reduce"], True))
    assert lines.count(right) == (1 if whose == "ray" else 2)
    assert "bde_all_reduce: sent [2, 2, 2, 2], 8 in all; received [2, 2, 2, 2]" in lines
    assert "mst_all_reduce: sent [2, 1, 1, 2], 6 in all; received [2, 1, 1, 2]" in lines
    assert sum(bool(re.match(r"\w+ +[\d.]+ MB in [\d.]+ s: +[\d.]+ MB/s", line)) for line in lines) == 4


PRINTED = """# Title

In [1]:
import ray.util.collective as col
# a comment
if col:
    x = 1

2024-03-04 23:45:56,307\tINFO util.py:154 -- Outdated packages:
0,1

# Prose
In [12]:
y = x + 1
y

***** an output *****
2
"""


def test_cells_of_a_printed_notebook(tmp_path):
    path = tmp_path / "printed.txt"
    path.write_text(PRINTED)
    assert cells.read(path) == ["import ray.util.collective as col\n# a comment\nif col:\n    x = 1", "y = x + 1\ny"]
    assert cells.numbers("1-3,7,1") == [1, 2, 3, 7, 1]
    lines = run(cells.__file__, str(path), "--order", "1,2")
    assert lines[0] == "2 cells, 1 changes" and lines[2] == "2"
