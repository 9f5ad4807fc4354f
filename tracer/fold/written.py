"""Arrays that the run has made and writes to: memories, of which each use reads what is in them now.

Which ones these are, a run finds out where it writes: the place where the array was made is noted, and the run recorded
anew. A basic index of one gives a view, which is a memory as well; whatever else is computed of one is new.

Words
-----
anew      of a function: what it gives lies in memory of its own, whatever it is given.
content   what is in an array now: an operand of ops that stand before anything else is written.
"""

from __future__ import annotations

import operator
import weakref
from typing import Any

import numpy as np

from ...rules.words import with_article
from ..kinds import is_one_of
from .basics import NUMBERS, plain, refuse
from .nested import frame as framed
from .nested import plainly
from .recorder import Box, Passing, Recorder
from .region import (
    ARRAY,
    CONTENT,
    CONTENTS,
    DTYPES,
    FLOATS,
    GET,
    PUT,
    REPEAT,
    SCALARS,
    TRANSPOSED,
    VIEW,
    Access,
    Array,
    Op,
    kind_of,
)

EMPTY = (np.empty, np.empty_like)  # what is made to be written to
METHODS = "copy sum mean max min prod var std dot argmax argmin argsort cumsum cumprod searchsorted any all clip repeat"
ANEW = frozenset((
    *EMPTY, np.zeros, np.ones, np.full, np.zeros_like, np.ones_like, np.full_like, np.copy, np.array, np.arange,
    np.linspace, np.eye, np.concatenate, np.stack, np.vstack, np.hstack, np.sum, np.mean, np.max, np.min, np.amax,
    np.amin, np.prod, np.var, np.std, np.dot, np.vdot, np.inner, np.outer, np.cumsum, np.where, np.roll, np.sort,
    np.clip, np.tile, np.repeat, np.argmax, np.argmin, np.count_nonzero, np.any, np.all, np.size, np.ndim, np.shape,
    np.allclose, np.array_equal, np.linalg.solve, np.linalg.inv, np.linalg.det, len, abs,
    np.searchsorted, np.digitize, np.argsort, np.flatnonzero, np.cumprod, np.median, np.kron,
    np.convolve, np.append, np.isclose, np.triu, np.tril, np.linalg.norm,
    *[getattr(np.ndarray, name) for name in METHODS.split()],
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.matmul, operator.neg, operator.pos, operator.abs, operator.lt, operator.le, operator.gt, operator.ge,
    operator.eq, operator.ne, operator.and_, operator.or_, operator.xor, operator.invert,
))  # fmt: skip


def is_anew(fn: Any, kwargs: Any = ()) -> bool:
    """Whether what a function gives is nobody else's."""
    return (type(fn) is np.ufunc or fn in ANEW) and "copy" not in kwargs


# --------------------------------------------------------------------------------------------- where they are made


def settled(recorder: Recorder, key: Any, box: Box) -> Any:
    """An array that was made anew: a memory, if what is made here is written to."""
    x = box.value
    if not is_array(box):
        return box
    if key not in recorder.written:
        recorder.made[id(x.base)] = key, weakref.ref(x.base)
        return box
    made = Array(np.array(x, order="K"), blank=box.op.fn in EMPTY)
    return recorder.born((key, ARRAY), ARRAY, (box,), made)


def must_be_memory(recorder: Recorder, box: Box) -> Any:
    """An array, or a view of one, is written to that is followed as a value: no more so, if the run has made it."""
    recorder.as_memory(box)
    return refuse("an array is written to that the function has not made anew")


# ------------------------------------------------------------------------------------------------ reads and writes


def must_be_filled(x: Array) -> None:
    if x.whole.blank:
        refuse("what is in an empty array is looked at")


def content(recorder: Recorder, key: Any, x: Array) -> Box:
    """What is in an array, for an op that comes next."""
    must_be_filled(x)
    kind = kind_of(x.value)
    op = recorder.add((key, CONTENT), CONTENT, (x,), kind)
    box: Box = recorder.read_only(x.value, op)
    op.now = box
    return box


