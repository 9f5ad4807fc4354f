"""Memos: what runs put into dicts outside under keys that are made of traced numbers, as in ``memo[x] = value``.

There it lies as a plain value, a constant for later calls. A call that finds it again under such a key would answer
with a value whose derivative is lost, where plain Python means the function of `x`: that is an error. A table that
somebody else has filled is asked freely, and so is anything under a key of its own.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import marks, meaning
from .box import BOXES
from .dependence import is_variable
from .errors import TraceError
from .kinds import is_one_of, isinstance
from .origins import parts_of
from .places import blame
from .session import Tracer
from .tape import Op, Site

MOST = 100_000  # numbers that are remembered
STORES = frozenset(("setitem", "__setitem__", "setdefault"))
LOOKUPS = frozenset(("get", "pop", "__getitem__", "setdefault"))

known: OrderedDict[int, Any] = OrderedDict()  # by identity: numbers, and references to arrays


def put(tracer: Tracer, site: Site, fn: Any, mapping: Any, outside: Any, args: Any) -> None:
    """Something is about to be put into a dict ``outside``, which the run sees as ``mapping``."""
    if fn.__name__ not in STORES or len(args) != 2 or not is_of_numbers(tracer, args[0]):
        return
    if fn.__name__ == "setdefault":
        looked_up(tracer, site, args[0], dict.get(mapping, args[0]))
    if any(map(tracer.dependence.has, ops_of(args[1]))):
        tracer.memos.append((outside, args[0]))
        if tracer.reads is not None:
            tracer.reads.problem("a dict outside remembers what it was given for a number", site)


def remember(tracer: Tracer) -> None:
    """The run has ended: what lies in the dicts is plain."""
    for target, key in tracer.memos:
        for x in leaves(dict.get(target, meaning.unboxing.lower(tracer, key))):
            known[id(x)] = weakref.ref(x) if type(x) is np.ndarray else x
            if len(known) > MOST:
                known.popitem(last=False)


def looked_up(tracer: Tracer, site: Site, key: Any, found: Any) -> Any:
    """What was found in a dict under a key; an error if that is what an earlier run has put there."""
    if known and any(map(is_known, leaves(found))) and is_of_numbers(tracer, key):
        raise TraceError(
            f"{blame(site)}: a dict outside gives what an earlier call has put there for a number that has a "
            "derivative: that of what it gives is lost\n"
            "use functools.lru_cache, which is followed, or make the dict inside the function; "
            "if it is meant as a constant, ask for it by wengert.stop_gradient of the number"
        )
    return found


def asked(tracer: Tracer, site: Site, owner: Any, args: Any, found: Any) -> Any:
    """What a method of a dict, perhaps asked of its class, has found."""
    mapping, key = (owner, args[:1]) if isinstance(owner, dict) else (args[:1], args[1:2])
    if not isinstance(owner, dict) and not (mapping and isinstance(mapping[0], dict)):
        return found
    return looked_up(tracer, site, key[0], found) if key else found


def is_known(x: Any) -> bool:
    found = known.get(id(x))
    return found is not None and (found() if type(found) is weakref.ref else found) is x


def leaves(value: Any, depth: int = 4) -> Iterator[Any]:
    """The numbers and arrays in a value and in lists, tuples and dicts of them."""
    value = value.value if is_one_of(type(value), BOXES) else value
    if isinstance(value, (float, complex, np.inexact, np.ndarray)):
        yield value
    elif depth and is_one_of(type(value), (list, tuple, dict)):
        for x in list(value.values()) if type(value) is dict else list(value):
            yield from leaves(x, depth - 1)


def ops_of(value: Any, depth: int = 4) -> list[Op]:
    """The ops of the traced values in a value and in lists, tuples and dicts of them."""
    if is_one_of(type(value), BOXES):
        return [value.op]
    if not depth or not is_one_of(type(value), (list, tuple, dict)):
        return []
    items = value.values() if type(value) is dict else value
    return [op for x in items for op in ops_of(x, depth - 1)]


def is_of_numbers(tracer: Tracer, key: Any) -> bool:
    """Whether a key is, or holds, what is made of a number with a derivative that is no integer, or text of one."""
    todo, seen = ops_of(key), set()
    if tracer.texts.drawn and (origin := marks.found(tracer, key)) is not None:
        todo += [x.op for x in parts_of(origin) if x.op is not None]
    while todo:
        op = todo.pop()
        if op in seen or getattr(op.fn, "stops", False):
            continue
        seen.add(op)
        if (op in tracer.dependence.wanted or is_variable(op)) and type(op.value) is not int:
            return True
        todo += op.operands()
    return False
