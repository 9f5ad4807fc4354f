"""Arrays under mutation: boxes as reference cells to immutable versions.

Words
-----
memory    the storage that an array and its views share: a count of the writes, and the ops whose values must survive.
lent      of memory: it belongs to something that is no array of numbers (a bytearray, a file, an array of records),
          and may be looked at through it.
version   the op that stands for what an array holds now; every write makes a new one.
view      how an array box is derived from its parent: ``(parent, fn, args, kwargs)``.
window    a view that may show an element several times: what is written to it is written to its parent instead.
saved     ops that were given to other ops: before the next write, their values move to a copy.

The program writes into the very storage that plain Python would write to, so that everybody who can see it sees
what plain Python would show. The tape stays pure: a write is the op ``setitem(old, index, value)``, and a view
that is written to writes through to its parent by an op as well.
"""

from __future__ import annotations

import gc
import operator
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..rules.broadcasting import cast
from ..rules.mutation import (
    at_places,
    laid_out_as,
    multiply_at,
    scatter,
    scatter_add,
    setitem,
    write_through,
)
from .active import active
from .box import ArrayBox
from .errors import TraceError
from .kinds import isinstance
from .places import blame, user_site
from .tape import Op, Site, append, primal

# The pullbacks of these use no values of their operands, or of their first operand, only shapes and types.
LINEAR = frozenset((operator.add, operator.sub, operator.neg, cast))
VALUE_FREE = LINEAR | {operator.getitem, setitem, scatter, scatter_add, write_through}


def is_value_free(fn: Any) -> bool:
    try:
        return fn in VALUE_FREE
    except TypeError:  # a foreign function cannot be hashed
        return False


# The elements of their first operand, in the same order; of some, but for those that are written.
CARRYING = (setitem, scatter_add, multiply_at, laid_out_as, cast, np.positive, np.reshape)

# What writes to an array, by ``out=`` as well, while it reads what may lie there.
ONE_BY_ONE = frozenset((np.place, np.fill_diagonal, np.concatenate, np.stack))

# NumPy 1 has it at its top.
byte_bounds: Any = getattr(np, "byte_bounds", None) or np.lib.array_utils.byte_bounds

# Views that may show an element several times.
WINDOWS = frozenset((at_places, np.lib.stride_tricks.sliding_window_view, np.broadcast_to))


class Memory:
    """The storage that one or several array boxes share."""

    __slots__ = ("__weakref__", "aside", "boxes", "owner", "saved", "version", "writes")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.writes = 0
        self.version: Op | None = None  # what the array was after the last write
        self.saved: list[Op] = []
        self.aside: Any = None  # what looks at it before its next use (see ``unannounced``)
        # Those that came from outside, or lie in memory that is lent: they may alias one another.
        self.boxes: list[ArrayBox] = []

    @property
    def lent(self) -> bool:
        return not is_traced_array(self.owner)


def owner_of(array: Any) -> Any:
    """The object at the end of an array's chain of bases: an array, or what has lent its memory."""
    while array.base is not None:
        base = array.base
        if type(base) is memoryview:
            base = base.obj
        elif type(base).__name__ == "DummyArray":  # by which NumPy makes arrays of other strides
            base = base.base
        if not issubclass(type(base), np.ndarray):
            return array if type(base).__name__ == "PyCapsule" else base
        array = base
    return array


def memory_of(tape: Any, array: Any, owner: Any) -> Memory | None:
    """The memory that an array lies in, if it is known: that of its owner, or where the addresses are the same."""
    known: Memory | None = tape.memories.get(id(owner))
    if known is not None or isinstance(owner, np.nditer):
        return known  # an iterator may have memory of its own
    if isinstance(owner, np.ndarray) and owner.base is None:
        return next((x for x in tape.lent if shows(x, array)), None) if tape.lent else None
    for memory in list(tape.memories.values()):
        if isinstance(memory.owner, np.ndarray) and np.may_share_memory(array, memory.owner):
            return memory
    return None


def shows(memory: Memory, array: Any) -> bool:
    """Whether arrays in a memory that is lent are known to share it with another array."""
    return any(np.may_share_memory(box.value, array) for box in memory.boxes)


