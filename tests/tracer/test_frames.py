"""How the values of classes nest: as arguments, as results, in one another, in attributes, captured by functions."""

import copy
import dataclasses
import functools
import math
import operator
import os
import tempfile
import types
import weakref
from collections import (
    ChainMap,
    Counter,
    OrderedDict,
    UserDict,
    UserList,
    defaultdict,
    deque,
    namedtuple,
)

import numpy as np
import pytest

from helpers import Verdicts
from wengert import jit, pullback, value_and_grad

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass")

FOLDER = tempfile.TemporaryDirectory()
FILE = os.path.join(FOLDER.name, "numbers")

programs = Verdicts(os.path.basename(__file__), [(0.5, 1.2), (0.3, 1.5), (0.5, 1.2), (0.7, 2.0)])

REFUSED = {
    "Lazy arg",
    "Lazy result",
    "S arg len",
    "S arg max",
    "S arg sum",
    "S in list",
    "append Q",
    "copy.copy Q",
    "exc arg",
    "gen arg",
    "items arg",
    "iterator arg",
    "map arg",
    "masked",
    "matrix",
    "ndarray subclass",
    "ndarray subclass mul",
    "object arr",
    "pop Q",
    "range-like",
    "recarray",
    "result Sub",
    "result cell",
    "result closure",
    "result closure dict",
    "result dict views",
    "result exception",
    "result generator",
    "result iter",
    "result map",
    "result matrix",
    "result memmap",
    "result method",
    "result partial",
    "result partial list",
    "result slice",
    "structured",
    "values arg",
    "zip arg",
}


def argument(name, make, f):
    programs.argument(name, make, f, refused=name in REFUSED)


def numbers(name, f, size=None):
    programs.numbers(name, f, size=size, refused=name in REFUSED)


def result(name, f, size):
    programs.result(name, f, size=size, refused=name in REFUSED)


class L(list):
    pass


class LA(list):
    def __init__(self, items, scale):
        super().__init__(items)
        self.scale = scale


class D(dict):
    pass


class DA(dict):
    def __getattr__(self, n):
        try:
            return self[n]
        except KeyError:
            raise AttributeError(n)


class AttrD(dict):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self.__dict__ = self


class T(tuple):
    def norm(self):
        return sum(x * x for x in self)


class TA(tuple):
    pass


class S(set):
    pass


class FS(frozenset):
    pass


class Q(deque):
    pass


class UL(UserList):
    pass


class UD(UserDict):
    pass


class OD(OrderedDict):
    pass


class DD(defaultdict):
    pass


class V(list):
    def __add__(self, o):
        return V(a + b for a, b in zip(self, o))

    def dot(self, o):
        return sum(a * b for a, b in zip(self, o))


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


class LS(list):
    __slots__ = ("k",)


NT = namedtuple("NT", "a b")


class NT2(NT):
    def area(self):
        return self.a * self.b


@dataclasses.dataclass
class DL(list):
    k: float = 0.0


class Lazy(list):
    def __getitem__(self, i):
        return list.__getitem__(self, i) * 2


class Conf(D):
    def __missing__(self, k):
        return 1.5


two = lambda s: s[0] * s[0] * s[1]
named = lambda s: s["a"] * s["a"] * s["b"]
tot = lambda s: sum(x * x * x for x in s)
for K in (list, tuple, deque, L, T, Q, UL, V):
    argument(K.__name__ + " arg", lambda a, b, K=K: K([a, b]), two)
    argument(K.__name__ + " arg iter", lambda a, b, K=K: K([a, b]), tot)
    argument(
        K.__name__ + " in list",
        lambda a, b, K=K: [K([a, b])],
        lambda s: two(s[0]),
    )
    argument(
        K.__name__ + " in attr",
        lambda a, b, K=K: types.SimpleNamespace(z=K([a, b])),
        lambda s: two(s.z),
    )
    result(K.__name__ + " result", lambda x, K=K: K([x * x, x * 3]), size=1)
    result(K.__name__ + " result nested", lambda x, K=K: {"k": [K([x * x, x * 3])]}, size=1)
    result(
        K.__name__ + " result attr",
        lambda x, K=K: types.SimpleNamespace(z=K([x * x, x * 3])),
        size=1,
    )
