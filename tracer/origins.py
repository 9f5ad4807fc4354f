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


class Around(Origin):
    """Of what C code gives that has text somewhere: whole numbers tell of its own, as of lengths, kinds and counts."""

    __slots__ = ()


def around(origin: Origin) -> Origin:
    """The origin of what C code gives that has text of an origin, nobody knows where."""
    return origin if type(origin) is Around else Around(None, origin.place, [origin])


def is_around(origin: Origin) -> bool:
    """Whether all texts of an origin are somewhere in what C code has."""
    if type(origin) is Around:
        return True
    return origin.parts is not None and all(map(is_around, origin.parts))


File = tuple[Any, int]  # a device and a number


class Store:
    """What C code has made of one thing: what is put into a part of it, others may show. It may be ``into`` another."""

    __slots__ = ("files", "into", "origin")

    def __init__(self, origin: Origin | None) -> None:
        self.origin = origin
        self.files: list[File] = []  # that it was opened with
        self.into: Store | None = None


class Texts:
    """What a run knows of text."""

    __slots__ = ("dependence", "drawn", "files", "holders", "names", "programs", "stores")

    def __init__(self) -> None:
        # The origins of what was drawn, and of what C code asked to see, in order.
        self.drawn: list[Origin] = []
        self.holders: dict[int, tuple[Any, Origin]] = {}  # by id: a reference to it, its origin
        self.stores: dict[int, tuple[Any, Store]] = {}  # by id: a reference to a part of it
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
