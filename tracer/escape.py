"""Noticing Python code that runs behind the tracer's back.

Words
-----
special method   a Python function such as ``__lt__`` or ``__str__`` of a class, which C code may call.
callback         a Python function that C code is handed, or finds in what it is handed, and may call as well.
detour           code that stands in the place of such a function's own meanwhile, and runs its twin.
kept function    one that a compiled callable has in an attribute: it may be called, or be what was compiled.
visit            a call of a cache, whose function makes a detour as well (see ``tracer.cached``).
reach            the arguments of a C function whose special methods it may call.

A C function that is handed an object may call Python methods of its class (``sorted`` calls ``__lt__``, ``str``
calls ``__str__``). Such a call does not pass through a hook, so while the C function runs the special methods make
a detour to their twins, and every other Python frame that starts is looked at; one that holds a box is an escape.
"""

from __future__ import annotations

import abc
import functools
import gc
import inspect
import itertools
import operator
import os
import sys
import traceback
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np

from . import making, meaning, plain_calls, rewrite, seals, stand_ins, watchers
from .active import active
from .arrays import current
from .border import boxes_behind, is_constant, is_structure
from .box import BOXES, Box
from .detours import Callback, Detour, code_of, compares, detours, made_inside
from .errors import EscapeError, WengertError
from .handed import may_keep
from .held import Held, hold
from .kinds import (
    IMMUTABLE,
    are_one_of,
    are_quiet,
    attribute,
    classes_of,
    distinct,
    flags_of,
    has_dict,
    is_one_of,
    isinstance,
    mro_of,
    own_dict,
)
from .places import LIBRARY, OURS, blame, is_ours, root_of
from .plain_calls import plainly
from .protocols import given, plain_key, shown
from .reads import HEAP_TYPE, static
from .record import operand
from .session import Tracer
from .structure import is_container
from .tape import Site
from .text import FORMATTING, PRIVATE, TEXTS

HARMLESS = (
    frozenset(
        (
            int,
            float,
            complex,
            bool,
            str,
            bytes,
            type(None),
            slice,
            range,
            type(Ellipsis),
            np.ndarray,
            np.dtype,
            np.ufunc,
            type,
        )
        + (types.BuiltinFunctionType, types.MethodDescriptorType, types.ModuleType)
        + (types.GeneratorType,)
    )
    | PRIVATE
)
ITERATED: tuple[Any, ...] = ((), [], {}, {}.values(), {}.items(), set(), deque(), reversed([]))
BY_REFERENCE: frozenset[type] = frozenset(  # slices, and iterators, which are not to be moved on
    [slice, map, filter, zip, enumerate, reversed]
    + [type(iter(x)) for x in ITERATED]
    + [type(iter(int, 0))]
    + [x for x in vars(itertools).values() if isinstance(x, type)]
)
KNOWN = frozenset((tuple, list, set, frozenset, dict))
BY_REFERENCE |= {
    functools.partial,
    types.SimpleNamespace,
    types.MappingProxyType,
    types.MethodType,
    types.GenericAlias,
    weakref.ReferenceType,
}
FILLED = (tuple, list, dict, set, frozenset, deque, BaseException)  # and what derives from them
VIEWS = frozenset((type({}.keys()), type({}.values()), type({}.items())))
OPENED = KNOWN | BY_REFERENCE | VIEWS | {np.ndarray, deque}
CLOSED = HARMLESS - OPENED

KEEPERS = frozenset((list, deque, dict, set, OrderedDict, defaultdict))
QUIET = frozenset("append appendleft popleft clear copy reverse rotate keys values items".split())
BY_KEY = frozenset(  # these look at their arguments, and at an element only if it equals one
    "insert pop extend extendleft get setdefault popitem move_to_end add discard getitem setitem delitem".split()
)


