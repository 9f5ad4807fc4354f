"""Things through which the memory of arrays can be seen: memoryviews, NumPy's iterators, arrays of another class.

Words
-----
shows   of a thing: arrays lie in memory that can be read through it, and perhaps written to. It was made of them.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..rules.words import with_article
from .arrays import Memory, byte_bounds, current, dtype_of, is_traced_array
from .box import ArrayBox
from .held import Held, hold
from .kinds import isinstance
from .session import Tracer
from .tape import Op

# The class of all data of ctypes, and what shows memory that may be that of arrays.
C_DATA: type = ctypes.c_int.__mro__[2]
SHOWING = (memoryview, np.ndarray, np.void, C_DATA)


def holders(arrays: Iterable[ArrayBox]) -> list[int]:
    """How often the arrays and their owners are referred to: more often when somebody has kept them."""
    return [sys.getrefcount(x) for box in arrays for x in (box.value, box.memory.owner)]


def shows(tracer: Tracer, value: Any, arrays: Iterable[ArrayBox]) -> Any:
    """A thing that was made of arrays: what is read through it depends, from now on, on what is written to them."""
    known = {id(box.memory): box.memory for box in arrays}
    memories = list(known.values())
    for x in value if type(value) is tuple else (value,):
        if not is_traced_array(x) and id(x) not in tracer.readable:
            hold(
                tracer,
                Held(f"{with_article(type(x).__name__)}", lambda: written(tracer, memories), x),
            )
    return value


def written(tracer: Tracer, memories: Iterable[Memory]) -> list[Op]:
    """What was written to these memories, as far as it may have a derivative."""
    return [
        op
        for memory in memories
        if memory.writes
        for op in (*map(current, memory.boxes), *((memory.version,) if memory.version else ()))
        if tracer.dependence.has(op)
    ]


def enters(tracer: Tracer, value: Any) -> None:
    """A buffer comes in: it may show arrays that are known, and others that come in later."""
    plain = isinstance(value, np.ndarray) and (value.base is None or dtype_of(value).kind == "O")
    if plain or id(value) in tracer.readable or id(value) in tracer.holders:
        return
    low, high = bounds(value)
    own = overlapping(tracer.tape.memories.values(), low, high)

    def current_ops() -> list[Op]:
        later = (*tracer.memories.values(), *tracer.tape.memories.values(), *tracer.tape.lent)
        return written(tracer, [*own, *overlapping(later, low, high)])

    hold(tracer, Held(f"{with_article(type(value).__name__)}", current_ops, value))


def bounds(value: Any) -> tuple[int, int]:
    """Where the memory of a buffer begins and ends; one that has been released has none."""
    try:
        return byte_bounds(np.asarray(value))
    except ValueError:
        return 0, 0


def overlapping(memories: Iterable[Memory], low: int, high: int) -> list[Memory]:
    """The memories in which arrays lie between two addresses."""
    found = []
    for memory in list(memories):
        arrays = [box.value for box in memory.boxes]
        arrays += [memory.owner] if isinstance(memory.owner, np.ndarray) else []
        ranges = map(byte_bounds, arrays)
        if any(start < high and low < end for start, end in ranges):
            found.append(memory)
    return found
