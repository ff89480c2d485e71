"""Zero with copies: a lost rank costs no step that any rank has completed."""

import os
import signal

import numpy as np
import pytest

import col
import mortal
import ranks
from col.strategies import SGD, Adam, Zero
from col.strategies.copies import Held, Offer, choose
from training import OPTIMIZERS, Net, alone, batch, check, check_same, in_numpy_order, torch_loss, torch_net


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class Watched:
    """A group, and the epochs after it: around(name, call) makes each of its calls that communicate."""

    CALLS = {"reduce_scatter", "sendrecv", "allgather", "renew", "allgather_object", "gather_object", "broadcast_object", "barrier"}

    def __init__(self, group, around):
        self._group, self._around = group, around

    def __getattr__(self, name):
        found = getattr(self._group, name)
        if name not in self.CALLS:
            return found

        def call(*args, **options):
            result = self._around(name, lambda: found(*args, **options))
            return Watched(result, self._around) if name == "renew" else result

        return call


def dies_before(number):
    left = iter(range(number))

    def around(unused, call):
        if next(left, None) is None:
            die()
        return call()

    return around


def train(group, library, optimizer, deaths):
    """deaths: by rank, the step, and before which of its calls. After the step, those of recover() follow. Returns parameters,
    and the steps that this rank had completed before and after each recover()."""
    me, net, module = group.rank, Net(), torch_net()
    of_numpy, of_torch = OPTIMIZERS[optimizer]
    is_torch = library == "torch"
    strategy = Zero(group, module if is_torch else net.parameters, of_torch if is_torch else of_numpy(), copies=True)
    recoveries = []
    while strategy.steps < 12:
        group = strategy.group
        if deaths.get(me, (-1, 0))[0] == strategy.steps and not isinstance(group, Watched):
            strategy.group = Watched(group, dies_before(deaths[me][1]))
        part = batch(strategy.steps, group.rank, group.size)
        try:
            if is_torch:
                torch_loss(module, *part).backward()
                strategy.step()
            else:
                strategy.step(net.gradients(*part))
        except col.Error as error:
            assert error.is_loss, error
            before = strategy.steps
            while True:
                try:
                    recoveries.append((before, strategy.recover()))
                    break
                except col.Error as another:
                    assert another.is_loss, another
    return in_numpy_order(module) if is_torch else net.parameters, recoveries


def check_run(results, deaths, size, optimizer="adam"):
    assert sorted(results) == [rank for rank in range(size) if rank not in deaths]
    parameters, recoveries = zip(*results.values())
    check_same(parameters)
    check(parameters[0], alone(optimizer, 12))
    for together in zip(*recoveries):
        assert len({after for _, after in together}) == 1
        assert all(before <= after for before, after in together), recoveries  # no completed step is lost


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("deaths", [{1: (5, 0)}, {0: (3, 0), 2: (8, 0)}, {0: (0, 0)}])
def test_the_others_go_on_from_the_copies(library, deaths):
    check_run(mortal.run(4, train, library, "adam", deaths), deaths, 4)


@pytest.mark.parametrize("optimizer, call", [("sgd", 1), ("momentum", 2), *(("adam", call) for call in range(1, 6))])
def test_a_death_before_each_call_of_a_step(optimizer, call):
    """Of Adam's step: reduce_scatter, sendrecv of the shard and of two vectors of state, allgather, the next reduce_scatter."""
    deaths = {2: (4, call)}
    check_run(mortal.run(3, train, "numpy", optimizer, deaths), deaths, 3, optimizer)


@pytest.mark.parametrize("call", range(1, 8))
def test_a_second_death_while_the_others_recover(call):
    """Its first call in the step fails or is done; then come renew(), what all agree on, the offers, the pieces, and a barrier."""
    deaths = {0: (4, 0), 2: (4, call)}
    check_run(mortal.run(4, train, "numpy", "adam", deaths), deaths, 4)


def hear_of_it_late(group):
    """Where the new shards go round, ranks 1 and 2 do not get them, and hear of an error: rank 0 alone has the new shard 0. So
    the old ones have to be there, on those that have the new ones as well."""
    net, failed = Net(), []
    strategy = Zero(group, net.parameters, Adam(0.01), copies=True)

    def around(name, call):
        result = call()
        if name == "broadcast_object" and not failed:
            failed.append(name)
            raise col.Aborted("planted")
        return result

    def step():
        strategy.step(net.gradients(*batch(strategy.steps, group.rank, group.size)))

    def recover():
        try:
            assert strategy.recover() == 3
        except col.Error as error:
            assert "are lost" not in str(error) and (error.is_loss or "planted" in str(error)), error
            recover()

    for _ in range(3):
        step()
    if group.rank in (1, 2):
        strategy.group = Watched(group, around)
    recover()
    assert len(failed) == (group.rank in (1, 2))
    for _ in range(9):
        step()
    return net.parameters, []


def test_shards_that_not_all_have_got_are_no_loss():
    check_run(mortal.run(4, hear_of_it_late), {}, 4)


def lose_two(group, path, lost):
    parameter = np.zeros(9)
    strategy = Zero(group, parameter, Adam(0.1), copies=True)
    strategy.step(np.ones(9))
    strategy.save(path)
    if group.rank in lost:
        die()
    try:
        while True:
            strategy.step(np.ones(9))
    except col.Error:
        try:
            strategy.recover()
        except col.PeerLost as error:
            again = Zero(strategy.group, parameter, Adam(0.1), copies=True)
            again.load(path)
            return error.rank, str(error), again.steps
        return strategy.group.size