ABSTRACT = abc.ABCMeta.__instancecheck__.__code__.co_filename  # asks for classes alone
# What asks exceptions and other objects for their text alone, and tells of the exception that is being handled as
# well, which it is not given.
TELLERS = frozenset(("traceback", "logging"))
TELLING = tuple(os.path.join(os.path.dirname(traceback.__file__), x) for x in TELLERS)


def watched(
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
    site: Site,
    seen: bool = False,
    callbacks: Iterable[types.FunctionType] = (),
    kept: Iterable[types.FunctionType] = (),
    sources: list[Any] | None = None,
    members: Iterable[types.FunctionType] = (),
) -> Any:
    """Call a C function while the special methods of its arguments' classes make a detour to their twins.

    So do other ``members`` of the classes, the ``callbacks``, which are called with what was made of the ops in
    ``sources``, and the ``kept`` functions.
    Whatever Python code it runs all the same, and with a box, is an error; so is a kept function that such code calls.
    The methods of what comes out of generators make a detour as well, when the function asks for it; where a run is
    recorded, so do those of what callbacks give: what they read is guarded.
    """
    tracer = active.tracer
    makers = making.called(fn, args)
    given = reach(fn, args, kwargs)
    if type(fn) is types.FunctionType and root_of(fn) in TELLERS:
        given = (*given, sys.exception())
    closed = are_one_of(given, CLOSED)
    classes = [] if closed else classes_in(given, 3)
    if (cls := making.filled(fn)) is not None:
        classes = [*classes, cls]
    late = tracer is not None and comes_late(fn, given)
    asks = classes or callbacks or members or kept or makers
    if not (asks or late) or tracer is None:
        return plainly(fn, args, kwargs, seen)
    watch = Watch(tracer, fn, site, sources or [], late)
    tracer.watches.append(watch)
    try:
        detours.take(special_methods(tracer, classes), watch.taken)
        detours.take(map(Callback, callbacks), watch.taken)
        detours.take(map(Callback, kept), watch.kept)
        detours.take(map(Detour, (*makers, *members)), watch.taken)
        records = late and tracer.reads is not None
        if records or watch.kept or (asks and carries(tracer, (*given, *classes))):
            watch.begin()
        result = plainly(fn, args, kwargs, seen)
    except Exception as error:
        if not isinstance(error, WengertError):
            watch.check()  # code that is not traced has met a box, and may raise for that
            watch.failed(error)
        raise
    finally:
        watch.end()
        detours.leave([*watch.taken, *watch.kept])
        tracer.watches.pop()
    watch.check()
    return result


def met(value: Any) -> Any:
    """What a generator is about to give, maybe to a C function that runs."""
    tracer = active.tracer
    if tracer is not None and tracer.watches:
        tracer.watches[-1].meet(value)
    return value


