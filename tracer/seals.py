"""Seals: arguments that hold numbers for which a gradient has no place.

Words
-----
seal       put on a thing that is no structure of numbers, but from which numbers can be read: a set, an iterator, a
           buffer, an array of another class. Its gradient is None.
behind     what is read from a sealed thing comes in behind its seal: numbers are inputs that the seal knows of, other
           things are sealed in turn. A derivative by such an input that is asked for is an error.
readable   of a sealed thing: C code reads it as it is, so that what the code returns is behind the seal as well.
"""

from __future__ import annotations

import array
import datetime
import functools
import gc
import io
import mmap
import random
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..rules.python_builtins import tied
from ..rules.words import with_article
from . import border, frames, meaning, places
from .arrays import dtype_of, is_followed, is_traced_array
from .border import VIEWS, is_iterator, is_method, stay_outside
from .box import BOXES, ArrayBox, Box
from .held import Held, hold
from .holders import hold as keep_text
from .intrinsic import Intrinsic
from .kinds import (
    HEAP_TYPE,
    PROXIES,
    flags_of,
    has,
    has_dict,
    is_number_class,
    is_one_of,
    isinstance,
    mro_of,
)
from .origins import joined
from .session import Tracer
from .shown import C_DATA
from .structure import Leaf, Sealed, Tree, sources
from .tape import Input, Op, Site, append
from .text import drawn as drawn_text

NUMBERS = frozenset(t for t in np.sctypeDict.values() if issubclass(t, np.inexact)) | {
    float,
    complex,
}


def underlying(view: Any) -> Any:
    """The mapping that a view or a proxy of one shows."""
    return next((x for x in gc.get_referents(view) if has(type(x), "keys")), None)


def sealed(tracer: Tracer, value: Any, name: str) -> tuple[Any, Tree] | None:
    """An argument, or a part of one, that has to be sealed: what the traced function sees, and its tree; else None."""
    kind = type(value)
    known = tracer.sealed.get(id(value))
    if known is not None:
        return known[2], known[1]
    advice = advice_for(value, kind)
    if advice is None:
        return None
    seal = Sealed(f"{name}, {with_article(kind.__name__)}", advice, [])
    put_on(tracer, value, seal)
    for x in kept_by(value):
        behind(tracer, x, seal.name, seal)
    if isinstance(value, border.COLLECTIONS):
        stay_outside(tracer, value)
    seen = value
    if is_one_of(kind, VIEWS) and VIEWS[kind] != "keys":
        inside, tree = meaning.boxing.admit(tracer, underlying(value), name, "argument")
        seal.ops += sources(tree)
        seen = getattr(inside, VIEWS[kind])()
    elif is_one_of(kind, PROXIES):
        put_on(tracer, meaning.sights.meant(value), seal)
    elif kind is slice:
        ends = (value.start, value.stop, value.step)
        seen = slice(*[behind(tracer, x, name, seal) for x in ends])
    if seen is not value:
        tracer.viewed[id(seen)] = (seen, value)
    tracer.sealed[id(value)] = (value, seal, seen)
    return seen, seal


def put_on(tracer: Tracer, value: Any, seal: Sealed) -> None:
    """Put a seal on something that is no structure of numbers."""
    kind = type(value)
    if is_one_of(kind, BOXES) or id(value) in tracer.holders or isinstance(value, types.ModuleType):
        return
    if is_one_of(kind, border.ATOMS) and not is_one_of(kind, border.SEALABLE) and kind is not bytes:
        return
    tracer.holders[id(value)] = (value, seal)
    meaning.sights.note_code(tracer, value)
    if kind is types.MethodType:
        if not isinstance(value.__self__, Intrinsic) and id(value.__self__) not in tracer.outside:
            meaning.boxing.enter(tracer, value.__self__, type(value.__self__).__name__, None, seal)
    elif not is_one_of(kind, NOT_READ) and not isinstance(value, type):
        tracer.readable[id(value)] = seal


