"""Gradients by lists, and by objects and dicts, whose structure is that of the call."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...rules.words import with_article
from ...tracer import frames
from ...tracer.fold.region import FLOATS, is_looked_into, is_of_numpy
from ...tracer.fold.run import is_whole
from ...tracer.kinds import MISSING, are_quiet, is_one_of, static
from ..loops import Miss
from .arrays import gradient_by

PLAIN = {float, int}  # whose gradients are floats of Python's
CELLS = {float, type(None)}
HELD = (float, int, list, dict)  # what has a place in the cotangent of a tuple, among others
# The types of what has no gradient.
WITHOUT = (str, bool, type(None), np.bool_, np.int64, types.BuiltinFunctionType, np.ufunc)


def structured(x: Any, shadows: dict[int, Any] | None, seen: set[int]) -> Any:
    """The cotangents of what is in a list, a dict or an object, in its structure; ``shadows`` has them by identity.

    ``seen`` has the memories that were met before: the gradients of one that stands at two places are not told apart.
    """
    structure = Structure(shadows, seen)
    found = structure.items(x) if type(x) is list else structure.of(x, None)
    if not ((type(found) is list and found and type(found[0]) is float) or has_number(found)):
        raise Miss(f"{with_article(type(x).__name__)} without numbers")
    return found


def must_have_gradients(args: Sequence[Any]) -> None:
    """Let arguments be such that a program can put the gradients by them together; raises `Miss`."""
    seen: set[int] = set()
    todo = [*args]
    while todo:
        x = todo.pop()
        if is_whole(x):
            structured(x, None, seen)
        elif type(x) is tuple or type(x) is dict:
            todo += x.values() if type(x) is dict else x


def numbers(x: Any) -> Iterator[Any]:
    """The numbers and arrays in gradients."""
    if dataclasses.is_dataclass(x):
        x = frames.attributes(x)
    if type(x) is dict:
        x = (*x.values(),)
    if type(x) is tuple or type(x) is list:
        for y in x:
            yield from numbers(y)
    elif x is not None:
        yield x


def has_number(gradient: Any) -> bool:
    return any(True for _ in numbers(gradient))


class Structure:
    """Puts gradients together; ``counts`` says that ints have none, as it is in objects."""

    __slots__ = ("counts", "seen", "shadows")

    def __init__(
        self, shadows: dict[int, Any] | None, seen: set[int], counts: bool = False
    ) -> None:
        self.shadows = shadows
        self.seen = seen
        self.counts = counts

    def of(self, x: Any, d: Any) -> Any:
        """The gradient by ``x``; of a tuple ``d`` has the cotangents of what is in it, in their order."""
        kind = type(x)
        if kind is float or (kind is int and not self.counts):
            return 0.0 if d is None else d if type(d) is float else float(d)
        if kind is np.ndarray and is_of_numpy(x):
            return gradient_by(x, d) if x.dtype.kind == "f" else None
        if is_one_of(kind, FLOATS):
            return kind(0.0 if d is None else d)
        if kind is tuple:
            return self.parts(x, None if d is None else iter(d))
        if kind is list:
            return self.items(x)
        if kind is dict:
            if not are_quiet(x):  # they would be asked for their hashes
                raise Miss("a dict whose keys are of a class of the user's")
            cells = self.cells(x)
            return {key: self.of(y, cells.get(key)) for key, y in x.items()}
        if kind is int or kind in WITHOUT:
            return None
        if is_looked_into(kind):
            return self.attributes(x)
        raise Miss(with_article(kind.__name__))

    def cells(self, x: Any) -> Any:
        """The cotangents of what is in a memory, where it has any: of a dict or an object by key."""
        if id(x) in self.seen:
            raise Miss(f"{with_article(type(x).__name__)} that stands at two places")
        self.seen.add(id(x))
        shadow = None if self.shadows is None else self.shadows.get(id(x))
        return {} if shadow is None else shadow

    def items(self, x: list[Any]) -> list[Any]:
        cells = self.cells(x) or [None] * len(x)
        plain = not self.counts and len(x) == len(cells) and PLAIN.issuperset(map(type, x))
        if plain and CELLS.issuperset(map(type, cells)):
            return [0.0 if d is None else d for d in cells]
        return [self.of(y, d) for y, d in zip(x, cells, strict=True)]

    def attributes(self, x: Any) -> Any:
        """The gradient by an object. Of one with ``__del__`` no copy may be made, which would run it (see `taken`)."""
        if static(type(x), "__del__") is not MISSING:
            raise Miss(f"{with_article(type(x).__name__)} with __del__")
        cells, inside = self.cells(x), Structure(self.shadows, self.seen, True)
        held = frames.attributes(x)
        found = {name: inside.of(y, cells.get(name)) for name, y in held.items()}
        return frames.gradient(type(x), found, map(has_number, found.values()))

    def parts(self, x: tuple[Any, ...], given: Iterator[Any] | None) -> tuple[Any, ...]:
        """The same of a tuple: of inner ones, the cotangents stand in one row with its own."""
        found: list[Any] = []
        for y in x:
            kind = type(y)
            if kind is tuple:
                found.append(self.parts(y, given))
            else:
                place = kind in HELD or is_of_numpy(y) or is_looked_into(kind)
                found.append(self.of(y, None if given is None or not place else next(given)))
        return tuple(found)