class Watch:
    """The call of a C function. From when it can get hold of a box, the Python functions that it calls are looked at.

    That is from its beginning, where a box can be reached from what it is given; or from when a detour gives it one.
    """

    __slots__ = (
        *("bare", "escaped", "fn", "kept", "late", "met", "passed"),
        *("site", "sources", "suspended", "taken", "tied", "tracer", "unseen"),
    )

    def __init__(
        self, tracer: Tracer, fn: Callable[..., Any], site: Site, sources: list[Any], late: bool
    ) -> None:
        self.tracer, self.fn, self.site, self.sources = tracer, fn, site, sources
        self.late = late  # whether it asks for values while it runs
        self.taken: list[Detour] = []
        # By id, the classes whose methods make a detour since it runs.
        self.met: dict[int, type] = {}
        self.passed: tuple[Box, str] | None = None  # what a callback gave it, and its name
        self.kept: list[Detour] = []  # of kept functions, until Python code may look at them
        self.bare: dict[int, types.CodeType] = {}  # by id, the code of kept functions from then on
        self.tied: set[Any] = (
            set()
        )  # ops of what callbacks were given, which depends on the sources
        self.escaped: types.CodeType | None = None
        self.suspended: watchers.Suspended | None = None
        self.unseen = tracer.unseen

    def begin(self) -> None:
        if self.suspended is None:
            self.suspended = watchers.Suspended(self.look)
            self.suspended.begin()

    def meet(self, value: Any) -> None:
        """The C function is given a value by a method of the user's: it may call those of its class next."""
        if is_one_of(type(value), HARMLESS):
            return
        classes = [x for x in classes_in([value], 3) if id(x) not in self.met]
        self.met |= {id(x): x for x in classes}
        detours.take(special_methods(self.tracer, classes), self.taken)

    def end(self) -> None:
        if self.suspended is not None:
            self.suspended.end()
            self.suspended = (
                None  # which refers to this watch: a cycle would keep alive what was called
            )

    def look(self, frame: Any, event: str, arg: Any) -> None:
        if is_one_of(type(arg), TEXTS):  # the C function is given it
            self.tracer.texts.drawn.append(arg.origin)
        if self.late and event == "return" and not is_one_of(type(arg), HARMLESS):
            if rewrite.is_twin(frame.f_code):
                detours.take(special_methods(self.tracer, classes_in([arg], 3)), self.taken)
        if event != "call" or self.escaped is not None:
            return
        if self.tracer.unseen > self.unseen:  # a callback runs a function as it is, by intention
            return
        code = frame.f_code
        if id(code) in self.bare:
            self.escaped = code
        if rewrite.is_twin(code) or code.co_filename.startswith((*OURS, ABSTRACT, *TELLING)):
            return
        if self.kept and by_callable(frame):
            self.show()
        for x in arguments_of(frame):
            if holds_box(x) and not made_plain(self.tracer, x):
                self.escaped = code

    def show(self) -> None:
        """Python code runs in the callable itself: a compiler reads there what code the function has."""
        kept, self.kept = self.kept, []
        self.bare.update((id(detour.own), detour.own) for detour in kept)
        detours.leave(kept)

    def knows(self, op: Any) -> bool:
        """Whether an op depends on nothing but what the call was given, as its result does."""
        todo, seen = [op], set(self.tied)
        while todo:
            x = todo.pop()
            if x not in seen and self.tracer.dependence.has(x):
                if x.kind == "input":
                    return False
                seen.add(x)
                todo += x.operands()
        return True

    def failed(self, error: BaseException) -> None:
        """The C function itself raised an exception: for a traced value that a callback gave it, most likely."""
        if self.passed is not None and not raised_in_twin(error):
            given(*self.passed)

    def check(self) -> None:
        """Raise where a box has come to a Python function that is not traced."""
        code = self.escaped
        if code is not None:
            raise EscapeError(
                f"{blame(self.site)}: {getattr(self.fn, '__name__', self.fn)} called the Python "
                f"function {code.co_name} ({Site.of_code(code).place}), which could not be traced, with "
                "a traced value\ncall it directly, or write the loop in Python (docs/errors.md#compiled-code)"
            )


