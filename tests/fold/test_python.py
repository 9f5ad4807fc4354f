"""What Python does that a program of many ways must do too, where it would be easy to overlook it.

Each program is called with numbers that vary; its value must be that of plain Python to the bit, its slope that of
differences. Whether it is followed or refused is not asked, but for the last tests.
"""

# ruff: noqa: B007, B905, PLR0124, PLR1704

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from helpers import assert_same
from wengert import value_and_grad
from wengert.tracer import rewrite
from wengert.tracer.fold import hooks
from wengert.transforms import cache

pytestmark = pytest.mark.usefixtures("folding_at_once")


def agrees(f: Callable[[float, int], float], numbers: list[int]) -> cache.Entry:
    """Call a function of a float and an integer, which goes other ways later than at first."""
    both, h = value_and_grad(f), 1e-6
    for i, n in enumerate(numbers):
        x = 1.0 + i / 8
        value, slope = both(x, n)
        assert_same(value, f(x, n))
        assert slope == pytest.approx((f(x + h, n) - f(x - h, n)) / (2 * h), rel=1e-5, abs=1e-5)
    (entry,) = cache.entries.values()
    return entry


# Slices, indices, ranges


def backwards(x: float, n: int) -> float:
    total = 0.0
    for i, y in enumerate([x * k for k in range(n + 2)][::-1]):
        total += y * i
    return total


def every_second(x: float, n: int) -> float:
    total = 0.0
    for y in [x * k for k in range(n + 2)][::2]:
        total += y
    return total


def item_of_a_tuple(x: float, n: int) -> float:
    pair = (x, 2 * x)
    try:
        return x * pair[5 - n]
    except IndexError:
        return x


def range_with_a_step(x: float, n: int) -> float:
    total = 0.0
    try:
        for i in range(0, 10, n):
            total += x * i
    except ValueError:
        return x
    return total


def text_with_a_step(x: float, n: int) -> float:
    text = str.upper("abcdef") if n > 90 else "abcdef"
    try:
        return x * len(text[::n])
    except ValueError:
        return x


def enumerated_from_elsewhere(x: float, n: int) -> float:
    total = 0.0
    for i, k in enumerate(range(n, n + 3)):
        total += x * i + k
    return total


def zipped_from_elsewhere(x: float, n: int) -> float:
    total = 0.0
    for k, y in zip(range(n, n + 3), [1.0, 2.0, 3.0]):
        total += x * k + y
    return total


# Iterators


def taken_twice(x: float, n: int) -> float:
    pairs, total = zip([x, 2 * x], [1.0, 2.0]), 0.0
    for y, k in pairs:
        total += y * k
    for y, k in pairs:
        total += y * k
    return total


def taken_in_a_loop(x: float, n: int) -> float:
    pairs, total = zip([x, 2 * x], [1.0, 2.0]), 0.0
    for _ in range(n + 1):
        for y, k in pairs:
            total += y * k
    return total


def taken_in_a_function(x: float, n: int) -> float:
    def added() -> float:
        total = 0.0
        for i, y in pairs:
            total += i * y
        return total

    total = 0.0
    pairs = enumerate([x, 2 * x, 3 * x])
    for _ in range(n + 1):
        total += added()
    return total


def dict_that_grows(x: float, n: int) -> float:
    held, total = {0: x, 1: 2 * x, 2: x}, 0.0
    try:
        for k in held:
            total += held[k]
            held[n] = x
            if k == 1:
                break
    except RuntimeError:
        return 50 * x
    return total


def is_an_iterator(x: float, n: int) -> float:
    return x * n if isinstance(zip([1], [2]), zip) else x


# Objects


class Default:
    slope = 0.5


def default_of_a_class(x: float, n: int) -> float:
    obj, y = Default(), 0.0
    if n & 1:
        obj.slope = x
    if n & 2:
        y = obj.slope
    return x * y


class Value:
    def __init__(self, value: float) -> None:
        self.value = value

    def __add__(self, other: Any) -> float:
        return self.value + other.value

    def __lt__(self, other: Any) -> bool:
        return self.value < other.value


class Derived(Value):
    def __radd__(self, other: Any) -> float:
        return 10 * self.value + other.value

    def __gt__(self, other: Any) -> bool:
        return True


class OnlyReflected:
    def __init__(self, value: float) -> None:
        self.value = value

    def __radd__(self, other: Any) -> float:
        return self.value


class Incomparable(Value):
    __lt__ = None  # type: ignore[assignment]

    def __gt__(self, other: Any) -> bool:
        return True


def derived_is_added_first(x: float, n: int) -> float:
    return Value(x) + Derived(2 * x)


def derived_is_compared_first(x: float, n: int) -> float:
    return x if Value(x) < Derived(-x) else 2 * x


def reflected_of_one_class(x: float, n: int) -> float:
    try:
        return OnlyReflected(x) + OnlyReflected(x)  # type: ignore[operator,no-any-return]
    except TypeError:
        return 3 * x


def not_compared(x: float, n: int) -> float:
    try:
        return x if Incomparable(x) < Incomparable(x) else 2 * x
    except TypeError:
        return 3 * x


def compared_to_constants(x: float, n: int) -> float:
    return x if (1, n, x) < (1, 3, 1.0) else 2 * x


PAIR = [1.0, 2.0]


def one_list_outside(x: float, n: int) -> float:
    a = PAIR
    b = PAIR
    return x if a is b else 2 * x


