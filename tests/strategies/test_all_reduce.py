"""AllReduce: the same parameters as in one process, overlapped or not; checkpoints; ranks that are lost."""

import os
import random
import signal

import numpy as np
import pytest
import torch

import col
import mortal
import processes
import ranks
from col.strategies import SGD, Adam, AllReduce, ParameterServer, Zero
from col.strategies.overlap import ROUNDS, WARM_UP, Choice
from training import OPTIMIZERS, Net, alone, batch, check, check_same, in_numpy_order, torch_loss, torch_net

STEPS = WARM_UP + 2 * ROUNDS + 3  # "auto" has chosen
SMALL = {"bucket_bytes": 200, "first_bucket_bytes": 20}  # several buckets, and a parameter that is larger than one


def train_numpy(group, optimizer, overlap):
    net = Net(seed=1 + group.rank)  # rank 0's counts
    strategy = AllReduce(group, net.parameters, OPTIMIZERS[optimizer][0](), overlap=overlap, **SMALL)
    for step in range(STEPS):
        gradients = net.gradients(*batch(step, group.rank, group.size))
        if step % 2:
            strategy.step(gradients)
        else:
            order = list(range(4))
            random.Random(100 * group.rank + step).shuffle(order)  # another one on every rank
            for i in order:
                strategy.ready(i, gradients[i])
            strategy.step()
    assert strategy.stats()["buckets"] == 3 and strategy.steps == STEPS
    return net.parameters, strategy.stats()["overlap"]