def is_traced_array(value: Any) -> bool:
    """Whether an array travels in a box wherever it comes from: one of numbers or bools."""
    kind = type(value)
    return (kind is np.ndarray or kind is np.memmap) and value.dtype.kind in "fibuc"


dtype_of = vars(np.ndarray)["dtype"].__get__  # whatever the class of an array has to say


def is_followed(value: Any) -> bool:
    """Whether an array can travel in a box. One of another class does as an argument, if the class means the same."""
    return (
        isinstance(value, np.ndarray)
        and dtype_of(value).kind in "fibuc"
        and means_the_same(type(value))
    )


def means_the_same(kind: type) -> bool:
    """Whether the arrays of a class do all that concerns numbers as those of ndarray do."""
    if kind is np.memmap:  # which has some methods of its own, for the sake of its file
        return True
    return all(MEMBERS.isdisjoint(vars(x)) for x in kind.__mro__[: kind.__mro__.index(np.ndarray)])


MEMBERS = frozenset(dir(np.ndarray)) | {"__getattr__"}
MEMBERS -= {"__new__", "__init__", "__doc__", "__dict__", "__module__", "__array_finalize__"}
MEMBERS -= {"__class__", "__init_subclass__", "__subclasshook__", "__repr__", "__str__"}
MEMBERS -= {"__array_priority__", "__reduce__", "__setstate__", "__class_getitem__"}


def current(box: ArrayBox) -> Op:
    """The op of the version that the array has now (views are derived again when their parent has moved on)."""
    memory = box.memory
    if memory.aside is not None:
        memory.aside.settle(box)
    if box.seen == memory.writes:
        return box.op
    if box.derivation is None:
        if is_constant(box):  # what it holds now is as good
            box.op = append(box.op.tape, np.array, (box.value.copy(),), {}, box.value, box.op.site)
            box.seen = memory.writes
            return box.op
        raise TraceError(
            f"{blame(user_site())}: an array shares its memory with another array that was written to, and neither was "
            "made from the other inside the traced function\npass a copy of one of them"
        )
    parent, fn, args, kwargs = box.derivation
    source = current(parent)
    box.op = append(box.op.tape, fn, (source, *args), kwargs, box.value, box.op.site)
    box.seen = memory.writes
    return box.op


def lay_out(box: ArrayBox, reads: Any) -> bool:
    """Let the op of an array that leaves the run give it as it lies in memory: what is written in place need not.

    Says whether it is another op now.
    """
    op = current(box)
    if not box.memory.writes:
        return False
    if box.derivation is None:
        if op.fn is not setitem and not box.value.flags.c_contiguous:
            reads.problem(
                "an array that was written to lies in memory in another way than a new one"
            )
        return False
    parent, fn, args, kwargs = box.derivation
    lay_out(parent, reads)
    if op.fn is fn and op.args and op.args[0] is parent.op:
        return False
    box.op = append(op.tape, fn, (parent.op, *args), kwargs, box.value, op.site)
    return True


def is_constant(box: ArrayBox) -> bool:
    """Whether nothing in the storage of an array has a derivative that somebody may ask for."""
    memory = box.memory
    tracer = active.tracer
    if tracer is None:
        return False
    if tracer.reads is not None:
        tracer.reads.problem("an array lies in memory that was written to in another way")
    inside = [op for op in box.op.tape.ops if shares(op.value, memory)]
    inside += [x.op for x in (box, *memory.boxes)]
    return not any(map(tracer.dependence.has, inside))


def box_array(op: Op, operands: list[ArrayBox], fresh: bool) -> ArrayBox:
    """Box the array that ``op`` made: a view of one of the operands, or an array of its own.

    ``fresh`` says that no pullback will ask for the value of ``op``.
    """
    value = op.value
    owner = owner_of(value)
    memory = None
    if value.base is not None:
        memory = memory_of(op.tape, value, owner)
        for parent in operands:
            if parent.memory is memory or parent.memory.owner is owner:
                simple = bool(op.args) and op.args[0] is parent.op
                view = (parent, op.fn, op.args[1:], op.kwargs) if simple else None
                return ArrayBox(value, op, parent.memory, view)
    if memory is not None:
        return alias(value, op, memory)
    memory = op.tape.memories[id(owner)] = Memory(owner)
    if not fresh:
        memory.saved.append(op)
    box = ArrayBox(value, op, memory)
    if memory.lent:
        memory.boxes.append(box)
        op.tape.lent.append(memory)
    return box


