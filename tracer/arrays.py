"""Arrays under mutation: boxes as reference cells to immutable versions.

Words
-----
memory    the storage that an array and its views share: a count of the writes, and the ops whose values must survive.
version   the op that stands for what an array holds now; every write makes a new one.
view      how an array box is derived from its parent: ``(parent, fn, args, kwargs)``.
saved     ops that were given to other ops: before the next write, their values move to a copy.

The program writes into the very storage that plain Python would write to, so that everybody who can see it sees
what plain Python would show. The tape stays pure: a write is the op ``setitem(old, index, value)``, and a view
that is written to writes through to its parent by an op as well.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..rules.broadcasting import cast
from ..rules.mutation import scatter, scatter_add, setitem, write_through
from .box import ArrayBox
from .errors import TraceError
from .tape import Op, Site, append, primal

# The pullbacks of these use no values of their operands, or of their first operand, only shapes and types.
LINEAR = frozenset((operator.add, operator.sub, operator.neg, cast))
VALUE_FREE = LINEAR | {operator.getitem, setitem, scatter, scatter_add, write_through}


class Memory:
    """The storage that one or several array boxes share."""

    __slots__ = ("__weakref__", "boxes", "owner", "saved", "viewed", "writes")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.writes = 0
        self.viewed = False
        self.saved: list[Op] = []
        self.boxes: list[ArrayBox] = []  # those that came from outside: they may alias one another


def owner_of(array: Any) -> Any:
    """The object at the end of an array's chain of bases."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def is_traced_array(value: Any) -> bool:
    """Whether an array travels in a box: a plain ndarray of numbers or bools."""
    return type(value) is np.ndarray and value.dtype.kind in "fibuc"


def current(box: ArrayBox) -> Op:
    """The op of the version that the array has now (views are derived again when their parent has moved on)."""
    memory = box.memory
    if box.seen == memory.writes:
        return box.op
    if box.view is None:
        raise TraceError(
            "an array shares its memory with another array that was written to, and neither was made from the "
            "other inside the traced function; pass a copy of one of them"
        )
    parent, fn, args, kwargs = box.view
    source = current(parent)
    box.op = append(box.op.tape, fn, (source, *args), kwargs, box.value, box.op.site)
    box.seen = memory.writes
    return box.op


def box_array(op: Op, operands: list[ArrayBox], fresh: bool) -> ArrayBox:
    """Box the array that ``op`` made: a view of one of the operands, or an array of its own.

    ``fresh`` says that no pullback will ask for the value of ``op``.
    """
    value = op.value
    if value.base is not None and operands:
        owner = owner_of(value)
        for parent in operands:
            if parent.memory.owner is owner:
                parent.memory.viewed = True
                simple = bool(op.args) and op.args[0] is parent.op
                view = (parent, op.fn, op.args[1:], op.kwargs) if simple else None
                return ArrayBox(value, op, parent.memory, view)
    owner = owner_of(value)
    memory = op.tape.memories[id(owner)] = Memory(owner)
    if not fresh:
        memory.saved.append(op)
    return ArrayBox(value, op, memory)


def save(boxes: list[ArrayBox]) -> None:
    """Note that the values of these arrays were given to an op and must survive the next write."""
    for box in boxes:
        saved = box.memory.saved
        if not saved or saved[-1] is not box.op:
            saved.append(box.op)


def lies_in(value: Any, memory: Memory) -> bool:
    """Whether a value is an array in this storage."""
    return isinstance(value, np.ndarray) and owner_of(value) is memory.owner


class Writing:
    """A write to an array: values that are still needed move out of its way, and back if nothing was written.

    ``with Writing(box) as op`` gives the version before the write; `commit` in its body makes the new one.
    """

    __slots__ = ("box", "moved", "writes")

    def __init__(self, box: ArrayBox) -> None:
        self.box = box

    def __enter__(self) -> Op:
        op = current(self.box)
        op.tape.written += 1
        if op.tape.overwritten is not None:
            op.tape.overwritten.append(op)
        memory = self.box.memory
        self.writes = memory.writes
        again = [x for x in op.tape.again if lies_in(x.value, memory)]
        self.moved = [(old, old.value) for old in (*memory.saved, *again)]
        for old, value in self.moved:
            old.value = value.copy("K")
        memory.saved.clear()
        return op

    def __exit__(self, *error: Any) -> None:
        memory = self.box.memory
        if memory.writes == self.writes:
            for old, value in self.moved:
                old.value = value
                if old not in old.tape.again:
                    memory.saved.append(old)


