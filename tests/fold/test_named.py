"""Named tuples that a function makes, and the patterns of ``match``."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from fold.comparing import compare, followed
from wengert import value_and_grad

pytestmark = pytest.mark.usefixtures("folding_at_once")


class State(NamedTuple):
    x: float
    v: float = 0.0

    def energy(self) -> float:
        return 0.5 * self.v**2 + self.x**2


class Derived(State):
    def norm(self) -> float:
        return (self.x**2 + self.v**2) ** 0.5

    @property
    def twice(self) -> Any:
        return self._replace(x=2.0 * self.x)


Pair = namedtuple("Pair", "a b")  # noqa: PYI024


def stepped(x: float, n: int) -> float:
    state, path = State(x, 1.0), []
    for i in range(n):
        v = state.v - 0.1 * state.x
        state = State(state.x + 0.1 * v, v) if i % 2 else State(x=state.x)
        path.append(state)
    return state.energy() + sum(p.x for p in path)


def used_as_tuples(x: float, n: int) -> float:
    items = [Pair(x * (i % 3), i + 7) for i in range(n)]
    items.sort()
    total = 0.0
    for a, b in items:
        total = total * 0.7 + a * b
    for pair in items:
        if pair == (0.0, 7):
            total += x
        if pair > Pair(x, 8):
            total += 0.3 * pair.a
        total += sum(pair) + len(pair) + max(pair)
        for value in pair:
            total += value
    held = items[0]._asdict()
    best = max(items, key=lambda pair: pair.a)
    first, second = best._replace(a=best.a + x)
    return total + held["a"] + held["b"] * x + items[-1][n % 2] + first * second


def derived(x: float, n: int) -> float:
    state = Derived(x)
    path = {0: state}
    for i in range(n):
        state = state.twice if state.norm() < 3.0 else Derived(v=state.x * 0.1, x=0.5)
        path[i] = state
    return sum(p.x * p.v + p.norm() for p in path.values()) + path[0].energy()


def test_which_object_it_is() -> None:
    def f(x: float, n: int) -> float:
        items = [Pair(x, i) for i in range(n)]
        best = items[0]
        for item in items:
            if item is not best and item.b % 2:
                best = item._replace(a=item.a * 2.0)
        return best.a * (3.0 if best is items[0] else 1.0)

    followed(f)


class Number:
    __match_args__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value


class Sum:
    __match_args__ = ("left", "right")

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


@dataclass
class Product:
    left: Any
    right: Any


def evaluated(tree: Any) -> float:
    match tree:
        case Number(value):
            return value
        case Sum(left, right):
            return evaluated(left) + evaluated(right)
        case Product(left=left, right=right):
            return evaluated(left) * evaluated(right)
        case float():
            return tree
    return 0.0


def classes(x: float, n: int) -> float:
    tree: Any = Number(x)
    for i in range(n):
        tree = Sum(tree, Number(x * i)) if i % 2 else Product(tree, 0.7)
    return evaluated(tree)


def stack_machine(x: float, n: int) -> float:
    program: list[tuple[Any, ...]] = [("push", x), ("push", 2.0), ("add",), ("push", x * n)]
    program.append(("mul",) if n > 2 else ("add",))
    stack: list[float] = []
    for op in program:
        match op:
            case ("push", value):
                stack.append(value)
            case ("add",):
                stack.append(stack.pop() + stack.pop())
            case ("mul",):
                stack.append(stack.pop() * stack.pop())
    return stack[-1]


def mappings(x: float, n: int) -> float:
    total = x
    for i in range(n):
        event = {"kind": "gain", "v": x * i} if i % 2 else {"kind": "loss", "rate": 0.1, "more": x}
        match event:
            case {"kind": "gain", "v": v}:
                total += v
            case {"kind": "loss", "rate": rate}:
                total *= 1 - rate
    return total


def of_all_kinds(x: float, n: int) -> float:
    total = 0.0
    for i in range(n):
        item: Any = [x, [x, i], (1, 2, 3.0), {"a": x, "b": 2}, "text", None, Pair(x, 2)][
            (i * 2) % 7
        ]
        match item:
            case float() if item > 1.0:
                total += item
            case float(f):
                total -= f
            case [a, int(b)] if not isinstance(item, tuple):
                total += a * b
            case (1, *rest):
                total += sum(rest)
            case {"a": float(a)}:
                total += a * len(item)
            case str():
                total += 0.5
            case Pair(a=a, b=b):
                total += a**b
            case None:
                total *= x
    return total


def decisions(x: float, n: int) -> float:
    total = 0.0
    for i in range(n):
        match (i % 2 == 0, x > 1.0):
            case (True, True):
                total += x
            case (True, _):
                total += 2.0
            case (_, True) | (_, False):
                total *= x
    return total


@pytest.mark.parametrize(
    "f",
    [stepped, used_as_tuples, derived, classes, stack_machine, mappings, of_all_kinds, decisions],
)
def test_folded(f: Callable[..., float]) -> None:
    followed(f)


def test_a_class_with_a_new_of_its_own() -> None:
    class Own(Pair):
        def __new__(cls, a: float, b: float) -> Any:
            return super().__new__(cls, a * 2.0, b)

    def f(x: float, n: int) -> float:
        total = 0.0
        for i in range(n):
            total += Own(x, i).a * i
        return total

    compare(f)


def test_a_sequence_of_the_users() -> None:
    import collections.abc

    class Row(collections.abc.Sequence[float]):
        def __init__(self, x: float) -> None:
            self.x = x

        def __len__(self) -> int:
            return 2

        def __getitem__(self, i: Any) -> float:
            return self.x * (i + 1)

    def f(x: float, n: int) -> float:
        match Row(x) if n > 2 else [x, 2.0]:
            case [a, b]:
                return a * b
        return x

    compare(f)


class Vector(NamedTuple):
    x: float
    y: float = 1.0

    def __add__(self, other: Any) -> Vector:
        return Vector(self.x + other[0], self.y + other[1])


class Lesser(Vector):
    def __lt__(self, other: Any) -> bool:
        return self.x > other[0]


class Longer(Vector):
    def __len__(self) -> int:
        return 9

    def __getitem__(self, i: Any) -> Any:
        return 7.0


@pytest.mark.parametrize("kind", [Vector, Lesser, Longer, Pair])
def test_what_a_class_does_that_tuples_do_otherwise(kind: Any) -> None:
    def f(x: float, n: int) -> float:
        first, last = kind(x, 2.0), kind(0.5, x)
        for i in range(n):
            last = last + (x * i, 1.0)
        total = x if first < last else -x
        return total + last[0] * last[1] + len(last)

    compare(f)


def test_a_class_of_named_tuples_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: float, n: int) -> float:
        made = Pair(x, 2.0)
        for _ in range(n):
            made = Pair(made.b, made.a)
        return x * len(made + made)

    entry = compare(f)
    assert entry.folding.programs
    monkeypatch.setattr(Pair, "__add__", lambda self, other: self, raising=False)
    assert value_and_grad(f)(1.5, 2) == (3.0, 2.0)
