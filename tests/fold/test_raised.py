"""What exceptions hold: given where they are raised, read where they are caught."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from fold.comparing import compare, followed
from wengert import explain, grad

pytestmark = pytest.mark.usefixtures("folding_at_once")


class Rejected(Exception):
    pass


class Found(Exception):
    def __init__(self, value: float, where: int, *, label: str | None = None) -> None:
        self.value = value
        self.where = where
        self.label = label

    def weighted(self, w: float) -> float:
        return self.value * w + self.where


class Nearer(Found):
    pass


def checked(x: float) -> float:
    if x < 0.0:
        raise Rejected(x, "low")
    if x > 2.0:
        raise Rejected(x)
    return math.sqrt(x)


def arguments(x: float, n: int) -> float:
    total = 0.0
    for k in range(n):
        try:
            total += checked(x * (k - 1))
        except Rejected as why:
            total -= 0.1 * why.args[0] ** 2 * len(why.args)
    return total


def through_functions_and_loops(x: float, n: int) -> float:
    def search(k: int) -> float:
        for i in range(n):
            for j in range(k):
                if math.sin(i + j * x) > 0.8:
                    raise Rejected(i, j * x)
        return x

    total = 0.0
    for k in range(n):
        try:
            total += search(k)
        except Rejected as why:
            i, y = why.args
            total += y * (i + 1)
    return total


def attributes(x: float, n: int) -> float:
    def search(depth: int, y: float) -> None:
        if y > 3.0 or depth == 0:
            if n % 2:
                raise Found(y, depth)
            raise Nearer(y, depth, label="near")
        search(depth - 1, y * 1.3)

    try:
        search(n, x)
    except Nearer as found:
        return found.weighted(x) + (found.label == "near")
    except Found as found:
        found.value = found.value * 2.0
        return found.weighted(2.0) + found.args[0]
    return x


def raised_again(x: float, n: int) -> float:
    def inner(k: int) -> float:
        try:
            return checked(x - k)
        except Rejected as why:
            if why.args[0] < -1.0:
                raise
            raise ValueError(why.args[0] * 2.0, k) from why

    total = x
    for k in range(n):
        try:
            total += inner(k)
        except (Rejected, ValueError) as why:
            total += why.args[0] * x
    return total


def collected(x: float, n: int) -> float:
    errors: list[Any] = []
    for k in range(n):
        try:
            errors.append(checked(x * k - 1.0))
        except Rejected as why:
            errors.append(why)
    return sum([e.args[0] if isinstance(e, Rejected) else e for e in errors])


def with_containers(x: float, n: int) -> float:
    try:
        for k in range(n):
            row = [x * i for i in range(k + 1)]
            if sum(row) > 3.0:
                raise Rejected(row, {"k": k})
    except Rejected as why:
        row, known = why.args
        row.append(known["k"] * x)
        return sum(row)
    return x


def last_of_a_loop(x: float, n: int) -> float:
    kept: Any = None
    for k in range(n):
        try:
            checked(x * (k - 2))
        except Rejected as why:
            kept = why
    return x if kept is None else kept.args[0] + x


def of_both_sorts(x: float, n: int) -> float:
    """Of what Python itself raises, nothing is asked."""
    total = x
    for k in range(n):
        try:
            if k == 3:
                raise ValueError(x * k)
            total += math.log(2.0 - k * x)
        except ValueError as why:
            total += why.args[0] if k == 3 else 1.0
    return total


@pytest.mark.parametrize(
    "f",
    [
        arguments, through_functions_and_loops, attributes, raised_again, collected, with_containers, last_of_a_loop,
        of_both_sorts,
    ],
)  # fmt: skip
def test_is_followed(f: Callable[..., float]) -> None:
    followed(f)


class Counting(Exception):
    made = 0

    def __new__(cls, *args: Any) -> Counting:
        Counting.made += 1
        return super().__new__(cls, *args)


class Told(ValueError):
    def __str__(self) -> str:
        return "told"


def text_of_it(x: float, n: int) -> float:
    try:
        if n > 2:
            raise Told(x)
        return math.log(x - n)
    except ValueError as why:
        return x * (len(str(why)) > 9)  # the number stands in it from 3.14 on


def text_of_math(x: float, n: int) -> float:
    try:
        return math.log(x - n)
    except ValueError as why:
        return x * (len(why.args[0]) > 9)


def text_of_max(x: float, n: int) -> float:
    try:
        return max([x] * (n - 2))
    except ValueError as why:
        return x * len(why.args[0])


def made_in_its_own_way(x: float, n: int) -> float:
    try:
        raise Counting(x)
    except Counting as why:
        return why.args[0] * n


def uncaught(x: float, n: int) -> float:
    return checked(x * (n - 3))


def formatted(x: float, n: int) -> float:
    try:
        if n > 3:
            raise ValueError(f"{n} is too large")
        return x
    except ValueError as why:
        return x * len(why.args[0])


def with_keywords(x: float, n: int) -> float:
    try:
        raise Rejected(x, n=n)  # type: ignore[call-arg]
    except TypeError:
        return x * x
    except Rejected:
        return x


@pytest.mark.parametrize(
    "f",
    [
        text_of_it,
        text_of_math,
        text_of_max,
        made_in_its_own_way,
        uncaught,
        formatted,
        with_keywords,
    ],
)
def test_is_right(f: Callable[..., float]) -> None:
    compare(f)


ERRORS = [LookupError("kept")]


def test_what_is_handled_around_the_call_stays_what_it_is():
    def f(x):
        try:
            raise ERRORS[0]
        except LookupError as error:
            return x * len(error.args)

    df = grad(f)
    for x in (1.5, 2.5, 3.5, 4.5, 5.5, 6.5):
        try:
            raise KeyError("first")
        except KeyError as first:
            try:
                raise ValueError("second")
            except ValueError as second:
                assert df(x) == 1.0
                assert second.__traceback__ is not None
                assert second.__context__ is first
                assert first.__traceback__ is not None
    assert "a LookupError from outside is read" in str(explain(df, 1.5))
