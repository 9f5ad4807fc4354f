"""Numbers as the standard library's own code sees them: NumPy's scalars, fractions, keys of dicts, cells."""

import collections
import colorsys
import copy
import datetime
import decimal
import functools
import itertools
import math
import operator
import os
import random
import statistics
import struct
import types
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import wengert
from helpers import Verdicts
from wengert import stop_gradient

programs = Verdicts(os.path.basename(__file__), [(0.5, 1.2), (1.5, 0.33), (0.5, 1.2), (2.0, 0.7)])

REFUSED = {
    "Decimal arith arr",
    "Decimal arith float",
    "Decimal arith np",
    "Decimal arr",
    "Decimal float",
    "Decimal np",
    "Decimal.from_float arr",
    "Decimal.from_float float",
    "Decimal.from_float np",
    "Fraction arith arr",
    "Fraction arith float",
    "Fraction arith np",
    "Fraction arr",
    "Fraction float",
    "Fraction np",
    "Fraction ratio arr",
    "Fraction ratio float",
    "Fraction ratio np",
    "Fraction.from_float arr",
    "Fraction.from_float float",
    "Fraction.from_float np",
    "NormalDist samples",
    "as_integer_ratio arr",
    "as_integer_ratio float",
    "as_integer_ratio np",
    "create_decimal arr",
    "create_decimal ff arr",
    "create_decimal ff float",
    "create_decimal ff np",
    "create_decimal float",
    "create_decimal np",
    "datetime 0d",
    "datetime arr",
    "datetime float",
    "datetime np",
    "struct 0d",
    "struct arr",
    "struct float",
    "struct np",
    "timedelta* 0d",
    "timedelta* arr",
    "timedelta* float",
    "timedelta* np",
}


def S(name, f):
    programs.numbers(name, f, refused=name in REFUSED)


F64 = np.float64
MEANS = "mean fmean median median_low median_high geometric_mean harmonic_mean"
for n in f"{MEANS} stdev pstdev variance pvariance".split():
    fn = getattr(statistics, n)
    S(n + " float", lambda x, y, fn=fn: float(fn([x * y, y, x + y])))
    S(n + " np", lambda x, y, fn=fn: float(fn([F64(x * y), F64(y), F64(x + y)])))
    S(n + " array", lambda x, y, fn=fn: float(fn(np.array([x * y, y, x + y]))))
    S(n + " tuple of items", lambda x, y, fn=fn: float(fn(tuple(np.array([x * y, y, x + y])))))
    S(n + " mixed", lambda x, y, fn=fn: float(fn([F64(x * y), y, 1.0])))
    S(n + " gen", lambda x, y, fn=fn: float(fn(z for z in [F64(x * y), y, 1.0])))
S("correlation", lambda x, y: statistics.correlation([F64(x), F64(y), 1.0], [1.0, F64(2.0), x * y]))
S("covariance", lambda x, y: statistics.covariance([F64(x), F64(y), 1.0], [1.0, F64(2.0), x * y]))
S(
    "linreg",
    lambda x, y: statistics.linear_regression([F64(x), F64(y), 1.0], [1.0, F64(2.0), x * y]).slope,
)
S("quantiles", lambda x, y: float(statistics.quantiles([F64(x), F64(y), 1.0])[1]))
S("mode", lambda x, y: float(statistics.mode([F64(x), F64(x), 1.0])))
S("NormalDist", lambda x, y: statistics.NormalDist(F64(x), F64(y)).pdf(0.3))
S("NormalDist cdf", lambda x, y: statistics.NormalDist(x, y).cdf(0.3))
S("NormalDist samples", lambda x, y: statistics.NormalDist.from_samples([F64(x), F64(y)]).stdev)
S("weights", lambda x, y: statistics.fmean([F64(x), F64(y)], weights=[F64(y), 1.0]))
if hasattr(statistics, "kde"):
    S("kde", lambda x, y: statistics.kde([x, y], 1.0)(0.5))
