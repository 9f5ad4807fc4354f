"""Memos in dicts outside: what a run has put there for a number is not taken for a constant by the next one."""

import functools
from collections import defaultdict

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
