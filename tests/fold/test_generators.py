"""Generators that are asked to their end: folded, and otherwise left to the trace."""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fold.comparing import compare, followed
from helpers import assert_same
from wengert import jit, value_and_grad
from wengert.tracer.fold import generators
from wengert.transforms import cache

pytestmark = pytest.mark.usefixtures("folding_at_once")


def growing(x: float) -> Iterator[float]:
    p, q = x, 1.0
    while p < 50.0:
        yield p
        p, q = p + q, p


def pairs(x: float, n: int) -> Iterator[tuple[int, float]]:
    for i in range(n):
        yield i, x * i
        if i % 2:
            yield 7, x * x


class Tree:
    def __init__(self, value: float, left: Any = None, right: Any = None) -> None:
        self.value, self.left, self.right = value, left, right

    def __iter__(self) -> Iterator[float]:
        if self.left is not None:
            yield from self.left
        yield self.value
        if self.right is not None:
            for x in self.right:
                yield x * 0.5


def walk(tree: Tree | None, depth: int = 0) -> Iterator[tuple[int, float]]:
    if tree is None:
        return
    yield from walk(tree.left, depth + 1)
    yield depth, tree.value
    yield from walk(tree.right, depth + 1)


tree = Tree(1.0, Tree(2.0), Tree(0.5, Tree(0.2)))


def looped(x: float, n: int) -> float:
    total = 0.0
    for i, v in pairs(x, n):
        total = total + v if total < 3.0 else total - i * v
    return total * x


def taken_whole(x: float, n: int) -> float:
    found = list(growing(x))
    doubled = [p * 2.0 for p in growing(x) if p > 2.0]
    return sum(found) + max(doubled) + len(doubled) * x + sum(p * p for p in growing(x + n))


def beside_each_other(x: float, n: int) -> float:
    total = 0.0
    for p, q in zip(growing(x), growing(2.0 * x), strict=False):
        total += p * q if p < n else p
    for i, p in enumerate(growing(x)):
        total += i * p
    return total


def one_after_another(x: float, n: int) -> float:
    def positive(items: Any) -> Iterator[float]:
        for v in items:
            if math.sin(3.0 * v) > 0.0:
                yield v * x

    def running(items: Any) -> Iterator[float]:
        total = 0.0
        for v in items:
            total = 0.9 * total + v
            yield total

    return sum(v * v for v in running(positive(growing(x * n)))) * x


def own_trees(x: float, n: int) -> float:
    total = 0.0
    for v in tree:
        total += v * x if v * x < 1.0 else x * n
    for depth, v in walk(tree):
        total += v * x**depth if depth < n else v
    return total


@pytest.mark.parametrize(
    "f", [looped, taken_whole, beside_each_other, one_after_another, own_trees]
)
def test_folded(f: Callable[..., float]) -> None:
    followed(f)


def refused(f: Callable[..., float], why: str) -> None:
    entry = compare(f)
    assert why in str(entry.folding.why), entry.folding.why


def test_a_list_grows_while_a_generator_reads_it() -> None:
    def f(x: float, n: int) -> float:
        items, total = [x], 0.0

        def each() -> Iterator[float]:
            i = 0
            while i < len(items):
                yield items[i]
                i += 1

        for v in each():
            total += v
            if len(items) < n:
                items.append(v * 0.5)
        return total

    refused(f, "changed meanwhile")


def test_a_variable_changes_while_a_generator_reads_it() -> None:
    def f(x: float, n: int) -> float:
        scale, total = x, 0.0

        def each() -> Iterator[float]:
            for i in range(n):
                yield i * scale

        for v in each():
            total += v
            scale = scale * 1.5
        return total + scale

    refused(f, "may read is changed")


def test_a_shared_variable_changes_while_a_generator_reads_it() -> None:
    def f(x: float, n: int) -> float:
        scale, total = x, 0.0

        def each() -> Iterator[float]:
            for i in range(n):
                yield i * scale

        def change() -> None:
            nonlocal scale
            scale = scale * 1.5

        for v in each():
            total += v
            change()
        return total + scale

    refused(f, "changed meanwhile")


def test_a_variable_changes_before_a_generator_reads_it() -> None:
    def f(x: float, n: int) -> float:
        scale = x

        def each() -> Iterator[float]:
            for i in range(n):
                yield i * scale

        given = each()
        scale = scale * 3.0
        return sum(given) + scale * x

    refused(f, "may read is changed")


def test_what_was_given_changes() -> None:
    def f(x: float, n: int) -> float:
        def each() -> Iterator[list[float]]:
            row = [x]
            for _ in range(n):
                row[0] = row[0] * 1.5
                yield row

        total, rows = 0.0, []
        for row in each():
            total += row[0]
            rows.append(row)
        return total + rows[0][0]

    refused(f, "may be changed afterwards")


