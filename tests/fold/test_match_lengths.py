"""Patterns that go by the length of a list, which CPython 3.13 compares without asking for a truth value."""

from __future__ import annotations

import pytest

from helpers import assert_same
from wengert import jit, value_and_grad

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


def test_the_way_of_plain_python_is_gone() -> None:
    both = value_and_grad(by_length)
    for round in range(4):
        for n in range(7):
            a = 1.0 + 0.3 * round - 0.7 * (n % 2)
            value, slope = both(a, n)
            assert_same(value, by_length(a, n))
            with jit(False):
                assert_same(slope, value_and_grad(by_length)(a, n)[1])
