"""Corners of the language and its library where a gradient is easily lost: each right, or a clear error."""

import abc
import collections
import contextlib
import copy
import dataclasses
import datetime
import enum
import fractions
import functools
import heapq
import io
import itertools
import math
import numbers
import operator
import queue
import random
import re
import string
import typing
import weakref

import numpy as np
import pytest

from helpers import Cases, check, derivative
from wengert import WengertError, jit, pullback

case = Cases()
loud = Cases()

V = np.array([0.5, -1.2, 2.0, 0.7])


@case.each
def test_like_python(f, args, options):
    check(f, *args, **options)


@loud.each
def test_right_or_loud(f, args, options):
    (x,) = args
    expected = derivative(lambda t: float(f(x + t)), h=2**-7)
    try:
        value, back = pullback(f, x)
        (gradient,) = back(1.0)
    except WengertError as error:
        assert "test_corners.py" in str(error)
        return
    assert value == f(x)
    assert gradient == pytest.approx(expected, rel=1e-6, abs=1e-9)


# -------------------------------------------------------------------------------------------- numbers


@case(1.3, 3)
def integers_draw_themselves(x, n):
    a = np.zeros(n)
    a[: n - 1] = x
    return (
        a,
        np.arange(n) * x,
        np.ones((n, 2)).reshape(-1, n) * x,
        np.linspace(0, x, n),
        np.repeat(np.array([x, 1.0]), n),
        np.tile(V, n) * x,
        (x,) * n,
        round(x * 1.111, n) * 0,
        math.factorial(n) * math.comb(5, n) * x,
        divmod(7, n)[0] * (-n // 2) * (n % 2) * x,
        f"{n:03d}{bin(n)}{chr(65 + n)}",
        n.bit_length() * x,
        (n << 2) + (n & 1) + ~n,
        [1, 2, 3, 4][n] * [x, 1.0, x, 2.0][-n],
        {3: x}[n],
        n == 3 and n in (1, 3),
        np.random.default_rng(n).random() * x,
    )


@case(1.3)
def functions_on_numbers(x):
    return (
        isinstance(x, numbers.Real)
        and isinstance(x, numbers.Number)
        and issubclass(type(x), float),
        type(x) == float,
        [math.isnan(x), math.isfinite(x), math.isclose(x, 1.3), x.is_integer()],
        [math.floor(x), math.ceil(x), math.trunc(x), x.hex()[:4]],
        math.modf(x)[0] * x,
        math.frexp(x)[0],
        math.ldexp(x, 2),
        math.copysign(x, -1.0) * math.fabs(-x),
        [math.log(x, 2), math.log2(x), math.log10(x), math.log1p(x), math.expm1(x)],
        [math.erf(x), math.gamma(x), math.lgamma(x), math.cbrt(x), math.exp2(x), math.degrees(x)],
        math.dist((x, 1.0), (2.0, x)),
        math.remainder(x, 0.4),
        math.fsum(x * i for i in range(3)),
        math.prod(x + i for i in range(3)),
        math.fsum(map(math.sin, [x, x])),
    )


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Flags(enum.Flag):
    A = enum.auto()
    B = enum.auto()


class Real(float):
    pass


class Whole(int):
    def twice(self):
        return self * 2


@case(1.3)
def numbers_of_other_classes(x):
    return (
        Level.HIGH * x + x**Level.HIGH - x / Level.HIGH,
        [x, 2.0][Level.LOW] * sum(level.value * x for level in Level),
        (Flags.A | Flags.B).value * x,
        Real(2.0) * x - x / Real(3.0) + Real(4.0),
        Whole(2) * x + x ** Whole(3) + Whole(2).twice() * x,
        np.int64(2) * x + x / np.int8(3) + np.bool_(True) * x + np.float64(2.0) ** x,
        fractions.Fraction(1, 3) * x + x / fractions.Fraction(2, 5) + fractions.Fraction(7, 2),
        True * x + x**False,
        x > Level.LOW,
    )


class Matrix(np.ndarray):
    pass


@loud(1.3)
def array_of_another_class(x):
    return float(np.sum(np.array([2.0, 3.0]).view(Matrix) * x))


@loud(1.3)
def masked_array(x):
    return float(
        np.ma.array([2.0, 3.0], mask=[0, 1]).sum() * x + (np.ma.array([2.0, 3.0]) * x).sum()
    )


@loud(1.3)
def object_array(x):
    return float(np.sum(np.array([2.0, 3.0], dtype=object) * x))


@loud(1.3)
def time_difference(x):
    return (datetime.timedelta(days=2) * x).total_seconds() / 86400


@loud(1.3)
def time_difference_of_numpy(x):
    return float((np.timedelta64(10**9, "us") * x) / np.timedelta64(1, "us"))


@loud(1.3)
def compared_with_a_fraction(x):
    return x * 2 if x > fractions.Fraction(1, 2) else 0.0


@loud(1.3)
def extended_precision(x):
    return float(np.longdouble(2) * x)


@loud(1.3)
def through_a_memoryview(x):
    return memoryview(np.array([x, x]))[0] * x


# -------------------------------------------------------------------------------------------- strings


@case(1.3)
def every_way_of_formatting(x):
    return (
        "%s %r %.3f %5d" % (x, x, x, x),
        "{} {:.2f} {a!r}".format(x, x, a=x),
        format(x, ".2e"),
        ",".join(map(str, [x, 2.0])),
        str([x, (x,), {x: x}]),
        string.Template("$a").substitute(a=x),
        f"{x!s:>10}{x=:.2f}",
        str(np.array([x, 1.0])),
        x.__repr__() + x.__format__(".1f") + x.__str__(),
        int(re.match(r"(\d+)", "12ab")[1]) * x,
    )


# -------------------------------------------------------------------------------------------- iteration


@case(1.3, 2.1)
def consumers_of_generators(x, y):
    return (
        sum(i * x for i in range(3)),
        max(i * x for i in (1, 2)) - min(v for v in (y, x)),
        dict((k, v * x) for k, v in [("a", y), ("b", x)]),
        sorted(x * i for i in (2, 1)),
        {int(i * x) for i in range(3)},
        np.array(list(i * x for i in range(3))),
        sum((x, y), start=x),
        list(zip(*[(x, 1), (y, 2)])),
        functools.reduce(operator.add, (i * x for i in range(4))),
        collections.deque((i * x for i in range(2)), maxlen=1)[0],
        "-".join(str(round(i * x)) for i in range(2)),
    )


@case(1.3)
def generators_in_full(x):
    log = []

    def closing():
        try:
            with doubled(x) as y:
                got = yield y
                yield got * x
        finally:
            log.append(x)

    def returning():
        yield from [x, x * 2]
        return x * 9

    def delegating():
        yield (yield from returning())

    def countdown(n):
        if n:
            yield n * x
            yield from countdown(n - 1)

    def endless():
        for i in itertools.count():
            yield i * x

    g = closing()
    first = next(g)
    second = g.send(x * 3)
    g.close()
    return first, second, log, list(delegating()), list(zip(countdown(3), endless()))


@case(1.3)
def cooperative_tasks(x):
    def task(n):
        for i in range(n):
            yield i * x
        return x * 100

    results, tasks = [], collections.deque([task(2), task(1)])
    while tasks:
        current = tasks.popleft()
        try:
            results.append(next(current))
            tasks.append(current)
        except StopIteration as stop:
            results.append(stop.value)
    return results


@contextlib.contextmanager
def doubled(x):
    yield x * 2


class Reentrant(contextlib.ContextDecorator):
    def __enter__(self):
        return 3.0

    def __exit__(self, *error):
        return False


@case(1.3)
def managers_as_decorators(x):
    @doubled(x)
    def f(y):
        return y * x

    @Reentrant()
    def g(y):
        return y * y

    with contextlib.closing(io.StringIO()) as out, doubled(x) as a, contextlib.nullcontext(x) as b:
        out.write(str(x))
    return f(x), g(x), a, b


# ------------------------------------------------------------------------------------------ exceptions


@case(1.3)
def exceptions_in_every_order(x):
    class Special(Exception):
        def __init__(self, amount):
            self.amount = amount

        def __str__(self):
            return f"{self.amount:.2f}"

    log = []
    for k in range(5):
        try:
            try:
                if k == 0:
                    raise Special(x)
                if k == 1:
                    raise Special(x * 2) from ValueError(x)
                if k == 2:
                    {}[x]
                if k == 3:
                    (lambda a: a)(x, x)
            finally:
                log.append(x * k)
        except Special as error:
            log += [error.amount, str(error), error.__cause__ is None]
        except KeyError as error:
            log.append(error.args[0] * 2)
        except TypeError as error:
            log.append(str(error))
        else:
            log.append("fine")
    return log


@case(1.3)
def exceptions_hold_numbers(x):
    error = ValueError(x)
    error.add_note(f"{x}")
    error.extra = x * 2
    try:
        raise error
    except ValueError as caught:
        return caught.extra, caught.__notes__, caught.args[0]


@case(1.3)
def managers_see_exceptions(x):
    class Catch:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, tb):
            self.amount = error.args[0] * 2
            return True

    with Catch() as caught:
        raise ValueError(x)
    return caught.amount