def raised_in_twin(error: BaseException) -> bool:
    """Whether an exception comes from traced code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and rewrite.is_twin(trace.tb_frame.f_code)


def made_plain(tracer: Tracer, value: Any) -> bool:
    """Take the boxes out of an object that Python code is about to see, where none of them has a derivative."""
    if is_one_of(type(value), BOXES) or is_container(value) or not is_structure(value):
        return False
    boxes = list(boxes_behind(tracer, value, set()))
    if not is_constant(tracer, operand(boxes, [])):
        return False
    meaning.unboxing.lower(tracer, value)
    return True


def by_callable(frame: Any) -> bool:
    """Whether what a callable written in C runs is Python code of its own, and none that a twin or the tracer runs."""
    frame = frame.f_back
    while frame is not None and not is_ours(frame) and not rewrite.is_twin(frame.f_code):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename == plain_calls.__file__


MOST = 1000  # things to look at before a function is watched all the same
INERT = HARMLESS - PRIVATE - {np.ndarray, type, types.GeneratorType, types.BuiltinFunctionType}


def carries(tracer: Tracer, values: Iterable[Any]) -> bool:
    """Whether a box, or text, can be reached from values; what lies outside holds plain values."""
    todo = [*values]
    seen: set[int] = set()
    while todo:
        x = todo.pop()
        kind = type(x)
        if is_one_of(kind, PRIVATE) or kind is stand_ins.Callback:  # from which all is reached
            return True
        if is_one_of(kind, INERT) or id(x) in seen:
            continue
        seen.add(id(x))
        if len(seen) > MOST or kind is types.GeneratorType:
            return True
        if issubclass(kind, (list, tuple, dict, set, frozenset, deque)):
            # Not by iterating: C code keeps tuples that are not filled yet (``itertools.product``).
            todo += [y for y in gc.get_referents(x) if not is_one_of(type(y), INERT)]
        if id(x) in tracer.outside or is_one_of(kind, KNOWN):
            continue
        if kind is np.ndarray:
            todo += x.flat if x.dtype.kind == "O" else ()
        elif issubclass(kind, type):
            if flags_of(x) & HEAP_TYPE:
                todo += [y for y in list(vars(x).values()) if is_one_of(type(y), PRIVATE)]
        elif kind is not types.FunctionType or made_inside(x):
            todo += [y for y in gc.get_referents(x) if not issubclass(type(y), type)]
    return False


# --------------------------------------------------------------------------------- what may be called


def reach(fn: Callable[..., Any], args: Any, kwargs: Any) -> Collection[Any]:
    """What a C function may call special methods of: a container that only keeps its elements is not looked into."""
    owner = attribute(fn, "__self__")
    rest = args
    if args and (owner is None or isinstance(owner, types.ModuleType)):
        owner, rest = args[0], args[1:]
    if is_one_of(type(owner), KEEPERS):
        name = attribute(fn, "__name__", "")
        if name in QUIET:
            return ()
        ordered = is_one_of(type(owner), (list, deque))
        if name in BY_KEY or (name in ("contains", "remove") and not ordered):
            return rest if ordered else (*rest, *keys_that_compare(owner, rest))
    return (owner, *rest, *kwargs.values())


def keys_that_compare(table: Any, given: Any) -> list[Any]:
    """One key of each class that has a way of its own to be equal to what is looked up: C code asks that first."""
    tracer = active.tracer
    if tracer is None or not tracer.comparing or tracer.alike.get(id(table)) == len(table):
        return []
    kinds = {id(type(x)): x for x in table}
    found = [x for x in kinds.values() if not is_one_of(type(x), HARMLESS) and compares(type(x))]
    if not found and are_quiet(given):  # nothing else is put there now
        tracer.alike[id(table)] = len(table)
    else:
        tracer.alike.pop(id(table), None)
    return found


def classes_in(values: Iterable[Any], depth: int) -> list[type]:
    """The classes of values and of what they contain that may bring Python code with them."""
    values = list(values)
    kinds = classes_of(values)
    opened = {kind for kind in kinds if is_one_of(kind, OPENED)} if depth else set()
    found = [
        kind
        for kind in kinds
        if not (
            is_one_of(kind, opened) or is_one_of(kind, HARMLESS) or issubclass(kind, np.generic)
        )
    ]
    derived = depth > 0 and any(issubclass(kind, FILLED) for kind in found)
    for x in values if opened or derived else ():
        kind = type(x)
        if is_one_of(kind, BY_REFERENCE) or (
            derived and not is_one_of(kind, opened) and issubclass(kind, FILLED)
        ):
            tuples = [y for y in gc.get_referents(x) if type(y) is tuple]
            behind = gc.get_referents(x, *tuples)  # for a tuple may not be filled yet
            if kind is weakref.ReferenceType:
                behind = [x()]
            found += classes_in(
                [y for y in behind if type(y) is not tuple and not issubclass(type(y), type)],
                depth - 1,
            )
        elif kind is np.ndarray:
            found += classes_in(x.flat, depth - 1) if x.dtype.kind == "O" else []
        elif is_one_of(kind, opened):
            found += classes_in(x, depth - 1)
            if kind is dict:
                found += classes_in(x.values(), depth - 1)
    return distinct(found)


def comes_late(fn: Any, given: Iterable[Any]) -> bool:
    """Whether a C function may ask something of what Python code gives it while it runs."""
    if fn is list or fn is tuple:  # which ask nothing, but what they iterate over may
        given = [x for x in given if type(x) is not types.GeneratorType]
    return is_late(given, 3)


def is_late(values: Iterable[Any], depth: int) -> bool:
    """Whether Python code runs for what values give: generators, and iterators of such or of calls."""
    for x in values:
        kind = type(x)
        if kind is types.GeneratorType:
            return True
        if depth and is_one_of(kind, BY_REFERENCE) and kind is not slice:
            inner = gc.get_referents(x)
            if any(map(callable, inner)) or is_late(inner, depth - 1):
                return True
    return False


MOST_CALLBACKS = 200  # things to look at for functions


def callbacks_in(
    values: Iterable[Any],
) -> tuple[list[types.FunctionType], list[types.FunctionType]]:
    """The user's functions that C code may find in what it is handed, and those that a compiled callable keeps."""
    todo = [(x, 3) for x in values]
    seen: set[int] = set()
    found: list[types.FunctionType] = []
    kept: list[types.FunctionType] = []
    while todo and len(seen) < MOST_CALLBACKS:
        x, depth = todo.pop()
        kind = type(x)
        if (is_one_of(kind, HARMLESS) and not is_one_of(kind, HOLDING)) or id(x) in seen:
            continue
        seen.add(id(x))
        if kind is types.FunctionType:
            if is_users(x):
                found.append(x)
                continue
            inner = [*(cell_contents(x)), *(x.__defaults__ or ())]
        elif kind is types.MethodType:
            inner = [x.__func__]
        elif kind is np.ndarray:
            inner = [*x.flat] if x.dtype.kind == "O" and x.size < MOST_CALLBACKS else []
        elif issubclass(kind, (type, types.ModuleType)):
            continue
        elif is_one_of(kind, SIZED) and len(x) > MOST_CALLBACKS:  # of data, most likely
            continue
        elif flags_of(kind) & HEAP_TYPE and kind is not functools.partial and has_dict(x):
            inner = [y for y in list(own_dict(x).values()) if is_one_of(type(y), CALLABLE)]
            if type(static(kind, "__call__")) is types.WrapperDescriptorType:
                kept += [y for y in inner if is_users(y)]
                inner = [y for y in inner if not is_users(y)]
        else:
            inner = gc.get_referents(x)
        if depth:
            todo += [(y, depth - 1) for y in inner]
    return found, kept


