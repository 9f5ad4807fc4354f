"""Linear functions: their forward rule is the function itself, which one line declares.

Words
-----
linear        in all of the operands ``wrt`` together: the tangent is the function of the tangents.
multilinear   in each operand by itself: the tangent is a sum with one term for each operand that has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .elementwise import filled
from .registry import frule, query, rrule


def linear(*fns: Callable[..., Any], wrt: tuple[int, ...] = (0,)) -> None:
    """Declare that each function is linear in its operands ``wrt``, taken together.

    >>> import numpy as np
    >>> linear(np.reshape, np.sum)
    >>> linear(np.where, wrt=(1, 2))
    """
    for fn in fns:
        frule(fn)(_linear(fn, wrt))


def multilinear(*fns: Callable[..., Any]) -> None:
    """Declare that each function is linear in each of its operands, as products are."""
    for fn in fns:
        frule(fn)(_multilinear(fn))


@query
def is_plain(rest: Sequence[Any], options: dict[str, Any]) -> bool:
    """Is a function with these arguments behind the operand as linear as it looks?

    It is not where something is added to it, where it goes by how its operand lies in memory, and where the result is
    made whole numbers.
    """
    for x in (*rest, options.get("dtype")):
        if isinstance(x, (type, np.dtype)) and np.dtype(x).kind not in "fc":
            return False
    return "initial" not in options and options.get("order") not in ("A", "K")


def _linear(fn: Callable[..., Any], wrt: tuple[int, ...]) -> Callable[..., Any]:
    def rule(primals: Any, tangents: Any, **options: Any) -> Any:
        if not is_plain(primals[1:], options) or any(
            t is not None for i, t in enumerate(tangents) if i not in wrt
        ):
            return NotImplemented
        given = [
            filled(t, x) if i in wrt else x
            for i, (x, t) in enumerate(zip(primals, tangents, strict=True))
        ]
        return fn(*primals, **options), fn(*given, **options)

    return rule


def _multilinear(fn: Callable[..., Any]) -> Callable[..., Any]:
    def rule(primals: Any, tangents: Any, **options: Any) -> Any:
        total = None
        for i, t in enumerate(tangents):
            if t is not None:
                given = [*primals[:i], filled(t, primals[i]), *primals[i + 1 :]]
                term = fn(*given, **options)
                total = term if total is None else total + term
        return fn(*primals, **options), total

    return rule


def variable(x: Any) -> Any:
    """The identity: gives a position of an argument a variable of its own."""
    return x


@rrule(variable)
def _variable(x):
    def pullback(dz):
        return (dz,)

    return variable(x), pullback
