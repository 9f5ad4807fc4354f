"""Python functions that do what functions in C do, so that they can be followed."""

from __future__ import annotations

import bisect
import builtins
import heapq
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any


def greatest(items):  # type: ignore[no-untyped-def]
    """``max(items)``."""
    best = None
    for x in items:
        if best is None:
            best = x
        elif x > best:
            best = x
    if best is None:
        raise ValueError("max() iterable argument is empty")
    return best


def least(items):  # type: ignore[no-untyped-def]
    """``min(items)``."""
    best = None
    for x in items:
        if best is None:
            best = x
        elif x < best:
            best = x
    if best is None:
        raise ValueError("min() iterable argument is empty")
    return best


def any_of(items):  # type: ignore[no-untyped-def]
    for x in items:
        if x:
            return True
    return False


def all_of(items):  # type: ignore[no-untyped-def]
    for x in items:
        if not x:
            return False
    return True


def in_python(name: str, in_c: str) -> types.ModuleType | None:
    """A module of the standard library without its part in C; None where there is no source."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    missing = object()
    before: Any = sys.modules.get(in_c, missing)
    sys.modules[in_c] = None  # type: ignore[assignment]  # so that importing it fails
    try:
        spec.loader.exec_module(module)
    finally:
        if before is missing:
            del sys.modules[in_c]
        else:
            sys.modules[in_c] = before
    return module


def of_module(known: types.ModuleType, in_c: str, names: str) -> dict[Any, Callable[..., Any]]:
    """Functions of a module with what they are in Python."""
    module = in_python(known.__name__, in_c)
    found = {}
    for name in names.split():
        own, other = getattr(known, name, None), getattr(module, name, None)
        if type(own) is types.BuiltinFunctionType and type(other) is types.FunctionType:
            found[own] = other
    return found


ONE_ITERABLE = {
    builtins.max: greatest, builtins.min: least, builtins.any: any_of, builtins.all: all_of,
}  # fmt: skip
SAME: dict[Any, Callable[..., Any]] = {}


def equivalent(fn: Any) -> Callable[..., Any] | None:
    """The Python function that does what one in C does, whatever it is given."""
    if not SAME:
        SAME.update(of_module(heapq, "_heapq", "heappush heappop heapify heapreplace heappushpop"))
        SAME.update(
            of_module(bisect, "_bisect", "bisect_left bisect_right insort_left insort_right")
        )
    return SAME.get(fn)