def is_users(fn: Any) -> bool:
    """Whether something is a Python function, and none of a library."""
    return type(fn) is types.FunctionType and not code_of(fn).co_filename.startswith(LIBRARY)


SIZED = KNOWN | {deque, OrderedDict, defaultdict}
HOLDING = frozenset((np.ndarray, np.ufunc, slice))
CALLABLE = (types.FunctionType, types.MethodType, functools.partial)


def cell_contents(fn: types.FunctionType) -> Iterator[Any]:
    for cell in fn.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is empty
            continue


def special_methods(tracer: Tracer, classes: Iterable[type]) -> list[Detour]:
    """The special methods of classes. A run remembers them as long as the class is what it was."""
    found: list[Detour] = []
    for cls in distinct(base for kind in classes for base in mro_of(kind)):
        known = tracer.specials.get(id(cls))
        if known is None or not (flags_of(known[0]) & IMMUTABLE or same_members(cls, known[1])):
            members = dict(vars(cls))
            detours = [
                Detour(x, name)
                for name, x in sorted(map(asked_for, members.items()), key=by_answer)
                if type(x) is types.FunctionType and is_special(name)
                if root_of(x) not in ("typing", "abc")  # which look at who calls, or ask on
            ]
            known = (cls, members, detours)
            tracer.comparing = tracer.comparing or compares(cls)
            if is_own(members):  # they make a detour for what C code is given of them
                found += detours
                continue
            tracer.specials[id(cls)] = known
            if tracer.reads is not None:
                note_specials(tracer, cls, members)
        found += known[2]
    return found


