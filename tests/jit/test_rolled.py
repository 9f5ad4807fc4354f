"""Programs with rolled loops: kept, right for other values than the traced ones, careful where plain numbers fail."""

import math
import re
import tracemalloc

import numpy as np
import pytest

from helpers import assert_same
from wengert import clear_cache, explain, grad, jit, pullback, value_and_grad


@pytest.fixture(autouse=True)
def fresh():
    clear_cache()


def agrees(f, *calls):
    """The kept program answers as a traced run does, and it has a loop in it."""
    cached = value_and_grad(f, argnums=tuple(range(len(calls[0]))))
    for _ in range(3):
        cached(*calls[0])
    found = explain(cached, *calls[0])
    assert re.search(r"loops? rolled", found)
    for args in calls:
        with jit(False):
            value, gradients = cached(*args)
        got, have = cached(*args)
        assert_same(got, value)
        np.testing.assert_allclose(flat(have), flat(gradients), rtol=1e-12, atol=1e-14)
    return found.source


def flat(tree):
    if isinstance(tree, (list, tuple)):
        return np.concatenate([flat(x) for x in tree]) if tree else np.zeros(0)
    return np.ravel(np.asarray(tree, float))


M = np.random.default_rng(0).normal(size=(30, 3))


def test_arrays_carried_from_zeros():
    def recur(w, xs):
        h, total = np.zeros(3), 0.0
        for x in xs:
            h = np.tanh(x * w + h * w[::-1])
            total = total + np.sum(h[:2])
        return total

    w = np.array([0.3, -0.2, 0.5])
    agrees(recur, (w, M), (w * 2, M * 0.5), (w * 0, M))


def test_a_product_that_is_taken_apart_by_index():
    def gates(u, xs):
        state = np.zeros(2)
        for x in xs:
            both = u @ state + x
            state = 1 / (1 + np.exp(-both[:2])) * np.tanh(both[2:])
        return np.sum(state)

    u = np.random.default_rng(1).normal(size=(4, 2))
    xs = np.random.default_rng(2).normal(size=(25, 4))
    agrees(gates, (u, xs), (-u, xs[::-1].copy()))


def test_zeros_win_where_plain_arithmetic_gives_nan():
    """At y = 0 the root has an infinite slope, and nothing depends on it where a is 0."""

    def f(a, y):
        s = 1.0
        for _ in range(30):
            s = s * 0.5 + a * math.sqrt(y)
        return s

    cached = grad(f, argnums=(0, 1))
    for _ in range(3):
        cached(2.0, 3.0)
    with jit(False):
        known = cached(0.0, 0.0)
    assert known == (0.0, 0.0)
    assert cached(0.0, 0.0) == known

    def g(a, y):
        s = np.ones(3)
        for _ in range(30):
            s = s * 0.5 + a * np.sqrt(y)
        return np.sum(s)

    cached = grad(g, argnums=(0, 1))
    a, y = np.array([0.0, 1.0, 0.0]), np.array([0.0, 4.0, 9.0])
    for _ in range(3):
        cached(a + 1, y + 1)
    with jit(False):
        known = cached(a, y)
    assert_same(cached(a, y), known)
    assert np.isfinite(known[1]).all()


def test_a_loop_that_runs_until_it_is_done():
    def newton(a):
        x, n = a, 0
        while abs(x * x - a) > 1e-13 * a:
            x = 0.5 * (x + a / x)
            n += 1
        return x * 1.5

    step = value_and_grad(newton)
    for _ in range(3):
        step(2.0)
    for a in (3.0, 50.0, 1e6, 1e-3):
        value, slope = step(a)
        assert value == newton(a)
        assert math.isclose(slope, 0.75 / math.sqrt(a), rel_tol=1e-9)
    assert explain(step, 7.0).source.count("while True:") == 1


def test_a_search_keeps_its_decisions_even_if_nothing_is_computed_in_it():
    def f(x):
        for i in range(20):
            if x < i:
                return x * i
        return x

    for _ in range(3):
        for i in (12, 15, 19, 12, 3, 18):
            assert grad(f)(i - 0.5) == float(i)


def test_negative_numbers_from_outside_are_operands():
    def f(x):
        y = x
        for _ in range(20):
            y = y * -0.5 + (-1.5) ** 2 * x - -2.0
        return y

    agrees(f, (1.5,), (-3.0,))