def alias(value: Any, op: Op, memory: Memory) -> ArrayBox:
    """Box an array that was made in memory which is known already, in another way than as a view of what lies there."""
    box = overlaid(ArrayBox(value, op, memory))
    memory.saved.append(op)
    if memory.boxes:
        memory.boxes.append(box)
    return box


def beside(original: ArrayBox, box: ArrayBox) -> bool:
    """Let a box of the same elements be a variable of its own: what is written to one is written to the other.

    Says whether nothing else could lie in the memory until now but what was derived from the array.
    """
    memory, root = original.memory, original
    while root.derivation is not None:
        root = root.derivation[0]
    alone = not memory.boxes
    if not any(x is root for x in memory.boxes):
        memory.boxes.append(root)
    box.seen = memory.writes
    memory.boxes.append(box)
    return alone


def apart(original: ArrayBox, box: ArrayBox, fn: Any, alone: bool) -> None:
    """From now on such a box is derived from the array, by ``fn``."""
    boxes = box.memory.boxes
    boxes[:] = [x for x in boxes if x is not box]
    if alone and len(boxes) == 1:
        boxes.clear()
    box.derivation = (original, fn, (), {})


def overlaid(box: ArrayBox) -> ArrayBox:
    """An array that is met in memory which was written to: what was written comes from the arrays that it was by."""
    memory = box.memory
    if memory.aside is not None and (memory.writes or not memory.boxes):
        memory.aside.settle()
        box.seen = memory.writes
    if memory.writes and not memory.boxes:
        box.seen = -1  # its next use raises
    for other in memory.boxes if memory.writes else ():
        if other.seen == memory.writes:
            copy_overlap(box, other)
        elif np.may_share_memory(box.value, other.value):
            box.seen = -1
    return box


def rebuilt(value: Any, parts: list[Any]) -> Any:
    """A tuple, list or namedtuple like ``value`` with other elements."""
    if hasattr(value, "_make"):
        return value._make(parts)
    if isinstance(value, list):
        return parts
    return type(value)(parts)


def kept_copy(array: Any) -> Any:
    """A copy that lies in memory as the array does: what reads the elements in that order must find the same one.

    Of several arrays in a tuple, which an op gave, one of copies.
    """
    if isinstance(array, (tuple, list)):
        several = (np.ndarray, tuple, list)
        return rebuilt(array, [kept_copy(x) if isinstance(x, several) else x for x in array])
    if array.flags.forc:
        return array.copy("K")
    steps = [abs(n) for n in array.strides]
    one = tuple([slice(1) if step == 0 else slice(None) for step in steps])
    part = array[one]  # the elements that come again and again are there once
    order = sorted(range(part.ndim), key=lambda i: -steps[i])
    shape = [part.shape[i] for i in order]
    room = np.empty(
        (*shape[:-1], shape[-1] + 1), array.dtype
    )  # so that it is contiguous in no order
    found = np.transpose(room[..., :-1], np.argsort(order))
    found[...] = part
    return found if found.shape == array.shape else np.broadcast_to(found, array.shape)


def move_out(tape: Any, owner: Any) -> None:
    """Something that has lent its memory takes it back: what arrays hold there moves to copies."""
    if any(memory.owner is owner for memory in (*tape.lent, *tape.memories.values())):
        for op in tape.ops:
            if isinstance(op.value, np.ndarray) and owner_of(op.value) is owner:
                op.value = kept_copy(op.value)


def give_back(tape: Any) -> None:
    """Whatever has lent its memory to arrays of a run that has ended has it back: they move to copies."""
    owners = {id(memory.owner) for memory in tape.lent}
    for op in tape.ops if owners else ():
        if isinstance(op.value, np.ndarray) and id(owner_of(op.value)) in owners:
            op.value = kept_copy(op.value)
    for memory in tape.lent:
        memory.boxes.clear()
        memory.saved.clear()
    tape.lent.clear()


def save(boxes: list[ArrayBox]) -> None:
    """Note that the values of these arrays were given to an op and must survive the next write."""
    for box in boxes:
        saved = box.memory.saved
        if not saved or saved[-1] is not box.op:
            saved.append(box.op)


