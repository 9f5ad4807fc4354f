"""Loops that are left by a decision, and what they have computed on the way out."""

import numpy as np
import pytest

from helpers import assert_same
from wengert import explain, grad, jit, pullback, value_and_grad
from wengert.transforms.budget import Budget

pytestmark = pytest.mark.usefixtures("programs_anew")


def right(f, arguments, calls):
    """The values are plain Python's to the bit, the gradients those of traced calls."""
    cached = value_and_grad(f)
    for x in arguments:
        value, gradient = cached(x)
        assert_same(value, f(x))
        with jit(False):
            _, uncached = cached(x)
        np.testing.assert_allclose(gradient, uncached, rtol=1e-12)
    assert f"{calls} calls traced" in explain(cached, x)


def test_a_root():
    def root(a):
        x = a
        while abs(x * x - a) > 1e-12 * a:
            x = 0.5 * (x + a / x)
        return x

    right(root, [2.0, 3.0, 1234.5, 1e-3, 5.0], 2)


def test_arrays():
    def descend(x):
        while True:
            step = 0.3 * (np.sin(x) - 0.5)
            x = x - step
            if np.abs(step).max() < 1e-6:
                return (x * step).sum() + step[0]

    rng = np.random.default_rng(0)
    right(descend, [rng.uniform(0.1, 1.0, size=4) for _ in range(6)], 2)


def test_the_way_out_is_in_the_midst():
    def climb(x):
        y, total = x, 0.0
        for _ in range(200):
            y = y * 1.1 + 0.01
            if y > 30.0:
                break
            total = total + y * y
        return total * y

    right(climb, [1.0, 2.0, 0.5, 3.0, 7.0], 2)


def test_two_ways_out():
    def walk(x):
        y = x
        while True:
            z = y * y - 2.0
            if abs(z) < 1e-9:
                return y * z
            y = y - 0.3 * z
            if y < 0.0:
                return y

    right(walk, [1.0, 1.3, 1.1, 0.9, 1.2], 2)


def test_loops_one_after_the_other():
    def both(x):
        y = x
        while y * y > 0.01:
            y = y * 0.7
        z = y + x
        while z * z > 0.02:
            z = z * 0.6
        return y * z

    right(both, [1.0, 2.0, 0.9, 5.0, 3.0], 2)


def test_what_may_raise_is_not_moved_behind_a_decision():
    def f(x):
        for _ in range(30):
            t = 1.0 / (x - 0.125)
            if x > 0.2:
                x = x * 0.5 + t * 0.001
            else:
                x = x + 0.25
        return x

    right(f, [0.3, 0.31, 0.7, 0.15, 0.11], 2)
    cached = value_and_grad(f)
    with pytest.raises(ZeroDivisionError):
        f(0.125)
    with pytest.raises(ZeroDivisionError):
        cached(0.125)


def test_a_loop_in_a_loop_of_which_nothing_is_used():
    def f(x, w):
        found = {}
        last = [x, w]
        kept = [0.0] * 24
        for i in range(2, 24):
            for _ in range(12):
                found[i] = 0.7 + float(i)
            kept[i] = last[-2]
        return x + w

    cached = value_and_grad(f)
    for x in (0.5, 0.6, 0.7):
        assert_same(cached(x, 0.3), (f(x, 0.3), 1.0))


def test_a_loop_that_is_left_on_a_value_and_a_cotangent_that_is_none_or_traced():
    """The pullback of a program knows the function's loops as they were traced, whatever the program made of them."""

    def f(x, y):
        k, t = 0, x
        while t > 1e-3:
            t = t * y
            k += 1
        return t, k

    for _ in range(6):
        value, back = pullback(f, 0.5, 0.2)
        assert value == f(0.5, 0.2)
        assert back((1.0, None)) == pytest.approx((0.2**4, 4 * 0.5 * 0.2**3), rel=1e-14)
        assert grad(lambda c: back((c, 0.0))[0])(2.0) == pytest.approx(0.2**4, rel=1e-14)


def test_what_only_the_rest_of_the_program_needs_has_a_name(monkeypatch):
    """A part of a larger expression, all of which is computed on the way out."""
    monkeypatch.setenv("WENGERT_FOLD", "0")
    monkeypatch.setattr(Budget, "limited", False)

    def counted(x, n):
        i = k = 0
        while i < 6:
            i += 1
            k = (n * 3 + i) % 7
            k -= (n * 3 + 1) % 7
        return x * k

    def in_the_midst(x, n):
        i = 0
        while True:
            k = (n * 3 + i) % 7
            k -= (n * 5 + i) % 11
            i += 1
            if i > n:
                return x * k

    for f in (counted, in_the_midst):
        both = value_and_grad(f)
        for n in (3, 4, 5, 6, 7, 8, 9):
            value, slope = both(1.5, n)
            assert_same(value, f(1.5, n))
            assert slope == value / 1.5
        assert "2 calls traced" in explain(both, 1.5, 9)


class Enough(Exception):
    pass


def enough(y):
    raise Enough(y)


def growing(x, limit):
    y = x
    for i in range(20000):
        y = y * 1.00001
        if i == limit:
            enough(y)
    return y


def caught_outside(x):
    try:
        return growing(x, 9000)
    except Enough as e:
        return e.args[0] * x


def caught_each_time(x):
    for k in range(3):
        try:
            x = growing(x, 9000 + k)
        except Enough as e:
            x = e.args[0]
    return x


def left_waiting(x):
    def numbers():
        y = x
        for _ in range(20000):
            y = y * 1.00001
            yield y

    g = numbers()
    for _ in range(9000):
        y = next(g)
    return y * x


@pytest.mark.parametrize("f", [caught_outside, caught_each_time, left_waiting])
def test_a_long_loop_that_is_left_without_its_end(f):
    cached = value_and_grad(f)
    with jit(False):
        expected = cached(1.3)
    for _ in range(4):
        value, gradient = cached(1.3)
        assert_same(value, f(1.3))
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-12)
