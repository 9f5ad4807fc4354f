"""Python classes that do what some in C do, so that their objects can be followed.

Words
-----
changes    of a queue: how often it was changed, by which a loop over it sees that it was.
"""

from __future__ import annotations

import collections
from typing import Any

from .equivalents import a_size, counted_one_by_one, uncompared


class Queue:
    """``collections.deque``: its items begin at ``_first``."""

    __slots__ = ("_changes", "_first", "_items", "_maxlen")

    def __init__(self, items=(), maxlen=None):  # type: ignore[no-untyped-def]
        self._items: Any = []
        self._first: Any = 0
        self._changes: Any = 0
        self._maxlen = maxlen
        if maxlen is not None and a_size(maxlen) < 0:
            raise ValueError
        for x in items:
            self.append(x)

    def append(self, x):  # type: ignore[no-untyped-def]
        self._items.append(x)
        self._changes += 1
        if self._maxlen is not None and len(self._items) - self._first > self._maxlen:
            self._first += 1

    def appendleft(self, x):  # type: ignore[no-untyped-def]
        self._changes += 1
        if self._first > 0:
            self._first -= 1
            self._items[self._first] = x
        else:
            self._items.insert(0, x)
        if self._maxlen is not None and len(self._items) - self._first > self._maxlen:
            self._items.pop()

    def popleft(self):  # type: ignore[no-untyped-def]
        if self._first >= len(self._items):
            raise IndexError
        self._changes += 1
        self._first += 1
        return self._items[self._first - 1]

    def pop(self):  # type: ignore[no-untyped-def]
        if self._first >= len(self._items):
            raise IndexError
        self._changes += 1
        return self._items.pop()

    def extend(self, items):  # type: ignore[no-untyped-def]
        for x in items:
            self.append(x)

    def clear(self):  # type: ignore[no-untyped-def]
        self._items = []
        self._first = 0
        self._changes += 1

    def _place(self, i):  # type: ignore[no-untyped-def]
        n = len(self._items) - self._first
        if i < 0:
            i = i + n
        if i < 0 or i >= n:
            raise IndexError
        return self._first + i

    @property
    def maxlen(self):  # type: ignore[no-untyped-def]
        return self._maxlen

    def __len__(self):  # type: ignore[no-untyped-def]
        return len(self._items) - self._first

    def __getitem__(self, i):  # type: ignore[no-untyped-def]
        return self._items[self._place(i)]

    def __setitem__(self, i, x):  # type: ignore[no-untyped-def]
        self._items[self._place(i)] = x

    def __contains__(self, x):  # type: ignore[no-untyped-def]
        return x in self._items[self._first :]

    def __eq__(self, other):  # type: ignore[no-untyped-def]
        return uncompared()

    __hash__ = None  # type: ignore[assignment]


class Defaults:
    """``collections.defaultdict``: of its methods those are asked of ``_held`` that it has as any dict."""

    __slots__ = ("_factory", "_held")

    def __init__(self, default_factory=None):  # type: ignore[no-untyped-def]
        self._factory = default_factory
        self._held: Any = {}

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        if key not in self._held:
            if self._factory is None:
                raise KeyError
            self._held[key] = self._factory()
        return self._held[key]

    @property
    def default_factory(self):  # type: ignore[no-untyped-def]
        return self._factory

    def __setitem__(self, key, x):  # type: ignore[no-untyped-def]
        self._held[key] = x

    def __delitem__(self, key):  # type: ignore[no-untyped-def]
        del self._held[key]

    def __len__(self):  # type: ignore[no-untyped-def]
        return len(self._held)

    def __contains__(self, key):  # type: ignore[no-untyped-def]
        return key in self._held

    def __eq__(self, other):  # type: ignore[no-untyped-def]
        return uncompared()

    __hash__ = None  # type: ignore[assignment]


class Counts(Defaults):
    """``collections.Counter``."""

    __slots__ = ()

    def __init__(self, items=()):  # type: ignore[no-untyped-def]
        self._held = {}
        self.update(items)

    def __getitem__(self, key):  # type: ignore[no-untyped-def]
        return self._held[key] if key in self._held else 0

    def __delitem__(self, key):  # type: ignore[no-untyped-def]
        if key in self._held:
            del self._held[key]

    def update(self, items=()):  # type: ignore[no-untyped-def]
        for x in counted_one_by_one(items):
            self._held[x] = self._held[x] + 1 if x in self._held else 1

    def most_common(self, n=None):  # type: ignore[no-untyped-def]
        pairs = list(self._held.items())
        pairs.sort(key=second, reverse=True)
        return pairs if n is None else pairs[:n] if n > 0 else []


def second(pair):  # type: ignore[no-untyped-def]
    return pair[1]


OF_DICT = frozenset(("get", "items", "keys", "values", "pop", "setdefault"))
SUBSTITUTES: dict[Any, type] = {
    collections.deque: Queue,
    collections.defaultdict: Defaults,
    collections.Counter: Counts,
}
# Of which types is what they are given by position and by keyword, if not None: others raise or mean something else.
LIMIT = (int, type(None))
TAKEN: dict[type, tuple[tuple[Any, ...], dict[str, Any]]] = {
    Queue: ((None, LIMIT), {"maxlen": LIMIT}),
    Defaults: (((type, type(None)),), {}),
    Counts: ((None,), {}),
}
KINDS = frozenset(SUBSTITUTES.values())
