"""Origins: where text was drawn, and whether the value that it was drawn from has a derivative.

Words
-----
text       a string, or bytes, drawn from a traced number or array, or made of such text (see ``text``).
origin     the op that text was drawn from and the place where; text made of several has the origins of all.
dependent  of an op: it has a derivative with respect to an argument of the run.

All text of boxes is marked, and only where it would become a number again somebody looks for a derivative: a number
from outside, or one that a loop counts with, has none to lose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..rules import registry
from .structure import is_differentiable
from .tape import GONE, Input, Op


class Origin:
    """Where text was drawn, and from which op; or the ``parts`` that it was made of, which may grow."""

    __slots__ = ("op", "parts", "place")

    def __init__(self, op: Op | None, place: str, parts: list[Origin] | None = None) -> None:
        self.op, self.place, self.parts = op, place, parts


class Texts:
    """What a run knows of text."""

    __slots__ = ("constant", "drawn", "holders")

    def __init__(self) -> None:
        # The origins of what was drawn, and of what C code asked to see, in order.
        self.drawn: list[Origin] = []
        self.holders: dict[int, tuple[Any, Origin]] = {}  # by id: a reference to it, its origin
        self.constant: set[Op] = set()  # ops that were found not to be dependent


def joined(origins: list[Origin]) -> Origin:
    """The origin of what was made of texts."""
    first = origins[0]
    parts = {id(x): x for x in origins}
    return first if len(parts) == 1 else Origin(None, first.place, [*parts.values()])


def dependent(texts: Texts, origin: Origin) -> Origin | None:
    """The first part of an origin that is a dependent op."""
    return next(dependents(texts, origin), None)


def dependents(texts: Texts, origin: Origin) -> Iterator[Origin]:
    """The parts of an origin that are dependent ops."""
    todo, seen = [origin], set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.parts is not None:
            todo += reversed(one.parts)
        elif one.op is not None and is_dependent(texts, one.op):
            yield one


def is_dependent(texts: Texts, op: Op) -> bool:
    todo, seen = [op], set()
    while todo:
        op = todo.pop()
        if op in seen or op in texts.constant:
            continue
        seen.add(op)
        if isinstance(op, Input):
            if op.role == "argument" and is_differentiable(op.value):
                return True
            continue
        if op.tape is GONE:
            return True
        if not may_carry(op.value) or kind_of_rule(op.fn) == registry.NONDIFF:
            continue
        whole = type(op.value) is int  # d(2 * n)/dn exists, d(int(x))/dx does not
        todo += [x for x in op.operands() if not whole or type(x.value) is int]
    texts.constant |= seen
    return False


def may_carry(value: Any) -> bool:
    """Whether a value has a derivative, or is made of values that may have one."""
    if isinstance(value, (float, complex, tuple, list, str, bytes)):
        return True
    return is_differentiable(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "SU")


def kind_of_rule(fn: Any) -> str | None:
    try:
        rule = registry.rules.get(fn)
    except (TypeError, ValueError):  # not hashable
        return None
    return None if rule is None else rule.kind
