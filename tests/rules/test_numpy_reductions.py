"""The rules for sums and products, extremes, moments, cumulative forms and sorting."""

import inspect
import warnings

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import grad, jvp, pullback

case = Table()

X = np.array([0.7, -1.3, 2.1, 0.4])
M = np.array([[0.52, -1.23, 2.06], [0.71, 0.44, -0.63]])
T = np.arange(24.0).reshape(2, 3, 4) * 0.13 % 0.9 - 0.41
Z = np.array([[0.3 + 1.2j, -0.7 - 0.4j], [1.1 + 0.2j, 0.4 - 0.9j]])
MASK = np.array([[True, False, True], [True, True, False]])

for f in (np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std, np.ptp, np.nansum, np.nanmax):
    case(f, X)
    case(f, M)
    case(f, M, 0)
    case(f, M, axis=1)
    case(f, M, axis=-1, keepdims=True)
    case(f, M, keepdims=True)
    case(f, T, axis=(0, 2))
    case(f, T, axis=(-1, 0), keepdims=True)
    case(f, [0.6, 1.7, -0.2])
    case(f, np.array(0.6), case={"second": f is not np.std})
for f in (np.amax, np.amin, np.nanmin):
    case(f, M, axis=1)
for f in (np.sum, np.mean, np.prod, np.var, np.std):
    case(f, M, where=MASK)
    case(f, M, axis=1, where=MASK)
    case(f, M, axis=0, where=MASK[:, :1])
for f in (np.sum, np.mean, np.prod, np.var, np.std):
    case(f, Z)
    case(f, Z, axis=0)
for f in (np.sum, np.prod):
    case(f, M, 0, initial=1.7)
    case(f, M, axis=1, initial=1.7, where=MASK)
    case(f, np.zeros((0, 2)), axis=0)
    case(f, np.zeros((2, 0)), axis=0)
case(lambda x, start: np.sum(x, axis=1, initial=start), M, 1.7)
case(lambda x, start: np.prod(x, axis=1, initial=start), M, 1.7)
case(lambda x, start: np.max(x, axis=1, initial=start), M, 1.7)
case(np.max, M, axis=1, initial=-9.0, where=MASK)
case(np.sum, M, dtype=np.float32, case={"second": False, "tol": 1e-3})
case(np.sum, M, 1, None, None, True)
for f in (np.var, np.std):
    case(f, M, ddof=1)
    case(f, M, axis=0, ddof=1)
    case(f, M, axis=1, keepdims=True, ddof=0.5)
if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
    for f in (np.var, np.std):
        case(lambda x, m, f=f: f(x, axis=1, mean=m), M, np.array([[0.1], [0.2]]))
        case(lambda x, m, f=f: f(x, mean=m, keepdims=True, where=MASK), M, 0.3)
        case(lambda x, m, f=f: f(x, mean=m), Z, 0.3 + 0.2j)
        case(lambda x, f=f: f(x, axis=0, mean=x.mean(axis=0, keepdims=True)), M)
case(lambda x, start: np.nansum(x, axis=1, initial=start, where=MASK), M, 1.7)
case(lambda x, start: np.nansum(np.where(MASK, x, np.nan), initial=start), M, 1.7)
case(np.prod, np.array([0.0, 1.7, 0.6]))
case(np.prod, np.array([[0.0, 1.7], [0.0, 0.6]]), axis=0)
for name in ("sum", "mean", "prod", "max", "min", "var", "std"):
    method = getattr(np.ndarray, name)
    case(method, M)
    case(method, M, 0)
    case(method, M, axis=1, keepdims=True)
case(lambda x: (x * x).sum() * x.mean(axis=0), M)
case(lambda x: np.float64.sum(x) * 2, np.float64(1.7))

case(np.add.reduceat, X, [0, 2], case={"name": "add.reduceat"})
case(np.add.reduceat, X, [0, 3, 1, 1], case={"name": "add.reduceat"})
case(np.add.reduceat, M, [0, 1], axis=1, case={"name": "add.reduceat"})

# NumPy's own Python code
case(np.average, M)
case(np.average, M, axis=1, weights=np.array([0.3, 1.2, 0.5]))
case(lambda x, w: np.average(x, weights=w), X, np.abs(X))
for f in (np.median, np.nanmean, np.nanvar, np.nanstd):
    case(f, M)
    case(f, M, axis=0)
