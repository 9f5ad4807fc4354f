"""The rules for indexing, searching and interpolation, and for writing into arrays."""

import copy
import operator as op

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import NoRuleError, grad, hessian, hvp, jvp, pullback
from wengert.rules import mutation

case = Table()

X = np.array([0.7, -1.3, 2.1, 0.4])
V = np.array([0.2, 1.1, -0.6])
M = np.array([[0.52, -1.23, 2.06], [0.71, 0.44, -0.63]])
T = np.arange(24.0).reshape(2, 3, 4) * 0.13 % 0.9 - 0.41
Z = np.array([0.3 + 1.2j, -0.7 - 0.4j, 1.1 + 0.2j])

INDICES = [
    1,
    -1,
    (1, 2),
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    (slice(None), 1),
    (slice(0, 1), slice(None, None, 2)),
    (Ellipsis, 0),
    (Ellipsis,),
    (None, 1),
    (slice(None), None),
    [0, 1, 0],
    np.array([1, 1, 1]),
    np.array([[0, 1], [1, 1]]),
    ([0, 1, 1], [2, 0, 0]),
    (slice(None), [2, 2, 0]),
    (np.array([[0], [1]]), np.array([2, 1])),
    (1, [0, 0]),
    ((0, 1, 0),),
    ((0, 1), (2, 0)),
    (Ellipsis, (0, 2)),
    ((True, False),),
    M > 0,
    [True, False],
    (slice(None), np.array([True, False, True])),
    (np.array(1), 0),
    np.int64(1),
]
for index in INDICES:
    case(op.getitem, M, index)
    case(mutation.setitem, M, index, np.zeros_like(M)[index] + 0.3)
    case(mutation.scatter_add, M, index, np.zeros_like(M)[index] + 0.3)
case(op.getitem, T, (slice(None), 0, [1, 1, 3]))
case(op.getitem, T, ([1, 0], slice(None), [1, 1]))
case(op.getitem, Z, [0, 0, 2])
case(op.getitem, X, slice(2, 2))
case(op.getitem, np.array(0.6), ())
case(mutation.setitem, M, 1, 0.6)
case(mutation.setitem, M, 1, V)
case(mutation.setitem, M, (slice(None), 1), V[:1])
case(mutation.setitem, M, Ellipsis, V)
case(mutation.setitem, M, ([0, 0, 1], [1, 1, 2]), V)
case(mutation.setitem, M, M > 0, 0.6)
case(mutation.setitem, X, [2, 2], [0.6, 1.7])
case(lambda d: mutation.scatter(d, [0, 0, 3], (4,), np.dtype(float)), V)
case(lambda d: mutation.scatter(d, (slice(None), 1), (3, 2), np.dtype(float)), V)
case(lambda d: mutation.scatter(d, 2, (4,), np.dtype(float)), 0.6)
case(mutation.scatter_add, X, [1, 1, 2], V)
case(mutation.multiply_at, X, [1, 1, 2], V)
case(mutation.multiply_at, X, [1, 1, 2, 1, 1, 1], np.array([0.2, 1.1, -0.6, 1.3, -0.8, 0.7]))
case(mutation.multiply_at, X, [1, 1, 2], np.array([0.0, 1.1, -0.6]), case={"second": False})
case(mutation.multiply_at, X, [1, 1, 1], np.array([0.0, 0.0, -0.6]), case={"second": False})
case(mutation.multiply_at, X, [1, 3, 2], np.array([0.0, 1.1, 0.0]))
case(mutation.multiply_at, X, slice(1, 3), np.array([0.0, 1.1]))
case(mutation.multiply_at, M, M > 0, 0.0)
case(mutation.multiply_at, M, (slice(None), [0, 2, 0]), 0.6)
case(mutation.others_at, X, [1, 1, 2, 0, 1], np.array([0.2, 1.1, 0.0, 0.4, -0.6]))
case(mutation.others_at, Z, [1, 1, 1], Z + 0.4)
case(lambda x, v: mutation.write_through(x, np.reshape, (-1,), {}, v), M, np.arange(6.0))
case(lambda x, v: mutation.write_through(x, np.transpose, (), {}, v), M, 0.6)
case(lambda x, v: mutation.write_through(x, np.ravel, (), {"order": "C"}, v), M, X[0])
case(
    lambda x, v: mutation.write_through(x, np.reshape, (6,), {"order": "F"}, v),
    np.asfortranarray(M),
    np.arange(6.0),
)
case(lambda x, v: mutation.write_through(x, op.getitem, (1,), {}, v), M, V)

