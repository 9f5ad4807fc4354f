"""Special methods of numbers and arrays that the program calls by their names: ``x.__add__(1)``."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from . import meaning, operators
from .box import BOXES
from .kinds import is_one_of, isinstance
from .session import Tracer
from .slots import plain_of
from .tape import Site

NUMBERS = (int, float, complex, np.generic, np.ndarray)

# What the methods come down to, whatever the order of operands.
BUILTINS: dict[str, Any] = {
    "__neg__": operator.neg, "__pos__": operator.pos, "__invert__": operator.invert, "__abs__": abs,
    "__bool__": bool, "__int__": int, "__float__": float, "__complex__": complex, "__index__": operator.index,
    "__round__": round, "__trunc__": math.trunc, "__floor__": math.floor, "__ceil__": math.ceil,
    "__str__": str, "__repr__": repr, "__format__": format, "__hash__": hash, "__len__": len, "__iter__": iter,
    "__getitem__": operator.getitem, "__setitem__": operator.setitem, "__delitem__": operator.delitem,
    "__contains__": operator.contains,
}  # fmt: skip


def is_followed(fn: Any, args: Any) -> bool:
    """Whether a method of a native class is one of those that are followed, and was given something traced."""
    if not any(is_one_of(type(x), BOXES) for x in args[:2]) or not issubclass(
        fn.__objclass__, NUMBERS
    ):
        return False
    name = fn.__name__
    if name in operators.OPERATORS:
        return len(args) == 2
    return name in BUILTINS and is_one_of(type(args[0]), BOXES)


def call(tracer: Tracer, site: Site, fn: Any, args: Any) -> Any:
    """Call a special method of a number or an array."""
    if fn.__name__ in operators.OPERATORS:
        value, other = args
        if not isinstance(plain_of(value), fn.__objclass__):
            fn(plain_of(value), plain_of(other))  # raises what plain Python raises
        return operators.native_slot(tracer, site, fn, value, other)
    return meaning.calls.call(tracer, site, BUILTINS[fn.__name__], args, {})
