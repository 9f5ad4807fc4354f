"""Faces: what a function that Wengert has made of another one shows of it, to ``help``, editors and class bodies.

Words
-----
made     a function that the user was given: a bound method, so that a call of it does nothing but run a program.
method   what stands for it in a class body: a function again, which is bound to the instances.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any

from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import attribute, isinstance
from ..tracer.places import GENERATED
from ..tracer.tracebacks import fold

METHOD = "<wengert method>"  # the file that the code of methods says it is from
CO_OPTIMIZED = 0x1
intrinsic(fold)
FIRST = inspect.Parameter("_", inspect.Parameter.POSITIONAL_ONLY)


class Lazy(inspect.Signature):
    """The signature of a function, found out when somebody asks for it.

    ``inspect`` takes the first parameter of a bound method away, by ``replace``; here it stays.
    """

    __slots__ = ("of",)

    def __init__(self, of: Callable[..., Any]) -> None:
        self.of = of

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:  # type: ignore[override]
        found = found_signature(self.of).parameters
        kinds = [x.kind for x in found.values()]
        # ``inspect`` wants one there that can be taken away
        positional = kinds and kinds[0] not in (FIRST.KEYWORD_ONLY, FIRST.VAR_KEYWORD)
        return found if positional else {"_": FIRST, **found}

    @property
    def return_annotation(self) -> Any:
        return inspect.Signature.empty  # a derivative is of the types of the arguments

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        parameters = found_signature(self.of).parameters
        return inspect.Signature([*parameters.values()])

    def __reduce__(self) -> Any:
        return Lazy, (self.of,)


def found_signature(f: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(f)
    except (TypeError, ValueError):  # of functions written in C
        return inspect.signature(lambda *args, **kwargs: None)


def dress(function: FunctionType, f: Any) -> None:
    """Let the function behind what is made of ``f`` show the name, the documentation and the signature of ``f``."""
    text = attribute(f, "__doc__")
    name = function.__name__
    function.__doc__ = f"{name}\n\n{text}" if isinstance(text, str) else name
    function.__wrapped__ = f  # type: ignore[attr-defined]
    function.__signature__ = Lazy(f)  # type: ignore[attr-defined]


def in_class_body() -> bool:
    """Whether the user's innermost line is one of a class body."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not code.co_flags & CO_OPTIMIZED:  # a module, a class body, or what `exec` runs
            return "__qualname__" in frame.f_locals
        if not code.co_filename.startswith(GENERATED):
            return False
        frame = frame.f_back
    return False


def as_method(made: Any) -> FunctionType:
    """What is made of a function, as a function again: in a class body it becomes a method, a bound one does not."""

    def method(*args: Any, **kwargs: Any) -> Any:
        try:
            return made(*args, **kwargs)
        except BaseException as error:
            fold(error)
            raise

    method.__code__ = code_of_methods(method.__code__, made.__name__)
    method.__qualname__ = made.__name__
    return functools.update_wrapper(method, made, ("__doc__", "__name__"), ())  # type: ignore[return-value]


def code_of_methods(code: CodeType, name: str) -> CodeType:
    """Code that runs under the tracer as a user's function does, and is left out of tracebacks as ours is."""
    return code.replace(co_filename=METHOD, co_name=name, co_qualname=name)


def behind(f: Any) -> Any:
    """What is made of a function, behind the method that stands for it in a class."""
    if type(f) is FunctionType and f.__code__.co_filename == METHOD:
        return f.__wrapped__  # type: ignore[attr-defined]
    return f
