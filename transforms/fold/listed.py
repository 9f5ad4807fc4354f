"""The gradient by a list, whose length and items are those of the call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..loops import Miss


def listed(items: list[Any], shadows: dict[int, list[Any]] | None) -> list[Any]:
    """The cotangents of a list's items, in their structure; ``shadows`` has them by the list's identity."""
    shadow = None if shadows is None else shadows.get(id(items))
    cells = [None] * len(items) if shadow is None else shadow
    return [item_of(x, d, shadows) for x, d in zip(items, cells, strict=True)]


def item_of(x: Any, d: Any, shadows: Any) -> Any:
    """The same of an item; of a tuple ``d`` has the cotangents of the numbers in it, in their order."""
    kind = type(x)
    if kind is float or kind is int:
        return 0.0 if d is None else d
    if kind is tuple:
        return parts_of(x, None if d is None else iter(d), shadows)
    if kind is list:
        return listed(x, shadows)
    if kind is str or kind is bool or x is None:
        return None
    raise Miss


def parts_of(x: tuple[Any, ...], given: Iterator[Any] | None, shadows: Any) -> tuple[Any, ...]:
    """The same of a tuple."""
    found: list[Any] = []
    for y in x:
        kind = type(y)
        if kind is tuple:
            found.append(parts_of(y, given, shadows))
        elif kind is float or kind is int or kind is list:
            d = None if given is None else next(given)
            found.append(item_of(y, d, shadows))
        else:
            found.append(item_of(y, None, shadows))
    return tuple(found)
