"""Python functions that do what functions in C do, so that they can be followed."""

from __future__ import annotations

import bisect
import builtins
import functools
import heapq
import importlib.util
import itertools
import math
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np


def greatest(items):  # type: ignore[no-untyped-def]
    """``max(items)``."""
    best, empty, equal, other = None, True, False, None
    for x in items:
        if empty:
            best, empty = x, False
        elif x > best:
            best, equal = x, False
        elif x == best:
            equal, other = True, x
    if empty:
        raise ValueError  # whose text is not to be read: it differs between versions
    if equal:
        shared(best, other)
    return best


def least(items):  # type: ignore[no-untyped-def]
    """``min(items)``."""
    best, empty, equal, other = None, True, False, None
    for x in items:
        if empty:
            best, empty = x, False
        elif x < best:
            best, equal = x, False
        elif x == best:
            equal, other = True, x
    if empty:
        raise ValueError
    if equal:
        shared(best, other)
    return best


def greatest_by(items, key):  # type: ignore[no-untyped-def]
    """``max(items, key=key)``: the first of those that are equal."""
    best, highest, empty = None, None, True
    for x in items:
        k = key(x)
        if empty:
            best, highest, empty = x, k, False
        elif k > highest:
            best, highest = x, k
    if empty:
        raise ValueError
    return best


def least_by(items, key):  # type: ignore[no-untyped-def]
    """``min(items, key=key)``: the first of those that are equal."""
    best, lowest, empty = None, None, True
    for x in items:
        k = key(x)
        if empty:
            best, lowest, empty = x, k, False
        elif k < lowest:
            best, lowest = x, k
    if empty:
        raise ValueError
    return best


def reduced_from(fn, items, found):  # type: ignore[no-untyped-def]
    """``functools.reduce(fn, items, found)``."""
    for x in items:
        found = fn(found, x)
    return found


def reduced(fn, items):  # type: ignore[no-untyped-def]
    """``functools.reduce(fn, items)``."""
    found, empty = None, True
    for x in items:
        if empty:
            found, empty = x, False
        else:
            found = fn(found, x)
    if empty:
        raise TypeError
    return found


def product(items):  # type: ignore[no-untyped-def]
    """``math.prod(items)``, of numbers."""
    found = 1
    for x in items:
        found = found * x
    return found


def added(items):  # type: ignore[no-untyped-def]
    """``sum(items)``, of arrays or numbers of NumPy's."""
    found = 0
    for x in items:
        found = found + x
    return found


def shared(best: Any, other: Any) -> None:
    """Stands where equal numbers would share a slope: such a run is traced."""


def alike(x: Any, y: Any) -> bool:
    """Whether two items of containers are the same to Python, for which an object always equals itself."""
    return x is y or bool(x == y)


def is_unordered(x: Any) -> bool:
    """Whether NaN is in what is sorted."""
    return any(map(is_unordered, x)) if isinstance(x, tuple) else bool(x != x)


def counted_one_by_one(items: Any) -> Any:
    """What a Counter is given, if it is no mapping, which has counts already."""
    return items


def a_length(n):  # type: ignore[no-untyped-def]
    """What ``__len__`` gives, of which Python asks that it is a length."""
    if n < 0:
        raise ValueError
    return a_size(n)


def a_size(n):  # type: ignore[no-untyped-def]
    """An integer that functions in C take, which fits into a word of the machine."""
    if n > sys.maxsize or n < -sys.maxsize - 1:
        raise OverflowError
    return n


def has_own(obj: Any, name: str) -> bool:
    """Whether an object has an attribute itself; one that a program has made is a dict."""
    return name in (obj if type(obj) is dict else getattr(obj, "__dict__", ()))


def attribute_of(obj: Any, name: str) -> Any:
    """An attribute that an object has itself, or in a slot; one that a program has made is a dict."""
    return obj[name] if type(obj) is dict else object.__getattribute__(obj, name)


