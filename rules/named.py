"""Arguments by name, of functions whose rules take any number of them by position: there a name has no place."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .registry import is_ours, lookup


@functools.lru_cache(maxsize=1024)
def names_of(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a function by position, if its rule takes any number there; "" for one that has no name."""
    rule = None if type(fn) is np.ufunc else lookup(fn)  # whose operands have no names
    if rule is None or rule.function is None or not is_ours(rule.function):
        return ()
    # The rules of others know options by name alone.
    if not str(getattr(fn, "__module__", "")).startswith("numpy"):
        return ()
    kinds = [x.kind for x in inspect.signature(rule.function).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        return ()
    try:
        found = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return ()
    placed = [x for x in found if x.kind is not inspect.Parameter.KEYWORD_ONLY]
    known = [x.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for x in placed]
    return tuple([x.name if by_name else "" for x, by_name in zip(placed, known, strict=True)])


def by_position(fn: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a call, at their positions those that the rule knows by them."""
    if not kwargs:
        return args, kwargs
    if fn is np.arange:
        return of_arange(args, kwargs)
    names = names_of(fn)
    count = len(args)
    while count < len(names) and names[count] in kwargs:
        count += 1
    if count == len(args):
        return args, kwargs
    moved = names[len(args) : count]
    rest = {k: x for k, x in kwargs.items() if k not in moved}
    return (*args, *[kwargs[x] for x in moved]), rest


def of_arange(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of ``np.arange``, whose first one is the end if it is alone."""
    given = {k: x for k, x in kwargs.items() if k in ("start", "stop", "step")}
    placed = dict(zip(("start", "stop", "step"), args, strict=False))
    if not given or len(args) > 3 or placed.keys() & given.keys():
        return args, kwargs  # what is given twice is for NumPy to say
    given |= placed
    rest = {k: x for k, x in kwargs.items() if k not in given}
    if given.get("stop") is None:
        if "start" not in placed:
            return args, kwargs
        given = {"stop": given["start"]} | {k: x for k, x in given.items() if k == "step"}
    order = [given.get("start", 0), given["stop"]]
    return (*order, *[given[x] for x in ("step",) if x in given]), rest