for nm, mk in (
    ("float", lambda z: z),
    ("np", F64),
    ("arr", lambda z: np.array([z])[0]),
    ("0d", lambda z: np.array(z)),
):
    if nm != "0d":
        S("Fraction " + nm, lambda x, y, mk=mk: float(Fraction(mk(x * y))))
    if nm != "0d":
        S("Fraction.from_float " + nm, lambda x, y, mk=mk: float(Fraction.from_float(mk(x * y))))
    if nm != "0d":
        S("Fraction arith " + nm, lambda x, y, mk=mk: float(Fraction(mk(x)) * Fraction(mk(y)) + 1))
    S("Fraction op " + nm, lambda x, y, mk=mk: float(Fraction(1, 2) * mk(x)))
    S("Fraction rop " + nm, lambda x, y, mk=mk: float(mk(x) * Fraction(1, 2)))
    if nm != "0d":
        S("Decimal " + nm, lambda x, y, mk=mk: float(Decimal(mk(x * y))))
    if nm != "0d":
        S("Decimal.from_float " + nm, lambda x, y, mk=mk: float(Decimal.from_float(mk(x * y))))
    if nm != "0d":
        S("Decimal arith " + nm, lambda x, y, mk=mk: float(Decimal(mk(x)) * Decimal(2)))
    if nm != "0d":
        S(
            "create_decimal " + nm,
            lambda x, y, mk=mk: float(decimal.getcontext().create_decimal(mk(x))),
        )
    if nm != "0d":
        S(
            "create_decimal ff " + nm,
            lambda x, y, mk=mk: float(decimal.getcontext().create_decimal_from_float(mk(x))),
        )
    if nm != "0d":
        S(
            "as_integer_ratio " + nm,
            lambda x, y, mk=mk: (lambda r: r[0] / r[1])(mk(x * y).as_integer_ratio()),
        )
    if nm != "0d":
        S(
            "Fraction ratio " + nm,
            lambda x, y, mk=mk: float(Fraction(*mk(x * y).as_integer_ratio())),
        )
    S("frexp " + nm, lambda x, y, mk=mk: (lambda r: r[0] * 2.0 ** r[1])(math.frexp(mk(x * y))))
    S("modf " + nm, lambda x, y, mk=mk: sum(math.modf(mk(x * y * 7.1))))
    S("fsum " + nm, lambda x, y, mk=mk: math.fsum([mk(x), mk(y)]))
    S("prod " + nm, lambda x, y, mk=mk: float(math.prod([mk(x), mk(y)])))
    S("hypot " + nm, lambda x, y, mk=mk: math.hypot(mk(x), mk(y)))
    S("dist " + nm, lambda x, y, mk=mk: math.dist([mk(x)], [mk(y)]))
    if hasattr(math, "sumprod"):
        S("sumprod " + nm, lambda x, y, mk=mk: float(math.sumprod([mk(x), mk(y)], [mk(y), 1.0])))
    S("complex() " + nm, lambda x, y, mk=mk: complex(mk(x), mk(y)).imag)
    S("float() " + nm, lambda x, y, mk=mk: float(mk(x * y)))
    S("struct " + nm, lambda x, y, mk=mk: struct.unpack("d", struct.pack("d", mk(x * y)))[0])
    S("sum " + nm, lambda x, y, mk=mk: float(sum([mk(x), mk(y)])))
    S("max key " + nm, lambda x, y, mk=mk: float(max([mk(x), mk(y)], key=abs)))
    S("sorted " + nm, lambda x, y, mk=mk: float(sorted([mk(x), mk(y)])[0]))
    S("accumulate " + nm, lambda x, y, mk=mk: float(list(itertools.accumulate([mk(x), mk(y)]))[-1]))
    S("reduce " + nm, lambda x, y, mk=mk: float(functools.reduce(operator.mul, [mk(x), mk(y)])))
    if nm != "0d":
        S("round " + nm, lambda x, y, mk=mk: float(round(mk(x * 3), 2) + mk(y)))
    S("pow3 " + nm, lambda x, y, mk=mk: float(pow(mk(x), 2)))
    S("divmod " + nm, lambda x, y, mk=mk: float(divmod(mk(x * 3.1), mk(y))[1]))
    S("random.uniform " + nm, lambda x, y, mk=mk: float(random.Random(3).uniform(mk(x), mk(y))))
    S("random.gauss " + nm, lambda x, y, mk=mk: float(random.Random(3).gauss(mk(x), mk(y))))
    S("random.choice " + nm, lambda x, y, mk=mk: float(random.Random(3).choice([mk(x), mk(y)])))
    S(
        "random.choices w " + nm,
        lambda x, y, mk=mk: float(random.Random(3).choices([1.0, 2.0], [mk(x), mk(y)])[0] * x),
    )
    S("item " + nm, lambda x, y, mk=mk: float(np.asarray(mk(x * y)).item()))
    S("tolist " + nm, lambda x, y, mk=mk: float(np.array([mk(x), mk(y)]).tolist()[0]))
    S(
        "datetime " + nm,
        lambda x, y, mk=mk: datetime.timedelta(seconds=float(mk(x))).total_seconds(),
    )
    S(
        "timedelta* " + nm,
        lambda x, y, mk=mk: (datetime.timedelta(seconds=3) * float(mk(x))).total_seconds(),
    )
    S("copysign " + nm, lambda x, y, mk=mk: math.copysign(mk(x), -1.0))
    if hasattr(math, "fma"):
        S("fma " + nm, lambda x, y, mk=mk: math.fma(mk(x), mk(y), 1.0))
    S("real/imag " + nm, lambda x, y, mk=mk: float(mk(x).real * mk(y).conjugate()))
    S("colorsys " + nm, lambda x, y, mk=mk: colorsys.rgb_to_hsv(float(mk(x)), float(mk(y)), 0.1)[1])
    # keys
    S(
        "key set " + nm,
        lambda x, y, mk=mk: float(list({mk(x): 1.0} if nm != "0d" else {float(mk(x)): 1})[0] * y),
    )
    S("key list0 " + nm, lambda x, y, mk=mk: (lambda d: float(list(d)[0] * 2))({float(mk(x)): y}))
    S("key next " + nm, lambda x, y, mk=mk: (lambda d: float(next(iter(d)) * 2))({float(mk(x)): y}))
    S(
        "key for " + nm,
        lambda x, y, mk=mk: sum([k * v for k, v in {float(mk(x)): y, 7.0: x}.items()]),
    )
    S("key keys " + nm, lambda x, y, mk=mk: sum({float(mk(x)): y}.keys()) * 1.0)
    S("key max " + nm, lambda x, y, mk=mk: max({float(mk(x)): y, -1.0: 2}) * 1.0)
    S("key popitem " + nm, lambda x, y, mk=mk: {float(mk(x)): y}.popitem()[0] * 1.0)
    S("key star " + nm, lambda x, y, mk=mk: [*{float(mk(x)): y}][0] * 1.0)
    S("key sorted " + nm, lambda x, y, mk=mk: sorted({float(mk(x)): y})[0] * 1.0)
    S("key reversed " + nm, lambda x, y, mk=mk: next(reversed({float(mk(x)): y})) * 1.0)


