"""Rules that are not pure at higher orders, and in forward mode."""

import math
import random

import numpy as np
import pytest
from pair_rules import TIMES, log

from wengert import (
    NoRuleError,
    custom_rule,
    frule,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    pullback,
    rrule,
    value_and_grad,
)
from wengert.rules.registry import rules

pytestmark = pytest.mark.usefixtures("switch", "registered")


# ------------------------------------------------------------------------------------------- higher order


def test_what_the_body_computed_has_derivatives_in_the_pullback():
    @custom_rule
    def log1pexp(x):
        e = math.exp(x)
        log.append("value")

        def back(d):
            log.append("pullback")
            return (d * (e / (1 + e)),)

        return math.log1p(e), back

    s = 1 / (1 + math.exp(-0.5))
    for _ in TIMES:
        log.clear()
        assert grad(log1pexp)(0.5) == pytest.approx(s)
        assert log == ["value", "pullback"]
        assert grad(grad(log1pexp))(0.5) == pytest.approx(s * (1 - s))
        assert hessian(log1pexp)(0.5) == pytest.approx(s * (1 - s))
        assert hvp(log1pexp, (0.5,), (2.0,)) == pytest.approx(2 * s * (1 - s))
        third = s * (1 - s) * (1 - 2 * s)
        assert grad(grad(grad(log1pexp)))(0.5) == pytest.approx(third)


def test_the_value_in_the_pullback_has_the_derivative_of_the_rule():
    def cube_root(x):
        return math.cbrt(x) if hasattr(math, "cbrt") else x ** (1 / 3)

    @rrule(cube_root)
    def rule(x):
        y = cube_root(x)
        log.append(y)

        def back(d):
            return (d / (3 * y * y),)

        return y, back

    for _ in TIMES:
        assert grad(cube_root)(8.0) == pytest.approx(1 / 12)
        assert grad(grad(cube_root))(8.0) == pytest.approx(-2 / 9 * 8 ** (-5 / 3))
        assert hessian(cube_root)(8.0) == pytest.approx(-2 / 9 * 8 ** (-5 / 3))


def test_a_rule_in_the_pullback_of_a_rule():
    @custom_rule
    def cosine(x):
        log.append("cos")
        return math.cos(x), lambda d: (log.append("cos'") or -d * sine(x),)

    @custom_rule
    def sine(x):
        log.append("sin")
        return math.sin(x), lambda d: (log.append("sin'") or d * cosine(x),)

    for _ in TIMES:
        log.clear()
        assert grad(sine)(0.5) == math.cos(0.5)
        assert log == ["sin", "sin'", "cos"]
        assert grad(grad(sine))(0.5) == -math.sin(0.5)
        assert grad(grad(grad(sine)))(0.5) == pytest.approx(-math.cos(0.5))
        assert jvp(grad(sine), (0.5,), (1.0,))[1] == -math.sin(0.5)


def test_a_rule_in_the_body_of_a_rule():
    @custom_rule
    def inner(x):
        log.append("inner")
        return x * x, lambda d: (log.append("inner'") or 2 * x * d,)

    @custom_rule
    def outer(x):
        log.append("outer")
        y = inner(x)
        return y * 3.0, lambda d: (log.append("outer'") or 6.0 * x * d,)

    for _ in TIMES:
        log.clear()
        assert grad(outer)(2.0) == 12.0
        assert log == ["outer", "inner", "outer'"]
        assert grad(grad(outer))(2.0) == 6.0


def test_a_gradient_in_the_pullback_of_a_rule():
    @custom_rule
    def inner(x):
        return x**3, lambda d: (log.append("inner'") or 3 * x * x * d,)

    @custom_rule
    def outer(x):
        return x**3, lambda d: (d * grad(inner)(x),)

    for _ in TIMES:
        log.clear()
        assert grad(outer)(2.0) == 12.0
        assert log == ["inner'"]
        assert grad(grad(outer))(2.0) == 12.0


def test_a_function_that_calls_itself():
    @custom_rule
    def power(x, n):
        log.append(n)
        if n == 0:
            return x * 0.0 + 1.0, lambda d: (None, None)
        y = power(x, n - 1)
        return x * y, lambda d: (d * n * y, None)

    for _ in TIMES:
        log.clear()
        assert value_and_grad(power)(2.0, 3) == (8.0, 12.0)
        assert log == [3, 2, 1, 0]


