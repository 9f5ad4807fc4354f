"""Ways of asking the engine for a value and its derivatives.

A way is a function of `(f, args, kwargs, number)` that returns an `Answer`. By what it is asked with (cotangents,
tangents) each way draws from a random generator of its own step, so that the same numbers are drawn in every mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import wengert

from .moves import Directions, cotangent, is_number, members

NOTHING = object()  # the value of a way that does not show it


class Answer:
    """What the engine gave for one call: the value and one gradient for each argument (None: not asked for)."""

    def __init__(
        self,
        value: Any,
        gradients: dict[Any, Any] | None = None,
        tangent: Any = None,
        later: Callable[[], dict[Any, Any]] | None = None,
        order: int = 1,
    ) -> None:
        self.value = value
        self.gradients = gradients
        self.tangent = tangent
        self.later = later  # the gradients, asked for once more
        self.order = order


def has_numbers(x: Any, depth: int = 0) -> bool:
    """Whether an argument has a derivative."""
    if is_number(x) or type(x) is int:
        return True
    if depth > 4 or callable(x) and not hasattr(x, "__dict__"):
        return False
    return any(has_numbers(item, depth + 1) for item in (members(x) or {}).values())


def numbered(args: tuple[Any, ...]) -> list[int]:
    return [i for i, x in enumerate(args) if has_numbers(x)]


def generator(number: int) -> np.random.Generator:
    return np.random.default_rng(1000 + number)


def by_pullback(f: Any, args: Any, kwargs: Any, number: int, late: bool = False) -> Answer:
    value, back = wengert.pullback(f, *args, **kwargs)
    dy = cotangent(value, generator(number))
    count = len(args)

    def pull() -> dict[Any, Any]:
        found = back(dy)
        named = found[count] if len(found) > count else {}
        return {**dict(enumerate(found[:count])), **named}

    return Answer(value, None if late else pull(), later=pull)


@functools.lru_cache(maxsize=16)
def made(f: Any, numbers: tuple[int, ...]) -> Any:
    """One function for all calls of a play, as a user would have it; `grad` below makes a new one each time."""
    return wengert.value_and_grad(f, numbers)


def by_value_and_grad(f: Any, args: Any, kwargs: Any, number: int) -> Answer:
    numbers = numbered(args)
    value, gradients = made(f, tuple(numbers))(*args, **kwargs)
    return Answer(value, dict(zip(numbers, gradients)))


def by_grad(f: Any, args: Any, kwargs: Any, number: int) -> Answer:
    numbers = numbered(args)
    if not numbers:  # the arguments of this call hold none
        return by_pullback(f, args, kwargs, number)
    first = numbers[0]
    return Answer(NOTHING, {first: wengert.grad(f, first)(*args, **kwargs)})


def by_jvp(f: Any, args: Any, kwargs: Any, number: int) -> Answer:
    directions = Directions(generator(number))
    tangents = tuple([directions.of(x) for x in args])
    if kwargs:
        f = functools.partial(f, **kwargs)
    value, tangent = wengert.jvp(f, args, tangents)
    return Answer(value, tangent=tangent)


def by_second(f: Any, args: Any, kwargs: Any, number: int) -> Answer:
    """The gradient of a gradient."""
    first = numbered(args)[0]
    value, back = wengert.pullback(wengert.grad(f, first), *args, **kwargs)
    found = back(cotangent(value, generator(number)))
    return Answer(NOTHING, dict(enumerate(found)), order=2)


WAYS: dict[str, Callable[..., Answer]] = {
    "value_and_grad": by_value_and_grad,
    "pullback": by_pullback,
    "late": functools.partial(by_pullback, late=True),
    "grad": by_grad,
    "jvp": by_jvp,
    "second": by_second,
}


def fitting(way: str, value: Any, args: Any) -> str:
    """The way, or another one where a call's value or arguments do not allow it."""
    if way in ("value_and_grad", "grad", "second"):
        scalar = isinstance(value, float) or is_number(value) and np.ndim(value) == 0
        if not scalar or not numbered(args):
            return "pullback"
        if way == "second" and not isinstance(args[numbered(args)[0]], float):
            return "value_and_grad"
    return way
