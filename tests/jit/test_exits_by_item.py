"""Loops that are left in the midst of an iteration, and what that iteration was given is used behind them.

Each function is called with numbers for which it is left after other counts of iterations; value and gradient are
compared with plain Python's and with those of tracing alone, on flat tapes (folding would answer otherwise).
"""

# ruff: noqa: PLW2901

import random

import numpy as np
import pytest

from helpers import assert_same
from wengert import clear_cache, jit, value_and_grad
from wengert.transforms import cache
from wengert.transforms.budget import Budget


def first_above(x, n, xs):
    y = 0.0
    for i in range(9):
        y = x * (i + 1)
        if y > n:
            break
    return y


def item_of_a_list(x, n, xs):
    for v in xs:
        if v > n:
            x = x * v
            if x > 0:
                break
        x = x * 1.1
    return x


def decision_on_the_item(x, n, xs):
    for i in range(9):
        if x > n + 3:
            if i > 3:
                x = x * 2
                break
        x = x * 1.5
    return x


def factor_of_an_array(x, n, xs):
    a = np.array([x, 1.0])
    for i in range(7):
        if i == n:
            a = a * (i + 1)
            if a[0] > 0:
                break
        a = a * 1.1
    return a.sum()


def counted_by_hand(x, n, xs):
    k = 0
    for i in range(9):
        k = k + 2
        x = x * 1.1
        if k > n:
            x = x * k
            if x > 0:
                break
    return x


def item_as_factor(x, n, xs):
    for i in range(9):
        if x * i > n:
            x = x * i
            if x > 0:
                break
        x = x * 1.1
    return x


def two_ways_out(x, n, xs):
    for i in range(9):
        if x * i > n:
            if i % 2:
                x = x * 3
                break
            else:
                x = x * 7
                if x > 0:
                    break
        x = x * 1.1
    return x


def item_kept(x, n, xs):
    c = 0
    for i in range(9):
        x = x * 1.2
        if x > n + 1:
            c = i
            if x > 0:
                break
    return x * c


def loops_inside_one_another(x, n, xs):
    t = 0.0
    for i in range(6):
        for j in range(5):
            y = x * (j + 1) + i
            if y > n:
                break
        t = t * 0.9 + x * j
        if t > n + 2:
            return t * i + y
    return t


def steps_of_three(x, n, xs):
    for i in range(2, 30, 3):
        if i > n * 3:
            break
        x = x * 1.1
    else:
        i = 100
    return x * i


def keys_of_a_dict(x, n, xs):
    d = {}
    for i in range(8):
        d[i] = x * i
        if d[i] > n:
            break
    return d[i] + len(d) * x


def left_by_an_exception(x, n, xs):
    for i in range(8):
        try:
            if i == n:
                raise KeyError(i)
            x = x * 1.1
        except KeyError:
            x = x * (i + 2)
            break
    return x


def array_of_the_item(x, n, xs):
    for i in range(9):
        z = np.array([x * i, 1.0])
        if z[0] > n:
            break
    return (z * z).sum()


def sign_of_the_item(x, n, xs):
    for i in range(9):
        if i and x * i > n or i > 6:
            x *= i if i % 2 else -i
            break
        x += 0.1 * i
    return x * i


def items_in_pairs(x, n, xs):
    for a, b in zip(range(9), range(9, 0, -1)):
        if x * a > n:
            return x * a * b
    return x


PROGRAMS = [
    first_above,
    item_of_a_list,
    decision_on_the_item,
    factor_of_an_array,
    counted_by_hand,
    item_as_factor,
    two_ways_out,
    item_kept,
    loops_inside_one_another,
    steps_of_three,
    keys_of_a_dict,
    left_by_an_exception,
    array_of_the_item,
    sign_of_the_item,
    items_in_pairs,
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_an_exit_knows_in_which_iteration_it_is(f, seed, monkeypatch):
    monkeypatch.setenv("WENGERT_FOLD", "0")
    monkeypatch.setattr(Budget, "limited", False)
    clear_cache()
    both, rng, n = value_and_grad(f), random.Random(seed), 3
    for k in range(16):
        if k % 3 == 2:
            n = rng.randrange(7)
        x, xs = 1.5 + 0.1 * k, [rng.uniform(0.5, 6.0) for _ in range(7)]
        value, slope = both(x, n, xs)
        assert_same(value, f(x, n, xs))
        with jit(False):
            assert slope == pytest.approx(both(x, n, xs)[1], rel=1e-12)


def test_a_long_loop_whose_iterations_were_dropped_while_it_ran(monkeypatch):
    monkeypatch.setenv("WENGERT_FOLD", "0")

    def first(x, n):
        y = 0.0
        for i in range(20_000):
            y = x * (i + 1)
            if y > n:
                break
        return y

    clear_cache()
    both = value_and_grad(first)
    for n in (3000, 3000, 3000, 2500, 4000, 150):
        value, slope = both(1.0, n)
        assert_same(value, first(1.0, n))
        assert slope == n + 1


def test_an_exit_that_uses_nothing_of_its_iteration_is_one_program_for_all_counts():
    def until(x, n):
        for i in range(30):
            if i == n:
                break
            x = x * 1.1
        return x

    clear_cache()
    both = value_and_grad(until)
    for n in range(4, 14):
        both(1.5, n)
    before = sum(entry.traces for entry in cache.entries.values())
    for n in range(1, 25):
        value, slope = both(1.5, n)
        assert_same(value, until(1.5, n))
        assert slope == pytest.approx(1.1**n)
    assert sum(entry.traces for entry in cache.entries.values()) == before
