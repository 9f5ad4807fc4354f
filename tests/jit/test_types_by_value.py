"""What has another type, dtype or shape for other values of the same operands is looked at where a program answers."""

import math

import numpy as np
import pytest

from wengert import custom_rule, jit, nondiff, numeric_rule, pullback, rrule, value_and_grad

linalg = pytest.importorskip("scipy.linalg")


def matrix(x):
    return np.array([[0.0, x], [1.0, 0.0]])


def root(x):
    y = x**0.5
    return 5 * abs(y) if isinstance(y, complex) else y


def root_by_pow(x):
    y = pow(x, 0.5)
    return 5 * abs(y) if isinstance(y, complex) else y


def root_in_place(x):
    y = x
    y **= 0.5
    return abs(y) + (7.0 if isinstance(y, complex) else 0.0)


def inverse_or_square(x):
    y = (1 + (x > 0)) ** (2 if x > 0 else -1)
    return x * y * (3.0 if isinstance(y, int) else 2.0)


def eigenvalues(x):
    w = np.linalg.eigvals(matrix(x))
    return float(abs(w[0])) * (5.0 if w.dtype.kind == "c" else 1.0)


def eigenvectors(x):
    _, v = np.linalg.eig(matrix(x))
    return x * (5.0 if v.dtype.kind == "c" else 1.0)


def residuals(x):
    a = np.array([[max(x, 0.0), 1.0], [0.0, 1.0], [0.0, 2.0]])
    found = np.linalg.lstsq(a, np.array([1.0, 1.0, 3.0]), rcond=None)
    return x * (1 + found[1].size)


def matrix_root(x):
    y = linalg.sqrtm(np.diag([x, 1.0]))
    return float(abs(y).sum()) * (5.0 if y.dtype.kind == "c" else 1.0)


def matrix_logarithm(x):
    y = linalg.logm(np.diag([x, 2.0]))
    return x * y.dtype.itemsize


def vectors_of_scipy(x):
    _, v = linalg.eig(matrix(x))
    return x * (5.0 if v.dtype.kind == "c" else 1.0)


@custom_rule(pure=True)
def or_numpy(x):
    return (1.0 * x if x > 0 else np.float64(x)), lambda d: (d,)


def of_a_rule(x):
    return x * (3.0 if type(or_numpy(x)) is float else 2.0)


@custom_rule(pure=True)
def one_or_two(x):
    return ((x,) if x > 0 else (x, x)), lambda d: (sum(y for y in d if y is not None),)


def of_a_tuple(x):
    return one_or_two(x)[0] * len(one_or_two(x))


def turned(x):
    return 1.0 * x if x > 0 else complex(0.0, x)


@rrule(turned, pure=True)
def _(x):
    return turned(x), lambda d: (d if x > 0 else -d.imag,)


def of_a_primitive(x):
    y = turned(x)
    return 3.0 * abs(y) if isinstance(y, complex) else y


@nondiff
def some(x):
    return np.ones(1 if x > 0 else 2)


def of_a_constant(x):
    return x * some(x).size


@numeric_rule
def whole(x):
    return 1.0 * x if x > 0 else np.float64(x)


def by_differences(x):
    return x * (3.0 if type(whole(x)) is float else 2.0)


FUNCTIONS = [
    *(root, root_by_pow, root_in_place, inverse_or_square, eigenvalues, eigenvectors, residuals),
    *(matrix_root, matrix_logarithm, vectors_of_scipy),
    *(of_a_rule, of_a_tuple, of_a_primitive, of_a_constant, by_differences),
]


@pytest.mark.filterwarnings("ignore::wengert.NumericRuleWarning")
@pytest.mark.parametrize("fold", ["0", "1"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_type_of_a_value_is_that_of_plain_python(f, sign, fold, monkeypatch):
    monkeypatch.setenv("WENGERT_FOLD", fold)
    both, answer = value_and_grad(f), jit(f)
    for x in (*[1.3, 1.4, 1.5, 1.6, 1.7], *[-1.3, -1.4], 1.8, -1.5):
        x *= sign
        expected = f(x)
        value, slope = both(x)
        assert (value, type(value)) == (expected, type(expected))
        assert math.isclose(slope, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel_tol=1e-5, abs_tol=1e-6)
        value, back = pullback(f, x)
        assert value == expected
        assert math.isclose(back(1.0)[0], slope)
        assert answer(x) == expected


@pytest.mark.parametrize("fold", ["0", "1"])
@pytest.mark.parametrize("of", [np.abs, np.negative, lambda n: np.divide(n, 2)])
def test_an_integer_of_more_than_64_bits_is_an_object_to_numpy(of, fold, monkeypatch):
    monkeypatch.setenv("WENGERT_FOLD", fold)

    def f(x, n):
        return x * (2.0 if isinstance(of(n), np.generic) else 3.0)

    both = value_and_grad(f)
    for n in (*range(1, 9), 10**20, 3, -(10**20), -4):
        value, slope = both(1.5, n)
        assert value == f(1.5, n)
        assert slope == value / 1.5


NARROW = {
    "a half": lambda x: math.sin(x) + np.float16(1),
    "a half of a bool": lambda x: math.atan2(x, 1.5) + np.cos(True),
    "a single": lambda x: math.sin(x) * np.float32(1.1),
}


@pytest.mark.parametrize("name", NARROW)
def test_programs_compute_in_as_many_bits_as_the_sweep(name):
    """A cotangent of fewer bits is made a float where the sweep does so, not after the products."""
    f = NARROW[name]
    for _ in range(5):
        _, back = pullback(f, 0.893)
        kept = value_and_grad(f)(0.893)[1], *back(0.87)
    with jit(False):
        _, back = pullback(f, 0.893)
        assert kept == pytest.approx((value_and_grad(f)(0.893)[1], *back(0.87)), rel=1e-14)
