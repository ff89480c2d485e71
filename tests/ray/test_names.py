"""Every name that a program may import from ray.util.collective is in col.ray, and does what Ray's does or says why not.

Ray's modules are walked, so a name that a later version of Ray adds is missed here.
"""

import ast
import enum
import importlib
import inspect
import pathlib
import pkgutil
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest
import ray
import ray.util.collective as theirs

import col
import col.ray as ours
import workers as actors
from col.ray import types
from col.ray.ray_group import RayGroup
from members import same
from workers import everywhere

OURS, THEIRS = "col.ray", "ray.util.collective"
NAME = "all names"


def defined(tree):
    """The names that the statements define, also inside if and try."""
    for node in tree:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(THEIRS):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.If, ast.Try)):
            yield from defined([*node.body, *node.orelse])


def walk():
    """Each public name of each module, as (module, name). The modules are read: some import what is not installed."""
    modules = [("", theirs)] + [
        (found.name.removeprefix(THEIRS), found) for found in pkgutil.walk_packages(theirs.__path__, THEIRS + ".")
        if ".tests" not in found.name and ".examples" not in found.name
    ]  # fmt: skip
    for module, found in modules:
        spec = importlib.util.find_spec(THEIRS + module)
        for name in sorted(set(defined(ast.parse(pathlib.Path(spec.origin).read_text()).body))):
            if not name.startswith("_") and name != "logger":
                yield module, name


ALL = list(walk())


def get(root, module, name):
    """The object, or the error of getting it: of a module that needs what is not installed, or leaves out what does."""
    try:
        return getattr(importlib.import_module(root + module), name)
    except (AttributeError, ImportError) as error:
        return error


def test_the_walk_finds_what_it_should():
    names = {name for module, name in ALL if module == ""}
    assert set(theirs.__all__) <= names
    assert {("", "allreduce"), (".collective", "GroupManager"), (".types", "SendOptions"), (".const", "ENV")} <= set(ALL)
    assert len({module for module, _ in ALL}) >= 9 and len(ALL) > 90


@pytest.mark.parametrize("module, name", ALL, ids=[f"{module.lstrip('.')}.{name}".lstrip(".") for module, name in ALL])
def test_is_there(module, name):
    """With Ray's parameters first, and in Ray's order; a class with Ray's public members."""
    their, our = get(THEIRS, module, name), get(OURS, module, name)
    if isinstance(their, Exception):
        assert not isinstance(our, Exception) or str(our) == str(their)
    elif inspect.isfunction(their):
        wanted, found = (list(inspect.signature(function).parameters) for function in (their, our))
        assert found[: len(wanted)] == wanted
        assert our is their or inspect.getdoc(our)
    elif inspect.isclass(their):
        wanted = [member for member in dir(their) if not member.startswith("_")]
        if issubclass(their, enum.Enum):
            wanted = list(their.__members__)
        wanted = [member for member in wanted if member != "unset_timeout_ms"]  # a slip in Ray's RecvOptions
        assert all(hasattr(our, member) for member in wanted), wanted
        assert our is their or inspect.getdoc(our)


def test_attributes_without_an_import_of_their_own():
    code = """
        import col.ray as col
        print(col.collective.init_collective_group.__name__, col.types.ReduceOp.SUM, col.const.get_store_name("x")[:4])
        print(col.backend_registry.BackendRegistry().check("GLOO"), col.collective_group.__name__)
    """
    out = subprocess.run([sys.executable, "-c", inspect.cleandoc(code)], capture_output=True, text=True, timeout=60)
    words = ["init_collective_group sum 2d71", "True col.ray.collective_group"]
    assert out.stdout.splitlines() == words, out.stderr


def test_operators_and_backends_have_rays_values():
    from ray.util.collective import types as rays

    for op in rays.ReduceOp:
        our = types.ReduceOp[op.name]
        assert (our.name, our.value) == (op.name, op.value)
        assert types.ReduceOp(op.value) is our and isinstance(our, types.ReduceOp)
    assert [op.name for op in types.ReduceOp][: len(rays.ReduceOp)] == [op.name for op in rays.ReduceOp]
    for name in "NCCL", "GLOO":
        assert getattr(types.Backend, name) == getattr(rays.Backend, name) == types.Backend(name.lower())
    for wrong in lambda: types.Backend("mpi"), lambda: types.ReduceOp("mean"):
        with pytest.raises(ValueError, match="there are"):
            wrong()


