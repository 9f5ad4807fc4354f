"""What C code reads of things outside that no guard looks into: no program answers with what was read before."""

import array
import bisect
import collections
import ctypes
import decimal
import functools
import heapq
import itertools
import math
import operator
import statistics
import types

import numpy as np
import pytest

from helpers import assert_same
from wengert import pullback, value_and_grad

pytestmark = pytest.mark.usefixtures("programs_anew")

STEP = 1e-6
MODULES = (bisect, collections, heapq, itertools, math, operator, statistics, types)


def keywords(x, **named):
    return x * named["a"]


class Shows:
    def __init__(self, held):
        self.held = held

    def __repr__(self):
        return "R" * int(self.held["a"])


class Named(types.SimpleNamespace):
    pass


class Plain:
    def __repr__(self):
        return f"Plain({self.a})"


def world():
    """What the expressions read, and how it is changed and put back."""
    held = {"a": 2.0, "b": 1.0}
    made = {
        "held": held,
        "P": types.MappingProxyType(held),
        "V": held.values(),
        "K": held.keys(),
        "I": held.items(),
        "get": types.MappingProxyType(held).get,
        "A": array.array("d", [2.0, 1.0]),
        "B": bytearray([2, 3]),
        "C": (ctypes.c_double * 2)(2.0, 1.0),
        "M": memoryview(array.array("d", [2.0, 1.0])),
        "N": types.SimpleNamespace(a=2.0),
        "O": Named(a=2.0),
        "Q": Plain(),
        "S": functools.partial(max, Shows(held)),
        "D": decimal.Decimal("1.23456789"),
        "X": np.array([1.1, 2.0]),
        "Y": np.int64(3),
        "Z": np.float64(2.5),
    }
    made["Q"].a = 2.0
    return made


def set_all(made, value, digits, legacy):
    made["held"]["a"] = made["A"][0] = made["C"][0] = made["M"][0] = value
    made["B"][0] = int(value)
    before = value == 2.0
    made["A"][1] = made["M"][1] = 1.0 if before else 9.0
    made["B"][1] = 3 if before else 2
    made["N"].a = made["O"].a = made["Q"].a = 2.0 if before else 4000.0
    if before:
        made["held"].pop("z", None)
    else:
        made["held"]["z"] = 9.0
    decimal.getcontext().prec = digits
    np.set_printoptions(legacy=legacy)


@pytest.fixture
def settings():
    before = decimal.getcontext().prec, np.get_printoptions()["legacy"]
    yield
    decimal.getcontext().prec = before[0]
    np.set_printoptions(legacy=before[1])


