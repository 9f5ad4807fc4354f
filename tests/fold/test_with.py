"""``with`` statements: managers of the user's, those of contextlib, and NumPy's errstate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fold.comparing import compare, followed

pytestmark = pytest.mark.usefixtures("folding_at_once")


class Swallow:
    def __init__(self, log: list[float]) -> None:
        self.log, self.hit = log, 0

    def __enter__(self) -> Swallow:
        self.log.append(1.0)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        self.log.append(2.0)
        if kind is ZeroDivisionError:
            self.hit += 1
            return True
        return False


def swallowed(x: float, n: int) -> float:
    log: list[float] = []
    total = x
    for i in range(n):
        manager = Swallow(log)
        with manager as inside:
            total = total * 1.1
            total += x / (i % 3)
            total += inside.hit
        total += manager.hit * x
    return total + sum(log)


def left_in_many_ways(x: float, n: int) -> float:
    log: list[float] = []
    total = x
    for i in range(n + 2):
        with Swallow(log) as first, Swallow(log):
            if i == 4:
                break
            if i == 1:
                continue
            if total > 5.0:
                return total * len(log)
            total += x
            first.hit += 1
            total += first.hit / (i - 2)
    return total + sum(log)


def escaped(x: float, n: int) -> float:
    log: list[float] = []
    try:
        with Swallow(log):
            total = [x, x * x][n - 2]
            if n > 4:
                raise ValueError("too many")
    except IndexError:
        total = 0.5 * x
    except ValueError:
        total = x * 3
    return total * len(log)


def by_contextlib(x: float, n: int) -> float:
    total = x
    with contextlib.suppress(ZeroDivisionError, KeyError):
        for i in range(n):
            total += x / (3 - i)
        total = total * 2.0
    with contextlib.suppress(IndexError):
        total += [x][n - 2]
    with contextlib.nullcontext(total) as same, contextlib.nullcontext():
        return same * n if n > 2 else same


def without_warnings(x: float, n: int) -> float:
    items = np.array([x * i for i in range(n)])
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sum(np.where(items > 0, 1.0 / (items + 1), 0.0))) + x


def returned_from_a_loop(x: float, n: int) -> float:
    total = x
    for i in range(9):
        try:
            total = total * 1.2
            if total > n:
                return total * x + i
        finally:
            total = total + 0.1
    return total


@pytest.mark.parametrize(
    "f",
    [swallowed, left_in_many_ways, escaped, by_contextlib, without_warnings, returned_from_a_loop],
)
def test_folded(f: Callable[..., float]) -> None:
    followed(f)


def test_errstate_with_events_that_nobody_is_told_of() -> None:
    def f(x: float, n: int) -> float:
        items = np.array([x * i for i in range(n)])
        with np.errstate(divide="ignore"):
            logs = np.where(items > 0, np.log(items), 0.0)
        with np.errstate(all="raise"):
            try:
                return float((x / items[:2]).sum() + logs.sum())
            except FloatingPointError:
                return float(logs.sum()) + x

    compare(f)


def test_a_generator_as_a_manager_is_not_followed() -> None:
    @contextlib.contextmanager
    def scaled(x: float) -> Any:
        yield x * 2.0

    def f(x: float, n: int) -> float:
        total = 0.0
        for i in range(n):
            with scaled(x * i) as y:
                total += y
        return total + x

    compare(f)


def test_errstate_that_asks_for_underflows() -> None:
    def f(x: float, n: int) -> float:
        small = np.full(2, x) * 10.0 ** (-60.0 * n)
        with np.errstate(under="raise"):
            try:
                return float((small * small).sum()) + x
            except FloatingPointError:
                return 3.0 * x

    assert "underflows" in str(compare(f).folding.why)
