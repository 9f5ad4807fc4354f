"""Lists of numbers as arguments of functions with a rule: of any length, and changed before and afterwards."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fold.comparing import compare, followed
from wengert import TraceError, explain, jit, value_and_grad

pytestmark = pytest.mark.usefixtures("folding_at_once")


def moments(x: float, n: int) -> float:
    items = [math.sin(x * k) for k in range(n + 2)]
    centre = statistics.mean(items)
    return centre * statistics.stdev(items) + statistics.pvariance(items, centre)


def of_integers_too(x: float, n: int) -> float:
    items = [k if k % 2 else x * k for k in range(n + 2)]
    return statistics.variance(items, xbar=x) + statistics.pstdev(items)


def weighted(x: float, n: int) -> float:
    weights = [1.0 + k * x for k in range(n)]
    return statistics.harmonic_mean([x + k for k in range(n)], weights) + statistics.fmean(weights)


def grows_and_shrinks(x: float, n: int) -> float:
    """What the pullback looks at are the numbers of the call."""
    items, total = [x, 2.0], 0.0
    for k in range(n):
        items.append(x * k)
        total += statistics.variance(items)
        items[0] = items[0] * 0.5 + total * 0.1
        if k % 3 == 2:
            items.pop()
    return total + statistics.mean(items) + sum(items)


def median_of_some(x: float, n: int) -> float:
    items = [math.cos(k * x) for k in range(2 * n + 1)]
    return statistics.median(items) + statistics.median([y for y in items if y < 0.9] or [x])


def array_of_a_list(x: float, n: int) -> float:
    items = []
    for k in range(n):
        items.append(x * k)
        if k % 2:
            items.append(x * x)
    a = np.array(items)
    items[0] = 5.0 * x
    return float(a @ a) + float(np.sum(np.exp(-a))) + sum(items)


def rows_of_any_length(x: float, n: int) -> float:
    a = np.array([[x * k for k in range(n)], [1.0 + k for k in range(n)]])
    return float(np.sum(a[0] * a[1]))


def functions_of_lists(x: float, n: int) -> float:
    items = [math.sin(x + k) for k in range(n)]
    total = float(np.dot(items, [1.0 * k for k in range(n)]))
    total += float(np.mean(items)) + float(np.max(np.cumsum(items)))
    return total + float(np.interp(x, [0.0, 1.0, 3.0], [x, 2.0, x * x]))


def picked_by_a_list(x: float, n: int) -> float:
    a = np.array([x * k * k for k in range(n + 2)])
    where = [k for k in range(n) if math.sin(k) > 0.0]
    return float(np.sum(a[where])) + float(a[[0, n]][1]) if where else x


def which_list(x: float, n: int) -> float:
    a, b = [x, 1.0], [x * x, x, 2.0]
    one = a if n % 2 else b
    value = statistics.mean(one)
    one.append(value * x)
    return value + sum(a) * sum(b)


@pytest.mark.parametrize(
    "f",
    [
        moments, of_integers_too, weighted, grows_and_shrinks, median_of_some, array_of_a_list, rows_of_any_length,
        functions_of_lists, picked_by_a_list, which_list,
    ],
)  # fmt: skip
def test_is_followed(f: Callable[..., float]) -> None:
    followed(f)


def too_few(x: float, n: int) -> float:
    try:
        return statistics.stdev([x * k for k in range(n - 2)])
    except statistics.StatisticsError:
        return x


def nothing(x: float, n: int) -> float:
    return x + np.array([x] * (n - 1)).size


def of_other_things(x: float, n: int) -> float:
    return x * len(np.array([x > k for k in range(n)]))


@pytest.mark.parametrize("f", [too_few, nothing, of_other_things])
def test_is_right(f: Callable[..., float]) -> None:
    compare(f)


def test_one_list_twice_in_the_first_call() -> None:
    """Its call is traced, and the next ones are folded."""

    def f(a: list[float], b: list[float], n: int) -> float:
        t = a[0]
        for _ in range(n):
            t = t * b[0] if t < 2.0 else t - a[1]
        return t

    both, twice = value_and_grad(f, (0, 1)), [0.7, 1.3]
    for n in (2, 3, 1, 4, 2, 5, 3):
        with jit(False):
            expected = value_and_grad(f, (0, 1))(twice, twice, n)
        assert both(twice, twice, n) == expected
    for i in range(12):
        a, b = [0.5 + 0.1 * i, 1.0], [1.5 - 0.1 * i]
        with jit(False):
            expected = value_and_grad(f, (0, 1))(a, b, i % 6)
        value, slopes = both(a, b, i % 6)
        assert value == expected[0]
        assert slopes[0] == pytest.approx(expected[1][0])
        assert slopes[1] == pytest.approx(expected[1][1])
    assert "for all ways" in explain(both)


@pytest.mark.parametrize(
    "p", [(), {}, [], None, True, "s", {"a": None}, (True,), {"a": ()}, (np.arange(2),)]
)
def test_a_gradient_by_something_without_one(p: Any) -> None:
    def f(p: Any, x: float, n: int) -> float:
        for _ in range(n):
            x = x * x if x < 1.0 else x - 0.5
        return x

    both = value_and_grad(f, (0, 1))
    for n in (2, 3, 4, 5):
        value_and_grad(f, 1)(p, 0.7, n)
        with pytest.raises(TraceError, match="without a derivative"):
            both(p, 0.7, n)
