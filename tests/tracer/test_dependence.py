"""What has no derivative may go where no gradient can follow; what has one may not, wherever it comes from."""

import array
import contextlib
import copy
import ctypes
import datetime
import fractions
import functools
import math
import os
import pickle
import struct
import time
import unittest
from decimal import Decimal

import numpy as np
import pytest

import wengert
from helpers import assert_same
from wengert import grad, jit, jvp, linearize, pullback, value_and_grad

V = 1.5
A = np.arange(3.0)
N = 3


class C:
    v = 2.5


class Point(ctypes.Structure):
    _fields_ = (("x", ctypes.c_double),)


class Weight:
    def __float__(self):
        return V


def of_array(x):
    return array.array("d", [C.v, V])[0] * x


def of_writes(x):
    d = array.array("d")
    d.append(C.v)
    d.extend([V, V])
    d[0] = V
    return sum(d) * x


def of_struct(x):
    return struct.unpack("<dd", struct.pack("<dd", V, C.v))[1] * x


def of_decimal(x):
    return float(Decimal(V) + Decimal.from_float(C.v)) * x


def of_fraction(x):
    return float(fractions.Fraction(V) * fractions.Fraction(C.v)) * x


def of_ratio(x):
    return V.as_integer_ratio()[0] * x + N.numerator * N.denominator


def of_pickle(x):
    return pickle.loads(pickle.dumps([V, {"a": C.v}, A]))[1]["a"] * x


def of_copies(x):
    return copy.deepcopy([V])[0] * copy.copy(C.v) * x


def of_datetime(x):
    when = datetime.datetime.fromtimestamp(V, datetime.timezone.utc)
    return when.microsecond * x + datetime.timedelta(seconds=C.v).total_seconds()


def of_ctypes(x):
    pair, point = (ctypes.c_double * 2)(), Point()
    pair[1] = V
    point.x = C.v
    return pair[1] * point.x * x


def of_hex(x):
    return float.fromhex(V.hex()) * x


def of_float_method(x):
    return math.sin(Weight()) * struct.unpack("d", struct.pack("d", Weight()))[0] * x


def of_objects(x):
    return float(np.array([V, C.v], dtype=object)[1]) * x


def of_default(x, k=2.5):
    return float(Decimal(k * V)) * x


def of_sub_test(x):
    case = unittest.TestCase()
    for v in (N, V):
        with case.subTest(v=v):
            case.assertEqual(v, v)
    return x * V


OUTSIDE = [f for name, f in list(globals().items()) if name.startswith("of_")]


