"""Functions in C: those that read or change what the run has made, and those that compute."""

from __future__ import annotations

import functools
import math
import operator
import types
from abc import ABCMeta
from typing import Any

from ...rules import registry
from ...rules.words import with_article
from ..kinds import MISSING, is_one_of
from . import arrays, equivalents, texts
from .attributes import get, of_users, put
from .basics import CONTAINERS, NUMBERS, computed, decided, is_object, plain, refuse
from .equivalents import BY_KEY, ONE_ITERABLE, equivalent
from .functions import call_function
from .iteration import OF_ITERATION
from .memories import born_list, count_of, elements
from .methods import method_of_dict, method_of_list, method_of_set, ordered
from .named import is_named, parts
from .operators import a_length, compare
from .recorder import Box, Recorder
from .region import LENGTH, SCALARS, Array
from .substitutes import KINDS

OF_TUPLES = frozenset((len, sum, max, min, sorted, any, all, math.fsum, math.prod))
ABSTRACT = arrays.PACKAGES | {"collections", "numbers"}

IN_C = frozenset((  # primitives among functions in C that are not those of `math`
    abs, round, pow, divmod, operator.add, operator.sub, operator.mul, operator.truediv, operator.neg,
))  # fmt: skip


def call_builtin(
    recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    owner = fn.__self__
    if type(owner) is list and id(owner) in recorder.memories:
        return method_of_list(recorder, key, owner, fn.__name__, args, kwargs)
    if fn.__name__ == "fromkeys" and owner is dict and len(args) == 2:
        return call_function(recorder, key, equivalents.fromkeys, args, {})
    if type(owner) is set and id(owner) in recorder.memories:
        return method_of_set(recorder, key, owner, fn.__name__, args)
    if fn is getattr and len(args) == 2 and type(args[1]) is str:
        return get(key, of_users(*args), args[1])
    if fn is setattr and len(args) == 3 and type(args[1]) is str:
        return put(recorder, key, of_users(*args[:2]), args[1], args[2])
    if type(owner) is dict and id(owner) in recorder.memories:
        return method_of_dict(recorder, key, owner, fn.__name__, args, kwargs)
    if fn is repr and len(args) == 1:
        return texts.shown(recorder, key, args[0], "r")
    if fn is sorted:
        return ordered(recorder, key, args, kwargs)
    if fn in OF_TUPLES and args and is_named(recorder, args[0]):
        return call_builtin(recorder, key, fn, (parts(recorder, key, args[0]), *args[1:]), kwargs)
    if (fn is max or fn is min) and len(args) > 1 and not kwargs and all(map(is_one, args)):
        return extreme(recorder, key, fn, args)
    if any(map(arrays.is_array, args)) and fn not in (isinstance, callable):
        return arrays.called(recorder, key, fn, args, kwargs)
    if fn in BY_KEY and [*kwargs] == ["key"] and kwargs["key"] is not None:
        items = args[0] if len(args) == 1 else born_list(recorder, (key, "items"), [*args])
        return call_function(recorder, key, BY_KEY[fn], (items, kwargs["key"]), {})
    if kwargs:
        return refuse(f"{fn.__name__} is given keywords")
    if fn is functools.reduce and len(args) > 1:
        reduce: Any = equivalents.reduced if len(args) == 2 else equivalents.reduced_from
        return call_function(recorder, key, reduce, args, {})
    if not issubclass(type(owner), types.ModuleType):
        return refuse(f"{fn.__name__} of {with_article(type(owner).__name__)} is called")
    if fn is len and len(args) == 1:
        (x,) = args
        if id(x) in recorder.memories and type(x) in CONTAINERS:
            return recorder.value(key, LENGTH, (x,), len(x))
        if type(x) is tuple or type(x) is str:
            return len(x)
        if is_object(recorder, x):
            method = recorder.outside.of_class(type(x), "__len__")
            if type(method) is types.FunctionType:
                return a_length(
                    recorder, (key, "length"), call_function(recorder, key, method, (x,), {})
                )
        if type(x) is Box and type(x.value) in (range, str):
            return recorder.value(key, len, (x,), len(x.value))
    if (fn is max or fn is min) and len(args) > 1:
        return extreme(recorder, key, fn, args)
    if fn is isinstance and len(args) == 2:
        return is_instance(recorder, key, *args)
    if fn is operator.index and len(args) == 1 and type(plain(args[0])) is int:
        if type(args[0]) is not Box:
            return args[0]
        return recorder.value(key, int, args, computed(recorder, key, int, args))  # no derivative
    if fn is callable and len(args) == 1:
        return is_callable(recorder, *args)
    if len(args) == 1 and fn in ONE_ITERABLE and type(args[0]) in (list, tuple):
        return call_function(recorder, key, ONE_ITERABLE[fn], args, {})
    if fn is sum and len(args) == 1 and type(args[0]) is list:
        if args[0] and all(map(arrays.is_boxed, args[0])):
            return call_function(recorder, key, equivalents.added, args, {})
    if (fn is sum or fn is math.fsum) and len(args) == 1 and type(args[0]) is tuple:
        return call_builtin(recorder, key, fn, (elements(recorder, (key, "items"), args[0]),), {})
    if (fn is sum or fn is math.fsum) and len(args) == 1 and type(args[0]) is list:
        return total(recorder, key, fn, args[0])
    if (same := equivalent(fn)) is not None:
        return call_function(recorder, key, same, args, {})
    if all(type(x) is Box or type(x) in NUMBERS for x in args) and is_primitive(fn):
        if not any(type(x) is Box for x in args):
            return fn(*args)
        value = computed(recorder, key, fn, args)
        if type(value) is bool:
            return decided(recorder, key, fn, args, value)
        if type(value) is tuple:
            return arrays.given(recorder, key, fn, [*args], ("call", ("x",) * len(args), ()), value)
        if type(value) not in NUMBERS:
            return refuse(f"{fn.__name__} gives {with_article(type(value).__name__)}")
        return recorder.value(key, fn, args, value)
    return refuse(f"{fn.__name__} is called")


def total(recorder: Recorder, key: Any, fn: Any, items: list[Any]) -> Any:
    """The sum of a list of numbers, which is an integer where there are none."""
    values = [plain(x) for x in items]
    if id(items) not in recorder.memories or any(type(x) not in NUMBERS for x in values):
        return refuse("something else than numbers is added up")
    recorder.scope(key, fn)
    count = count_of(recorder, key, items)
    if not decided(recorder, (key, "any"), operator.truth, (count,), bool(items)):
        return recorder.closed([fn(())])[0]
    try:
        found = fn(values)
    except Exception:
        return refuse(f"{fn.__name__} raises")
    return recorder.closed([recorder.value((key, "sum"), fn, (items,), found)])[0]


def is_primitive(fn: Any) -> bool:
    """Whether a function in C has a rule, or no derivative, and does nothing but compute."""
    return fn in IN_C or (
        fn.__module__ == "math" and vars(math).get(fn.__name__) is fn and fn in registry.rules
    )


def is_instance(recorder: Recorder, key: Any, x: Any, kinds: Any) -> bool:
    """Abstract classes of libraries are asked at each call, for who belongs to them may change."""
    kinds = kinds if type(kinds) is tuple else (kinds,)
    x = x.value if type(x) is Array else plain(x)
    if type(x) in OF_ITERATION | KINDS or not all(type(k) is type or is_abstract(k) for k in kinds):
        refuse("isinstance asks a class of its own kind")
    for i, k in enumerate(kinds):
        if type(k) is type:
            found = isinstance(x, k)
        else:
            given = type(x), k
            found = decided(recorder, (key, i), issubclass, given, issubclass(*given))
        if found:
            return True
    return False


def is_abstract(kind: Any) -> bool:
    """Whether something is an abstract class of a library that does nothing but answer."""
    return type(kind) is ABCMeta and kind.__module__.partition(".")[0] in ABSTRACT


def is_callable(recorder: Recorder, x: Any) -> bool:
    if is_object(recorder, x):
        return recorder.outside.of_class(type(x), "__call__") is not MISSING
    if type(x) in OF_ITERATION:
        return bool(refuse("it is asked whether an iterator is callable"))
    return callable(x.value if type(x) is Array else plain(x))


def extreme(recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...]) -> Any:
    """``max`` or ``min`` of numbers: decisions whose ways meet again. Equal numbers share the slope."""
    if not all(map(is_one, args)):
        return refuse("max or min of other things than numbers")
    if not any(type(x) is Box for x in args):
        return fn(*args)
    better = operator.gt if fn is max else operator.lt
    recorder.scope(key, fn)
    best = args[0]
    for i, x in enumerate(args[1:]):
        if compare((key, i), better, True, x, best):
            best = x
    given = [
        x
        for i, x in enumerate(args)
        if x is best or compare((key, i, "tie"), operator.eq, True, x, best)
    ]
    if len(given) > 1 and any(map(arrays.is_boxed, given)):
        best = arrays.called(recorder, key, fn, given, {})
    elif len(given) > 1:
        best = recorder.value(key, fn, given, plain(best))
    return recorder.closed([best])[0]


def is_one(x: Any) -> bool:
    """Whether something is a number of Python's or NumPy's."""
    return is_one_of(type(plain(x)), NUMBERS | SCALARS)