# Each gives a number; what is read has changed before the fifth call and is as it was before the seventh.
PROXIES = """
keywords(x, **P)
x * len({**P})
x * dict(**P)["a"]
x * (dict(b=3.0) | P)["a"]
x * len("{}".format(P))
x * float("%(a)s" % P)
x * float("{a}".format_map(P))
x * float("{a}".format(**P))
x * operator.length_hint(P)
x * types.SimpleNamespace(**P).a
x * math.fsum(map(len, P))
x * len(next(reversed(P)))
x * get("a")
"""
VIEWS = """
x * math.fsum(V)
x * math.prod(V)
x * next(iter(V))
x * len(list(reversed(K)))
x * operator.length_hint(V)
x * heapq.nlargest(1, V)[0]
x * statistics.mode(V)
x * operator.countOf(V, 4.0)
x * sum(itertools.tee(V)[0])
x * collections.Counter(V)[4.0]
x * {4.0}.isdisjoint(V)
x * len("{}".format(V))
x * len({"q": 1.0} | dict(I))
"""
BUFFERS = """
x * math.fsum(B)
x * math.prod(M)
x * math.dist(B, [0.0, 0.0])
x * np.sum(B)
x * np.max(M)
x * np.dot(B, [1.0, 2.0])
x * np.argmax(B)
x * np.add.reduce(M)
x * b"".join([B])[0]
x * operator.concat(B, b"a")[0]
x * next(iter(B))
x * next(reversed(B))
x * bisect.bisect(M, 3.0)
x * statistics.mode(B)
x * "{}".format(B).count("4")
x * next(iter(A))
x * next(reversed(A))
x * operator.concat(A, A)[0]
x * bisect.bisect(A, 3.0)
x * heapq.nlargest(1, A)[0]
x * "{}".format(A).count("4")
x * sum(x * np.asarray(A))
x * next(iter(C))
x * collections.Counter(C)[4.0]
x * len({1.0, 4.0}.intersection(C))
x * {4.0}.isdisjoint(C)
"""
TEXT = """
x * len("{}".format(N))
x * len("%s" % N)
x * len(f"{N}")
x * len("{}".format(O))
x * len(f"{O}")
x * len("%s%s" % (N, O))
x * len("{n}".format(n=N))
x * len("{n}".format_map({"n": N}))
x * float("{0.a}".format(N))
x * float("{0.a}".format(Q))
x * len("{}".format([Q]))
x * len("{}".format([N]))
x * len(repr([N]))
x * len("{}".format(S))
x * len("%s" % S)
"""
DECIMALS = """
x * float(D + 1)
x * float(2 - D)
x * float(+D)
x * float(-D)
x * float(abs(D))
x * float(D * D)
x * float(operator.mul(D, D))
x * float(D / 3)
x * float(D // 1)
x * float(D % 1)
x * float(D ** 2)
x * float(divmod(D, 3)[1])
x * float(round(D, 2))
x * float(sum([D, D]))
x * float(f"{D * 3:.6f}")
x * float("%s" % (D + 1))
"""
NUMPYS = """
x * len(repr(X[0]))
x * len("%r" % X[0])
x * len(repr(Y))
x * len("{!r}".format(Z))
x * len("{}".format([Z]))
x * len(f"{Z!r}")
"""
ALL = [
    line
    for table in (PROXIES, VIEWS, BUFFERS, TEXT, DECIMALS, NUMPYS)
    for line in table.split("\n")
    if line
]


@pytest.mark.parametrize("text", ALL)
def test_what_has_changed_is_read_again(text, settings):
    made = world()
    known = {"keywords": keywords, "np": np, **{module.__name__: module for module in MODULES}}
    f = eval(f"lambda x: {text}", known | made)
    asked = value_and_grad(f)
    for i in range(9):
        if i in (0, 6):
            set_all(made, 2.0, 28, False)
        elif i == 4:
            set_all(made, 4.0, 4, "1.25")
        x = 1.3 + 0.01 * i
        value, slope = asked(x)
        assert_same(value, f(x))
        assert abs(slope - (f(x + STEP) - f(x - STEP)) / (2 * STEP)) < 1e-6 * max(1.0, abs(slope))


def test_the_truth_of_a_view_is_asked_again():
    for name in "PVKI":
        made = world()
        view = made[name]
        asked = value_and_grad(lambda x, view=view: 2 * x if view else 3 * x)
        for i in range(7):
            if i == 4:
                made["held"].clear()
            assert asked(1.5) == ((3.0, 2.0) if i < 4 else (4.5, 3.0)), name


# Each has NumPy make an array in the memory of a buffer outside.
LENDING = {
    "asarray": lambda x, held: x * np.asarray(held)[0],
    "frombuffer": lambda x, held: x * np.frombuffer(held, np.uint8).sum(),
    "sum": lambda x, held: x * np.sum(held),
    "no box": lambda x, held: np.asarray(held).sum() * 1.0,
    "squares": lambda x, held: (x * np.asarray(held, dtype=float) ** 2).sum(),
}


@pytest.mark.parametrize("make", [lambda: array.array("d", [2.0, 1.0]), lambda: bytearray(b"ab")])
@pytest.mark.parametrize("name", LENDING)
def test_a_buffer_may_be_resized_after_a_run(name, make):
    held = make()
    f = functools.partial(LENDING[name], held=held)
    asked = value_and_grad(f)
    for _ in range(5):
        value, _ = asked(1.3)
        assert_same(value, f(1.3))
        held.append(1)


def test_a_pullback_keeps_no_buffer():
    held = array.array("d", [2.0, 1.0])
    value, pull = pullback(lambda x: (x * np.asarray(held)).sum(), 1.5)
    held[0] = 7.0
    held.append(5.0)
    assert (value, pull(1.0)) == (4.5, (3.0,))
