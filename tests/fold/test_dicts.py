"""What is taken out of dicts, sets and lists, put into them at once, or taken apart with other lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fold.comparing import followed

pytestmark = pytest.mark.usefixtures("folding_at_once")


def taken_out(x: float, n: int) -> float:
    held: dict[str, float] = {"a": x, "b": x * x}
    for i in range(n):
        key = "a" if i % 2 else "b"
        value = held.pop(key, 0.3)
        held[key if value > 0.5 else "c"] = value * 1.1 + i
        if "c" in held and len(held) > 2:
            del held["c"]
    return sum(held.values()) + len(held)


def emptied(x: float, n: int) -> float:
    held, total = {i: x * i for i in range(n)}, 0.0
    while held:
        k = max(held, key=lambda k: held[k] * (1 if k % 2 else 2))
        total = total * x + held.pop(k)
    try:
        del held[0]
    except KeyError:
        total += x
    try:
        total += held.pop(n)
    except KeyError:
        total *= x
    return total


def stored_again_after_it_was_deleted(x: float, n: int) -> float:
    held = {0: x, 1: x * x}
    for i in range(n):
        total = held[0] * held[1]
        del held[0]
        held[0] = total if i % 2 else total * x
    return held[0] + held[1]


def brought_together(x: float, n: int) -> float:
    held: dict[Any, float] = {"p": x}
    first = held
    for i in range(n):
        held = {**held, i: x * i, "p": held["p"] * 1.1}
        other = held.copy()
        other["p"] = 0.0
    held.update({"q": x * n}, r=2.0 * x)
    held.setdefault("s")
    return held["p"] + held["q"] * held.pop("r") + first["p"] + len(held)


def sets(x: float, n: int) -> float:
    total, held = 0.0, {0}
    for k in range(n):
        held.add(k * 3 % 5)
        held.discard(k % 2)
        if 3 in held:
            held.remove(3)
        some = {k % 2, 2, k % 3}
        if k in {1, 2, 3}:
            total += x * len(some)
        if 0 in {j % 5 for j in range(k)}:
            total += 0.1 * x
    return total + x * len(held)


def items_of_lists(x: float, n: int) -> float:
    items = [x * i for i in range(n + 2)]
    del items[0]
    first, *others = items
    rows = [[x * i + j for j in range(3)] for i in range(n)]
    columns = [list(row) for row in zip(*rows, strict=False)]

    def scaled(a: float, *more: float, c: float = 1.0) -> float:
        return a * c + sum(more)

    total = scaled(*items, c=x) + scaled(*(x, x), **{"c": n})
    return total + first + sum(others) * x + sum(sum(c) ** 2 for c in columns)


def items_behind_others(x: float, n: int) -> float:
    pair = (x * 2.0, x + n)
    items = [x * i for i in range(n)]
    first = [x, *pair, *items, n, *range(n)]
    return sum(first) * len(first) + sum([*items, *pair]) + sum([1.0, 2.0, *pair])


@pytest.mark.parametrize(
    "f",
    [
        items_behind_others,
        taken_out,
        emptied,
        stored_again_after_it_was_deleted,
        brought_together,
        sets,
    ],
)
def test_folded(f: Callable[..., float]) -> None:
    followed(f)


def test_lengths_are_ways() -> None:
    followed(items_of_lists)