# Taking
case(np.take, X, [0, 2, 2])
case(np.take, X, 2)
case(np.take, M, [0, 5, 5])
case(np.take, M, [[0, 2], [2, 1]], axis=1)
case(np.take, M, 1, axis=0)
case(np.take, X, [0, 5, -1], mode="wrap")
case(np.take, X, [0, 5, -1], mode="clip")
case(np.ndarray.take, M, [1, 1], 1)
case(np.take_along_axis, M, np.array([[2, 0], [1, 1]]), 1)
case(np.compress, [True, False, True], X[:3])
case(np.compress, [True, False, True], M, axis=1)
case(np.ndarray.compress, M, [False, True], 0)
case(np.extract, M > 0, M)
case(np.choose, [1, 0, 1], [V, V[::-1]])
case(np.choose, [1, 0, 2], (V, 0.6, V[::-1]))
case(np.ndarray.choose, np.array([1, 0, 1]), [V, V[::-1]])
case(np.select, [X > 1, X > 0], [X, X * X], 0.6)
case(np.piecewise, X, [X > 0.5], [lambda x: x * x, lambda x: 2 * x])
case(lambda x: x[np.nonzero(x > 0)] * 2, X)
case(lambda x: x[np.argsort(x)] * np.arange(4), X)
case(np.bincount, np.array([0, 1, 1, 3]), X)
case(np.interp, 0.6, np.array([0.0, 1.0, 2.5]), V)
case(np.interp, np.array([-1.0, 0.3, 1.7, 9.0]), np.array([0.0, 1.0, 2.5]), V)
case(np.interp, np.array([-1.0, 0.3, 1.7, 9.0]), np.array([0.0, 1.0, 2.5]), V, 0.6, 1.7)
case(np.interp, np.array([-1.0, 0.3, 1.7, 9.3]), np.array([0.1, 1.0, 2.5]), V, period=4.0)
case(np.interp, np.array([-1.0, 0.3, 1.7, 9.3]), np.array([0.1, 1.0, 2.5]), V, period=-4.0)
case(
    lambda x, xp, fp, period: np.interp(x, xp, fp, period=period),
    np.array([-1.0, 0.3, 1.7, 9.3]),
    np.array([0.1, 5.0, 2.5]),
    V,
    4.0,
)
case(lambda x: np.searchsorted(np.sort(x), 0.5) * x, X)
case(lambda x: np.histogram(x, 3)[0] * x[0], X)
case(lambda x: np.trim_zeros(np.where(x > 0, x, 0.0)), X)


def written(write):
    """A function that copies its first argument, writes into the copy, and returns it."""

    def function(x, *args):
        y = x * 1.0
        write(y, *args)
        return y

    function.__name__ = write.__name__
    return function


def writes(fn, *args, case_options=None):
    def write(y, *rest):
        fn(y, *rest)

    write.__name__ = getattr(fn, "__name__", "write")
    case(written(write), *args, case=case_options)


writes(np.ndarray.fill, M, 0.6)
writes(np.ndarray.sort, M)
writes(np.ndarray.sort, M, 0)
writes(np.ndarray.partition, X, 1)
writes(np.put, M, [0, 5], [0.6, 1.7])
writes(np.put, M, [0, 5, 1], 0.6)
writes(np.ndarray.put, X, [0, -1], V[:1])
writes(np.copyto, M, V)
writes(np.place, M, M > 0, [0.6, 1.7])
writes(np.putmask, M, M > 0, M * 2)
writes(np.add.at, X, [1, 1, 2], V)
writes(np.add.at, M, (slice(None), [0, 0]), 0.6)
writes(np.subtract.at, X, [1, 1, 2], V)
writes(np.multiply.at, X, [1, 1, 2], V)
writes(np.divide.at, X, [1, 1, 2], V)
writes(np.fill_diagonal, M, 0.6)
writes(np.fill_diagonal, np.ones((5, 2)), [0.6, 1.7], True)
writes(np.put_along_axis, M, np.array([[1], [2]]), 0.6, 1)


