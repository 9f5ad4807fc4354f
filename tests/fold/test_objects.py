"""Objects with slots, frozen ones, and what classes take over from others: folded, as plain Python has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from fold.comparing import compare, followed
from wengert import value_and_grad

pytestmark = pytest.mark.usefixtures("folding_at_once")


class Ball:
    __slots__ = ("height", "speed")

    def __init__(self, height: float, speed: float) -> None:
        self.height = height
        self.speed = speed

    def fall(self, dt: float) -> None:
        self.speed -= dt
        self.height += self.speed * dt
        if self.height < 0.0:
            self.height, self.speed = -self.height, -0.9 * self.speed


class Spinning(Ball):  # with a dict beside the slots
    def __init__(self, height: float, speed: float, spin: float) -> None:
        super().__init__(height, speed)
        self.spin = spin

    def fall(self, dt: float) -> None:
        super().fall(dt * 0.5)
        if self.height > 0.5:
            self.spin = self.spin * self.speed


def bouncing(x: float, n: int) -> float:
    ball = Ball(x, 0.1)
    for _ in range(n):
        ball.fall(0.4)
    return ball.height * ball.speed + x


def spinning(x: float, n: int) -> float:
    balls = [Ball(x, 0.1), Spinning(x, 0.2, x)]
    for i in range(n):
        balls[i % 2].fall(0.3)
    return balls[0].height + balls[1].height * balls[1].spin  # type: ignore[attr-defined]


@dataclass(slots=True)
class Point:
    x: float
    y: float = 1.0


@dataclass(frozen=True)
class Still:
    x: float
    y: float = 1.0

    def moved(self, by: float) -> Still:
        return Still(self.x + by, self.y * by)


@dataclass(frozen=True, slots=True)
class Both:
    x: float
    y: float = 1.0


def slotted(x: float, n: int) -> float:
    points = [Point(x * i) for i in range(n)]
    total = 0.0
    for p in points:
        if p.x > 1.0:
            total += p.x * p.y
        else:
            p.y = x
    return total + points[0].y


def frozen(x: float, n: int) -> float:
    p = Still(x)
    for i in range(n):
        p = p.moved(0.3 * i) if p.x < 1.5 else Still(p.x * 0.5, x)
    return p.x + p.y


def both_of_them(x: float, n: int) -> float:
    p = Both(x)
    for i in range(n):
        p = Both(p.x + 0.1 * i, p.y * 2.0) if p.x < 1.5 else Both(p.x * 0.5, x)
    return p.x * p.y


class Refused(ValueError):
    def __init__(self, why: str, amount: float) -> None:
        super().__init__(why, amount)
        self.amount = amount


def errors_that_say_how_much(x: float, n: int) -> float:
    total = 0.0
    for i in range(n):
        try:
            if i * x > 2.0:
                raise Refused("too much", i * x)
            total += x
        except Refused as error:
            total += error.amount * error.args[1]
    return total * x


class Shape:
    sides = 3.0

    @property
    def size(self) -> float:
        return self.sides * 0.5


class Square(Shape):
    def __init__(self, x: float) -> None:
        super().__init__()
        self.x = x

    @property
    def size(self) -> float:
        return super().size * self.x + super().sides


def properties_above(x: float, n: int) -> float:
    total = x
    for i in range(n):
        total = total + Square(x * i).size if total < 3.0 else total * x
    return total


@pytest.mark.parametrize(
    "f",
    [bouncing, spinning, slotted, frozen, both_of_them, errors_that_say_how_much, properties_above],
)
def test_folded(f) -> None:  # type: ignore[no-untyped-def]
    followed(f)


def test_an_empty_slot_is_left_to_the_trace() -> None:
    def f(x: float, n: int) -> float:
        ball = Ball.__new__(Ball) if n > 5 else Ball(x, x)
        for _ in range(n):
            ball.fall(0.1)
        return ball.speed

    compare(f)


def test_a_frozen_object_stays_frozen() -> None:
    def f(x: float, n: int) -> float:
        p = Still(x)
        for _ in range(n):
            if p.x > 1.0:
                p.x = 0.5  # type: ignore[misc]
        return p.x * p.y

    compare(f)


class Private:
    def __init__(self, value: float) -> None:
        object.__setattr__(self, "value", value)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):
            asked.append(name)
        return object.__getattribute__(self, name)


asked: list[str] = []


def test_an_object_is_not_asked_for_its_dict() -> None:
    def f(x: float) -> float:
        thing = Private(x)
        return thing.value * x

    for k in range(6):
        assert value_and_grad(f)(1.0 + k) == ((1.0 + k) ** 2, 2.0 * (1.0 + k))
    assert asked == []