for K in (dict, OrderedDict, D, DA, AttrD, UD, OD, Conf, ChainMap, Counter):
    argument(K.__name__ + " arg", lambda a, b, K=K: K({"a": a, "b": b}), named)
    argument(
        K.__name__ + " arg values", lambda a, b, K=K: K({"a": a, "b": b}), lambda s: tot(s.values())
    )
    argument(
        K.__name__ + " arg items",
        lambda a, b, K=K: K({"a": a, "b": b}),
        lambda s: sum(k * k for n, k in s.items()),
    )
    argument(
        K.__name__ + " in tuple", lambda a, b, K=K: (K({"a": a, "b": b}),), lambda s: named(s[0])
    )
    result(K.__name__ + " result", lambda x, K=K: K({"a": x * x, "b": x * 3}), size=1)
    result(K.__name__ + " result nested", lambda x, K=K: [K({"a": x * x, "b": x * 3})], size=1)
for K in (DA, AttrD):
    argument(
        K.__name__ + " .attr", lambda a, b, K=K: K({"a": a, "b": b}), lambda s: s.a * s.a * s.b
    )
for K in (defaultdict, DD):
    argument(
        K.__name__ + " arg",
        lambda a, b, K=K: K(float, {"a": a, "b": b}),
        lambda s: named(s) + s["zz"],
    )
    result(K.__name__ + " result", lambda x, K=K: K(float, {"a": x * x, "b": x * 3}), size=1)
for K in (set, frozenset, S, FS):
    argument(K.__name__ + " arg sum", lambda a, b, K=K: K([a, b]), tot)
    argument(K.__name__ + " arg max", lambda a, b, K=K: K([a, b]), lambda s: max(s) * 2)
    argument(K.__name__ + " arg len", lambda a, b, K=K: K([a, b]), lambda s: len(s) * 1.0)
    argument(K.__name__ + " in list", lambda a, b, K=K: [K([a, b])], lambda s: tot(s[0]))
    result(K.__name__ + " result", lambda x, K=K: K([x * x]), size=1)
    numbers(K.__name__ + " inside", lambda x, K=K: sum(K([x * x, x * 3])) * 1.0, size=1)
argument("LA", lambda a, b: LA([a], b), lambda s: s[0] ** 2 * s.scale)
result("LA result", lambda x: LA([x * x], x * 3), size=1)
numbers("LA dot", lambda x: V([x, x * x]).dot(V([x, 2.0]) + V([1.0, x])), size=1)
argument("NT", lambda a, b: NT(a, b), lambda s: s.a**2 * s.b)
argument("NT2", lambda a, b: NT2(a, b), lambda s: s.area() * s.a)
result("NT2 result", lambda x: NT2(x * x, x * 3), size=1)
argument("Slots", Slots, lambda s: s.a**2 * s.b)
result("Slots result", lambda x: Slots(x * x, x * 3), size=1)


def mkls(a, b):
    z = LS([a])
    z.k = b
    return z


argument("LS", mkls, lambda s: s[0] ** 2 * s.k)
result("LS result", lambda x: mkls(x * x, x * 3), size=1)
argument("Lazy arg", lambda a, b: Lazy([a, b]), two)
result("Lazy result", lambda x: Lazy([x * x, x * 3]), size=1)
argument("ChainMap 2 arg", lambda a, b: ChainMap({"a": a}, {"b": b}), named)
numbers(
    "ChainMap child",
    lambda x: (lambda c: c["a"] * c["b"])(ChainMap({"a": x}, {"b": x * x}).new_child({"c": x})),
    size=1,
)
argument(
    "ChainMap write",
    lambda a, b: ChainMap({"a": a}, {"b": b}),
    lambda c: (c.__setitem__("b", c["a"] * 2), c["a"] * c["b"])[1],
)
numbers("Counter math", lambda x: (Counter(a=x, b=x * x) + Counter(a=2.0 * x))["a"], size=1)
numbers("Counter most", lambda x: Counter(a=x, b=x + x * x).most_common(1)[0][1], size=1)
numbers(
    "Counter upd",
    lambda x: (lambda c: (c.update(a=x * x), c.subtract(a=x), c["a"])[2])(Counter(a=x)),
    size=1,
)
numbers("Counter elements total", lambda x: Counter(a=x, b=x * x).total(), size=1)
argument("proxy arg", lambda a, b: types.MappingProxyType({"a": a, "b": b}), named)
result("proxy result", lambda x: types.MappingProxyType({"a": x * x}), size=1)