def test_a_special_function_with_neighbours():
    """The rule of a C function that is called at other arguments for the derivative."""
    special = pytest.importorskip("scipy.special")

    @rrule(special.jv)
    def rule(n, x):
        log.append("rule")
        below, above = special.jv(n - 1, x), special.jv(n + 1, x)
        return special.jv(n, x), lambda d: (None, d * (below - above) / 2)

    f = lambda x: special.jv(2.0, x)
    for _ in TIMES:
        assert grad(f)(1.5) == pytest.approx(special.jvp(2, 1.5, 1))
        assert grad(grad(f))(1.5) == pytest.approx(special.jvp(2, 1.5, 2))
        assert jvp(grad(f), (1.5,), (1.0,))[1] == pytest.approx(special.jvp(2, 1.5, 2))


# --------------------------------------------------------------------------------------------- forward


def test_forward_mode_runs_each_once():
    @custom_rule
    def cube(x):
        log.append("value")

        def back(d):
            log.append("pullback")
            return (3 * x * x * d,)

        return x**3, back

    for _ in TIMES:
        log.clear()
        assert jvp(cube, (2.0,), (10.0,)) == (8.0, 120.0)
        assert log == ["value", "pullback"]
        log.clear()
        value, f_jvp = linearize(cube, 2.0)
        assert value == 8.0
        assert [f_jvp(t) for t in (1.0, 2.0)] == [12.0, 24.0]
        assert log == ["value", "pullback"]
        log.clear()
        x = np.array([1.0, 2.0])
        assert jacobian(lambda x: cube(x), mode="forward")(x).tolist() == [[3.0, 0.0], [0.0, 12.0]]
        assert log == ["value", "pullback"]
        log.clear()
        assert jacobian(lambda x: cube(x), mode="reverse")(x).tolist() == [[3.0, 0.0], [0.0, 12.0]]
        assert log == ["value", "pullback", "pullback"]


def test_forward_mode_of_several_results():
    @custom_rule
    def polar(r, t):
        x, y = r * np.cos(t), r * np.sin(t)
        log.append(1)

        def back(d):
            dx, dy = d
            return dx * np.cos(t) + dy * np.sin(t), -dx * y + dy * x

        return (x, y), back

    r, t = np.array([1.0, 2.0]), np.array([0.3, 0.4])
    dr, dt = np.array([1.0, 0.0]), np.array([0.5, 2.0])
    for _ in TIMES:
        (x, y), (tx, ty) = jvp(polar, (r, t), (dr, dt))
        np.testing.assert_allclose(tx, dr * np.cos(t) - y * dt, rtol=1e-14)
        np.testing.assert_allclose(ty, dr * np.sin(t) + x * dt, rtol=1e-14)
        assert jvp(polar, (r, t), (dr, None))[1][0].tolist() == (dr * np.cos(t)).tolist()


def test_an_frule_shares_its_draw_with_the_value():
    def noise(x):
        raise AssertionError

    @frule(noise)
    def rule(primals, tangents):
        log.append("rule")
        (x,), (dx,) = primals, tangents
        r = random.random()
        return x * r, dx * r

    f = lambda x: 3.0 * noise(x)
    for _ in TIMES:
        log.clear()
        value, tangent = jvp(f, (2.0,), (5.0,))
        assert tangent == pytest.approx(5.0 * value / 2.0, rel=1e-14)
        assert log == ["rule"]
        value, slope = value_and_grad(f)(2.0)
        assert slope == pytest.approx(value / 2.0, rel=1e-14)
        assert log == ["rule"] * 2
        value, back = pullback(f, 2.0)
        assert back(1.0) == back(1.0) == (pytest.approx(value / 2.0, rel=1e-14),)
        value, f_jvp = linearize(f, 2.0)
        assert f_jvp(1.0) == pytest.approx(value / 2.0, rel=1e-14)
        assert log == ["rule"] * 4