def append_saved(
    tape: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any, site: Site
) -> Op:
    """Add a call that a transform makes: where its value lies in the memory of an array, it survives the next write."""
    op = append(tape, fn, args, kwargs, value, site)
    save_value(tape, op)
    return op


def save_value(tape: Any, op: Op) -> None:
    """Note that the value of an op must survive the next write, if it lies in the memory of an array of the tape's."""
    value = op.value
    if type(value) is np.ndarray and value.base is not None:
        memory = memory_of(tape, value, owner_of(value))
        if memory is not None:
            memory.saved.append(op)


def lies_in(value: Any, memory: Memory) -> bool:
    """Whether a value is an array in this storage."""
    return isinstance(value, np.ndarray) and owner_of(value) is memory.owner


def shares(value: Any, memory: Memory) -> bool:
    """Whether a value is an array in this storage, by way of whatever has lent it."""
    if lies_in(value, memory):
        return True
    lent = isinstance(value, np.ndarray) and not isinstance(owner_of(value), np.ndarray)
    return (
        lent and isinstance(memory.owner, np.ndarray) and np.may_share_memory(value, memory.owner)
    )


class Writing:
    """A write to an array: values that are still needed move out of its way, and back if nothing was written.

    ``with Writing(box) as op`` gives the version before the write; `commit` in its body makes the new one.
    """

    __slots__ = ("box", "moved", "writes")

    def __init__(self, box: ArrayBox) -> None:
        self.box = box

    def __enter__(self) -> Op:
        if self.box.memory.aside is not None:
            self.box.memory.aside.settle()
        op = current(self.box)
        op.tape.written += 1
        if op.tape.overwritten is not None:
            op.tape.overwritten.append(op)
        memory = self.box.memory
        if op.tape.undo is not None:
            op.tape.undo.append(partial(restore, memory, memory.owner.copy()))
        self.writes = memory.writes
        again = [x for x in op.tape.again if lies_in(x.value, memory)]
        written = self.box.value
        elsewhere = [x.op for x in memory.boxes if not np.may_share_memory(x.value, written)]
        stay = [old for old in memory.saved if old in elsewhere] if elsewhere else []
        self.moved = [(old, old.value) for old in (*memory.saved, *again) if old not in stay]
        for old, value in self.moved:
            old.value = kept_copy(value)
        memory.saved[:] = dict.fromkeys(stay)
        return op

    def __exit__(self, *error: Any) -> None:
        memory = self.box.memory
        if memory.writes == self.writes:
            for old, value in self.moved:
                old.value = value
                if old not in old.tape.again:
                    memory.saved.append(old)


def restore(memory: Memory, before: Any) -> None:
    """Take back what was written to an array; values that are still needed move out of its way."""
    for old in memory.saved:
        old.value = kept_copy(old.value)
    memory.saved.clear()
    np.copyto(memory.owner, before)


def commit(box: ArrayBox, op: Op) -> None:
    """Make ``op`` the version of the array and write through to its parents and aliases."""
    memory = box.memory
    tape, site = op.tape, op.site
    if isinstance(memory.owner, np.nditer):
        must_be_constant(op)
    memory.writes += 1
    before = old = box.op
    box.op, box.seen = op, memory.writes
    root = box
    while root.derivation is not None:
        parent, fn, args, kwargs = root.derivation
        if fn is operator.getitem:
            new = append(tape, setitem, (parent.op, args[0], root.op), {}, parent.value, site)
        else:
            new = append(
                tape, write_through, (parent.op, fn, args, kwargs, root.op), {}, parent.value, site
            )
        before, parent.op, parent.seen = parent.op, new, memory.writes
        root = parent
    memory.version = root.op
    for alias in memory.boxes:
        if alias is root or alias.seen != memory.writes - 1:
            continue
        if root is box and same_place(alias.value, root.value) and is_direct(op, before):
            replay_write(alias, root.op, before)
        else:
            copy_overlap(alias, root, addresses(box.value)[~left(op, old).ravel()])


