"""Functions under ``lru_cache``: their cache is asked as in plain Python, and no box ever gets into it.

Words
-----
body     the Python function under the cache.
visit    one call of the cache, with plain arguments; where it must ask the body, the twin answers on the boxes.
found    what the cache had already, so that nobody ran the body: a constant, if no traced value can reach the body.
"""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np

from . import meaning, rewrite
from .border import remember
from .box import Box
from .boxing import enter
from .closed import is_hidden, reached
from .detours import Detour, detours
from .errors import TraceError
from .foreign import is_plain_value, unknown
from .kinds import is_one_of, isinstance
from .marks import found
from .places import blame
from .protocols import draw
from .record import born, has_box, raised
from .session import Tracer
from .tape import Input, Op, Site
from .unboxing import lower


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
    inside = type(body) is types.FunctionType and rewrite.is_twin(body.__code__)
    if inside and not boxed:
        return fn(*args, **kwargs)
    key = fn, tuple(map(cache_key, args)), tuple((k, cache_key(v)) for k, v in kwargs.items())
    if inside or type(body) is not types.FunctionType:  # the cache of this run will do
        if key not in tracer.calls:
            tracer.calls[key] = meaning.calls.call(tracer, site, body, args, kwargs)
        return tracer.calls[key]
    start = len(tracer.tape.ops)
    visit = Visit(tracer, args, kwargs)
    plain = [lower(tracer, x) for x in args]
    options = {k: lower(tracer, x) for k, x in kwargs.items()}
    value = ask(tracer, site, fn, visit, plain, options)
    name = body.__name__
    if visit.ran:
        problem(tracer, site, f"{name} was not in its lru_cache")
        tracer.calls[key] = visit.value
        return visit.value
    if key in tracer.calls:
        return tracer.calls[key]
    if boxed or any(is_hidden(x) for _, x in reached(tracer, body, name, args, kwargs)):
        problem(tracer, site, f"the lru_cache of {name} is asked for a traced value")
        result = tracer.calls[key] = again(tracer, site, body, visit, value)
        return result
    if not is_plain_value(value):
        problem(tracer, site, f"the lru_cache of {name} holds a {type(value).__name__}")
        return enter(tracer, value, name)
    result = born(tracer, site, fn, tuple(plain), options, value, pure=False)
    if tracer.reads is not None:
        unknown(tracer, site, fn, tuple(plain), options, value, start)
    return result


def ask(tracer: Tracer, site: Site, fn: Any, visit: Visit, args: Any, kwargs: Any) -> Any:
    """What the cache gives; a run that is repeated from its start takes what it gave before."""
    if tracer.drawn and tracer.drawn[0][0] is fn:
        return tracer.drawn.pop(0)[1]
    body = fn.__wrapped__
    visits = tracer.visits.setdefault(id(body), [])
    taken: list[Detour] = []
    visits.append(visit)
    try:
        detours.take([Detour(body)], taken)
        return fn(*args, **kwargs)
    except Exception as error:
        raised(tracer, site, error)
        raise
    finally:
        detours.leave(taken)
        visits.pop()


def again(tracer: Tracer, site: Site, body: Any, visit: Visit, found: Any) -> Any:
    """Run the body for its derivative, where the cache had the value; raises where that shows."""
    start = len(tracer.tape.ops)
    result = meaning.calls.call(tracer, site, body, visit.args, visit.kwargs)
    why = None
    for op in tracer.tape.ops[start:]:
        if op.kind == "effect":
            why = f"has an effect ({op.site})"
    if is_one_of(type(result), (list, dict, set)):
        remember(tracer, found, result)
    if why is None and not agree(lower(tracer, result), found):
        why = f"gives something else than the {type(found).__name__} in the cache"
    if why is not None:
        raise TraceError(
            f"{blame(site)}: {body.__name__} is under lru_cache, and the value was in the cache. For its derivative it "
            f"has to run again, which {why}; take lru_cache away, or clear the cache first"
        )
    return result


def agree(a: Any, b: Any) -> bool:
    """Whether two plain values are equal, NaNs included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(agree, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(agree, a.values(), b.values()))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and all(map(agree, a.flat, b.flat))
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


def cache_key(value: Any) -> Any:
    if type(value) is Box:
        return draw(value, lambda x: x) if is_whole(value.op) else value.op
    return tuple(map(cache_key, value)) if isinstance(value, tuple) else value


def problem(tracer: Tracer, site: Site, why: str) -> None:
    if tracer.reads is not None:
        tracer.reads.problem(why, site)
