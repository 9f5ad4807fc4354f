"""The gradient by a list, whose length and items are those of the call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..loops import Miss
from .arrays import gradient_by

NUMBERS = (float, int, np.float64)
PLAIN = {float, int}  # whose gradients are floats of Python's
CELLS = {float, type(None)}


def listed(items: list[Any], shadows: dict[int, list[Any]] | None, seen: set[int]) -> list[Any]:
    """The cotangents of a list's items, in their structure; ``shadows`` has them by the list's identity.

    ``seen`` has the lists that were met before: the gradients of one that stands at two places are not told apart.
    """
    if not has_number(items):
        raise Miss  # by which there is no derivative
    return items_of(items, shadows, seen)


def has_number(x: Any) -> bool:
    """Whether there is a number in lists and tuples."""
    kind = type(x)
    if kind is list or kind is tuple:
        return any(map(has_number, x))
    return kind in NUMBERS or (kind is np.ndarray and bool(x.dtype.kind == "f"))


def items_of(items: list[Any], shadows: dict[int, list[Any]] | None, seen: set[int]) -> list[Any]:
    if id(items) in seen:
        raise Miss
    seen.add(id(items))
    shadow = None if shadows is None else shadows.get(id(items))
    cells = [None] * len(items) if shadow is None else shadow
    plain = len(items) == len(cells) and PLAIN.issuperset(map(type, items))
    if plain and CELLS.issuperset(map(type, cells)):
        return [0.0 if d is None else d for d in cells]
    return [item_of(x, d, shadows, seen) for x, d in zip(items, cells, strict=True)]


def item_of(x: Any, d: Any, shadows: Any, seen: set[int]) -> Any:
    """The same of an item; of a tuple ``d`` has the cotangents of the numbers in it, in their order."""
    kind = type(x)
    if kind is float or kind is int:
        return 0.0 if d is None else d if type(d) is float else float(d)
    if kind is np.ndarray:
        return gradient_by(x, d) if x.dtype.kind == "f" else None
    if kind is np.float64:
        return np.float64(0.0 if d is None else d)
    if kind is tuple:
        return parts_of(x, None if d is None else iter(d), shadows, seen)
    if kind is list:
        return items_of(x, shadows, seen)
    if kind is str or kind is bool or x is None:
        return None
    raise Miss


def parts_of(
    x: tuple[Any, ...], given: Iterator[Any] | None, shadows: Any, seen: set[int]
) -> tuple[Any, ...]:
    """The same of a tuple."""
    found: list[Any] = []
    for y in x:
        kind = type(y)
        if kind is tuple:
            found.append(parts_of(y, given, shadows, seen))
        elif kind in NUMBERS or kind is list or kind is np.ndarray:
            d = None if given is None else next(given)
            found.append(item_of(y, d, shadows, seen))
        else:
            found.append(item_of(y, None, shadows, seen))
    return tuple(found)