# partials, closures, functions
def clo(a, b):
    def g(x):
        return a * x * a + b

    return g


def mul(p, q):
    return p * q


argument("closure arg", clo, lambda g: g(2.0) * g(1.0))
argument("closure in list", lambda a, b: [clo(a, b)], lambda g: g[0](2.0))
argument("closure in dict", lambda a, b: {"g": clo(a, b)}, lambda g: g["g"](2.0))
argument("closure in obj", lambda a, b: types.SimpleNamespace(g=clo(a, b)), lambda g: g.g(2.0))


def deflt(a, b):
    def g(x, p=a, *, q=b):
        return p * x * q

    return g


argument("defaults arg", deflt, lambda g: g(2.0))
argument("partial arg", lambda a, b: functools.partial(mul, a, q=b), lambda g: g() * g())
argument("partial C arg", lambda a, b: functools.partial(operator.mul, a, b), lambda g: g())
argument("partial in list", lambda a, b: [functools.partial(mul, a, q=b)], lambda g: g[0]())
argument(
    "partial in obj",
    lambda a, b: types.SimpleNamespace(p=functools.partial(mul, a, q=b)),
    lambda g: g.p(),
)
argument(
    "partial args",
    lambda a, b: functools.partial(mul, a, q=b),
    lambda g: g.args[0] * g.keywords["q"],
)
argument(
    "partialmethod",
    lambda a, b: [functools.partial(functools.partial(mul, a), q=b)],
    lambda g: g[0](),
)


class M:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __call__(self, x):
        return self.a * x + self.b

    def m(self):
        return self.a * self.a * self.b


argument("method arg", lambda a, b: M(a, b).m, lambda g: g())
argument("method in list", lambda a, b: [M(a, b).m], lambda g: g[0]())
argument("callable obj", M, lambda g: g(3.0) * g(1.0))
numbers("itemgetter", lambda x: operator.itemgetter(0)(L([x * x])), size=1)
result("result closure", lambda x: clo(x * x, x), size=1)
result("result partial", lambda x: functools.partial(mul, x * x), size=1)
result("result method", lambda x: M(x * x, x).m, size=1)
result("result partial list", lambda x: [functools.partial(mul, x * x)], size=1)
result("result closure dict", lambda x: {"g": lambda y: x * y}, size=1)
result("result generator", lambda x: (x * i for i in range(2)), size=1)
result("result dict views", lambda x: {"a": x * x}.values(), size=1)
result("result map", lambda x: map(abs, [x]), size=1)
result("result slice", lambda x: slice(x * x), size=1)
result("result exception", lambda x: ValueError(x * x), size=1)
result(
    "result cell",
    lambda x: (lambda z: lambda: z)(x * x).__closure__[0],
    size=1,
)


class W:
    pass


def wk(x):
    w = W()
    w.z = x * x
    return w


result("result iter", lambda x: iter([x * x]), size=1)
argument("iterator arg", lambda a, b: iter([a, b]), lambda s: sum(s) * 2)
argument("gen arg", lambda a, b: (z for z in (a, b)), lambda s: sum(s) * 2)
argument("map arg", lambda a, b: map(abs, (a, b)), lambda s: sum(s) * 2)
argument("zip arg", lambda a, b: zip((a, b), (b, a)), lambda s: sum(p * q for p, q in s) * 2)
argument("values arg", lambda a, b: {"a": a, "b": b}.values(), lambda s: sum(s) * 2)
argument("items arg", lambda a, b: {"a": a, "b": b}.items(), lambda s: sum(v for k, v in s) * 2)
argument("range-like", lambda a, b: slice(a, b), lambda s: s.start * s.stop)
argument("exc arg", lambda a, b: ValueError(a, b), lambda s: s.args[0] * s.args[1])
numbers("weakref.proxy", lambda x: (lambda w: weakref.ref(w)().z)(wk(x)), size=1)


