"""Handlers: how a call of a function is traced, where neither a rule nor its Python code says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .plain_calls import plainly
from .session import Tracer
from .slots import plain_of
from .tape import Site

handlers: dict[Any, Callable[..., Any]] = {}


def handles(*fns: Any, takes: tuple[int, int] | None = None) -> Callable[[Any], Any]:
    """Say how a call of each of these functions is traced: ``handler(tracer, site, args, kwargs)``.

    A handler of a function that ``takes`` so many arguments, all of them by position, is given no others.
    """

    def register(handler: Any) -> Any:
        for fn in fns:
            handlers[fn] = handler if takes is None else strict(fn, handler, *takes)
        return handler

    return register


def strict(fn: Any, handler: Any, least: int, most: int) -> Any:
    """A handler that lets CPython refuse what ``fn`` does not take."""

    def checked(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
        if kwargs or not least <= len(args) <= most:
            given = tuple(map(plain_of, args)), {k: plain_of(x) for k, x in kwargs.items()}
            return plainly(fn, *given)  # raises what plain Python raises
        return handler(tracer, site, args, kwargs)

    return checked