def same_items(a, b):  # type: ignore[no-untyped-def]
    """``a == b`` of lists."""
    n = len(a)
    if n != len(b):
        return False
    for i in range(n):
        if not alike(a[i], b[i]):
            return False
    return True


def holds(items, item):  # type: ignore[no-untyped-def]
    """``item in items``, of a list."""
    for x in items:
        if alike(x, item):
            return True
    return False


def index_of(items, item):  # type: ignore[no-untyped-def]
    """``items.index(item)``."""
    for i in range(len(items)):
        if alike(items[i], item):
            return i
    raise ValueError


def count_of(items, item):  # type: ignore[no-untyped-def]
    """``items.count(item)``."""
    count = 0
    for x in items:
        if alike(x, item):
            count += 1
    return count


def remove(items, item):  # type: ignore[no-untyped-def]
    """``items.remove(item)``."""
    pop(items, index_of(items, item))


def items_of(source):  # type: ignore[no-untyped-def]
    """``list(source)``."""
    found = []
    for x in source:
        found.append(x)
    return found


def filtered(fn, items):  # type: ignore[no-untyped-def]
    """``filter(fn, items)``."""
    for x in items:
        if fn(x):
            yield x


def accumulated(items):  # type: ignore[no-untyped-def]
    """``itertools.accumulate(items)``."""
    total, empty = None, True
    for x in items:
        if empty:
            total, empty = x, False
        else:
            total = total + x
        yield total


def chained(a, b):  # type: ignore[no-untyped-def]
    """``itertools.chain(a, b)``."""
    yield from a
    yield from b


def pairwise(items):  # type: ignore[no-untyped-def]
    """``itertools.pairwise(items)``."""
    last, empty = None, True
    for x in items:
        if not empty:
            yield last, x
        last, empty = x, False


def any_of(items):  # type: ignore[no-untyped-def]
    """``any(items)``."""
    for x in items:
        if x:
            return True
    return False


def all_of(items):  # type: ignore[no-untyped-def]
    """``all(items)``."""
    for x in items:
        if not x:
            return False
    return True


def next_of(it):  # type: ignore[no-untyped-def]
    """``next(it)``, of an iterator (see `iteration`)."""
    i, items = it.at, it.items
    if i >= len(items):
        ended(it)
        raise StopIteration
    it.at = i + 1
    return items[i]


def next_or(it, default):  # type: ignore[no-untyped-def]
    """``next(it, default)``."""
    i, items = it.at, it.items
    if i >= len(items):
        ended(it)
        return default
    it.at = i + 1
    return items[i]


def ended(it: Any) -> None:
    """Stands where an iterator has come to its end."""


def first_items(items, n):  # type: ignore[no-untyped-def]
    """``itertools.islice(items, n)``, of an integer."""
    i = 0
    if n < 0 or n > sys.maxsize:
        raise ValueError
    if n > 0:
        for x in items:
            yield x
            i += 1
            if i >= n:
                return


def taken_while(fn, items):  # type: ignore[no-untyped-def]
    """``itertools.takewhile(fn, items)``."""
    for x in items:
        if not fn(x):
            return
        yield x


def counted():  # type: ignore[no-untyped-def]
    """``itertools.count()``."""
    n = 0
    while True:
        yield n
        n += 1


def counted_from(n):  # type: ignore[no-untyped-def]
    """``itertools.count(n)``."""
    while True:
        yield n
        n += 1


def first_of(items):  # type: ignore[no-untyped-def]
    """``next(iter(items))``, of a list."""
    if not items:
        raise StopIteration
    return items[0]


def first_or(items, default):  # type: ignore[no-untyped-def]
    """``next(iter(items), default)``, of a list."""
    return items[0] if items else default


def part_of(items, start, stop, step):  # type: ignore[no-untyped-def]
    """``items[start:stop:step]``, with a step that is a positive constant or None."""
    n = len(items)
    step = 1 if step is None else step
    if start is None:
        start = 0
    elif start < 0:
        start = max(start + n, 0)
    if stop is None or stop > n:
        stop = n
    elif stop < 0:
        stop = stop + n
    found = []
    for i in range(start, stop, step):
        found.append(items[i])
    return found


