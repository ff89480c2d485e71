"""The programs of torch's tutorials: the same losses on col as on Gloo. scripts/torch-tests runs it on the newest torch, and on older
ones what those have.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
PROGRAMS = pathlib.Path(__file__).with_name("programs.py")
NAMES = "ddp zero fsdp2 fsdp2_in_shared_memory tensor_parallel pipeline mesh functional_collectives compiled objects".split()
_outputs = {}


def outputs(backend, size):
    """All programs in one launch: most of the time goes into importing torch. One that hangs is ended once, for all its tests."""
    if (backend, size) not in _outputs:
        done = subprocess.run(
            [os.environ["COLRUN"], "--timeout", "280", "-n", str(size), sys.executable, "-W", "ignore", str(PROGRAMS), backend, *NAMES],
            capture_output=True, text=True, timeout=300,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        _outputs[backend, size] = {name: values for line in lines for name, values in line.items()}, done
    return _outputs[backend, size]


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_on_col_as_on_gloo(name, size):
    found, done = outputs("col", size)
    assert name in found, done.stderr[-4000:]
    if VERSION < (2, 15) and isinstance(found[name], str):
        pytest.skip(found[name])
    if VERSION == (2, 8) and name.startswith("fsdp2"):
        pytest.skip("Gloo of torch 2.8 adds where FSDP averages: there is nothing to compare with")
    wanted, done = outputs("gloo", size)
    assert name in wanted, done.stderr[-4000:]
    # Two numbers have one sum; more of them depend on the order.
    assert found[name] == (wanted[name] if size == 2 or name == "objects" else pytest.approx(wanted[name], rel=1e-5))


@pytest.mark.parametrize("backend", ["col", "gloo"])
def test_the_programs_end_well(backend):
    done = outputs(backend, 2)[1]
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.skipif(VERSION < (2, 13), reason="older torch looks for no entry point")
def test_torch_finds_the_backend_of_a_wheel(tmp_path):
    """By the entry point in the wheel's metadata, without an import."""
    package = tmp_path / "libcol-0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: libcol\nVersion: 0\n")
    (package / "entry_points.txt").write_text("[torch.distributed.backends]\ncol = col.torch:register\n")
    program = "import torch, torch.distributed as dist; dist.init_process_group('col'); dist.all_reduce(torch.ones(1)); " \
              "print(dist.get_backend())"
    done = subprocess.run(
        [os.environ["COLRUN"], "-n", "2", sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{tmp_path}"},
    )
    assert done.stdout.split() == ["col", "col"], done.stderr[-4000:]
