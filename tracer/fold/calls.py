"""What a call means, by what is called and by what it is given."""

from __future__ import annotations

import math
import sys
import types
from itertools import islice
from typing import Any

import numpy as np

from ...rules import registry
from ...rules.words import with_article
from ..kinds import MISSING, hashes_natively
from . import arrays, attributes, contexts, equivalents, named, nested, operators, streams
from .basics import NUMBERS, apart_by_length, decided, is_object, now, plain, refuse
from .builtin import call_builtin
from .construction import construct, inherited
from .equivalents import BY_KEY, GENERATORS, ONE_ITERABLE
from .functions import call_function
from .generators import generated, is_generator
from .iteration import Collected, Iterator, Source, advanced, ended, of_items, source_of, zipped
from .memories import born_dict
from .methods import OF_NUMBERS_ALONE, OF_TEXT, in_order, of_number, of_text, ordered
from .recorder import Box, Recorder
from .region import Array, is_stream
from .substitutes import KINDS, SUBSTITUTES

CONSUMERS = frozenset((list, tuple, sorted, sum, max, min, math.fsum))
SIZING = (list, sorted) if sys.version_info >= (3, 14) else (list, sorted, tuple)

# Who may leave items of a generator, with how many arguments.
PARTIAL: tuple[tuple[Any, int, Any], ...] = (
    (any, 1, equivalents.any_of), (all, 1, equivalents.all_of),
    (next, 1, equivalents.first_of), (next, 2, equivalents.first_or),
)  # fmt: skip

OF_NUMBERS = (sum, max, min, math.fsum, math.prod)