def concatenated(a, b):  # type: ignore[no-untyped-def]
    """``a + b`` of lists."""
    found = []
    for x in a:
        found.append(x)
    for x in b:
        found.append(x)
    return found


def extend(items, other):  # type: ignore[no-untyped-def]
    """``items.extend(other)``, of another list."""
    for x in other:
        items.append(x)


def insert(items, i, x):  # type: ignore[no-untyped-def]
    """``items.insert(i, x)``."""
    n, i = len(items), a_size(i)
    if i < 0:
        i = max(i + n, 0)
    items.append(x)
    for k in range(n - 1, i - 1, -1):
        items[k + 1] = items[k]
    if i < n:
        items[i] = x


def popped(items, i):  # type: ignore[no-untyped-def]
    """``items.pop(i)``, which raises another error than ``del`` for what is too large."""
    return pop(items, a_size(i))


def pop(items, i):  # type: ignore[no-untyped-def]
    """``items.pop(i)``, or ``del items[i]``."""
    n = len(items)
    x = items[i]
    if i < 0:
        i = i + n
    for k in range(i, n - 1):
        items[k] = items[k + 1]
    items.pop()
    return x


def reverse(items):  # type: ignore[no-untyped-def]
    """``items.reverse()``."""
    n = len(items)
    for i in range(n // 2):
        x = items[i]
        items[i] = items[n - 1 - i]
        items[n - 1 - i] = x


def keys_of(items, key):  # type: ignore[no-untyped-def]
    """What ``items.sort(key=key)`` compares."""
    keys = []
    for x in items:
        keys.append(key(x))
    return keys


def in_order(keys: Any, backwards: bool) -> list[int]:
    """At which places the keys stand that come first, second and so on, as C code sorts them."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=backwards)


def sort(items, keys, backwards):  # type: ignore[no-untyped-def]
    """``items.sort(reverse=backwards)``, by keys if not None: of what has one order any stable sort gives the same."""
    keyed = keys is not None
    if not keyed:
        keys = items
    n, width = len(items), 1
    order = in_order(keys, backwards) if n > 1 else None
    if order is not None:
        taken = []
        for k in order:
            taken.append(items[k])
        for k in range(n):
            items[k] = taken[k]
        width = n
    else:
        for k in keys:
            if is_unordered(k):
                unordered()
    while width < n:  # runs of this length are in order: two and two of them are merged
        merged, order = [], []
        for low in range(0, n, 2 * width):
            i, mid = low, min(low + width, n)
            j, high = mid, min(low + 2 * width, n)
            for _ in range(low, high):
                first = j == high
                if not first and i < mid:
                    first = not (keys[i] < keys[j] if backwards else keys[j] < keys[i])
                if first:
                    k, i = i, i + 1
                else:
                    k, j = j, j + 1
                merged.append(items[k])
                if keyed:
                    order.append(keys[k])
        for k in range(n):
            items[k] = merged[k]
            if keyed:
                keys[k] = order[k]
        width = 2 * width


def get(held, key, default):  # type: ignore[no-untyped-def]
    """``held.get(key, default)``, of a dict."""
    return held[key] if key in held else default


def setdefault(held, key, default):  # type: ignore[no-untyped-def]
    """``held.setdefault(key, default)``."""
    if key not in held:
        held[key] = default
    return held[key]


def take_out(held, key):  # type: ignore[no-untyped-def]
    """``held.pop(key)``, of a dict."""
    x = held[key]
    del held[key]
    return x


def take_or(held, key, default):  # type: ignore[no-untyped-def]
    """``held.pop(key, default)``."""
    if key not in held:
        return default
    x = held[key]
    del held[key]
    return x


def discard(held, key):  # type: ignore[no-untyped-def]
    """``held.discard(key)``, of a set."""
    if key in held:
        del held[key]


def update(held, other):  # type: ignore[no-untyped-def]
    """``held.update(other)``, of another dict."""
    for key in other:
        held[key] = other[key]


def copied(held):  # type: ignore[no-untyped-def]
    """``dict(held)``."""
    made = {}
    for key in held:
        made[key] = held[key]
    return made


def fromkeys(keys, value):  # type: ignore[no-untyped-def]
    """``dict.fromkeys(keys, value)``."""
    made = {}
    for key in keys:
        made[key] = value
    return made


def backwards(steps: range) -> range:
    """``reversed(steps)``, as a range."""
    return steps[::-1]


def part_of_text(text: str, start: int | None, stop: int | None, step: int | None) -> str:
    """``text[start:stop:step]``; it has no derivative."""
    return text[start:stop:step]


def shown(x: Any, how: str, spec: str) -> str:
    """``f"{x!how:spec}"``; no derivative flows through it."""
    return format(CONVERSIONS[how](x) if how else x, spec)


def joined(*parts: str) -> str:
    """The text that parts make."""
    return "".join(parts)


def joined_by(text: str, parts: list[str]) -> str:
    """``text.join(parts)``."""
    return text.join(parts)


def uncompared() -> None:
    """Stands where containers are compared that are not looked into: such a run is traced."""


def unordered() -> None:
    """Stands where the order depends on how Python sorts: such a run is traced."""


def norm(x):  # type: ignore[no-untyped-def]
    """``numpy.linalg.norm(x)``."""
    x = x.ravel(order="K")
    return np.sqrt(x.dot(x))


def differences(a):  # type: ignore[no-untyped-def]
    """``np.diff(a)``."""
    return a[..., 1:] - a[..., :-1]


def of_arrays(fn: Any) -> Callable[..., Any] | None:
    """The Python function that does what one of NumPy's does with a single argument."""
    return norm if fn is np.linalg.norm else differences if fn is np.diff else None


def in_python(name: str, in_c: str) -> types.ModuleType | None:
    """A module of the standard library without its part in C; None where there is no source."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    missing = object()
    before: Any = sys.modules.get(in_c, missing)
    sys.modules[in_c] = None  # type: ignore[assignment]  # so that importing it fails
    try:
        spec.loader.exec_module(module)
    finally:
        if before is missing:
            del sys.modules[in_c]
        else:
            sys.modules[in_c] = before
    return module


@functools.cache
def of_module(in_c: str) -> dict[Any, Callable[..., Any]]:
    """Functions of a module in C with what they are in Python."""
    known, names = IN_C[in_c]
    module = in_python(known.__name__, in_c)
    found: dict[Any, Callable[..., Any]] = {}
    for name in names.split():
        own, other = getattr(known, name, None), getattr(module, name, None)
        if type(own) is types.BuiltinFunctionType and type(other) is types.FunctionType:
            found[own] = other
    return found


CONVERSIONS: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}
GENERATORS: dict[Any, Callable[..., Any]] = {  # by the class, and with how many arguments
    (builtins.filter, 2): filtered, (itertools.accumulate, 1): accumulated, (itertools.chain, 2): chained,
    (itertools.pairwise, 1): pairwise, (itertools.islice, 2): first_items, (itertools.takewhile, 2): taken_while,
    (itertools.count, 0): counted, (itertools.count, 1): counted_from,
}  # fmt: skip
BY_KEY = {builtins.max: greatest_by, builtins.min: least_by}
ONE_ITERABLE = {
    builtins.max: greatest, builtins.min: least, builtins.any: any_of, builtins.all: all_of,
    math.prod: product,
}  # fmt: skip
IN_C = {
    "_heapq": (heapq, "heappush heappop heapify heapreplace heappushpop"),
    "_bisect": (bisect, "bisect_left bisect_right insort_left insort_right"),
}


def equivalent(fn: types.BuiltinFunctionType) -> Callable[..., Any] | None:
    """The Python function that does what one in C does, whatever it is given."""
    return of_module(fn.__module__).get(fn) if fn.__module__ in IN_C else None