case(np.median, X)
case(np.percentile, X, 30)
case(np.percentile, M, [20, 70], axis=1)
case(np.quantile, X, 0.6)
case(np.cov, M)
case(np.corrcoef, M)
case(np.diff, X)
case(np.diff, M, axis=0)
case(np.diff, X, n=2)
case(np.ediff1d, X)
case(np.ediff1d, X, to_end=[0.6, 1.7])
EVEN = np.arange(4.0)
for f in (X, EVEN, [0.7, 1.3, 0.2, 2.1]):
    for order in (1, 2):
        case(np.gradient, f, edge_order=order)
        case(np.gradient, f, 0.3, edge_order=order)
        case(np.gradient, f, EVEN, edge_order=order)
        case(np.gradient, f, np.array([0.0, 0.3, 0.4, 1.2]), edge_order=order)
case(np.gradient, T, axis=(2, -3))
case(np.gradient, T, EVEN, axis=-1)
case(np.gradient, T, 0.3, EVEN[:2], axis=(1, 0))
case(np.gradient, M, EVEN[: len(M)], 0.7)
case(np.gradient, M, 0.7)
case(np.gradient, Z, EVEN[: Z.shape[1]], axis=1)
case(np.gradient, np.array([3, 1, 2, 7]), EVEN)
case(np.gradient, np.array([3, 1, 2, 7], np.uint8), EVEN)
case(np.gradient, X[:2], EVEN[:2])
if hasattr(np, "trapezoid"):
    case(np.trapezoid, X, dx=0.3)
    case(np.trapezoid, X, np.array([0.0, 0.3, 0.4, 1.2]))

# Cumulative forms
for f in (np.cumsum, np.cumprod):
    case(f, X)
    case(f, M)
    case(f, M, axis=0)
    case(f, T, axis=-2)
    case(f, Z, axis=1)
    case(f, np.array([0.6, 0.0, 1.7, 0.0, 0.3]))
case(np.ndarray.cumsum, M, 1)
case(np.ndarray.cumprod, M, 1)
case(np.nancumsum, X)
if hasattr(np, "cumulative_sum"):
    case(np.cumulative_sum, X)
    case(np.cumulative_prod, X)
    case(np.cumulative_sum, M, axis=1, include_initial=True)

# Order
case(np.sort, X)
case(np.sort, M)
case(np.sort, M, axis=0)
case(np.sort, M, axis=None)
case(np.partition, X, 2)
case(np.partition, M, 1, axis=0)
case(lambda x: np.sort(x)[::-1] * np.argsort(x), X)
case(lambda x: sorted(x.tolist())[1] * max(x), X)
case(lambda x: x[np.argmax(x)] * x[np.argmin(x)], X)
case(np.unique, X)
case(np.unique, np.array([[0.7, -1.3], [2.1, -0.2]]), return_index=True)
case(np.unique, M, axis=0)
case(lambda x: np.argsort(x, axis=0) * x, M)


for f in (np.var, np.std):
    case(lambda x, n, f=f: f(x, axis=1, ddof=n), np.reshape(np.arange(12.0) ** 1.3, (3, 4)), 0.7)
    case(
        lambda x, n, f=f: f(x, axis=1, ddof=n, where=[[True, False, True, True]]),
        np.reshape(np.arange(12.0) ** 1.3, (3, 4)),
        0.7,
    )


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


def test_ties_share_equally():
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    for f in (np.max, np.amax, np.ndarray.max, np.maximum.reduce):
        _, back = pullback(f, x, axis=1)
        np.testing.assert_array_equal(back(np.ones(2))[0][0], [0, 0.5, 0.5])
        np.testing.assert_allclose(back(np.ones(2))[0][1], 1 / 3)


def test_an_extreme_is_found_among_what_was_compared():
    """With ``dtype=`` that is not the array, but what was made of it."""
    for u, at in ((np.maximum, [2, 0]), (np.fmax, [2, 0]), (np.minimum, [1, 2]), (np.fmin, [1, 2])):
        value, back = pullback(u.reduce, M, axis=1, dtype=np.float32)
        assert value.dtype == np.float32
        expected = np.eye(3)[at] * [[1.5], [-2.0]]
        np.testing.assert_array_equal(back(np.array([1.5, -2.0], np.float32))[0], expected)
    for u, expected in ((np.maximum, [[2, 0, 1], [3, 0, 0]]), (np.minimum, [[1, 2, 0], [1, 1, 1]])):
        _, back = pullback(u.accumulate, M, axis=1, dtype=np.float32)
        np.testing.assert_array_equal(back(np.ones((2, 3), np.float32))[0], expected)


def test_an_extreme_of_nothing_but_nans_is_found_in_silence():
    """As fmax and fmin find it, unlike nanmax and nanmin."""
    for f in (np.fmax.reduce, np.fmin.reduce):
        answer = grad(lambda x, f=f: f(x * np.nan))
        for k in range(6):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert np.isnan(answer(np.ones(3) + k)).all()