def kept_by(value: Any) -> list[Any]:
    """What a sealed object keeps and others find without asking it: functions, and what is kept for it elsewhere."""
    if isinstance(value, weakref.finalize):
        info = finalizers.get(value)
        return [] if info is None else [info.func, info.args, info.kwargs]
    if isinstance(value, weakref.WeakSet):
        return [*value]
    if isinstance(value, super):
        return [value.__self__]  # type: ignore[attr-defined]
    return [x for x in frames.referents(value) if may_keep(x)]


def may_keep(value: Any) -> bool:
    """Whether something is a callable that may keep numbers, and not one of a module in C, which all share."""
    kind = type(value)
    if is_one_of(kind, border.OF_C):
        return not isinstance(value.__self__, (type, types.ModuleType))
    own = flags_of(kind) & HEAP_TYPE or is_one_of(kind, NOT_READ) or kind is types.MethodType
    return bool(own) and callable(value) and not isinstance(value, type)


finalizers: Any = vars(weakref.finalize)["_registry"]
NOT_READ = frozenset(
    (
        types.FunctionType,
        functools.partial,
        staticmethod,
        classmethod,
        property,
    )
)


def advice_for(value: Any, kind: type) -> str | None:
    """What to do about an argument that has to be sealed; None for one that need not."""
    if kind is types.GeneratorType or is_iterator(value):
        return "make a list of it"
    if isinstance(value, np.ndarray):
        return None if is_followed(value) or not holds_numbers(value) else conversion_of(value)
    if isinstance(value, memoryview):
        return AS_ARRAY if set(value.format) & set("efdgFD") else None
    if isinstance(value, array.array):
        return AS_ARRAY if value.typecode in "fd" else None
    if is_one_of(kind, VIEWS) and underlying(value) is not None:
        return "pass the dict itself"
    if isinstance(value, set) and kind is not set:
        return "pass a list" if any(map(is_number, [*set.__iter__(value)])) else None
    if is_one_number(value):
        return "convert it with float() before the call"
    if isinstance(value, BaseException):
        return "pass what it holds as arguments" if value.args else None
    if isinstance(value, types.CellType):
        return "pass what it holds as an argument"
    if isinstance(value, weakref.WeakSet):
        return "pass a list"
    if isinstance(value, weakref.ref):
        return "pass the object itself"
    if kind is slice:
        ends = (value.start, value.stop, value.step)
        return "pass its ends as arguments" if any(map(is_number, ends)) else None
    if is_method(kind):
        owner = value.__self__
        bound = kind is not types.MethodType and not isinstance(owner, (type, types.ModuleType))
        return "pass the object that it is a method of" if bound else None
    if is_closed(value, kind):
        return "pass what it holds as arguments"
    base = frames.native(kind)
    if base is not None and not (frames.can_be_made(kind) and frames.is_read_by_key(kind)):
        return f"pass {with_article(base.__name__)} of its items"
    return None


def is_closed(value: Any, kind: type) -> bool:
    """Whether an object is one of C, which gives what it holds by its methods alone. Some are known to hold none."""
    if is_one_of(kind, CLOSED) or isinstance(value, OPEN_IN_PART):
        return True
    if is_one_of(kind, border.ATOMS) or isinstance(value, HARMLESS) or kind.__module__ == "re":
        return False
    if has_dict(value) or frames.native(kind) is not None or is_number_class(kind):
        return False
    return not all("__slots__" in vars(base) for base in mro_of(kind)[:-1])


# What has attributes beside what it keeps.
OPEN_IN_PART = (C_DATA, threading.local, staticmethod, classmethod, property, weakref.finalize)
CLOSED = frozenset((bytearray, mmap.mmap, np.void, np.record, *PROXIES))
# Dates are made of integers, and what generators draw is random.
HARMLESS = (
    *(np.ndarray, np.generic, str, bytes, types.MappingProxyType, random.Random),
    io.IOBase.__mro__[1],  # whose own class is no abstract one
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
    *(np.random.Generator, np.random.RandomState, np.random.BitGenerator),
)