# -------------------------------------------------------------------------------------------- classes


class Number:
    """Every special method that looks at the value."""

    def __init__(self, x):
        self.x = x

    def __lt__(self, other):
        return self.x < other.x

    def __eq__(self, other):
        return self.x == other.x

    def __hash__(self):
        return hash(self.x)

    def __add__(self, other):
        return Number(self.x + getattr(other, "x", other))

    def __radd__(self, other):
        return Number(self.x + other)

    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return self.x * i

    def __len__(self):
        return 3

    def __contains__(self, item):
        return self.x == item

    def __float__(self):
        return self.x * 1.0

    def __abs__(self):
        return self.x

    def __bool__(self):
        return self.x > 0

    def __floor__(self):
        return math.floor(self.x)

    def __round__(self, digits=0):
        return self.x * digits

    def __divmod__(self, other):
        return self.x, other

    def __rpow__(self, other):
        return other * self.x

    def __pos__(self):
        return self.x

    def __invert__(self):
        return -self.x

    def __rsub__(self, other):
        return other - self.x

    def __ixor__(self, other):
        self.x = other
        return self

    def __floordiv__(self, other):
        return self.x / other

    def __index__(self):
        return 1

    def __copy__(self):
        return Number(self.x * 3)

    def __call__(self, y):
        return self.x * y

    def below(self, y):
        return self.x < y


