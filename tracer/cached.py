"""Functions under ``lru_cache``: their cache is asked as in plain Python, and no box ever gets into it.

Words
-----
body     the Python function under the cache.
visit    one call of the cache, with plain arguments; where it must ask the body, the twin answers on the boxes.
found    what the cache had already, so that nobody ran the body: a constant, if no traced value can reach the body.
"""

from __future__ import annotations

import functools
import gc
import types
from itertools import chain
from typing import Any

import numpy as np

from ..rules.words import with_article
from . import meaning
from .border import remember
from .box import ArrayBox, Box
from .boxing import enter
from .closed import behind_call, is_hidden, reached
from .detours import Detour, detours, leading_to, made_inside
from .errors import TraceError
from .kinds import MISSING, One, are_quiet, flags_of, is_one_of, isinstance, own_dict, static
from .marks import found
from .opaque import is_plain_value, unknown
from .places import blame
from .protocols import draw
from .reads import HEAP_TYPE
from .record import born, has_box, raised
from .session import Tracer
from .slots import is_object, plain_of, python_special
from .tape import Input, Op, Site
from .text import PRIVATE
from .unboxing import lower

FunctionType = types.FunctionType


class Visit:
    """A call of a cache: its arguments as the traced function sees them, and what the twin made of them."""

    __slots__ = ("args", "kwargs", "ran", "tracer", "value")

    def __init__(self, tracer: Tracer, args: Any, kwargs: Any) -> None:
        self.tracer, self.args, self.kwargs = tracer, args, kwargs
        self.ran = False
        self.value: Any = None

    def run(self, twin: Any) -> Any:
        """What the body gives, and what the cache may keep of it."""
        self.ran = True
        self.value = twin(*self.args, **self.kwargs)
        return lower(self.tracer, self.value)


def call_cached(
    tracer: Tracer,
    site: Site,
    fn: functools._lru_cache_wrapper[Any],
    args: Any,
    kwargs: dict[str, Any],
) -> Any:
    """Call a function under ``lru_cache``."""
    body = fn.__wrapped__
    args, kwargs = tuple(map(counted, args)), {k: counted(x) for k, x in kwargs.items()}
    boxed = has_box(args) or has_box(kwargs) or found(tracer, args, kwargs) is not None
    key = cache_key((*args, *kwargs.items()), fn.cache_parameters()["typed"])
    known = tracer.calls.setdefault(fn, {})
    given = args, kwargs
    body, args, kwargs = innermost(tracer, site, body, args, kwargs)
    if tracer.repeating and boxed:  # which no cache is asked for in plain Python
        if key not in known:
            keep(tracer, fn, key, meaning.calls.call(tracer, site, body, args, kwargs))
        return known[key]
    if type(body) is FunctionType and made_inside(body):
        return call_inner(tracer, site, fn, body, args, kwargs, given, key, boxed)
    if type(body) is not FunctionType:
        if is_one_of(type(body), IN_C):
            fn(*map(plain_of, given[0]), **{k: plain_of(x) for k, x in given[1].items()})
        if key not in known:  # the cache of this run will do
            keep(tracer, fn, key, meaning.calls.call(tracer, site, body, args, kwargs))
        return known[key]
    start = len(tracer.tape.ops)
    visit = Visit(tracer, args, kwargs)
    plain = [lower(tracer, x) for x in given[0]]
    options = {k: lower(tracer, x) for k, x in given[1].items()}
    value = ask(tracer, site, fn, body, visit, key, plain, options)
    name = body.__name__
    if visit.ran:
        problem(tracer, site, f"{name} was not in its lru_cache")
        return keep(tracer, fn, key, visit.value, value)
    if (same := found_again(known, key, value)) is not MISSING:
        return same
    of_argument = (
        tracer.holder_of(body) is not None
    )  # which may have captured what has a derivative
    inside = reached(tracer, behind_call(body, name, (*args, *kwargs.values())))
    hidden = of_argument or any(is_hidden(x) for _, x in inside)
    if boxed or hidden:
        problem(tracer, site, f"the lru_cache of {name} is asked for a traced value")
        return keep(tracer, fn, key, again(tracer, site, body, visit, value))
    if not is_plain_value(value):
        problem(tracer, site, f"the lru_cache of {name} holds {with_article(type(value).__name__)}")
        return enter(tracer, value, name)
    result = born(tracer, site, fn, tuple(plain), options, value, pure=False)
    if tracer.reads is not None:
        if not answers(fn, plain, options):
            problem(tracer, site, f"the lru_cache of {name} cannot be looked into")
        unknown(tracer, site, fn, tuple(plain), options, value, start)
    return result