def must_be_constant(op: Op) -> None:
    """Refuse a write to what an iterator of NumPy's gives: it carries it over to an array, nobody knows when."""
    if active.tracer is None or active.tracer.dependence.has(op):
        raise TraceError(
            f"{blame(user_site())}: a traced value is written to an array by way of np.nditer\nwrite to the array "
            "itself, by its indices"
        )


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


def left(write: Any, old: Op, steps: int = 8) -> Any:
    """Which elements of what a write has made are those of the old version, as far as so many ops tell."""
    found = numbers_in(write, old, steps)
    return found == np.arange(found.size).reshape(found.shape)


def numbers_in(write: Any, old: Op, steps: int) -> Any:
    """For each element of a value: as which of the old version it is known, which may be elsewhere there; or -1."""
    none = np.full(np.shape(primal(write)), -1)
    if write is old:
        return np.arange(none.size).reshape(none.shape)
    if not isinstance(write, Op) or not write.args or not steps:
        return none
    fn, (first, *rest), fewer = write.fn, write.args, steps - 1
    if fn is np.where and len(rest) == 2:
        note_decided(first)
        chosen = [np.broadcast_to(numbers_in(x, old, fewer), none.shape) for x in rest]
        return np.where(primal(first), *chosen)
    if fn not in CARRYING or np.size(primal(first)) != none.size:
        return none
    found = numbers_in(first, old, fewer).reshape(none.shape)
    if fn in (setitem, scatter_add, multiply_at):
        note_decided(rest[0])
        found[primal(rest[0])] = numbers_in(rest[1], old, fewer) if fn is setitem else -1
    return found


def note_decided(index: Any) -> None:
    """Note that which elements of memory that is shared are written goes by the data, where the index is traced."""
    parts = index if isinstance(index, tuple) else (index,)
    bounds = [y for x in parts if isinstance(x, slice) for y in (x.start, x.stop, x.step)]
    traced = any(isinstance(x, Op) for x in (*parts, *bounds))
    if traced and active.tracer is not None and active.tracer.reads is not None:
        active.tracer.reads.problem("an array lies in memory that was written to in another way")


def is_direct(write: Op, old: Op) -> bool:
    """Whether all that a write leaves of the old version comes from its operand, and not by way of another op."""
    return np.array_equal(left(write, old, 1), left(write, old))


def copy_overlap(alias: ArrayBox, written: ArrayBox, places: Any = None) -> None:
    """Let the elements that two outside arrays share come from one, which was written to: those at ``places``, or all.

    What was not written stays with the variable that it was.
    """
    mine, its = addresses(alias.value), addresses(written.value)
    shared = np.isin(mine, its if places is None else np.intersect1d(its, places))
    here, order = np.flatnonzero(shared), np.argsort(its)
    there = order[np.searchsorted(its, mine[here], sorter=order)]
    if alias.value.dtype != written.value.dtype:
        if np.may_share_memory(alias.value, written.value):
            alias.seen = -1  # its next use raises
        else:
            alias.seen = alias.memory.writes
        return
    tape, site = written.op.tape, written.op.site
    if len(here):
        index = np.unravel_index(there, written.value.shape)
        part = append(tape, operator.getitem, (written.op, index), {}, written.value[index], site)
        index = np.unravel_index(here, alias.value.shape)
        alias.op = append(tape, setitem, (alias.op, index, part), {}, alias.value, site)
    elif alias.op.value is not alias.value:  # which has moved out of the way of a write beside it
        alias.op.value = alias.value
        alias.memory.saved.append(alias.op)
    if alias.seen >= 0:
        alias.seen = alias.memory.writes


def replay_write(alias: ArrayBox, written: Op, before: Op) -> None:
    """Give the write that turned ``before`` into ``written`` to another box of the same elements.

    Each position of an argument keeps its own variable, so that ``f(v, v)`` tells the two apart.
    """
    old = alias.op
    # The write has changed its value. What it was is kept beside, where it is needed.
    if old.value is alias.value:
        old.value = before.value
    args = tuple(old if arg is before else arg for arg in written.args)
    alias.op = append(written.tape, written.fn, args, written.kwargs, alias.value, written.site)
    if not is_value_free(written.fn):
        alias.memory.saved.append(alias.op)
    alias.seen = alias.memory.writes


