"""Sights: what lies outside and shows something else that lies outside, which the run may write to.

Words
-----
sight     a view of a dict, a proxy, the cell of a function: the run has another one, of what it has for the thing.
window    an iterator, a generator or a buffer: it stays as it is, and sees plain values. What is read from it depends
          on the traced values that the run has put by then into what it shows, and that cannot be followed.
"""

from __future__ import annotations

import functools
import gc
import itertools
import operator
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..rules.words import with_article
from . import attributes, border, leads, meaning, places, seals, through, unannounced
from . import shown as memories
from .arrays import byte_bounds
from .border import VIEWS, is_iterator
from .box import BOXES
from .held import Held, hold
from .kinds import PROXIES, attribute, flags_of, is_one_of, isinstance, mro_of, own_dict, static
from .reads import HEAP_TYPE, Place
from .record import stored
from .remembered import names_in, own_code
from .session import Tracer
from .structure import is_container
from .tape import Op, Site, fn_name, ops_in

SIGHTS = frozenset((*VIEWS, types.MappingProxyType, types.CellType))
BUFFERS = (memoryview, np.flatiter, np.nditer)
MOST = 20_000  # things to look at behind a window


def entered(tracer: Tracer, value: Any, name: str, seal: Any) -> Any:
    """What the run has for a sight outside: always the same."""
    known = tracer.views.get(id(value))
    if known is not None:
        return known[1]
    seen = made(tracer, value, name, seal)
    if seen is not value:
        tracer.views[id(value)] = (value, seen)
        tracer.viewed[id(seen)] = (seen, value)
    return seen


def made(tracer: Tracer, value: Any, name: str, seal: Any) -> Any:
    kind = type(value)
    if kind is types.CellType:
        return meaning.calls.lone_cell(tracer, value)
    held = seals.underlying(value)
    if kind is types.MappingProxyType and (owner := class_of(value, held)) is not None:
        return attributes.namespace(tracer, owner)
    if not is_container(held):
        return value
    place: Place | None = None
    if tracer.reads is not None:
        place = tracer.reads.of(held)
        if place is None:
            tracer.reads.problem(f"{name} shows a dict")
    inside = meaning.boxing.admit(tracer, held, name, "outside", place, seal)[0]
    if kind is types.MappingProxyType:
        return types.MappingProxyType(inside)
    return getattr(inside, VIEWS[kind])()


def class_of(proxy: Any, held: Any) -> Any:
    """The class of whose attributes a proxy shows the dict; None where that is a dict like others."""
    if type(held) is not dict or "__module__" not in held:
        return None
    for x in gc.get_referrers(held):
        if isinstance(x, type) and seals.underlying(own_dict(x)) is held:
            return x
    return None


def referent(tracer: Tracer, site: Site, proxy: Any) -> Any:
    """The object that a weak proxy stands for, as the run sees it; the proxy, where that cannot be told."""
    found = meant(proxy)
    if found is proxy or id(found) in tracer.inside:
        return found
    if tracer.reads is not None:
        tracer.reads.problem("a weak proxy is used", site)
    return meaning.boxing.enter(tracer, found, type(found).__name__)


PROXY, CALLABLE = weakref.ProxyType, weakref.CallableProxyType


def behind_proxy(tracer: Tracer, site: Site, value: Any) -> Any:
    """A value, or what it stands for if it is a weak proxy: C code asks that in its place."""
    kind = type(value)
    return referent(tracer, site, value) if kind is PROXY or kind is CALLABLE else value


