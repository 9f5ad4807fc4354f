"""Plain calls: C functions called as they are, which complain of what they are given as in plain Python."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .active import active
from .box import BOXES, ArrayBox, Box
from .kinds import flags_of, is_one_of, isinstance
from .places import user_frame
from .reads import HEAP_TYPE
from .session import Tracer


def plainly(fn: Callable[..., Any], args: Any, kwargs: Any, seen: bool = False) -> Any:
    """Call a C function; what it does not take for its argument it names as it is in plain Python.

    Where its caller is ``seen``, that is the traced function.
    """
    tracer = active.tracer
    if tracer is not None:
        tracer.declined = None
    try:
        return as_caller(fn, args, kwargs) if seen else plain_call(fn, args, kwargs)
    except Exception as error:
        show_plain_names(tracer, error, (args, kwargs))
        raise


def plain_call(fn: Any, args: Any, kwargs: Any) -> Any:
    """``fn(*args, **kwargs)``; where there are no keywords, without any: C code may tell an empty dict from none."""
    return fn(*args, **kwargs) if kwargs else fn(*args)


def show_plain_names(tracer: Tracer | None, error: Exception, given: Any) -> None:
    """Let code that complains of the type of a box complain of that of the value in it.

    That is the box which has declined an operation with something else, one that the code was ``given``, or one that
    a function of the user's has just given it.
    """
    message, *rest = ARGS.__get__(error) or (None,)
    if type(message) is not str or "wengert_" not in message:
        return
    if tracer is not None and tracer.declined is not None and " and '" in message:
        message = renamed(message, Box, tracer.declined)
        message = renamed(message, ArrayBox, tracer.declined)
    for x in wrapped_in(given):
        message = renamed(message, type(x), type(x.value))
    for op in () if tracer is None else reversed(tracer.tape.ops):
        if "wengert_" not in message:
            break
        if op.kind in ("call", "input") and isinstance(op.value, (*NUMBERS, np.ndarray)):
            ours = ArrayBox if isinstance(op.value, np.ndarray) else Box
            message = renamed(message, ours, type(op.value))
    ARGS.__set__(error, (message, *rest))


NUMBERS = (int, float, complex, np.generic)
ARGS = vars(BaseException)["args"]  # whatever a class of the user's calls so


def renamed(message: str, ours: type, kind: type) -> str:
    """A message that names a class where it named one of ours: with its module, as C code calls it, or by itself."""
    name = ours.__qualname__
    message = message.replace(f"{ours.__module__}.{name}", full_name(kind))
    return message.replace(ours.__name__, plain_name(kind)).replace(name, kind.__name__)


def plain_name(kind: type) -> str:
    """How CPython calls a class in a message."""
    return kind.__name__ if flags_of(kind) & HEAP_TYPE else type_name(kind)


def full_name(kind: type) -> str:
    """How CPython calls it where it says in which module it is."""
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def wrapped_in(value: Any) -> Iterator[Any]:
    """What stands for values in nested arguments, which may be cyclic; no class of the user's is asked for items."""
    todo, seen = [value], set()
    while todo:
        x = todo.pop()
        if is_one_of(type(x), WRAPPERS):
            yield x
        base = next((kind for kind in NESTED if isinstance(x, kind)), None)
        if base is not None and id(x) not in seen:
            seen.add(id(x))
            todo += reversed([*(dict.values(x) if base is dict else base.__iter__(x))])


WRAPPERS: set[type] = {*BOXES}  # whose ``value`` is what the user's program has
NESTED: tuple[Any, ...] = (tuple, list, dict, set, frozenset)


def type_name(kind: type) -> str:
    """How CPython calls a class written in C."""
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def as_caller(fn: Any, args: Any, kwargs: Any) -> Any:
    """Call what looks at its caller's module, or warns of its line, in a frame that has those of the traced code."""
    frame = user_frame()
    return types.FunctionType(step_at(frame.f_lineno or 0), frame.f_globals)(fn, args, kwargs)


def step(fn: Any, args: Any, kwargs: Any) -> Any:
    return fn(*args, **kwargs) if kwargs else fn(*args)  # as `plain_call`, in a frame of its own


@functools.cache
def step_at(line: int) -> types.CodeType:
    return step.__code__.replace(co_firstlineno=line - 1)
