"""Sights: what lies outside and shows something else that lies outside, which the run may write to.

Words
-----
sight     a view of a dict, a proxy, the cell of a function: the run has another one, of what it has for the thing.
window    an iterator, a generator or a buffer: it stays as it is, and sees plain values. What is read from it depends
          on the traced values that the run has put by then into what it shows, and that cannot be followed.
"""

from __future__ import annotations

import gc
import itertools
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import seals, through
from .arrays import current, is_traced_array
from .box import BOXES
from .kinds import attribute, is_one_of, isinstance, own_dict
from .reads import HEAP_TYPE, Place
from .record import operand
from .session import Tracer
from .structure import is_container
from .tape import Op, Site, ops_in

SIGHTS = frozenset((*seals.VIEWS, types.MappingProxyType, types.CellType))
BUFFERS = (memoryview, np.flatiter)
# Weak proxies, which pass on what they are asked for.
PROXIES = frozenset((weakref.ProxyType, weakref.CallableProxyType))
MOST = 1000  # objects to look at behind a window
FEW = 100  # items of a container there


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
        return calls.lone_cell(tracer, value)
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
    inside = border.admit(tracer, held, name, "outside", place, seal)[0]
    if kind is types.MappingProxyType:
        return types.MappingProxyType(inside)
    return getattr(inside, seals.VIEWS[kind])()


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
    if found is proxy:
        return proxy
    if tracer.reads is not None:
        tracer.reads.problem("a weak proxy is used", site)
    return border.enter(tracer, found, type(found).__name__)


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
    return is_one_of(type(value), WINDOWS) or seals.is_iterator(value)


WINDOWS = PROXIES | {*BUFFERS, types.GeneratorType}


def watch(tracer: Tracer, value: Any, name: str) -> None:
    """What is read from a window outside depends on what the run has put into what it shows."""
    if id(value) in tracer.readable:
        return
    if not is_one_of(type(value), PROXIES) and not any(map(is_changeable, behind(value))):
        return

    held = seals.Held(f"{name}, a {type(value).__name__}", Shown(tracer, value), value)
    seals.hold(tracer, held)


class Shown:
    """Gives the ops of what the run has put, by now, into what a window shows."""

    def __init__(self, tracer: Tracer, window: Any) -> None:
        self.tracer, self.window = tracer, window
        self.at = 0  # how much of the tape has been looked through
        self.known: list[Op] = []

    def __call__(self) -> list[Op]:
        start, self.at = self.at, len(self.tracer.tape.ops)
        # An array that an iterator gives is known to the run, but what shows the items of one gives plain numbers.
        if is_one_of(type(self.window), WINDOWS) or self.has_effects(start):
            self.known = [x for y in behind(self.window) for x in put_there(self.tracer, y)]
        return self.known

    def has_effects(self, start: int) -> bool:
        return any(
            op.kind == "effect" for op in itertools.islice(self.tracer.tape.ops, start, None)
        )


def is_changeable(value: Any) -> bool:
    return is_container(value) or is_traced_array(value) or isinstance(value, CODED)


def put_there(tracer: Tracer, shown: Any) -> list[Op]:
    """What the run has put into a container or an array outside."""
    if (box := tracer.arrays.get(id(shown))) is not None:
        return [current(box)]
    known = tracer.shadows.get(id(shown))
    if known is not None:
        return list(ops_in([operand(border.items_of(known[1]), [])]))
    if isinstance(shown, CODED):
        code, scope = code_of(shown)
        names: Any = code.co_names
        owner = id(scope)
    else:
        names, owner = own_dict(shown) or (), id(shown)
    entries = [tracer.overlay.get((owner, name)) for name in names]
    return list(ops_in([operand([x[2] for x in entries if x is not None], [])]))


CODED = (types.GeneratorType, types.FunctionType)


def code_of(value: Any) -> tuple[types.CodeType, dict[str, Any]]:
    """The code of a function or a generator, and its globals."""
    if isinstance(value, types.FunctionType):
        return value.__code__, value.__globals__
    frame = value.gi_frame
    return value.gi_code, {} if frame is None else frame.f_globals


def behind(window: Any) -> Iterator[Any]:
    """What can be reached from a window."""
    todo, seen = [window], {id(window): window}
    while todo and len(seen) < MOST:
        x = todo.pop()
        yield x
        for y in within(x):
            if (
                id(y) not in seen
                and not is_one_of(type(y), PLAIN)
                and not is_one_of(type(y), BOXES)
            ):
                seen[id(y)] = y
                todo.append(y)


PLAIN = frozenset((int, float, complex, str, bytes, bool, type(None), type, types.ModuleType))


def within(x: Any) -> Any:
    """What can be reached from something in one step."""
    if is_one_of(type(x), PROXIES):
        try:
            return (meant(x),)
        except ReferenceError:  # it is gone
            return ()
    if isinstance(x, memoryview):
        return (x.obj,)
    if isinstance(x, np.flatiter):
        return (x.base,)
    if is_container(x):  # what an iterator gives of a long one is let in as it comes
        if len(x) > FEW:
            return ()
        return tuple(x.values()) if isinstance(x, dict) else tuple(x)
    if isinstance(x, CODED):
        code, scope = code_of(x)
        return (*variables(x), *[scope[name] for name in code.co_names if name in scope])
    if isinstance(x, (types.MethodType, types.BuiltinFunctionType)):
        return (x.__self__, attribute(x, "__func__"))
    if seals.is_iterator(x) or is_one_of(type(x), seals.VIEWS):
        return gc.get_referents(x)
    return tuple((own_dict(x) or {}).values()) if type(x).__flags__ & HEAP_TYPE else ()


def variables(value: Any) -> tuple[Any, ...]:
    """What the variables of a function or a generator hold."""
    if isinstance(value, types.FunctionType):
        return (*map(through.contents, value.__closure__ or ()), *(value.__defaults__ or ()))
    frame = value.gi_frame
    return () if frame is None else (*frame.f_locals.values(), value.gi_yieldfrom)


from . import attributes, border, calls  # noqa: E402  (these and this module need each other)