def answers(fn: Any, args: Any, kwargs: Any) -> bool:
    """Whether a cache has the answer, so that its body will not run: it is looked into, which it does not count.

    False also where that cannot be said, or where looking would ask for a hash of the user's.
    """
    if not all(map(is_silent, (*args, *kwargs.values()))):
        return False
    cache, _, mark, *_, own = gc.get_referents(fn)[-6:]  # in the order of its fields in C
    if type(cache) is not dict or own is not own_dict(fn):
        return False
    typed = fn.cache_parameters()["typed"]
    if not (typed or kwargs) and len(args) == 1 and is_one_of(type(args[0]), (int, str)):
        return args[0] in cache
    key = (*args, mark, *chain.from_iterable(kwargs.items())) if kwargs else tuple(args)
    return (*key, *(map(type, (*args, *kwargs.values())) if typed else ())) in cache


def is_silent(value: Any) -> bool:
    """Whether it is known that its hash runs nothing of the user's."""
    if are_quiet((value,)) or static(type(value), "__hash__") is object.__hash__:
        return True
    of_numpy = isinstance(value, (np.generic, np.dtype)) and not flags_of(type(value)) & HEAP_TYPE
    return of_numpy or (type(value) is tuple and all(map(is_silent, value)))


def innermost(tracer: Tracer, site: Site, body: Any, args: Any, kwargs: Any) -> Any:
    """The function that runs where a cache asks its body, with the arguments that partials and methods add."""
    while True:
        if type(body) is functools.partial:
            body, args, kwargs = meaning.calls.opened(tracer, site, body, args, kwargs)
        elif type(body) is types.MethodType:
            body, args = body.__func__, (body.__self__, *args)
        elif is_object(body) and type(own := python_special(body, "__call__")) is FunctionType:
            body, args = own, (body, *args)
        else:
            return body, args, kwargs


IN_C = frozenset((types.BuiltinFunctionType, np.ufunc))


def keep(tracer: Tracer, fn: Any, key: Any, result: Any, value: Any = None) -> Any:
    """Note what a call of a cache has given in this run, and the ``value`` that the cache has for it."""
    tracer.cached += 1
    known = tracer.calls[fn]
    known[key] = result
    if value is not None and has_one(key):
        known[id(value)] = (value, result)
    return result


def found_again(known: dict[Any, Any], key: Any, value: Any) -> Any:
    """What the run knows by a value that the cache had, or MISSING; another key may have been equal to this one."""
    if key in known:
        return known[key]
    same = known.get(id(value)) if has_one(key) else None
    return MISSING if same is None else same[1]


def asked(site: Site, fn: Any, key: Any, args: Any, kwargs: Any) -> Any:
    """What a cache gives; where it asks for hashes of the user's, these are followed."""
    if has_one(key):
        return meaning.escape.watched(fn, tuple(args), kwargs, site)
    return fn(*args, **kwargs)


def has_one(key: Any) -> bool:
    return any(map(has_one, key)) if type(key) is tuple else type(key) is One


def call_inner(
    tracer: Tracer,
    site: Site,
    fn: Any,
    body: Any,
    args: Any,
    kwargs: Any,
    given: tuple[Any, Any],
    key: Any,
    boxed: bool,
) -> Any:
    """The same for a function that was made inside, whose cache lives with it: it says what is there, and for how long.

    What the run has made goes there as it is, and loses its boxes with the run's other things.
    """
    known, own = tracer.calls[fn], body.__code__
    made: list[Any] = []

    def run(*_: Any) -> Any:
        body.__code__ = own
        made.append(body(*args, **kwargs))
        return bare(tracer, made[0])

    body.__code__ = leading_to(run, own, generator=False)
    try:
        value = asked(
            site,
            fn,
            key,
            [bare(tracer, x) for x in given[0]],
            {k: bare(tracer, x) for k, x in given[1].items()},
        )
    finally:
        body.__code__ = own
    if boxed:
        problem(tracer, site, f"the lru_cache of {body.__name__} is asked for a traced value")
    if made:
        return keep(tracer, fn, key, made[0], value)
    if (same := found_again(known, key, value)) is not MISSING:
        return same
    if not boxed:
        return value
    visit = Visit(tracer, args, kwargs)
    return keep(tracer, fn, key, again(tracer, site, body, visit, value))


def bare(tracer: Tracer, value: Any) -> Any:
    """A value without its box, also in a tuple; all else as it is."""
    kind = type(value)
    if is_one_of(kind, PRIVATE):
        return lower(tracer, value)
    if kind is tuple and has_box(value):
        return tuple([bare(tracer, x) for x in value])
    return value