@case(1.3, 0.4)
def special_methods(x, y):
    n = Number(x)
    a, b, c = n
    m = Number(y)
    m ^= x
    return (
        [a, b, c, *n],
        sum(n) * max(n),
        len(n) * x,
        list(enumerate(n)),
        dict(zip("ab", n)),
        np.array(list(n)),
        float(n) + abs(n) + math.sqrt(n),
        [x in n, bool(n), math.floor(n), operator.index(n)],
        1.0 if n else 2.0,
        [x, y][n] * n(x) * n[1],
        round(n, 2) + divmod(n, x)[0] + 2**n + +n + ~n + (5.0 - n) + n // 2,
        copy.copy(n).x + m.x,
        (lambda *p: p)(*n),
        Number.__call__(n, x),
    )


@case(1.3, 0.4)
def objects_in_containers(x, y):
    pair = [Number(x), Number(y)]
    return (
        sorted(pair)[0].x * max(pair).x - min(pair).x,
        sorted(pair, key=lambda n: -n.x)[0].x,
        [
            Number(x) in pair,
            pair.count(Number(x)),
            pair == [Number(x), Number(y)],
            (Number(x), 1) < (Number(2.0), 1),
        ],
        len({Number(x), Number(x)}) * x,
        {Number(x): y}[Number(x)],
        sum(pair).x * sum(pair, Number(0.5)).x,
        functools.reduce(operator.add, pair).x,
        [n.x for n in map(operator.add, pair, pair)],
        [n.x for n in itertools.starmap(Number, [(x,), (y,)])],
        list(map(float, pair)),
        list(map(Number(x), [x, y])),
        list(filter(Number(x).below, [x, y, 2.0])),
        [k * sum(g) for k, g in itertools.groupby([x, y, 2.0], key=Number(x).below)],
        max([x, y], key=Number(x)) * x,
        sorted([x, y, -2.0], key=Number(y)),
    )


