"""Origins: where text was drawn, and whether the value that it was drawn from has a derivative.

Words
-----
text       a string, or bytes, drawn from a traced number or array, or made of such text (see ``text``).
origin     the op that text was drawn from and the place where; text made of several has the origins of all.
dependent  of an op: it has a derivative that somebody may ask for (see ``dependence``).

All text of boxes is marked, and only where it would become a number again somebody looks for a derivative: a number
from outside, or one that a loop counts with, has none to lose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .dependence import Dependence
from .tape import Op


class Origin:
    """Where text was drawn, and from which op; or the ``parts`` that it was made of, which may grow."""

    __slots__ = ("op", "parts", "place")

    def __init__(self, op: Op | None, place: str, parts: list[Origin] | None = None) -> None:
        self.op, self.place, self.parts = op, place, parts


File = tuple[Any, int]  # a device and a number


class Texts:
    """What a run knows of text."""

    __slots__ = ("dependence", "drawn", "files", "holders", "names", "programs")

    def __init__(self) -> None:
        # The origins of what was drawn, and of what C code asked to see, in order.
        self.drawn: list[Origin] = []
        self.holders: dict[int, tuple[Any, Origin]] = {}  # by id: a reference to it, its origin
        self.files: dict[File | None, Origin] = {}  # of the files that it was written to
        self.names: Origin | None = None  # of the names that files were given
        # Of other programs that were given some, or could read it: since when, in nanoseconds, and of what.
        self.programs: tuple[int, Origin] | None = None
        self.dependence = Dependence()


def joined(origins: list[Origin]) -> Origin:
    """The origin of what was made of texts."""
    first = origins[0]
    parts = {id(x): x for x in origins}
    return first if len(parts) == 1 else Origin(None, first.place, [*parts.values()])


def dependent(texts: Texts, origin: Origin) -> Origin | None:
    """The first part of an origin that is a dependent op."""
    return next(dependents(texts, origin), None)


def parts_of(origin: Origin) -> Iterator[Origin]:
    """An origin, and all those that it was made of."""
    todo, seen = [origin], set()
    while todo:
        one = todo.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            todo += reversed(one.parts or ())


def dependents(texts: Texts, origin: Origin) -> Iterator[Origin]:
    """The parts of an origin that are dependent ops."""
    for one in parts_of(origin):
        if one.parts is None and one.op is not None and texts.dependence.has(one.op):
            yield one
