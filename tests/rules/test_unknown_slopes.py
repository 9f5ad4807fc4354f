"""A derivative of which a rule says nothing is an error, and never a zero: by an option, say."""

from __future__ import annotations

import numpy as np
import pytest

from wengert import NoRuleError, custom_rule, grad, jit, jvp, pullback, rrule, value_and_grad


def scaled(x, scale=1.0):
    return x * scale


def pure(x, scale=1.0):
    return x * scale


def told(x, scale=1.0):
    return x * scale


def constant(x, scale=1.0):
    return x * scale


def more(x, *rest, scale=1.0):
    return x * scale


@rrule(scaled)
def _scaled(x, scale=1.0):
    return x * scale, lambda d: (d * scale,)


@rrule(pure, pure=True)
def _pure(x, scale=1.0):
    return x * scale, lambda d: (d * scale,)


@rrule(told, pure=True)
def _told(x, scale=1.0):
    return x * scale, lambda d: (d * scale, d * x)


@rrule(constant, pure=True)
def _constant(x, scale=1.0):
    return x * scale, lambda d: (d * scale, None)


@rrule(more, pure=True)
def _more(x, *rest, scale=1.0):
    return x * scale, lambda d: (d * scale,)


@custom_rule
def custom(x, scale=1.0):
    return x * scale, lambda d: (d * scale,)


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("fn", [scaled, pure, more, custom])
def test_an_option_of_which_a_rule_says_nothing(fn, on):
    with jit(on):
        for k in range(5):
            assert value_and_grad(lambda x: fn(x, scale=3.0))(2.0 + k) == (6.0 + 3.0 * k, 3.0)
            assert value_and_grad(lambda x: fn(x, scale=2))(2.0 + k) == (4.0 + 2.0 * k, 2.0)
            with pytest.raises(
                NoRuleError, match=r"no formula for its derivative in scale\nkeep scale"
            ):
                grad(lambda x: fn(2.0, scale=x))(2.0 + k)
        assert grad(lambda x, n: fn(x, scale=n), argnums=0)(2.0, 3) == 3.0
        with pytest.raises(NoRuleError, match="scale"):
            jvp(lambda x: fn(2.0, scale=x), (2.0,), (1.0,))


@pytest.mark.parametrize("fn", [scaled, pure, custom])
def test_it_may_be_given_by_position(fn):
    with pytest.raises(NoRuleError, match="no formula for its derivative in scale"):
        grad(lambda x: fn(2.0, x))(2.0)
    with pytest.raises(NoRuleError, match="no formula for its derivative in scale"):
        grad(lambda x: np.sum(fn(np.ones(2), x)))(np.ones(2))


def test_an_option_of_which_it_says_that_there_is_none():
    for k in range(5):
        assert value_and_grad(lambda x: told(2.0, scale=x))(2.0 + k) == (4.0 + 2.0 * k, 2.0)
        assert value_and_grad(lambda x: constant(2.0, scale=x))(2.0 + k) == (4.0 + 2.0 * k, 0.0)


def generator():
    return np.random.default_rng(3)


DRAWN = {
    "standard_normal": lambda s, n: np.mean(np.exp(s * generator().standard_normal(n))),
    "shape": lambda s, n: np.mean(np.exp(s * generator().standard_normal((n, 2)))),
    "size": lambda s, n: np.mean(np.exp(s * generator().uniform(size=n))),
    "normal": lambda s, n: np.mean(np.exp(generator().normal(0.0, s, n))),
    "third": lambda s, n: np.mean(np.exp(s * generator().normal(0.0, 1.0, n))),
    "permutation": lambda s, n: s * generator().permutation(n)[0],
    "choice": lambda s, n: s * generator().choice(n),
    "integers": lambda s, n: s * generator().integers(0, n, 3).sum(),
}


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("f", DRAWN.values(), ids=DRAWN)
def test_how_many_numbers_are_drawn_has_the_slope_zero(f, on):
    with jit(on):
        for k in range(5):
            value, back = pullback(f, 0.3, 5 + k)
            ds, dn = back(1.0)
            assert value == f(0.3, 5 + k) and dn == 0.0
            assert ds == pytest.approx((f(0.3001, 5 + k) - f(0.2999, 5 + k)) / 2e-4, rel=1e-5)
            assert jvp(f, (0.3, 5 + k), (1.0, 1))[1] == pytest.approx(ds)


def test_a_count_that_is_a_parameter_of_a_distribution_is_refused():
    with pytest.raises(NoRuleError, match="poisson"):
        pullback(lambda s, n: s * generator().poisson(n), 0.3, 5)[1](1.0)