AS_ARRAY = "convert it with np.array() before the call"


def conversion_of(value: np.ndarray[Any, Any]) -> str:
    """How an array of another class or dtype becomes one of numbers."""
    dtype = dtype_of(value)
    if dtype.names is not None:
        return f"pass its fields on their own before the call: x[{dtype.names[0]!r}]"
    return (
        "convert it to floats before the call: x.astype(float)" if dtype.kind == "O" else AS_ARRAY
    )


def is_one_number(value: Any) -> bool:
    """Whether a value is a number of another class: its own methods take it apart."""
    if isinstance(value, np.generic):
        return isinstance(value, np.inexact) and not is_one_of(type(value), NUMBERS)
    return is_number_class(type(value)) and not isinstance(value, int)


def is_number(value: Any) -> bool:
    """Whether a value, or a part of a tuple, is a number that may have a derivative."""
    if isinstance(value, (tuple, frozenset)):
        return any(map(is_number, value))
    return isinstance(value, (float, complex, np.inexact))


def holds_numbers(value: Any) -> bool:
    """Whether an array of another class or dtype holds numbers that may have a derivative."""
    dtype = dtype_of(value)
    if dtype.kind == "O":
        return not all(isinstance(x, (str, bytes, int, type(None))) for x in value.flat)
    if dtype.names is not None:
        return any(dtype[name].base.kind in "fcOV" for name in dtype.names)
    return dtype.kind in "fc"


# ---------------------------------------------------------------------------------- reading behind a seal


def drawn(tracer: Tracer, items: Any, name: str, seal: Sealed) -> Iterator[Any]:
    """The elements of a sealed iterable, each drawn from it when it is asked for."""
    for x in items:
        yield behind(tracer, x, name, seal)


def behind(tracer: Tracer, value: Any, name: str, seal: Sealed | Held) -> Any:
    """Something that was read from a sealed thing, as the traced function sees it."""
    if is_one_of(type(value), BOXES):
        return value
    return meaning.boxing.enter(tracer, value, name, None, seal)


def seals_of(tracer: Tracer, values: Any, depth: int = 3) -> list[Sealed]:
    """The seals on readable things among these values, also in tuples and lists of them."""
    found = []
    for x in values:
        seal = tracer.readable.get(id(x))
        if seal is not None:
            found.append(seal)
        elif is_one_of(type(x), (tuple, list)) and len(x) < 100 and depth:
            found += seals_of(tracer, x, depth - 1)
    return found


def holds_traced(tracer: Tracer, value: Any) -> bool:
    """Whether numbers that may have a derivative are behind a seal on a value."""
    found = seals_of(tracer, (value,))
    return any(not isinstance(seal, Held) or seal.current() for seal in found)


def as_array(tracer: Tracer, array: Any, seal: Sealed) -> Any:
    """All of a sealed array of another class, as a plain one, by which there is a derivative."""
    found: Any = tracer.converted.get(id(array))
    if found is None and isinstance(seal, Held):
        return None
    if found is None:
        plain = np.asarray(array)
        if not is_traced_array(plain) or plain.dtype.kind not in "fc":
            return None
        found = tracer.input(seal.name, plain, "argument")
        tracer.converted[id(array)] = found
        if seal.leaf is None and isinstance(tracer.sealed.get(id(array), (None, None))[1], Sealed):
            seal.leaf = Leaf(found.op, plain)
        else:
            seal.ops.append(found.op)
            tracer.dependence.want([found.op])
    return found


