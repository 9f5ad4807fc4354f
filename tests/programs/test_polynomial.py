"""A polynomial as an object with a list of weights: called, mapped, and fitted to noisy data."""

import numpy as np
import pytest

from helpers import assert_close, assert_plain
from wengert import grad, pullback, value_and_grad


class Polynomial:
    def __init__(self, weights):
        self.weights = weights

    def __call__(self, x):
        total = 0.0
        for w in reversed(self.weights):
            total = total * x + w
        return total

    def __repr__(self):
        return " + ".join(f"{w} x^{i}" for i, w in enumerate(self.weights))


def test_on_a_number():
    p = Polynomial([1.0, -2.0, 0.5, 3.0])
    value, back = pullback(p, 1.5, wrt_self=True)
    assert value == p(1.5) == 1.0 - 3.0 + 0.5 * 2.25 + 3.0 * 3.375
    itself, dx = back(1.0)
    assert_close(itself, {"weights": [1.0, 1.5, 2.25, 3.375]})
    assert_close(dx, -2.0 + 1.5 + 9.0 * 2.25)
    assert_plain(p)


def test_as_an_argument():
    p = Polynomial([1.0, -2.0, 0.5])
    (dp, dx) = grad(lambda p, x: p(x) ** 2, argnums=(0, 1))(p, 2.0)
    assert_close(dp, {"weights": [2 * p(2.0), 4 * p(2.0), 8 * p(2.0)]})
    assert_close(dx, 2 * p(2.0) * 0.0)


def test_mapped_over_a_list():
    p = Polynomial([1.0, -2.0, 0.5])
    value, back = pullback(lambda p, xs: list(map(p, xs)), p, [0.0, 1.0, 2.0])
    assert value == [p(0.0), p(1.0), p(2.0)]
    dp, dxs = back([1.0, 10.0, 100.0])
    assert_close(dp, {"weights": [111.0, 210.0, 410.0]})
    assert_close(dxs, [-2.0, -10.0, 0.0])


def test_on_an_array():
    p = Polynomial(np.array([1.0, -2.0, 0.5]))
    xs = np.linspace(-1, 1, 5)
    value, back = pullback(p, xs, wrt_self=True)
    itself, dxs = back(np.ones(5))
    assert_close(itself, {"weights": np.array([5.0, xs.sum(), (xs**2).sum()])})
    assert_close(dxs, -2.0 + xs)


def test_fitting_noisy_data():
    rng = np.random.default_rng(0)
    xs = [float(x) for x in np.linspace(-1, 1, 20)]
    truth = Polynomial([0.5, -1.0, 2.0])
    ys = [truth(x) + float(rng.normal()) * 0.01 for x in xs]

    def loss(p):
        return sum((p(x) - y) ** 2 for x, y in zip(xs, ys, strict=True)) / len(xs)

    p = Polynomial([0.0, 0.0, 0.0])
    history = []
    for _ in range(60):
        value, gradient = value_and_grad(loss)(p)
        history.append(value)
        p.weights = [w - 0.5 * g for w, g in zip(p.weights, gradient["weights"], strict=True)]
    expected = np.polynomial.polynomial.polyfit(xs, ys, 2)
    assert p.weights == pytest.approx(expected, abs=5e-3)
    assert history[-1] < 2e-4 < history[0]
    assert history == sorted(history, reverse=True)
    assert all(type(w) is float for w in p.weights)


def test_fitting_by_a_method_that_changes_the_object():
    """The step itself is a traced program: the gradient of the loss after training, by the rate."""

    def train(rate):
        p = Polynomial([0.0, 0.0])
        data = [(-1.0, 1.0), (0.0, 2.0), (1.0, 3.5)]
        for _ in range(5):
            gradient = grad(lambda p: sum((p(x) - y) ** 2 for x, y in data))(p)
            p.weights = [w - rate * g for w, g in zip(p.weights, gradient["weights"], strict=True)]
        return sum((p(x) - y) ** 2 for x, y in data)

    value, slope = value_and_grad(train)(0.05)
    h = 1e-6
    assert value == train(0.05)
    assert slope == pytest.approx((train(0.05 + h) - train(0.05 - h)) / (2 * h), rel=1e-6)
