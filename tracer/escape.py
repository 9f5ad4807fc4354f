"""Noticing Python code that runs behind the tracer's back.

A C function that is handed an object may call Python methods of its class (``sorted`` calls ``__lt__``, ``str``
calls ``__str__``). Such a call does not pass through a hook, so it does not run as a twin. While a C function runs
on arguments that could do that, every Python frame that starts is looked at; one that holds a box is an escape.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from . import rewrite
from .box import BOXES
from .errors import EscapeError
from .places import OURS, blame
from .session import active
from .tape import Site

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
        )
        + (types.BuiltinFunctionType, types.MethodDescriptorType, types.ModuleType)
    )
    | BOXES
)


def may_call_back(value: Any, depth: int = 2) -> bool:
    """Whether a C function could reach Python code through this argument."""
    kind = type(value)
    if kind in HARMLESS or issubclass(kind, np.generic):
        return False
    if kind in (tuple, list, set, frozenset) and depth:
        return any(may_call_back(x, depth - 1) for x in list(value)[:50])
    if kind is dict and depth:
        return any(may_call_back(x, depth - 1) for x in list(value.values())[:50])
    return kind not in (type, types.GeneratorType)


def watched(fn: Callable[..., Any], args: Any, kwargs: Any, site: Site) -> Any:
    """Call a C function with the special methods of its arguments' classes instrumented.

    Whatever Python code it runs all the same, and with a box, is an error.
    """
    owner = getattr(fn, "__self__", None)
    values = [x for x in (owner, *args, *kwargs.values()) if may_call_back(x)]
    if not values:
        return fn(*args, **kwargs)
    escaped: list[Any] = []

    def look(frame: Any, event: str, arg: Any) -> None:
        if event != "call" or escaped:
            return
        code = frame.f_code
        if rewrite.is_twin(code) or code.co_filename.startswith(OURS):
            return
        if any(holds_box(value) for value in frame.f_locals.values()):
            escaped.append(code)

    before = sys.getprofile()
    swapped = instrument_methods(values)
    sys.setprofile(look)
    try:
        result = fn(*args, **kwargs)
    finally:
        sys.setprofile(before)
        for method, code in swapped:
            method.__code__ = code
    if escaped:
        code = escaped[0]
        raise EscapeError(
            f"{blame(site)}: {getattr(fn, '__name__', fn)} called the Python "
            f"function {code.co_name} ({code.co_filename}:{code.co_firstlineno}), which could not be traced, with "
            "a traced value. Call it directly, or write the loop in Python."
        )
    return result


def instrument_methods(values: list[Any]) -> list[tuple[Any, types.CodeType]]:
    """Give the special methods that C code may call the code of their twins; returns what to restore.

    Other threads may meet that code meanwhile: without a tracer of their own its hooks do what plain Python does.
    """
    from . import hooks

    swapped = []
    for cls in {base for value in values for kind in classes_in(value, 3) for base in kind.__mro__}:
        for name, method in list(vars(cls).items()):
            if type(method) is types.FunctionType and name.startswith("__") and name.endswith("__"):
                code = method.__code__
                if not rewrite.is_twin(code) and not code.co_filename.startswith(OURS):
                    with contextlib.suppress(rewrite.UnsupportedCode):
                        if active.tracer is not None and active.tracer.reads is not None:
                            reads = active.tracer.reads
                            reads.note(reads.constant(cls), "static", name, method)
                        method.__code__ = rewrite.instrument(code, hooks)
                        swapped.append((method, code))
    return swapped


def classes_in(value: Any, depth: int) -> set[type]:
    """The classes of an argument and of what it contains."""
    kind = type(value)
    if kind in (tuple, list, set, frozenset, dict) and depth:
        items = (*value, *value.values()) if kind is dict else value
        return {cls for x in items for cls in classes_in(x, depth - 1)}
    return {kind} if may_call_back(value, 0) else set()


def holds_box(value: Any) -> bool:
    """Whether a local variable is a box, or a container or object that holds one."""
    kind = type(value)
    if kind in BOXES:
        return True
    if kind in (tuple, list):
        return any(type(x) in BOXES for x in value)
    if kind is dict:
        return any(type(x) in BOXES for x in value.values())
    own = (
        getattr(value, "__dict__", None)
        if not isinstance(value, (type, types.ModuleType))
        else None
    )
    return type(own) is dict and any(type(x) in BOXES for x in own.values())