@pytest.mark.parametrize("name", ["torch", "cupy"])
@pytest.mark.parametrize("error", ["ImportError", "OSError"])  # the second one of a library that is not there
def test_what_cannot_be_imported_is_not_available(monkeypatch, tmp_path, name, error):
    (tmp_path / f"{name}.py").write_text(f"raise {error}('libcudart.so: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    assert getattr(types, f"{name}_available")() is False


@pytest.mark.parametrize(
    "given, seconds",
    [(timedelta(seconds=1.5), 1.5), (1500, 1.5), (1500.0, 1.5), (types.unset_timeout_ms, None), (-1, None), (None, None)],
)
def test_timeouts_of_options(monkeypatch, given, seconds):
    """As Ray's types have them, and in milliseconds as their name says."""
    options, heard = types.BarrierOptions(), []
    options.timeout_ms = given
    monkeypatch.setattr(ours.collective, "barrier", lambda name, timeout: heard.append(timeout))
    RayGroup("a group").barrier(options)
    assert heard == [seconds]


def test_the_registry_has_what_it_gives():
    found = ours.backend_registry.BackendRegistry()
    for name in "COL", "gloo", "NCCL", "torch_gloo", "shm", "auto", "mpi":
        try:
            there = bool(found.get(name))
        except col.InvalidArgument:
            there = False
        assert found.is_registered(name) is there
        assert there or not found.check(name)


# ---- The calls, on two actors


def filled(*values):
    return np.array(values, np.float32)


def sums(call):
    x = filled(1, 2)
    call(x)
    same(x, filled(2, 4))


def allgather(rank):
    parts = [filled(0), filled(0)]
    ours.allgather(parts, filled(rank), NAME)
    same(np.stack(parts), [[0], [1]])


def reducescatter(rank):
    x = filled(0)
    ours.reducescatter(x, [filled(5), filled(7)], NAME)
    same(x, [(10, 14)[rank]])


def reduce(rank):
    x = filled(1)
    ours.reduce(x, 1, NAME)
    same(x, [1 + rank])


def broadcast(rank):
    x = filled(rank)
    ours.broadcast(x, 1, NAME)
    same(x, [1])


def message(rank):
    x = filled(3 + rank)
    ours.send(x, 1, NAME) if rank == 0 else ours.recv(x, 0, NAME)
    same(x, [3])


def needs_gpus(call):
    return refuses(call, col.Unavailable, "nccl")


def refuses(call, error=col.Unavailable, words=None):
    with pytest.raises(error, match=words) as caught:
        call()
    assert len(str(caught.value)) > 20  # says why


def multigpu(name, *arguments):
    return lambda rank: needs_gpus(lambda: getattr(ours, name)(*arguments, group_name=NAME))


def synchronize(rank):
    """A GPU that no machine has: the answer tells it from having none at all, and is an error either way."""
    refuses(lambda: ours.collective.synchronize(99), (col.Unavailable, col.InvalidArgument), "synchronize: .*(CUDA|GPU|NCCL)")


def handle(rank):
    """In Ray's shape, with Ray's options and with ours; and with the rest of col's Group."""
    from ray.util.collective import types as rays

    group = ours.get_group_handle(NAME)
    assert (group.rank, group.world_size, group.group_name, group.size) == (rank, 2, NAME, 2)
    every_call_of_a_handle(rank, group, rays)
    every_call_of_a_handle(rank, group, types)
    wrong_calls_of_a_handle(group, rays)
    assert group.backend() == group.name == "COL" and (group.group.backend, group.group.name) == ("shm", NAME)
    with pytest.raises(col.NotInitialized):
        ours.get_group_handle("another")


def every_call_of_a_handle(rank, group, kinds):
    def options(name, **values):
        made = getattr(kinds, name)()
        for key, value in values.items():
            assert hasattr(made, key)
            setattr(made, key, value)
        return made

    x = filled(rank + 1)
    group.allreduce([x], options("AllReduceOptions", reduceOp=kinds.ReduceOp.PRODUCT))
    same(x, [2])
    group.barrier(options("BarrierOptions"))
    group.reduce([x], options("ReduceOptions", root_rank=1, reduceOp=kinds.ReduceOp.MAX))
    x = filled(rank)
    group.broadcast([x], options("BroadcastOptions", root_rank=1))
    same(x, [1])
    parts = [filled(0), filled(0)]
    group.allgather([parts], [filled(rank)], options("AllGatherOptions"))
    same(np.stack(parts), [[0], [1]])
    group.reducescatter([x], [[filled(5), filled(7)]], options("ReduceScatterOptions"))
    same(x, [(10, 14)[rank]])
    x = filled(rank, 9 + rank)
    if rank == 0:
        group.send([x], options("SendOptions", dst_rank=1, n_elements=1))
    else:
        group.recv([x], options("RecvOptions", src_rank=0, n_elements=1))
    same(x, [0, 9 + rank])


def wrong_calls_of_a_handle(group, rays):
    """A col.Group takes most of them, and a handle is easily taken for one."""
    x, row = filled(1), np.ones((1, 3), np.float32)
    for options in 1, 1.5, "max", types.ReduceOp.MAX, rays.ReduceOp.MAX:
        for call, arguments, kind in (
            (group.allreduce, [[x]], "AllReduceOptions"),
            (group.reduce, [[x]], "ReduceOptions"),
            (group.broadcast, [[x]], "BroadcastOptions"),
            (group.allgather, [[[x, x]], [x]], "AllGatherOptions"),
            (group.reducescatter, [[x], [[x, x]]], "ReduceScatterOptions"),
            (group.send, [[x]], "SendOptions"),
            (group.recv, [[x]], "RecvOptions"),
            (group.barrier, [], "BarrierOptions"),
        ):
            refuses(lambda: call(*arguments, options), col.InvalidArgument, rf"types\.{kind}")
    refuses(lambda: group.send([x], types.RecvOptions()), col.InvalidArgument, "dst_rank")
    refuses(lambda: group.recv([x], None), col.InvalidArgument, "src_rank")
    to_self, from_self = types.SendOptions(), types.RecvOptions()
    for call, arguments in (
        (group.allreduce, [row]), (group.reduce, [row]), (group.broadcast, [row]),
        (group.allgather, [row, [x]]), (group.allgather, [[[x, x]], row]),
        (group.reducescatter, [row, [[x, x]]]), (group.reducescatter, [[x], row]),
        (group.send, [row, to_self]), (group.recv, [row, from_self]),
    ):  # fmt: skip
        refuses(lambda: call(*arguments), col.InvalidArgument, "a list of tensors, .* ndarray")
    for call, arguments in (
        (group.allreduce, [[]]), (group.send, [[x, x], to_self]), (group.recv, [[], from_self]),
        (group.allgather, [[[x, x], [x, x]], [x]]), (group.reducescatter, [[x], []]),
    ):  # fmt: skip
        refuses(lambda: call(*arguments), col.InvalidArgument, "tensor")


def manager(rank):
    manager, name = ours.collective.GroupManager(), "managed"
    assert not manager.is_group_exist(name) and manager.get_group_by_name(name) is None
    made = manager.create_collective_group("gloo", 2, rank, name, 30000)
    found = ours.collective.GroupManager().get_group_by_name(name)
    assert made.rank == found.rank == rank and manager.is_group_exist(name)
    made.allreduce([filled(1)])
    manager.destroy_collective_group(name)
    manager.destroy_collective_group(name)  # as Ray's: nothing happens
    assert not manager.is_group_exist(name)


def group_class(module, name):
    def use(rank):
        made = get(OURS, module, name)(2, rank, "of a class")
        x = filled(1)
        made.allreduce([x])
        same(x, [2])
        assert made.backend() in ("GLOO", "NCCL") and type(made).check_backend_availability()
        made.destroy_group()
        assert ours.get_rank("of a class") == -1

    return use


def joining(rank):
    for name in "joined", "joined again":
        ours.init_collective_group(2, rank, "gloo", name, 30000)
        (ours.destroy_collective_group if name == "joined" else ours.destroy_group)(name)
        assert not ours.is_group_initialized(name)


def declaring(rank):
    refuses(lambda: ours.create_collective_group([], 0, [], "gloo", "wrong"), col.InvalidArgument, "no actors")


def registry(rank):
    found = ours.backend_registry.BackendRegistry()
    assert found.is_registered("gloo") and found.check("GLOO") and not found.is_registered("mpi") and not found.check("mpi")
    assert found.get("gloo").backend() == "GLOO"
    refuses(lambda: found.get("mpi"), ValueError)
    refuses(lambda: found.put("MPI", object), words="ray.util.collective")


def queries(rank):
    assert (ours.get_rank(NAME), ours.get_collective_group_size(NAME)) == (rank, 2) and ours.is_group_initialized(NAME)
    assert (ours.get_rank("none"), ours.get_collective_group_size("none")) == (-1, -1)
    assert ours.gloo_available() and ours.is_backend_available("GLOO") and not ours.is_backend_available("MPI")
    assert isinstance(ours.nccl_available(), bool)


def availability(rank):
    assert types.torch_available() == (importlib.util.find_spec("torch") is not None)
    assert types.cupy_available() == (importlib.util.find_spec("cupy") is not None)


def address(rank):
    host, port = ours.collective.get_address_and_port()
    assert host == ray.util.get_node_ip_address() and 0 < port < 65536


X = filled(1)
CALLS = {
    "allreduce": lambda rank: sums(lambda x: ours.allreduce(x, NAME, types.ReduceOp.SUM)),
    "barrier": lambda rank: ours.barrier(NAME),
    "reduce": reduce, "broadcast": broadcast, "allgather": allgather, "reducescatter": reducescatter,
    "send": message, "recv": message,
    "allreduce_multigpu": multigpu("allreduce_multigpu", [X]),
    "reduce_multigpu": multigpu("reduce_multigpu", [X], 0, 0),
    "broadcast_multigpu": multigpu("broadcast_multigpu", [X], 0, 0),
    "allgather_multigpu": multigpu("allgather_multigpu", [[X, X]], [X]),
    "reducescatter_multigpu": multigpu("reducescatter_multigpu", [X], [[X, X]]),
    "send_multigpu": lambda rank: needs_gpus(lambda: ours.send_multigpu(X, 1 - rank, 0, NAME)),
    "recv_multigpu": lambda rank: needs_gpus(lambda: ours.recv_multigpu(filled(1), 1 - rank, 0, NAME)),
    "synchronize": synchronize, "get_group_handle": handle, "GroupManager": manager,
    "init_collective_group": joining, "destroy_collective_group": joining, "create_collective_group": declaring,
    "get_rank": queries, "get_collective_group_size": queries, "is_group_initialized": queries,
    "gloo_available": queries, "nccl_available": queries, "is_backend_available": queries,
    "torch_available": availability, "cupy_available": availability, "get_address_and_port": address,
    "BackendRegistry": registry,
    "register_collective_backend": lambda rank: refuses(lambda: ours.register_collective_backend("MPI", object)),
    "TorchGLOOGroup": group_class(".collective_group.torch_gloo_collective_group", "TorchGLOOGroup"),
    "NCCLGroup": group_class(".collective_group.nccl_collective_group", "NCCLGroup"),
    "Backend": availability, "ReduceOp": availability,  # test_operators_and_backends_have_rays_values
    **{name: handle for _, name in ALL if name.endswith("Options")},
}  # fmt: skip


def call_all(rank):
    """Every call in the same order on both; names those that went wrong."""
    ours.collective.init_collective_group(2, rank, types.Backend.GLOO, NAME, timeout=20)
    wrong = {}
    for function in dict.fromkeys(CALLS.values()):
        try:
            function(rank)
        except BaseException as error:  # pytest.raises has one of its own
            name = next(name for name in CALLS if CALLS[name] is function)
            wrong[name] = f"{type(error).__name__}: {error}"
    ours.collective.destroy_collective_group(NAME)
    return wrong


def test_every_callable_is_called():
    """Ray's own objects do what Ray's do: all others are in the table."""
    own = set()
    for module, name in ALL:
        our = get(OURS, module, name)
        if callable(our) and not isinstance(our, Exception) and our is not get(THEIRS, module, name):
            own.add(name)
    assert own == set(CALLS)


def test_calls(cluster):
    assert everywhere(actors.start(2), call_all) == [{}, {}]