def commit(box: ArrayBox, op: Op) -> None:
    """Make ``op`` the version of the array and write through to its parents and aliases."""
    memory = box.memory
    tape, site = op.tape, op.site
    memory.writes += 1
    before = box.op
    box.op, box.seen = op, memory.writes
    root = box
    while root.view is not None:
        parent, fn, args, kwargs = root.view
        if fn is operator.getitem:
            new = append(tape, setitem, (parent.op, args[0], root.op), {}, parent.value, site)
        else:
            new = append(
                tape, write_through, (parent.op, fn, args, kwargs, root.op), {}, parent.value, site
            )
        before, parent.op, parent.seen = parent.op, new, memory.writes
        root = parent
    for alias in memory.boxes:
        if alias is root or alias.seen != memory.writes - 1:
            continue
        if same_place(alias.value, root.value):
            replay_write(alias, root.op, before)
        else:
            copy_overlap(alias, root)


def same_place(a: Any, b: Any) -> bool:
    """Whether two arrays are the same elements in the same order."""
    return (
        a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
        and a.shape == b.shape
        and a.strides == b.strides
        and a.dtype == b.dtype
    )


def addresses(array: Any) -> Any:
    """Where each element lies in memory."""
    found = np.array(array.__array_interface__["data"][0])
    for n, stride in zip(array.shape, array.strides, strict=True):
        found = np.add.outer(found, np.arange(n) * stride)
    return found.ravel()


def copy_overlap(alias: ArrayBox, written: ArrayBox) -> None:
    """Let the elements that two outside arrays share, and that were written through one, come from it."""
    _, here, there = np.intersect1d(
        addresses(alias.value), addresses(written.value), return_indices=True
    )
    if alias.value.dtype != written.value.dtype:
        return  # its next use raises
    tape, site = written.op.tape, written.op.site
    if len(here):
        index = np.unravel_index(there, written.value.shape)
        part = append(tape, operator.getitem, (written.op, index), {}, written.value[index], site)
        index = np.unravel_index(here, alias.value.shape)
        alias.op = append(tape, setitem, (alias.op, index, part), {}, alias.value, site)
    alias.seen = alias.memory.writes


def replay_write(alias: ArrayBox, written: Op, before: Op) -> None:
    """Give the write that turned ``before`` into ``written`` to another box of the same elements.

    Each position of an argument keeps its own variable, so that ``f(v, v)`` tells the two apart.
    """
    args = tuple(alias.op if arg is before else arg for arg in written.args)
    alias.op = append(written.tape, written.fn, args, written.kwargs, alias.value, written.site)
    alias.seen = alias.memory.writes


def write_item(box: ArrayBox, key: Any, value: Any, site: Site) -> None:
    """``box[key] = value``, with ops in the key and the value."""
    with Writing(box) as op:
        box.value[primal(key)] = primal(value)
        commit(box, append(op.tape, setitem, (op, key, value), {}, box.value, site))


def write_all(box: ArrayBox, new: Op, site: Site) -> None:
    """Write the whole value of ``new``, just recorded, into the array, as ``out=`` and ``+=`` do."""
    with Writing(box) as op:
        np.copyto(box.value, new.value, casting="same_kind")
        same_dtype = getattr(new.value, "dtype", None) == box.value.dtype
        if same_dtype and np.shape(new.value) == box.value.shape:
            new.value = box.value
            commit(box, new)
            box.memory.saved.append(new)
        else:
            commit(box, append(op.tape, setitem, (op, Ellipsis, new), {}, box.value, site))