@loud(1.3)
def heap_of_objects(x):
    heap = []
    for y in (x, 0.4, 2.0):
        heapq.heappush(heap, Number(y))
    heapq.heappop(heap)
    return heapq.heappop(heap).x * x


@loud(1.3)
def accumulated_objects(x):
    return list(itertools.accumulate([Number(x), Number(x)]))[-1].x


KINDS = {
    "accumulate": lambda a, b: [*itertools.accumulate([a, b])],
    "accumulate the other": lambda a, b: [*itertools.accumulate([b, a])],
    "accumulate three": lambda a, b: [*itertools.accumulate([a, a, b])],
    "accumulate from": lambda a, b: [*itertools.accumulate([a, 2.0], initial=b)],
    "accumulate by": lambda a, b: [*itertools.accumulate([a, b], operator.mul)],
    "reduce": lambda a, b: functools.reduce(operator.add, [a, b]),
    "sum": lambda a, b: sum([a, b]),
    "sum from": lambda a, b: sum([a, 1], b),
    "prod": lambda a, b: math.prod([a, b, a]),
    "map": lambda a, b: [*map(operator.sub, [a, b], [b, a])],
    "starmap": lambda a, b: [*itertools.starmap(divmod, [(a, b), (b, a)])],
    "compared": lambda a, b: [*map(operator.lt, [a, b], [b, a])],
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("b", [np.float64(2.0), np.float32(2.0), np.int64(2), 2, True, 2.0])
def test_kinds_of_numbers_in_c_code(name, b):
    def shown(x):
        return [shown(y) for y in x] if isinstance(x, list | tuple) else (type(x), x)

    f = KINDS[name]
    for on in (True, True, True, False):
        with jit(on):
            assert shown(pullback(f, 1.25, b)[0]) == shown(f(1.25, b))
            assert shown(pullback(lambda a: f(a, b), 1.25)[0]) == shown(f(1.25, b))


@loud(1.3)
def index_of_an_object(x):
    items = [Number(2.0), Number(x)]
    i = items.index(Number(x))
    items.remove(Number(2.0))
    return i * items[0].x


@loud(1.3)
def pairs_of_objects_sorted(x):
    return sorted([(Number(2.0), 1), (Number(x), 2)])[0][0].x


@loud(1.3)
def reversed_sequence(x):
    return list(reversed(Number(x)))[0]


@loud(1.3)
def object_as_array(x):
    class Held:
        def __array__(self, dtype=None, copy=None):
            return np.array([x, 2.0]) * x

    return float(np.sum(np.asarray(Held())) + np.sin(Held()).sum())


@case(V)
def objects_with_ufuncs(v):
    class Held:
        def __init__(self, v):
            self.v = v

        def __array_ufunc__(self, ufunc, method, *args, **kwargs):
            return ufunc(*[a.v if isinstance(a, Held) else a for a in args], **kwargs)

    class Right:
        __array_ufunc__ = None

        def __rmul__(self, other):
            return other * 3.0

    return np.sin(Held(v)), np.add(Held(v), v), v * Right(), 2.0 * Right()


class Watching:
    """Attributes by every means."""

    def __init__(self, x):
        self.__dict__["x"] = x

    def __setattr__(self, name, value):
        self.__dict__[name] = value * 2

    def __getattribute__(self, name):
        if name == "double":
            return object.__getattribute__(self, "x") * 2
        return object.__getattribute__(self, name)

    def __delattr__(self, name):
        self.__dict__.pop(name)


class Lazy:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner):
        if obj is None:
            return self
        value = obj.__dict__[self.name] = obj.x * 2
        return value