def test_inner_loops():
    def f(xs, a):
        total = 0.0
        for x in xs:
            s = 0.0
            for k in range(40):
                s = s * a + x / (k + 1)
            total = total + s * s
        return total

    xs = [0.1 * i for i in range(20)]
    source = agrees(f, (xs, 0.5), (xs[::-1], -0.7))
    assert source.count("for ") >= 2


def test_branches_inside():
    def f(x, a):
        s = x
        for _ in range(30):
            if s > 0.5:
                s = s * a
            else:
                t = s - x
                s = t * t * 0.1 + math.sin(t) + 0.9
        return s

    agrees(f, (0.7, 0.5), (0.1, 0.95), (3.0, 0.1), (-2.0, -0.5))

    def g(x, a):
        s = x
        for _ in range(30):
            if s[0] > 0.5:
                s = s * a
            else:
                t = s - x
                s = t * t * 0.1 + np.sin(t) + 0.9
        return np.sum(s)

    v = np.array([0.7, 0.2, -0.4])
    agrees(g, (v, 0.5), (v[::-1].copy(), 0.95), (v + 3, 0.1))


def test_branches_by_the_rows_of_an_array():
    def f(xs, a):
        s = np.zeros(3)
        count = 0
        for x in xs:
            if x[0] > 0.5:
                continue
            if x[1] > 0:
                s = s * a + x
                count += 1
            else:
                t = s - x
                s = t * t * 0.1 + np.sin(t) * count
        return np.sum(s)

    rng = np.random.default_rng(5)
    agrees(f, *[(rng.normal(size=(30, 3)), 0.2 * i) for i in range(1, 5)], (M * 0.1 - 1, 0.5))


def test_what_a_loop_carries_is_not_written_into():
    def f(x):
        first = x * 1.0
        s = first
        for _ in range(30):
            s = s * 0.9 + np.ones(3)
        return np.sum(s * first)

    v = np.array([1.0, 2.0, 3.0])
    agrees(f, (v,), (v * 2,))
    assert_same(v, np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("way", ["grad", "pullback"])
def test_a_long_loop_needs_memory_for_what_it_carries_alone(way, monkeypatch):
    monkeypatch.setattr("wengert.tracer.loops.FIRST_LOOK", 100)

    def f(x):
        for _ in range(10_000):
            x = x * 0.9999 + 1e-3
        return x

    answer = {"grad": grad(f), "pullback": lambda x: pullback(f, x)[1](1.0)[0]}[way]
    for _ in range(3):
        tracemalloc.start()
        slope = answer(1.0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert math.isclose(slope, 0.9999**10_000, rel_tol=1e-9)
        assert peak < 2.5e6  # 10,000 steps on a tape take 10 MB


def test_a_pullback_has_rolled_loops():
    def f(x, v):
        for _ in range(50):
            v = np.tanh(v * x)
            x = x * 0.99
        return np.sum(v) * x

    v = np.array([0.3, -0.2, 0.5])
    for scale in (1.0, 1.0, 1.0, 1.1, 0.9):
        value, back = pullback(f, 1.3 * scale, v * scale)
        assert value == f(1.3 * scale, v * scale)
        gradients = back(2.0)
        assert_same(back(2.0), gradients)
        with jit(False):
            known = pullback(f, 1.3 * scale, v * scale)[1](2.0)
        np.testing.assert_allclose(flat(gradients), flat(known), rtol=1e-12)
    assert "1 loop rolled" in explain(f, 1.3, v)


def test_a_derivative_inside_fixes_the_number_of_iterations():
    """What the inner sweep does, it does as often as the loop has run."""

    def f(x, y):
        last = x
        while last < 10:
            last *= y
        return last

    second = grad(grad(f), argnums=(0, 1))
    for args, n in (((0.5, 1.5), 8), ((0.5, 2.5), 4), ((0.5, 1.5), 8), ((0.1, 2.5), 6)):
        for _ in range(3):
            got = second(*args)  # of y**n, by x and by y
        assert got[0] == 0.0
        assert math.isclose(got[1], n * args[1] ** (n - 1), rel_tol=1e-12)


def test_patched_modules_leave_kept_derivatives_alone(monkeypatch):
    """The rule of `math.sin` means the cosine that there was when it was written."""
    clear_cache()
    for _ in range(2):
        step = grad(lambda x: math.sin(x) * x)
        known = [step(1.2) for _ in range(3)]
        assert len(set(known)) == 1
        with monkeypatch.context() as patch:
            patch.setattr(math, "cos", lambda x: 7.0)
            assert [step(1.2) for _ in range(3)] == known
            clear_cache()
            assert [step(1.2) for _ in range(3)] == known
