"""Where functions of NumPy and SciPy take the array that they write their result to: ``out``, which may also stand at a
position."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any

import numpy as np

from .registry import lookup, package_of

PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

# What NumPy's methods hand their arguments on to, whatever is said of these elsewhere.
CORE = "numpy._core" if hasattr(np, "_core") else "numpy.core"
METHODS: dict[str, Any] = vars(importlib.import_module(f"{CORE}._methods"))


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


@functools.lru_cache(maxsize=1024)
def up_to_out(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters of a function that may be given by position, or none if ``out`` is not among them."""
    for known in alike(fn):
        try:
            found = inspect.signature(known).parameters.values()
        except (TypeError, ValueError):
            continue
        names = tuple([x.name for x in found if x.kind in PLACED])
        return names if "out" in names else ()
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
    return [*ruled, fn] if type(fn) is BuiltinFunctionType else [fn, *ruled]


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
    names = up_to_out(fn) if may_have_out(fn) else ()
    place = names.index("out") if names else len(args)
    # What is too much, or given twice, is for the function to say.
    if not place < len(args) <= len(names) or not kwargs.keys().isdisjoint(names[: len(args)]):
        return args, kwargs
    return args[:place], {**dict(zip(names[place:], args[place:], strict=False)), **kwargs}
