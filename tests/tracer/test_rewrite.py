"""The rewriter: twins with transparent hooks are indistinguishable from their originals."""

# ruff: noqa: E714, F821, F841

from __future__ import annotations

import argparse
import bisect
import collections
import contextlib
import copy
import dis
import functools
import importlib
import importlib.util
import inspect
import json.decoder
import json.encoder
import math
import operator
import random
import statistics
import string
import sys
import textwrap
import traceback
import types
import typing
from dataclasses import dataclass
from fractions import Fraction

import pytest

from wengert.tracer.assembly import Assembler
from wengert.tracer.errors import WengertError
from wengert.tracer.rewrite import UnsupportedCode, instrument, is_twin, original
from wengert.tracer.tape import Site
from wengert.tracer.versions import SUPPORTED, current, load

VERSION = sys.version_info[:2]

SELF_MATCHING = (
    bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple,
)  # fmt: skip


class Transparent:
    """Hooks that do exactly what the instruction does, and note what they were asked for."""

    def __init__(self):
        self.made = []

    def note(self, kind, site, *details):
        assert isinstance(site, Site) and site.lineno > 0 and site.filename and site.function
        self.made.append((kind, site, *details))

    def call(self, site):
        self.note("call", site)
        return lambda fn, /, *args, **kwargs: fn(*args, **kwargs)

    def call_ex(self, site):
        self.note("call_ex", site)
        return lambda fn, args, kwargs=None: fn(*args, **({} if kwargs is None else kwargs))

    def binary(self, site, op):
        self.note("binary", site, op)
        return lambda right, left: op(left, right)

    def compare(self, site, op, decides):
        self.note("compare", site, op)
        return lambda right, left: bool(op(left, right)) if decides else op(left, right)

    def contains(self, site, negate):
        self.note("contains", site, negate)
        return lambda container, item: (item in container) is not negate

    def loop(self, site, loop):
        self.note("loop", site, loop)
        count = len(loop.carried)
        return lambda *values: values[0] if count == 1 else values[:count]

    def leave(self, site, loops):
        self.note("leave", site, loops)
        return lambda nothing: None

    def shared(self, site):
        self.note("shared", site)
        return lambda nothing: None

    def caught(self, site):
        self.note("caught", site)
        return lambda error: None

    def dealt_with(self, site):
        self.note("dealt_with", site)
        return lambda _: None

    def is_(self, site, negate):
        self.note("is", site, negate)
        return lambda right, left: (left is right) is not negate

    def unary(self, site, op):
        self.note("unary", site, op)
        return lambda x: op(x)

    def truth(self, site):
        self.note("truth", site)
        return lambda x: bool(x)

    def getattr(self, site, name):
        self.note("getattr", site, name)
        return lambda obj: getattr(obj, name)

    def setattr(self, site, name):
        self.note("setattr", site, name)
        return lambda obj, value: setattr(obj, name, value)

    def delattr(self, site, name):
        self.note("delattr", site, name)
        return lambda obj: delattr(obj, name)

    def setitem(self, site):
        self.note("setitem", site)
        return lambda container, key, value: operator.setitem(container, key, value)

    def delitem(self, site):
        self.note("delitem", site)
        return lambda key, container: operator.delitem(container, key)

    def load_global(self, site, name):
        self.note("load_global", site, name)
        return lambda value: value

    def load_name(self, site, name):
        self.note("load_name", site, name)
        return lambda value, namespace: value

    def load_variable(self, site, name):
        self.note("load_variable", site, name)
        return lambda value: value

    def store_variable(self, site, name):
        self.note("store_variable", site, name)
        return lambda value: value

    def delete_variable(self, site):
        self.note("delete_variable", site)
        return lambda name: None

    def variables(self, site):
        self.note("variables", site)
        return lambda namespace: None

    def import_star(self, site):
        self.note("import_star", site)
        return lambda module: module

    def shown(self, site):
        self.note("shown", site)
        return lambda value: value

    def global_attr(self, site, name, attr):
        self.note("global_attr", site, name, attr)
        return lambda value: getattr(value, attr)

    def global_append(self, site, name):
        self.note("global_append", site, name)
        return lambda value: value.append

    def delete_global(self, site):
        self.note("delete_global", site)
        return lambda name: None

    def importing(self, site, name):
        self.note("importing", site, name)
        return lambda names, level: None

    def import_source(self, site, name):
        self.note("import_source", site, name)
        return lambda module: module

    def super_attr(self, site, name, given):
        self.note("super_attr", site, name, given)
        return lambda cls, obj, maker: getattr(maker(cls, obj), name)

    def import_name(self, site, name, last):
        self.note("import_name", site, name)
        return lambda module: module

    def import_from(self, site, name, last):
        self.note("import_from", site, name)
        return lambda value, source: value

    def store_global(self, site, name):
        self.note("store_global", site, name)
        return lambda value: value

    def iter(self, site):
        self.note("iter", site)
        return lambda obj: iter(obj)

    def context(self, site):
        self.note("context", site)
        return lambda manager: manager

    def exception(self, site):
        self.note("exception", site)
        return lambda error: error

    def match_class(self, site):
        self.note("match_class", site)
        return match_class

    def match_keys(self, site):
        self.note("match_keys", site)
        return match_keys

    def match_kind(self, site, name):
        self.note("match_kind", site, name)
        return is_sequence if name == "MATCH_SEQUENCE" else is_mapping

    def match_length(self, site):
        self.note("match_length", site)
        return len

    def unpack(self, site, most=None):
        self.note("unpack", site)
        return lambda obj: obj

    def unpack_rest(self, site):
        self.note("unpack_rest", site)
        return lambda obj: obj

    def spread(self, site):
        self.note("spread", site)
        return lambda obj: obj

    def merge(self, site):
        self.note("merge", site)
        return lambda obj: obj

    def merge_keywords(self, site):
        self.note("merge_keywords", site)

        def merge(mapping, fn, given):
            assert callable(fn)
            return {**given, **mapping} if not given.keys() & mapping else fn(**given, **mapping)

        return merge

    def make_set(self, site):
        self.note("make_set", site)
        return set

    def make_dict(self, site):
        self.note("make_dict", site)
        return lambda items: dict(zip(items[::2], items[1::2], strict=True))

    def add(self, site):
        self.note("add", site)
        return lambda item, container: container.add(item)

    def put(self, site):
        self.note("put", site)
        return lambda value, key, container: container.__setitem__(key, value)

    def format(self, site, to_ascii):
        self.note("format", site, to_ascii)
        return lambda value: value

    def build_string(self, site, count):
        self.note("build_string", site, count)
        return lambda *parts: "".join((parts[-1], *parts[:-1]))


