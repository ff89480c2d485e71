"""How reductions combine elements."""

import numpy as np
import pytest

import col
import ranks

NAMES = {
    "sum": np.add.reduce, "product": np.multiply.reduce, "prod": np.multiply.reduce, "min": np.minimum.reduce,
    "max": np.maximum.reduce, "band": np.bitwise_and.reduce, "bor": np.bitwise_or.reduce, "bxor": np.bitwise_xor.reduce,
}


@pytest.mark.parametrize("op", NAMES)
@pytest.mark.ranks(3)
def test_named(group, op):
    data = [np.arange(1, 7, dtype=np.int64) * (r + 1) for r in range(group.size)]
    got = group.allreduce(data[group.rank].copy(), op=op)
    np.testing.assert_array_equal(got, NAMES[op](data))


@pytest.mark.ranks(3)
def test_average(group):
    x = np.full(4, float(group.rank))
    np.testing.assert_allclose(group.allreduce(x, op="avg"), (group.size - 1) / 2)


@pytest.mark.ranks(2)
def test_booleans(group):
    x = np.array([True, group.rank == 0, False])
    np.testing.assert_array_equal(group.allreduce(x.copy(), op="min"), [True, False, False])
    np.testing.assert_array_equal(group.allreduce(x.copy(), op="bor"), [True, True, False])
    with pytest.raises(col.InvalidArgument, match="not defined on boolean"):
        group.allreduce(x)


@pytest.mark.ranks(2)
def test_scaled_sum(group):
    x = np.full(4, 1.0)
    np.testing.assert_allclose(group.allreduce(x, op=col.premul_sum(group.rank + 1)), 3.0)


def larger_magnitude(left, right):
    return np.where(np.abs(left) >= np.abs(right), left, right)


@pytest.mark.ranks(1, 2, 3, 5)
def test_own_function(group):
    x = np.array([1.0, -2.0, 3.0]) * (-1) ** group.rank * (group.rank + 1)
    expected = np.array([1.0, -2.0, 3.0]) * (-1) ** (group.size - 1) * group.size
    np.testing.assert_array_equal(group.allreduce(x.copy(), op=larger_magnitude), expected)
    named = col.user_op(larger_magnitude, commutative=True, name="larger")
    assert named.name == "larger"
    np.testing.assert_array_equal(group.allreduce(x.copy(), op=named), expected)
    np.testing.assert_array_equal(group.iallreduce(x.copy(), op=named).wait(), expected)


@pytest.mark.ranks(3)
def test_order_of_ranks(group):
    x = np.full(1000, float(group.rank))
    assert (group.allreduce(x.copy(), op=lambda left, right: left) == 0).all()
    assert (group.allreduce(x.copy(), op=lambda left, right: right) == group.size - 1).all()
    assert (group.scan(x, op=lambda left, right: right) == group.rank).all()


def raises(group):
    """Whether each of two calls has raised the error of this rank's own function: a late rank gets the other's, in words."""
    def boom(left, right):
        raise KeyError("boom")

    errors = (KeyError, col.errors.Internal)
    own = group.dup()
    with pytest.raises(errors, match="boom") as blocking:
        own.allreduce(np.ones(3), op=boom)
    with pytest.raises(col.Aborted):
        own.allreduce(np.ones(3))
    own.destroy()
    own = group.dup()
    with pytest.raises(errors, match="boom") as started:
        own.iallreduce(np.ones(3), op=boom).wait()  # it may run at once
    own.destroy()
    return blocking.type is KeyError, started.type is KeyError


def test_exception_of_own_function():
    blocking, started = zip(*ranks.run(2, raises))
    assert any(blocking) and any(started)


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


def returns_another_length(group):
    """Whether the error is that of this rank's own function: a late rank gets the other's, in words."""
    own = group.dup()
    with pytest.raises((ValueError, col.errors.Internal), match="broadcast") as caught:
        own.allreduce(np.ones(3), op=lambda left, right: np.ones(5))
    own.destroy()
    return caught.type is ValueError


def test_result_of_another_length():
    assert any(ranks.run(2, returns_another_length))