class Miss(dict):
    def __missing__(self, k):
        return k * k


class MissStore(dict):
    def __missing__(self, k):
        self[k] = v = k * k * 2
        return v


S("missing", lambda x, y: Miss()[x * y] * 1.0)
S("missing np", lambda x, y: float(Miss()[F64(x * y)]))
S("missing store", lambda x, y: (lambda m: m[x] * m[x] + list(m)[0])(MissStore()))
S(
    "missing tuple",
    lambda x, y: (lambda m: m[x, y])(
        type("T", (dict,), {"__missing__": lambda s, k: k[0] * k[1]})()
    ),
)
S(
    "defaultdict key",
    lambda x, y: (lambda d: (d[x], list(d)[0] * y)[1])(collections.defaultdict(float)),
)
S("setdefault", lambda x, y: {}.setdefault(x, x * y))
S("setdefault k", lambda x, y: (lambda d: (d.setdefault(x, 2.0), list(d)[0] * y)[1])({}))
S("setdefault hit", lambda x, y: (lambda d: d.setdefault(x, 2.0) * x)({x: y}))
S("setitem k", lambda x, y: (lambda d: (d.__setitem__(x * y, 2.0), list(d)[0] * y)[1])({}))
S("update k", lambda x, y: (lambda d: (d.update({x * y: 2.0}), list(d)[0] * y)[1])({}))
S("update pairs", lambda x, y: (lambda d: (d.update([(x * y, 2.0)]), list(d)[0] * y)[1])({}))
S("dict pairs", lambda x, y: (lambda d: list(d)[0] * y)(dict([(x * y, 2.0)])))
S("dict zip", lambda x, y: (lambda d: list(d)[0] * y)(dict(zip([x * y], [2.0]))))
S("fromkeys", lambda x, y: (lambda d: list(d)[0] * y)(dict.fromkeys([x * y, 3.0])))
S("dictcomp", lambda x, y: (lambda d: list(d)[0] * y)({z * y: 1 for z in (x,)}))
S("or", lambda x, y: (lambda d: list(d)[1] * y)({1.0: 1} | {x * y + 9: 1}))
S("tuple key", lambda x, y: (lambda d: list(d)[0][0] * y)({(x, y): 1}))
S("Counter key", lambda x, y: (lambda d: list(d)[0] * y)(collections.Counter([x, x])))
S("Counter mc", lambda x, y: (lambda d: d.most_common()[0][0] * y)(collections.Counter([x, x, y])))
S("set list", lambda x, y: list({x * y})[0] * y)
S("set pop", lambda x, y: {x * y}.pop() * y)
S("set add", lambda x, y: (lambda s: (s.add(x * y), max(s) * 2)[1])(set()))
S("frozenset", lambda x, y: next(iter(frozenset([x * y]))) * y)
S("set sorted", lambda x, y: sorted({x * y, -x, 5.0})[1] * 1.0)
S("set union", lambda x, y: sum({x * y} | {x + 9}) * 1.0)
S("set comp", lambda x, y: sum({z * z for z in (x, y)}) * 1.0)
S("key in class", lambda x, y: (lambda o: list(o.d)[0] * y)(types.SimpleNamespace(d={x: 1})))
S(
    "inverted",
    lambda x, y: (lambda d: {v: k for k, v in d.items()})({"a": x * y}).popitem()[0] * 1.0,
)
S("groupby", lambda x, y: [k for k, g in itertools.groupby([x * y, x * y])][0] * 1.0)
S("UserDict key", lambda x, y: (lambda d: list(d)[0] * y)(collections.UserDict({x: 1})))
S("OrderedDict key", lambda x, y: (lambda d: list(d)[0] * y)(collections.OrderedDict({x: 1})))
S("OrderedDict popitem", lambda x, y: collections.OrderedDict({x: 1}).popitem()[0] * y)
S("ChainMap key", lambda x, y: (lambda d: list(d)[0] * y)(collections.ChainMap({x: 1})))
S("copy key", lambda x, y: (lambda d: list(d.copy())[0] * y)({x: 1}))
S("deepcopy key", lambda x, y: (lambda d: list(copy.deepcopy(d))[0] * y)({x: 1}))