def write_item(box: ArrayBox, key: Any, value: Any, site: Site) -> None:
    """``box[key] = value``, with ops in the key and the value."""
    window = window_of(box)
    if window is not None:
        write_window(box, *window, primal(key), value, site)
        return
    given = primal(value)
    must_not_run_into(box.value, primal(key), given, site)
    with Writing(box) as op:
        box.value[primal(key)] = given
        commit(box, append(op.tape, setitem, (op, key, value), {}, box.value, site))


def must_not_run_into(array: Any, key: Any, given: Any, site: Site) -> None:
    """Refuse a row that NumPy writes over itself: where the strides differ, it goes on without a copy."""
    if type(given) is not np.ndarray or given.ndim != 1 or not np.may_share_memory(array, given):
        return
    if isinstance(key, np.ndarray) and key.dtype == bool and key.shape == array.shape:
        must_be_apart(array, given, site)
    part = array[key]
    if np.shape(part) != given.shape or part.base is None or part.dtype != given.dtype:
        return
    if part.strides == given.strides:
        return
    places = [addresses(x) for x in (part, given)]
    low, high = min(x.min() for x in places), max(x.max() for x in places)
    row = np.zeros(high - low + array.itemsize, np.int8)  # laid out as they are, a byte for each
    to, by = (
        np.lib.stride_tricks.as_strided(row[x[0] - low :], y.shape, y.strides)
        for x, y in zip(places, (part, given), strict=True)
    )
    by[...] = np.arange(len(by)) % 127
    expected = by.copy()
    to[...] = by
    if not np.array_equal(to, expected):
        runs_into(site)


def must_be_apart(array: Any, given: Any, site: Site) -> None:
    """Refuse what lies in an array that NumPy writes it to one by one, whatever it has still to read there."""
    if isinstance(given, list | tuple):
        for x in given:
            must_be_apart(array, x, site)
    elif isinstance(given, np.ndarray) and given.size > 1 and np.may_share_memory(array, given):
        if len(np.intersect1d(addresses(array), addresses(given))):
            runs_into(site)


def runs_into(site: Site) -> NoReturn:
    raise TraceError(
        f"{site}: NumPy writes a part of an array over elements that it has still to read\n"
        "write a copy of the part, as in u[::2] = u[:n].copy()"
    )


def write_all(box: ArrayBox, new: Op, site: Site) -> None:
    """Write the whole value of ``new``, just recorded, into the array, as ``out=`` and ``+=`` do."""
    window = window_of(box)
    if window is not None:
        write_window(box, *window, Ellipsis, new, site)
        return
    with Writing(box) as op:
        np.copyto(box.value, new.value, casting="same_kind")
        if is_laid_out_as(new.value, box.value):
            if box.value.ndim > 1:
                in_rows()
            new.value = box.value
            commit(box, new)
            box.memory.saved.append(new)
        else:
            commit(box, append(op.tape, setitem, (op, Ellipsis, new), {}, box.value, site))


def in_rows() -> None:
    """Note that what was just computed stands for what is written only where all arrays lie in memory as now."""
    if active.tracer is not None and active.tracer.reads is not None:
        active.tracer.reads.in_rows = True


def is_laid_out_as(value: Any, array: Any) -> bool:
    """Whether a value that was computed may stand for an array it is written to: of its type, shape and order.

    Sums go through memory. What NumPy makes of arrays in several orders is row by row if the first of them is. What it
    makes of arrays without axes is a number, and no array.
    """
    if not isinstance(value, np.ndarray):
        return False
    if value.dtype != array.dtype or value.shape != array.shape:
        return False
    return array.ndim < 2 or (array.flags.c_contiguous and value.flags.c_contiguous)


def refusing(array: Any) -> Any:
    """A copy for NumPy to refuse what is wrong about a write to an array; what is no array, itself."""
    if not isinstance(array, np.ndarray):
        return array
    copy = np.copy(array)
    if copy.strides != array.strides and array.size and not array.dtype.hasobject:
        # Some functions refuse what does not lie row by row.
        ends = [step * (n - 1) for step, n in zip(array.strides, array.shape)]
        first = -sum([end for end in ends if end < 0])
        room = np.zeros(first + sum([end for end in ends if end > 0]) + array.itemsize, np.uint8)
        copy = np.ndarray(array.shape, array.dtype, room, first, array.strides)
        copy[...] = array
    copy.flags.writeable = array.flags.writeable
    return copy