class Proxy:
    lazy = Lazy()
    by_operator = property(operator.attrgetter("x"))
    by_partial = property(functools.partial(lambda k, self: self.x * k, 3.0))
    by_lambda = lambda self, k=2: self.x * k
    static = staticmethod(math.sin)
    sine = math.sin
    made = classmethod(lambda cls, x: cls(x * 2))

    def __init__(self, x):
        self.x = x
        self.held = {"inner": x * 3}

    def __getattr__(self, name):
        try:
            return self.__dict__["held"][name]
        except KeyError:
            raise AttributeError(name) from None

    @functools.cache
    def cached(self):
        return self.x * 5

    def scale(self, by, on=1.0):
        return self.x * by * on

    tripled = functools.partialmethod(scale, 3.0)


@case(1.3)
def attributes_by_every_means(x):
    w = Watching(x)
    w.x = x
    w.y = w.double
    first = w.y
    del w.y
    p = Proxy(x)
    return (
        first * w.x,
        hasattr(w, "y"),
        p.lazy * p.lazy + p.__dict__["lazy"],
        p.by_operator * p.by_partial * p.by_lambda(),
        p.static(x) + p.sine(x) + p.made(x).x,
        p.inner + getattr(p, "outer", x) + hasattr(p, "outer"),
        p.cached() * p.cached() + p.tripled(on=x),
    )


class Operators:
    def __init__(self, x):
        self.x = x

    def _apply(self, other, fn):
        return Operators(fn(self.x, getattr(other, "x", other)))

    __mul__ = functools.partialmethod(_apply, fn=operator.mul)
    __add__ = functools.partialmethod(_apply, fn=operator.add)


@case(1.3)
def operators_made_by_partialmethod(x):
    a = Operators(x)
    return (a * x + a * a).x


class Meta(type):
    made = ()

    def __new__(mcs, name, bases, members, factor=1.0):
        cls = super().__new__(mcs, name, bases, members)
        cls.factor = factor
        return cls

    def __init__(cls, name, bases, members, factor=1.0):
        super().__init__(name, bases, members)

    def __getitem__(cls, k):
        return cls.base * k

    def __len__(cls):
        return 2

    @property
    def doubled(cls):
        return cls.base * 2

    def at(cls, y):
        return cls.base * y * cls.factor

    def __instancecheck__(cls, obj):
        return getattr(obj, "marked", False)


@case(1.3)
def metaclasses(x):
    class Made(metaclass=Meta, factor=x):
        base = x

    class Marked:
        marked = True

    return Made[2], len(Made) * x, Made.doubled, Made.at(x), isinstance(Marked(), Made) * x


@case(1.3)
def classes_with_counters(x):
    class Counted:
        made, total = 0, 0.0

        def __new__(cls, *args):
            cls.made += 1
            return super().__new__(cls)

        def __init__(self, x):
            type(self).total += x
            self.x = x

        def __init_subclass__(cls, by=2.0, **kwargs):
            cls.by = by

        def __iter__(self):
            yield from (self.x,) * self.made

        def __class_getitem__(cls, key):
            return key * cls.total

    class Derived(Counted, by=x):
        pass

    items = [Counted(x), Counted(2.0), Derived(x)]
    return Counted.total, list(items[1]), items[2].by * Derived.by, Counted[x], items[2].made


class Shared:
    rate = 0.5


class Inheriting(Shared):
    pass


@case(1.3)
def class_attributes_changed(x):
    before = Shared.rate
    try:
        Shared.rate = x
        found = [Shared.rate, Shared().rate, Inheriting.rate * 2, Inheriting().rate * 3]
        found += [getattr(Inheriting, "rate"), vars(Shared)["rate"], Shared.__dict__["rate"]]
        Inheriting.rate = x * x
        return [*found, Inheriting().rate, Shared().rate]
    finally:
        Shared.rate = before
        if "rate" in vars(Inheriting):
            del Inheriting.rate


@case(1.3)
def attributes_of_local_classes_changed(x):
    class Local:
        rate = 0.0

        def __init_subclass__(cls, by=1.0):
            cls.by = by

    class Derived(Local, by=x):
        pass

    Local.rate = x * 2
    return Derived.rate, Derived().rate, Local().rate, Derived.by, Derived().by