def ask(
    tracer: Tracer, site: Site, fn: Any, body: Any, visit: Visit, key: Any, args: Any, kwargs: Any
) -> Any:
    """What the cache gives; a run that is repeated from its start takes what it gave before."""
    if tracer.drawn and tracer.drawn[0][0] is fn:
        return tracer.drawn.pop(0)[1]
    visits = tracer.visits.setdefault(id(body), [])
    taken: list[Detour] = []
    visits.append(visit)
    try:
        detours.take([Detour(body)], taken)
        return asked(site, fn, key, args, kwargs)
    except Exception as error:
        raised(tracer, site, error)
        raise
    finally:
        detours.leave(taken)
        visits.pop()


def again(tracer: Tracer, site: Site, body: Any, visit: Visit, found: Any) -> Any:
    """Run the body for its derivative, where the cache had the value; raises where that shows."""
    start = len(tracer.tape.ops)
    tracer.repeating += 1
    try:
        result = meaning.calls.call(tracer, site, body, visit.args, visit.kwargs)
    finally:
        tracer.repeating -= 1
    why = None
    for op in tracer.tape.ops[start:]:
        if op.kind == "effect":
            why = f"has an effect ({op.site})"
    if why is None and not agree(
        tracer, result, found
    ):  # before what is in the cache is taken for the run's own
        why = f"gives something else than the {type(found).__name__} in the cache"
    if why is not None:
        raise TraceError(
            f"{blame(site)}: {body.__name__} is under lru_cache, and the value was in the cache. For its derivative it "
            f"has to run again, which {why}\ntake lru_cache away, or clear the cache first"
        )
    pair(tracer, found, result)
    return result


def pair(tracer: Tracer, found: Any, result: Any) -> None:
    """What is done to the containers of a result is done to those in the cache.

    What callers have added to these is a constant, as in any container outside.
    """
    kind = type(result)
    if is_one_of(kind, (list, tuple, dict)):
        keys, count = [*found] if kind is dict else range(len(found)), len(result)
        for key in keys[:count]:
            pair(tracer, found[key], result[key])
        for key in keys[count:]:
            x = enter(tracer, found[key], f"{with_article(kind.__name__)} in a cache")
            result.update({key: x}) if kind is dict else result.append(x)
    if is_one_of(kind, (list, dict, set)):
        remember(tracer, found, result)
    elif kind is ArrayBox:
        result.value = found


def agree(tracer: Tracer, a: Any, b: Any) -> bool:
    """Whether what the run has made is equal to a plain value, NaNs included; to a list or dict may have been added."""
    if not is_one_of(type(a), (tuple, list, dict, set)):
        a = lower(tracer, a)
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        whole = len(a) == len(b) or (len(a) < len(b) and isinstance(a, list))
        return whole and all(agree(tracer, x, y) for x, y in zip(a, b, strict=False))
    if isinstance(a, dict):
        items = zip(a.values(), b.values(), strict=False)
        known = list(map(plain_of, a)) == list(b)[: len(a)]
        return known and all(agree(tracer, x, y) for x, y in items)
    if isinstance(a, set):
        return set(map(plain_of, a)) == b
    if isinstance(a, np.ndarray):
        return (
            a.dtype == b.dtype
            and a.shape == b.shape
            and all(agree(tracer, x, y) for x, y in zip(a.flat, b.flat, strict=True))
        )
    if isinstance(a, (float, complex, np.inexact)):
        return bool(a == b or (a != a and b != b))
    return a is b or (is_plain_value(a) and bool(a == b))


def counted(value: Any) -> Any:
    """An argument, or the plain integer in it where no derivative can flow to it."""
    if type(value) is not Box or not is_whole(value.op):
        return value
    todo = [value.op]
    while todo:
        op = todo.pop()
        if isinstance(op, Input) and op.role == "argument":
            return value  # d(n * x)/dn exists
        todo += [x for x in op.operands() if is_whole(x)]
    return draw(value, lambda x: x)


def is_whole(op: Op) -> bool:
    return isinstance(op.value, (int, np.integer))


def cache_key(value: Any, typed: bool = False) -> Any:
    """What stands for arguments, or for one of them: two of one key have one value, and one derivative."""
    if type(value) is Box:
        return draw(value, lambda x: x) if is_whole(value.op) else value.op
    if isinstance(value, tuple):
        return tuple([cache_key(x, typed) for x in value])
    if not are_quiet((value,)):  # whose hash the cache alone asks for
        return One(value)
    return (type(value), value) if typed else value


def problem(tracer: Tracer, site: Site, why: str) -> None:
    if tracer.reads is not None:
        tracer.reads.problem(why, site)
