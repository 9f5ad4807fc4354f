"""Integrals and differential equations."""

import warnings

import numpy as np
import pytest
from checker import Table, check_first, check_second

from wengert import NoRuleError, WengertError, grad, jacobian, pullback

integrate = pytest.importorskip("scipy.integrate")

case = Table()

V = np.array([0.5, -1.2, 2.0, 0.7, 0.3])
X = np.array([0.0, 0.4, 1.1, 1.7, 2.6])
TIMES = np.linspace(0.0, 1.5, 4)
FIRST = {"second": False, "tol": 1e-5}

case(lambda a, b: integrate.quad(lambda t: np.sin(a * t) * b, 0.0, 1.3)[0], 0.7, 1.2)
case(lambda a, b: integrate.quad(lambda t, a: np.exp(-a * t), a, b, args=(a,))[0], 0.3, 1.9)
case(lambda a: integrate.quad(lambda t: np.exp(-a * t * t), -np.inf, np.inf)[0], 0.8)
case(lambda a: integrate.quad(lambda t: np.exp(-a * t), 0, np.inf)[0], 0.8)
case(lambda v: integrate.quad(lambda t: np.sum(v * t ** np.arange(5)), -0.5, v[0])[0], V)
case(
    lambda a: integrate.quad(lambda t: t if t < a else a, 0.0, 1.0, points=[0.5])[0],
    0.5,
    case={"second": False, "tol": 1e-3},
)
case(lambda a: integrate.quad(np.cos, 0.0, a)[0], 0.8)
case(lambda y: integrate.trapezoid(y, X), V)
case(integrate.trapezoid, V, X)
case(integrate.cumulative_trapezoid, V, X)
case(integrate.cumulative_trapezoid, V, dx=0.5, initial=0)
case(lambda y: integrate.simpson(y, x=X), V)
case(lambda y: integrate.simpson(y, dx=0.3), V)
case(lambda y: integrate.simpson(y[:4], dx=0.3), V)
case(lambda a: integrate.fixed_quad(lambda t: np.exp(-a * t), 0.0, 1.0, n=6)[0], 0.8)
case(lambda a: integrate.romb(np.exp(-a * np.linspace(0, 1, 5)), dx=0.25), 0.8)

TIGHT = {"rtol": 1e-11, "atol": 1e-11}


def pendulum(y, t, k, c):
    return [y[1], -k * np.sin(y[0]) - c * y[1]]


case(
    lambda y0, k, c: integrate.odeint(pendulum, y0, TIMES, args=(k, c), **TIGHT),
    np.array([1.0, 0.2]),
    1.3,
    0.4,
    case=FIRST,
)
case(
    lambda y0, t: integrate.odeint(pendulum, y0, t, args=(1.3, 0.4), **TIGHT),
    np.array([1.0, 0.2]),
    TIMES,
    case=FIRST,
)
case(
    lambda k: integrate.odeint(lambda t, y: -k * y * t, 1.0, TIMES, tfirst=True, **TIGHT),
    0.7,
    case={"tol": 1e-5},
)


@case.each
def test_gradient(case):
    check_first(case)


@case.second
def test_second_order(case):
    check_second(case)


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
def test_implicit_methods_are_right_or_refused(method):
    def f(k):
        return integrate.solve_ivp(
            lambda t, y: -k * y, (0.0, 1.0), [1.0], method=method, rtol=1e-8, atol=1e-10
        ).y[0, -1]

    try:
        slope = grad(f)(0.7)
    except WengertError as error:
        assert "test_scipy_integrate.py" in str(error)
        return
    assert slope == pytest.approx(-np.exp(-0.7), rel=1e-5)


def test_weights_are_refused():
    with pytest.raises(NoRuleError, match="weight"):
        pullback(
            lambda a: integrate.quad(lambda t: a * t, 0.0, 1.0, weight="cos", wvar=2.0)[0], 1.0
        )


JUMPS = {
    "if": lambda t, a: 1.0 if t < a else 0.0,
    "where": lambda t, a: np.where(t * t < a, t, 0.0),
    "floor": lambda t, a: np.floor(t / a) * a,
    "sign": lambda t, a: a * np.sign(t - a),
    "more than one": lambda t, a: (t > a) + (t > 2 * a) * 1.0,
}


@pytest.mark.parametrize("name", JUMPS)
def test_a_jump_that_moves_is_refused(name):
    """There the integral of the derivative is not the derivative of the integral."""
    f = lambda a: integrate.quad(JUMPS[name], 0.0, 1.0, args=(a,))[0]
    with warnings.catch_warnings(action="ignore"):
        for derivative in (grad(f), jacobian(f, mode="forward")):
            with pytest.raises(NoRuleError, match="split the integral"):
                derivative(0.37)


HARMLESS = {
    "a bend": (lambda t, a: t if t < a else a, 1 - 0.37),
    "a bend of an array": (lambda t, a: np.maximum(t - a, 0.0), 0.37 - 1),
    "a root": (lambda t, a: np.sqrt(np.where(t > a, t - a, 0.0)), -(0.63**0.5)),
    "a fixed jump": (lambda t, a: a * a if t < 0.5 else a, 0.37 + 0.5),
    "a fixed branch": (lambda t, a: a * t if a > 0.1 else t, 0.5),
    "an iteration": (lambda t, a: newton(a + t), 1.37**0.5 - 0.37**0.5),
}


def newton(x):
    """The square root."""
    y = 1.0
    while abs(y * y - x) > 1e-13:
        y = 0.5 * (y + x / y)
    return y


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_not_jump_or_does_not_move(name):
    integrand, expected = HARMLESS[name]
    f = lambda a: integrate.quad(integrand, 0.0, 1.0, args=(a,), points=[0.37, 0.5])[0]
    assert grad(f)(0.37) == pytest.approx(expected, rel=1e-7)


def by_a_complex_capture(y):
    z = complex(1.0, y)
    return integrate.quad(lambda t: abs(z * t + 1.0j), 0.0, 1.0)[0]


def by_a_complex_argument(y):
    return integrate.quad(lambda t, z: abs(z * t + 1.0j) * y, 0.0, 1.0, args=(complex(y, y * y),))[
        0
    ]


def by_complex_and_real_ones(y):
    z = np.array([1.0 + 1j * y, y * y + 0j])
    return integrate.quad(lambda t: abs(np.sum(z * t) + 1.0j) * y, 0.0, y)[0]


def by_a_complex_one_twice(y):
    z = complex(1.0, y)
    return integrate.dblquad(lambda s, t: abs(z * t * s + 1j), 0.0, 1.0, 0.0, 1.0)[0]


@pytest.mark.parametrize(
    "f",
    [by_a_complex_capture, by_a_complex_argument, by_complex_and_real_ones, by_a_complex_one_twice],
)
def test_complex_numbers_in_a_real_integrand(f):
    h = 1e-5
    for y in (2.0, -0.7, 1.3):
        assert grad(f)(y) == pytest.approx((f(y + h) - f(y - h)) / (2 * h), rel=1e-7)
    if f is by_a_complex_capture:
        slope = (grad(f)(2.0 + h) - grad(f)(2.0 - h)) / (2 * h)
        assert grad(grad(f))(2.0) == pytest.approx(slope, rel=1e-6)
