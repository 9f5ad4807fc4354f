"""How the operands of a call nest in its arguments: a frame, which is a hashable tree.

"x"                                             an operand: a number, an array, a dtype or a class
"items"                                         an operand: a list of numbers of any length
("is", value)                                   None, a bool, a text or Ellipsis
("tuple", frame...), ("list", frame...)         of the items
("slice", frame, frame, frame)
("dict", (name, frame)...)
("call", (frame...), ((name, frame)...))        of a whole call
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rules.words import with_article
from .recorder import NUMBERS, PLAIN, Box, Unfolded

OPERAND, ITEMS = "x", "items"


class Whole:
    """A list of numbers of the run's own that is one operand, whatever its length."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def frame_of(args: Any, kwargs: dict[str, Any], found: list[Any]) -> Any:
    """The frame of a call; its operands are added to ``found``."""
    inside = tuple([frame(x, found) for x in args])
    return "call", inside, tuple([(name, frame(x, found)) for name, x in kwargs.items()])


def frame(x: Any, found: list[Any]) -> Any:
    """The frame of an argument."""
    kind = type(x)
    if kind is Box or kind in NUMBERS or is_of_types(x):
        found.append(x)
        return OPERAND
    if kind is Whole:
        found.append(x.items)
        return ITEMS
    if kind in PLAIN:
        return "is", x
    if kind is tuple or kind is list:
        return kind.__name__, *[frame(y, found) for y in x]
    if kind is slice:
        return "slice", *[frame(y, found) for y in (x.start, x.stop, x.step)]
    if kind is dict and all(type(key) is str for key in x):
        return "dict", *[(key, frame(y, found)) for key, y in x.items()]
    raise Unfolded(f"{with_article(kind.__name__)} is given to a function of arrays")


def is_of_types(x: Any) -> bool:
    """Whether something says of which type an array is to be."""
    return issubclass(type(x), np.dtype) or (
        issubclass(type(x), type) and (x in (float, int, bool) or issubclass(x, np.generic))
    )


def plainly(x: Any) -> Any:
    """An argument with the values of what is boxed in it."""
    kind = type(x)
    if kind is Box:
        return x.value
    if kind is Whole:
        return plainly(x.items)
    if kind is tuple or kind is list:
        return kind([plainly(y) for y in x])
    if kind is slice:
        return slice(plainly(x.start), plainly(x.stop), plainly(x.step))
    if kind is dict:
        return {key: plainly(y) for key, y in x.items()}
    return x
