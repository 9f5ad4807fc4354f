"""Numbers of Python's and of NumPy's beside each other, what handlers are handed, and what is said of what differs."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

from fold.comparing import compare, followed
from helpers import assert_same
from wengert import TraceError, explain, value_and_grad

pytestmark = pytest.mark.usefixtures("folding_at_once")


def test_rows_that_are_written_by_integers_of_numpy() -> None:
    def f(x: float, n: int) -> float:
        up = 1.0 + 0.1 * x
        rows = [[0.0] * (i + 1) for i in range(n + 1)]
        for j in np.arange(n + 1):
            rows[n][j] = max(up ** (2.0 * j - n) - 1.0, 0.0)
        for i in np.arange(n - 1, -1, -1):
            for j in np.arange(i + 1):
                rows[i][j] = 0.5 * (rows[i + 1][j] + rows[i + 1][j + 1])
        return rows[0][0]

    followed(f)


def test_equal_numbers_of_two_types_share_the_slope() -> None:
    def f(x: float, n: int) -> float:
        total = 0.0
        for j in np.arange(n):
            total += max(x * j, 0.0, x) * j
        return total

    entry = compare(f)  # x * 1 equals x
    assert entry.folding.why is None


def test_a_handler_is_handed_what_lies_outside_of_what_was_left() -> None:
    def f(x: float, n: int) -> float:
        total = x
        for i in range(n):
            try:
                if i == 2:
                    continue
                total += x / i
            except ZeroDivisionError:
                total += 1.0
            finally:
                total *= 1.1
        return total

    followed(f)


def test_what_differs_is_named_with_its_line() -> None:
    def f(x: float, n: int) -> float:
        items: list[float] = [1]
        if n > 3:
            items[0] = x
        return x * sum(items)

    slope = value_and_grad(f)
    for n in (1, 5, 2, 6, 1, 5):
        slope(1.5, n)
    line = f.__code__.co_firstlineno + 4
    assert f"test_mixed_numbers.py:{line}): sum gives a" in explain(slope)


class Reflecting:
    def __init__(self, v: float) -> None:
        self.v = v

    def __radd__(self, other: float) -> float:
        return self.v * 100 + other


def test_numpy_asks_an_object_on_the_right_with_numbers_of_python() -> None:
    def f(x: float, n: int) -> float:
        total = x
        for i in range(n):
            total = (np.float64(total) if i % 2 else total) + Reflecting(x)
        return total

    compare(f)


def test_an_object_on_the_right_of_an_array_is_asked_for_each_element() -> None:
    def f(v: np.ndarray, n: int) -> float:
        return 1.0 + Reflecting(float(n)) if n % 2 else (v + Reflecting(float(n))).sum()

    both = value_and_grad(f)
    for n in (1, 2, 3, 4, 5, 6):
        try:
            value, _ = both(np.ones(2), n)
        except TraceError as error:
            assert n % 2 == 0 and "an array of objects" in str(error)
        else:
            assert_same(value, f(np.ones(2), n))


@pytest.mark.parametrize("integer", [int, operator.index, lambda n: max(int(n), 0)])
def test_an_int_of_an_int_has_no_derivative(integer: Callable[[int], int]) -> None:
    def f(n: int, k: int) -> float:
        total = n * 0.5
        for _ in range(k):
            total = total + integer(n) * 1.0
        return total

    slope = value_and_grad(f)
    for k in range(1, 8):
        assert slope(5, k) == (5 * (k + 0.5), 0.5)
    assert "for all ways" in explain(slope)