def test_a_generator_writes() -> None:
    def f(x: float, n: int) -> float:
        seen: list[float] = []

        def each() -> Iterator[float]:
            for i in range(n):
                seen.append(x)
                yield i * x

        total = 0.0
        for v in each():
            total += v * len(seen)
        return total

    refused(f, "changed meanwhile")


def test_a_generator_raises() -> None:
    def f(x: float, n: int) -> float:
        def each() -> Iterator[float]:
            for i in range(n):
                if i == 3:
                    raise ValueError("three")
                yield i * x

        total = x
        try:
            for v in each():
                total += v
        except ValueError:
            total *= 2.0
        return total

    refused(f, "raises a ValueError")


def test_a_generator_without_an_end() -> None:
    def f(x: float, n: int) -> float:
        def each() -> Iterator[float]:
            p = x
            while True:
                yield p
                p = p * 1.1

        total = 0.0
        for v in each():
            if v > n:
                break
            total += v
        return total

    followed(f)


def counting(x: float, n: int) -> float:
    for i in itertools.count():
        if i > 6_000:
            break
    return x * n


def test_a_generator_gives_more_than_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generators, "MOST_ITEMS", 5_000)
    refused(counting, "gives too much")


def test_a_generator_gives_thousands_of_items() -> None:
    followed(counting)


def test_a_generator_that_is_left() -> None:
    def f(x: float, n: int) -> float:
        for p in growing(x):
            if p > n:
                return p * p
        return x

    followed(f)


def test_a_generator_that_is_left_catches_exceptions() -> None:
    def f(x: float, n: int) -> float:
        left = [0.0]

        def each() -> Iterator[float]:
            try:
                for i in range(9):
                    yield x * i
            finally:
                x * 2.0

        for p in each():
            left.append(p)
            if p > n:
                break
        return sum(left)

    refused(f, "catches exceptions")


def steps(x: float) -> Iterator[float]:
    p = x
    while True:
        yield p
        p = p * 1.2 + 0.1


def evens(n: int, x: float) -> Iterator[float]:
    for i in range(n):
        if i % 2 == 0:
            yield i * x


def asked_for_the_next(x: float, n: int) -> float:
    given, total = steps(x), 0.0
    for i in range(n):
        total += next(given) * i
    best = next(given)
    while best < 2.0 * n:
        best = next(given)
    return total + best


def asked_after_the_end(x: float, n: int) -> float:
    given = iter([x * i for i in range(n)])
    total = next(given, 5.0)
    for p in given:
        if p > 2.0:
            break
        total += p
    else:
        total *= 2.0
    for p in given:
        total -= 0.3 * p
    return total + next(given, x)


def many_of_them(x: float, n: int) -> float:
    given = [evens(k + 1, x) for k in range(n)]
    total = 0.0
    while given:
        one = given.pop()
        value = next(one, None)
        if value is None:
            continue
        total = total * 0.9 + value
        given.append(one)
    return total


def until_it_stops(x: float, n: int) -> float:
    given, total = iter((x, 2.0 * x, 3.0 * x)), 0.0
    for k in range(n):
        try:
            total += next(given) * k
        except StopIteration:
            total += 1.0
            break
    return total


def the_one_before_is_asked_once_more(x: float, n: int) -> float:
    given, total = steps(x), 0.0
    for p, q in zip(given, range(n), strict=False):
        total += p * q
    total += next(given)
    few = evens(n + 3, x)
    for q, p in zip(range(2), few, strict=False):
        total += p * q
    return total + next(few, x) * 3.0


def by_itertools(x: float, n: int) -> float:
    total = sum(itertools.islice(steps(x), n))
    total += sum(itertools.takewhile(lambda v: v < n, steps(x)))
    for i in itertools.count(1):
        total += x / i
        if total > n:
            return total
    return x


def longer_than_at_first(x: float, n: int) -> float:
    total = 0.0
    for v in evens(60 * n, x):
        total += v
    return total


def items_that_are_left(x: float, n: int) -> float:
    items, total = [x * i for i in range(n)], 0.0
    for p in items:
        if any(q > p + 0.5 for q in items):
            total += p
        if all(q < 2.0 * x for q in items):
            total += x * x
    for k in range(2, 3 * n):
        if all(k % d for d in range(2, k)):
            total += x / k
    total += next((q for q in items if q > 0.3), x)
    return total + (1.0 if any(map(lambda v: v > 1.0, evens(n, x))) else x)


@pytest.mark.parametrize(
    "f",
    [asked_for_the_next, asked_after_the_end, many_of_them, until_it_stops, the_one_before_is_asked_once_more,
     by_itertools, longer_than_at_first, items_that_are_left],
)  # fmt: skip
def test_left_early(f: Callable[..., float]) -> None:
    followed(f)