@pytest.mark.parametrize("overlap", [False, True, "auto"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("size", [1, 3])
def test_numpy(size, optimizer, overlap):
    results, choices = zip(*ranks.run(size, train_numpy, optimizer, overlap))
    check_same(results)
    check(results[0], alone(optimizer, STEPS))
    assert len(set(choices)) == 1 and choices[0] in ((True, False) if overlap == "auto" else (overlap,))


def train_torch(group, optimizer, overlap):
    module = torch_net(seed=1 + group.rank)
    strategy = AllReduce(group, module, OPTIMIZERS[optimizer][1], overlap=overlap, **SMALL)
    for step in range(STEPS):
        torch_loss(module, *batch(step, group.rank, group.size)).backward()
        strategy.step()
    assert strategy.stats()["buckets"] == 3
    return in_numpy_order(module)


@pytest.mark.parametrize("overlap", [False, True, "auto"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_torch(optimizer, overlap):
    results = ranks.run(3, train_torch, optimizer, overlap)
    check_same(results)
    check(results[0], alone(optimizer, STEPS))


def own_steps(group):
    """Without an optimizer, the program makes the steps."""
    net, module = Net(), torch_net()
    for_net, for_module = AllReduce(group, net.parameters), AllReduce(group, module, overlap=True)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(5):
        part = batch(step, group.rank, group.size)
        for parameter, gradient in zip(net.parameters, for_net.reduce(net.gradients(*part))):
            parameter -= 0.1 * gradient
        optimizer.zero_grad()
        torch_loss(module, *part).backward()
        for_module.reduce()
        optimizer.step()
    with pytest.raises(col.InvalidArgument, match="needs an optimizer"):
        for_net.step(net.parameters)
    return net.parameters, in_numpy_order(module)


def test_reduce():
    for of_numpy, of_torch in ranks.run(2, own_steps):
        check(of_numpy, alone("sgd", 5))
        check(of_torch, alone("sgd", 5))


def several_backwards(group, overlap):
    module = torch_net()
    strategy = AllReduce(group, module, OPTIMIZERS["momentum"][1], overlap=overlap, **SMALL)
    for step in range(5):
        halves = [batch(step, 2 * group.rank + half, 2 * group.size) for half in range(2)]
        with strategy.accumulate():
            (torch_loss(module, *halves[0]) / 2).backward()
        (torch_loss(module, *halves[1]) / 2).backward()
        strategy.step()
    torch_loss(module, *halves[0]).backward()
    if overlap:
        with pytest.raises(col.InvalidArgument, match="came twice in one step.*accumulate"):
            torch_loss(module, *halves[1]).backward()
    return in_numpy_order(module)


@pytest.mark.parametrize("overlap", [False, True])
def test_several_backwards_for_one_step(overlap):
    check(ranks.run(2, several_backwards, overlap)[0], alone("momentum", 5))


class Branches(torch.nn.Module):
    """Rank 0 uses one branch and rank 1 the other; nobody uses the third. It has buffers."""

    def __init__(self):
        super().__init__()
        self.branches = torch.nn.ModuleList(torch.nn.Linear(3, 3, bias=False) for _ in range(3))
        self.norm = torch.nn.BatchNorm1d(3)


def unused_parameters(group):
    torch.manual_seed(group.rank)
    module = Branches()
    module.norm.running_mean += group.rank
    strategy = AllReduce(group, module, OPTIMIZERS["sgd"][1], overlap=True, **SMALL)
    assert not module.norm.running_mean.any()
    before = [branch.weight.detach().clone() for branch in module.branches]
    module.branches[group.rank](torch.ones(1, 3)).sum().backward()
    strategy.step()
    changes = [(branch.weight - old).detach().numpy() for branch, old in zip(module.branches, before)]
    return changes


def test_parameters_without_a_gradient_count_as_zero():
    for changes in ranks.run(2, unused_parameters):
        for change, wanted in zip(changes, (-0.05, -0.05, 0)):
            np.testing.assert_allclose(change, wanted, atol=1e-6)  # float32; the gradient is 1 on one of two ranks


def choose(group, times):
    """times: of steps without and with overlap, on each rank."""
    choice = Choice("auto")
    kinds = []
    for _ in range(WARM_UP + 2 * ROUNDS):
        assert not choice.is_decided
        kinds.append(choice.is_on)
        choice.add(group, times[group.rank][choice.is_on])
    assert kinds[WARM_UP:] == [False, True] * ROUNDS
    choice.add(group, 1e9)  # what comes later changes nothing
    return choice.is_decided, choice.is_on


@pytest.mark.parametrize(
    ("times", "wanted"),
    [(([1, 2], [5, 3]), True), (([1, 2], [5, 4.5]), False), (([2, 1], [2, 1]), True), (([1, 1], [1, 1]), False)],
)
def test_all_ranks_make_the_same_choice(times, wanted):
    assert ranks.run(2, choose, times) == [(True, wanted)] * 2


def statistics_of(group):
    module = torch_net()
    strategy = AllReduce(group, module, OPTIMIZERS["sgd"][1], overlap=True)
    for step in range(3):
        torch_loss(module, *batch(step)).backward()
        strategy.step()
    return strategy.stats()


def test_stats():
    for stats in ranks.run(2, statistics_of):
        assert stats["steps"] == 3 and stats["bytes"] == 3 * 8 * (5 * 7 + 7 + 7 * 2 + 2) and stats["overlap"] is True
        assert 0 < stats["waiting"] <= stats["communicating"] < 60 and 0 <= stats["hidden"] < 1


# ---- Checkpoints


def run_with_checkpoint(group, library, path, first, last):
    """Trains from a step to another, from the checkpoint unless it is the first; writes it in the end."""
    net, module = Net(), torch_net()
    of_torch = library == "torch"
    of_numpy, by_torch = OPTIMIZERS["adam"]
    strategy = AllReduce(group, module, by_torch) if of_torch else AllReduce(group, net.parameters, of_numpy())
    if first:
        strategy.load(path)
    assert strategy.steps == first
    while strategy.steps < last:
        part = batch(strategy.steps, group.rank, group.size)
        if of_torch:
            torch_loss(module, *part).backward()
        strategy.step(None if of_torch else net.gradients(*part))
    strategy.save(path)
    return in_numpy_order(module) if of_torch else net.parameters


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_run_goes_on_from_a_checkpoint_on_other_ranks(tmp_path, library):
    path = str(tmp_path / "checkpoint")
    for size, first, last in (2, 0, 4), (3, 4, 8), (1, 8, 12):
        results = ranks.run(size, run_with_checkpoint, library, path, first, last)
        check_same(results)
    check(results[0], alone("adam", 12))
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint"]


def test_an_interrupted_run_is_the_uninterrupted_one_to_the_last_bit(tmp_path):
    whole = ranks.run(2, run_with_checkpoint, "numpy", str(tmp_path / "whole"), 0, 8)
    ranks.run(2, run_with_checkpoint, "numpy", str(tmp_path / "half"), 0, 4)
    check_same(whole + ranks.run(2, run_with_checkpoint, "numpy", str(tmp_path / "half"), 4, 8))


# ---- Ranks that are lost



def train_until_12(group, of_torch, overlap, killed):
    """killed: rank and the step in the middle of which it dies."""
    me = group.rank
    net, module = Net(), torch_net()
    of_numpy, by_torch = OPTIMIZERS["adam"]
    model, optimizer = (module, by_torch) if of_torch else (net.parameters, of_numpy())
    strategy = AllReduce(group, model, optimizer, overlap=overlap, **SMALL)
    losses = 0
    while strategy.steps < 12:
        group, step = strategy.group, strategy.steps
        part = batch(step, group.rank, group.size)
        try:
            if of_torch:
                torch_loss(module, *part).backward()
            else:
                gradients = net.gradients(*part)
                strategy.ready(3, gradients[3])  # the first bucket
            if killed.get(me) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            if not of_torch:
                for i in 2, 1, 0:
                    strategy.ready(i, gradients[i])
            strategy.step()
        except (col.PeerLost, col.Aborted):
            losses += 1
            assert strategy.recover() == strategy.steps >= step
    assert 1 <= losses <= len(killed)
    return in_numpy_order(module) if of_torch else net.parameters


@pytest.mark.parametrize("of_torch", [False, True])
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("killed", [{1: 5}, {0: 3, 2: 8}, {2: 4, 3: 4}])
def test_the_others_go_on_from_memory(of_torch, overlap, killed):
    """However many ranks share a batch, its gradient is the same: so the result is that of one process."""
    results = mortal.run(4, train_until_12, of_torch, overlap, killed)
    assert sorted(results) == [rank for rank in range(4) if rank not in killed]
    check_same(list(results.values()))
    check(list(results.values())[0], alone("adam", 12))


def test_the_others_go_on_under_colrun():
    code, out, err = processes.run(
        3,
        """
        import os, signal
        import numpy as np
        import col
        from col.strategies import SGD, AllReduce
        world = col.init()
        parameter = np.zeros(1)
        strategy = AllReduce(world, parameter, SGD(1.0))
        while strategy.steps < 10:
            try:
                if world.rank == 1 and strategy.steps == 4:
                    os.kill(os.getpid(), signal.SIGKILL)
                strategy.step(np.ones(1))
            except (col.PeerLost, col.Aborted):
                strategy.recover()
        print("left:", strategy.group.ranks, parameter)
        """,
        "--keep-going",
    )
    assert out.count("left: [0, 2] [-10.]") == 2, (code, out, err)


TAKES_A_PLACE = """
    import os, signal, sys
    import numpy as np
    import col
    from col.strategies import Adam, AllReduce
    joins = os.environ["COL_RANK"] == "3"
    parameter = np.full(2, 9.0 if joins else 1.0)
    strategy = AllReduce(col.join(timeout=50) if joins else col.init(), parameter, Adam(0.1))
    while strategy.steps < 10:
        try:
            if os.environ["COL_RANK"] == sys.argv[1] and strategy.steps == 4:
                os.kill(os.getpid(), signal.SIGKILL)
            strategy.step(np.full(2, float(strategy.steps)))
        except col.Error as error:
            if not error.is_loss:
                raise
            strategy.recover(wait=50)
    print(strategy.group.epoch, strategy.group.size, parameter.tolist())
    col.finalize()
    """


def test_a_newcomer_takes_the_state_of_the_others(tmp_path):
    """Its own parameters were others, and it has no state of the optimizer."""

    mortal.check_replaced(tmp_path, TAKES_A_PLACE)


def some_are_a_step_behind(group):
    """A rank may hear of a loss in the last step, when others have completed it. Here nobody is lost."""
    net = Net()
    strategy = AllReduce(group.dup(), net.parameters, Adam(0.01))
    for step in range(5):
        before = strategy.state_dict()
        strategy.step(net.gradients(*batch(step, group.rank, group.size)))
    if group.rank != 1:
        strategy.load_state_dict(before)
    assert strategy.recover() == 5
    strategy.step(net.gradients(*batch(5, group.rank, group.size)))
    return net.parameters


def test_all_go_on_from_the_last_step_that_one_has_completed():
    results = ranks.run(3, some_are_a_step_behind)
    check_same(results)
    check(results[0], alone("adam", 6))


# ---- What is wrong


def refusals(group):
    net = Net()
    for model in None, [], "abc", [1.0], np.arange(3), [np.ones(2), np.ones(2, np.float32)], np.ones((4, 4))[:, ::2]:
        with pytest.raises(col.InvalidArgument):
            AllReduce(group, model, SGD(0.1))
    used = SGD(0.1)
    strategy = AllReduce(group, net.parameters, used)
    for options, words in [
        ({"optimizer": used}, "another strategy"), ({"optimizer": "sgd"}, "SGD or Adam"), ({"overlap": "yes"}, "overlap"),
        ({"bucket_bytes": 0}, "bucket_bytes"), ({"first_bucket_bytes": 1.5}, "first_bucket_bytes"),
    ]:
        with pytest.raises(col.InvalidArgument, match=words):
            AllReduce(group, net.parameters, **{"optimizer": SGD(0.1), **options})
    with pytest.raises(col.InvalidArgument, match="function that makes"):
        AllReduce(group, torch_net(), SGD(0.1))
    gradients = net.gradients(*batch(0))
    for wrong, words in [
        (gradients[:3], "3 gradients for 4"), ([*gradients[:3], np.ones(3)], r"gradient 3 is float64 of shape \(3,\)"),
        (None, r"gradients \[0, 1, 2, 3\] are missing"), ([np.ones(2, int)] * 4, "floating-point"),
    ]:
        with pytest.raises(col.InvalidArgument, match=words):
            strategy.step(wrong)
    with pytest.raises(col.InvalidArgument, match="there are 4"):
        strategy.ready(4, gradients[0])
    with pytest.raises(col.InvalidArgument, match="this is no state"):
        strategy.load_state_dict({})
    other = AllReduce(group, [np.ones(3)], SGD(0.1)).state_dict()
    with pytest.raises(col.InvalidArgument, match="another model"):
        strategy.load_state_dict(other)
    with pytest.raises(col.InvalidArgument, match="another optimizer"):
        strategy.load_state_dict(AllReduce(group, Net().parameters, Adam()).state_dict())
    with pytest.raises(col.InvalidArgument, match="kind 'torch'"):
        strategy.load_state_dict(AllReduce(group, torch_net(), OPTIMIZERS["sgd"][1]).state_dict())
    with pytest.raises(col.InvalidArgument, match="needs the strategy's own optimizer"):
        AllReduce(group, net.parameters).recover()
    strategy.step(gradients)  # it has survived all that


def what_differs(group):
    odd = group.rank == 1
    for make, words in [
        (lambda: AllReduce(group, np.zeros(3 + odd), SGD(0.1)), r"sizes is \[\d\] here, on rank \d, and \[\d\] on rank \d"),
        (lambda: AllReduce(group, torch_net() if odd else Net().parameters), "library is"),
        (lambda: Zero(group, np.zeros(3, np.float32 if odd else np.float64), SGD(0.1)), "dtype is"),
        (lambda: AllReduce(group, np.zeros(3), SGD(0.1), bucket_bytes=9 + odd), "bucket_bytes is"),
        (lambda: ParameterServer(group, np.zeros(3), SGD(0.1), mode="async", staleness=int(odd)), "staleness is"),
    ]:
        with pytest.raises(col.Mismatch, match=words):
            make()
    AllReduce(group, np.zeros(3), SGD(0.1)).step(np.ones(3))  # the group has survived all that


def test_what_differs_between_ranks_is_named_on_all():
    ranks.run(3, what_differs)


def test_refusals():
    ranks.run(2, refusals)


def test_importing_it_does_not_import_torch():
    code, out, err = processes.alone("import sys, col.strategies; assert 'torch' not in sys.modules; print('right')")
    assert (code, out) == (0, "right\n"), err