def contents(recorder: Recorder, key: Any, items: list[Array]) -> Any:
    """A list of what is in arrays, for an op that comes next."""
    for x in items:
        must_be_filled(x)
    same = recorder.born((key, "same"), REPEAT, (items, 1), [*items])
    values: Any = [recorder.read_only(np.array(x.value, order="K")) for x in items]
    return recorder.born((key, CONTENTS), CONTENTS, (same,), values)


def get(recorder: Recorder, key: Any, x: Array, index: Any) -> Any:
    """``x[index]``: a number, a view, or a new array."""
    found: list[Any] = []
    frame = framed(index, found)
    viewed = is_basic(index)
    if not viewed and not is_array(index):
        return refuse(
            "an array that is written to is asked for something else than numbers or slices"
        )
    value = done(operator.getitem, x.value, plainly(index))
    if type(value) is np.ndarray and viewed:
        if not value.ndim:
            return refuse("a view without axes is taken")
        view = Array(value, of=(x, frame, found))
        return recorder.name(view, access(recorder, key, VIEW, (x, *found), kind_of(view), frame))
    must_be_filled(x)
    op = access(recorder, key, GET, (x, *found), kind_of(value), frame)
    box = op.now = recorder.read_only(value, op)
    return settled(recorder, key, box)


def transposed(recorder: Recorder, key: Any, x: Array) -> Any:
    """``x.T``, which is a view."""
    view = Array(x.value.T, of=(x, TRANSPOSED, []))
    return recorder.name(view, access(recorder, key, VIEW, (x,), kind_of(view), TRANSPOSED))


def put(recorder: Recorder, key: Any, x: Array, index: Any, value: Any) -> None:
    """``x[index] = value``."""
    found: list[Any] = []
    frame = framed(index, found)
    if not is_basic(index) and not (is_array(index) and index.value.dtype == bool):
        refuse("an array is written to by something else than numbers, slices or a mask")
    if type(value) is Array:
        if is_there(recorder, x, frame, found, value):
            return
        value = content(recorder, (key, "value"), value)
    kind = kind_of(plain(value))
    if not is_one_of(kind, NUMBERS | SCALARS) and kind is not bool and not is_array(value):
        refuse(f"{with_article(kind.__name__)} is written into an array")
    floats = np.result_type(plain(value)).type in FLOATS
    if floats and x.value.dtype.type not in FLOATS:
        refuse(f"a number with a derivative is written into an array of {x.value.dtype}")
    done(operator.setitem, x.value, plainly(index), plain(value))
    x.whole.blank = False
    access(recorder, key, PUT, (x, value, *found), type(None), frame)


def is_there(recorder: Recorder, x: Array, frame: Any, found: list[Any], value: Array) -> bool:
    """Whether a view is put where it is one of, as after ``x[1:] += 1``, and has been nothing else since."""
    names, _ = recorder.memories[id(value)]
    if value.of is None or value.of[:2] != (x, frame) or len(names) > 1:
        return False
    pairs = zip(found, value.of[2], strict=True)
    return all(a is b or (type(a) is type(b) is int and a == b) for a, b in pairs)


def access(recorder: Recorder, key: Any, fn: str, args: Any, kind: Any, frame: Any) -> Op:
    """The op of a read or a write by index."""
    key = key, fn, frame
    op: Op = recorder.add(
        key, fn, args, kind, lambda given: Access(key, fn, given, kind, recorder.region, frame)
    )
    return op


def done(fn: Any, *args: Any) -> Any:
    """What NumPy raises has the call traced."""
    try:
        return fn(*args)
    except Exception as error:
        raise Passing(f"an index of an array raises {with_article(type(error).__name__)}") from None


def is_array(x: Any) -> bool:
    """Whether something is an array with axes that is followed as a value."""
    return (
        type(x) is Box
        and type(x.value) is np.ndarray
        and x.value.dtype in DTYPES
        and x.value.ndim > 0
    )


def is_basic(index: Any) -> bool:
    """Whether an index takes one place along each axis, or a slice."""
    if type(index) is tuple:
        return all(map(is_basic, index)) and all(type(x) is not tuple for x in index)
    if type(index) is slice:
        return all(x is None or is_count(x) for x in (index.start, index.stop, index.step))
    return index is None or index is ... or is_count(index)


def is_count(x: Any) -> bool:
    return type(plain(x)) in (int, np.int64, np.intp)
