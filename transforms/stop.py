"""``stop_gradient``: a value through which no derivative flows.

Words
-----
held   the value itself, cut off from the variables that it was computed from.
"""

from __future__ import annotations

import copy
import types
from collections import deque
from typing import Any

import numpy as np

from ..rules.registry import nondiff
from ..tracer import calls, frames, places
from ..tracer.active import active
from ..tracer.box import BOXES
from ..tracer.entrances import entrance
from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.structure import attributes, is_namedtuple
from ..tracer.text import TEXTS, bare
from .typed import R

ATOMS = (type(None), bool, str, bytes, range, type)
CALLABLE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)


@nondiff
def held(x: Any) -> Any:
    """A number or an array as a value of its own."""
    return x.copy("K") if isinstance(x, np.ndarray) else x


held.stops = True  # type: ignore[attr-defined]  # a key of it is a constant (see `tracer.memos`)


@intrinsic
@entrance
def stop_gradient(x: R) -> R:
    """The value of ``x``, as a constant: no derivative of any order flows back through it, or forward.

    ``x`` is a number, an array, or a structure of them: lists, tuples, dicts, deques, dataclasses and other objects.
    Arrays, containers and objects are copied, so that what is written to the one later does not reach the other.
    Strings, None and the like, and functions and classes, are returned as they are; a string that was drawn from a
    traced value is a constant then, which may become a number again.

    >>> from wengert import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    if active.tracer is None:
        return stopped(x)  # type: ignore[no-any-return]
    if is_one_of(type(x), TEXTS):
        return x.value  # type: ignore[no-any-return, attr-defined]
    fn = held if is_one_of(type(x), BOXES) else stopped
    return calls.call(active.tracer, places.user_site(), fn, (x,), {})


def stopped(x: Any) -> Any:
    """`stop_gradient` of a structure; inside a traced function it is traced like any other function."""
    if isinstance(x, ATOMS) or isinstance(x, CALLABLE):
        return bare(x)
    if isinstance(x, (int, float, complex, np.generic, np.ndarray)):
        return held(x)
    if is_namedtuple(type(x)):
        return x._make([stopped(y) for y in x])
    if isinstance(x, (tuple, set, frozenset)):
        return type(x)([stopped(y) for y in x])
    new = copy.copy(x)
    if isinstance(x, dict):
        for key, y in x.items():
            new[key] = stopped(y)
    elif isinstance(x, (list, deque)):
        for i, y in enumerate(x):
            new[i] = stopped(y)
    else:
        for name, y in attributes(x).items():
            frames.put(new, name, stopped(y))
    return new