def call(key: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``fn(*args, **kwargs)``."""
    recorder = now()
    kind = type(fn)
    if (kind is types.FunctionType or hashes_natively(kind)) and registry.is_users(fn):
        return refuse(f"{getattr(fn, '__name__', fn)} has a rule of the user's")
    if kind is types.BuiltinFunctionType and type(fn.__self__) is str and fn.__name__ in OF_TEXT:
        if args and type(args[0]) is Collected and fn.__name__ == "join":
            args = (args[0].items, *args[1:])
        if not kwargs:
            return of_text(recorder, key, getattr(str, fn.__name__), (fn.__self__, *args))
    if args and type(args[0]) is Collected:
        if args[0].lazy and not kwargs:
            for one, count, same in PARTIAL:
                if fn is one and len(args) == count:
                    return call_function(recorder, key, same, (args[0].items, *args[1:]), {})
        return consumed(recorder, key, fn, (args[0].items, *args[1:]), kwargs)
    if args and any(fn is one for one in CONSUMERS) and is_gone_through(recorder, args[0]):
        gone_through = iterated((key, "each"), args[0])
        if any(fn is one for one in SIZING):
            sized(recorder, (key, "size"), args[0])
        items = gathered(recorder, key, gone_through)
        return consumed(recorder, key, fn, (items, *args[1:]), kwargs)
    if kind is types.MethodType:
        fn, args, kind = fn.__func__, (fn.__self__, *args), type(fn.__func__)
    if streams.is_maker(fn, args, kwargs):
        return streams.made(recorder, key, fn, args[0])
    if kind is types.MethodDescriptorType and fn in OF_NUMBERS_ALONE and len(args) == 1:
        return of_number(recorder, key, fn, args)
    if args and type(args[0]) is Box and is_stream(type(args[0].value)):
        return streams.called(recorder, key, fn, args, kwargs)
    if any(fn is one for one in arrays.OF_TYPES) and all(
        map(is_of_types, (*args, *kwargs.values()))
    ):
        return fn(*args, **kwargs)
    if kind is types.FunctionType and (of_named := named.method(recorder, fn, args)) is not None:
        if of_named == "_replace":
            return named.replaced(recorder, key, args[0], kwargs)
        values = named.parts(recorder, (key, "parts"), args[0])
        return born_dict(recorder, key, [*named.fields_of(type(args[0]))], [*values])
    if kind is types.FunctionType:
        if fn is equivalents.alike:
            return operators.alike(recorder, key, *args)
        if fn is equivalents.counted_one_by_one:
            return one_by_one(recorder, *args)
        if fn is equivalents.in_order:
            return in_order(recorder, key, *args)
        if fn is equivalents.is_unordered:
            return operators.is_unordered(recorder, key, *args)
        if fn is equivalents.ended:
            return ended(recorder, key, *args)
        if arrays.is_of_arrays(fn) and registry.lookup(fn) is not None:
            return arrays.called(recorder, key, fn, args, kwargs)
        if is_generator(fn.__code__) and registry.lookup(fn) is None:
            return generated(recorder, key, fn, args, kwargs)
        return call_function(recorder, key, fn, args, kwargs)
    if kind is types.WrapperDescriptorType and args and not kwargs:
        return inherited(recorder, key, fn, args)
    if kind is types.MethodDescriptorType and fn.__objclass__ is str and not kwargs:
        return of_text(recorder, key, fn, args)
    if (same := equivalents.of_arrays(fn)) is not None and len(args) == 1 and not kwargs:
        if type(args[0]) is Array:
            args = (arrays.called(recorder, (key, "copy"), np.copy, args, {}),)
        if arrays.is_of_floats(args[0]):
            return call_function(recorder, key, same, args, {})
    if (manager := contexts.manager(fn, args, kwargs)) is not None:
        return manager
    if fn is iter and len(args) == 1 and not kwargs:
        return of_items(recorder, key, iterated(key, args[0]))
    if fn is next and not kwargs and len(args) in (1, 2) and type(args[0]) is Iterator:
        return advanced(recorder, key, *args)
    if (fn is any or fn is all) and len(args) == 1 and type(args[0]) in (Source, Iterator):
        return call_function(recorder, key, ONE_ITERABLE[fn], args, {})
    if kind is arrays.DISPATCHED and (own := arrays.in_python(fn)) is not None:
        if not (args and arrays.is_itself(fn, args[0], args[1:], kwargs)):
            return call_function(recorder, key, own, args, kwargs)
    if arrays.is_of_arrays(fn):
        return arrays.called(recorder, key, fn, args, kwargs)
    if fn is map and len(args) > 1 and not kwargs:
        return mapped(recorder, key, *args)
    if (
        kind is type
        and not kwargs
        and (fn, len(args)) in GENERATORS
        and not (fn is islice and type(plain(args[1])) is not int)
        and not (args and args[0] is None)
    ):
        return generated(recorder, key, GENERATORS[fn, len(args)], args, {})
    if kind is arrays.CACHE and not kwargs:
        return remembered(recorder, key, fn, args)
    if kind is type:
        return construct(recorder, key, fn, args, kwargs)
    if kind is types.BuiltinFunctionType:
        return call_builtin(recorder, key, fn, args, kwargs)
    if is_object(recorder, fn):
        method = recorder.outside.of_class(kind, "__call__")
        if type(method) is types.FunctionType:
            return call_function(recorder, key, method, (fn, *args), kwargs)
    return refuse(f"{with_article(kind.__name__)} is called")


def one_by_one(recorder: Recorder, items: Any) -> Any:
    """What a Counter counts."""
    if items is None or type(items) is dict or is_object(recorder, items):
        refuse(f"a Counter is given {with_article(type(items).__name__)}")
    return items


def is_of_types(x: Any) -> bool:
    """Whether something says of which type an array is to be, perhaps by its name."""
    return type(x) is str or nested.is_of_types(x)


def remembered(recorder: Recorder, key: Any, fn: Any, args: Any) -> bool:
    """A question to a cache of a library's: it is asked at each call, as there is no telling what it has forgotten."""
    known = fn.__module__.partition(".")[0] in arrays.PACKAGES
    if not known or not all(type(x) is types.ModuleType or type(x) is type for x in args):
        return bool(refuse(f"{fn.__name__}, which has a cache, is called"))
    return decided(recorder, key, fn, args, fn(*args))


def gathered(recorder: Recorder, key: Any, x: Any) -> Any:
    """A list of all that a loop would go through."""
    given = (source_of(recorder, (key, "source"), x),)
    return call_function(recorder, (key, "items"), equivalents.items_of, given, {})


def is_gone_through(recorder: Recorder, x: Any) -> bool:
    """Whether something has to be gone through by a loop to see what is in it."""
    of_users = is_object(recorder, x) and not named.is_named(recorder, x)
    own = type(x) in (Source, Iterator) or type(plain(x)) is range
    return own or (of_users and not issubclass(type(x), BaseException))


def iterated(key: Any, x: Any) -> Any:
    """What is gone through where an object is."""
    recorder = now()
    if type(x) in (Iterator, *KINDS) or not is_object(recorder, x) or named.is_named(recorder, x):
        return x
    return call((key, "call"), attributes.get((key, "iter"), x, "__iter__"), (), {})


def sized(recorder: Recorder, key: Any, x: Any) -> None:
    """Python asks an object how long it is before it makes a list of it, to find the room."""
    if not is_object(recorder, x) or type(x) in (Iterator, *KINDS):
        return
    if recorder.outside.of_class(type(x), "__length_hint__") is not MISSING:
        refuse(f"{with_article(type(x).__name__)} is asked for __length_hint__")
    method = recorder.outside.of_class(type(x), "__len__")
    if type(method) is types.FunctionType:
        size = call_function(recorder, (key, "asked"), method, (x,), {})
        operators.a_length(recorder, (key, "length"), size)
    elif method is not MISSING and not named.is_named(recorder, x):
        refuse(f"{with_article(type(x).__name__)} is asked for its length")


def mapped(recorder: Recorder, key: Any, fn: Any, *given: Any) -> Source:
    """``map(fn, *given)``: the function is called when the loop comes to an item."""
    source = zipped(recorder, (key, "items"), *given)

    def give(i: Box) -> Any:
        return call((key, "call"), fn, source.give(i), {})

    return Source(source.range, give, source.check, recorder.turn)


def consumed(recorder: Recorder, key: Any, fn: Any, args: Any, kwargs: Any) -> Any:
    """A call that takes all that a generator expression gives, and does nothing else in between."""
    items = args[0]
    if fn is list and len(args) == 1:
        return items
    if type(fn) is type and fn in SUBSTITUTES:
        return construct(recorder, key, fn, args, kwargs)
    if fn is tuple and len(args) == 1:
        return apart_by_length(recorder, key, items)
    if fn is sorted:
        return ordered(recorder, key, args, kwargs)
    if fn in BY_KEY and (kwargs or all(type(x) is tuple for x in items)):
        return call_builtin(recorder, key, fn, args, kwargs)
    if any(fn is one for one in OF_NUMBERS):
        if all(type(plain(x)) in NUMBERS or arrays.is_boxed(x) for x in items):
            return call_builtin(recorder, key, fn, args, kwargs)
    return refuse(
        "a generator expression is given to something else than sum, max, list and the like"
    )
