"""What programs do with arrays that are written to: copies of what is in them, and their shadows.

Words
-----
snapshot  of an array: a copy of what is in it, which is kept for the reverse part.
shadow    of an array: one of its shape with the cotangents of what is in it, zero where there are none. Arrays that
          share memory share it in their shadows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...rules.mutation import of_places


def own(x: Any) -> Any:
    """An array that has its memory to itself."""
    return x if x.base is None else x.copy("K")


def snapshot(x: Any) -> Any:
    """A copy that lies in memory as the array does, of which functions compute the same to the bit."""
    if x.flags.c_contiguous or x.flags.f_contiguous or x.base is None or not x.size:
        return x.copy("K")
    return alike(x, x.base.copy("K"))


def alike(x: Any, memory: Any) -> Any:
    """The part of another array's memory that ``x`` is of that of its base."""
    start = x.__array_interface__["data"][0] - x.base.__array_interface__["data"][0]
    return np.ndarray(x.shape, x.dtype, memory, start, x.strides)


def shadow_in(shadows: dict[int, Any], x: Any) -> Any:
    """The shadow of an array."""
    memory = x if x.base is None else x.base
    found = shadows.get(id(memory))
    if found is None:
        found = shadows[id(memory)] = np.zeros_like(memory)
    return found if memory is x or not x.size else alike(x, found)


def put_back(shadows: dict[int, Any], arrays: list[Any], cotangents: list[Any]) -> None:
    """What was read of arrays gets its cotangents, if there are any."""
    for x, d in zip(arrays, cotangents, strict=True):
        if d is not None:
            shadow = shadow_in(shadows, x)
            np.add(shadow, d, shadow)


def taken(d: Any, x: Any) -> Any:
    """The cotangent of an array that was written where ``d`` stands."""
    found = of_places(d, ..., x.shape)
    if found.dtype != x.dtype:
        return found.astype(x.dtype)
    return found.copy() if np.may_share_memory(found, d) else found


def number(d: Any, kind: Any = float) -> Any:
    """The cotangent of a number that was written where ``d`` stands; None where that is zero."""
    return kind(np.add.reduce(d, None) if type(d) is np.ndarray else d) or None