def asked(tracer: Tracer, site: Site, fn: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a function with a rule or a handler: in the place of weak proxies what these stand for."""
    for x in args:
        kind = type(x)
        if (kind is PROXY or kind is CALLABLE) and fn not in LEAVING:
            return tuple([behind_proxy(tracer, site, y) for y in args])
    return args


# These ask about a proxy itself, or look for themselves at what it stands for.
LEAVING: frozenset[Any] = frozenset(
    (type, id, repr, isinstance, issubclass, callable, hash, getattr, setattr, delattr, hasattr, vars, dir)
    + (print, map, filter, max, min, functools.partial, operator.is_, operator.is_not)
    + (weakref.proxy, weakref.ref, weakref.getweakrefs, weakref.getweakrefcount)
)  # fmt: skip


def meant(proxy: Any) -> Any:
    """The same, as it lies outside."""
    found = attribute(proxy.__sizeof__, "__self__")  # any object has the method
    return found if any(x is proxy for x in weakref.getweakrefs(found)) else proxy


def is_globals(value: Any) -> bool:
    """Whether a dict holds the names of a module."""
    if "__builtins__" in value:
        return True
    name = value.get("__name__")
    return type(name) is str and own_dict(sys.modules.get(name)) is value


# ------------------------------------------------------------------------------------------------- windows


def is_window(value: Any) -> bool:
    return is_one_of(type(value), WINDOWS) or is_iterator(value)


WINDOWS = PROXIES | {*BUFFERS, types.GeneratorType}


def watch(tracer: Tracer, value: Any, name: str) -> None:
    """What is read from a window outside depends on what the run has put into what it shows."""
    note_code(tracer, value)
    if is_taken_from(value):
        tracer.tape.untold = (
            f"{name} is {with_article(type(value).__name__)} from outside, which each run takes from",
            "make a list of it, and let the function take what it needs as an argument",
        )
    if id(value) in tracer.readable:
        return
    if not is_one_of(type(value), PROXIES) and not any(map(is_changeable, behind(value))):
        return

    held = Held(f"{name}, {with_article(type(value).__name__)}", Shown(tracer, value), value)
    hold(tracer, held)


def is_taken_from(value: Any) -> bool:
    """Whether what a window gives it does not give again."""
    return is_iterator(value) or type(value) is types.GeneratorType


def note_code(tracer: Tracer, window: Any) -> None:
    """Code that goes on behind the tracer's back, where an iterator outside is asked for its next item."""
    if is_window(window):
        if runs_code(window):
            tracer.resuming[id(window)] = window
    elif is_reader(window):
        key, resuming = id(window), tracer.resuming
        try:  # a file is closed when nobody needs it
            resuming[key] = weakref.ref(window, lambda _: resuming.pop(key, None))
        except TypeError:
            resuming[key] = window


def is_reader(value: Any) -> bool:
    """Whether something is an iterator in C that is none of Python's own, and may ask code of the user's for items."""
    kind = type(value)
    if is_one_of(kind, PLAIN) or type(static(kind, "__next__")) is not types.WrapperDescriptorType:
        return False
    return leads.leads_to_users(None, (value,))


def runs_code(window: Any) -> bool:
    """Whether an iterator outside goes on in Python code: a generator, or one that has some, or such code, in it."""
    todo, seen = [window], {id(window)}
    while todo:
        x = todo.pop()
        kind = type(x)
        if kind is types.GeneratorType or (x is window and flags_of(kind) & HEAP_TYPE):
            return True
        if not (kind is tuple or is_iterator(x)):  # a zip has a tuple of iterators
            continue
        for y in gc.get_referents(x):
            if not isinstance(y, type) and (callable(y) or flags_of(type(y)) & HEAP_TYPE):
                return True
            if id(y) not in seen:
                seen.add(id(y))
                todo.append(y)
    return False


def resumed(tracer: Tracer, iterator: Any, step: Callable[[], Any]) -> Any:
    """``step()``, in which an iterator may run code outside: what that changes, the run sees changed."""
    if id(iterator) not in tracer.resuming:
        return step()
    held = tracer.readable.get(id(iterator))
    sources = held.current() if isinstance(held, Held) else shown(tracer, iterator)
    unannounced.may_write(tracer, places.user_site(), iterator, sources)
    if tracer.cells_known:
        through.write_cells(tracer)
    try:
        return step()
    finally:
        meaning.renewal.renew(tracer, meaning.renewal.Left(tracer, sources))


def unseen(
    tracer: Tracer, site: Site, fn: Any, given: Iterable[Any], step: Callable[[], Any]
) -> Any:
    """``step()``, in which code that runs as it is may run code of the user's that it finds in what it is ``given``."""
    if not leads.leads_to_users(None, given):
        return step()
    if tracer.reads is not None:
        tracer.reads.problem(f"{fn_name(fn)} may wait, or let other code run", site)
    unannounced.may_write(tracer, site, fn, put_outside(tracer))
    if tracer.cells_known:
        through.write_cells(tracer)
    try:
        return step()
    finally:
        meaning.renewal.renew(tracer)


class Shown:
    """Gives the ops of what the run has put, by now, into what a window shows."""

    def __init__(self, tracer: Tracer, window: Any) -> None:
        self.tracer, self.window = tracer, window
        self.at = self.written = (
            0  # how much of the tape has been looked through, and of its writes to arrays
        )
        self.known: list[Op] = []

    def __call__(self) -> list[Op]:
        tape = self.tracer.tape
        start, self.at = self.at, len(tape.ops)
        before, self.written = self.written, tape.written
        # An array that an iterator gives is known to the run, but what shows the items of one gives plain numbers.
        if (
            is_one_of(type(self.window), WINDOWS)
            or tape.written != before
            or any(op.kind == "effect" for op in itertools.islice(tape.ops, start, None))
        ):
            self.known = shown(self.tracer, self.window)
        return self.known


def shown(tracer: Tracer, window: Any) -> list[Op]:
    """The ops of what the run has put into what can be reached from a window; all, where that is more than a few."""
    put = Put(tracer)
    if not put.ops:
        return []
    found: list[Op] = []
    seen = 0
    for x in behind(window):
        found += put.into(x)
        seen += 1
        if seen > MOST:
            return put.ops
    return found


def closed(given: Iterable[Any]) -> list[Any]:
    """Those of what C code is given whose special methods are not run as twins, as those of objects are."""
    return [x for x in given if not leads.is_open(x)]


def put_outside(tracer: Tracer) -> list[Op]:
    """The ops of all that the run has put outside by now, as far as it may have a derivative."""
    tape = tracer.tape
    at, written, ops = tracer.put
    tracer.put = len(tape.ops), tape.written, ops
    new = tape.ops[at:]  # `islice` would go over those before
    if tape.written != written or any(op.kind in ("effect", "input") for op in new):
        tracer.put = len(tape.ops), tape.written, Put(tracer).ops
    return tracer.put[2]


class Put:
    """What the run has put outside by now, as far as it may have a derivative."""

    def __init__(self, tracer: Tracer) -> None:
        def moving(value: Any) -> list[Op]:
            return [op for op in ops_in([stored(value, [])]) if tracer.dependence.has(op)]

        self.named: dict[int, dict[Any, list[Op]]] = {}  # by owner and name
        for (owner, name), entry in [*tracer.overlay.items()]:
            if ops := moving(entry[2]):
                self.named.setdefault(owner, {})[name] = ops
        self.items: dict[int, list[Op]] = {}  # by container
        for key, (_, shadow) in [*tracer.shadows.items()]:
            if ops := moving(border.items_of(shadow)):
                self.items[key] = ops
        for key, tail in [*tracer.tails.items()]:
            if ops := moving(tail.values):
                self.items[key] = ops
        self.memories: list[tuple[int, int, list[Op]]] = []  # by addresses
        for memory in {id(x): x for x in [*tracer.memories.values()]}.values():
            if ops := memories.written(tracer, [memory]):
                for box in memory.boxes:
                    self.memories.append((*byte_bounds(box.value), ops))
        by_name = [ops for names in self.named.values() for ops in names.values()]
        in_memory = [ops for *_, ops in self.memories]
        self.ops = [
            *dict.fromkeys(x for ops in (*by_name, *self.items.values(), *in_memory) for x in ops)
        ]

    def into(self, x: Any) -> list[Op]:
        """What was put into one thing."""
        found: list[Op] = []
        if isinstance(x, Scope):
            names = self.named.get(id(x.names), {})
            for name in x.wanted if names else ():
                found += names.get(name, ())
            return found
        for ops in self.named.get(id(x), {}).values():
            found += ops
        found += self.items.get(id(x), ())
        if self.memories and not is_container(x):
            low, high = addresses(x)
            for start, end, ops in self.memories:
                found += ops if start < high and low < end else ()
        return found


class Scope:
    """The names of a module that some code asks for."""

    __slots__ = ("names", "wanted")

    def __init__(self, names: dict[str, Any], wanted: tuple[str, ...]) -> None:
        self.names, self.wanted = names, wanted


def addresses(value: Any) -> tuple[int, int]:
    """Where the memory of an array, or of something else that has a buffer, begins and ends."""
    if not isinstance(value, np.ndarray):
        try:
            value = memoryview(value)
        except (TypeError, ValueError, BufferError):
            return 0, 0
    return memories.bounds(value)


def is_changeable(value: Any) -> bool:
    return (
        is_container(value) or isinstance(value, (np.ndarray, Scope)) or addresses(value) != (0, 0)
    )


def behind(window: Any) -> Iterator[Any]:
    """What can be reached from a window."""
    todo, seen = [window], {id(window): window}
    while todo:
        x = todo.pop()
        yield x
        for y in within(x):
            if not (id(y) in seen or is_one_of(type(y), PLAIN) or is_flat(y)):
                seen[id(y)] = y
                todo.append(y)


PLAIN = frozenset((int, float, complex, str, bytes, bool, type(None), types.CodeType, *BOXES))
CODED = (types.GeneratorType, types.FunctionType)


def is_flat(x: Any) -> bool:
    """Whether something is a tuple of numbers and the like, which the collector of garbage has noticed."""
    return type(x) is tuple and not gc.is_tracked(x)


def within(x: Any) -> Iterable[Any]:
    """What can be reached from something in one step."""
    kind = type(x)
    if is_one_of(kind, PROXIES) or isinstance(x, weakref.ref):
        try:
            return (x(),) if isinstance(x, weakref.ref) else (meant(x),)
        except ReferenceError:  # it is gone
            return ()
    if isinstance(x, CODED):
        code, scope = code_of(x)
        wanted = names_in(code)
        return (Scope(scope, wanted), *variables(x))
    if isinstance(x, Scope):
        values = [x.names[name] for name in x.wanted if name in x.names]
        modules = [y for y in values if isinstance(y, types.ModuleType)]
        return (
            *[Scope(own_dict(y), x.wanted) for y in modules if not is_library(y.__name__)],
            *[y for y in values if not isinstance(y, types.ModuleType)],
        )
    if isinstance(x, types.ModuleType):
        return () if is_library(x.__name__) else (Scope(own_dict(x), tuple(own_dict(x))),)
    if isinstance(x, type):
        own = flags_of(x) & HEAP_TYPE and (
            not is_library(x.__module__) or leads.has_users_code(x)  # made by somebody's metaclass
        )
        return (*mro_of(x), *own_dict(x).values()) if own else ()
    if isinstance(x, memoryview):
        return (x.obj,)
    if isinstance(x, np.flatiter):
        return (x.base,)
    if isinstance(x, np.nditer):
        return x.operands
    if isinstance(x, np.ndarray) and x.dtype.kind == "O":
        return x.ravel().tolist()
    return gc.get_referents(x)


def is_library(module: Any) -> bool:
    """Whether a module is known to hold nothing that a run writes to."""
    root = str(module).partition(".")[0]
    return root in sys.stdlib_module_names or root in LIBRARIES


LIBRARIES = frozenset(("numpy", "scipy", "wengert"))


def code_of(value: Any) -> tuple[types.CodeType, dict[str, Any]]:
    """The code of a function or a generator, and its globals."""
    if isinstance(value, types.FunctionType):
        return own_code(value), value.__globals__
    frame = value.gi_frame
    return value.gi_code, {} if frame is None else frame.f_globals


def variables(value: Any) -> tuple[Any, ...]:
    """What the variables of a function or a generator hold."""
    if is_library(getattr(value, "__module__", "")):
        return ()
    if isinstance(value, types.FunctionType):
        cells = map(through.contents, value.__closure__ or ())
        return (*cells, value.__defaults__, value.__kwdefaults__, own_dict(value))
    frame = value.gi_frame
    return () if frame is None else (*frame.f_locals.values(), value.gi_yieldfrom)
