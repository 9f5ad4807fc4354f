"""Small programs of the literature, each against a closed formula or the numbers of its source."""

import math
import operator

import numpy as np
import pytest

from helpers import assert_close, calls, check, complex_step, numeric_grad
from wengert import grad, pullback, trace, value_and_grad

# ------------------------------------------------------------------------------------- two calls deep


def g(a, b):
    return a * b


def h(a):
    return math.sin(a)


def f(x1, x2):
    return g(x1, x2) + h(x1)


def test_two_functions_vanish_from_the_tape():
    value, back = pullback(f, 2.0, 3.0)
    assert value == 6.909297426825682
    assert back(1.0) == (2.5838531634528574, 2.0)
    tape = trace(f, 2.0, 3.0)
    assert calls(tape) == [operator.mul, math.sin, operator.add]
    assert not {"g", "h"} & {getattr(op.fn, "__name__", "") for op in tape}


def test_quotient():
    value, back = pullback(lambda a, b: a / (a + b * b), 2.0, 3.0)
    assert value == pytest.approx(2 / 11)
    assert back(1.0) == pytest.approx((9 / 121, -12 / 121))


def test_composition():
    value, slope = value_and_grad(lambda x: math.sin(math.cos(x)))(0.9)
    assert value == pytest.approx(0.5823, abs=1e-4)
    assert slope == pytest.approx(-math.sin(0.9) * math.cos(math.cos(0.9)))
    assert slope == pytest.approx(-0.6368, abs=1e-4)


# --------------------------------------------------------------------------------- Haaland's friction


def haaland(e, diameter, reynolds):
    return 1 / (-1.8 * math.log((e / diameter / 3.7) ** 1.11 + 6.9 / reynolds)) ** 2


def test_friction_factor():
    e, d, re = 0.01, 1.0, 3000.0
    rough, smooth = (e / d / 3.7) ** 1.11, 6.9 / re
    inside = rough + smooth
    expected = 1 / (1.8 * math.log(inside)) ** 2
    outer = -2 / (1.8**2 * math.log(inside) ** 3) / inside
    value, gradient = value_and_grad(haaland, argnums=(0, 1, 2))(e, d, re)
    assert value == haaland(e, d, re)
    assert value == pytest.approx(expected)
    assert gradient == pytest.approx(
        (outer * 1.11 * rough / e, -outer * 1.11 * rough / d, -outer * smooth / re), rel=1e-12
    )
    check(haaland, e, d, re, h=2**-12)
    assert grad(haaland)(0.01, 1.0, 3000) == gradient[0]  # an int will do


def test_many_functions_of_one_number():
    def f(x):
        return -math.log(x**2 + 2 * math.exp(x) + (x + 1) / x)

    x = 2.3
    inside = x**2 + 2 * math.exp(x) + (x + 1) / x
    assert grad(f)(x) == pytest.approx(-(2 * x + 2 * math.exp(x) - 1 / x**2) / inside, rel=1e-14)
    step = complex_step(lambda x: -np.log(x**2 + 2 * np.exp(x) + (x + 1) / x), x)
    assert grad(f)(x) == pytest.approx(step, rel=1e-14)


def spline(r):
    return 0 if r == 0 else r * r * math.log(abs(r))


def test_thin_plate_spline():
    assert value_and_grad(spline)(0.0) == (0, 0.0)
    assert type(value_and_grad(spline)(0.0)[0]) is int
    assert value_and_grad(spline)(1.0) == (0.0, 1.0)
    for r in (0.5, -0.5, 2.0):
        assert grad(spline)(r) == pytest.approx(2 * r * math.log(abs(r)) + r)
    assert [grad(spline)(r) for r in (0.0, 1.0, 0, 1)] == [0.0, 1.0, 0.0, 1.0]


def test_trace_of_a_product():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(30, 30)), rng.normal(size=(30, 30))
    for f in (
        lambda a, b: np.trace(a @ b),
        lambda a, b: np.dot(a, b).trace(),
        lambda a, b: sum((a @ b)[i, i] for i in range(30)),
        lambda a, b: np.einsum("ij,ji->", a, b),
        lambda a, b: np.diag(a @ b).sum(),
        lambda a, b: np.sum(a * b.T),
    ):
        value, (da, db) = value_and_grad(f, argnums=(0, 1))(a, b)
        assert value == f(a, b)
        assert_close(da, b.T.copy(), tol=1e-12)
        assert_close(db, a.T.copy(), tol=1e-12)


