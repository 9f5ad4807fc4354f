"""Memos in dicts outside: what a run has put there for a number is not taken for a constant by the next one."""

import dataclasses
import functools
import operator
from collections import defaultdict, deque, namedtuple

import numpy as np
import pytest

from wengert import TraceError, jit, pullback, stop_gradient, value_and_grad

LOST = "a dict outside gives what an earlier call has put there"


class Memo:
    def __init__(self, f):
        self.f, self.known = f, {}

    def __call__(self, *args):
        try:
            return self.known[args]
        except KeyError:
            self.known[args] = found = self.f(*args)
            return found


class Squares(dict):
    def __missing__(self, key):
        self[key] = value = key * key
        return value


def asked_first():
    known = {}

    def f(x):
        if x not in known:
            known[x] = x * x
        return known[x] * 1.0

    return f


def by_get():
    known = {}

    def f(x):
        key = round(x, 3)
        value = known.get(key)
        if value is None:
            value = known[key] = x * x
        return value

    return f


def by_setdefault():
    known = {}
    return lambda x: known.setdefault(x, x * x)


def by_text():
    known = {}

    def f(x):
        key = f"{x:.6f}"
        if key not in known:
            known[key] = x * x
        return known[key]

    return f


def by_integer_made_of_it():
    known = {}

    def f(x):
        key = int(x * 1000)
        if key not in known:
            known[key] = x * x
        return known[key]

    return f


def by_tuple():
    memo = Memo(lambda x, n: x**n)
    return lambda x: memo(x, 2)


def in_a_tuple():
    known = defaultdict(tuple)

    def f(x):
        if not known[x]:
            known[x] = (x * x, [2 * x])
        return known[x][0]

    return f


def by_missing():
    squares = Squares()
    return lambda x: squares[x]


def recursive():
    known = {}

    def power(x, n):
        if (x, n) not in known:
            known[x, n] = x if n == 1 else x * power(x, n - 1)
        return known[x, n]

    return lambda x: power(x, 2)


MEMOS = [
    asked_first, by_get, by_setdefault, by_text, by_integer_made_of_it, by_tuple, in_a_tuple, by_missing, recursive,
]  # fmt: skip


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
@pytest.mark.parametrize("memo", MEMOS, ids=lambda m: m.__name__)
def test_what_is_found_again_is_refused(memo, on):
    f = memo()
    g = value_and_grad(f)
    with jit(on):
        for i in range(8):
            x = 2.0 + i // 2
            if i % 2 == 0:
                assert g(x) == (x * x, 2 * x)
            else:
                with pytest.raises(TraceError, match=LOST):
                    g(x)
                with pytest.raises(TraceError, match=LOST):
                    pullback(f, x)
    assert f(2.0) == 4.0  # outside of a derivative it is what it always was


@dataclasses.dataclass(frozen=True)
class Case:
    t: float


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    t: float


class Row(list):
    def __hash__(self):
        return hash(tuple(self))


class Thing:
    def __init__(self, v):
        self.v = v


Result = namedtuple("Result", "v n")

KEYS = {
    "dataclass": Case,
    "slots": Slotted,
    "namedtuple": lambda x: Result(x, 1),
    "list of a class": lambda x: Row([x]),
    "frozenset": lambda x: frozenset([x]),
    "deep": lambda x: (1, (1, (1, (1, (1, frozenset([x])))))),
}


def append_to_new(memo, x, y):
    memo[x] = new = []
    new.append(y)


def set_in_new(memo, x, y):
    memo[x] = new = Thing(0.0)
    new.v = y


def enclosed(memo, x, y):
    memo[x] = lambda: y