@pytest.mark.parametrize("number", ["n - 3", "n * 1.0"])
def test_numbers_that_islice_does_not_take(number: str) -> None:
    space: dict[str, Any] = {"islice": itertools.islice, "steps": steps}
    exec(f"def f(x, n):\n    return x + sum(islice(steps(x), {number}))", space)
    compare(space["f"])


def test_items_that_nobody_asks_for_raise() -> None:
    def f(x: float, n: int) -> float:
        total = x
        for k in range(n):
            if any(x / (3 - i) > 0.5 for i in range(n)):
                total = total * 1.5 + k
        return total

    compare(f)


def test_items_that_nobody_asks_for_are_counted() -> None:
    def f(x: float, n: int) -> float:
        seen: list[float] = []

        def big(p: float) -> bool:
            seen.append(p)
            return p > 1.0

        return x * len(seen) if any(big(x * i) for i in range(n)) else x + sum(seen)

    if sys.version_info >= (3, 14):  # where `any` of a generator expression is a loop in bytecode
        followed(f)
    else:
        refused(f, "what it may not be asked for")


def test_any_is_another_function() -> None:
    def f(x: float, n: int) -> float:
        def any(items: Any) -> float:
            total = 0.0
            for p in items:
                total += p
            return total

        first = all
        total = any(x * i for i in range(n))
        return total if first(i < 4 for i in range(n)) else total * 2.0

    compare(f)


def test_an_iterator_is_asked_while_it_is_looped_over() -> None:
    def f(x: float, n: int) -> float:
        given, total = iter([x * i for i in range(n + 2)]), 0.0
        for p in given:
            total += p
            if p > 1.0:
                total += 2.0 * next(given, 1.0)
        return total

    def g(x: float, n: int) -> float:
        given = iter([x * i for i in range(2 * n)])
        return sum(p * q for p, q in zip(given, given, strict=False))

    refused(f, "by others")
    cache.entries.clear()
    refused(g, "by others")


def test_an_iterator_that_a_generator_has_taken() -> None:
    """On no way that was seen an iterator is asked that a generator goes through, but on two of them together it is."""

    def each(items: Any) -> Iterator[float]:
        for v in items:
            yield v * 2.0

    def f(x: float, taken: bool, asked: bool, n: int) -> float:
        given, total = iter((x, 2.0 * x, 3.0 * x)), 0.0
        if taken:
            total += next(each(given), 1.0) * n
        if asked:
            for v in given:
                total += v
        return total

    both = value_and_grad(f)
    rng = random.Random(1)
    ways = [(True, False), (False, True)] * 6 + [(True, True)] * 3
    for taken, asked in ways:
        x, n = rng.random(), rng.randint(1, 4)
        value, slope = both(x, taken, asked, n)
        assert_same(value, f(x, taken, asked, n))
        with jit(False):
            assert slope == pytest.approx(both(x, taken, asked, n)[1], rel=1e-12)


def test_a_generator_expression_is_kept_by_a_generator() -> None:
    def f(x: float, n: int) -> float:
        def each() -> Iterator[float]:
            kept = (x * i for i in range(n))
            yield x
            total = 0.0
            for v in kept:
                total += v
            yield total

        return sum(each()) * x if n else x

    compare(f)


def test_random_numbers_are_drawn_in_their_order() -> None:
    def f(x: float, n: int) -> float:
        rng = random.Random(n)

        def each() -> Iterator[float]:
            for _ in range(n):
                yield rng.random()

        total = x
        for v in each():
            total = total * v if rng.random() < 0.5 else total + v * x
        return total

    refused(f, "draws random numbers")


def test_ways_that_were_not_seen_together() -> None:
    """No run that was seen changes the list that a generator reads, but one does that is put together of them."""

    def f(x: float, given: list[float], own: bool, asked: bool, n: int) -> float:
        items = given
        other = [x]
        if own:
            items = [x, x * 0.5]
            other = items
        total = 0.0

        def each(some: list[float]) -> Iterator[float]:
            i = 0
            while i < len(some):
                yield some[i]
                i += 1

        if asked:
            for v in each(items):
                total += v
                if len(other) < n:
                    other.append(v * 0.5)
        return total + sum(other)

    both = value_and_grad(f)
    rng = random.Random(1)
    cases = [
        (own, asked) for own in (False, True) for asked in (False, True) if not own or not asked
    ]
    for own, asked in [*itertools.islice(itertools.cycle(cases), 12), (True, True), (True, True)]:
        x, n = rng.random(), rng.randint(2, 6)
        given = [rng.random() for _ in range(3)]
        value, slope = both(x, given, own, asked, n)
        assert_same(value, f(x, given, own, asked, n))
        with jit(False):
            assert slope == pytest.approx(both(x, given, own, asked, n)[1], rel=1e-12)
    assert cache.entries
