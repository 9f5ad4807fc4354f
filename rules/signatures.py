"""The signatures of NumPy's and SciPy's functions, as rules need them: which name stands at which position.

A rule knows ``out``, the array to write to, by its name, where a call may give it at a position; and a rule that takes
any number of arguments by position has no place for what a call gives by name.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any

import numpy as np

from .registry import is_ours, lookup, package_of

NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD
PLACED = (inspect.Parameter.POSITIONAL_ONLY, NAMED)

# What NumPy's methods hand their arguments on to, whatever is said of these elsewhere.
CORE = "numpy._core" if hasattr(np, "_core") else "numpy.core"
METHODS: dict[str, Any] = vars(importlib.import_module(f"{CORE}._methods"))


@functools.lru_cache(maxsize=1024)
def names_of(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a function by their positions: "" for one that has no name there; none if nobody knows."""
    for known in alike(fn):
        try:
            found = inspect.signature(known).parameters.values()
        except (TypeError, ValueError):
            continue
        return tuple([x.name if x.kind is NAMED else "" for x in found if x.kind in PLACED])
    return ()


def alike(fn: Any) -> list[Any]:
    """What has the signature of a function, the surest first: that of a function of C may be missing or wrong."""
    if fn is np.generic.choose:
        fn = np.ndarray.choose  # to which all that stands at a position is a choice
    name, rule = getattr(fn, "__name__", ""), lookup(fn)
    ruled = [] if rule is None or rule.function is None else [rule.function]
    if type(fn) is BuiltinFunctionType and type(fn.__self__) is np.ufunc:
        like = lookup(getattr(np.add, name))
        return [like.function if like is not None else fn]
    if getattr(fn, "__objclass__", None) in (np.ndarray, np.generic):
        own = METHODS.get("_" + {"max": "amax", "min": "amin"}.get(name, name))
        return [own, *ruled, fn, getattr(np, name, None)]
    first = type(fn) is BuiltinFunctionType and not takes_any(fn)
    return [*ruled, fn] if first else [fn, *ruled]


# ------------------------------------------------------------------------------- where results are written


def may_have_out(fn: Any) -> bool:
    """Whether a function is one of NumPy or SciPy, or of a module in C, and no method of something else."""
    kind = type(fn)
    if kind is FunctionType:  # the user's own may call anything ``out``
        return package_of(fn).partition(".")[0] in ("numpy", "scipy")
    if kind is BuiltinFunctionType:
        return fn.__self__ is None or type(fn.__self__) in (ModuleType, np.ufunc)
    if kind is MethodDescriptorType:
        return fn.__objclass__ in (np.ndarray, np.generic)
    return kind is type(np.sum)


def has_out(fn: Any, args: Any, kwargs: Any) -> bool:
    """Whether a call says where to write its result."""
    if type(fn) is np.ufunc and len(args) > fn.nin:
        return True
    out = with_named_out(fn, args, kwargs)[1].get("out")
    return any(x is not None for x in (out if type(out) is tuple else (out,)))


def with_named_out(fn: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a call with ``out`` by its name, and what stands behind it."""
    if type(fn) is np.ufunc:
        if len(args) > fn.nin:
            outs = (*args[fn.nin :], *[None] * (fn.nargs - len(args)))
            return args[: fn.nin], {**kwargs, "out": outs}
        return args, kwargs
    if len(args) < 2:
        return args, kwargs
    names = names_of(fn) if may_have_out(fn) else ()
    place = names.index("out") if "out" in names else len(args)
    # What is too much, or given twice, is for the function to say.
    if not place < len(args) <= len(names) or not kwargs.keys().isdisjoint(names[: len(args)]):
        return args, kwargs
    return args[:place], {**dict(zip(names[place:], args[place:], strict=False)), **kwargs}


# ------------------------------------------------------------------------------------- arguments by name


@functools.lru_cache(maxsize=1024)
def takes_any(fn: Callable[..., Any]) -> bool:
    """Whether the rule of a function of NumPy takes any number of arguments by position."""
    rule = None if type(fn) is np.ufunc else lookup(fn)  # whose operands have no names
    if rule is None or rule.function is None or not is_ours(rule.function):
        return False
    # The rules of others know options by name alone.
    if not str(getattr(fn, "__module__", "")).startswith("numpy"):
        return False
    kinds = [x.kind for x in inspect.signature(rule.function).parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds


def by_position(fn: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a call, at their positions those that the rule knows by them."""
    if not kwargs:
        return args, kwargs
    if fn is np.arange:
        return of_arange(args, kwargs)
    names = names_of(fn) if takes_any(fn) else ()
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