def is_special(name: str) -> bool:
    """Whether C code may call a method of such a name without being asked to: ``{} | x`` calls ``x.keys``."""
    return (name.startswith("__") and name.endswith("__")) or name in ("keys", "items")


def asked_for(member: tuple[str, Any]) -> tuple[str, Any]:
    """The name and the function of a member: of a property such as ``__class__`` that by which it is read."""
    name, x = member
    return name, x.fget if type(x) is property else x


def by_answer(member: tuple[str, Any]) -> bool:
    """Of the names of one function that comes first which says what C code takes for an answer."""
    return member[0] not in CONVERTED


def is_own(members: dict[str, Any]) -> bool:
    """Whether a class was made by the run: its methods are twins, and it must not be kept alive."""
    methods = [x for x in members.values() if type(x) is types.FunctionType]
    return bool(methods) and all(map(made_inside, methods))


# What C code may ask the class of an object for.
SPECIAL = (
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __bool__ __len__ __iter__ __next__ __getitem__ __contains__ "
    "__index__ __int__ __float__ __complex__ __str__ __repr__ __format__ __bytes__ __call__ __length_hint__ "
    "__reversed__ __reduce__ __reduce_ex__ __getstate__ __getnewargs__ __copy__ __deepcopy__ __array__ __buffer__ "
    "keys items"
).split()


def note_specials(tracer: Tracer, cls: type, members: dict[str, Any]) -> None:
    """Note what C code may find in a class, and what it may miss."""
    reads = tracer.reads
    assert reads is not None
    for name, x in members.items():
        if type(x) is types.FunctionType:
            reads.note(reads.constant(cls), "static", name, x)
    if flags_of(cls) & HEAP_TYPE:
        for name in SPECIAL:
            if name not in members:
                reads.note(reads.constant(cls), "static", name, static(cls, name))


def same_members(cls: type, members: dict[str, Any]) -> bool:
    """Whether a class has these attributes still, in the same order. Nobody's ``__eq__`` is asked."""
    now = vars(cls).copy()  # at one moment: another thread may write to it
    same = len(now) == len(members) and all(map(operator.is_, now, members))
    return same and all(map(operator.is_, now.values(), members.values()))


def arguments_of(frame: Any) -> list[Any]:
    """What a function that begins was given.

    Its variables are asked for one by one: CPython 3.13.0 crashes where they are listed within a comprehension.
    """
    code, variables = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return [variables.get(name) for name in code.co_varnames[:count]]


def holds_box(value: Any) -> bool:
    """Whether a local variable is a box, or a container or object that holds one."""
    kind = type(value)
    if is_one_of(kind, BOXES):
        return True
    if is_one_of(kind, (tuple, list)):
        return any(is_one_of(type(x), BOXES) for x in value)
    if kind is dict:
        return any(is_one_of(type(x), BOXES) for x in list(value.values()))
    own = own_dict(value) if not isinstance(value, (type, types.ModuleType)) else None
    return type(own) is dict and any(is_one_of(type(x), BOXES) for x in list(own.values()))


def may_give(value: Any) -> bool:
    """Whether code that has a value can take a box, or text, right out of it."""
    return is_one_of(type(value), GIVING) or holds_box(value)


GIVING = PRIVATE | {types.GeneratorType}


