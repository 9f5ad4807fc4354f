"""Comparisons of lists, tuples, None and objects, what lists hold, and numbers that count from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from fold.comparing import compare, followed

pytestmark = pytest.mark.usefixtures("folding_at_once")


class Item:
    def __init__(self, x: float) -> None:
        self.x = x


class Number(Item):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self.x == other.x

    __hash__ = None  # type: ignore[assignment]


def until_nothing_changes(x: float, n: int) -> float:
    labels, turns = None, 0
    while True:
        new = [int(math.sin(x * k + turns) > 0.2 * turns) for k in range(n)]
        if new == labels:
            return x * turns + sum(new)
        labels, turns = new, min(turns + 1, 6)


def lists_of_floats(x: float, n: int) -> float:
    a, b = [x * (k % 3) for k in range(n)], [x * ((k * k) % 3) for k in range(n)]
    total = x
    if a == b:
        total += 1.0
    if a[:2] == b[:2]:
        total *= 2.0
    if a != [0.0, x, 2.0 * x]:
        total -= x * x
    return total


def nested_lists(x: float, n: int) -> float:
    a = [[k % 2, "a", (k, None)] for k in range(n)]
    b = [[0, "a", (k, None)] for k in range(n % 3)]
    c = [[0, "a", (k, 1)] for k in range(n % 3)]
    return x * (a == b) + x * x * (b == c) + (a[0] == c) + (a == a)


def of_other_types(x: float, n: int) -> float:
    items = [k for k in range(n)]
    total = x
    for other in ([], (), {}, None, "a", 3):
        if items[n // 2 :] == other:
            total *= 1.5
        if other != items:
            total += x
    return total


def not_a_number(x: float, n: int) -> float:
    """An object always equals itself as an item of a list."""
    y = float("nan")
    a, b = [x, y], [x, y] if n % 2 else [x, y + 1.0]
    return x * 2.0 if a == b else x * x


def held_in_lists(x: float, n: int) -> float:
    seen, total, k = [], 0.0, n
    while k not in seen:
        seen.append(k)
        total += x * k
        k = (k * k + 3) % 11
    pairs = [(i, "a" if i % 2 else None) for i in seen]
    if (2, None) in pairs:
        total *= 0.5
    return total + ((1, "a") in pairs) * x


def of_lists(x: float, n: int) -> float:
    items = [(3 * k + n) % 5 for k in range(n + 2)]
    total = x * items.count(2)
    try:
        total += x * items.index(3)
        items.remove(1)
    except ValueError:
        total -= 1.0
    return total * items[-1] + len(items) * x


def objects(x: float, n: int) -> float:
    made = [Item(x * k) for k in range(n)]
    one = made[n // 2]
    done: list[Any] = [None, 3.0]
    for item in made:
        if item == one or item in done:
            item.x = item.x * 2.0
        if item != made[0]:
            done.append(item)
        if item != None:  # noqa: E711
            item.x += 0.5
    return sum(item.x for item in made) + len(done)


def counted_from_one(x: float, n: int) -> float:
    return sum([x**i / math.factorial(i) for i, _ in enumerate("a" * n, 1)])


def counted_from_anywhere(x: float, n: int) -> float:
    total = 0.0
    for i, y in enumerate([x * k for k in range(n)], start=n % 3 - 1):
        for j, z in enumerate((x, y), i):
            total += j * z + i
    return total


def numbers_and_bools(x: float, n: int) -> float:
    flags = [n > 2, n > 4]
    return x * 2.0 if flags == [1, n % 2] else x * x


def bools_as_numbers(x: float, n: int) -> float:
    """They are numbers beside numbers."""
    high = n > 3
    total = high * x - (n == 2) + (n % 2 == high) * x * x
    return total + (not high) / (x + 1.0) + (n & high)


FOLLOWED = [
    until_nothing_changes, lists_of_floats, nested_lists, of_other_types, held_in_lists, of_lists,
    objects, counted_from_anywhere, numbers_and_bools, bools_as_numbers,
]  # fmt: skip


@pytest.mark.parametrize("f", FOLLOWED)
def test_is_followed(f: Callable[..., float]) -> None:
    followed(f)


def equal_by_themselves(x: float, n: int) -> float:
    made = [Number(float(k % 3)) for k in range(n)]
    return x * made.count(Number(1.0)) + (made[0] == made[-1]) * x * x


def in_order(x: float, n: int) -> float:
    return x if [x, 1.0] < [x * n, 2.0] else x * x


def dicts(x: float, n: int) -> float:
    return x if {"a": n % 2} == {"a": 1} else x * x


@pytest.mark.parametrize(
    "f",
    [equal_by_themselves, in_order, dicts, not_a_number, counted_from_one],
)
def test_is_right(f: Callable[..., float]) -> None:
    compare(f)
