"""Special methods of what C functions draw from generators are read like any code: programs look at what they read."""

import collections
import functools
import heapq
import itertools
import operator

import pytest

from wengert import pullback


class Value:
    def __init__(self, x):
        self.x = x

    def __bool__(self):
        return self.x > 0

    def __lt__(self, other):
        return self.x < getattr(other, "x", other)

    def __eq__(self, other):
        return self.x == getattr(other, "x", other)

    def __hash__(self):
        return hash(self.x > 0)

    def __add__(self, other):
        return self.x + getattr(other, "x", other)

    __radd__ = __add__

    def __index__(self):
        return int(self.x > 0)

    def __float__(self):
        return float(self.x)

    def __str__(self):
        return f"V{self.x}"

    def __len__(self):
        return 2 if self.x > 0 else 0


def twice(v):
    return (v for _ in (1, 2))


def beside(v, other):
    return (x for x in (v, other))


FUNCTIONS = {
    "all": lambda v: all(twice(v)),
    "any": lambda v: any(twice(v)),
    "all of map": lambda v: all(map(lambda _: v, (1, 2))),
    "all of views": lambda v: all({"k": v}.values()),
    "max": lambda v: max(twice(v)) is v,
    "filter": lambda v: len([*filter(None, twice(v))]),
    "filter in a loop": lambda v: [1 for _ in filter(None, twice(v))],
    "filterfalse": lambda v: [1 for _ in itertools.filterfalse(None, twice(v))],
    "next": lambda v: next(filter(None, twice(v)), 0) != 0,
    "in": lambda v: 0.5 in twice(v),
    "in a deque": lambda v: 0.5 in collections.deque(twice(v)),
    "in tuples": lambda v: (0.5,) in ((x,) for x in twice(v)),
    "sorted": lambda v: len(sorted(twice(v))),
    "dict": lambda v: len(dict((x, 1) for x in beside(v, 1))),  # noqa: C402
    "Counter": lambda v: len(collections.Counter(beside(v, 1))),
    "groupby": lambda v: len(list(itertools.groupby(beside(v, 0.5)))),
    "compress": lambda v: len(list(itertools.compress([1, 2], twice(v)))),
    "indexOf": lambda v: operator.indexOf(beside(v, 1), 1),
    "countOf": lambda v: operator.countOf(beside(v, 1), 0.5),
    "sum": lambda v: sum(twice(v), 0.0),
    "reduce": lambda v: functools.reduce(operator.add, twice(v)),
    "nlargest": lambda v: len(heapq.nlargest(1, twice(v))),
    "bytes": lambda v: bytes(twice(v)),
    "map": lambda v: [*map(float, twice(v)), *map(str, twice(v)), *map(len, twice(v))],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("new", [True, False])
def test_programs_see_what_the_methods_read(name, new):
    f, v = FUNCTIONS[name], Value(0.5)
    for x in (0.5, 0.5, 0.5, -0.5, 0.5, 0.7, -0.7, 2.0, 1.0, 0.0):
        v.x = x
        v = Value(x) if new else v
        assert pullback(f, v)[0] == f(v)