@case(1.3)
def functions_are_objects(x):
    def f(y=1.0, *, z=2.0):
        return y * z * x

    f.__defaults__ = (x,)
    f.__kwdefaults__ = {"z": x * 2}
    f.mark = x * 3
    bound = Number(x).below
    return (
        f(),
        f.mark,
        f.__closure__[0].cell_contents,
        functools.partial(max, x).args[0],
        bound.__self__.x,
        slice(x, 2).start,
        type("Made", (), {"y": x, "at": lambda self: self.y * 2})().at(),
    )


class Vector(list):
    def __add__(self, other):
        return Vector(a + b for a, b in zip(self, other))

    def __mul__(self, k):
        return Vector(a * k for a in self)

    __rmul__ = __mul__

    def __iadd__(self, other):
        for i, item in enumerate(other):
            self[i] += item
        return self

    @property
    def norm(self):
        return math.sqrt(sum(a * a for a in self))


class Couple(tuple):
    __slots__ = ()

    def __new__(cls, *items):
        return super().__new__(cls, items)

    def __matmul__(self, other):
        return sum(a * b for a, b in zip(self, other))


class Missing(dict):
    def __missing__(self, key):
        return len(key) * 2.0

    def __getitem__(self, key):
        return super().__getitem__(key) * 3


class Doubling(collections.UserDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)


class Totals(collections.UserList):
    def total(self):
        return sum(self.data)


@case(1.3, 0.4)
def subclasses_of_containers(x, y):
    v = Vector([x, y])
    v += [y, x]
    w = v + 2.0 * v
    c = Couple(x, y)
    m = Missing(a=x)
    d = Doubling(a=x)
    d["b"] = y
    d.update(c=x)
    t = Totals([x])
    t.append(y)
    t *= 2
    return (
        w.norm * v.norm,
        sorted(w) + w[0:1],
        c @ c + (c + (1, 2))[0],
        isinstance(c, tuple),
        m["a"] + m["abc"] + m.get("a"),
        d["a"] * d["b"] * d["c"],
        t.total(),
    )


@case(1.3)
def counters_of_numbers(x):
    a = collections.Counter(a=x) + collections.Counter(a=2.0, b=1)
    b = collections.Counter(a=x)
    b.update(a=x)
    b.subtract({"a": 1.0})
    return a["a"] * x, b["a"], a.total(), a.most_common(1)[0][1]


@case(1.3)
def factories(x):
    plain = collections.defaultdict(lambda: x)
    lists = collections.defaultdict(lambda: [x])
    lists["a"].append(2.0)
    plain["a"] += 1
    numbers_ = collections.defaultdict(lambda: Number(x))
    return plain["a"], plain["b"], lists["a"], numbers_["q"].x, dict(plain)


@case(1.3)
def slots_and_inheritance(x):
    class Base:
        __slots__ = ("a",)

        def __init__(self, a):
            self.a = a

    class Derived(Base):
        __slots__ = ("__dict__", "b")

        def __init__(self, a, b):
            super().__init__(a)
            self.b = b
            self.c = a * b

    first = Derived(x, 2.0)
    second, third = copy.copy(first), copy.deepcopy(first)
    second.a *= 2
    del third.a
    return first.a, second.a, first.c, hasattr(third, "a"), third.b * x, third.c


class Abstract(abc.ABC):
    @property
    @abc.abstractmethod
    def value(self): ...

    @classmethod
    def make(cls, *args, **kwargs):
        return cls(*args, **kwargs)


class Concrete(Abstract):
    def __init__(self, x, *, y=1.0):
        self.x, self.y = x, y

    @property
    def value(self):
        return self.x * self.y

    @value.setter
    def value(self, value):
        self.x = value

    @value.deleter
    def value(self):
        self.x = 0.0


@case(1.3, 0.4)
def abstract_properties(x, y):
    c = Concrete.make(x, y=y)
    first = c.value
    c.value = first * 2
    c.value *= 3
    second = c.value
    del c.value
    return first, second, c.x, c.y


T = typing.TypeVar("T")


class Wrapped(typing.Generic[T]):
    def __init__(self, value: T):
        self.value = value

    def map(self, f):
        return type(self)(f(self.value))


@case(1.3)
def generic_classes(x):
    return Wrapped[float](x).map(lambda v: v * v).value, typing.cast(float, x) * x


