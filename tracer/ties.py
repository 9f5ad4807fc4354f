"""Ties: which arrays and objects among the arguments of a run are one, and how the arrays lie in memory.

Words
-----
tie     two things among the arguments that are one object, or two arrays that share memory.
layout  how an array lies in memory: its strides, and the flags that NumPy has for it.

A tape holds for other ties and layouts where nothing in the run went by them: it is noted on the tape what did.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .frames import NATIVE
from .kinds import is_one_of, isinstance
from .structure import Branch, Leaf, Tree
from .tape import FloatOp, Tape
from .traits import VALUES, Path, at, is_captured, walk

# The position or the name of an argument, and the way to a part of it.
Where = tuple[int | str, Path]
# What is known by its traits, whichever object it is, or cannot be changed.
KNOWN = VALUES | {types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType}
NUMBERS = (float, complex, int, np.generic)


class Ties:
    """What a tape asks of how the arguments lie to one another; None where nothing in the run went by it.

    ``arrays`` and ``objects`` are found where these say. ``strides``, ``flags`` and ``shared`` are those of the
    arrays, ``ones`` says for each object which is the first that it is one with.
    """

    __slots__ = ("arrays", "flags", "objects", "ones", "shared", "strides")

    def __init__(self) -> None:
        self.arrays: list[Where] = []
        self.objects: list[Where] = []
        self.strides: Any = None
        self.flags: Any = None
        self.shared: Any = None
        self.ones: Any = None

    def asked(self) -> Iterator[tuple[Any, list[Where], Any, str]]:
        """What is to be asked of things that are found where it says, what the answer was, and what that means."""
        if self.strides is not None:
            yield strides_of, self.arrays, self.strides, LAYOUT
        if self.flags is not None:
            yield flags_of, self.arrays, self.flags, LAYOUT
        if self.shared is not None:
            yield sharing, self.arrays, self.shared, MEMORY
        if self.ones is not None:
            yield ones, self.objects, self.ones, OBJECTS


LAYOUT = "an array lies in memory in another way (its order or its flags), and the function looks at that"
MEMORY = "the arrays share memory in another way, and the function writes into one of them or asks about it"
OBJECTS = "other objects are one, and the function changes one of them or asks about it"


def movable(key: int | str, tree: Tree, value: Any) -> Iterator[tuple[Where, Any]]:
    """The arrays of an argument, and the objects that something can be done to, with where they are."""
    for path, part in walk(tree):
        if type(part) is Leaf and not isinstance(part.value, np.ndarray):
            continue
        if is_captured(path):
            continue
        if isinstance(part, Leaf):
            yield (key, path), part.value
            continue
        if isinstance(part, Branch) and issubclass(part.kind, (tuple, frozenset)):
            continue
        try:
            found = at(value, path)
        except (LookupError, AttributeError, TypeError, ValueError):
            continue  # an element of a set, to which no path leads
        if not is_one_of(type(found), KNOWN) and not isinstance(found, NUMBERS):
            yield (key, path), found


def tied(tape: Tape, found: Sequence[tuple[Where, Any]], written: bool) -> Ties | None:
    """What a run asks of these arguments; ``written`` says that it has written into arrays among them."""
    ties = Ties()
    arrays = [(where, x) for where, x in found if isinstance(x, np.ndarray)]
    objects = [(where, x) for where, x in found if not isinstance(x, np.ndarray)]
    ties.arrays, ties.objects = [where for where, _ in arrays], [where for where, _ in objects]
    those, others = [x for _, x in arrays], [x for _, x in objects]
    if those and (tape.layout or may_be_view(tape)):
        ties.strides = strides_of(those)
    if those and tape.layout:
        ties.flags = flags_of(those)
    if len(those) > 1 and (written or tape.identity):
        ties.shared = sharing(those)
    if len(others) > 1:
        first = ones(others)
        # What a list or a dict holds is an input for each way to it, but what an object has is so only once.
        one = any(i != k and not is_one_of(type(others[i]), NATIVE) for k, i in enumerate(first))
        if one or tape.identity or any(op.kind == "effect" for op in tape.ops):
            ties.ones = first
    return ties if any(True for _ in ties.asked()) else None


def may_be_view(tape: Tape) -> bool:
    """Whether arrays are written to, and some may or may not be views, as their layout has it."""
    return tape.written > 0 and any(
        type(op) is not FloatOp and (op.fn in VIEWS or "order" in op.kwargs) for op in tape.ops
    )


VIEWS: Collection[Any] = (
    *(np.reshape, np.ravel, np.ndarray.reshape, np.ndarray.ravel),
    *(np.ascontiguousarray, np.asfortranarray),
)


def note_identity(tape: Tape, *things: Any) -> None:
    """Note that it was asked which objects these are: which of two arrays is a view goes by their layout, too."""
    if not any(is_one_of(type(x), KNOWN) or isinstance(x, NUMBERS) for x in things):
        tape.identity = True
        tape.layout |= any(isinstance(x, np.ndarray) for x in things)


def strides_of(arrays: Iterable[Any]) -> list[Any]:
    """The strides of each array."""
    return [x.strides for x in arrays]


def flags_of(arrays: Iterable[Any]) -> list[int]:
    """The flags of each array, as NumPy numbers them."""
    return [x.flags.num for x in arrays]


def ones(things: Iterable[Any]) -> list[int]:
    """For each thing, the position of the first that is the same object."""
    ids = [id(x) for x in things]
    return [ids.index(x) for x in ids]


def sharing(arrays: Sequence[Any]) -> list[Any]:
    """The pairs of arrays that may share memory, by position, and how they lie to one another."""
    found = []
    for i, one in enumerate(arrays):
        for j, other in enumerate(arrays[:i]):
            lie = lying(other, one)
            if lie is not None:
                found.append((j, i, lie))
    return found


def lying(a: Any, b: Any) -> Any:
    """How two arrays lie to one another that may share memory: how far apart they begin, and their strides."""
    if not np.may_share_memory(a, b):
        return None
    first, second = [x.__array_interface__["data"][0] for x in (a, b)]
    return second - first, a.strides, b.strides
