"""The rules for NumPy's ufuncs and its other elementwise functions."""

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import grad, jit, pullback

case = Table()

X = np.array([0.7, -1.3, 2.1])
P = np.array([0.83, 1.57, 0.46])
M = np.array([[0.52, -1.23, 2.06], [0.71, 0.44, -0.63]])
Z = np.array([0.3 + 1.2j, -0.7 - 0.4j, 1.1 + 0.2j])
SMALL = np.array([[0.1, -0.7, 0.6], [0.35, -0.2, 0.9]])
BIG = np.array([1.2, 3.4, 1.9])

# One operand, on the whole line
for f in (
    np.negative, np.positive, np.square, np.absolute, np.fabs, np.sin, np.cos, np.tan, np.arctan, np.sinh,
    np.cosh, np.tanh, np.arcsinh, np.exp, np.exp2, np.expm1, np.cbrt, np.deg2rad, np.rad2deg, np.radians,
    np.degrees, np.reciprocal, np.conjugate, np.real, np.imag, np.sinc, np.sign, np.floor, np.ceil, np.rint,
    np.trunc, np.round, np.nan_to_num, np.isfinite, np.signbit, np.angle, np.float64, np.modf,
):  # fmt: skip
    case(f, M)
    case(f, 0.6)
for f in (np.sin, np.exp, np.absolute, np.square):
    case(f, np.array(0.6))
    case(f, np.zeros((0, 2)))
    case(f, [0.6, -0.2])
    case(f, 2)

# One operand, on a part of the line
for f in (np.log, np.log2, np.log10, np.log1p, np.sqrt):
    case(f, P)
    case(f, 0.6)
for f in (np.arcsin, np.arccos, np.arctanh):
    case(f, SMALL)
    case(f, 0.3)
case(np.arccosh, BIG)
case(np.frexp, BIG)

# One operand, complex
for f in (
    np.negative, np.square, np.absolute, np.sin, np.cos, np.tan, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh,
    np.arcsin, np.arccos, np.arccosh, np.arctanh, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p,
    np.sqrt, np.reciprocal, np.conjugate, np.real, np.imag, np.sign, np.angle,
):  # fmt: skip
    case(f, Z)
ON_CUTS = np.array([2.5, -3.2, 0.3, -0.4])
for f in (np.arcsin, np.arccos, np.arccosh, np.arctanh, np.sqrt, np.log):
    case(lambda x, f=f: f(x + 0j), ON_CUTS, case={"name": f"{f.__name__} above"})
    case(lambda x, f=f: f(np.conj(x + 0j)), ON_CUTS, case={"name": f"{f.__name__} below"})
case(np.angle, Z, deg=True)
case(np.real, 0.3 + 1.2j)
case(np.imag, 0.3 + 1.2j)

# Two operands
for f in (
    np.add, np.subtract, np.multiply, np.divide, np.power, np.float_power, np.remainder, np.fmod, np.maximum,
    np.minimum, np.fmax, np.fmin, np.hypot, np.arctan2, np.logaddexp, np.logaddexp2, np.copysign, np.heaviside,
    np.floor_divide, np.divmod,
):  # fmt: skip
    case(f, P, X)
    case(f, np.abs(M), X + P[:, None, None])
    case(f, P, 0.7)
    case(f, 1.7, X)
    case(f, 1.7, 0.6)
    case(f, np.array(1.7), np.array(0.6))
for f in (np.add, np.subtract, np.multiply, np.divide, np.power):
    case(f, Z, X)
    case(f, P, Z)
    case(f, [0.6, 1.7], np.array([[0.3], [0.2]]))
    case(f, np.zeros((0, 3)), P)
    case(f, X if f is not np.power else P, np.arange(3) + 1)
case(np.power, M, 3)
case(np.power, np.array([0.0, 1.7]), 2)
case(np.ldexp, X, np.array([1, -2, 3]))
case(np.nextafter, X, 5.0, case={"tol": 1e-5})
case(np.add, X, P, dtype=np.float64)
case(np.multiply, X, P, dtype=np.float32, case={"second": False, "tol": 1e-3})

# Methods of ufuncs
for f in (np.add, np.multiply, np.maximum, np.minimum):
    case(f.reduce, M, case={"name": f"{f.__name__}.reduce"})
    case(f.reduce, M, axis=1, case={"name": f"{f.__name__}.reduce"})
    case(f.reduce, M, axis=None, case={"name": f"{f.__name__}.reduce"})
    case(f.reduce, M, axis=(0, 1), keepdims=True, case={"name": f"{f.__name__}.reduce"})
    case(f.accumulate, M, case={"name": f"{f.__name__}.accumulate"})
    case(f.accumulate, M, axis=1, case={"name": f"{f.__name__}.accumulate"})
for f in (np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.hypot):
    case(f.outer, P, np.abs(M), case={"name": f"{f.__name__}.outer"})

