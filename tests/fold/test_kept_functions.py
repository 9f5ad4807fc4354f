"""Functions that the run makes and keeps: in lists, in attributes, as results of others: followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fold.comparing import compare, followed

pytestmark = pytest.mark.usefixtures("folding_at_once")


class Solver:
    """A system whose right-hand side is wrapped when it is made, and counted."""

    def __init__(self, rhs: Callable[[float, float], float], y: float) -> None:
        self.rhs, self.y, self.calls = rhs, y, 0

        def counted(t: float, y: float) -> float:
            self.calls += 1
            return self.rhs(t, y)

        self.counted = counted

    def step(self, t: float, h: float) -> None:
        self.y = self.y + h * self.counted(t, self.y)


def wrapped(x: float, n: int) -> float:
    scale: Any = float if n > 2 else int
    solver = Solver(lambda t, y: x * t - y * scale(1), 0.5)
    for k in range(n):
        solver.step(0.1 * k, 0.1)
    return solver.y * solver.calls


def result_of_a_function(x: float, n: int) -> float:
    def made(k: int) -> Callable[[float], float]:
        def power(y: float) -> float:
            return y * x if k % 2 else y + k * x

        return power

    total = 0.0
    for k in range(n):
        total += made(k)(total + 0.1)
    return total


def list_of_functions(x: float, n: int) -> float:
    def by_cell(y: float) -> Callable[[], float]:
        return lambda: y * x

    fs = [by_cell(0.5 * i) if i % 2 else lambda y=i * x: y * y for i in range(n)]
    return sum([f() for f in fs]) * x


def in_a_tuple(x: float, n: int) -> float:
    def pair(y: float) -> tuple[float, Callable[[float], float]]:
        return y * x, lambda z: z * y

    held, total = [pair(x + i) for i in range(n)], 0.0
    for y, f in held:
        total += f(y)
    return total


def with_a_cell_that_is_written(x: float, n: int) -> float:
    def counter(start: float) -> Callable[[], float]:
        def step() -> float:
            nonlocal start
            start = start * 1.5
            return start

        return step

    total, old = 0.0, counter(x)
    for k in range(n):
        step = counter(x + k)
        for _ in range(k % 3 + 1):
            total += step()
        total += old()
    return total


def handed_to_a_recursion(x: float, n: int) -> float:
    def half(f: Callable[[float], float], a: float, b: float, depth: int) -> float:
        m = 0.5 * (a + b)
        if depth == 0:
            return f(m) * (b - a)
        return half(f, a, m, depth - 1) + half(f, m, b, depth - 1)

    return half(lambda t: t * t * x, 0.0, x, n % 4)


@pytest.mark.parametrize(
    "f",
    [
        wrapped, result_of_a_function, list_of_functions, in_a_tuple, with_a_cell_that_is_written,
        handed_to_a_recursion,
    ],
)  # fmt: skip
def test_functions_that_are_kept_are_followed(f: Callable[..., float]) -> None:
    followed(f)


def rebound(x: float, n: int) -> float:
    held, y = [], x
    for _ in range(n):
        held.append(lambda: y * x)
    y = 2.0 * x
    return sum([f() for f in held])


def rebound_two_functions_away(x: float, n: int) -> float:
    y = x

    def outer() -> Callable[[], float]:
        return lambda: y * n

    f = outer()
    y = x * x
    return f() + x


class Held:
    f: Any = None


def bound_later(x: float, n: int) -> float:
    held = Held()
    held.f = lambda: y * x
    y = x + n
    return held.f()


def compared_by_identity(x: float, n: int) -> float:
    def made(y: float) -> Callable[[], float]:
        return lambda: y

    f = made(x)
    held = [f, made(x * n)]
    return f() if held[n % 2] is f else x * 3.0


@pytest.mark.parametrize(
    "f, why",
    [
        (rebound, "reads y, and that may change"), (bound_later, "reads y, and that may change"),
        (rebound_two_functions_away, "reads y, and that may change"),
        (compared_by_identity, "compares functions"),
    ],
)  # fmt: skip
def test_what_may_change_is_not(f: Callable[..., float], why: str) -> None:
    assert why in str(compare(f).folding.why)
