"""What calls of classes give: numbers, lists and iterators, exceptions, and objects of classes of the user's."""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from ...rules.words import with_article
from ..kinds import MISSING, flags_of, static
from ..reads import HEAP_TYPE
from . import arrays, equivalents, texts
from .attributes import assigned
from .basics import CONTAINERS, NUMBERS, computed, is_object, plain, refuse
from .functions import call_function
from .iteration import enumerated, from_the_end, zipped
from .memories import listed, stored
from .named import is_class_of_named, made, opened
from .operators import is_bool, truth
from .recorder import PLAIN, Box, Recorder
from .region import DICT, LIST, OBJECT
from .substitutes import SUBSTITUTES, TAKEN

FOLLOWED = PLAIN | NUMBERS | {Box}

SEQUENCES = frozenset((list, tuple, dict, set, enumerate, zip, reversed))

PLAIN_ERRORS = frozenset((  # which keep what they are given, and do nothing else
    Exception, ArithmeticError, ZeroDivisionError, OverflowError, FloatingPointError, ValueError, LookupError,
    IndexError, KeyError, TypeError, RuntimeError, NotImplementedError, AssertionError,
))  # fmt: skip


def construct(recorder: Recorder, key: Any, cls: Any, args: Any, kwargs: Any) -> Any:
    if cls is enumerate and {*kwargs} == {"start"}:
        args, kwargs = (*args, kwargs["start"]), {}
    if cls is zip and [*kwargs.items()] == [("strict", False)]:
        kwargs = {}
    if cls in SUBSTITUTES:
        return substituted(recorder, key, cls, args, kwargs)
    if cls in (float, int, str) and not args and not kwargs:
        return cls()
    if kwargs and not flags_of(cls) & HEAP_TYPE:
        return refuse(f"{cls.__name__} is given keywords")
    if cls in NUMBERS and len(args) == 1:
        return converted(recorder, key, cls, args[0])
    if cls is str and len(args) == 1 and not kwargs:
        return texts.shown(recorder, key, args[0], "s")
    if cls is bool and len(args) == 1:
        return args[0] if is_bool(args[0]) else truth(key, args[0])
    if cls is range:
        args = tuple([whole(recorder, (key, i), x) for i, x in enumerate(args)])
    if cls is range and all(type(plain(x)) is int for x in args):
        return recorder.value(key, range, args, computed(recorder, key, range, args))
    if cls in SEQUENCES and not kwargs:
        return sequence(recorder, key, cls, args)
    if issubclass(cls, Exception):
        return exception(recorder, key, cls, args, kwargs)
    if flags_of(cls) & HEAP_TYPE:
        return instance(recorder, key, cls, args, kwargs)
    return refuse(f"{cls.__name__} is called")


def whole(recorder: Recorder, key: Any, x: Any) -> Any:
    """An integer as `range` takes it: NumPy's become Python's."""
    return converted(recorder, key, int, x) if isinstance(plain(x), np.integer) else x


def substituted(recorder: Recorder, key: Any, cls: Any, args: Any, kwargs: Any) -> Any:
    """A deque, a defaultdict or a Counter."""
    own = SUBSTITUTES[cls]
    places, names = TAKEN[own]
    if len(args) > len(places) or not {*kwargs} <= {*names}:
        return refuse(f"{with_article(cls.__name__)} is given something else")
    by_place = zip(args, places, strict=False)
    for x, kinds in [*by_place, *((x, names[name]) for name, x in kwargs.items())]:
        if kinds is not None and type(plain(x)) not in kinds:
            return refuse(
                f"{with_article(cls.__name__)} is given {with_article(type(plain(x)).__name__)}"
            )
    return instance(recorder, key, own, args, kwargs)


def sequence(recorder: Recorder, key: Any, cls: Any, args: Any) -> Any:
    """Lists and iterators made of others."""
    args = [opened(recorder, (key, "given", i), x) for i, x in enumerate(args)]
    if not args and cls in CONTAINERS:
        return recorder.born(key, *((LIST, (), []) if cls is list else (DICT, (), cls())))
    if cls is dict and len(args) == 1 and type(args[0]) is dict:
        return call_function(recorder, key, equivalents.copied, args, {})
    if cls is tuple and len(args) == 1 and type(args[0]) is tuple:
        return args[0]
    if cls is list and len(args) == 1:
        return listed(recorder, key, args[0])
    if cls is enumerate and 1 <= len(args) <= 2:
        return enumerated(recorder, key, *args)
    if cls is reversed and len(args) == 1:
        return from_the_end(recorder, key, args[0])
    if cls is zip and args:
        return zipped(recorder, key, *args)
    return refuse(f"{cls.__name__} is called")


