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
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import attribute, isinstance
from ..tracer.places import GENERATED
from ..tracer.tracebacks import fold

METHOD = "<wengert method>"  # the file that the code of methods says it is from
CO_OPTIMIZED = 0x1
intrinsic(fold)
# The parameter that a bound method leaves out; no name of the user's, for tools tell arguments apart by their names.
FIRST = inspect.Parameter("_state", inspect.Parameter.POSITIONAL_ONLY)


class Face:
    """What stands between a made function and the user's: the user's, with a signature as methods have it."""

    __slots__ = ("__wrapped__",)

    def __init__(self, f: Callable[..., Any]) -> None:
        self.__wrapped__ = f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        """Found out when somebody asks; a derivative is of the types of the arguments, so nothing is said of it."""
        try:
            found = inspect.signature(self.__wrapped__)
        except (TypeError, ValueError):  # of functions written in C
            found = inspect.signature(lambda *args, **kwargs: None)
        parameters = [FIRST, *found.parameters.values()]
        return inspect.Signature(parameters, __validate_parameters__=False)


def dress(function: FunctionType, f: Any) -> None:
    """Let the function behind what is made of ``f`` show the name, the documentation and the signature of ``f``."""
    text = attribute(f, "__doc__")
    name = function.__name__
    function.__doc__ = f"{name}\n\n{text}" if isinstance(text, str) else name
    function.__wrapped__ = Face(f)  # type: ignore[attr-defined]


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
