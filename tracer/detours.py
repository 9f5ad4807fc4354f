"""Detours: the code of special methods of the user, while C functions that may call them run."""

from __future__ import annotations

import functools
import inspect
import threading
import types
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from . import meaning, rewrite
from .active import active
from .kinds import MISSING, attribute, isinstance, static
from .places import LIBRARY, OURS, is_library

ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


class Detour:
    """A special method and, while it makes a detour, its ``own`` code and how many calls of C functions want it.

    C code knows it by the ``name`` that it has in its class, which may not be the one that it was written with.
    """

    __slots__ = ("code", "made_for", "method", "name", "own", "users")

    def __init__(self, method: types.FunctionType, name: str = "") -> None:
        self.method = method
        self.name = name or method.__name__
        self.own = method.__code__
        self.users = 0
        self.made_for: types.CodeType | None = None

    def put_up(self) -> None:
        if self.made_for is not self.own:
            name = None if isinstance(self, Callback) else self.name
            self.made_for, self.code = self.own, detour_code(self.method, self.own, name)
        self.method.__code__ = self.code


class Callback(Detour):
    """The detour of a function that C code is handed: what it gives back is plain."""

    __slots__ = ()


def finalized(tracer: Any, method: Any) -> None:
    """Let what CPython may call anywhere, such as ``__del__``, run its twin until the run ends."""
    known = tracer.finalizers
    if type(method) is not types.FunctionType or made_inside(method):
        return  # one that the run made runs as it is, and must not be kept alive
    if not any(x.method is method for x in known):
        detours.take([Detour(method)], known)


def registered(tracer: Any) -> None:
    """Let the user's functions that NumPy calls for an error, or Python for a warning, run their twins as well."""
    for handler in (np.geterrcall(), warnings.showwarning):
        if handler is not None:
            log = static(type(handler), "write")  # of an object that is a log
            for method in (attribute(handler, "__func__", handler), log):
                if type(method) is types.FunctionType and not is_library(
                    code_of(method).co_filename
                ):
                    finalized(tracer, method)