# Lists in class attr
class Mean(list):
    def mean(self):
        return sum(self) / len(self)

    def normalize(self):
        self[:] = [x / self.mean() for x in self]
        return self


argument("mutating sub", lambda a, b: Mean([a + 3, b + 3]), lambda s: s.normalize()[0])


def push(s):
    s.append(s[0] * s[1])
    return s[-1] * s[2]


for K in (L, Q, V, UL):
    argument("append " + K.__name__, lambda a, b, K=K: K([a, b]), push)


def put(s):
    s["c"] = s["a"] * s["b"]
    return s["c"] * s.get("a")


for K in (D, UD, OD, DA, AttrD, Counter):
    argument("put " + K.__name__, lambda a, b, K=K: K({"a": a, "b": b}), put)


def pop(s):
    return s.pop() * s.pop() * 2


for K in (L, Q, V, UL):
    argument("pop " + K.__name__, lambda a, b, K=K: K([a, b]), pop)
for K in (L, V, UL, T):
    argument("slice " + K.__name__, lambda a, b, K=K: K([a, b]), lambda s: sum(s[::-1][:1]) * s[0])
for K in (L, V, UL, T, Q):
    argument("sort/cmp " + K.__name__, lambda a, b, K=K: K([a, b]), lambda s: sorted(s)[0] * 3.0)
for K in (L, V, T, Q, UL):
    argument(
        "np.array " + K.__name__,
        lambda a, b, K=K: K([a, b]),
        lambda s: float((np.array(s) ** 2).sum()),
    )
for K in (L, V, T, Q, UL):
    argument("math.fsum " + K.__name__, lambda a, b, K=K: K([a, b]), lambda s: math.fsum(s))
for K in (L, V, T):
    argument("star " + K.__name__, lambda a, b, K=K: K([a, b]), lambda s: mul(*s))
for K in (D, OD, DA):
    argument("starstar " + K.__name__, lambda a, b, K=K: K(p=a, q=b), lambda s: mul(**s))
for K in (D, OD, DA, UD):
    argument("dict() " + K.__name__, lambda a, b, K=K: K(a=a, b=b), lambda s: named(dict(s)))
for K in (D, OD, DA, UD, Counter, ChainMap):
    argument("copy " + K.__name__, lambda a, b, K=K: K(dict(a=a, b=b)), lambda s: named(s.copy()))
for K in (L, V, UL, Q):
    argument(
        "copy.copy " + K.__name__,
        lambda a, b, K=K: K([a, b]),
        lambda s: two(copy.copy(s)) + two(copy.deepcopy(s)),
    )
for K in (L, V, T):
    argument(
        "match " + K.__name__,
        lambda a, b, K=K: K([a, b]),
        lambda s: (lambda: [p * q for p, q in [s]][0])(),
    )


def mkmm(a, b):
    m = np.memmap(FILE, dtype=float, mode="w+", shape=(2,))
    m[:] = [a, b]
    return m


argument("memmap", mkmm, lambda s: float(s[0] * s[0] * s[1]))
argument("memmap sum", mkmm, lambda s: float((s * s * s).sum()))


class Sub(np.ndarray):
    pass


class Unit(np.ndarray):
    def __mul__(self, o):
        return np.asarray(self) * o * 2


