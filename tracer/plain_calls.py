"""Plain calls: C functions called as they are, which complain of what they are given as in plain Python."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

from .active import active
from .box import BOXES, Box
from .kinds import flags_of, is_one_of, isinstance
from .places import user_frame
from .reads import HEAP_TYPE


def plainly(fn: Callable[..., Any], args: Any, kwargs: Any, seen: bool = False) -> Any:
    """Call a C function; what it does not take for its argument it names as it is in plain Python.

    Where its caller is ``seen``, that is the traced function.
    """
    tracer = active.tracer
    if tracer is not None:
        tracer.declined = None
    try:
        return as_caller(fn, args, kwargs) if seen else plain_call(fn, args, kwargs)
    except TypeError as error:
        show_plain_names(error, (args, kwargs), None if tracer is None else tracer.declined)
        raise


def plain_call(fn: Any, args: Any, kwargs: Any) -> Any:
    """``fn(*args, **kwargs)``; where there are no keywords, without any: C code may tell an empty dict from none."""
    return fn(*args, **kwargs) if kwargs else fn(*args)


def show_plain_names(error: TypeError, given: Any, declined: type | None) -> None:
    """Let a C function that complains of the type of a box complain of that of the value in it.

    That is the box which has ``declined`` an operation with something else, or one that the function was given.
    """
    message = error.args[0] if error.args else None
    if isinstance(message, str) and "Box" in message:
        if declined is not None and " and '" in message:
            message = re.sub(r"\b(Array)?Box\b", plain_name(declined), message)
        for box in boxes_in(given):
            message = re.sub(rf"\b{type(box).__name__}\b", plain_name(type(box.value)), message)
        error.args = (message, *error.args[1:])


def plain_name(kind: type) -> str:
    """How CPython calls a class in a message."""
    return kind.__name__ if flags_of(kind) & HEAP_TYPE else type_name(kind)


def boxes_in(value: Any) -> Iterator[Box]:
    """The boxes in nested arguments, which may be cyclic; no class of the user's is asked for items."""
    todo, seen = [value], set()
    while todo:
        x = todo.pop()
        if is_one_of(type(x), BOXES):
            yield x
        base = next((kind for kind in NESTED if isinstance(x, kind)), None)
        if base is not None and id(x) not in seen:
            seen.add(id(x))
            todo += reversed([*(dict.values(x) if base is dict else base.__iter__(x))])


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
