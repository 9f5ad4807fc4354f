"""Patterns that go by the length of a list, which CPython 3.13 compares without asking for a truth value."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from helpers import assert_close, assert_same, numeric_grad
from wengert import value_and_grad

pytestmark = pytest.mark.usefixtures("folding_at_once")


def by_length(a: float, n: int) -> float:
    ys = [a]
    for i in range(n):
        ys.append(ys[i] * 0.5)
    ys.pop()
    match ys:
        case []:
            return 100.0 * a
        case [x]:
            return 10.0 * x
        case [x, y] if x > y:
            return x * y
        case [x, *rest] if len(rest) > 3:
            return x + sum(rest)
        case _:
            return 2.0 * a * a


def by_keys(a: float, n: int) -> float:
    found = {"p": a}
    if n > 1:
        found["q"] = a * a
    if n > 3:
        found["r"] = 3.0
    match found:
        case {"p": x, "q": y, "r": z}:
            return x * y * z
        case {"p": x, "q": y}:
            return x + 5.0 * y
        case {"q": y}:
            return 100.0 * y
        case {}:
            return 2.0 * a


@pytest.mark.parametrize("f", [by_length, by_keys], ids=lambda f: f.__name__)
def test_the_way_of_plain_python_is_gone(f: Callable[[float, int], float]) -> None:
    both = value_and_grad(f)
    for turn in range(4):
        for n in range(7):
            a = 1.0 + 0.3 * turn - 0.7 * (n % 2)
            value, slope = both(a, n)
            assert_same(value, f(a, n))
            assert_close(slope, numeric_grad(f, a, n), tol=1e-6)