@written
def masked(y, v):
    np.copyto(y, v, where=y > 0)


@written
def item(y, v):
    y[1] = v
    y[2] += v * y[0]


@written
def views(y, v):
    row = y[1]
    row[0] = v
    y.T[2] *= v
    y.ravel()[1:3] += v


@written
def masks(y, v):
    y[y > 0] = v
    y[y < 0] *= v


case(masked, M, V)
case(item, X, 0.6)
case(views, M, 0.6)
case(masks, M, 0.6)


@case.each
def test_gradient(case):
    check_first(case)


@case.each
def test_forward(case):
    check_forward(case)


@case.second
def test_second_order(case):
    check_second(case)


@case.single
def test_single_precision(case):
    check_single(case)


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_writing_through_a_view_of_any_layout(layout, order):
    """The pullback of a write through a view must not depend on how the cotangent lies in memory."""
    x = np.array(M, order=layout)
    if order in "AK" or order == layout:
        new = np.arange(6.0)
        _, back = pullback(
            lambda a, b: mutation.write_through(a, np.ravel, (order,), {}, b), x, new
        )
        for dz in (np.array(M, order="C"), np.array(M, order="F")):
            dx, dnew = back(dz)
            np.testing.assert_array_equal(dx, 0)
            np.testing.assert_array_equal(dnew, dz.ravel("C" if layout == "C" else "F"))


def test_pure_writes_leave_their_arguments_alone():
    x = copy.deepcopy(M)
    mutation.setitem(x, 0, 1.0)
    mutation.scatter_add(x, [0, 0], 1.0)
    mutation.write_through(x, np.ravel, (), {}, 0.0)
    np.testing.assert_array_equal(x, M)


def test_factors_of_zero_at_one_place_have_first_derivatives_alone():
    def scaled(b):
        y = X.copy()
        np.multiply.at(y, [0, 0, 1], b)
        return np.sum(y * y)

    hessian(scaled)(V)  # whose pushforwards are kept
    np.testing.assert_array_equal(grad(scaled)(np.array([0.0, 2.0, 0.0])), [0, 0, 0])
    with pytest.raises(NoRuleError, match=r"np.multiply.at with a factor of zero"):
        hessian(scaled)(np.array([0.0, 2.0, 3.0]))


def test_a_mask_of_another_count_multiplies_by_one_number():
    def scaled(a):
        y = a * 1
        np.multiply.at(y, a > 1, a[0])
        return np.sum(y * y)

    for a in ([2.0, 0.5, 3.0], [2.0, 3.0, 4.0], [0.0, 0.5, 2.0], [0.1, 0.2, 0.3]):
        a = np.array(a)
        y, on = np.where(a > 1, a * a[0], a), np.array([1.0, 0, 0])
        dy = np.where(a > 1, a + a[0] * np.ones(3), 1.0)
        expected = 2 * y * np.where(a > 1, a[0], 1.0) + on * np.sum(2 * y * a * (a > 1))
        np.testing.assert_allclose(grad(scaled)(a), expected)
        np.testing.assert_allclose(jvp(scaled, (a,), (np.ones(3),))[1], np.sum(2 * y * dy))
        hvp(scaled, (a,), (np.ones(3),))


def test_interpolation_at_a_jump_that_ends_it():
    x, nodes, values = np.array([2.0, 1.5, 3.0]), np.array([0.0, 1.0, 2.0, 2.0]), np.arange(4.0)
    weights = np.array([1.0, 2.0, 4.0])
    f = lambda x, nodes, values: weights @ np.interp(x, nodes, values)
    dx, dnodes, dvalues = grad(f, (0, 1, 2))(x, nodes, values)
    np.testing.assert_array_equal(dvalues, [0.0, 1.0, 1.0, 5.0])
    np.testing.assert_array_equal(dx, [0.0, 2.0, 0.0])
    np.testing.assert_array_equal(dnodes, [0.0, -1.0, -1.0, 0.0])
    assert grad(lambda v: np.interp(2.0, [2.0, 2.0], v))([0.3, 0.4]) == [0.0, 1.0]