@case(1.3)
def local_records(x):
    Pair = collections.namedtuple("Pair", "a b")

    @dataclasses.dataclass(order=True)
    class Record:
        a: float
        b: list = dataclasses.field(default_factory=list, compare=False)

        def __post_init__(self):
            self.b.append(self.a)

    p, q = Pair(x, 2.0), Pair(**{"a": x, "b": x})
    records = [Record(x), Record(1.0)]
    return (
        [p + q, p == q, max(p), p.count(x), p.index(2.0), [*p]],
        sorted(records)[0].a,
        dataclasses.replace(records[0], a=x * 2, b=[]).b,
    )


@case(1.3)
def memoizers(x):
    class Memo:
        def __init__(self, f):
            self.f, self.known = f, {}

        def __call__(self, *args):
            if args not in self.known:
                self.known[args] = self.f(*args)
            return self.known[args]

        def __get__(self, obj, owner):
            return functools.partial(self, obj)

    @Memo
    def fib(n):
        return x if n < 2 else fib(n - 1) * 0.5 + fib(n - 2)

    class Model:
        def __init__(self, x):
            self.x = x

        @Memo
        def at(self, y):
            return self.x * y

    known = {}

    def by_value(y):
        if y not in known:
            known[y] = y * y if y > 2 else by_value(y * 1.5) + y
        return known[y]

    return fib(6), Model(x).at(x), by_value(x) + by_value(x), list(known.values())


@case(1.3)
def queues_and_chance(x):
    q = queue.PriorityQueue()
    q.put((x, 1))
    q.put((0.2, 2))
    rng = random.Random(1)
    items = [x, 2.0, 3 * x]
    rng.shuffle(items)
    kept = weakref.WeakValueDictionary()
    obj = Number(x)
    kept["a"] = obj
    return (
        [q.get()[0], q.get()[0]],
        items,
        rng.choices([x, 1.0], k=3),
        [rng.random() * x, rng.gauss(0, 1) * x, rng.uniform(0, x), rng.choice([x, 2 * x])],
        sum(rng.sample([x, 1.0, 2.0], 2)),
        kept["a"].x,
    )


# --------------------------------------------------------------------------------------------- arrays


@case(1.3)
def truth_of_arrays(x):
    a = np.array([x, 2.0])
    log = []
    try:
        if a:
            pass
    except ValueError as error:
        log.append(str(error))
    if a.any() and (a > 0).all() and np.array([x]):
        log.append(x)
    while a.sum() > 3:
        a = a * 0.5
    return log, a, not a[0], a[0] or 1.0, 1.0 if a[0] else 2.0, (a == a).all()


@case(V)
def attributes_of_arrays(v):
    a = v.reshape(2, 2)
    about = [a.size, a.ndim, a.nbytes, a.itemsize, a.dtype, len(a), a.shape, a.strides]
    return (
        about,
        a.T,
        a.flat[1],
        a.tolist(),
        [a.item(0), a.max(), a.argmax(), a.mean(), a.std(), a.var(), a.prod(), a.trace()],
        [
            a.cumsum(),
            a.dot(a),
            a.diagonal() * 1,
            a.clip(0, 1),
            a.repeat(2),
            a.take([0, 1]),
            a.squeeze(),
        ],
        [a.astype(float) ** 2, a.real * 2, a.imag, a.conj(), a.all(), a.any(), a.nonzero()[0]],
    )


@case(V, 1.3)
def masks_and_choices(v, x):
    m = (v > 0) & (v < x)
    n = ~m | (v == 2.0)
    return (
        [v[m], v[n] * x, v[np.where(m)[0]], v[np.nonzero(n)[0]], v[np.argsort(v)]],
        [
            np.where(m, v, x),
            np.select([m, n], [v, v * 2], 0.0),
            np.choose([0, 1, 0, 1], [v, v * x]),
        ],
        [np.count_nonzero(m) * x, m.sum() * x, np.logical_and(m, n), m.any(), m.all()],
        [v[np.argmax(v)], np.take_along_axis(v, np.argsort(v), 0), np.extract(m, v)],
        np.piecewise(v, [v > 0], [lambda t: t * x, 0.0]),
    )