argument(
    "ndarray subclass", lambda a, b: np.array([a, b]).view(Sub), lambda s: float((s * s).sum())
)
argument(
    "ndarray subclass mul",
    lambda a, b: np.array([a, b]).view(Unit),
    lambda s: float((s * 3.0).sum()),
)
argument("matrix", lambda a, b: np.asmatrix([[a, b]]), lambda s: float((s * s.T)[0, 0]))
argument("masked", lambda a, b: np.ma.array([a, b], mask=[0, 1]), lambda s: float(s.sum()))
argument(
    "recarray",
    lambda a, b: np.rec.array([(a, b)], dtype=[("x", float), ("y", float)]),
    lambda s: float(s.x[0] * s.y[0]),
)
argument(
    "structured",
    lambda a, b: np.array([(a, b)], dtype=[("x", float), ("y", float)]),
    lambda s: float(s["x"][0] * s["y"][0]),
)
argument("object arr", lambda a, b: np.array([a, b], dtype=object), lambda s: float(s[0] * s[1]))
result("result Sub", lambda x: np.array([x * x, x]).view(Sub), size=1)
result("result memmap", lambda x: mkmm(x * x, x), size=1)
result("result matrix", lambda x: np.asmatrix([[x * x]]), size=1)
argument("partial twice", lambda a, b: functools.partial(mul, a, q=b), lambda g: g() * g())
argument(
    "partial loop",
    lambda a, b: functools.partial(mul, a, q=b),
    lambda g: sum([g() for i in range(3)]),
)


def deflt(a, b):
    def g(x, p=a, *, q=b):
        return p * x * q

    return g


argument("defaults twice", deflt, lambda g: g(2.0) * g(1.0))
argument("closure cells", clo, lambda g: g(2.0) * g.__closure__[0].cell_contents)


class Affine:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __call__(self, x):
        return self.a * x * self.b

    def m(self, x):
        return self(x)


argument("method mix", lambda a, b: Affine(a, b).m, lambda g: g(2.0) * g.__self__.a)
argument(
    "two methods", lambda a, b: (lambda m: [m.m, m])(Affine(a, b)), lambda g: g[0](2.0) * g[1](2.0)
)


@programs.each
def test_like_python_or_refused(run, points, refused):
    programs.check(run, points, refused)


class Kept:
    def __init__(self, k):
        self.k = k
        self.items = [k]


class Slotted:
    __slots__ = ("items", "k")

    def __init__(self, k):
        self.k = k
        self.items = [k]


class Own(Kept):
    def __getstate__(self):
        asked.append("state")
        return {"k": self.k * 2, "items": [self.k]}

    def __setstate__(self, state):
        self.__dict__.update(state)


class Reduced(Kept):
    def __reduce__(self):
        return (Kept, (self.k * 3,))


class Asked(Kept):
    def __getattribute__(self, name):
        return 0.5 if name == "k" else object.__getattribute__(self, name)


asked = []


@pytest.mark.parametrize("kind", [Kept, Slotted, Own, Reduced, Asked])
def test_copies_of_objects_outside_have_the_derivatives_of_their_state(kind):
    thing = kind(2.0)

    def f(x):
        thing.k = x
        one, two = copy.copy(thing), copy.deepcopy(thing)
        held = object.__getattribute__
        return held(one, "k") * held(two, "k") ** 2 + held(two, "items")[0] * held(one, "items")[0]

    def plain(x):
        asked.clear()
        return f(x), [*asked]

    for on in (False, True):
        with jit(on):
            for x in (1.5, 2.5, 3.5):
                value, states = plain(x)
                slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
                asked.clear()
                assert value_and_grad(f)(x) == (value, pytest.approx(slope, rel=1e-6))
                assert asked == states


def test_functions_that_capture_one_another_are_arguments():
    def counting(function):
        def wrapper(x):
            wrapper.calls += 1
            return function(x)

        wrapper.calls = 0
        return wrapper

    def made(k):
        def even(n, x):
            return x * k if n <= 0 else odd(n - 1, x)

        def odd(n, x):
            return x * k * k if n <= 0 else even(n - 1, x)

        even.scale = 3.0
        return even

    for on in (False, True):
        with jit(on):
            for _ in range(3):
                value, back = pullback(lambda g, x: g(x), counting(lambda x: x * x), 1.5)
                assert (value, back(1.0)[1]) == (2.25, 3.0)
                value, back = pullback(lambda g, x: g(3, x) * g.scale, made(2.0), 1.5)
                gradient = {"k": 18.0, "odd": {"k": 18.0}, "scale": 6.0}
                assert (value, back(1.0)) == (18.0, (gradient, 12.0))