def match_class(cls, names, count, subject):
    """MATCH_CLASS in Python."""
    if not isinstance(cls, type):
        raise TypeError("called match pattern must be a class")
    if not isinstance(subject, cls):
        return None
    values = []
    if count:
        if hasattr(cls, "__match_args__"):
            if count > len(cls.__match_args__):
                accepted = len(cls.__match_args__)
                plural = "" if accepted == 1 else "s"
                raise TypeError(
                    f"{cls.__name__}() accepts {accepted} positional "
                    f"sub-pattern{plural} ({count} given)"
                )
            names = cls.__match_args__[:count] + names
        elif issubclass(cls, SELF_MATCHING) and count == 1:
            values.append(subject)
        else:
            accepted = int(issubclass(cls, SELF_MATCHING))
            plural = "" if accepted == 1 else "s"
            raise TypeError(
                f"{cls.__name__}() accepts {accepted} positional "
                f"sub-pattern{plural} ({count} given)"
            )
    try:
        return (*values, *(getattr(subject, name) for name in names))
    except AttributeError:
        return None


def match_keys(keys, subject):
    """MATCH_KEYS in Python."""
    missing = object()
    if len(set(keys)) < len(keys):
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise ValueError(f"mapping pattern checks duplicate key ({twice!r})")
    values = tuple(subject.get(key, missing) for key in keys)
    return None if missing in values else values


def is_sequence(subject):
    match subject:
        case [*_]:
            return True
    return False


def is_mapping(subject):
    match subject:
        case {}:
            return True
    return False


def twin(fn, hooks=None):
    """The function with an instrumented code object."""
    code = instrument(fn.__code__, hooks or Transparent())
    result = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    result.__kwdefaults__ = fn.__kwdefaults__
    result.__dict__.update(fn.__dict__)
    return result