def test_two_neighbours_at_once_are_named_with_the_checkpoint(tmp_path):
    path = str(tmp_path / "checkpoint")
    results = mortal.run(5, lose_two, path, [2, 3])
    assert sorted(results) == [0, 1, 4]
    for rank, words, steps in results.values():
        assert rank == 2 and steps == 1
        assert f"ranks 2, 3 of 5 are lost, and so is the optimizer's state of ranks 2: " in words
        assert words.endswith(f"load() the last checkpoint: '{path}', of step 1"), words


def test_two_that_are_no_neighbours_cost_nothing(tmp_path):
    assert mortal.run(4, lose_two, str(tmp_path / "checkpoint"), [0, 2]) == {1: 2, 3: 2}


TAKES_A_PLACE = """
    import os, signal, sys
    import numpy as np
    import col
    from col.strategies import Adam, Zero
    joins = os.environ["COL_RANK"] == "3"
    parameter = np.full(7, 9.0 if joins else 1.0)
    strategy = Zero(col.join(timeout=50) if joins else col.init(), parameter, Adam(0.1), copies=True)
    while strategy.steps < 10:
        try:
            if os.environ["COL_RANK"] == sys.argv[1] and strategy.steps == 4:
                os.kill(os.getpid(), signal.SIGKILL)
            strategy.step(np.arange(7.0) * strategy.steps)
        except col.Error as error:
            if not error.is_loss:
                raise
            strategy.recover(wait=50)
    print(strategy.group.epoch, strategy.group.size, [value.hex() for value in parameter])
    col.finalize()
    """


def test_a_newcomer_takes_a_shard_and_the_bits_are_those_of_an_undisturbed_run(tmp_path):
    mortal.check_replaced(tmp_path, TAKES_A_PLACE)


def of_a_derived_group(group):
    strategy = Zero(group.dup(), np.ones(5), SGD(0.1, momentum=0.9), copies=True)
    strategy.step(np.ones(5))
    first = strategy.state_dict()
    assert strategy.recover() == 1  # nobody is lost
    assert strategy.group.size == group.size
    for name, value in first["optimizer"].items():
        np.testing.assert_array_equal(value, strategy.state_dict()["optimizer"][name])
    strategy.load_state_dict(first)
    memory = strategy.memory()
    shard = -(-5 // group.size)
    assert memory["copies"] == 4 * 2 * shard * 8, memory
    with pytest.raises(col.InvalidArgument, match=r"recover\(\) needs Zero\(…, copies=True\)"):
        Zero(group, np.ones(5), SGD(0.1)).recover()
    with pytest.raises(col.InvalidArgument, match="copies is 2, and must be True or False"):
        Zero(group, np.ones(5), SGD(0.1), copies=2)
    with pytest.raises(col.Mismatch, match="copies is (True|False) here"):
        Zero(group, np.ones(5), SGD(0.1), copies=group.rank == 0)


def of_one_rank(group):
    """It is its own neighbour."""
    parameter = np.ones(5)
    strategy = Zero(group, parameter, SGD(1.0), copies=True)
    strategy.step(np.ones(5))
    assert strategy.memory()["copies"] == 2 * 5 * 8
    np.testing.assert_array_equal(parameter, np.zeros(5))


def test_a_group_without_epochs_and_what_is_wrong():
    ranks.run(2, of_a_derived_group)
    ranks.run(1, of_one_rank)


# ---- The choice


def held(cut, count, rank, *steps):
    one = Held(cut, count)
    for step in steps:
        one.add(step, {(rank - 1) % count: "copy", rank: "own"})
    return one.offer()


def test_two_steps_are_held():
    assert held(0, 3, 0, 1, 2, 3) == Offer(0, 3, {2: [0, 2], 3: [0, 2]})


def test_the_last_step_of_which_all_shards_are_left_is_chosen():
    assert choose([[], []], "none") is None
    # Rank 1 of 4 is lost. Rank 3 is a step ahead, and its copy is rank 2's.
    chosen = choose([[held(0, 4, 0, 4, 5)], [held(0, 4, 2, 4, 5)], [held(0, 4, 3, 5, 6)]], "none")
    assert chosen == (0, 4, 5, [0, 1, 1, 0], 0)
    # A newcomer has nothing; a cut that all hold is better than the one before it, at whatever step.
    chosen = choose([[held(0, 2, 0, 9), held(1, 3, 0, 8)], [], [held(1, 3, 2, 8)]], "none")
    assert chosen == (1, 3, 8, [0, 2, 0], 1)
    # One that not all have got is not.
    chosen = choose([[held(0, 3, 0, 8), held(1, 4, 0, 8)], [held(0, 3, 1, 8)]], "none")
    assert (chosen.cut, chosen.newest, chosen.suppliers) == (0, 1, [0, 1, 0])
    with pytest.raises(col.PeerLost, match="ranks 1, 2 of 3 are lost.*of ranks 1: .*checkpoint: 'x'") as raised:
        choose([[held(0, 3, 0, 4, 5)]], "'x'")
    assert raised.value.rank == 1
