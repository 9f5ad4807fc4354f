"""Calls of Python functions: an instrumented copy runs as a pass of its own (see ``recorder``)."""

from __future__ import annotations

import heapq
from typing import Any

from ...rules import registry
from ..box import Box
from ..handlers import handlers
from ..kinds import is_one_of, keyword_defaults
from . import equivalents
from .basics import plain, refuse
from .recorder import Passing, Recorder
from .region import FLOATS

# The module of long functions that are called at many places: written there, they would make most of a program.
SHARED = heapq.__file__
PASSING = {
    equivalents.shared: "equal numbers share the slope of max or min",
    equivalents.uncompared: "deques or defaultdicts are compared",
    equivalents.unordered: "NaN has no order",
}


def may_have_slope(x: Any) -> bool:
    """Whether a number may have a derivative: of integers those that stand in the recording, and are no constants."""
    kind = type(plain(x))
    return kind is float or is_one_of(kind, FLOATS) or (type(x) is Box and kind is int)


def call_function(recorder: Recorder, key: Any, fn: Any, args: Any, kwargs: Any) -> Any:
    """What a function gives; of the same function there is one copy in a recording."""
    if fn in PASSING:
        if fn is equivalents.shared and not any(map(may_have_slope, args)):
            return None
        raise Passing(PASSING[fn])
    # In this order: another thread may be loading the rules.
    if registry.package_of(fn) in registry.awaited or fn in registry.rules or fn in handlers:
        return refuse(f"{fn.__name__} has a rule")
    code = fn.__code__
    if code.co_flags & 0x2A0:  # generators and asynchronous functions
        return refuse(f"{fn.__name__} is a generator")
    if kwargs and code in recorder.codes:
        return refuse(f"{fn.__name__} calls itself with keywords")
    if lacks(fn, args, kwargs):  # which a default might give one day
        return refuse(f"{fn.__name__} is called without an argument that it needs")
    twin = twin_of(recorder, fn)
    shared = not kwargs and code.co_filename == SHARED
    return recorder.call(key, twin, lambda *given: twin(*given, **kwargs), args, shared)


def lacks(fn: Any, args: Any, kwargs: Any) -> bool:
    """Whether a parameter gets no value, not even a default."""
    code = fn.__code__
    names, count = code.co_varnames, code.co_argcount
    needed = names[len(args) : max(count - len(fn.__defaults__ or ()), 0)]
    alone = names[count : count + code.co_kwonlyargcount]
    if not needed and not alone:
        return False
    known = keyword_defaults(fn)
    return not all(x in kwargs for x in needed) or not all(x in kwargs or x in known for x in alone)


def twin_of(recorder: Recorder, fn: Any) -> Any:
    """The instrumented copy of a function."""
    known = recorder.twins.get(id(fn))
    if known is None or known[0] is not fn:
        known = recorder.twins[id(fn)] = fn, recorder.outside.function(fn, recorder.hooks)
    return known[1]