def test_an_frule_sees_the_tangents_of_jvp():
    def product(x, y):
        raise AssertionError

    @frule(product)
    def rule(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        log.append((dx, dy))
        return x * y, (0.0 if dx is None else dx * y) + (0.0 if dy is None else x * dy)

    f = lambda x, y: product(math.sin(x), 3.0) + product(x, y)
    for _ in TIMES:
        log.clear()
        value, tangent = jvp(f, (0.0, 5.0), (2.0, 7.0))
        assert (value, tangent) == (0.0, 6.0 + 10.0)
        assert log == [(2.0, None), (2.0, 7.0)]
        second = grad(lambda x: jvp(f, (x, 5.0), (2.0, None))[1])(0.5)
        assert second == pytest.approx(-6.0 * math.sin(0.5))


def test_an_frule_of_arrays_at_second_order():
    def scaled(x, y):
        return x * y

    @frule(scaled)
    def rule(primals, tangents):
        log.append("rule")
        (x, y), (dx, dy) = primals, tangents
        total = 0.0
        if dx is not None:
            total = total + dx * y
        if dy is not None:
            total = total + x * dy
        return x * y, total

    x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    f = lambda x, y: (scaled(x, y) ** 2).sum()
    for _ in TIMES:
        log.clear()
        dx, dy = grad(f, argnums=(0, 1))(x, y)
        np.testing.assert_allclose(dx, 2 * x * y * y)
        np.testing.assert_allclose(dy, 2 * x * x * y)
        assert log == ["rule"]
        np.testing.assert_allclose(jvp(f, (x, y), (x, None))[1], (2 * x * x * y * y).sum())
        h = hessian(f)(x, y)
        np.testing.assert_allclose(h, np.diag(2 * y * y), atol=1e-12)
        assert grad(lambda a: f(a * x, y))(2.0) == pytest.approx(4 * (x * x * y * y).sum())


def test_both_rules_of_a_function():
    def f(x):
        return x * x

    @frule(f)
    def forward(primals, tangents):
        log.append("frule")
        return primals[0] ** 2, 2 * primals[0] * tangents[0]

    known = rules[f]
    rrule(f)(lambda x: (log.append("rrule") or x * x, lambda d: (2 * x * d,)))
    rules[f] = type(known)(
        "rrule", rules[f].function, forward=forward, pure=False, pure_forward=False
    )
    for _ in TIMES:
        log.clear()
        assert grad(f)(3.0) == 6.0
        assert log == ["rrule"]
        assert jvp(f, (3.0,), (1.0,)) == (9.0, 6.0)
        assert log == ["rrule", "frule"]


def test_an_frule_of_ones_own_for_a_function_of_numpy():
    @frule(np.tanh)
    def rule(primals, tangents):
        log.append("rule")
        y = np.tanh(primals[0])
        return y, (1 - y * y) * tangents[0]

    slope = 1 - np.tanh(0.5) ** 2
    for _ in TIMES:
        log.clear()
        assert grad(lambda x: np.tanh(x))(0.5) == pytest.approx(slope)
        assert log == []
        assert jvp(lambda x: np.tanh(x), (0.5,), (1.0,))[1] == pytest.approx(slope)
        assert log == ["rule"]
        assert hessian(lambda x: np.tanh(x))(0.5) == pytest.approx(-2 * np.tanh(0.5) * slope)


def test_an_frule_that_declines():
    def scaled(x, factor=1.0):
        return x * factor

    @frule(scaled)
    def rule(primals, tangents, factor=1.0):
        if factor != 1.0:
            return NotImplemented
        log.append("rule")
        return primals[0] * 1.0, tangents[0]

    for _ in TIMES:
        log.clear()
        assert jvp(scaled, (3.0,), (2.0,)) == (3.0, 2.0)
        assert log == ["rule"]
        with pytest.raises(NoRuleError, match="does not know these options"):
            jvp(lambda x: scaled(x, factor=2.0), (3.0,), (2.0,))
        with pytest.raises(NoRuleError, match="does not know these options"):
            grad(lambda x: scaled(x, factor=2.0))(3.0)
    rrule(np.tanh)(lambda x: (log.append("rrule") or np.tanh(x), lambda d: (7.0 * d,)))
    frule(np.tanh)(lambda primals, tangents: NotImplemented)
    for _ in TIMES:
        assert jvp(lambda x: np.tanh(x), (0.5,), (1.0,))[1] == 7.0


def test_the_tangent_of_an_frule_must_fit():
    def twice(x):
        return 2 * x

    @frule(twice)
    def rule(primals, tangents):
        log.append("rule")
        return 2 * primals[0], np.sum(tangents[0])

    x = np.ones(3)
    for _ in TIMES:
        with pytest.raises(NoRuleError, match=r"twice.*its tangent is float64"):
            jvp(twice, (x,), (x,))