def frames(error):
    """Function, line and columns of each frame of the traceback, without those of the hooks."""
    found = []
    tb = error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if not code.co_qualname.startswith(("Transparent.", "outcome", "match_class")):
            positions = list(code.co_positions())[tb.tb_lasti // 2]
            found.append((code.co_name, tb.tb_lineno, *positions))
        tb = tb.tb_next
    return found


def outcome(fn, args):
    """What a call comes to: its result, or its exception with the whole traceback."""
    try:
        result = fn(*copy.deepcopy(args))
        if inspect.isgenerator(result):
            result = list(result)
        return "returned", normal(result)
    except Exception as error:
        chain, link = [], error
        while link is not None:
            chain.append((type(link).__name__, str(link), frames(link)))
            link = link.__cause__ or link.__context__
        return "raised", chain


def normal(result):
    """Something that compares: reprs without addresses."""
    if isinstance(result, types.FunctionType):
        return "function", result.__qualname__
    if isinstance(result, type):
        return (
            "class",
            result.__qualname__,
            sorted(k for k in vars(result) if k != "__firstlineno__"),
        )
    if isinstance(result, tuple | list):
        return type(result).__name__, [normal(item) for item in result]
    if isinstance(result, dict):
        return {key: normal(value) for key, value in result.items()}
    return repr(result) if type(result).__repr__ is not object.__repr__ else type(result).__name__


CASES = []


def case(*arguments):
    """Run the decorated function and its twin on each of these tuples of arguments."""

    def add(fn):
        CASES.extend(
            pytest.param(fn, args, id=f"{fn.__name__}-{i}") for i, args in enumerate(arguments)
        )
        return fn

    return add


LEVEL = 3.5
COUNTER = 0


class Vector:
    """A user class with operators, a property, and attributes that come and go."""

    __match_args__ = ("x", "y")

    def __init__(self, x, y=0.0):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __iadd__(self, other):
        self.x += other.x
        self.y += other.y
        return self

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __pos__(self):
        return Vector(abs(self.x), abs(self.y))

    def __lt__(self, other):
        return self.norm < other.norm

    def __contains__(self, item):
        return item in (self.x, self.y)

    def __bool__(self):
        return bool(self.x or self.y)

    def __getitem__(self, key):
        return (self.x, self.y)[key]

    def __iter__(self):
        yield self.x
        yield self.y

    @property
    def norm(self):
        return math.hypot(self.x, self.y)

    def scaled(self, factor=2.0, *, shift=0.0):
        return Vector(self.x * factor + shift, self.y * factor + shift)

    def __repr__(self):
        return f"Vector({self.x!r}, {self.y!r})"

    def __format__(self, spec):
        return f"<{self.x:{spec or '.1f'}}, {self.y:{spec or '.1f'}}>"


@case((2.0, 3.0), (7, 3), (2, -1))
def operators(a, b):
    r = [a + b, a - b, a * b, a / b, a // b, a % b, a**b, -a, +a, divmod(a, b), not a, not b]
    r.append((a < b, a <= b, a == b, a != b, a > b, a >= b, a is b, a is not b))
    return r


@case((6, 3), (5, 0), (1.5, 2))
def integer_operators(a, b):
    return [a << b, a >> b, a & b, a | b, a ^ b, ~a, a / b]


@case((2.0, 3.0), (7, 3))
def inplace(a, b):
    out = []
    for _ in range(2):
        a += b
        out.append(a)
        a -= b / 2
        a *= b
        a /= 3
        a //= 0.5
        a **= 2
        a %= 7
        out.append(a)
    i = int(b)
    i <<= 3
    i >>= 1
    i |= 1
    i &= 7
    i ^= 2
    return out, i


@case(())
def inplace_targets():
    v = Vector(1.0, 2.0)
    w = v
    v += Vector(1.0, 1.0)
    v.x += 5
    v.x *= 2
    d = {"k": [1, 2, 3]}
    d["k"][1] += 10
    d["k"][0:2] += [8]
    d["k"] += [9]
    a = [[0] * 3 for _ in range(2)]
    a[1][2] -= 4
    return v is w, v, d, a


@case(([1, 2, 3, 4, 5],), ("abcde",), ((),))
def slices(s):
    i = len(s) // 2
    return s[1:], s[:2], s[:], s[::2], s[1:i], s[i:1:-1], s[-2:], s[i : i + 1], s[-1:i]


@case(([1, 2, 3, 4, 5, 6, 7],), ([1],))
def slice_assignment(s):
    i = 2
    s[1:i] = [10, 20, 30]
    s[i:] = s[i:][::-1]
    s[::2] = [0] * len(s[::2])
    del s[0], s[0:i]
    return s


@case(({"a": 1, "b": 2}, "a"), ({}, "z"))
def dictionary(d, k):
    if k not in d:
        d[k] = 0
    d[k] += 1
    e = {**d, "q": 2, k: 3}
    del e["q"]
    return d, e, k in e, [*d], {k: v for k, v in d.items() if v}


@case((1, 2, 3), (3, 2, 1), (1, 1, 0), (0, 0, 0))
def comparisons(a, b, c):
    chained = a < b < c, a <= b <= c, a == b != c, a < b > c < a
    if a < b < c:
        word = "up"
    elif a > b > c:
        word = "down"
    else:
        word = "flat"
    return chained, word, (a < b) < c, not a < b <= c


@case((0, 1, 2), (1, 0, 2), (0, 0, 0), ("", [], None), ("x", [1], 3.5))
def boolean(a, b, c):
    x = a and b or c
    y = a or b and c
    z = not (a or b) and not c
    w = (a and b) if c else (a or b)
    u = 0
    if a and not b or c:
        u += 1
    if not (a and (b or c)):
        u += 2
    while a and u < 10:
        u += 3
        if b or u > 5:
            break
    return x, y, z, w, u, [v for v in (a, b, c) if v], a if a else b if b else c


@case((5,), (0,), (-3,), (30,))
def loops(n):
    out = []
    while n > 0:
        n -= 1
        if n % 2:
            continue
        if n > 20:
            break
        out.append(n)
    else:
        out.append("done")
    for i in range(n, n + 4):
        for j in range(3):
            if j > i:
                break
            if i * j == 2:
                continue
            out.append((i, j))
        else:
            out.append("inner")
    return out, i, j


@case((10,), (1,))
def recursion(n):
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return fib(n)


@case((2.0,), (3,))
def closures(x):
    total = 0
    fns = []

    def add(y, scale=x, *more, k=x * 2, **rest):
        nonlocal total
        total += y * scale + k + sum(more) + len(rest)
        return total

    for i in range(3):
        fns.append(lambda t, i=i: t * x + i + total)
    add(1)
    add(1, 2, 3, 4, k=5, u=6)
    add(*[1, 2], **{"k": 3})
    return total, [f(2) for f in fns], (lambda: x)(), (lambda *a, **k: (a, k))(1, b=2)


@case((1, 2), (1, 2, 3, 4))
def arguments(a, /, b, *args, k=1, **kw):
    def g(*p, **q):
        return p, q

    return (
        g(), g(a), g(a, b), g(*args), g(a, *args, b), g(*args, *args), g(k=k), g(a, k=k), g(**kw),
        g(a, *args, k=k, **kw), g(*(), **{"x": a}), g(*range(3)), g(*(i for i in args)),
    )  # fmt: skip


@case((1,), ("a",))
def argument_errors(x):
    def g(a, b=2):
        return a, b

    if x == 1:
        return g(1, 2, 3)
    return g(c=x)


@case((3,), (None,))
def unpacked_call_errors(x):
    def g(*args, **kwargs):
        return args

    return g(*x)


@case(([3, 1, 2],), (range(6),))
def comprehensions(xs):
    k = 2
    a = [x * k for x in xs]
    b = {x % 3 for x in xs}
    c = {x: x**2 for x in xs if x if not x == 2}
    d = [[x * y for y in range(x)] for x in xs]
    e = [(x, y) for x in xs for y in xs if x < y]
    f = list(x + k for x in xs)
    g = [lambda: x * k for x in xs]
    h = [f() for f in g]
    i = [y := x + 1 for x in xs]
    j = sum(z * k for z in xs) + max((z for z in xs), default=0)
    xs = [xs for xs in xs]
    return a, sorted(b), c, d, e, f, h, i, y, j, xs


@case(([3, 1, 2],), ([],), ([0, 0],), (5,))
def consumed_generators(xs):
    return (
        any(x for x in xs),
        all(x for x in xs),
        tuple(x + 1 for x in xs),
        list(x + 1 for x in xs),
        set(x + 1 for x in xs),
        any(x > 1 for x in xs),
        not all(x > 1 for x in xs),
    )


@case((4,), (0,))
def generators(n):
    def count(k):
        got = 0
        try:
            while k:
                k -= 1
                got = (yield k + (got or 0)) or 0
        except ValueError as e:
            yield str(e)
        finally:
            out.append("closed")
        return "end"

    def chain(k):
        result = yield from count(k)
        out.append(result)
        yield from [1, 2]
        yield from (x * 2 for x in range(2))

    out = []
    g = chain(n)
    for i, item in enumerate(g):
        out.append(item)
    g = chain(n)
    try:
        out.append(next(g))
        if n:
            out.append(g.send(10))
        out.append(g.throw(ValueError("thrown")))
    except StopIteration as e:
        out.append(e.value)
    g.close()
    return out


@case((3,))
def generator(n):
    for i in range(n):
        x = yield i
        assert x is None
    return


@case((0,), (1,), (2,), (3,), (4,))
def exceptions(kind):
    out = []
    try:
        try:
            if kind == 0:
                1 / 0
            elif kind == 1:
                [][1]
            elif kind == 2:
                raise KeyError("k") from ValueError("v")
            elif kind == 3:
                {}.missing
            out.append("no error")
        except (ZeroDivisionError, IndexError) as e:
            out.append(type(e).__name__)
            if kind == 1:
                raise
        except KeyError as e:
            out.append(repr(e.__cause__))
            raise RuntimeError("again") from e
        else:
            out.append("else")
        finally:
            out.append("finally")
    except RuntimeError as e:
        out.append(str(e))
    return out


@case((0,), (1,), (2,))
def finally_returns(kind):
    for i in range(3):
        try:
            if kind == 0:
                return "try"
            if kind == 1 and i == 1:
                break
            if kind == 2:
                continue
        finally:
            i += 10
    return i


@case(())
def exception_groups():
    out = []
    try:
        raise ExceptionGroup(
            "g", [ValueError(1), TypeError(2), ExceptionGroup("h", [ValueError(3)])]
        )
    except* ValueError as g:
        out.append([str(e) for e in g.exceptions])
    except* TypeError as g:
        out.append(str(g.exceptions[0]))
    try:
        raise ExceptionGroup("g", [OSError(1), ValueError(2)])
    except* OSError:
        out.append("os")


# fmt: off
@case((1.0,), (-1.0,), ("a",))
def nested_errors(x):
    def outer(y):
        return inner(
            y,
            2,
        )

    def inner(y, k):
        return math.sqrt(
            y
        ) + k

    return outer(x)


@case((0,), (1,), (2,), (3,), (4,), (5,), (6,), (7,), (8,), (9,), (10,), (11,), (12,))
def tracebacks(kind):
    v = Vector(1.0)
    if kind == 0:
        return v.nothing
    if kind == 1:
        return v.norm.nothing(
            1)
    if kind == 2:
        return (1 +
                "a")
    if kind == 3:
        return undefined_name(1)
    if kind == 4:
        return math.undefined_name
    if kind == 5:
        return [1, 2, 3][
            v.x]
    if kind == 6:
        v.norm = 3
    if kind == 7:
        (1)[0] = 2
    if kind == 8:
        del v.nothing
    if kind == 9:
        return 3 in 4
    if kind == 10:
        for _ in 3:
            pass
    if kind == 11:
        with v:
            pass
    if kind == 12:
        return f"{v.x:nonsense}"
# fmt: on


@case((True,), (False,))
def contexts(suppress):
    out = []

    class Manager:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            out.append("enter " + self.name)
            return self.name

        def __exit__(self, kind, value, tb):
            out.append(f"exit {self.name} {kind and kind.__name__}")
            return suppress

    @contextlib.contextmanager
    def managed(x):
        out.append("in")
        try:
            yield x * 2
        finally:
            out.append("out")

    with Manager("a") as a, Manager("b"):
        out.append(a)
    with managed(3) as m:
        out.append(m)
        with Manager("c"):
            raise ValueError("inside")
    with contextlib.suppress(ZeroDivisionError):
        1 / 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(managed(1))
        return out


@case((True,), (False,))
def leaving_contexts(early):
    out = []
    for i in range(3):
        with contextlib.nullcontext(i) as x:
            if early and x == 1:
                break
            if x == 0:
                continue
            out.append(x)
    return out


@dataclass
class Point:
    x: float
    y: float = 0.0


SUBJECTS = (
    0, 1, 2.5, "s", "hello", None, True, [], [1], [1, 2], [1, 2, 3], (1, (2, 3)), [9, 1, 2, 9],
    {}, {"kind": "a"}, {"kind": "b", "n": 3, "m": 4}, Point(0, 1), Point(2, 2), Vector(3.0, 4.0),
    b"x",
    -3, 1 + 2j, {"a": {"b": [1, {"c": 5}]}}, (Point(1, 2), Point(3, 4)), range(3), "abc",
)  # fmt: skip


@case(*((subject,) for subject in SUBJECTS))
def patterns(subject):
    match subject:
        case None:
            return "none"
        case True | False as b:
            return "bool", b
        case 0 | -3:
            return "constant"
        case 1 + 2j:
            return "complex"
        case int(n) if n > 100:
            return "large", n
        case int() | float():
            return "number"
        case math.pi:
            return "pi"
        case "hello" | "bye":
            return "greeting"
        case str(s) if len(s) == 1:
            return "character", s
        case str():
            return "string"
        case []:
            return "empty"
        case [x]:
            return "one", x
        case [1, (2, y) | [y, 2]]:
            return "nested", y
        case [x, y]:
            if isinstance(x, Point):
                match x, y:
                    case Point(a, b), Point(x=c, y=d):
                        return "points", a, b, c, d
            return "two", x, y
        case [9, *middle, 9]:
            return "nines", middle
        case [first, *_]:
            return "many", first
        case {"kind": "a"}:
            return "kind a"
        case {"kind": kind, **rest}:
            return "kind", kind, rest
        case {"a": {"b": [1, {"c": c}]}}:
            return "deep", c
        case {}:
            return "mapping"
        case Point(x=0, y=y):
            return "on the axis", y
        case Point(x, y) if x == y:
            return "diagonal", x
        case Vector(a, b):
            return "vector", a, b
        case _:
            return "other"


@case((1,), (2,))
def failing_patterns(kind):
    match Point(1, 2):
        case Point(1, 2, 3) if kind == 1:
            return 1
        case _:
            return 2


@case(([1, 2, 3, 4],), ("ab",), ([],))
def unpacking(xs):
    first, *rest = xs
    *start, last = xs
    a, (b, *c), d = 1, xs, 2
    x = y = (p, q) = [3, 4]
    p, q = q, p
    x[0], y[1] = y[1], x[0]
    [*z] = {**{"k": 1}}
    return (
        first,
        rest,
        start,
        last,
        a,
        b,
        c,
        d,
        x,
        y,
        p,
        q,
        z,
        (*xs, *rest),
        {*rest},
        [*xs, 1, *rest],
    )


@case((5,), (15,))
def walrus(n):
    if (half := n // 2) > 5 and (square := half**2):
        return half, square
    values = [last := i for i in range(n)]
    while (n := n - 1) > 3:
        pass
    return half, values, last, n, (lambda: (m := n))()


@case((3.14159, 8), (-2, 3), (12345.678, 12))
def formatting(x, width):
    v = Vector(x, 1.0)
    return (
        f"{x}", f"{x:.2f}", f"{x:{width}.1f}", f"{x!r}", f"{x!s:>{width}}", f"{v!r:*^{width + 9}}",
        f"{v}",
        f"{v:.3f}", f"{x = }", f"{x + 1 = :.1f}", f"{{}}{x}{{{width}}}", f"{'a' 'b'!a}{x:}",
        f"{x if x > 0 else -x:>{width}}", "%s %r" % (x, v), "{:.1f} {}".format(x, v),
        f"{[x for _ in 'ab']}",
    )  # fmt: skip


@case((2.0,), (3,))
def classes(x):
    registry = []

    class Meta(type):
        def __new__(mcs, name, bases, namespace, **options):
            registry.append((name, sorted(options)))
            return super().__new__(mcs, name, bases, namespace)

        def __init__(cls, name, bases, namespace, **options):
            super().__init__(name, bases, namespace)

    class Base(metaclass=Meta, tag=1):
        scale = x * 2
        table = [i * 2 for i in range(3)]
        if scale > 5:
            big = True
        for i in range(2):
            table.append(i)

        def __init_subclass__(cls, **options):
            super().__init_subclass__()
            registry.append(("sub", cls.__name__))

        def __init__(self, a):
            self.a = a

        def value(self):
            return self.a * self.scale

        @property
        def double(self):
            return self.value() * 2

        @double.setter
        def double(self, d):
            self.a = d / self.scale / 2

        @classmethod
        def make(cls, *args):
            return cls(*args)

        @staticmethod
        def helper(y):
            return y + x

        def __getattr__(self, name):
            if name.startswith("dyn_"):
                return name[4:]
            raise AttributeError(name)

        def __call__(self, y, *, k=1):
            return self.a * y * k

    class Derived(Base):
        __slots__ = ("b",)
        scale = 10

        def __init__(self, a, b):
            super().__init__(a)
            self.b = b

        def value(self):
            s = super()
            return s.value() + super(Derived, self).value() + self.b + super().scale

        @property
        def double(self):
            return super().double + 1

        @classmethod
        def make(cls, *args):
            return super().make(*args, 7)

        def __class_cell(self):
            return __class__.__name__

        def name(self):
            return self.__class_cell()

    b, d = Base(1.5), Derived.make(2.0)
    b.double = 12
    b.extra = 1
    del b.extra
    try:
        b.extra
    except AttributeError as e:
        registry.append(str(e))
    return (
        b.a, b.value(), b.double, b.helper(1), b.dyn_hello, b(3), b(3, k=2), d.value(), d.double,
        d.name(),
        registry, Base.table, Base.i, Derived.__mro__[1].__name__, [m(2) for m in (b, d)], Meta,
        Derived,
    )  # fmt: skip


@case((3,))
def class_scopes(x):
    y = "outer"

    class A:
        y = y
        z = x

        class B:
            w = y

            def method(self):
                return y, x

        def method(self):
            return y, self.z, self.B().method()

    class C(*[A], **{}):
        """A docstring."""

        attribute: int = 4
        other: "undefined"

    return A.y, A.B.w, A().method(), C().z, C.__doc__, C.attribute


def twice(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs) * 2

    return wrapper


def tagged(*tags):
    def decorator(obj):
        obj.tags = tags
        return obj

    return decorator


@case((2,), (3.5,))
def decorators(x):
    @twice
    def f(a, b=1):
        return a + b

    @tagged("t", "u")
    @twice
    @twice
    def g(a, *, k=x):
        return a * k

    @tagged("class")
    @functools.total_ordering
    class A:
        def __init__(self, v):
            self.v = v

        def __eq__(self, other):
            return self.v == other.v

        def __lt__(self, other):
            return self.v < other.v

        @functools.cached_property
        def cached(self):
            return self.v * x

        @twice
        def method(self):
            return self.v

    @dataclass(order=True)
    class D(tagged("base")(A)):
        v: float
        w: float = x

        @functools.lru_cache
        def method(self):
            return self.w

        __hash__ = object.__hash__

    @(lambda fn: fn)
    def h():
        return (lambda: x)()

    a = A(x)
    return (
        f(1), f(1, 2), g(3), g.tags, g.__name__, A.tags, a >= A(1), a.cached, a.method(), D(1.0),
        D(2.0).method(),
        h(), twice(lambda: x)(), tagged("q")(h).tags, (lambda: lambda: 7)()(),
    )  # fmt: skip


@case((1,))
def deleting(x):
    y, z = x, [1, 2, 3]
    d = {"a": 1}
    v = Vector(1)
    del y, z[0], d["a"], v.x
    try:
        return y
    except UnboundLocalError as e:
        return str(e), z, d, vars(v)


@case((4,))
def globals_(n):
    global COUNTER
    COUNTER = 0
    for _ in range(n):
        COUNTER += LEVEL
    result = COUNTER
    COUNTER = 0
    return (
        result,
        LEVEL,
        math.pi,
        math.sqrt(LEVEL),
        statistics.mean([1, 2]),
        string.ascii_letters[:3],
    )


@case((1,), (0,))
def assertions(x):
    assert x, f"x is {x}"
    assert x > 0
    return x


@case((16.0,))
def imports(x):
    import math as m
    import os.path
    from collections import OrderedDict
    from collections import namedtuple as nt

    P = nt("P", "a b")
    p = P(1, b=m.sqrt(x))
    return p, p._replace(a=2), os.path.join("a", "b"), OrderedDict(a=1), p.a, p[1]


@case(([5, 3, 9],))
def builtins_(xs):
    return (
        sorted(xs, key=lambda v: -v), min(xs), max(xs, key=lambda v: v % 5), sum(xs),
        list(map(lambda v: v + 1, xs)),
        list(filter(lambda v: v > 3, xs)), list(zip(xs, xs[1:])), list(enumerate(xs, 1)),
        list(reversed(xs)),
        functools.reduce(lambda a, b: a * b, xs), functools.partial(pow, 2)(3),
        isinstance(xs, list), type(xs),
        operator.itemgetter(1)(xs), operator.attrgetter("real")(3), int("12"), float("1.5"),
        str(xs), range(3)[1],
        abs(-3), round(2.567, 1), divmod(7, 2), all(xs), any(xs), len(xs), hash(1), callable(len),
        getattr(xs, "pop")(),
        [type(k).__name__ for k in (1, 1.0, "")], dict(zip("ab", xs)), set(xs) == {3, 5, 9},
        iter(xs) is not None,
    )  # fmt: skip


@case((2,), (None,), (...,))
def identity(x):
    y = x
    return (
        x is None, None is x, x is not None, x is y, x is not y, x is ..., x is True,
        type(x) is int,
        0 if x is None else 1, 0 if x is not y else 1, not x is y, not x is None,
    )  # fmt: skip


@case((3,))
def nested_functions(n):
    def level1(a):
        def level2(b):
            def level3(c):
                nonlocal b
                b += 1
                return a * 100 + b * 10 + c + n

            return level3(b) + level3(b)

        return [level2(i) for i in range(a)]

    return level1(n)


@case((0,), (1,), (5,))
def conditional_expressions(n):
    return (
        (n if n else -1) + 1, (math.pi if n > 1 else LEVEL),
        (abs if n else len)([] if not n else n),
        [n, 1][n > 0 and n < 2], {True: "t", False: "f"}[not n], (Vector(n) if n else Vector(1)).x,
        -n if n > 3 else +n, (n or None) is None,
    )  # fmt: skip


@case((200,))
def large_code(n):
    """Long enough that jumps need EXTENDED_ARG."""
    total = 0
    for i in range(n):
        if i % 2:
            total += (
                (i * 1 + i * 2 - i * 3) ** 2
                + (i * 1 + i * 2 - i * 3) ** 2
                + (i + 1) * (i + 2) * (i + 3)
            )
            total -= (
                (i * 1 + i * 2 - i * 3) ** 2
                + (i * 1 + i * 2 - i * 3) ** 2
                + (i + 1) * (i + 2) * (i + 3)
            )
            total += (
                (i * 1 + i * 2 - i * 3) ** 2
                + (i * 1 + i * 2 - i * 3) ** 2
                + (i + 1) * (i + 2) * (i + 3)
            )
            total -= (
                (i * 1 + i * 2 - i * 3) ** 2
                + (i * 1 + i * 2 - i * 3) ** 2
                + (i + 1) * (i + 2) * (i + 3)
            )
            total += (
                (i * 1 + i * 2 - i * 3) ** 2
                + (i * 1 + i * 2 - i * 3) ** 2
                + (i + 1) * (i + 2) * (i + 3)
            )
            total -= (
                (i * 1 + i * 2 - i * 3) ** 2
                + (i * 1 + i * 2 - i * 3) ** 2
                + (i + 1) * (i + 2) * (i + 3)
            )
        elif i > 150:
            try:
                total += [0, 1][i]
            except IndexError:
                total += 1
            finally:
                total += (
                    (i * 1 + i * 2 - i * 3) ** 2 + (i * 1 + i * 2 - i * 3) ** 2 + (i + 1) * (i + 2)
                )
    return total


# Newer syntax, as source: the file must compile on every version.
SOURCES = {
    (3, 12): """
def generic[T: (int, float)](x: T) -> T:
    type Pair[U] = tuple[U, T]
    return x + 1

@tagged("generic")
def decorated[T](x: T, *, k: T = 2) -> T:
    return x * k

@tagged("generic class")
class Box[T]:
    def __init__(self, x: T):
        self.x = x

def run():
    @tagged(1)
    @tagged(2)
    class Inner[T](Box[T]):
        def get(self):
            return super().__init__(self.x) or self.x

    @twice
    def local[S](s: S = 4):
        return s

    return generic(1), decorated(3), decorated.tags, Box(4).x, Box.tags, Inner(5).get(),
    Inner.tags, local()
""",
    (3, 14): """
def run():
    name, x = "n", 3.14159
    t = t"a {name!r} b {x:.2f} {x + 1:>{len(name) + 8}} {name}"
    return t.strings,
    [(i.value, i.expression, i.conversion, i.format_spec) for i in t.interpolations]
""",
    (3, 15): """
def run():
    lists = [[1, 2], [3], []]
    return [*x for x in lists], {*x for x in lists}, {**d for d in ({"a": 1}, {"b": 2})},
    tuple(*x for x in lists)
""",
}  # fmt: skip


@pytest.mark.parametrize(("fn", "args"), CASES)
def test_twin_does_what_the_original_does(fn, args):
    expected = outcome(fn, args)
    assert outcome(twin(fn), args) == expected


@pytest.mark.parametrize("version", [version for version in SOURCES if version <= VERSION])
def test_newer_syntax(version):
    results = []
    for prepare in (lambda code: code, lambda code: instrument(code, Transparent())):
        namespace = dict(globals(), __name__="newer")
        exec(prepare(compile(SOURCES[version], "newer.py", "exec", dont_inherit=True)), namespace)
        results.append(outcome(namespace["run"], ()))
    assert results[0] == results[1]
    assert results[0][0] == "returned", results[0]


def test_twin_keeps_what_describes_the_function():
    def f(a: int, /, b=2, *args, k: float = 3, **kw) -> float:
        """Documentation."""
        c = a + b
        return lambda: (c, args, kw, k)

    t = twin(f)
    for name in (
        "co_name", "co_qualname", "co_filename", "co_firstlineno", "co_argcount",
        "co_posonlyargcount",
        "co_kwonlyargcount", "co_flags", "co_freevars", "co_cellvars", "co_varnames",
    ):  # fmt: skip
        assert getattr(t.__code__, name) == getattr(f.__code__, name), name
    assert inspect.signature(t).parameters.keys() == inspect.signature(f).parameters.keys()
    assert t.__doc__ == f.__doc__
    assert {line for *_, line in t.__code__.co_lines()} == {
        line for *_, line in f.__code__.co_lines()
    }


def test_twins_are_known_and_not_instrumented_again():
    def f(x):
        return (lambda: x + 1)()

    code = f.__code__
    once = instrument(code, Transparent())
    assert is_twin(once) and not is_twin(code)
    assert instrument(once, Transparent()) is once
    assert original(once) is code and original(code) is code
    [inner] = [c for c in once.co_consts if isinstance(c, types.CodeType)]
    [outer] = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    assert is_twin(inner) and original(inner) is outer

    def nothing():
        return 1

    # A twin without hooks equals its original by value; they are still told apart.
    plain = instrument(nothing.__code__, Transparent())
    assert is_twin(plain) and not is_twin(nothing.__code__)


def test_twins_are_made_once_and_their_number_is_bounded(monkeypatch):
    from wengert.tracer import rewrite

    monkeypatch.setattr(rewrite, "MOST_KEPT", 2)
    hooks = Transparent()
    codes = [compile(f"a = {i}", "short-lived.py", "exec") for i in range(3)]
    first = instrument(codes[0], hooks)
    assert instrument(codes[0], hooks) is first
    key = id(first)
    assert key in rewrite._twins
    del first
    for code in codes[1:]:
        instrument(code, hooks)
    assert len(rewrite._kept) == 2
    assert key not in rewrite._twins


def test_a_code_object_that_died_where_no_callback_could_run_has_no_twin(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    hooks = Transparent()
    codes = []

    def deep():
        if codes:
            codes.pop()
        deep()

    for i in range(
        20
    ):  # a few of them die at the very limit, and others come to lie where they were
        made = [compile(f"a = {1000 * i + j}", "short-lived.py", "exec") for j in range(1200)]
        assert all(original(instrument(code, hooks)) is code for code in made)
        codes[:] = made
        del made
        with pytest.raises(RecursionError):
            deep()
        codes.clear()


def test_module_code():
    source = textwrap.dedent("""
        a = 1
        b = a + 2
        class C:
            d = b
            def m(self):
                return self.d + a
        c = C().m()
        import math
        r = math.floor(2.5)
        del c
        from math import *
        s = [floor(a * i) for i in range(3)]
    """)
    hooks = Transparent()
    namespace = {"__name__": "m"}
    exec(instrument(compile(source, "m.py", "exec"), hooks, executed=True), namespace)
    assert namespace["r"] == 2 and namespace["s"] == [0, 1, 2] and "c" not in namespace
    stored = [details for kind, _, *details in hooks.made if kind == "store_variable"]
    assert stored == [["a"], ["b"], ["C"], ["c"], ["math"], ["r"], ["s"]]
    kinds = {kind for kind, *_ in hooks.made}
    assert {"load_variable", "delete_variable", "import_star", "load_name"} <= kinds


def test_calls_that_may_look_at_variables():
    def lines(source):
        hooks, scope = Transparent(), {}
        exec(source, scope)
        instrument(scope["f"].__code__, hooks)
        return sorted(made[1].lineno for made in hooks.made if made[0] == "variables")

    source = """
def f(x):
    a = eval(str(len("ab"))) + locals()["x"]
    e = eval
    return a + e("1", {}) + eval(
        "x + y",
        {**dict(x=x), **locals()},
        dict(y=(y := 5)),
    ) + len(dir()) + len(vars())
"""
    assert lines(source) == [3, 3, 5, 7, 9, 9]
    source = """
def f(model, *args):
    return model.eval(*args), eval(*args), exec("args", closure=None), eval(eval("args[0]"))
"""
    assert lines(source) == [3] * 5


MODULES = (
    "json.decoder", "json.encoder", "json.scanner", "textwrap", "statistics", "fractions",
    "dataclasses", "copy",
    "heapq", "bisect", "contextlib", "functools", "collections", "string", "random", "decimal",
    "_pydecimal",
    "enum", "abc", "typing", "types", "inspect", "ast", "tokenize", "argparse", "difflib",
    "pprint", "numbers",
    "operator", "calendar", "datetime", "colorsys", "cmath", "graphlib", "reprlib", "shlex",
    "asyncio.tasks", "asyncio.base_events", "logging", "csv", "html.parser", "traceback",
    "numpy.lib", "numpy.linalg", "numpy.polynomial.polynomial", "scipy.integrate", "scipy.optimize",
)  # fmt: skip


def functions(namespace, module):
    for value in list(vars(namespace).values()):
        value = inspect.unwrap(value) if isinstance(value, types.FunctionType) else value
        value = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(value, types.FunctionType):
            yield value
        elif isinstance(value, type) and value.__module__ == module and value is not namespace:
            yield from functions(value, module)


@pytest.mark.parametrize("name", MODULES)
def test_library_code_can_be_instrumented(name):
    module = importlib.import_module(name)
    for fn in functions(module, name):
        try:
            instrument(fn.__code__, Transparent())
        except UnsupportedCode as error:
            assert inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn)
            assert fn.__code__.co_qualname in str(error)


def instrumented_module(name, blocked=()):
    """A fresh copy of a library module, instrumented, without its C accelerators."""
    spec = importlib.util.find_spec(name)
    module = types.ModuleType(name)
    module.__spec__, module.__file__, module.__package__ = spec, spec.origin, spec.parent
    if spec.submodule_search_locations:
        module.__path__ = spec.submodule_search_locations
    with open(spec.origin, encoding="utf-8") as file:
        code = compile(file.read(), spec.origin, "exec", dont_inherit=True)
    saved = {key: sys.modules.get(key) for key in (name, *blocked)}
    sys.modules[name] = module
    sys.modules.update(dict.fromkeys(blocked))
    try:
        exec(instrument(code, Transparent(), executed=True), module.__dict__)
    finally:
        for key, value in saved.items():
            if value is None:
                sys.modules.pop(key, None)
            else:
                sys.modules[key] = value
    return module


def test_library_modules_run_instrumented():
    text = "The quick brown fox jumps over the lazy dog.\n\n  It was   very tired afterwards."
    wrapped = instrumented_module("textwrap")
    assert wrapped.wrap(text, 20) == textwrap.wrap(text, 20)
    assert wrapped.dedent(wrapped.indent(text, "    ")) == textwrap.dedent(
        textwrap.indent(text, "    ")
    )
    assert wrapped.shorten(text, 30) == textwrap.shorten(text, 30)

    numbers = [3.5, 1.25, 9.0, 2.0, 2.0, -4.5]
    stats = instrumented_module("statistics", ["_statistics"])
    for name in ("mean", "median", "stdev", "pvariance", "mode", "fmean", "quantiles", "multimode"):
        assert getattr(stats, name)(numbers) == getattr(statistics, name)(numbers), name
    assert stats.NormalDist(1, 2).cdf(2.5) == pytest.approx(
        statistics.NormalDist(1, 2).cdf(2.5), rel=1e-12
    )
    assert (
        stats.linear_regression(range(6), numbers).slope
        == statistics.linear_regression(range(6), numbers).slope
    )

    fractions = instrumented_module("fractions")
    f, g = fractions.Fraction(3, 4), Fraction(3, 4)
    assert str(f + 1 / f**2 - f // 5) == str(g + 1 / g**2 - g // 5)
    assert fractions.Fraction("1.25").limit_denominator(3) == Fraction("1.25").limit_denominator(3)
    assert f"{fractions.Fraction(1, 3)!s:>8}" == "     1/3"

    heap = instrumented_module("heapq", ["_heapq"])
    items = random.Random(1).sample(range(100), 30)
    h = list(items)
    heap.heapify(h)
    assert [heap.heappop(h) for _ in items] == sorted(items)
    assert heap.nsmallest(4, items, key=lambda v: -v) == sorted(items, reverse=True)[:4]
    assert list(heap.merge([1, 4], [2, 3])) == [1, 2, 3, 4]

    bisection = instrumented_module("bisect", ["_bisect"])
    assert [bisection.bisect([1, 3, 3, 7], v) for v in range(9)] == [
        bisect.bisect([1, 3, 3, 7], v) for v in range(9)
    ]

    copying = instrumented_module("copy")
    nested = {"a": [1, (2, Vector(1, 2))], "b": {3}}
    assert repr(copying.deepcopy(nested)) == repr(copy.deepcopy(nested))
    assert copying.deepcopy(nested)["a"] is not nested["a"]

    contexts = instrumented_module("contextlib")
    with contexts.ExitStack() as stack:
        log = []
        stack.callback(log.append, 1)
        stack.enter_context(contexts.suppress(ValueError))
        raise ValueError
    assert log == [1]

    classes = instrumented_module("dataclasses")
    P = classes.make_dataclass(
        "P", [("x", int), ("y", int, classes.field(default=3))], frozen=True, order=True
    )
    assert repr(P(1)) == "P(x=1, y=3)" and P(1) < P(2) and classes.asdict(P(1)) == {"x": 1, "y": 3}
    with pytest.raises(classes.FrozenInstanceError):
        P(1).x = 2

    ordered = instrumented_module("collections")
    assert ordered.Counter("abracadabra").most_common(2) == collections.Counter(
        "abracadabra"
    ).most_common(2)
    assert ordered.namedtuple("N", "a b")(1, b=2)._asdict() == {"a": 1, "b": 2}

    decimals = instrumented_module("_pydecimal")
    assert str(decimals.Decimal("1.1") ** 7 / 3 + decimals.Decimal(2).sqrt()) == str(
        __import__("decimal").Decimal("1.1") ** 7 / 3 + __import__("decimal").Decimal(2).sqrt()
    )

    decoder, encoder = instrumented_module("json.decoder"), instrumented_module("json.encoder")
    document = {"a": [1, 2.5, None, True, 'ü\n"q"'], "b": {"c": []}}
    written = encoder.JSONEncoder(indent=2, sort_keys=True).encode(document)
    assert written == json.encoder.JSONEncoder(indent=2, sort_keys=True).encode(document)
    assert decoder.JSONDecoder().decode(written) == document
    with pytest.raises(decoder.JSONDecodeError, match="line 1 column 2"):
        decoder.JSONDecoder().decode("[}")


def test_assembling_the_same_instructions_gives_the_same_code():
    def codes(code):
        yield code
        for value in code.co_consts:
            if isinstance(value, types.CodeType):
                yield from codes(value)

    for module in (argparse, inspect, textwrap, typing, sys.modules[__name__]):
        for code in codes(compile(inspect.getsource(module), module.__file__, "exec")):
            assembler = Assembler(code)
            for instr in assembler.source:
                assembler.mark()
                assembler.instrs.append((instr.op, instr.arg, instr.position, instr.jump))
            same = assembler.assemble()
            assert same.co_code == code.co_code
            assert same.co_exceptiontable == code.co_exceptiontable
            assert list(same.co_positions()) == list(code.co_positions())


class Recording:
    """Hooks that do the plain thing and write down how they were called."""

    def __init__(self):
        self.log = []
        self.plain = Transparent()

    def __getattr__(self, kind):
        def factory(site, *details):
            plain = getattr(self.plain, kind)(site, *details)

            def hook(*args, **kwargs):
                self.log.append((kind, site.lineno - self.first, details, args, kwargs))
                return plain(*args, **kwargs)

            return hook

        return factory

    def run(self, fn, *args):
        self.first = fn.__code__.co_firstlineno
        return twin(fn, self)(*args)


def record(fn, *args):
    recording = Recording()
    recording.run(fn, *args)
    return recording.log


def test_arguments_of_the_hooks():
    def f(x, xs, v):
        a = x - 1
        a += x
        b = xs[0]
        xs[1] = a
        v.x = a
        c = v.y
        del v.z
        del xs[0]
        d = a < x
        e = x in xs
        g = x not in xs
        h = xs is v
        i = -x
        j = ~7
        for _ in xs:
            pass
        k = f"{x:.2f}{x!r}"
        if x:
            m = v.scaled(x, shift=2)
        n = max(*xs, key=abs)
        o = max(*xs)
        p = LEVEL
        q = math.pi
        r = math.sqrt(x)

    xs, v = [5.0, 6.0, 7.0], Vector(1.0, 2.0)
    v.z = 3.0
    after = [3.0, 7.0]
    log = [entry for entry in record(f, 2.0, xs, v)]
    expected = [
        ("binary", 1, (operator.sub,), (1, 2.0)),
        ("binary", 2, (operator.iadd,), (2.0, 1.0)),
        ("binary", 3, (operator.getitem,), (0, xs)),
        ("setitem", 4, (), (xs, 1, 3.0)),
        ("setattr", 5, ("x",), (v, 3.0)),
        ("getattr", 6, ("y",), (v,)),
        ("delattr", 7, ("z",), (v,)),
        ("delitem", 8, (), (0, xs)),
        ("compare", 9, (operator.lt, False), (2.0, 3.0)),
        ("contains", 10, (False,), (xs, 2.0)),
        ("contains", 11, (True,), (xs, 2.0)),
        ("is_", 12, (False,), (v, xs)),
        ("unary", 13, (operator.neg,), (2.0,)),
        ("unary", 14, (operator.invert,), (7,)),
        ("iter", 15, (), (xs,)),
        ("format", 17, (False,), (2.0,)),
        ("format", 17, (False,), (2.0,)),
        ("build_string", 17, (2,), ("2.0", "2.00")),
        ("truth", 18, (), (2.0,)),
        ("getattr", 19, ("scaled",), (v,)),
        ("call", 19, (), (v.scaled, 2.0)),
        ("load_global", 20, ("max",), (max,)),
        ("load_global", 20, ("abs",), (abs,)),
        ("call_ex", 20, (), (max, (3.0, 7.0), {"key": abs})),
        ("load_global", 21, ("max",), (max,)),
        ("call_ex", 21, (), (max, (3.0, 7.0))),
        ("load_global", 22, ("LEVEL",), (LEVEL,)),
        ("global_attr", 23, ("math", "pi"), (math,)),
        ("global_attr", 24, ("math", "sqrt"), (math,)),
        ("call", 24, (), (math.sqrt, 2.0)),
    ]
    # ~7 is folded into a constant by the compiler.
    expected = [entry for entry in expected if entry[1] != 14]
    simple = [
        (
            kind,
            line,
            details,
            tuple(tuple(a) if kind == "call_ex" and i == 1 else a for i, a in enumerate(args)),
        )
        for kind, line, details, args, _ in log
        if kind not in ("loop", "leave", "shared", "spread", "make_dict")
    ]
    for got, wanted in zip(simple, expected, strict=True):
        assert got == wanted
    assert xs == after
    [keywords] = [kwargs for kind, line, _, _, kwargs in log if kind == "call" and line == 19]
    assert keywords == {"shift": 2}


def test_slices_reach_the_item_hooks():
    def f(xs, i):
        a = xs[i:]
        xs[0:i] = a
        del xs[:i]

    xs = [1, 2, 3, 4]
    log = [(kind, args) for kind, _, _, args, _ in record(f, xs, 1)]
    assert log == [
        ("binary", (slice(1, None), xs)),
        ("setitem", (xs, slice(0, 1), [2, 3, 4])),
        ("delitem", (slice(None, 1), xs)),
    ]


def test_truth_is_asked_once_and_with_the_comparison_where_nothing_else_is_wanted():
    def f(a, b):
        if a:
            pass
        if a < b:
            pass
        if a in (b,) or a is b:
            pass
        if not a:
            pass
        c = a and b
        d = a < b and b
        e = a < b < 3
        while not a < b:
            pass
        return c, d, e

    lines = collections.Counter(line for kind, line, *_ in record(f, 1, 2) if kind == "truth")
    assert lines == {1: 1, 7: 1, 9: 1, 10: 1, 11: 1}


def test_singletons_are_not_compared_through_the_hook():
    def f(x, y):
        return x is None, None is x, x is not True, x is ..., x is y, x is not LEVEL

    kinds = [(details, args) for kind, _, details, args, _ in record(f, 1, 2) if kind == "is_"]
    assert kinds == [((False,), (2, 1)), ((True,), (LEVEL, 1))]


def test_decorators_and_classes_go_through_the_call_hook():
    def f():
        @twice
        @tagged("t")
        def g():
            return 1

        @tagged("c")
        class A(metaclass=type):
            pass

        return (lambda: 0)()

    called = [args[0] for kind, _, _, args, _ in record(f) if kind == "call"]
    names = [getattr(fn, "__name__", "?") for fn in called]
    # Inside `tagged` and `twice` nothing is instrumented here.
    assert names == [
        "tagged",
        "decorator",
        "twice",
        "tagged",
        "__build_class__",
        "decorator",
        "<lambda>",
    ]


def test_context_and_match_hooks():
    def f(manager, point):
        with manager as m:
            match point:
                case Point(a, y=b):
                    return a, b, m

    manager = contextlib.nullcontext(3)
    point = Point(1, 2)
    log = [(kind, args) for kind, _, _, args, _ in record(f, manager, point)]
    assert log == [
        ("context", (manager,)),
        ("load_global", (Point,)),
        ("match_class", (Point, ("y",), 1, point)),
        ("unpack", ((1, 2),)),
    ]


def test_super_without_arguments_is_left_alone():
    def f():
        class A:
            def m(self):
                return 1

        class B(A):
            def m(self):
                s = super()
                return super().m() + s.m()

        return B().m()

    recording = Recording()
    assert recording.run(f) == 2
    called = [args[0] for kind, _, _, args, _ in recording.log if kind == "call"]
    assert super not in called
    assert [fn.__name__ for fn in called if isinstance(fn, types.MethodType)] == ["m", "m", "m"]


def test_sites_name_file_line_and_function():
    def f(x):
        def inner(y):
            return y * 2

        return inner(x)

    hooks = Transparent()
    instrument(f.__code__, hooks)
    first = f.__code__.co_firstlineno
    assert ("binary", Site(__file__, first + 2, "inner"), operator.mul) in hooks.made
    assert ("call", Site(__file__, first + 4, "f")) in hooks.made


async def coroutine():
    async with x as y:
        return await y


async def asynchronous_generator():
    yield 1


async def comprehension(xs):
    return [x async for x in xs]


@pytest.mark.parametrize("fn", [coroutine, asynchronous_generator, comprehension])
def test_asynchronous_code_is_refused(fn):
    with pytest.raises(
        UnsupportedCode, match=f"{fn.__name__}.*test_rewrite.py:{fn.__code__.co_firstlineno}"
    ):
        instrument(fn.__code__, Transparent())
    assert issubclass(UnsupportedCode, WengertError)


def test_defining_an_async_function_is_no_use_of_it():
    def f(x):
        async def later():
            return x

        return x + 1

    assert twin(f)(1) == 2


def test_every_opcode_is_accounted_for():
    tables = current.HANDLED.keys(), current.HARMLESS, current.REFUSED
    for name in dis.opmap:
        assert sum(name in table for table in tables) == 1, name
    for table in tables:
        assert set(table) <= set(dis.opmap)


def test_versions():
    assert VERSION in SUPPORTED
    assert load(VERSION) is current
    with pytest.raises(ImportError, match=r"CPython 3\.11, .*; this is cpython 3\.10"):
        load((3, 10))


def test_tracebacks_show_the_lines_of_the_user():
    def f(x):
        y = x + 1
        return y / (x - x)

    def printed(fn):
        try:
            fn(1.0)
        except ZeroDivisionError as error:
            tb = error.__traceback__.tb_next
            return traceback.format_list(traceback.extract_tb(tb)[:1])

    assert printed(twin(f)) == printed(f)


def test_lines_that_are_longer_than_128_columns_are_counted():
    far = " " * 130
    source = f"""
def f(x):
    z = ({far}x * 2.0)
    w = [{far}y * z for y in [x]]

    if x > 0: {far} x = x + w[0]

    x.real
    w = (y {far}for y in [x])
    w.close()
    return x.none
"""
    names = {}
    exec(compile(source, "<far>", "exec"), names)
    f, hooks = names["f"], Transparent()
    twin = instrument(f.__code__, hooks)

    def lines(code):
        found = [line for _, _, line in code.co_lines() if line is not None]
        return [line for i, line in enumerate(found) if i == 0 or found[i - 1] != line]

    assert lines(twin) == lines(f.__code__)
    assert max(stop for _, stop, _ in twin.co_lines()) == len(twin.co_code)
    with pytest.raises(AttributeError) as caught:
        types.FunctionType(twin, {"far": far})(1.5)
    assert [x.tb_lineno for x in walked(caught.tb) if x.tb_frame.f_code is twin] == [11]


def walked(at):
    while at is not None:
        yield at
        at = at.tb_next
