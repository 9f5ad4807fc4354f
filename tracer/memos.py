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

from . import marks
from .box import BOXES, Box
from .closed import parts, reached
from .dependence import is_variable
from .errors import TraceError
from .kinds import QUIET, is_compared_by_identity, is_one_of, isinstance
from .origins import parts_of
from .places import blame
from .session import Tracer
from .tape import Op, Site

MOST = 100_000  # numbers that are remembered
STORES = frozenset(("setitem", "__setitem__", "setdefault"))
UPDATES = frozenset(("update", "ior", "__ior__", "__init__"))
LOOKUPS = frozenset(("get", "pop", "__getitem__", "setdefault"))

known: OrderedDict[int, Any] = OrderedDict()  # by identity: numbers, and references to arrays


def put(tracer: Tracer, site: Site, fn: Any, mapping: Any, args: Any) -> None:
    """Something is about to be put into a dict outside, which the run sees as ``mapping``."""
    for key, value in pairs_in(fn, args):
        if not is_of_numbers(tracer, key):
            continue
        if fn.__name__ == "setdefault":
            looked_up(tracer, site, key, dict.get(mapping, key))
        if not is_count(key) or any(is_dependent(tracer, x) for x in inside(tracer, value, {})):
            tracer.memos.append((site, value))


def pairs_in(fn: Any, args: Any) -> list[tuple[Any, Any]]:
    """The keys and values that a method of a dict puts there."""
    if fn.__name__ in STORES:
        return [args] if len(args) == 2 else []
    if fn.__name__ not in UPDATES or not args:
        return []
    if isinstance(args[0], dict):
        return [*dict.items(args[0])]
    items = args[0] if is_one_of(type(args[0]), (list, tuple)) else ()
    return [tuple(x) for x in items if is_one_of(type(x), (list, tuple)) and len(x) == 2]


def remember(tracer: Tracer) -> None:
    """The run has ended, but for its boxes: what lies behind them lies in the dicts from now on."""
    seen: dict[int, Any] = {}
    for site, value in tracer.memos:
        value = tracer.shadows.get(id(value), (None, value))[1]
        found = [x for x in inside(tracer, value, seen) if is_dependent(tracer, x)]
        for x in map(number_in, found):
            known[id(x)] = weakref.ref(x) if type(x) is np.ndarray else x
            if len(known) > MOST:
                known.popitem(last=False)
        if found and tracer.reads is not None:
            tracer.reads.problem("a dict outside remembers what it was given for a number", site)


def looked_up(tracer: Tracer, site: Site, key: Any, found: Any) -> Any:
    """What was found in a dict under a key; an error if that is what an earlier run has put there.

    To a list or an object that was found something may be added later.
    """
    single = is_one_of(type(found), SINGLE)
    if (single and not known) or not is_of_numbers(tracer, key):
        return found
    if known and any(is_known(number_in(x)) for x in inside(tracer, found, {})):
        raise TraceError(
            f"{blame(site)}: a dict outside gives what an earlier call has put there for a number that has a "
            "derivative: that of what it gives is lost\n"
            "use functools.lru_cache, which is followed, or make the dict inside the function; "
            "if it is meant as a constant, ask for it by wengert.stop_gradient of the number"
        )
    if not single and not is_count(key):
        tracer.memos.append((site, found))
    return found


SINGLE = QUIET | BOXES


def asked(tracer: Tracer, site: Site, owner: Any, args: Any, found: Any) -> Any:
    """What a method of a dict, perhaps asked of its class, has found."""
    mapping, key = (owner, args[:1]) if isinstance(owner, dict) else (args[:1], args[1:2])
    if not isinstance(owner, dict) and not (mapping and isinstance(mapping[0], dict)):
        return found
    return looked_up(tracer, site, key[0], found) if key else found


def is_known(x: Any) -> bool:
    found = known.get(id(x))
    return found is not None and (found() if type(found) is weakref.ref else found) is x


def inside(tracer: Tracer, value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """The numbers and arrays in a value that can be reached from it, in boxes or not."""
    for _, x in reached(tracer, [("", value)], seen):
        if isinstance(number_in(x), (float, complex, np.inexact, np.ndarray)):
            yield x


def number_in(x: Any) -> Any:
    return x.value if is_one_of(type(x), BOXES) else x


def is_dependent(tracer: Tracer, x: Any) -> bool:
    return is_one_of(type(x), BOXES) and tracer.dependence.has(x.op)


def is_count(key: Any) -> bool:
    """Whether a key is an integer, under which a list may collect what calls have found."""
    return type(key) is Box and type(key.value) is int


def ops_of(tracer: Tracer, key: Any) -> Iterator[Op]:
    """The ops of the traced values in a key; an object that is equal to itself alone is a key of its own."""
    todo, seen = [key], dict[int, Any]()
    while todo:
        x = todo.pop()
        kind = type(x)
        if is_one_of(kind, BOXES):
            yield x.op
        elif id(x) not in seen and not (is_one_of(kind, QUIET) or is_compared_by_identity(kind)):
            seen[id(x)] = x
            todo += [part for _, part in parts(tracer, "", x)]


def is_of_numbers(tracer: Tracer, key: Any) -> bool:
    """Whether a key is, or holds, what is made of a number with a derivative that is no integer, or text of one."""
    todo, seen = [*ops_of(tracer, key)], set()
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