def c1(x, y):
    z = 1.0

    def g():
        return z * z

    g.__closure__[0].cell_contents = x * y
    return g()


S("cell write", c1)


def c2(x, y):
    z = x

    def g():
        return z * z

    return g.__closure__[0].cell_contents * y


S("cell read", c2)


def c3(x, y):
    z = x

    def g():
        nonlocal z
        z = z * y

    g()
    g()
    return (
        g.__closure__[1].cell_contents
        if g.__code__.co_freevars[1] == "z"
        else g.__closure__[0].cell_contents
    )


S("cell read nl", c3)


def c4(x, y):
    z = 1.0

    def g():
        return z

    c = g.__closure__[0]
    c.cell_contents = x * y
    z2 = z
    return z2 * 2


S("cell write own", c4)


def c5(x, y):
    z = 1.0

    def g():
        return z

    setattr(g.__closure__[0], "cell_contents", x * y)
    return g()


S("cell setattr", c5)


def c6(x, y):
    z = x

    def g():
        return z

    return getattr(g.__closure__[0], "cell_contents") * y


S("cell getattr", c6)


def c7(x, y):
    c = types.CellType(x * y)
    return c.cell_contents * 2


S("CellType", c7)


def c8(x, y):
    c = types.CellType()
    c.cell_contents = x * y
    return c.cell_contents * 2


S("CellType empty", c8)


def c9(x, y):
    c = types.CellType(x * y)

    def mk():
        z = 0
        return lambda: z * 2

    f = mk()
    g = types.FunctionType(f.__code__, f.__globals__, "g", None, (c,))
    return g()


S("FunctionType closure", c9)


def c10(x, y):
    z = 1.0

    def g():
        return z

    del g.__closure__[0].cell_contents
    g.__closure__[0].cell_contents = x * y
    return g()


S("cell del", c10)


def outer():
    z = 1.0

    def g():
        return z

    return g


def c11(x, y):
    g = outer()
    g.__closure__[0].cell_contents = x * y
    return g() * g.__closure__[0].cell_contents


S("cell of called", c11)
G = outer()


def c12(x, y):
    G.__closure__[0].cell_contents = x * y
    return G() * 2


S("cell outside", c12)


@programs.each
def test_like_python_or_refused(run, points, refused):
    programs.check(run, points, refused)


class Unsized:
    """NumPy takes it for one object, since it does not tell its length."""

    def __init__(self, error):
        self.error = error

    def __len__(self):
        raise self.error

    def __getitem__(self, i):
        return 1.0

    def __add__(self, other):
        return other * 2.0

    __radd__ = __add__


