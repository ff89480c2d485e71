"""col.vllm under a stand-in of vLLM (stand_in/): what is chosen, and the calls of its groups. scripts/dev vllm-try has the real one."""

import os
import pathlib
import subprocess
import sys

import pytest
import torch

import col

import processes

HERE = pathlib.Path(__file__).resolve().parent
PYPROJECT = HERE.parent.parent / "pyproject.toml"


def entry_points():
    """What the wheel's metadata has of vLLM, as pyproject.toml says it."""
    text = PYPROJECT.read_text(encoding="utf-8")
    return text.split('[project.entry-points."vllm.platform_plugins"]\n')[1].split("\n\n")[0].replace('"', "")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """PYTHONPATH with the stand-in, and with col as an installed wheel."""
    folder = tmp_path_factory.mktemp("site")
    package = folder / "libcol-0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: libcol\nVersion: 0\n")
    (package / "entry_points.txt").write_text(f"[vllm.platform_plugins]\n{entry_points()}\n")
    return f"{os.environ['PYTHONPATH']}:{folder}:{HERE / 'stand_in'}"


def chosen(path, plugins, device="cpu"):
    """The platform's class, its backend, what was warned, and the modules of col that have been imported."""
    program = ("import sys; from vllm.platforms import current_platform as own; kind = type(own); "
               "print(kind.__module__, kind.__mro__[1].__name__, getattr(own, 'dist_backend', '')); "
               "print(*[name for name in sys.modules if name.startswith('col.')])")
    env = {key: value for key, value in os.environ.items() if key != "VLLM_PLUGINS"}
    env.update({"PYTHONPATH": path, "STAND_IN_DEVICE": device}, **({} if plugins is None else {"VLLM_PLUGINS": plugins}))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=processes.LIMIT, env=env)
    assert done.returncode == 0, done.stderr
    return (*done.stdout.splitlines(), done.stderr)


@pytest.mark.parametrize("plugins", [None, "", "other", "column", "other,COL"])
def test_installed_and_not_named_nothing_changes(path, plugins):
    kind, modules, said = chosen(path, plugins)
    assert kind == "vllm.platforms.cpu object gloo" and said == ""
    assert "col.torch" not in modules.split() and "col.vllm.platform" not in modules.split()


@pytest.mark.parametrize("plugins", ["col", "other,col"])
def test_named(path, plugins):
    assert chosen(path, plugins)[0] == "col.vllm.platform CpuPlatform col"
    assert chosen(path, plugins, "other cpu")[0] == "col.vllm.platform OtherCpuPlatform col"


def test_vllm_that_is_told_its_device_asks_no_plug_in(path, monkeypatch):
    monkeypatch.setenv("VLLM_TARGET_DEVICE", "cpu")
    assert chosen(path, "col")[0] == "vllm.platforms.cpu object gloo"


def test_named_where_vllm_is_not_for_cpus(path):
    kind, _, said = chosen(path, "col", "gpu")
    assert kind.startswith("vllm.platforms.cpu object") and "serves CPUs, and this vLLM is built for another device" in said


@pytest.mark.parametrize("size", [2, 4])
def test_calls_of_its_groups(path, tmp_path, size):
    """Eagerly everywhere; in compiled graphs, without a break, where this torch compiles."""
    compiles = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 4)
    done = subprocess.run(
        [os.environ["COLRUN"], "-n", str(size), sys.executable, "-W", "ignore", str(HERE / "vllm_program.py"), str(tmp_path / "store"),
         *(["compile"] if compiles else [])],
        capture_output=True, text=True, timeout=2 * processes.LIMIT, env={**os.environ, "PYTHONPATH": path, "VLLM_PLUGINS": "col"})
    assert done.returncode == 0, done.stderr[-4000:]
    assert sorted(processes.lines(done.stdout)) == [f"rank {rank} good" for rank in range(size)]


TYPED = """
import col.torch
import col.vllm

name: str = col.torch.ops_name(None)
chosen: str | None = col.vllm.platform()
col.torch.ops_name()
wrong: int = col.vllm.platform()
"""
MYPY = """
[mypy]
strict = True
follow_imports = silent
[mypy-torch,torch.*]
follow_imports = skip
"""


def test_types(tmp_path):
    """torch itself takes long to read."""
    pytest.importorskip("mypy")
    package = pathlib.Path(col.__file__).parent
    (tmp_path / "typed.py").write_text(TYPED)
    (tmp_path / "mypy.ini").write_text(MYPY)
    files = [*(package / "vllm").glob("*.py"), package / "torch" / "ops.py", package / "torch" / "__init__.py"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "typed.py", *map(str, files)], cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(package.parent)}, capture_output=True, text=True, timeout=4 * processes.LIMIT)
    found = [line.split(": ")[0] for line in done.stdout.splitlines() if ": error: " in line]
    assert found == ["typed.py:7", "typed.py:8"], done.stdout + done.stderr
