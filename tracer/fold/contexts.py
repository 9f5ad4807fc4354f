"""``with`` statements: managers of the user's, ``contextlib.suppress`` and ``nullcontext``, and NumPy's errstate."""

from __future__ import annotations

import contextlib
import types
from typing import Any

import numpy as np

from ...rules.words import with_article
from ..kinds import isinstance
from .basics import is_object, now, plain, refuse
from .recorder import Recorder


class Manager:
    """What a ``with`` statement enters and leaves in the place of a manager."""

    __slots__ = ()

    def __enter__(self) -> Any:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        return None


class OfUsers(Manager):
    """An object of a class of the user's, whose methods are called as any others: by ``call``."""

    __slots__ = ("call", "frame", "key", "methods", "obj")

    def __init__(
        self, recorder: Recorder, key: Any, obj: Any, frame: types.FrameType, call: Any
    ) -> None:
        names = "__enter__", "__exit__"
        self.key, self.obj, self.frame, self.call = key, obj, frame, call
        self.methods = [recorder.outside.of_class(type(obj), name) for name in names]
        if not all(type(x) is types.FunctionType for x in self.methods):
            refuse(f"{with_article(type(obj).__name__)} is entered")

    def __enter__(self) -> Any:
        given = self.call((self.key, "enter"), self.methods[0], (self.obj,), {})
        now().entered.append((self.obj, self.frame))
        return given

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        now().entered.pop()
        way = "leave" if kind is None else "escape"
        given = self.obj, kind, error, traceback
        return self.call((self.key, way), self.methods[1], given, {})


class Given(Manager):
    """``contextlib.nullcontext(value)``, and ``numpy.errstate``: where there is an event, a call is traced anyway."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __enter__(self) -> Any:
        return self.value


class Suppressing(Manager):
    """``contextlib.suppress(*kinds)``."""

    __slots__ = ("kinds",)

    def __init__(self, kinds: tuple[Any, ...]) -> None:
        self.kinds = kinds

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        return kind is not None and issubclass(kind, self.kinds)


def manager(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Manager | None:
    """What a call gives that makes a manager of the standard library or of NumPy; None for any other call."""
    if fn is contextlib.suppress and not kwargs:
        if not all(type(x) is type and issubclass(x, Exception) for x in args):
            return refuse("suppress is given something else than exceptions")  # type: ignore[no-any-return]
        return Suppressing(args)
    if fn is contextlib.nullcontext and len(args) < 2 and not kwargs:
        return Given(*args)
    if fn is np.errstate and not args and all(type(plain(x)) is str for x in kwargs.values()):
        np.errstate(**kwargs)
        if {kwargs.get("under", "ignore"), kwargs.get("all", "ignore")} != {"ignore"}:
            refuse("errstate asks for underflows, which go unnoticed")
        return Given()
    return None


def is_exit(x: Any) -> bool:
    """Whether something on the stack is what leaves a ``with`` statement."""
    return isinstance(x.__self__ if type(x) is types.MethodType else x, Manager)


def entered(key: Any, x: Any, frame: types.FrameType, call: Any) -> Manager:
    """What a ``with`` statement is given."""
    recorder = now()
    if isinstance(x, Manager):
        return x
    if is_object(recorder, x):
        return OfUsers(recorder, key, x, frame, call)
    return refuse(f"{with_article(type(x).__name__)} is entered")  # type: ignore[no-any-return]