class Detours:
    """The detours of all threads: whoever comes first puts one up, whoever leaves last takes it down."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a finalizer may call a C function at any moment
        self.open: dict[int, Detour] = {}

    def take(self, wanted: Iterable[Detour], taken: list[Detour]) -> None:
        """Put the detours up; those that the caller has to leave again are added to ``taken``."""
        with self.lock:
            for detour in wanted:
                method = detour.method
                known = self.open.get(id(method))
                if known is None:
                    own = method.__code__
                    if own.co_flags & ASYNC or own.co_filename.startswith(OURS):
                        continue
                    known, detour.own = detour, own
                    self.open[id(method)] = detour
                known.users += 1
                taken.append(known)
                if known.users == 1:
                    known.put_up()

    def leave(self, taken: list[Detour]) -> None:
        with self.lock:
            for detour in taken:
                detour.users -= 1
                if detour.users == 0:
                    if (
                        detour.method.__code__.co_filename == __file__
                    ):  # nobody has changed it meanwhile
                        detour.method.__code__ = detour.own
                    del self.open[id(detour.method)]

    def code_of(self, fn: types.FunctionType) -> types.CodeType:
        with self.lock:
            known = self.open.get(id(fn))
            return fn.__code__ if known is None else known.own


detours = Detours()


def code_of(fn: types.FunctionType) -> types.CodeType:
    """The code of a Python function, also while some thread has it make a detour."""
    return detours.code_of(fn)


def made_inside(fn: types.FunctionType) -> bool:
    """Whether the run has made a function, which may make a detour at the moment: its code is a twin."""
    return rewrite.is_twin(fn.__code__) or (bool(detours.open) and rewrite.is_twin(code_of(fn)))


def compares(kind: type) -> bool:
    """Whether the user has said when an object of a class is equal to one of another class."""
    own = static(kind, "__eq__")
    if type(own) is not types.FunctionType:
        return False
    return not code_of(own).co_filename.startswith((*LIBRARY, "<string>"))


def detour_code(
    method: types.FunctionType, own: types.CodeType, name: str | None
) -> types.CodeType:
    """Code that runs the twin of a method, with the cells and defaults that twins have, or the method as it is.

    A function without a ``name`` was handed to C code itself.
    """
    users = not own.co_filename.startswith((*LIBRARY, "<string>"))  # which dataclasses write

    def run(given: Any, extra: Any, named: Any, options: Any) -> Any:
        args, kwargs = as_passed(method, own, given, extra, named, options)
        tracer = active.tracer
        if tracer is not None:
            tracer.called_back += users
            return meaning.escape.called_in_c(tracer, method, name, args, kwargs)
        # a thread that traces nothing has met the detour of another
        return without_detour(method)(*args, **kwargs)

    return leading_to(run, own, bool(own.co_flags & inspect.CO_GENERATOR))


def without_detour(method: types.FunctionType) -> types.FunctionType:
    """A function like this one, which makes no detour."""
    own = types.FunctionType(
        code_of(method),
        method.__globals__,
        method.__name__,
        method.__defaults__,
        method.__closure__,
    )
    own.__kwdefaults__ = method.__kwdefaults__
    return own


def as_passed(
    method: types.FunctionType,
    own: types.CodeType,
    given: Any,
    extra: Any,
    named: Any,
    options: Any,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call without those that are the method's own defaults, which its twin has as well."""
    count, defaults = len(given), method.__defaults__ or ()
    first = count - len(defaults)
    while not extra and count > first and given[count - 1] is defaults[count - 1 - first]:
        count -= 1
    preset = method.__kwdefaults__ or {}
    names = own.co_varnames[len(given) : len(given) + len(named)]
    kwargs = {k: x for k, x in zip(names, named, strict=True) if preset.get(k, MISSING) is not x}
    return (*given[:count], *extra), {**kwargs, **options}


def leading_to(run: Any, own: types.CodeType, generator: bool) -> types.CodeType:
    """Code that calls ``run``, with the parameters of a function's ``own`` code: the function may be asked for them."""
    counts = (own.co_posonlyargcount, own.co_argcount, own.co_kwonlyargcount)
    extra, options = (bool(own.co_flags & x) for x in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS))
    template = template_of(counts, extra, options, len(own.co_freevars), generator)
    parameters = own.co_argcount + own.co_kwonlyargcount + extra + options
    return template.replace(
        co_consts=tuple([run if x == "run" else x for x in template.co_consts]),
        co_varnames=own.co_varnames[:parameters] + template.co_varnames[parameters:],
    )


@functools.cache
def template_of(
    counts: tuple[int, int, int], extra: bool, options: bool, cells: int, generator: bool
) -> types.CodeType:
    """The code of a function that calls the constant ``"run"``; CPython wants as many cells as the method has."""
    only, positional, keyword = counts
    names = [f"cell{i}" for i in range(cells)]
    declared = f"nonlocal {', '.join(names)}" if names else "pass"
    given, named = [f"given{i}" for i in range(positional)], [f"named{i}" for i in range(keyword)]
    parameters = [*given[:only], *["/"][: bool(only)], *given[only:]]
    parameters += ["*extra"] if extra else ["*"][:keyword]
    parameters += [*named, *["**options"][:options]]
    passed = [f"[{', '.join(given)}]", "extra" if extra else "()"]
    passed += [f"[{', '.join(named)}]", "options" if options else "{}"]
    source = f"""
def around({", ".join(names)}):
    def detour({", ".join(parameters)}):
        {declared}
        run = "run"
        return {"(yield from run({}))" if generator else "run({})"}
    return detour
""".replace("({})", f"({', '.join(passed)})")
    scope: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), scope)
    return scope["around"](*[None] * cells).__code__