PUTS = {
    "update": (lambda memo, x, y: memo.update({x: y}), lambda found: found),
    "update by pairs": (lambda memo, x, y: memo.update([(x, y)]), lambda found: found),
    "update by an iterator": (lambda memo, x, y: memo.update(zip([x], [y])), lambda found: found),
    "or": (lambda memo, x, y: operator.ior(memo, {x: y}), lambda found: found),
    "namedtuple": (
        lambda memo, x, y: operator.setitem(memo, x, Result(y, 1)),
        lambda found: found.v,
    ),
    "object": (lambda memo, x, y: operator.setitem(memo, x, Thing(y)), lambda found: found.v),
    "deque": (lambda memo, x, y: operator.setitem(memo, x, deque([y])), lambda found: found[0]),
    "deep": (
        lambda memo, x, y: operator.setitem(memo, x, [[[[[[y]]]]]]),
        lambda found: found[0][0][0][0][0][0],
    ),
    "closure": (enclosed, lambda found: found()),
    "append": (lambda memo, x, y: memo.setdefault(x, []).append(y), lambda found: found[0]),
    "append to what was put": (append_to_new, lambda found: found[0]),
    "attribute of what was put": (set_in_new, lambda found: found.v),
}


def refused_when_found(f, on):
    with jit(on):
        assert value_and_grad(f)(1.5) == (2.25, 3.0)
        for _ in range(3):
            with pytest.raises(TraceError, match=LOST):
                value_and_grad(f)(1.5)
    assert f(1.5) == 2.25


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
@pytest.mark.parametrize("key", KEYS)
def test_keys_that_hold_numbers(key, on):
    known, make = {}, KEYS[key]

    def f(x):
        if make(x) not in known:
            known[make(x)] = x * x
        return known[make(x)] * 1.0

    refused_when_found(f, on)


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
@pytest.mark.parametrize("put", PUTS)
def test_however_it_was_put_there(put, on):
    known = {}
    write, read = PUTS[put]

    def f(x):
        if x not in known:
            write(known, x, x * x)
        return read(known[x]) * 1.0

    refused_when_found(f, on)


def test_what_a_call_that_failed_has_put_there():
    known = {}

    def f(x):
        if x in known:
            return known[x]
        known[x] = x * x
        raise ValueError

    with pytest.raises(ValueError):
        value_and_grad(f)(1.5)
    with pytest.raises(TraceError, match=LOST):
        value_and_grad(f)(1.5)


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
def test_an_object_is_a_key_of_its_own_and_a_row_of_a_table_is_none(on):
    thing, rows, known = Thing(0.0), {2.0: [3.0, 4.0]}, {}

    def f(x):
        thing.v = x
        found = known.get(thing, 0.0)
        known[thing] = x * x
        return rows[x][0] * x + found

    g = value_and_grad(f)
    with jit(on):
        for i in range(6):
            assert g(2.0) == (6.0 + 4.0 * (i > 0), 3.0)


def test_bytes_of_an_array():
    known = {}

    def f(a):
        key = a.tobytes()
        if key not in known:
            known[key] = (a * a).sum()
        return float(known[key])

    value, gradient = value_and_grad(f)(np.ones(3))
    assert value == 3.0
    assert gradient.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(TraceError, match=LOST):
        value_and_grad(f)(np.ones(3))


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
def test_tables_counts_and_constants_are_not(on):
    table = {1.0: 2.0, 2.0: 3.0}
    counts, lists, kept, last = {}, defaultdict(list), {}, {}

    def f(x):
        counts[round(x)] = counts.get(round(x), 0) + 1
        lists[round(x)].append(x)
        key = stop_gradient(x)
        if key not in kept:
            kept[key] = 2.0 * key
        last["x"] = x * x
        return table[x] * x + kept[key] + last["x"] + counts[round(x)] + len(lists[round(x)])

    g = value_and_grad(f)
    with jit(on):
        for i in range(12):
            x = 1.0 + i % 2
            n = 2 * (i // 2 + 1)
            assert g(x) == (table[x] * x + 2.0 * x + x * x + n, table[x] + 2 * x)


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
def test_memos_that_are_followed(on):
    @functools.lru_cache
    def cached(x):
        return x * x

    def inside(x):
        known = {}

        def power(n):
            if (n, x) not in known:
                known[n, x] = x if n == 1 else x * power(n - 1)
            return known[n, x]

        return power(3) + power(2) + cached(x)

    g = value_and_grad(inside)
    with jit(on):
        for _ in range(6):
            assert g(2.0) == (16.0, 20.0)
