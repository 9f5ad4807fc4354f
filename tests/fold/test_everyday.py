"""What small programs of every day use: enumerations, map and reduce, keys of max, iterators: folded."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from enum import Enum

import pytest

from fold.comparing import compare, followed
from helpers import assert_same
from wengert import jit, value_and_grad

pytestmark = pytest.mark.usefixtures("folding_at_once")


class State(Enum):
    IDLE = 1
    RUNNING = 2
    STOPPED = 3


START = State.IDLE


class Machine:
    def __init__(self) -> None:
        self.state = START


def enumerations(x: float, n: int) -> float:
    machine, energy = Machine(), x
    for _ in range(2 * n):
        if machine.state is State.IDLE:
            energy *= 1.3
            machine.state = State.RUNNING if energy > 1.0 else State.IDLE
        elif machine.state == State.RUNNING:
            energy -= 0.3 * x
            if energy < 0.5:
                machine.state = State.STOPPED
        else:
            return energy * energy
    return energy * (2.0 if machine.state != State.RUNNING else 1.0)


def keys_of_max(x: float, n: int) -> float:
    items = [(math.sin(5.0 * x * i), i) for i in range(n)]
    held = {i: x * (i - 1.5) ** 2 for i in range(n)}
    first = max(items, key=lambda item: item[0])
    last = min(held.items(), key=lambda item: item[1])
    nearest = min(range(n), key=lambda i: abs(held[i] - 1.0))
    return first[0] * x + last[1] + held[nearest] + max((v * x, i) for v, i in items)[0]


def mapped(x: float, n: int) -> float:
    items = [x * i - 1.0 for i in range(n)]
    total = sum(map(math.exp, items)) + sum(map(lambda a, b: a * b, items, items[1:]))
    for p in map(abs, items):
        total += p if p > x else p * p
    for p, q, r in zip(items, items[::1], map(math.sin, items), strict=False):
        total += p * q * r if p < q + r else r
    return total


def reduced(x: float, n: int) -> float:
    items = [x * i - 1.0 for i in range(n)]
    folded = functools.reduce(lambda p, q: p * x + q if q > 0.0 else p - q, items, 0.5)
    return folded + functools.reduce(operator.add, items) * x


def iterators(x: float, n: int) -> float:
    def items(n: int) -> tuple[float, ...]:
        return (x, -0.5 * x, n * 0.1, x * x)

    total = 0.0
    for partial in itertools.accumulate(items(n)):
        total += partial * x if partial > 0.5 else partial
    for p, q in itertools.pairwise(items(n)):
        total += p * q if n > 3 else p
    for p in itertools.chain(items(n), items(2)):
        total = total * 0.9 + p
    return total + sum(filter(lambda p: p > 0.2, items(n)))


def choose(p: float) -> float:
    return p * p


def functions_in_containers(x: float, n: int) -> float:
    table = {"sin": math.sin, "own": choose}
    for i in range(n):
        x = table["sin" if x > 0.5 else "own"](x) + 0.1 * i
    return x


@pytest.mark.parametrize(
    "f", [enumerations, keys_of_max, mapped, reduced, iterators, functions_in_containers]
)
def test_folded(f: Callable[..., float]) -> None:
    followed(f)


def test_functions_that_the_run_makes_are_not_one() -> None:
    """The program would take one for all of them."""

    def f(x: float, n: int) -> float:
        made, total = [], 0.0
        for i in range(n):
            made.append(lambda i=i: (i + 1) * x)
            total += made[0]() if x > 0.5 else made[-1]()
        return total

    both = value_and_grad(f)
    for x, n in [(0.3, 1), (0.7, 1), (0.2, 1), (0.9, 1), (0.4, 3), (0.8, 3)]:
        value, slope = both(x, n)
        assert_same(value, f(x, n))
        with jit(False):
            assert slope == pytest.approx(both(x, n)[1], rel=1e-12)


def test_nothing_to_choose_from() -> None:
    def f(x: float, n: int) -> float:
        items = [x * i for i in range(n - 2)]
        try:
            return max(items, key=abs) * x
        except ValueError:
            return x

    compare(f)


def test_members_that_equal_others() -> None:
    class Loose(Enum):
        A = 1
        B = 2

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loose)

        __hash__ = Enum.__hash__

    def f(x: float, n: int) -> float:
        at = Loose.A
        for _ in range(n):
            x = x * 0.5 if at == Loose.B else x + 1.0
            at = Loose.B if x > 1.5 else Loose.A
        return x

    compare(f)


def taken_apart(x: float, n: int) -> float:
    p, q = map(lambda k: k * x, (n, 2))
    (r, s), t = zip([x, q], [p, n]), 0.0
    for k in range(n):
        a, b = map(float, (k, p))
        t += a * b * x
    return p * q + r[0] * s[1] + t


def unpacked_too_few(x: float, n: int) -> float:
    seen: list[float] = []

    def note(k: float) -> float:
        seen.append(k)
        return k

    try:
        p, q = map(note, [x, 2.0, x, x])
    except ValueError:
        return x * len(seen) * n
    return p * q


def scaled(p: float, *, scale: float = 1.0, **others: float) -> float:
    total = p * scale
    for name in others:
        total += others[name] * (2.0 if name == "shift" else 0.5)
    return total + len(others)


def keywords(x: float, n: int) -> float:
    options, total = {"scale": x, "shift": 0.5 * n}, 0.0
    for k in range(n):
        if k == 2:
            options["scale"] = total
        total += scaled(x, **options) + scaled(k * x, bias=x, **options)
        total = scaled(*(total,), scale=0.5, other=x)
    return total


def keywords_that_vary(x: float, n: int) -> float:
    options = {"shift": x}
    if n > 3:
        options["scale"] = 0.5
    return scaled(x, **options)


@pytest.mark.parametrize("f", [taken_apart, keywords])
def test_iterators_are_taken_apart_and_keywords_are_followed(f: Callable[..., float]) -> None:
    followed(f)


def test_keywords_are_the_same_in_every_run() -> None:
    compare(keywords_that_vary)


def test_an_iterator_that_gives_more_is_traced() -> None:
    assert "that gives more" in str(compare(unpacked_too_few).folding.why)