class Unfollowed:
    """Gives its first argument, into which the others went as well, nobody knows how.

    ``reason`` is what to tell who asks for a derivative by the others.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.__name__ = name
        self.reason = reason

    def __call__(self, x: Any, *others: Any) -> Any:
        return x


def shut(tracer: Tracer, thing: Any, boxes: list[Box]) -> None:
    """What C code reads, from now on, of a thing that is plain depends on these; its attributes are read as before."""
    if boxes and id(thing) not in tracer.readable:
        ops = [box.op for box in boxes]
        hold(tracer, Held(f"{with_article(type(thing).__name__)}", lambda: ops, thing))
        texts = [drawn_text(tracer, op, "", places.user_site()).origin for op in ops]
        keep_text(tracer.texts, thing, joined(texts))


def tokens(tracer: Tracer, seal: Sealed | Held) -> list[Op]:
    """Ops that stand for all that can be read from a thing."""
    if isinstance(seal, Held):
        return seal.current()
    op = tracer.input(seal.name, 0.0, "outside").op
    seal.ops.append(op)
    tracer.dependence.want([op])
    return [op]


def met(tracer: Tracer, box: Box, seal: Sealed | Held) -> Box:
    """A number or array that was just let in from behind a seal."""
    if isinstance(seal, Held):
        return tied_box(tracer, places.user_site(), box, seal)
    seal.ops.append(box.op)
    tracer.dependence.want([box.op])
    return box


def through(tracer: Tracer, site: Site, seals: list[Sealed], how: Any, *what: Any) -> Any:
    """What C code, or an operator, makes of sealed things and perhaps of traced values: ``how(tracer, *what)``."""
    start, readable, tracer.readable = len(tracer.tape.ops), tracer.readable, {}
    before, tracer.reading = tracer.reading, seals
    try:
        result = how(tracer, *what)
    finally:
        tracer.readable, tracer.reading = {**readable, **tracer.readable}, before
    entered = [op for op in tracer.tape.ops[start:] if isinstance(op, Input)]
    for seal in seals:
        if isinstance(seal, Sealed):
            seal.ops += entered
            tracer.dependence.want(entered)
        result = tied_to(tracer, site, seal, result)
    return result


def tied_to(tracer: Tracer, site: Site, seal: Sealed | Held, result: Any) -> Any:
    """A result, into which something behind the seal went."""
    kind = type(result)
    if result is NotImplemented:
        return result
    if kind is tuple:
        return tuple([tied_to(tracer, site, seal, x) for x in result])
    if is_one_of(kind, (list, dict)):  # which may have been let in already
        result = tracer.shadows.get(id(result), (None, result))[1]
    if is_one_of(kind, (list, dict)) and id(result) in tracer.originals:
        for key, x in [*frames.items_of(result, kind)]:
            result[key] = tied_to(tracer, site, seal, x)
        return result
    if not is_one_of(kind, BOXES):
        return behind(tracer, result, seal.name, seal)
    if isinstance(seal, Held) and kind is ArrayBox and result.memory.owner is seal.thing:
        return result  # an array in its memory, which knows what it shows
    return tied_box(tracer, site, result, seal)


def reason(site: Site, seal: Held) -> str:
    """What to tell who asks for a derivative by what a thing gives."""
    return seal.reason or (
        f"{places.blame(site)}: what {seal.name} gives depends on traced values that it was given before, or that "
        "lie in its memory, and cannot be followed\nkeep them in a list, a dict or an array"
    )


def tied_box(tracer: Tracer, site: Site, box: Box, seal: Sealed | Held) -> Box:
    """The same number or array, into which something behind the seal went."""
    fn: Any = tied
    others = tokens(tracer, seal)
    if isinstance(seal, Held):
        fn = Unfollowed(seal.name, reason(site, seal))
    if not others:
        return box
    op = append(tracer.tape, fn, (box.op, *others), {}, box.value, site)
    if type(box) is ArrayBox:
        return ArrayBox(box.value, op, box.memory, (box, fn, op.args[1:], {}))
    return Box(box.value, op)