class Keyed(Unsized):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        raise KeyError(i)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("kind", [Unsized, Keyed])
@pytest.mark.parametrize("error", [ValueError("len"), TypeError("len"), RecursionError("len")])
def test_what_does_not_tell_its_length_is_one_object(on, kind, error):
    asked = [np.asarray, np.shape, np.sum, np.sin, np.mean, lambda o: np.maximum(o, 1.0)]
    asked += [lambda o: np.array([1.0, 2.0]) * o, lambda o: np.add(o, 3.0), lambda o: np.full(2, o)]

    def outcome(ask, o):
        try:
            return type(ask(o)).__name__
        except Exception as raised:
            return type(raised).__name__, str(raised)

    single = kind(error)
    expected = [outcome(ask, single) for ask in asked]
    with wengert.jit(on):
        for _ in range(3):
            found = []

            def f(x):
                found.extend(outcome(ask, single) for ask in asked)
                return x

            wengert.value_and_grad(f)(1.5)
            assert found == expected
        if not isinstance(error, RecursionError):
            for _ in range(3):
                assert wengert.value_and_grad(lambda x: np.add(single, x))(1.5) == (3.0, 2.0)


class Logged(float):
    log: list[float] = []  # noqa: RUF012

    def __new__(cls, value, unit="m"):
        return float.__new__(cls, value)

    def __init__(self, value, unit="m"):
        self.log.append(0.5)


class Noted(Logged):
    def __init__(self, value, unit="m"):
        self.unit = unit


@pytest.mark.parametrize("on", [False, True])
def test_a_number_of_a_class_of_its_own_is_initialised(on):
    def f(x):
        return x * (Logged(stop_gradient(x)) > 1.0) + x * len(Logged.log)

    with wengert.jit(on):
        for x in (2.0, 0.5, 3.0, 2.0, 4.0):
            Logged.log.clear()
            expected = f(x)
            Logged.log.clear()
            assert wengert.value_and_grad(f)(x) == (expected, expected / x)
            assert Logged.log == [0.5]
    with pytest.raises(wengert.NoRuleError, match=r"test_numbers.py:\d+.* returns a Noted"):
        wengert.jit(lambda x: Noted(x * 2.0).unit)(3.0)


@pytest.mark.parametrize("on", [True, False])
def test_what_else_integers_are_asked(on):
    with wengert.jit(on):
        for n in (3, 4, 5):
            slopes = wengert.value_and_grad(lambda n, x: n.conjugate() * x, argnums=(0, 1))
            assert slopes(n, 2.0) == (2.0 * n, (2.0, float(n)))
            slopes = wengert.value_and_grad(lambda n, x: pow(n, 3, 7) * pow(n, exp=2) * x, (0, 1))
            k = pow(n, 3, 7)
            assert slopes(n, 2.0) == (k * n * n * 2.0, (k * 2 * n * 2.0, float(k * n * n)))


@pytest.mark.parametrize("on", [True, False])
def test_c_code_that_looks_at_the_class_of_an_integer(on):
    def f(x, n):
        short, limited = collections.deque([x] * 5, n - 1), collections.deque([x] * 4, maxlen=n)
        pairs = itertools.permutations([x, 1.0, 2.0], n - 1)
        return sum(short) + sum(limited) + sum(math.prod(pair) for pair in pairs)

    with wengert.jit(on):
        both = wengert.value_and_grad(f, (0, 1))
        for n in (3, 3, 4, 2):
            value, (slope, none) = both(1.5, n)
            assert value == f(1.5, n)
            assert slope == pytest.approx((f(1.5 + 1e-6, n) - f(1.5 - 1e-6, n)) / 2e-6)
            assert none == 0.0


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (lambda x: x.fromhex("0x1.8p1") * x, 1.5, 3.0),
        (lambda n: float(n.from_bytes(b"\x02", "big")) * n, 3, 2.0),
        (lambda x: object.__getattribute__(x, "real") * x, 1.5, 3.0),
        (lambda x: object.__getattribute__(x, "conjugate")() * x, 1.5, 3.0),
    ],
)
def test_what_a_number_has_of_its_class(f, x, slope):
    for _ in range(4):
        assert wengert.value_and_grad(f)(x) == (f(x), slope)
    with pytest.raises(AttributeError, match="^'float' object has no attribute 'nope'$"):
        wengert.grad(lambda x: object.__getattribute__(x, "nope") * x)(1.5)


def by_attribute(x):
    return super(float, x).__sizeof__() * x


def by_object(x):
    above = super(np.float64, x)
    return above.__mul__(x)


@pytest.mark.parametrize(("f", "x"), [(by_attribute, 1.5), (by_object, np.float64(1.5))])
def test_what_the_classes_above_make_of_a_number_is_refused(f, x):
    with pytest.raises(wengert.TraceError, match=r"super\(\) of a traced number") as error:
        wengert.grad(f)(x)
    assert "test_numbers.py" in str(error.value)