def phantom(array: np.ndarray) -> np.ndarray:
    """What takes a write as an array does, and raises what it raises, whatever its size: all of it is one element."""
    room = np.zeros(1, array.dtype)
    found: np.ndarray = np.ndarray(array.shape, array.dtype, room, strides=(0,) * array.ndim)
    found.flags.writeable = array.flags.writeable
    return found


def window_of(box: ArrayBox) -> tuple[ArrayBox, Any] | None:
    """For a window, or a view of one: the array that it is a window of, and the numbers of its elements there."""
    steps: list[Any] = []
    found = None
    while box.derivation is not None:
        parent, fn, args, kwargs = box.derivation
        steps.append((fn, args, kwargs))
        if fn in WINDOWS:
            found = parent, steps[::-1]
        box = parent
    if found is None:
        return None
    root, path = found
    numbers = np.arange(root.value.size).reshape(root.value.shape)
    for fn, args, kwargs in path:
        numbers = fn(numbers, *primal(args), **primal(kwargs))
    return root, numbers


def write_window(
    box: ArrayBox, root: ArrayBox, numbers: Any, key: Any, value: Any, site: Site
) -> None:
    """Write to a window: each element once, where it stands in the array that this is a window of."""
    places = numbers[key]
    plain = primal(value)
    if np.size(plain) > 1 and np.unique(places).size != places.size:
        raise TraceError(
            f"{site}: several values are written to one element of an array, by a view that shows it several times\n"
            "write to the array itself"
        )
    with Writing(root) as op:
        box.value[key] = plain
        index = np.unravel_index(places, root.value.shape)
        commit(root, append(op.tape, setitem, (op, index, value), {}, root.value, site))


# ------------------------------------------------------------------------------- views by their places


def shown_by(parent: Any, value: Any) -> Any:
    """The numbers of the elements of one array that another one shows of its memory; None where that is not all."""
    if parent.dtype != value.dtype:
        return None
    known, wanted = addresses(parent), addresses(value)
    order = np.argsort(known)
    found = np.searchsorted(known, wanted, sorter=order).clip(0, max(len(known) - 1, 0))
    if not len(known) or not np.array_equal(known[order[found]], wanted):
        return None
    return order[found].reshape(value.shape)


def window(parent: ArrayBox, value: Any, site: Site) -> ArrayBox | None:
    """Box an array that C code has made in the memory of another; None where it shows something else as well."""
    places = shown_by(parent.value, value)
    if places is None:
        return None
    op = append(parent.op.tape, at_places, (current(parent), places), {}, value, site)
    return ArrayBox(value, op, parent.memory, (parent, at_places, (places,), {}))


def turn_into(box: ArrayBox, name: str, given: Any, site: Site) -> bool:
    """``box.shape = given`` and the like: from now on a view of what it was. False where others may lie there too."""
    array = box.value
    if box.memory.boxes:
        return False
    before = array.view()
    setattr(array, name, given)
    if name == "strides":
        view: tuple[Any, tuple[Any, ...]] = (at_places, (shown_by(before, array),))
        if view[1][0] is None:
            return False
    else:
        view = (
            (np.reshape, (array.shape,)) if name == "shape" else (np.ndarray.view, (array.dtype,))
        )
    tape = box.op.tape
    for op in tape.ops:
        if op.value is array:
            op.value = before
    was = ArrayBox(before, current(box), box.memory, box.derivation)
    was.seen = box.seen
    for derived in views_of(box) if box.viewed else ():
        derived.derivation = (was, *derived.derivation[1:])
    box.op = append(tape, view[0], (was.op, *view[1]), {}, array, site)
    box.derivation, was.viewed = (was, *view, {}), True
    return True


def views_of(box: ArrayBox) -> list[ArrayBox]:
    """The arrays that are derived from another. None of them is kept by it, so all that refers to it is looked at."""
    views = [x for x in gc.get_referrers(box) if type(x) is tuple and len(x) == 4 and x[0] is box]
    return [
        x
        for view in views
        for x in gc.get_referrers(view)
        if type(x) is ArrayBox and x.derivation is view
    ]
