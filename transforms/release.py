"""Release: a path that is kept lets go of the arguments of the call that it was made from.

Words
-----
blank   what stands for an argument from now on: of its class, or its type, shape and layout, with nothing in it.

Of an argument the guards of a path, and programs that it is joined to later, ask for no more than that, and whether
two of them were one. What is guarded by its identity stays.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from ..tracer.kinds import HEAP_TYPE, MISSING, flags_of, isinstance, static
from ..tracer.structure import leaves
from ..tracer.tape import Input
from .programs import Path

BY_TYPE = frozenset(("type", "length", "keys", "array", "same", None))


def release(path: Path) -> None:
    """Put blanks in the places of the arguments; of a path that does nothing outside, where they are told apart."""
    builder = path.builder
    if builder.effects or builder.outcome.arrays or builder.outcome.cells:
        return
    blanks: dict[int, Any] = {}
    held = []  # until all have been replaced: their ids are keys

    def blank(value: Any) -> Any:
        if id(value) not in blanks:
            held.append(value)
            blanks[id(value)] = blank_of(value)
        return blanks[id(value)]

    pinned = {id(place.value) for place in path.reads.all() if place.pinned}
    for place in path.reads.all():
        if place.step != "constant" and place.check in BY_TYPE and id(place.value) not in pinned:
            place.value = blank(place.value)
    for op in path.forward:
        if type(op) is Input:
            op.value = blank(op.value)
    trees = [*builder.done.args, *builder.done.kwargs.values()]
    for leaf in [leaf for tree in trees for leaf in leaves(tree)]:
        if isinstance(leaf.value, np.ndarray):
            leaf.value = blank(leaf.value)
    builder.done.value = None


def blank_of(value: Any) -> Any:
    """A blank for a value; the value itself where there can be none."""
    kind = type(value)
    if kind is list or kind is dict:
        return kind()
    if kind is np.ndarray:
        copy = value.copy("K")
        copy[...] = 0
        if copy.strides != value.strides:
            return value
        copy.flags.writeable = value.flags.writeable
        return copy
    user = bool(flags_of(kind) & HEAP_TYPE) and not isinstance(value, type)
    if user and static(kind, "__new__") is object.__new__ and static(kind, "__del__") is MISSING:
        with contextlib.suppress(TypeError):  # of a class written in C
            return object.__new__(kind)
    return value
