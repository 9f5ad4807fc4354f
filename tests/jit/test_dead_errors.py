"""An operation whose value nobody needs raises where a program answers, as it does in plain Python."""

import math

import numpy as np
import pytest

from wengert import value_and_grad


def floor(x, n):
    math.floor(x)
    return x * 2.0


def trunc(x, n):
    y = math.trunc(x)
    return x * 2.0 + len(type(y).__name__)


def factorial(x, n):
    math.factorial(n)
    return x * 2.0


def shift(x, n):
    1 << n
    return x * 2.0


def binomial(x, n):
    math.comb(5, n)
    return x * 2.0


def root(x, n):
    math.isqrt(n)
    return x * 2.0


def item(x, n):
    y = np.array([x, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])[n]
    return x * 2.0 + len(type(y).__name__)


def outcome(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("fold", ["0", "1"])
@pytest.mark.parametrize("f", [floor, trunc, factorial, shift, binomial, root, item])
def test_what_is_not_needed_raises_all_the_same(f, fold, monkeypatch):
    monkeypatch.setenv("WENGERT_FOLD", fold)
    both = value_and_grad(f)
    for k in range(8):
        assert both(1.0 + k, k % 7) == (f(1.0 + k, k % 7), 2.0)
    for x, n in (math.inf, 1), (math.nan, 2), (1.5, -1), (2.5, -9), (3.5, 3):
        expected = outcome(f, x, n)
        got = outcome(both, x, n)
        if isinstance(expected, tuple):
            assert got == expected
        else:
            assert got[1] == 2.0
            assert got[0] == expected or math.isnan(expected)
