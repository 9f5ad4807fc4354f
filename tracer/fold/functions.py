"""Calls of Python functions: an instrumented copy runs as a pass of its own (see ``recorder``)."""

from __future__ import annotations

import dis
import functools
import heapq
import types
from itertools import pairwise
from typing import Any

from ...rules import registry
from ..box import Box
from ..handlers import handlers
from ..kinds import is_one_of, keyword_defaults
from . import equivalents
from .basics import is_constant, plain, refuse
from .recorder import Passing, Recorder
from .region import FLOATS

# The module of long functions that are called at many places: written there, they would make most of a program.
SHARED = heapq.__file__
# What a constant tuple is gone after; those in it may live on.
TAKEN_APART = (
    "UNPACK_SEQUENCE CALL CALL_KW CALL_FUNCTION_KW KW_NAMES PRECALL BINARY_SUBSCR BINARY_OP GET_ITER CONTAINS_OP "
    "BUILD_CONST_KEY_MAP LIST_EXTEND SET_UPDATE IMPORT_NAME MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE FORMAT_VALUE"
).split()
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
    recorder.tuples.update(constant_tuples(code))
    recorder.tuples.update([len(x) for x in args if type(x) is tuple and x and is_constant(x)])
    twin = twin_of(recorder, fn)
    shared = not kwargs and code.co_filename == SHARED
    return recorder.call(key, twin, lambda *given: twin(*given, **kwargs), args, shared)


@functools.lru_cache(1000)
def constant_tuples(code: types.CodeType) -> frozenset[int]:
    """How long the constant tuples are that a function may put into variables and containers, or give back."""
    todo = [x for x in code.co_consts if type(x) is tuple and x]
    if not todo:
        return frozenset()
    steps = [x for x in dis.get_instructions(code) if x.opname not in ("CACHE", "EXTENDED_ARG")]
    kept = {id(a.argval) for a, b in pairwise(steps) if b.opname not in TAKEN_APART}
    kept |= {id(x.argval) for x in steps if x.opname == "RETURN_CONST"}
    found = {len(x) for x in todo if id(x) in kept}
    while todo:
        inner = [y for y in todo.pop() if type(y) is tuple and y]
        found.update(map(len, inner))
        todo += inner
    return frozenset(found)


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