# Choosing
case(np.where, M > 0, M, X)
case(np.where, X > 0, 0.6, X)
case(np.where, M > 0, [0.6, 1.7, 0.2], 0.0)
case(np.where, M > 0, Z, X)
case(np.where, M > 0)
case(np.clip, M, -0.8, 0.9)
case(np.clip, M, None, 0.9)
case(np.clip, M, X - 1.5, BIG)
case(np.clip, 0.6, 0.2, 0.5)
case(np.clip, M, a_min=-0.8, a_max=None)
case(np.ndarray.clip, M, -0.8, 0.9)
case(
    np.nan_to_num,
    np.array([0.6, np.nan, np.inf]),
    posinf=3.0,
    case={"single": False, "second": False},
)
case(
    lambda a, b, c: np.nan_to_num(
        np.array([np.nan, np.inf, 1.0, -np.inf, np.inf]), nan=a, posinf=b, neginf=c
    ),
    0.7,
    3.0,
    -2.0,
    case={"single": False},
)
case(lambda x: x.conj() * x.real + x.imag, Z)
case(lambda x: x.round(1) + x, X)


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


# ---------------------------------------------------------------- conventions that no finite difference shows


def total(f):
    return lambda x: np.sum(f(x))


def test_ties_share_equally():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 0.0])
    for f, expected in ((np.maximum, [0.5, 0.0, 1.0]), (np.minimum, [0.5, 1.0, 0.0])):
        _, back = pullback(f, x, y)
        dx, dy = back(np.ones(3))
        np.testing.assert_array_equal(dx, expected)
        np.testing.assert_array_equal(dx + dy, 1.0)


def test_kinks_have_slope_zero():
    zero = np.zeros(3)
    for f in (
        np.abs,
        np.fabs,
        np.sign,
        np.sqrt,
        lambda x: np.abs(x * 1j),
        lambda x: np.hypot(x, 0.0),
    ):
        np.testing.assert_array_equal(grad(total(f))(zero), 0.0)


def test_powers_at_zero():
    for n, expected in ((0, 0.0), (1, 1.0), (2, 0.0), (0.5, 0.0), (1.0, 1.0), (1.5, 0.0)):
        assert grad(lambda x: x**n)(0.0) == expected
        np.testing.assert_array_equal(grad(lambda x: np.sum(x**n))(np.zeros(2)), expected)
        np.testing.assert_array_equal(grad(lambda x: np.sum(np.power(x, n)))(np.zeros(2)), expected)


def test_exponent_of_a_base_that_is_not_positive():
    assert grad(lambda y: 0.0**y)(2.0) == 0.0
    assert np.isnan(grad(lambda y: (-2.0) ** y)(2.0))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.where(x > 0, np.log(x), 0.0),
        lambda x: np.where(x > 0, np.sqrt(x), 0.0),
        lambda x: np.where(x > 0, x * np.log(x), 0.0),
        lambda x: np.where(x > 0, 1 / x, 0.0),
        lambda x: np.where(x > 0, 3.0 * (1 / x), x),
        lambda x: np.where(x > 0, x**-0.5, x**2),
        lambda x: np.where(np.abs(x) < 1, np.arcsin(x), 0.0),
        lambda x: np.where(x < 100, np.exp(x), x),
        lambda x: np.where(x > 1, np.arccosh(x), 0.0),
        lambda x: np.log(x)[x > 0],
    ],
)
def test_branch_not_taken_stays_out(f):
    x = np.array([-2.0, -0.5, 0.0, 0.5, 2.0, 1e4])
    with np.errstate(all="ignore"):
        g = grad(total(f))(x)
        h = 1e-6 * np.maximum(np.abs(x), 1)
        numeric = np.array(
            [
                (total(f)(x + h * e) - total(f)(x - h * e)) / (2 * h[i])
                for i, e in enumerate(np.eye(len(x)))
            ]
        )
    assert np.all(np.isfinite(g))
    smooth = x != 0
    np.testing.assert_allclose(g[smooth], numeric[smooth], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("enabled", [False, True])
def test_an_extreme_is_the_one_that_was_compared(enabled):
    """With ``dtype=`` that is not the operand, but what was made of it."""
    x, y = np.array([0.1, 0.7, 0.3]), np.array([0.2, 0.6, 0.3])
    larger = np.array([0.0, 1.0, 0.5])
    with jit(enabled):
        for f, share in (
            (np.maximum, larger),
            (np.fmax, larger),
            (np.minimum, 1 - larger),
            (np.fmin, 1 - larger),
            (lambda a, b, **how: np.clip(a, b, 0.9, casting="unsafe", **how), larger),
        ):
            for _ in range(3):
                value, back = pullback(lambda a, b, f=f: f(a, b, dtype=np.float32), x, y)
                assert value.dtype == np.float32
                np.testing.assert_array_equal(back(np.ones(3, np.float32)), [share, 1 - share])


def test_higher_derivatives_of_sinc():
    third = grad(grad(grad(np.sinc)))
    assert grad(grad(np.sinc))(0.0) == pytest.approx(-(np.pi**2) / 3, abs=1e-12)
    for x in (0.2, 1.7, 6.3):
        h = 1e-3
        numeric = (grad(grad(np.sinc))(x + h) - grad(grad(np.sinc))(x - h)) / (2 * h)
        assert third(x) == pytest.approx(numeric, rel=1e-4)


@pytest.mark.parametrize("f", [np.logaddexp, np.logaddexp2, np.hypot, np.maximum, np.arctan2])
@pytest.mark.parametrize("big", [10**30, -(10**30), 2**64])
def test_integers_of_more_than_64_bits(f, big):
    assert grad(lambda x: f(x, big))(0.5) == pytest.approx(grad(lambda x: f(x, float(big)))(0.5))
    second = grad(lambda x: f(0.5, x))
    assert second(big) == pytest.approx(second(float(big)))
