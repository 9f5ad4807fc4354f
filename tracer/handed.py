"""What C code of which nothing is known may have done with what it was handed.

Words
-----
handed   arrays that C code got hold of: as arguments, through objects among them, by an address, or in an earlier call.
writer   a callable that may write to what it is handed. Whether it did cannot be told from what stands there after the
         call: it may have written what was there before. So the array is, from then on, what the callable made of it.
keeper   an object that C code was handed along with traced values: it may hold them now, so what is read from it later
         depends on them.
known    a callable of Python's standard library or of NumPy: it neither writes nor keeps, but for a few.
"""

from __future__ import annotations

import array
import ctypes
import itertools
import mmap
import pickle
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..rules.permissions import left_by
from . import seals
from .arrays import Writing, byte_bounds, commit, window_of
from .border import ATOMS, boxes_behind
from .box import BOXES, ArrayBox, Box
from .errors import TraceError
from .held import Held, hold
from .holders import belong
from .kinds import attribute, has_dict, is_one_of, isinstance, own_dict
from .places import blame, module_of
from .record import append, has_box
from .session import Tracer
from .shown import C_DATA
from .structure import is_container
from .tape import Op, Site, fn_name, ops_in

POINTERS = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p, ctypes._Pointer)
CAST = ctypes._cast  # type: ignore[attr-defined]
FOREIGN_FUNCTION: type = ctypes.CFUNCTYPE(None).__mro__[1]

NUMPY_WRITERS = frozenset(
    "shuffle setfield byteswap resize itemset fill sort partition put copyto place putmask fill_diagonal at "
    "__setitem__ __setstate__".split()
)
BUFFERS = (bytearray, memoryview, array.array, mmap.mmap)
BUFFER_WRITERS = frozenset(
    "__setitem__ __iadd__ __imul__ byteswap reverse write write_byte move".split()
)
PICKLERS = frozenset(("_pickle", "pickle", "marshal"))
BLAS_WRITERS = ("axpy", "swap", "scal", "copy", "rot", "rotm")


def home_of(fn: Any) -> str:
    """The module that a callable, or the class of what it is a method of, comes from."""
    if type(fn) is types.FunctionType:
        return module_of(fn)
    owner = attribute(fn, "__self__")
    if isinstance(owner, types.ModuleType):
        return str(attribute(owner, "__name__", ""))
    if isinstance(owner, (pickle.Pickler, pickle.Unpickler)):  # or of a class that derives from it
        return "_pickle"
    home = attribute(fn, "__objclass__") or (type(owner) if owner is not None else None)
    found = attribute(fn, "__module__") or getattr(home or type(fn), "__module__", None)
    return found if isinstance(found, str) else ""


def is_known(fn: Any) -> bool:
    """Whether a callable is known to keep nothing that it is handed, and not to look into objects for numbers."""
    root = home_of(fn).partition(".")[0]
    name = attribute(fn, "__name__", "")
    if name in BUFFER_WRITERS and isinstance(attribute(fn, "__self__"), BUFFERS):
        return False
    if isinstance(fn, np.ufunc):
        return True
    if root == "numpy":
        return name not in NUMPY_WRITERS
    if root in sys.stdlib_module_names:
        return root not in ("ctypes", "_ctypes", *PICKLERS) and "into" not in name
    return False