def test_std_and_norm_of_equal_numbers_have_slope_zero():
    for f in (np.std, lambda x: np.linalg.norm(x - 1.0)):
        _, back = pullback(f, np.ones(3))
        np.testing.assert_array_equal(back(1.0)[0], 0.0)


def test_std_of_equal_numbers_whose_mean_is_rounded_has_slope_zero():
    x = np.full(3, 0.1)
    assert np.mean(x) != 0.1
    _, back = pullback(np.std, x)
    np.testing.assert_array_equal(back(1.0)[0], 0.0)
    _, back = pullback(np.std, np.stack([x, x]), axis=1, where=np.array([True, True, True]))
    np.testing.assert_array_equal(back(np.ones(2))[0], 0.0)


def test_the_extreme_of_what_holds_a_nan_is_that_nan():
    x = np.array([[1.0, np.nan, 3.0], [2.0, 4.0, 0.0]])
    _, back = pullback(np.max, x, axis=1)
    np.testing.assert_array_equal(back(np.ones(2))[0], [[0, 1, 0], [0, 1, 0]])
    _, back = pullback(np.nanmax, x, axis=1)
    np.testing.assert_array_equal(back(np.ones(2))[0], [[0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    "f",
    [
        np.sum,
        np.mean,
        np.prod,
        np.max,
        np.min,
        np.ptp,
        np.var,
        np.std,
        np.median,
        np.cumsum,
        np.cumprod,
    ]
    + [np.hypot.reduce, np.logaddexp.reduce, np.linalg.norm, np.average],
)
def test_a_nan_stays_out_where_its_row_is_left_out(f):
    x = np.array([[1.0, 2.0, 4.0], [3.0, np.nan, 5.0]])

    def masked(x):
        y = f(x, axis=1)
        return np.where(x[:, 0] < 2, y.T, 0.0).sum()

    whole = grad(lambda x: f(x).sum())(x[0])
    with np.errstate(invalid="ignore"):  # NumPy's own of the NaN
        for _ in range(3):
            np.testing.assert_allclose(grad(masked)(x), [whole, np.zeros(3)])


def test_no_number_has_a_part_in_the_median_of_none():
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        _, back = pullback(np.nanmedian, np.full(3, np.nan))
        np.testing.assert_array_equal(back(1.0)[0], 0.0)


DISTINCT = [lambda z: np.unique(z, return_counts=True)[0], np.unique]
if hasattr(np, "unique_values"):
    DISTINCT.append(np.unique_values)
if "sorted" in inspect.signature(np.unique).parameters:
    DISTINCT.append(lambda z: np.unique(z, sorted=False))
    DISTINCT.append(lambda z: np.unique(z, return_inverse=True, sorted=False)[0])


@pytest.mark.parametrize("f", DISTINCT)
def test_each_distinct_value_has_its_own_cotangent(f):
    """NumPy gives complex numbers in an order of its own where they need not be sorted."""
    rng = np.random.default_rng(0)
    z = rng.integers(-3, 3, 12) + 1j * rng.integers(-2, 2, 12)
    values, back = pullback(f, z)
    np.testing.assert_array_equal(values, f(z))
    d = np.arange(1.0, len(values) + 1) + 0j
    (dz,) = back(d)
    assert [dz[z == value].sum() for value in values] == d.tolist()
    np.testing.assert_allclose(jvp(f, (z,), (2 * z,))[1], 2 * values)


def test_what_is_counted_and_numbered_of_distinct_values():
    x, w = np.array([1.0, -2.0, 1.0, np.nan, np.nan]), np.arange(1.0, 6.0)
    for of, expected in [
        (lambda x, w: np.unique(x[:3], return_counts=True)[1] @ w[:2], [1.0, 2.0, 0, 0, 0]),
        (lambda x, w: np.unique(x[:3], return_inverse=True)[1] @ w[:3], [1.0, 0, 1.0, 0, 0]),
        (lambda x, w: np.unique(x[:3], return_index=True)[1] @ w[:2], [1.0, 0, 0, 0, 0]),
    ]:
        dx, dw = grad(of, argnums=(0, 1))(x, w)
        assert dx.tolist() == [0.0] * 5
        assert dw.tolist() == expected
    (dx,) = pullback(lambda x: np.unique(x, equal_nan=False), x)[1](np.arange(1.0, 5.0))
    assert sorted(dx.tolist()) == [0.0, 1.0, 2.0, 3.0, 4.0]
