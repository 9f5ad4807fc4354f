"""Formulas compute with the precision of the value, whatever the types of the operands are."""

import math

import numpy as np
import pytest

import wengert
from wengert import grad, jvp, value_and_grad

X = np.array([1.3, 2.2, 0.7])
NARROW = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint64, np.float16, np.float32]
BINARY = [np.power, np.float_power, np.arctan2, np.hypot, np.logaddexp2, np.multiply, np.divide]


def both(f, *args):
    """The gradient and the derivative along ones in the first argument."""
    return grad(f)(*args), jvp(f, args, (np.ones(3), *[None] * (len(args) - 1)))[1]


@pytest.mark.parametrize("fn", BINARY, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("jit", [True, False])
def test_an_operand_of_another_type_is_taken_as_the_value_was_computed(fn, dtype, jit):
    c = np.array([2, 3, 1], dtype)
    with wengert.jit(jit):
        for f in (lambda x, c: fn(x, c).sum(), lambda x, c: fn(c, x).sum()):
            for _ in range(3):
                for got, wanted in zip(both(f, X, c), both(f, X, c.astype(float)), strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_conditions_and_large_whole_numbers_are_taken_so_too():
    def f(x, y):
        return np.arctan2(y, x).sum() + np.arctan2(x, y).sum()

    for y in (np.array([True, False, True]), np.array([4_000_000_000, 3, -5_000_000_000])):
        for got, wanted in zip(both(f, X, y), both(f, X, y.astype(float)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_in_folded_loops():
    def f(x, y):
        total = 0.0
        for k in range(len(x)):
            total += np.arctan2(y[k], x[k]) + np.arctan2(y, x + k).sum()
        return total

    slope = grad(f)
    for n in (3, 2, 3, 1, 3):
        for y in (
            np.array([True, False, True]),
            np.array([7, 3, 4]),
            np.array([7, 200, 4], np.uint8),
        ):
            np.testing.assert_allclose(slope(X[:n], y[:n]), grad(f)(X[:n], y[:n] * 1.0), rtol=1e-13)


def test_of_python_numbers():
    assert grad(lambda x: math.atan2(np.uint8(200), x))(1.0) == grad(
        lambda x: math.atan2(200.0, x)
    )(1.0)


def test_single_precision_stays_so():
    x, y = np.float32([1.5, 2.5]), np.array([2, 3], np.uint8)
    value, slope = value_and_grad(lambda x: (x**y).sum())(x)
    assert value.dtype == slope.dtype == np.float32


def test_what_counts_stays_whole():
    n = np.array([2, 3], np.uint8)
    assert grad(lambda x: np.ldexp(x, n).sum())(1.5) == 12.0
    special = pytest.importorskip("scipy.special")
    for fn, count in (
        (special.eval_hermite, n.astype(int)),
        (special.gammainc, n),
        (special.jv, n),
    ):
        slope = grad(lambda x, fn=fn, n=count: fn(n, x).sum())
        assert slope(0.5) == pytest.approx(sum(grad(fn, argnums=1)(int(k), 0.5) for k in n))


def test_values_and_nodes_of_interp_are_not_subtracted_as_unsigned_numbers():
    nodes, values = np.array([1, 2, 5], np.uint8), np.array([3, 1, 2], np.uint8)
    got = grad(lambda x: np.interp(x, nodes, values).sum())(X)
    np.testing.assert_allclose(got, [-2.0, 1 / 3, 0.0])


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.uint64, np.int8, bool], ids=lambda dtype: dtype.__name__
)
def test_a_roll_by_an_unsigned_number_is_taken_back(dtype):
    c = np.arange(6.0)
    for shift in (dtype(1), np.array(1, dtype), [dtype(1)]):
        slope = grad(lambda x, shift=shift: (np.roll(x, shift) * c).sum())
        assert slope(c).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 0.0]
    both = dtype(1), np.uint8(2)
    slope = grad(lambda x: (np.roll(x, both, axis=(0, 1)) * c.reshape(2, 3)).sum())
    assert slope(np.ones((2, 3))).tolist() == [[5.0, 3.0, 4.0], [2.0, 0.0, 1.0]]


def test_a_truth_value_taken_as_an_index_is_a_number():
    assert grad(lambda x: np.take(x, np.True_))(np.ones(3)).tolist() == [0.0, 1.0, 0.0]
    assert grad(lambda x: np.take(x, [True, False, True]).sum())(np.ones(3)).tolist() == [
        1.0,
        2.0,
        0.0,
    ]


@pytest.mark.parametrize("jit", [True, False])
def test_what_subtract_at_takes_away(jit):
    def f(x, b):
        y = x * 1
        np.subtract.at(y, [1, 1], b)
        return (y * y).sum()

    given = [np.array([200, 3], np.uint8), np.array([True, False]), [0.5, 2], np.uint8(4), True, 3]
    with wengert.jit(jit):
        for b in given:
            for _ in range(3):
                value, slope = value_and_grad(f)(np.ones(3), b)
                assert value == f(np.ones(3), b)
                assert slope.tolist() == [2.0, 2 - 2 * float(np.sum(np.broadcast_to(b, 2))), 2.0]


def test_a_mask_is_multiplied_as_it_is():
    mask = np.array([True, False, True])
    slope = grad(lambda x: (x * mask).sum())
    assert slope(X).tolist() == [1.0, 0.0, 1.0]
    assert "cast" not in str(wengert.stages(slope, X))