@pytest.mark.parametrize("f", OUTSIDE)
@pytest.mark.parametrize("on", [False, True])
def test_what_comes_from_outside_goes_anywhere(f, on, monkeypatch):
    with jit(on):
        for i in range(6):
            monkeypatch.setattr(C, "v", 2.5 + i // 2)
            monkeypatch.setitem(globals(), "V", 1.5 + i // 3)
            monkeypatch.setitem(globals(), "N", 3 + i)
            value, gradient = value_and_grad(f)(2.0)
            assert_same(value, f(2.0))
            assert gradient == pytest.approx(f(3.0) - f(2.0))


@pytest.mark.parametrize("on", [False, True])
def test_the_clock_goes_anywhere(on):
    def f(x):
        now = time.time()
        when = datetime.datetime.fromtimestamp(now)
        kept = array.array("d", [now])
        return x * (abs(when.timestamp() - now) < 1e-3) * (kept[0] == now) * time.localtime(now)[7]

    with jit(on):
        for _ in range(4):
            value, gradient = value_and_grad(f)(2.0)
            assert value == f(2.0) > 0
            assert gradient == value / 2


def test_objects_with_numbers_from_outside_are_seen_plainly_by_code_that_is_not_traced():
    class Pair:
        def __init__(self, v):
            self.v = v

        def __eq__(self, other):
            return type(self.v) is float and vars(self) == vars(other)

        __hash__ = None

    def f(x):
        unittest.TestCase().assertEqual(Pair(V), Pair(V * 1.0))
        return x * V

    for on in (False, True):
        with jit(on):
            assert value_and_grad(f)(2.0) == (3.0, 1.5)


# --------------------------------------------------------------------- what has a derivative is refused


def by_decimal(y):
    return float(Decimal(y)) * y


def by_struct(y):
    return struct.unpack("d", struct.pack("d", y))[0] * y


def by_ratio(y):
    a, b = y.as_integer_ratio()
    return a / b * y


def by_array(y):
    return array.array("d", [y])[0] * y


def by_item(y):
    kept = array.array("d", [0.0])
    kept[0] = y
    return kept[0] * y


def by_attribute(y):
    point = Point()
    point.x = y
    return point.x * y


def by_objects(y):
    return float(np.array([y], dtype=object)[0]) * y


class Holder:
    def __init__(self):
        self.v = 1.5


OUT = Holder()


class Model:
    def __init__(self, k):
        self.w = 1.5
        self.k = k

    def __call__(self, x):
        return self.k(self.w) * x


def captured(k):
    w = 1.5
    return value_and_grad(lambda g: g())(lambda: k(w))


def captured_early(k):
    held = OUT

    def f(g):
        return g() + k(OUT.v)

    return value_and_grad(f)(lambda: held.v * 2)


def captured_late(k):
    held = OUT

    def f(g):
        return k(OUT.v) + g()

    return value_and_grad(f)(lambda: held.v * 2)


def in_a_loop(k):
    def f(x):
        y = 0.0
        for _ in range(200):
            y = y + x * 1.01
        return k(y)

    return grad(f)(2.0)


def checkpointed(k):
    return grad(wengert.checkpoint(lambda x: k(x * 2)))(2.0)


WAYS = {
    "argument": lambda k: grad(k)(2.0),
    "keyword": lambda k: pullback(lambda *, y: k(y), y=2.0),
    "int": lambda k: grad(lambda n: k(n * 0.5))(3),
    "item": lambda k: grad(lambda a: k(a[0]))([2.0]),
    "array": lambda k: grad(lambda a: k(float(a[0])))(np.array([2.0])),
    "attribute": lambda k: value_and_grad(lambda m: k(m.w))(Model(k)),
    "self": lambda k: pullback(Model(k), 2.0, wrt_self=True),
    "jvp": lambda k: jvp(k, (2.0,), (1.0,)),
    "linearize": lambda k: linearize(k, 2.0),
    "captured": captured,
    "captured early": captured_early,
    "captured late": captured_late,
    "partial": lambda k: value_and_grad(lambda g: g())(functools.partial(k, 1.5)),
    "set": lambda k: value_and_grad(lambda s: k(next(iter(s))))({1.5}),
    "generator": lambda k: value_and_grad(lambda s, x: k(next(s)) * x)((v for v in [1.5]), 2.0),
    "memory": lambda k: value_and_grad(lambda s: k(s[0]))(array.array("d", [1.5])),
    "loop": in_a_loop,
    "checkpoint": checkpointed,
    "scalar": lambda k: grad(lambda x: k(np.float64(x)))(2.0),
    "C function": lambda k: grad(lambda x: k(math.fsum([x, x])))(2.0),
    "inner gradient by a constant": lambda k: pullback(lambda x: grad(k)(V) * x, 2.0),
    "inner list": lambda k: pullback(lambda x: grad(lambda a: k(a[0]))([V])[0] * x, 2.0),
    "inner jvp": lambda k: pullback(lambda x: jvp(k, (V,), (1.0,))[1] * x, 2.0),
    "outer variable": lambda k: grad(lambda x: grad(lambda z: k(x) * z)(3.0))(2.0),
    "inner function": lambda k: pullback(lambda x: grad(lambda g: k(g()))(lambda: OUT.v), 2.0),
    "inner generator": lambda k: pullback(
        lambda x: grad(lambda g, z: k(next(g)) * z, argnums=(0, 1))((v for v in [OUT.v]), x), 2.0
    ),
}


@pytest.mark.parametrize("k", [f for name, f in list(globals().items()) if name.startswith("by_")])
@pytest.mark.parametrize("way", WAYS)
def test_what_has_a_derivative_is_refused(k, way):
    for on in (False, True):
        with jit(on):
            for _ in range(2):
                with pytest.raises((wengert.TraceError, wengert.NoRuleError)):
                    WAYS[way](k)


def test_a_refusal_that_is_caught_ends_the_run():
    def f(x):
        with contextlib.suppress(Exception):
            return float(Decimal(x)) * x
        return 1.0

    with pytest.raises(wengert.NoRuleError):
        grad(f)(2.0)


# ------------------------------------------------------------------------------------ struct sequences


def local(x):
    when = time.localtime(V * 1000)
    return when.tm_gmtoff, when.tm_zone, when, [when][0].tm_zone, time.mktime(when), x


def mapped(x):
    found = list(map(time.gmtime, [V, V]))
    return found[0].tm_zone, max(found).tm_gmtoff, copy.copy(found[0]), copy.deepcopy(found), x


def status(x):
    found = os.stat(__file__)
    return found.st_mtime, found.st_mtime_ns, found, pickle.loads(pickle.dumps(found)), x


@pytest.mark.parametrize("f", [local, mapped, status])
@pytest.mark.parametrize("on", [False, True])
def test_struct_sequences_keep_the_fields_that_are_no_items(f, on):
    def opened(value):
        if hasattr(value, "n_fields"):
            return value.__reduce__()
        return list(map(opened, value)) if isinstance(value, (list, tuple)) else value

    with jit(on):
        for _ in range(3):
            assert opened(pullback(f, 2.0)[0]) == opened(f(2.0))


def test_a_struct_sequence_of_what_has_a_derivative_is_refused():
    with pytest.raises(wengert.NoRuleError):
        grad(lambda x: time.localtime(x).tm_sec * x)(2.0)
