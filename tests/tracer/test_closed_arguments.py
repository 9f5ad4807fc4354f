"""Objects written in C inside of an argument: what a result owes to them has no gradient, and an error says so."""

import collections
import contextvars
import ctypes
import datetime
import functools
import inspect
import mmap
import operator
import queue
import random
import re
import struct
import threading
import types
import weakref

import numpy as np
import pytest

from wengert import TraceError, grad, jit, value_and_grad

VARIABLE = contextvars.ContextVar("VARIABLE")
OTHER = contextvars.ContextVar("OTHER")
RECORD = [("a", float), ("b", float)]
kept = []


class Point:
    def __init__(self, x):
        self.x = x

    def get(self, *_):
        return self.x


class Caller(Point):
    __call__ = Point.get


class Items(collections.defaultdict):
    pass


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_double)]


def keep(value):
    kept.append(value)
    return value


def then(value, *_):
    return value


def in_a_context(p):
    context = contextvars.Context()
    context.run(VARIABLE.set, p)
    return context


def mapped(p):
    memory = mmap.mmap(-1, 8)
    memory[:] = struct.pack("d", p)
    return memory


def local(p):
    values = threading.local()
    values.x = p
    return values


def generator(p):
    yield p


def closure(p):
    return lambda *_: p


def finalizer(p):
    found = weakref.finalize(keep(Point(p)), then, p, p)
    found.atexit = False
    return found