def exception(recorder: Recorder, key: Any, cls: Any, args: Any, kwargs: Any) -> Any:
    """An exception: an object of which ``args`` is an attribute, if what it is given can be followed."""
    own_bases = [x for x in cls.__mro__ if flags_of(x) & HEAP_TYPE]
    base, *others = [x for x in cls.__mro__ if x not in own_bases]
    method = recorder.outside.of_class(cls, "__init__")
    own = method is not static(base, "__init__")
    if (
        not PLAIN_ERRORS >= {base, *others} - {BaseException, object}
        or recorder.outside.of_class(cls, "__new__") is not static(base, "__new__")
        or recorder.outside.of_class(cls, "__del__") is not MISSING
        or (own and type(method) is not types.FunctionType)
        or (kwargs and not own)
    ):
        return refuse(f"{with_article(cls.__name__)} is made")
    error = cls.__new__(cls, *args)
    if is_followed(recorder, args):
        recorder.born((key, "new"), OBJECT, (cls, "args", recorder.packed(key, args)), error)
    elif own:
        return refuse(f"{with_article(cls.__name__)} is given something that is not followed")
    if own and call_function(recorder, key, method, (error, *args), kwargs) is not None:
        return refuse("__init__ gives something")
    return error


def inherited(recorder: Recorder, key: Any, fn: Any, args: Any) -> None:
    """Methods that objects have of classes in C, called by classes of the user's."""
    obj, *given = args
    if is_object(recorder, obj):
        if fn is object.__init__ and not given:
            return
        if fn is object.__setattr__ and len(given) == 2 and type(given[0]) is str:
            assigned(recorder, key, obj, *given)
            return
        if fn.__name__ == "__init__" and fn.__objclass__ in PLAIN_ERRORS | {BaseException}:
            if is_followed(recorder, tuple(given)):
                stored(recorder, key, obj, "args", tuple(given))
                fn(*args)
                return
    refuse(f"{fn.__objclass__.__name__}.{fn.__name__} is called")


def is_followed(recorder: Recorder, x: Any) -> bool:
    """Whether a memory can hold something."""
    if type(x) is tuple:
        return all(is_followed(recorder, y) for y in x)
    return type(x) in FOLLOWED or id(x) in recorder.memories


def converted(recorder: Recorder, key: Any, cls: Any, x: Any) -> Any:
    """``float(x)`` and ``int(x)``."""
    value = plain(x)
    if arrays.is_boxed(x):
        if type(value) is np.ndarray and value.ndim:
            return refuse(f"{cls.__name__} of an array with axes is called")
        return arrays.called(recorder, key, cls, (x,), {})
    if type(value) is cls and cls is not int:  # an int of an int has no derivative
        return x
    if type(x) in (bool, int, float):
        return cls(x)
    if type(value) not in NUMBERS and type(value) not in (bool, str):
        return refuse(f"{cls.__name__} of {with_article(type(value).__name__)} is called")
    return recorder.value(key, cls, (x,), computed(recorder, key, cls, (x,)))


def instance(recorder: Recorder, key: Any, cls: Any, args: Any, kwargs: Any) -> Any:
    """An object of a class of the user's."""
    if is_class_of_named(cls):
        return made(recorder, key, cls, args, kwargs)
    outside = recorder.outside
    if issubclass(cls, dict):
        return record(recorder, key, cls, args, kwargs)
    if outside.of_class(cls, "__new__") is not object.__new__:
        return refuse(f"{with_article(cls.__name__)} is made in a way of its own")
    if outside.of_class(cls, "__del__") is not MISSING:
        return refuse(f"{with_article(cls.__name__)} has __del__")
    method = outside.of_class(cls, "__init__")
    try:
        obj = object.__new__(cls, *args, **kwargs)
    except TypeError:  # it takes none if there ever was another
        return refuse(f"{with_article(cls.__name__)} is given arguments that it does not take")
    recorder.born((key, "new"), OBJECT, (cls,), obj)
    if type(method) is types.FunctionType:
        if call_function(recorder, key, method, (obj, *args), kwargs) is not None:
            return refuse("__init__ gives something")
    elif method is not object.__init__ or args or kwargs:
        return refuse(f"{with_article(cls.__name__)} is made in C")
    return obj


def record(recorder: Recorder, key: Any, cls: Any, args: Any, kwargs: Any) -> Any:
    """An object of a class that is derived from dict, made of keywords: it has items, and no attributes of its own."""
    of_class = recorder.outside.of_class
    usual = [of_class(cls, name) is static(dict, name) for name in ("__new__", "__init__")]
    if args or not all(usual) or of_class(cls, "__del__") is not MISSING:
        return refuse(f"{with_article(cls.__name__)} is made in a way of its own")
    items = [y for name, x in kwargs.items() for y in (name, recorder.packed((key, name), x))]
    obj = cls.__new__(cls)
    dict.update(obj, kwargs)
    return recorder.born((key, "new"), OBJECT, (cls, *items), obj)