# Others


def order_of_nan(x: float, n: int) -> float:
    items = [x, (math.inf - math.inf) if n > 1 else 2 * x, 0.5 * x]
    try:
        items.sort()
    except ValueError:
        return 100 * x
    return items[0]


def order_of_nan_in_pairs(x: float, n: int) -> float:
    nan = x * math.inf - math.inf
    pairs = [(nan, 1), (x, 2), (0.5, 3), (nan, 0), (1.0, 4)][:n]
    pairs.sort()
    return sum(i * x * k for i, (_, k) in enumerate(pairs))


class Item:
    def __init__(self, v: float, seen: list[float]) -> None:
        self.v, self.seen = v, seen

    def __lt__(self, other: Any) -> bool:
        self.seen.append(self.v)
        return self.v < other.v


def sorted_by_a_method_that_counts(x: float, n: int) -> float:
    seen: list[float] = []
    items = [Item(x * (3 * i % 5), seen) for i in range(n + 3)]
    items.sort()
    return items[0].v + x * len(seen) + seen[-1]


def list_is_empty_while_it_is_sorted(x: float, n: int) -> float:
    items = [x, 2.0, 0.3][:n]
    items.sort(key=lambda v: v * len(items))
    return sum(i * v for i, v in enumerate(items)) + x


def greatest_of_nothing(x: float, n: int) -> float:
    try:
        return x if max([None]) is None else 2 * x  # type: ignore[type-var]
    except ValueError:
        return 3 * x


def drawn_from_a_range(x: float, n: int) -> float:
    rng = Random(3)
    try:
        return x * rng.randint(4, n)
    except ValueError:
        return x


def called(x: float, fn: int) -> float:
    return x * fn


def keyword_of_any_name(x: float, n: int) -> float:
    return called(x, fn=n)


FEW = [1, 2, 3, 4, 5, 6, 7]
PROGRAMS: list[tuple[Callable[[float, int], float], list[int]]] = [
    (backwards, FEW), (every_second, FEW), (item_of_a_tuple, [0, 1, 2, 5, 4]), (range_with_a_step, [0, 0, 0, 1, 3]),
    (text_with_a_step, [0, 0, 0, 1, 3]), (enumerated_from_elsewhere, [0, 0, 0, 1, 2]),
    (zipped_from_elsewhere, [0, 0, 0, 1, 2]), (taken_twice, FEW), (taken_in_a_loop, [0, 0, 0, 1, 2]),
    (taken_in_a_function, [0, 0, 0, 1, 2]), (dict_that_grows, [0, 1, 2, 1, 9]), (is_an_iterator, FEW),
    (default_of_a_class, [0, 0, 2, 2, 1, 1, 3, 3]), (derived_is_added_first, FEW), (derived_is_compared_first, FEW),
    (reflected_of_one_class, FEW), (not_compared, FEW), (one_list_outside, FEW), (order_of_nan, FEW),
    (order_of_nan_in_pairs, FEW), (sorted_by_a_method_that_counts, FEW), (list_is_empty_while_it_is_sorted, FEW),
    (greatest_of_nothing, FEW), (drawn_from_a_range, [1, 1, 1, 7, 9]), (keyword_of_any_name, FEW),
    (compared_to_constants, FEW),
]  # fmt: skip


@pytest.mark.parametrize(("f", "numbers"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_does_what_python_does(f: Callable[[float, int], float], numbers: list[int]) -> None:
    agrees(f, numbers)


FOLLOWED = [
    every_second, item_of_a_tuple, range_with_a_step, drawn_from_a_range, default_of_a_class, keyword_of_any_name
]  # fmt: skip


@pytest.mark.parametrize("f", FOLLOWED)
def test_is_followed(f: Callable[[float, int], float]) -> None:
    entry = agrees(f, dict(PROGRAMS)[f])
    assert entry.folding.why is None
    assert entry.folding.programs


DRAWS: list[int] = []


def noted(rng: Random) -> float:
    DRAWS.append(1)
    return rng.random()


def draws_and_notes(x: float, n: int) -> float:
    return x * noted(Random(n))


def test_a_function_that_is_given_a_generator_does_nothing_twice() -> None:
    both = value_and_grad(draws_and_notes)
    for i in range(6):
        DRAWS.clear()
        both(1.0 + i, i)
        assert len(DRAWS) == 1


def test_texts_are_not_made_of_numbers_of_the_run() -> None:
    """A tuple of such numbers goes into a text as what they are, not as what stands for them."""

    def length(x: float, n: int) -> float:
        return x * len(FORM % (n,))

    agrees(length, [1, 10, 100])


FORM = "%s"


def test_hooks_are_the_hooks_own() -> None:
    """What the hooks import must not be taken for the factory of a hook by its name."""
    asked = {*re.findall(r"hooks\.(\w+)\(", inspect.getsource(rewrite))}
    assert "binary" in asked
    for name in asked:
        factory = getattr(hooks, name)
        assert name == "yielded" or factory.__name__ in (name, "factory")
        assert factory.__module__ == hooks.__name__


def test_methods_of_numbers():
    def f(x, n):
        total = x * n.bit_length() + (12).bit_length()
        for i in range(n):
            total *= x / (i.bit_length() + 1)
        if x.is_integer():
            total += n.bit_count()
        return total

    assert agrees(f, [3, 1, 5, 8, 2, 6, 4, 7, 9]).folding.why is None
