"""How reductions combine elements."""

import numpy as np
import pytest

import col
import ranks

NAMES = {
    "sum": np.add.reduce, "product": np.multiply.reduce, "prod": np.multiply.reduce, "min": np.minimum.reduce,
    "max": np.maximum.reduce, "band": np.bitwise_and.reduce, "bor": np.bitwise_or.reduce, "bxor": np.bitwise_xor.reduce,
}


def by_name(group, op):
    data = [np.arange(1, 7, dtype=np.int64) * (r + 1) for r in range(group.size)]
    got = group.allreduce(data[group.rank].copy(), op=op)
    np.testing.assert_array_equal(got, NAMES[op](data))


@pytest.mark.parametrize("op", NAMES)
def test_named(op):
    ranks.run(3, by_name, op)


def average(group):
    x = np.full(4, float(group.rank))
    np.testing.assert_allclose(group.allreduce(x, op="avg"), (group.size - 1) / 2)


def test_average():
    ranks.run(3, average)


def booleans(group):
    x = np.array([True, group.rank == 0, False])
    np.testing.assert_array_equal(group.allreduce(x.copy(), op="min"), [True, False, False])
    np.testing.assert_array_equal(group.allreduce(x.copy(), op="bor"), [True, True, False])
    with pytest.raises(col.InvalidArgument, match="not defined on boolean"):
        group.allreduce(x)


def test_booleans():
    ranks.run(2, booleans)


def scaled(group):
    x = np.full(4, 1.0)
    np.testing.assert_allclose(group.allreduce(x, op=col.premul_sum(group.rank + 1)), 3.0)


def test_scaled_sum():
    ranks.run(2, scaled)


def larger_magnitude(left, right):
    return np.where(np.abs(left) >= np.abs(right), left, right)


def own_function(group):
    x = np.array([1.0, -2.0, 3.0]) * (-1) ** group.rank * (group.rank + 1)
    expected = np.array([1.0, -2.0, 3.0]) * (-1) ** (group.size - 1) * group.size
    np.testing.assert_array_equal(group.allreduce(x.copy(), op=larger_magnitude), expected)
    named = col.user_op(larger_magnitude, commutative=True, name="larger")
    assert named.name == "larger"
    np.testing.assert_array_equal(group.allreduce(x.copy(), op=named), expected)
    np.testing.assert_array_equal(group.iallreduce(x.copy(), op=named).wait(), expected)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_own_function(n):
    ranks.run(n, own_function)


def keeps_order(group):
    x = np.full(1000, float(group.rank))
    assert (group.allreduce(x.copy(), op=lambda left, right: left) == 0).all()
    assert (group.allreduce(x.copy(), op=lambda left, right: right) == group.size - 1).all()
    assert (group.scan(x, op=lambda left, right: right) == group.rank).all()


def test_order_of_ranks():
    ranks.run(3, keeps_order)


def raises(group):
    def boom(left, right):
        raise KeyError("boom")

    own = group.dup()
    with pytest.raises(KeyError, match="boom"):
        own.allreduce(np.ones(3), op=boom)
    with pytest.raises(col.Aborted):
        own.allreduce(np.ones(3))
    own.destroy()
    own = group.dup()
    with pytest.raises(KeyError, match="boom"):
        own.iallreduce(np.ones(3), op=boom).wait()  # it may run at once
    own.destroy()


def test_exception_of_own_function():
    ranks.run(2, raises)


def one_raises(group):
    def maybe(left, right):
        if group.rank == 1:
            raise ValueError("only here")
        return left + right

    own = group.dup()
    try:
        own.allreduce(np.ones(1 << 16), op=col.user_op(maybe, name="maybe"), timeout=20)
    except ValueError as error:
        assert group.rank == 1 and not isinstance(error, col.Error), error
        return "own"
    except col.Error as error:
        assert "only here" in str(error)
        return "told"
    finally:
        own.destroy()


def test_others_learn_of_the_exception():
    assert "own" in ranks.run(3, one_raises)


def wrong_result(group):
    own = group.dup()
    with pytest.raises(ValueError, match="broadcast"):
        own.allreduce(np.ones(3), op=lambda left, right: np.ones(5))
    own.destroy()


def test_result_of_another_length():
    ranks.run(2, wrong_result)