def called_in_c(
    tracer: Tracer, method: types.FunctionType, name: str | None, args: Any, kwargs: Any
) -> Any:
    """What C code is given of a method of the user's, or of a function without a ``name``: the twin runs."""
    twin = meaning.calls.twin_of(tracer, method)
    own = made_inside(method)
    visits = tracer.visits.get(id(method))
    if visits and not visits[-1].ran:
        return visits[-1].run(twin)
    if name is None:
        result = twin(*[known_as(tracer, x) for x in args], **kwargs)
        for x in args:
            look_at_written(tracer, method, x)
        return back_to_c(tracer, method, result, own)
    result = twin(*args, **kwargs)
    if tracer.watches:
        tracer.watches[-1].meet(result)
        if any(map(may_give, (result, *args[:1]))):
            tracer.watches[-1].begin()
    return drawn(result, name, args) if is_one_of(type(result), BOXES) else result


def known_as(tracer: Tracer, value: Any) -> Any:
    """What the traced function knows by something that C code gives to a callback."""
    if shadows := tracer.shadows_of.get(id(value)):
        return shadows[-1]
    if id(value) in tracer.arrays:
        return tracer.arrays[id(value)]
    watch = tracer.watches[-1] if tracer.watches else None
    if watch is None or not watch.sources:
        return value
    name = getattr(watch.fn, "__name__", "a callback")
    ops = watch.sources
    if not isinstance(value, (float, complex, np.ndarray)):
        if may_keep(value) and id(value) not in tracer.readable:
            hold(tracer, Held(name, lambda: ops, value))
        return value
    found = seals.tied_to(tracer, watch.site, Held(name, lambda: ops, value), value)
    if is_one_of(type(found), BOXES):
        watch.tied.add(found.op)
    return found


def look_at_written(tracer: Tracer, method: types.FunctionType, value: Any) -> None:
    """Refuse what a callback has written into an array that C code gave it, which goes on with the numbers alone."""
    box = tracer.arrays.get(id(value))
    if box is None or not box.memory.writes or box.value is not value:
        return
    if not (tracer.watches and tracer.watches[-1].knows(current(box))):
        given(box, f"{method.__name__}()")


def back_to_c(tracer: Tracer, method: types.FunctionType, result: Any, own: bool) -> Any:
    """What C code is given of the traced result of a callback: nothing that has a derivative.

    Of a function that is the run's ``own`` it may get boxes, which C code may keep, but not look into.
    """
    kind = type(result)
    if is_one_of(kind, TEXTS):
        tracer.texts.drawn.append(result.origin)
        return result.value
    for box in boxes_behind(tracer, result, set()):
        if not (tracer.watches and tracer.watches[-1].knows(box.op)):
            if own and tracer.dependence.has(operand(box, [])):
                if tracer.watches:
                    tracer.watches[-1].passed = box, f"{method.__name__}()"
                return result
            given(box, f"{method.__name__}()")
    return (
        meaning.unboxing.lower(tracer, result)
        if is_one_of(kind, PRIVATE) or is_container(result)
        else result
    )


# Special methods of which CPython takes nothing but a plain answer; those that no float or array answers are strict.
STRICT = frozenset(
    f"__{name}__"
    for name in "bool len index hash str repr format int length_hint bytes sizeof iter fspath".split()
)
ANSWERS = STRICT | {"__contains__", "__subclasshook__"}
CONVERTED = ANSWERS | {"__float__", "__complex__", "__array__"}


def drawn(box: Any, name: str, args: tuple[Any, ...]) -> Any:
    """What C code is given of the traced result of a special method."""
    if name in ("__float__", "__complex__") and of_text(active.tracer):
        return shown(box)
    if name in ("__float__", "__complex__", "__array__"):
        return given(box, f"{name}()")
    if name in ("__getattribute__", "__getattr__") and args[1].startswith("__array_"):
        return box.value  # NumPy asks for an attribute of its own protocols
    if name not in ANSWERS:
        return box
    plain = plain_key(box)
    # CPython says what is wrong with it, and of what class it is.
    return plain.value if name in STRICT and is_one_of(type(plain), BOXES) else plain


def of_text(tracer: Tracer | None) -> bool:
    """Whether the C function that is being watched makes text."""
    if tracer is None or not tracer.watches:
        return False
    return getattr(tracer.watches[-1].fn, "__name__", "") in FORMATTING