@case(V, 1.3)
def making_arrays(v, x):
    return (
        [
            np.array([x, v[0]]),
            np.array([[x], [1.0]]),
            np.array(x),
            np.asarray([v, v]),
            np.array([x] * 3),
        ],
        [np.stack([v, v * x], 1), np.vstack([v, v]), np.hstack([v, [x]]), np.column_stack([v, v])],
        [np.append(v, x), np.insert(v, 1, x), np.delete(v, 0), np.r_[v, x], np.c_[v, v]],
        [
            np.full_like(v, x),
            np.linspace(x, v[2], 3),
            np.geomspace(1.0, x, 3),
            np.logspace(0.0, x, 3),
        ],
        [
            np.meshgrid(v, [x, 1.0])[0],
            np.diag(v),
            np.triu(np.outer(v, v)),
            np.broadcast_to(x, (2,)),
        ],
        [
            np.repeat(x, 3),
            np.atleast_1d(x),
            np.float64(x),
            np.copy(v),
            np.array((x, 1)),
            np.array([np.float64(x), x]),
        ],
    )


@case(np.array([1, 2, 3]), 2.0)
def integer_arrays(n, x):
    a = n * x
    n[0] = 7
    b = n.astype(float) * x
    n += 1
    return (
        a,
        b,
        n / 2 * x,
        n.sum() * x,
        n,
        (n @ n) * x,
        n.mean() * x,
        [i * x for i in n],
        int(n[0]) * x,
        n // 2,
    )


@case(1.3 + 0.4j)
def complex_corners(z):
    return (
        [
            z * z.conjugate(),
            abs(z),
            z.real,
            z.imag,
            complex(z.real, z.imag),
            2**z,
            z / (1 + z),
            -z,
            +z,
        ],
        [
            np.angle(z),
            np.exp(1j * z),
            np.array([z, 1.0]),
            sum([z, 1.0]),
            z == z,
            np.abs(np.array([z])),
            np.real(z) * z,
        ],
    )


@case(V, 0.3)
def arrays_under_many_names(v, x):
    class Held:
        pass

    h = Held()
    h.a = v.copy()
    h.items = [h.a, x]
    h.table = {"k": h.a}
    h.a += 1
    h.items[0] *= 2
    h.table["k"] -= x
    h.items[1] += x
    h.items += [x]
    h.a[1] **= 2
    h.table["k"][0] /= x
    h.table.setdefault("z", []).append(h.a[2])
    return h.a, h.items, h.table


@case({"k": 1.3}, [1.0, 2.0])
def arguments_tied_together(table, items):
    table[items[0]] = table["k"] * 2
    table["z"] = items
    items.append(table["k"])
    items[0], items[1] = items[1], items[0]
    table["n"] = {"x": table["k"]}
    table["n"]["y"] = items[2] * 2
    del table["k"]
    return table["n"]["y"] * items[0]


@case(V, 1.3)
def lists_in_the_place_of_arrays(v, x):
    return (
        [v * [1, 2, 3, 4], [x, 1.0, x, 2.0] * v, v + (x, 1, 2, 3), (1, 2, 3, x) - v, v / [x] * 2],
        [v @ [x, 1, 2, 3], np.dot([x, 1, 2, 3], v), np.sum([x, v[0], 1]), np.max([x, 0.0, v[2]])],
        [
            v > [1, 0, x, 0],
            np.where([True, False, True, False], v, [x] * 4),
            np.sin([x, 1.0]),
            np.add([x], 1),
        ],
        [
            np.multiply.outer(v, [x, 2.0]),
            np.maximum(v, [0, 0, x, 5]),
            np.linalg.norm([x, 1.0]),
            np.mean([[x], [1]]),
        ],
    )


@case(1.3)
def lists_with_scalars_of_numpy(x):
    s = np.float64(x)
    total = [x, 2.0]
    total += s
    try:
        repeated = [x, 2.0] * s, s * [x, 2.0]
    except TypeError as error:
        repeated = str(error)
    return (
        [1.0, x] + s,
        s + (1.0, x),
        s - [x],
        s == [x, 2.0],
        s < (2.0, 1.0),
        total,
        repeated,
    )