def may_write(fn: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a callable may write to the arrays that it is handed."""
    if is_known(fn) or home_of(fn) in PICKLERS:
        return False
    if type(fn).__name__ == "fortran":  # of BLAS and LAPACK, which are asked to
        asked = any(value for key, value in kwargs.items() if key.startswith("overwrite"))
        return asked or fn.__name__.rpartition(" ")[2][1:] in BLAS_WRITERS
    return True


class Handed:
    """The arrays that a call gets hold of. In its body the call is made; then ``written`` says what became of them."""

    def __init__(
        self, tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, arrays: list[ArrayBox]
    ) -> None:
        self.tracer, self.site, self.fn = tracer, site, fn
        # In its own rule a function is a primitive: whether it has written is seen by what is there.
        self.writes = may_write(fn, kwargs) and fn not in tracer.bodies
        self.behind: list[Box] = []
        if not is_known(fn):
            given = (attribute(fn, "__self__"), *args, *kwargs.values())
            self.behind = found_behind(tracer, [x for x in given if not is_one_of(type(x), BOXES)])
        more = [box for box in self.behind if type(box) is ArrayBox]
        if self.writes:
            more += [box for seal in tracer.reading for box in getattr(seal, "arrays", ())]
            more += lying_in(tracer, (getattr(fn, "__self__", None), *args, *kwargs.values()))
        if isinstance(fn, FOREIGN_FUNCTION):
            more += addressed(tracer, args) + tracer.handed
            known = {id(box) for box in tracer.handed}
            tracer.handed += [box for box in arrays if id(box) not in known]
        unique = {id(box): box for box in (*arrays, *more) if box.value.flags.writeable}
        self.arrays = list(unique.values())
        self.sources = [box.op for box in self.behind]
        if self.arrays and self.writes:
            self.sources += [op for seal in tracer.reading for op in seals.tokens(tracer, seal)]

    def __enter__(self) -> Handed:
        self.writing = [Writing(box) for box in self.arrays]
        before = [writing.__enter__() for writing in self.writing]
        if self.writes:  # what is not written is as it was
            self.sources += [op for op in before if op not in self.sources]
        self.before = [] if self.writes else [box.value.tobytes() for box in self.arrays]
        return self

    def __exit__(self, *error: Any) -> None:
        for writing in reversed(self.writing):
            writing.__exit__(*error)

    def written(self, operands: Any, options: Any, targets: Iterable[Any] = ()) -> None:
        """Make what the call has written, or may have, the versions of the arrays; ``targets`` are certain."""
        targets = list(targets)
        for box, before in itertools.zip_longest(self.arrays, self.before):
            certain = any(box.value is x for x in targets)
            if self.writes or certain or box.value.tobytes() != before:
                window = window_of(box)
                root = box if window is None else window[0]
                commit(root, self.record(operands, options, root.value))
                if self.tracer.reads is not None:
                    self.tracer.reads.problem(
                        f"{fn_name(self.fn)} may write into an array", self.site
                    )

    def record(self, operands: Any, options: Any, value: Any) -> Op:
        """Put the call on the tape, as what made a value; nobody knows how, and an error will say so."""
        given = (*operands, tuple(self.sources)) if self.sources else operands
        fn = self.fn
        if fn in self.tracer.bodies:  # its rule tells of what it gives, not of what it leaves
            fn, given = left_by, (fn, *given)
        op = append(self.tracer.tape, fn, given, options, value, self.site)
        self.tracer.tape.callers[op] = blame(self.site)
        return op

    def keep(self, operands: Any, options: Any, given: Iterable[Any]) -> None:
        """What was given along with traced values may hold them now."""
        if is_known(self.fn):
            return
        keepers = [x for thing in given for x in with_memory(thing) if may_keep(x)]
        if keepers and (self.behind or has_box((operands, options)) or holds_op(operands, options)):
            ops = [self.record(operands, options, None)]
            for seal in self.tracer.reading:  # on one of them, which holds more than this
                ops += seal.current() if isinstance(seal, Held) else ()
            for x in [y for thing in keepers for y in with_wholes(self.tracer, thing)]:
                hold(self.tracer, Held(fn_name(self.fn), lambda: ops, x, self.arrays))

    def tied(self, result: Any) -> Any:
        """A result, as far as it may depend on what the call found behind objects."""
        if not self.behind or result is None or isinstance(result, (bool, int, str)):
            return result
        ops = [box.op for box in self.behind]
        held = Held(fn_name(self.fn), lambda: ops, result)
        if id(result) in self.tracer.outside or id(result) in self.tracer.readable:
            return result
        return seals.tied_to(self.tracer, self.site, held, result)


def holds_op(operands: Any, options: Any) -> bool:
    """Whether a number or an array that may have a derivative is among the operands of a call."""
    return any(not isinstance(op.value, (int, np.integer)) for op in ops_in((operands, options)))


def found_behind(tracer: Tracer, given: Iterable[Any]) -> list[Box]:
    """The boxes that can be reached through objects."""
    seen: set[int] = set()
    found: dict[int, Box] = {}
    for x in given:
        if not is_one_of(type(x), ATOMS) and not is_container(x):
            for box in itertools.islice(boxes_behind(tracer, x, seen), 1000):
                found[id(box.op)] = box
    return list(found.values())


def may_keep(x: Any) -> bool:
    """Whether an object can hold numbers that C code puts into it."""
    kind = type(x)
    if (
        is_one_of(kind, ATOMS)
        or is_one_of(kind, BOXES)
        or is_container(x)
        or isinstance(x, (type, np.dtype))
    ):
        return False
    if isinstance(x, (float, complex, str, bytes, np.generic, types.ModuleType)):
        return False
    module = str(kind.__module__)  # which a class of ctypes may lack
    return not module.startswith("numpy.random") and module not in HOLDING_NONE


HOLDING_NONE = frozenset(("random", "_random", "_io", "io"))


def called_later(tracer: Tracer, fn: Any, callbacks: list[Any]) -> list[Any]:
    """The functions that C code may call: those that it is handed, and those that it was handed before."""
    if not may_call(fn):
        return callbacks
    known = tracer.called_later
    earlier = [x for x in [reference() for reference in [*known.values()]] if x is not None]
    for x in callbacks:
        key = id(x)
        if key not in known:
            known[key] = weakref.ref(x, lambda _, key=key: known.pop(key, None))  # type: ignore[misc]
    return [*{id(x): x for x in (*callbacks, *earlier)}.values()]


def may_call(fn: Any) -> bool:
    """Whether a callable may keep a function that it is given, to call it later, or call one that others have kept."""
    home = home_of(fn)
    return home in CALLING_LATER or not (is_known(fn) or home in PICKLERS)


CALLING_LATER = frozenset(("sqlite3", "_sqlite3"))


def note_parts(tracer: Tracer, fn: Any, args: Any, value: Any) -> None:
    """What C code made of a thing may be a part of it, or show it: what is put into the part is read from the whole."""
    whole = attribute(fn, "__self__")
    if whole is None or isinstance(whole, (type, types.ModuleType)):
        whole = args[0] if args else None
    made = value if is_one_of(type(value), (tuple, list)) else (value,)
    for x in args if value is None else made:  # it may have put them there
        belong(tracer.texts, whole, x, type(fn) is not types.FunctionType or is_known(fn))
    if whole is None or not is_store(whole) or is_known(fn):
        return
    parts, reference = tracer.parts, weak(whole)
    above = living(parts.get(id(whole)))
    for part in made:
        key = id(part)
        if reference is not None and part is not whole and is_store(part):
            own = weak(part, lambda _, key=key: parts.pop(key, None))  # type: ignore[misc]
            if own is not None:
                parts[key] = own, reference, above


def is_store(x: Any) -> bool:
    """Whether a thing has a place of its own for what it holds, of which nothing is known."""
    return may_keep(x) and not isinstance(x, (np.ndarray, types.FunctionType))


def weak(x: Any, *then: Any) -> Any:
    """A reference that does not keep a thing alive; None where there can be none."""
    try:
        return weakref.ref(x, *then)
    except TypeError:
        return None


def living(known: Any) -> Any:
    """What is known of a part, or of its whole if that is no more, whose own whole may be there still."""
    while known is not None and known[1]() is None:
        known = known[2]
    return known


def with_wholes(tracer: Tracer, thing: Any) -> Iterable[Any]:
    """A thing, what it is a part of, and parts of other things that it has for attributes."""

    def around(x: Any) -> list[Any]:
        known = living(tracer.parts.get(id(x)))
        own = own_dict(x) if tracer.parts and has_dict(x) else None
        parts = [y for y in list((own or {}).values()) if id(y) in tracer.parts]
        return parts if known is None else [known[1](), *parts]

    return reached(thing, around)


def with_memory(thing: Any) -> Iterable[Any]:
    """A thing, and the data of ctypes that it refers to."""

    def behind(x: Any) -> list[Any]:
        if isinstance(x, C_DATA):
            return held_by(x._objects)  # type: ignore[attr-defined]
        # What byref() gives.
        return [x._obj] if type(x).__module__ == "_ctypes" and hasattr(x, "_obj") else []

    return reached(thing, behind)


def reached(thing: Any, others: Callable[[Any], Iterable[Any]]) -> Iterable[Any]:
    """A thing, and all that ``others`` of it and of these lead to, each once."""
    todo, seen = [thing], {id(None)}
    while todo:
        x = todo.pop()
        if id(x) not in seen:
            seen.add(id(x))
            yield x
            todo += others(x)


def held_by(objects: Any) -> list[Any]:
    """What data of ctypes keep alive that has memory: they lie in it, or point to it."""
    if type(objects) is dict:
        return [part for x in list(objects.values()) for part in held_by(x)]
    if type(objects) is memoryview:
        return [objects.obj]
    return [objects] if isinstance(objects, C_DATA) else []


def lying_in(tracer: Tracer, given: Iterable[Any]) -> list[ArrayBox]:
    """The arrays that lie in the memory of something that was given."""
    things = [x.obj if isinstance(x, memoryview) else x for x in given]
    memories = [tracer.tape.memories.get(id(x)) for x in things if not is_one_of(type(x), BOXES)]
    return [
        box for memory in memories if memory is not None and memory.lent for box in memory.boxes
    ]


def look_at_addresses(tracer: Tracer, site: Site, fn: Any, args: Any, traced: bool) -> None:
    """Refuse addresses behind which nobody can look: of objects, or beside ``traced`` values of what C code writes."""
    if fn is ctypes.cast or fn is CAST:
        if args[-1] is ctypes.py_object and type(args[0]) is int:
            raise TraceError(
                f"{blame(site)}: ctypes.cast makes an object of an address, which may hold a traced value\n"
                "use the object itself"
            )
    elif traced and isinstance(fn, FOREIGN_FUNCTION):
        for x, kind in itertools.zip_longest(args, getattr(fn, "argtypes", None) or ()):
            if not (points(x) or (type(x) is int and points(kind))) or addressed(tracer, [x]):
                continue
            raise TraceError(
                f"{blame(site)}: {fn_name(fn)} is given an address beside a traced value, on which may depend what "
                "it writes there\nhand over a pointer, as byref() makes one, or write a @wengert.custom_rule for it"
            )


def points(x: Any) -> bool:
    """Whether it is a class of pointers, or a pointer that does not know what it points to."""
    if isinstance(x, type):
        return issubclass(x, POINTERS)
    return isinstance(x, POINTERS[:3]) and not x._objects  # type: ignore[attr-defined]


def addressed(tracer: Tracer, args: Any) -> list[ArrayBox]:
    """The arrays from outside whose addresses a function of ctypes is given."""
    found = [x for x in map(address, args) if x is not None]
    boxes = [box for memory in [*tracer.memories.values()] for box in memory.boxes]
    ranges = [(byte_bounds(box.value), box) for box in boxes]
    return [box for (low, high), box in ranges if any(low <= x < high for x in found)]


def address(x: Any) -> int | None:
    """The address that an argument of a foreign function stands for."""
    if type(x) is int:
        return x
    if not isinstance(x, C_DATA):
        return None
    try:
        return ctypes.cast(x, ctypes.c_void_p).value  # type: ignore[arg-type]
    except ctypes.ArgumentError:
        return ctypes.addressof(x)  # type: ignore[arg-type]