CLOSED = {  # how one is made, and how it is read
    "void": (lambda p: np.array([(p, 1)], RECORD)[0], lambda o: o["a"]),
    "field of void": (lambda p: np.array([(p, 1)], RECORD)[0], lambda o: o[0]),
    "items of void": (lambda p: np.array([(p, 1)], RECORD)[0], lambda o: o.item()[0]),
    "record": (lambda p: np.rec.array([(p, 1)], RECORD)[0], lambda o: o.a),
    "weak proxy": (lambda p: weakref.proxy(keep(Point(p))), lambda o: o.x),
    "weak proxy's vars": (lambda p: weakref.proxy(keep(Point(p))), lambda o: vars(o)["x"]),
    "SimpleQueue": (lambda p: then(q := queue.SimpleQueue(), q.put(p)), lambda o: o.get()),
    "ContextVar": (lambda p: then(OTHER, OTHER.set(p)), lambda o: o.get()),
    "Context": (in_a_context, lambda o: o[VARIABLE]),
    "Context.run": (in_a_context, lambda o: o.run(VARIABLE.get)),
    "Token": (lambda p: then(OTHER.set(p)) and OTHER.set(1.0), lambda o: o.old_value),
    "c_double": (ctypes.c_double, lambda o: o.value),
    "array of ctypes": (lambda p: (ctypes.c_double * 1)(p), lambda o: o[0]),
    "Structure": (Pair, lambda o: o.a),
    "pointer": (lambda p: ctypes.pointer(keep(ctypes.c_double(p))), lambda o: o.contents.value),
    "bytearray": (lambda p: bytearray(struct.pack("d", p)), lambda o: np.frombuffer(o)[0]),
    "unpacked": (lambda p: bytearray(struct.pack("d", p)), lambda o: struct.unpack("d", o)[0]),
    "mmap": (mapped, lambda o: struct.unpack("d", o[:])[0]),
    "threading.local": (local, lambda o: o.x),
    "methodcaller": (lambda p: operator.methodcaller("__mul__", p), lambda o: o(1.0)),
    "cmp_to_key": (lambda p: functools.cmp_to_key(lambda a, b: 0)(p), lambda o: o.obj),
    "flat": (lambda p: np.array([p, 1.0]).flat, lambda o: o[0]),
    "next of flat": (lambda p: np.array([p, 1.0]).flat, next),
    "broadcast": (lambda p: np.broadcast(np.array([p]), np.array([1.0])), lambda o: next(o)[0]),
    "method of a float": (lambda p: p.__mul__, lambda o: o(1.0)),
    "method of a NumPy number": (lambda p: np.float64(p).item, lambda o: o()),
    "method of an iterator": (lambda p: iter([p]).__next__, lambda o: o()),
    "method of a generator": (lambda p: generator(p).send, lambda o: o(None)),
    "staticmethod": (lambda p: staticmethod(closure(p)), lambda o: o()),
    "staticmethod of a method": (lambda p: staticmethod(closure(p).__call__), lambda o: o()),
    "staticmethod of a partial": (
        lambda p: staticmethod(functools.partial(then, p)),
        lambda o: o(),
    ),
    "staticmethod, unwrapped": (lambda p: staticmethod(closure(p)), lambda o: o.__wrapped__()),
    "staticmethod, bound": (lambda p: staticmethod(Point(p).get), lambda o: o.__get__(1)()),
    "classmethod": (lambda p: classmethod(closure(p)), lambda o: o.__get__(None, int)()),
    "classmethod's function": (lambda p: classmethod(Point(p).get), lambda o: o.__func__()),
    "property": (lambda p: property(closure(p)), lambda o: o.fget(1)),
    "property, read": (lambda p: property(closure(p)), lambda o: o.__get__(1)),
    "finalize": (finalizer, lambda o: o.peek()[2][0]),
    "finalize, called": (finalizer, lambda o: o()),
    "factory": (
        lambda p: collections.defaultdict(closure(p)),
        lambda o: o.default_factory(),
    ),
    "item by a factory": (lambda p: collections.defaultdict(closure(p)), lambda o: o["a"]),
    "item by a method": (lambda p: collections.defaultdict(Point(p).get), lambda o: o["a"]),
    "item by an object": (lambda p: collections.defaultdict(Caller(p)), lambda o: o["a"]),
    "defaultdict of its own class": (lambda p: Items(closure(p)), lambda o: o["a"]),
    "callback": (lambda p: weakref.ref(Point, closure(p)), lambda o: o.__callback__()),
    "super": (lambda p: super(Caller, Caller(p)), lambda o: o.get()),
    "WeakSet": (lambda p: weakref.WeakSet([keep(Point(p))]), lambda o: [*o][0].x),
    "ref in a set": (lambda p: {weakref.ref(keep(Point(p)))}, lambda o: [*o][0]().x),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", CLOSED)
def test_what_is_read_of_it_has_no_gradient(name, on):
    make, read = CLOSED[name]

    def f(p):
        return read(p["held"]) * p["w"]

    def by_the_other(w, held):
        return read(held) * w

    with jit(on):
        for p in (1.5, 2.5, 0.5, 1.5):
            with pytest.raises(TraceError, match=r"argument|pass"):
                value_and_grad(f)({"held": make(p), "w": 2.0})
            assert value_and_grad(by_the_other)(2.0, make(p)) == (2 * p, p)


OPEN = {  # of these nobody asks for a gradient
    "Random": (lambda: random.Random(3), lambda o: o.random()),
    "Generator": (lambda: np.random.default_rng(3), lambda o: o.normal()),
    "RandomState": (lambda: np.random.RandomState(3), lambda o: o.rand()),
    "timedelta": (lambda: datetime.timedelta(seconds=3), lambda o: o.total_seconds()),
    "datetime": (lambda: datetime.datetime(2020, 1, 1), lambda o: o.timestamp() / 1e9),
    "Pattern": (lambda: re.compile("a+"), lambda o: o.match("aaa").end() * 0.5),
    "Lock": (threading.Lock, lambda o: 2.0 if o.acquire(False) else 1.0),
    "unread": (queue.SimpleQueue, lambda o: 3.0),
    "whole": (lambda: bytearray(b"\3"), lambda o: o[0]),
    "staticmethod": (lambda: staticmethod(abs), lambda o: o(-2.0)),
    "property": (lambda: property(operator.attrgetter("real")), lambda o: o.__get__(2) * 1.0),
    "finalize": (lambda: finalizer(1.0), lambda o: o.alive * 2.0),
    "factory": (lambda: collections.defaultdict(list), lambda o: len(o["a"]) + 1.0),
    "number of a factory": (lambda: collections.defaultdict(lambda: 3), lambda o: o["a"] * 1.0),
    "Counter's method": (lambda: collections.Counter("aab").total, lambda o: o() * 1.0),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", OPEN)
def test_what_holds_no_such_number_may_stand_there(name, on):
    make, read = OPEN[name]

    def f(p):
        return read(p["held"]) * p["w"]

    with jit(on):
        for w in (1.5, 2.5, 0.5, 1.5):
            value, slope = value_and_grad(f)({"held": make(), "w": w})
            assert value == read(make()) * w
            assert slope["w"] == read(make())


FOLLOWED = {  # how one is made, how it is read, and how the gradient by it is
    "set of objects": (lambda p: {Point(p)}, lambda o: [*o][0].x, lambda d: [*d.values()][0]["x"]),
    "set of functions": (
        lambda p: {closure(p)},
        lambda o: [*o][0](),
        lambda d: [*d.values()][0]["p"],
    ),
    "frozenset": (
        lambda p: frozenset([Point(p)]),
        lambda o: [*o][0].x,
        lambda d: [*d.values()][0]["x"],
    ),
    "method of a closure": (
        lambda p: types.MethodType(closure(p), 1),
        lambda o: o(),
        lambda d: d["__func__"]["p"],
    ),
    "method of a method": (
        lambda p: types.MethodType(Point(p).get, 1),
        lambda o: o(),
        lambda d: d["__func__"]["x"],
    ),
    "method": (lambda p: Point(p).get, lambda o: o(), lambda d: d["x"]),
    "default in a signature": (
        lambda p: inspect.Parameter("p", inspect.Parameter.KEYWORD_ONLY, default=p),
        lambda o: o.default,
        lambda d: d["_default"],
    ),
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", FOLLOWED)
def test_what_is_followed_has_a_gradient(name, on):
    make, read, part = FOLLOWED[name]
    with jit(on):
        for p in (1.5, 2.5, 0.5, 1.5):
            value, d = value_and_grad(lambda p: read(p["held"]) * p["w"])(
                {"held": make(p), "w": 2.0}
            )
            assert value == 2 * p and d["w"] == p and part(d["held"]) == 2.0


@pytest.mark.parametrize("on", [True, False])
def test_a_set_without_numbers_has_no_gradient(on):
    with jit(on):
        for held in ({"a"}, {print}, {Point("a")}, {closure("a")}):
            d = grad(lambda p: len(p["held"]) * p["w"])({"held": held, "w": 2.0})
            assert d == {"held": None, "w": 1.0}


@pytest.mark.parametrize("on", [True, False])
def test_a_closure_under_lru_cache_is_followed_when_its_value_is_cached(on):
    with jit(on):
        cached = functools.lru_cache(closure(3.0))
        for _ in range(4):
            d = grad(lambda p: p["held"](1) * p["w"])({"held": cached, "w": 2.0})
            assert d == {"held": {"__wrapped__": {"p": 2.0}}, "w": 3.0}


class Borrowing:
    """Has a descriptor of another class in the place of its own, as proxies in C have that of what they stand for."""

    __slots__ = ("a",)
    __dict__ = vars(Point)["__dict__"]

    def __init__(self, a):
        self.a = a


@pytest.mark.parametrize("on", [False, True])
def test_an_object_whose_dict_is_not_its_own_is_no_error(on):
    with jit(on):
        for x in (2.0, 3.0, 4.0):
            assert value_and_grad(lambda p: p.a * p.a)(Borrowing(x)) == (x * x, {"a": 2.0 * x})
            assert value_and_grad(lambda x: Borrowing(x * x).a)(x) == (x * x, 2.0 * x)