def test_two_outputs():
    def polar(x, y):
        return math.hypot(x, y), math.atan2(y, x)

    (r, phi), back = pullback(polar, 3.0, 4.0)
    assert (r, phi) == (5.0, math.atan2(4.0, 3.0))
    assert back((1.0, 0.0)) == pytest.approx((0.6, 0.8))
    assert back((0.0, 1.0)) == pytest.approx((-4 / 25, 3 / 25))
    assert back((None, 1.0)) == pytest.approx((-4 / 25, 3 / 25))


# ----------------------------------------------------------------------------------------- finance, physics


def black_scholes(spot, strike, rate, volatility, time):
    def phi(x):
        return 0.5 * (1 + math.erf(x / math.sqrt(2)))

    d1 = (math.log(spot / strike) + (rate + volatility**2 / 2) * time) / (
        volatility * math.sqrt(time)
    )
    d2 = d1 - volatility * math.sqrt(time)
    return spot * phi(d1) - strike * math.exp(-rate * time) * phi(d2)


def test_option_price_and_its_greeks():
    args = (100.0, 105.0, 0.03, 0.25, 0.75)
    spot, strike, rate, sigma, t = args
    d1 = (math.log(spot / strike) + (rate + sigma**2 / 2) * t) / (sigma * math.sqrt(t))
    d2 = d1 - sigma * math.sqrt(t)
    phi = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))
    density = math.exp(-d1 * d1 / 2) / math.sqrt(2 * math.pi)
    discounted = strike * math.exp(-rate * t)
    delta, dual, rho, vega, theta = grad(black_scholes, argnums=range(5))(*args)
    assert delta == pytest.approx(phi(d1))
    assert dual == pytest.approx(-math.exp(-rate * t) * phi(d2))
    assert rho == pytest.approx(t * discounted * phi(d2))
    assert vega == pytest.approx(spot * density * math.sqrt(t))
    assert theta == pytest.approx(
        spot * density * sigma / 2 / math.sqrt(t) + rate * discounted * phi(d2)
    )
    gamma = grad(grad(black_scholes))(*args)
    assert gamma == pytest.approx(density / (spot * sigma * math.sqrt(t)))


def lennard_jones(positions):
    energy = 0.0
    for i in range(len(positions)):
        for j in range(i):
            r2 = np.sum((positions[i] - positions[j]) ** 2)
            energy += 4 * (r2**-6 - r2**-3)
    return energy


def test_forces_of_atoms_add_up_to_zero():
    rng = np.random.default_rng(1)
    positions = (
        np.array([[0, 0, 0], [1.1, 0, 0], [0, 1.2, 0], [0.6, 0.6, 1.0]])
        + rng.normal(size=(4, 3)) * 0.05
    )
    forces = -grad(lennard_jones)(positions)
    assert forces.sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-10)
    assert forces == pytest.approx(
        -numeric_grad(lennard_jones, positions, h=2**-9), rel=1e-7, abs=1e-7
    )


def test_pendulum_keeps_its_energy():
    def simulate(angle, speed, length, steps=40, dt=0.05):
        for _ in range(steps):
            speed -= dt / 2 * 9.81 / length * math.sin(angle)
            angle += dt * speed
            speed -= dt / 2 * 9.81 / length * math.sin(angle)
        return angle, 0.5 * (length * speed) ** 2 - 9.81 * length * math.cos(angle)

    check(simulate, 0.5, 0.1, 1.2)


def test_snell_by_minimal_time():
    """The point where light enters water, found by golden section; its derivative by the implicit function."""

    def time(x, n):
        return math.hypot(1.0, x) + n * math.hypot(1.0, 1.0 - x)

    def crossing(n):
        x = 0.5
        slope, curvature = grad(time), grad(grad(time))
        for _ in range(30):
            x = x - slope(x, n) / curvature(x, n)
        return x

    value, derivative = value_and_grad(crossing)(1.33)
    sine = lambda x: x / math.hypot(1.0, x)
    assert sine(value) == pytest.approx(1.33 * sine(1 - value))
    mixed = grad(grad(time, argnums=0), argnums=1)(value, 1.33)
    assert derivative == pytest.approx(-mixed / grad(grad(time))(value, 1.33))
