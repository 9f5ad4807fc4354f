"""How a page tells what stands in an argument without a derivative from what stood there in the traced run."""

from __future__ import annotations

import enum
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...tracer import frames
from ...tracer.intrinsic import is_made
from ...tracer.kinds import HEAP_TYPE, attribute, flags_of, is_one_of, isinstance
from ...tracer.traits import Trait, Unknown
from .inline import Unwritable, constant

STREAMS = tuple(frames.STREAMS)


def differs(text: str, trait: Trait, strict: bool, described: Callable[[Any], str]) -> str:
    """What is true of ``text``, a part of an argument, if it is not as it was.

    A ``strict`` page is a file, for other versions of Python: a function is told by its name in it, and by its code in
    one that is not.
    """
    if type(trait) is Unknown:
        raise Unwritable(
            f"{text} was not kept with this pullback, so that nothing could tell it from another\n"
            "ask for the source where the pullback was made, with the JIT off: with jit(False)"
        )
    found = [*told(text, trait.value, strict)]
    if None in found:
        raise Unwritable(
            f"{text} is {described(trait.value)}, which a file cannot tell from another\n"
            "save a function of the rest: lambda x: f(x, it)"
        )
    return " or ".join(map(str, found))


def told(text: str, was: Any, strict: bool) -> Iterator[str | None]:
    """The conditions under which a value is another one than it was; None where nothing tells."""
    kind = type(was)
    if was is None or kind is bool or was is Ellipsis or was is NotImplemented:
        yield f"{text} is not {was!r}"
    elif is_one_of(kind, STREAMS):
        yield of_class(text, was)
    elif isinstance(was, enum.Enum):
        yield of_class(text, was)
        yield f"{text}.name != {was.name!r}"
    elif kind is types.ModuleType:
        yield f"getattr({text}, '__name__', None) != {was.__name__!r}"
    elif kind is types.FunctionType and not (strict and is_named(was)):
        yield from (None,) if strict else by_code(text, was)
    elif is_made(was):
        state = was.__self__
        own = f"{text}.__self__"
        yield of_class(own, state)
        yield by_value(f"{own}.options", state.options)
        yield from told(f"{own}.f", state.f, strict)
    elif kind is functools._lru_cache_wrapper:
        yield of_class(text, was)
        yield from told(f"{text}.__wrapped__", was.__wrapped__, strict)
    elif kind is types.MethodType:
        yield of_class(text, was)
        yield from told(f"{text}.__func__", was.__func__, strict)
    elif kind is functools.partial:
        yield of_class(text, was)
        yield f"(len({text}.args), [*{text}.keywords]) != {(len(was.args), [*was.keywords])!r}"
        yield from told(f"{text}.func", was.func, strict)
    elif callable(was):
        yield from by_name(text, was)
    else:
        yield by_value(text, was)


def by_value(text: str, was: Any) -> str | None:
    """The condition that a value is another one, as its text in Python says."""
    literal = repr(was) if type(was) is slice else constant(was)
    if literal is not None and isinstance(was, np.ndarray):
        return f"not np.array_equal({text}, {literal})"
    if literal is not None:
        return f"{text} != {literal}"
    if not flags_of(type(was)) & HEAP_TYPE and " at 0x" not in (shown := repr(was)):
        return f"repr({text}) != {shown!r}"  # of a class written in C, such as a date
    return None


def by_name(text: str, was: Any) -> Iterator[str | None]:
    """The conditions under which what has a name has another one."""
    if not is_named(was):
        yield None
        return
    yield f"getattr({text}, '__name__', None) != {was.__name__!r}"
    module = attribute(was, "__module__")
    if isinstance(module, str) and module != "__main__":  # which has another name elsewhere
        yield f"getattr({text}, '__module__', None) != {module!r}"


def by_code(text: str, was: types.FunctionType) -> Iterator[str | None]:
    """The conditions under which a function has another code, or other defaults."""
    code = was.__code__
    known = code.co_code, code.co_names, code.co_consts, was.__defaults__, was.__kwdefaults__
    if constant(known) is None:
        yield None
        return
    of = f"{text}.__code__"
    yield of_class(text, was)
    yield f"({of}.co_code, {of}.co_names, {of}.co_consts) != {known[:3]!r}"
    yield f"({text}.__defaults__, {text}.__kwdefaults__) != {known[3:]!r}"


def of_class(text: str, was: Any) -> str:
    return f"type({text}).__name__ != {type(was).__name__!r}"


def is_named(thing: Any) -> bool:
    """Whether a function or a class is what its module has under its name."""
    name, module = attribute(thing, "__name__"), attribute(thing, "__module__")
    if not isinstance(name, str) or not name.isidentifier():
        return False
    home = sys.modules.get(module if isinstance(module, str) else "numpy")  # as of a ufunc
    return getattr(home, name, None) is thing
