"""Each construct of Python in a small differentiable function, compared with plain CPython."""

import abc
import bisect
import collections
import collections.abc
import contextlib
import copy
import dataclasses
import enum
import functools
import heapq
import itertools
import math
import operator
import sys
import types
import typing
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest

from helpers import Cases, check, check_raises
from wengert import grad, pullback, trace

case = Cases()


@case.each
def test_like_python(f, args, options):
    check(f, *args, **options)


@case.each
def test_trace_prints_the_same_twice(f, args, options):
    first = str(trace(f, *copy.deepcopy(args)))
    assert first == str(trace(f, *copy.deepcopy(args)))
    assert " at 0x" not in first


# ------------------------------------------------------------------------------------------- operators


@case(1.7, 0.6)
def arithmetic(x, y):
    return (x + y) * (x - y) / (x * y) - -x + +y


@case(7.3, 2.2)
def floor_and_remainder(x, y):
    return x // y + x % y * x


@case(-7.3, 2.2)
def remainder_of_negative(x, y):
    return x % y + divmod(x, y)[1] * 2 + divmod(x, y)[0]


@case(1.3, 2.1)
def powers(x, y):
    return x**y + x**3 + 2**x + pow(x, y) + x**-2 + x**0


@case(1.5)
def reflected(x):
    return 1 + x, 2 - x, 3 * x, 4 / x, 5**x, 7 // x, 8 % x


@case(1.5, 4)
def with_ints(x, n):
    return x * n + n / x + x**n - (n - 1) * (n // 3) + (n << 2) + (n & 6) + (n ^ 1) + (n | 8) + ~n


@case(1.5)
def with_bools(x):
    return (x > 1) * x + (x < 1) + True * x - False


@case(0.5, 2.0)
def compared(x, y):
    flags = [x < y, x <= y, x == y, x != y, x > y, x >= y, 0 < x < y < 3, 0 < x > y]
    return flags, sum(flags) * x


@case(0.5, 2.0)
def negated(x, y):
    return -x if not x > y else y, not x, not (not y)


@case(0.5)
def short_circuits(x):
    zero = x - x
    return (zero or x) * 2, zero and 1 / zero, x and zero, (x or 1 / zero) + 1, not zero and x


@case(2.0, 3.0)
def identity_tests(x, y):
    z = x
    assert z is x
    assert x is not y
    assert x is not None
    return z * y


@case(2.3)
def builtin_numbers(x):
    return (
        abs(-x),
        round(x * 1.234, 2) * 0 + x,
        float(x) * 3,
        complex(x, 1).real,
        int(x) * x,
        bool(x),
    )


@case(2.3)
def methods_of_float(x):
    return x.real * x, x.imag, x.conjugate(), x.is_integer()


@case(1.2 + 0.7j, 0.4 - 0.2j)
def complex_numbers(z, w):
    return z * w + z / w - z**2 + z.conjugate() * w.real + abs(z) * w.imag


@case(0.8, 1.9)
def matmul_operator(x, y):
    a = np.array([[x, y], [y, 1.0]])
    b = a
    b @= np.array([[1.0, x], [0.0, y]])
    return a @ b, b @ np.array([x, y])


@case(0.5)
def augmented(x):
    y = x
    y += x
    y -= 0.25
    y *= x
    y /= 3.0
    y **= 2
    z = y * 10
    z //= 2.0
    y %= 0.3
    return y, z


# ---------------------------------------------------------------------------------------- control flow


@case(0.7, 3.0)
def branches(x, y):
    if x > y:
        z = x
    elif x * 2 > y:
        z = y
    else:
        z = x * y
    return z if z > 1 else -z


@case(0.7)
def for_loop(x):
    total = 0.0
    for i in range(5):
        if i == 3:
            continue
        total += x * i
    else:
        total *= x
    return total


@case(0.7)
def for_break(x):
    for i in range(100):
        x = x * 1.5 + i
        if x > 10:
            break
    else:
        x = 0.0
    return x, i


@case(40.3)
def while_loop(x):
    n = 0
    while x > 1:
        x /= 2
        n += 1
    else:
        x += 10
    return x * n


@case(5.1)
def while_true(x):
    while True:
        x = x * 0.9
        if x < 2:
            return x * x


@case(0.4)
def nested_loops(x):
    total = x
    for i in range(3):
        for j in range(i, 4):
            if (i + j) % 2:
                total += x**i * j
            elif j == 3:
                break
    return total


@case(1.1, 2.2)
def early_return(x, y):
    for z in (x, y):
        if z > 2:
            return z * x
    return 0.0


@case(2.0)
def loop_over_everything(x):
    total = x
    for c in "abc":
        total += ord(c) * x
    for key, item in {"a": x, "b": 2.0}.items():
        total *= item + len(key)
    for i, item in enumerate([x, 3.0], 1):
        total += i * item
    for a, (b, c) in zip([1, 2], [(x, 1), (2, x)], strict=True):
        total += a * b * c
    for item in reversed([x, 1.0, x * x]):
        total = total / 2 + item
    for item in np.array([x, 2 * x]):
        total += item
    for row in np.array([[x, 1.0], [2.0, x]]):
        total += row[0] * row[1]
    return total


@case(3.0)
def asserts_and_deletes(x):
    y = x * 2
    assert y > x, "not so"
    del x
    items = [y, 1.0, y]
    del items[0]
    table = {"a": y, "b": 2.0}
    del table["b"]
    return sum(items) * table["a"]


@case(0.3, 4)
def argument_as_count(x, n):
    return sum(x * i for i in range(n)), [x] * n, x**n, list(range(n))[-1] * x


# ------------------------------------------------------------------------------------------- functions


def square(x):
    return x * x


def defaults(a, /, b=2.0, *args, c, d=4.0, **kwargs):
    return a * b + sum(args) * c - d * kwargs.get("e", 1.0)


@case(1.5, 0.5)
def all_kinds_of_arguments(x, y):
    rest = {"e": x}
    return (
        defaults(x, c=y),
        defaults(x, y, 3.0, x, c=y, **rest),
        defaults(*[x, y], *(y, y), **{"c": x}, d=y),
        defaults(*(x * i for i in range(3)), c=1.0),
    )


@case(1.5, keyword=0.5)
def keywords(x, *, keyword=1.0):
    return x * keyword


@case(1.5, 2.5, 3.5, a=0.5, b=1.0)
def gathers(*args, **kwargs):
    total = 1.0
    for item in args:
        total *= item
    for name, item in kwargs.items():
        total += item * len(name) * args[0]
    return total


@case(1.3)
def mutable_default(x, memo=()):
    def remember(y, held=[]):
        held.append(y)
        return sum(held)

    return remember(x) * remember(x * 2)


def power(x, n):
    if n == 0:
        return 1.0
    if n % 2:
        return x * power(x, n - 1)
    return square(power(x, n // 2))


@case(1.3, 11)
def recursion(x, n):
    return power(x, n)


def is_even(x, n):
    return x if n == 0 else is_odd(x * 1.1, n - 1)


def is_odd(x, n):
    return -x if n == 0 else is_even(x + 0.5, n - 1)


@case(1.3)
def mutual_recursion(x):
    return is_even(x, 7)


@case(0.5, 0.25)
def closures(x, y):
    def outer(a):
        def inner(b):
            return a * b + x

        return inner

    by_y = outer(y)
    return by_y(x) + by_y(2.0)


@case(0.5)
def nonlocal_variable(x):
    total = 0.0

    def add(y):
        nonlocal total
        total += y * x
        return total

    add(1.0)
    add(x)
    return total * add(2.0)


@case(0.5)
def recursive_closure(x):
    def fib(n):
        return x if n < 2 else fib(n - 1) + fib(n - 2) * x

    return fib(7)


@case(0.5, 1.5)
def lambdas(x, y):
    f = lambda a, b=y: a * b + x
    return f(2.0) + f(x, 1.0) + (lambda: x)() * (lambda *a: a[0])(y)


@case(0.5)
def late_binding(x):
    late = [lambda: x * i for i in range(3)]
    early = [lambda i=i: x * i for i in range(3)]
    return [f() for f in late], [f() for f in early]


@case(0.5)
def functions_in_tables(x):
    table = {"sin": math.sin, "square": square, "twice": lambda y: 2 * y}
    return sum(f(x) * len(name) for name, f in table.items())


@case(0.8)
def composition(x):
    def compose(*fs):
        return functools.reduce(lambda f, g: lambda y: f(g(y)), fs)

    return compose(math.sin, math.cos, square)(x)


def logged(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs) * 2

    return wrapper


@case(0.5)
def decorated(x):
    @logged
    @logged
    def f(y):
        return y * x

    return f(x + 1), f.__name__


@case(0.5)
def own_attributes(x):
    def f(y):
        f.count += 1
        f.last = y
        return y * f.count

    f.count = 0
    return f(x) + f(x) * f.last


@case(0.5)
def import_inside(x):
    import math as m
    from math import exp

    return m.sin(x) * exp(x)


@case(3.0)
def walrus(x):
    total = 0.0
    while (x := x - 0.7) > 0:
        total += (y := x * x) + y
    return total, [last := x, last * 2]


@case(2.0, 3.0)
def annotations(x: float, y: float = 1.0) -> float:
    z: float = x * y
    w: list[float]
    w = [z, x]
    return sum(w)


# -------------------------------------------------------------------------------------- comprehensions


@case(0.7, 1.9)
def comprehensions(x, y):
    squares = [x * i * i for i in range(5) if i % 2 == 0]
    table = {i: y * i for i in range(3)}
    pairs = [(a, b) for a in (x, y) for b in (1.0, 2.0) if a * b > 1]
    nested = [[x * j for j in range(i)] for i in range(4)]
    kinds = {round(i * 0.3) for i in range(10)}
    return sum(squares) * sum(table.values()), pairs, nested, len(kinds) * x


@case(0.7)
def comprehension_sees_scope(x):
    y = 2.0
    return [[x * y * z for z in (1.0, w)] for w in (x, y)]


@case(0.7)
def generator_expressions(x):
    squares = (i * x for i in range(4))
    first = next(squares)
    return sum(squares) + first, max(x * i for i in (1, 3, 2)), any(x > i for i in range(2))


@case(0.7)
def quantifiers(x):
    values = [x, 2 * x, 3.0]
    return all(v > 0 for v in values) * x, any(v > 2 for v in values), tuple(v * x for v in values)


# ------------------------------------------------------------------------------------------ generators


def geometric(x, n):
    term = 1.0
    for _ in range(n):
        yield term
        term *= x


def chained(x):
    yield x
    last = yield from summing(x)
    yield last * 10


def summing(x):
    total = 0.0
    while total < 3:
        total += x
        yield total
    return total * x


@case(0.65)
def generators(x):
    return (
        sum(geometric(x, 6)),
        list(chained(x)),
        [a - b for a, b in zip(geometric(x, 3), chained(x))],
    )


@case(0.6)
def sends(x):
    def averager():
        total, n, average = 0.0, 0, None
        while True:
            item = yield average
            total += item * x
            n += 1
            average = total / n

    mean = averager()
    next(mean)
    return mean.send(x), mean.send(2.0), mean.send(x * x)


@case(0.6)
def throws_and_closes(x):
    log = []

    def resilient():
        y = x
        try:
            while True:
                try:
                    yield y
                    y *= 2
                except ValueError as error:
                    y = error.args[0] * x
        finally:
            log.append(y)

    g = resilient()
    values = [next(g), next(g), g.throw(ValueError(x + 1)), next(g)]
    g.close()
    return values, log


@case(0.6)
def iterator_protocol(x):
    class Countdown:
        def __init__(self, start):
            self.left = start

        def __iter__(self):
            return self

        def __next__(self):
            if self.left < 0:
                raise StopIteration
            self.left -= 0.25
            return self.left * x

    it = iter(Countdown(x))
    return next(it), sum(it), next(it, -x), list(iter(Countdown(1.0)))


@case(0.6)
def iter_with_sentinel(x):
    items = [x, x * 2, 0, 3.0]
    return list(iter(lambda: items.pop(0), 0)), items


# ------------------------------------------------------------------------------------------ exceptions


class Failure(Exception):
    def __init__(self, amount):
        super().__init__("failure", amount)
        self.amount = amount


def risky(x):
    if x > 1:
        raise Failure(x * 2)
    return x


@case(1.5, 0.5)
def try_except(x, y):
    log = []
    total = 0.0
    for z in (x, y):
        try:
            total += risky(z)
        except Failure as error:
            total += error.amount * error.args[1]
            log.append(str(error.args[0]))
        else:
            total *= 2
        finally:
            log.append("done")
            total += z
    return total, log


@case(2.0)
def builtin_errors(x):
    total = x
    for action in (
        lambda: x / (x - x),
        lambda: [x][3],
        lambda: {"a": x}["b"],
        lambda: math.sqrt(-x),
        lambda: x + "a",
        lambda: x.missing,
        lambda: next(iter([])),
        lambda: int("q"),
    ):
        try:
            total += action()
        except (ZeroDivisionError, LookupError) as error:
            total *= 1 + len(error.args)
        except (ValueError, TypeError, AttributeError, StopIteration) as error:
            total += x * len(type(error).__name__)
    return total


@case(2.0)
def reraised(x):
    def inner(y):
        try:
            raise Failure(y)
        except Failure as error:
            raise ValueError(error.amount * y) from error

    try:
        inner(x)
    except ValueError as error:
        try:
            raise
        except ValueError as again:
            assert again is error
            return again.args[0] * again.__cause__.amount


@case(2.0)
def finally_wins(x):
    def f():
        try:
            return x
        finally:
            x_squared.append(x * x)

    x_squared = []

    def g():
        for i in range(3):
            try:
                if i == 1:
                    return x * i
            finally:
                x_squared.append(x + i)
        return None

    return f(), g(), x_squared


@case(2.0)
def exception_groups(x):
    total = 0.0
    try:
        raise ExceptionGroup("many", [ValueError(x), TypeError(x * 2), ValueError(3.0)])
    except* ValueError as group:
        for error in group.exceptions:
            total += error.args[0] * x
    except* TypeError as group:
        total *= group.exceptions[0].args[0]
    return total


# ------------------------------------------------------------------------------------ context managers


class Scaled:
    def __init__(self, scale):
        self.scale = scale
        self.log = []

    def __enter__(self):
        self.log.append(self.scale)
        return self.scale * 2

    def __exit__(self, kind, error, tb):
        self.log.append(kind and kind.__name__)
        return kind is ZeroDivisionError


@contextlib.contextmanager
def shifted(x):
    try:
        yield x + 1
    except ValueError:
        pass


@case(0.7)
def with_statements(x):
    manager = Scaled(x)
    with manager as y, shifted(y) as z:
        total = x * y * z
    with Scaled(total) as w:
        total += w
        total += w / (x - x)
        total = 0.0
    with shifted(x):
        raise ValueError
    with contextlib.suppress(KeyError):
        total += {}[x]
    return total, manager.log


@case(0.7)
def exit_stack(x):
    log = []
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(Scaled(x))
        b = stack.enter_context(shifted(a))
        stack.callback(log.append, a * b)
        stack.callback(lambda: log.append(b))
    return log


# --------------------------------------------------------------------------------------------- matching


@dataclasses.dataclass
class Circle:
    radius: float


@dataclasses.dataclass
class Box:
    width: float
    height: float


def area(shape):
    match shape:
        case Circle(radius=r):
            return math.pi * r * r
        case Box(w, h) if w == h:
            return w**2
        case Box(w, h):
            return w * h
        case {"kind": "triangle", "base": b, "height": h, **rest}:
            return b * h / 2 + len(rest)
        case [float() as x]:
            return x
        case [x, *others, y]:
            return x * y + area(others) if others else x * y
        case (1 | 2) as n:
            return n * 1.0
        case None | "nothing":
            return 0.0
        case _:
            return -1.0


@case(1.5, 2.5)
def matches(x, y):
    shapes = [
        Circle(x),
        Box(x, y),
        Box(y, y),
        {"kind": "triangle", "base": x, "height": y, "more": 1},
        [x],
        [x, y],
        (x, 2.0, 3.0, y),
        2,
        None,
        "nothing",
        object,
    ]
    return [area(shape) for shape in shapes]


@case(2.0)
def match_on_values(x):
    total = x
    for n in (0, 1, -1, 2.0, "a", True):
        match n:
            case 0:
                total += x
            case True:
                total *= x
            case -1 | 2:
                total -= x * n
            case str():
                total /= 2
    match x > 1:
        case True:
            return total * x
    return total


# --------------------------------------------------------------------------------- displays and strings


@case(1.0, 2.0)
def unpacking(x, y):
    a, b = x, y
    a, b = b, a
    first, *middle, last = [a, b, x * y, 4.0, a + b]
    (c, (d, *e)), f = (x, (y, 1.0, x)), y
    many = [*middle, first, *(last, d)]
    table = {**{"a": a}, "b": b, **{"a": c}}
    return sum(many), table, {*()}, (*e, f), a


@case(1.5)
def strings(x):
    text = f"{x:.2f} {x!r:>8} {x=} {'%.3e' % x} {'{:g}'.format(x)} {str(x)} {x * 2:{8}.{3}}"
    return len(f"{x:.1f}") * x, text, "a" * int(x * 2.1), ",".join(f"{v}" for v in (x, 2.0))


@case(1.5)
def float_of_text(x):
    return float("2.5") * x + float(" -1e-3 ") + int("12", 3)


@case(1.5)
def list_methods(x):
    a = [x, 3.0]
    a.append(x * 2)
    a.extend([1.0, x])
    a.insert(1, x + 1)
    a += (x,)
    a[2:4] = [x * x, 0.5, x]
    a[::3] = [a[0] * 2] * len(a[::3])
    b = a.copy()
    b.reverse()
    b.sort()
    last = b.pop()
    b.remove(1.0)
    return a, b, last * b.pop(0), a.index(1.0), a.count(x), a * 2 + b, [x] in [[x], [2.0]], x in a


@case(1.5)
def dict_methods(x):
    d = {"a": x, "b": 2.0}
    d["c"] = x * 2
    d["a"] += x
    d.update({"d": x}, e=x + 1)
    d.setdefault("f", x * 3)
    d |= {"g": x}
    popped = d.pop("b") * d.get("zz", x) + d.popitem()[1]
    merged = d | {"a": 1.0}
    keys = dict.fromkeys(["p", "q"], x)
    return popped, sum(merged.values()), keys, dict(zip("ab", (x, 2.0), strict=True)), "a" in d


@case(1.5)
def sets_and_keys(x):
    seen = {x, 2.0, 2.0}
    table = {x: "first", 2.0: "second"}
    return len(seen) * x, table[x], x in seen, 1.5 in seen, seen | {3.0}


@case(1.5, 2.5)
def tuples_compared(x, y):
    pairs = [(y, 1), (x, 2), (x, 1)]
    return sorted(pairs), max(pairs)[0] * x, (x, y) < (y, x), (x,) + (y,) * 2, [x, y] == [1.5, 2.5]


# ---------------------------------------------------------------------------------------------- builtins


@case(0.5, 2.0, -1.0)
def builtins_over_lists(x, y, z):
    values = [x, y, z]
    return (
        sum(values),
        sum(values, x),
        min(values) * max(values),
        max(x, y, z) + min(x, y),
        max(values, key=abs) * min(values, key=lambda v: (v - 1) ** 2),
        max([], default=x),
        sorted(values)[0] * x,
        sorted(values, key=lambda v: -v, reverse=True),
        list(map(square, values)),
        list(map(operator.mul, values, [x, x, x])),
        list(map(math.sin, values)),
        list(filter(lambda v: v > 0, values)),
        list(filter(None, [0.0, x])),
        [a * b for a, b in zip(values, reversed(values), strict=True)],
        [i * v for i, v in enumerate(values, start=2)],
        len(values) * x,
        list(reversed(values))[1:],
        tuple(values),
        all(values),
        any(v > 3 for v in values),
    )


@case(0.5, 2.3)
def builtins_on_numbers(x, y):
    return (
        abs(x - y),
        pow(x, 2),
        pow(x, y),
        divmod(y, x + 0.1),
        round(x * y, 5) * 0,
        math.fsum([x, y, x]),
        math.hypot(x, y),
        math.prod([x, y, x]),
        math.dist([x, y], [1.0, x]),
        int(y) * x,
        isinstance(x, float) * x,
        hash(x) == hash(0.5),
        repr(x),
        callable(x),
        type(x) is float,
        type(x).__name__,
    )


@case(0.5)
def attributes_by_name(x):
    class Thing:
        pass

    thing = Thing()
    setattr(thing, "a", x)
    thing.__dict__["b"] = x * 2
    total = (
        getattr(thing, "a") * getattr(thing, "missing", x) + hasattr(thing, "b") * vars(thing)["b"]
    )
    delattr(thing, "a")
    return total, hasattr(thing, "a"), sorted(vars(thing))


def kind(x):
    if isinstance(x, bool):
        return 0.0
    if isinstance(x, int | float):
        return x * 2
    if isinstance(x, list | tuple):
        return sum(kind(item) for item in x)
    if isinstance(x, np.ndarray):
        return x.sum()
    if isinstance(x, collections.abc.Mapping):
        return kind(list(x.values()))
    return 1.0


@case(0.5)
def dispatch_on_type(x):
    return kind([x, True, 3, (x, [x]), np.array([x, 1.0]), {"a": x}, "text"])


@case(0.5)
def dispatch_on_exact_type(x):
    table = {float: lambda v: v * 3, int: lambda v: v + 1, list: len}
    return [table[type(v)](v) * x for v in (x, 2, [x])], type(x)(2) * x, x.__class__ is float


@case(0.5, 3.0)
def slices(x, y):
    a = [x, y, x * y, 1.0, y]
    s = slice(1, None, 2)
    return a[1:3], a[::-1], a[s], a[-2:], sum(a[:2]), s.indices(5)


@case(2.7)
def number_as_index(x):
    a = [1.0, x, x * x]
    return a[int(x)] * a[round(x) - 2], a[math.floor(x) - 1], a[-1]


# ----------------------------------------------------------------------------------------------- classes


class Vector:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __radd__(self, other):
        return self if other == 0 else NotImplemented

    def __mul__(self, other):
        if isinstance(other, Vector):
            return self.x * other.x + self.y * other.y
        return Vector(self.x * other, self.y * other)

    __rmul__ = __mul__

    def __neg__(self):
        return self * -1

    def __iadd__(self, other):
        self.x += other.x
        self.y += other.y
        return self

    def __abs__(self):
        return (self * self) ** 0.5

    def __eq__(self, other):
        return isinstance(other, Vector) and (self.x, self.y) == (other.x, other.y)

    def __lt__(self, other):
        return abs(self) < abs(other)

    def __hash__(self):
        return hash((self.x, self.y))

    def __bool__(self):
        return abs(self) > 1

    def __len__(self):
        return 2

    def __getitem__(self, i):
        return (self.x, self.y)[i]

    def __setitem__(self, i, value):
        if i == 0:
            self.x = value
        else:
            self.y = value

    def __contains__(self, item):
        return item == self.x or item == self.y

    def __iter__(self):
        yield self.x
        yield self.y

    def __call__(self, t):
        return self.x * t + self.y

    def __repr__(self):
        return f"<{self.x}, {self.y}>"

    def __format__(self, spec):
        return f"[{self.x:{spec}}]"

    def __float__(self):
        return float(self.x)

    def __index__(self):
        return 1

    def __matmul__(self, other):
        return self.x * other.y - self.y * other.x


@case(0.5, 1.5)
def operator_methods(x, y):
    a, b = Vector(x, y), Vector(y, 2.0)
    c = a + b * 2 + 3 * a
    c += -b
    c[0] = c[1] * x
    first, second = c
    return (
        c * a,
        abs(c),
        c(x),
        c[0] + c[1],
        a < b,
        a == Vector(x, y),
        x in a,
        bool(a) * x,
        (1.0 if a else 2.0) * x,
        len(a),
        first * second,
        sum([a, b]) * a,
        max(a, b) * a,
        sorted([b, a])[0] * a,
        [x, y][a],
        f"{a!r} {a:.2f} {a}",
        a @ b,
        float(a),
        sum(v for v in a),
        [*a],
        a != b,
    )


class Temperature:
    """A property, a setter, a class attribute, a class method, a static method."""

    scale = 1.8
    made = 0

    def __init__(self, celsius):
        self._celsius = celsius

    @property
    def fahrenheit(self):
        return self._celsius * self.scale + 32

    @fahrenheit.setter
    def fahrenheit(self, value):
        self._celsius = (value - 32) / self.scale

    @classmethod
    def boiling(cls, factor):
        return cls(100 * factor)

    @staticmethod
    def mean(a, b):
        return (a + b) / 2

    @functools.cached_property
    def kelvin(self):
        return self._celsius + 273.15


@case(21.0)
def properties(x):
    t = Temperature(x)
    before = t.fahrenheit
    t.fahrenheit = before * 2
    t.fahrenheit += x
    k = t.kelvin
    return t._celsius * before, k * t.kelvin, Temperature.boiling(x)._celsius, t.mean(x, before)


class Base:
    factor = 2.0

    def __init__(self, x):
        self.x = x

    def value(self):
        return self.x * self.factor

    def __getattr__(self, name):
        if name.startswith("times_"):
            return self.x * int(name[6:])
        raise AttributeError(name)


class Left(Base):
    factor = 3.0

    def value(self):
        return super().value() + self.x


class Right(Base):
    def __init__(self, x, extra=1.0):
        super().__init__(x * 2)
        self.extra = extra

    def value(self):
        return super(Right, self).value() * self.extra


class Both(Left, Right):
    def __init__(self, x):
        super().__init__(x)
        self.extra *= x

    def value(self):
        return super().value() + Base.value(self)


@case(1.2)
def inheritance(x):
    b = Both(x)
    missing = getattr(b, "other", x)
    return (
        b.value(),
        Left(x).value(),
        Right(x, x).value(),
        b.times_3 * x,
        missing,
        isinstance(b, Right),
    )


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


class Clamped:
    """A descriptor."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name) * 2

    def __set__(self, obj, value):
        setattr(obj, self.name, min(value, 10.0))


class Held:
    level = Clamped()

    def __init__(self, level):
        self.level = level


class Registry(type):
    def __call__(cls, *args):
        obj = super().__call__(*args)
        obj.made_by = cls.__name__
        return obj


class Registered(metaclass=Registry):
    def __init__(self, x):
        self.x = x * 2


class Celsius(float):
    def warmer(self, by):
        return Celsius(self + by)


class Singleton:
    def __new__(cls, x):
        self = super().__new__(cls)
        self.made = x
        return self

    def __init__(self, x):
        self.x = x * self.made


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        raise NotImplementedError


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2


class Colour(enum.Enum):
    RED = 1.5
    BLUE = 2.5

    def tint(self, x):
        return self.value * x


@case(1.2)
def kinds_of_classes(x):
    s = Slotted(x, 2.0)
    s.b *= s.a
    h = Held(x)
    h.level = h.level + 1
    h.level += 0.5
    r = Registered(x)
    return (
        s.a * s.b,
        h.level,
        r.x * len(r.made_by),
        Singleton(x).x,
        Square(x).area(),
        Colour.RED.tint(x) + Colour["BLUE"].value * x,
        Colour(1.5) is Colour.RED,
    )


@case(1.2)
def local_classes(x):
    class Linear:
        slope = x * 2

        def __init__(self, shift):
            self.shift = shift

        def __call__(self, y):
            return self.slope * y + self.shift

        @property
        def twice(self):
            return Linear(self.shift * 2)

    class Affine(Linear):
        def __call__(self, y):
            return super().__call__(y) + x

    return Linear(x)(3.0) + Affine(1.0)(x) + Affine(x).twice(1.0)


@dataclasses.dataclass
class Point:
    x: float
    y: float = 1.0
    tags: list = dataclasses.field(default_factory=list)
    norm: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.norm = math.hypot(self.x, self.y)


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    x: float
    y: float

    def scaled(self, by):
        return dataclasses.replace(self, x=self.x * by)


@case(3.0, 4.0)
def dataclass_instances(x, y):
    p = Point(x, y, tags=[x])
    q = Point(y)
    p.tags.append(q.norm)
    f = Frozen(x, y).scaled(y)
    return (
        p.norm * q.norm,
        sum(p.tags),
        dataclasses.asdict(q),
        dataclasses.astuple(f),
        f < Frozen(x, x),
        f == Frozen(12.0, 4.0),
        [field.name for field in dataclasses.fields(p)],
        f,
        repr(f),
    )


Pair = namedtuple("Pair", "first second", defaults=(2.0,))


class Triple(typing.NamedTuple):
    a: float
    b: float
    c: float = 0.5

    def total(self):
        return self.a + self.b * self.c


@case(3.0, 4.0)
def namedtuples(x, y):
    p = Pair(x, y)
    q = p._replace(first=p.second * p.first)
    a, b = q
    t = Triple(a, c=x, b=Pair(y).second)
    return q, t.total(), p._asdict(), Pair._make([x, a])[1], t._fields, b


# ----------------------------------------------------------------------------------- the standard library


@functools.lru_cache(maxsize=None)
def cached_square(x):
    return x * x


@functools.singledispatch
def size(x):
    return 0.0


@size.register
def _(x: float):
    return x * 2


@size.register(list)
def _(x):
    return sum(size(item) for item in x)


@functools.total_ordering
class Version:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x

    def __lt__(self, other):
        return self.x < other.x


@case(0.6, 1.4)
def functools_(x, y):
    add = functools.partial(operator.add, x)
    scale = functools.partial(lambda a, b, c=1.0: a * b * c, y, c=x)
    by_key = sorted([x, y, 1.0], key=functools.cmp_to_key(lambda a, b: (a < b) - (a > b)))
    return (
        add(y),
        scale(2.0),
        functools.reduce(operator.mul, [x, y, x]),
        functools.reduce(lambda a, b: a * 2 + b, [x, y], 1.0),
        cached_square(x) + cached_square(x),
        size([x, [y], "a"]),
        Version(x) >= Version(y),
        max(Version(x), Version(y)).x * x,
        by_key,
    )


@case(0.6, 1.4)
def itertools_(x, y):
    values = [x, y, 2.0]
    return (
        list(itertools.accumulate(values)),
        list(itertools.accumulate(values, operator.mul)),
        list(itertools.accumulate(values, lambda a, b: a * b + x, initial=y)),
        list(itertools.chain(values, [x], itertools.repeat(y, 2))),
        list(itertools.chain.from_iterable([values, values])),
        [a * b for a, b in itertools.product(values, repeat=2)],
        [a * b - c for a, b, c in itertools.permutations(values)],
        [a + b for a, b in itertools.combinations(values, 2)],
        [a - b for a, b in itertools.pairwise(values)],
        list(itertools.islice(itertools.cycle(values), 5)),
        [next(itertools.count(x, y)) for _ in range(2)],
        list(itertools.takewhile(lambda v: v < 1.5, values)),
        list(itertools.dropwhile(lambda v: v < 1, values)),
        list(itertools.starmap(operator.mul, [(x, y), (y, y)])),
        list(itertools.starmap(pow, [(x, 2), (y, x)])),
        list(itertools.zip_longest([x], values, fillvalue=y)),
        list(itertools.compress(values, [1, 0, x])),
        [(k, sum(g)) for k, g in itertools.groupby(values, key=lambda v: v > 1)],
        list(itertools.filterfalse(lambda v: v > 1, values)),
        [sum(part) for part in itertools.tee(values)],
    )


@case(0.6, 1.4)
def operator_(x, y):
    point = types.SimpleNamespace(a=x, b=types.SimpleNamespace(c=y))
    return (
        operator.mul(x, y),
        operator.truediv(x, y),
        operator.pow(x, y),
        operator.neg(x),
        operator.itemgetter(1, 0)([x, y]),
        operator.attrgetter("a", "b.c")(point),
        operator.methodcaller("conjugate")(x),
        operator.getitem({"a": x}, "a"),
        operator.lt(x, y),
        operator.iadd([x], [y]),
        operator.concat([x], [y]),
        operator.truth(x),
    )


@case(0.6, 1.4)
def copies(x, y):
    original = {"a": [x, {"b": y}], "p": Point(x, y), "v": np.array([x, y])}
    deep = copy.deepcopy(original)
    shallow = copy.copy(original)
    deep["a"][1]["b"] *= 2
    deep["v"][0] = 5.0
    shallow["p"].x = y
    shallow["a"] = [x]
    point = copy.copy(original["p"])
    point.y = 0.0
    return (
        deep["a"],
        original["a"],
        deep["p"].x,
        original["p"].x,
        deep["v"],
        original["v"] * 2,
        point.x,
    )


@case(0.6, 1.4)
def heaps_and_bisection(x, y):
    heap = []
    for item in (y, x, 1.0, x * y):
        heapq.heappush(heap, (item, item * 2))
    first = heapq.heappop(heap)
    knots = [0.0, x, y, 2.0]
    i = bisect.bisect(knots, 1.0)
    bisect.insort(knots, x * 2)
    items = [y, x, 3.0]
    heapq.heapify(items)
    return (
        first,
        heapq.nlargest(2, [x, y, 1.0]),
        heapq.nsmallest(1, items),
        knots[i] * x,
        knots,
        items,
    )


@case(0.6, 1.4)
def collections_(x, y):
    d = defaultdict(float)
    d["a"] += x
    d["b"] -= y * x
    lists = defaultdict(list)
    lists[1].append(x)
    q = deque([x, y], maxlen=3)
    q.append(x * y)
    q.appendleft(1.0)
    q.rotate(1)
    o = OrderedDict(a=x, b=y)
    o.move_to_end("a")
    c = Counter("abca")
    chain = ChainMap({"a": x}, {"a": 1.0, "b": y})
    return (
        d["a"] * d["b"] + d["c"],
        lists[1],
        sum(q) * q[0],
        q.pop(),
        list(o.items()),
        c["a"] * x,
        c.most_common(1)[0][1] * y,
        chain["a"] * chain["b"],
        collections.UserList([x, y])[0] * x,
    )


class Settings:
    def __init__(self, rate):
        self.rate = rate

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.rate = 0.0


@case(0.6)
def objects_in_loops(x):
    total = 0.0
    with Settings(x) as s:
        for i in range(3):
            s.rate *= 1 + i * x
            total += s.rate
    return total, s.rate


@case(0.9)
def numbers_of_numpy(x):
    a = np.float64(x)
    return a * x, float(a) * x, a + a, np.sin(a), np.float64(2.0) * x, x * np.float64(3.0), abs(-a)


@case(0.9, tol=1e-3)
def single_precision(x):
    b = np.float32(x)
    return b * b, float(b) * x, np.float32(2.0) * b, np.float64(b) * x


@case(np.float64(0.9), np.array(1.5), np.array([2.0]))
def scalars_of_numpy(x, y, z):
    return x * y, y * y, z * x, y[()] * x, z[0] * y, float(z[0]) * x, x.item() * y, z.item() + x


# ------------------------------------------------------------------------------------ not a gradient test


def test_integer_argument_has_a_gradient():
    for n in (3, -4, 10**20):
        value, back = pullback(lambda n: n * n + 2 * n, n)
        assert (value, type(value)) == (n * n + 2 * n, int)
        (dn,) = back(1.0)
        assert (dn, type(dn)) == (2.0 * n + 2, float)


def countdown(x, n):
    return x if n == 0 else countdown(x * 1.001, n - 1)


def test_recursion_as_deep_as_plain_python():
    depth = sys.getrecursionlimit() - 200
    check(countdown, 1.5, depth)


def forever(x):
    return forever(x + 1)


def test_endless_recursion():
    with pytest.raises(RecursionError):
        pullback(forever, 1.0)
    assert grad(square)(3.0) == 6.0


def raises_with_numbers(x, y):
    z = x * y
    if z > 1:
        raise Failure(z)
    return z


def raises_zero_division(x):
    y = x - x
    return 1.0 / y


def raises_in_callback(x):
    return sorted([x, 2.0], key=lambda v: 1 / (v - v))


def raises_from_generator(x):
    def g():
        yield x
        raise KeyError(x)

    return list(g())


def raises_through_finally(x):
    try:
        return math.log(-x)
    finally:
        x += 1


def raises_type_error(x):
    return x + [x]


def raises_not_enough(x):
    return square(x, x)


def raises_attribute(x):
    return x.nothing


def raises_in_constructor(x):
    return Failure()


def raises_by_assert(x):
    assert x < 0, f"{x} is not negative"


def raises_unbound(x):
    if x < 0:
        y = x
    return y


def raises_unpack(x):
    a, b = [x, x, x]
    return a * b


def raises_stop(x):
    return next(iter([]))


def raises_chained(x):
    try:
        raise ValueError(x)
    except ValueError as error:
        raise RuntimeError(x * 2) from error


def raises_system_exit(x):
    sys.exit(3)


def raises_overflow(x):
    return math.exp(x * 1000)


def raises_numpy_shape(x):
    return np.ones(3) * x + np.ones(4)


def raises_attribute_of_number(x):
    x.name = 1.0


def raises_attribute_of_dict(x):
    {"a": x}.b = x


def raises_attribute_of_list(x):
    [x].b = x


def raises_attribute_of_slotted(x):
    Slotted(x, x).c = x


def raises_attribute_of_function(x):
    len.name = x


def raises_attribute_of_array(x):
    (V * x).name = 1.0


def raises_delete_of_array_item(x):
    a = V * x
    del a[0]


def raises_item_of_number(x):
    return x[0]


def raises_write_to_number(x):
    x[0] = 1.0


def raises_call_of_number(x):
    return x(1.0)


def raises_iteration_of_number(x):
    return [y for y in x]


def raises_len_of_number(x):
    return len(x)


def raises_float_of_text(x):
    return float("q") * x


def raises_number_as_index(x):
    return [1.0, 2.0][x]


def raises_number_as_range(x):
    return range(x)


def raises_ambiguous_truth(x):
    return 1.0 if V * x else 2.0


def raises_comparison(x):
    return x < "a"


def raises_wrong_keyword(x):
    return math.sin(x=x)


def raises_numpy_keyword(x):
    return np.sum(V * x, axes=0)


def raises_write_to_tuple(x):
    (x, 1.0)[0] = x


def raises_numpy_type(x):
    return np.sin("a") * x


def raises_matrix_shape(x):
    return (V * x) @ np.ones((2, 2))


def raises_singular(x):
    return np.linalg.inv(np.zeros((2, 2)) * x)


def raises_readonly(x):
    a = np.broadcast_to(V, (2, 3))
    a[0] = x


def raises_bad_reshape(x):
    return (V * x).reshape(2, 2)


def raises_broadcast_into(x):
    a = V * x
    a += np.ones((2, 3))


def raises_set_sequence(x):
    a = V * x
    a[0] = [x, x]


def raises_frozen(x):
    Frozen(x, x).x = 2.0


def raises_abstract(x):
    return Shape()


def raises_key(x):
    return {"a": x}["b"]


def raises_pop(x):
    return [].pop()


def raises_generator_thrown(x):
    def g():
        yield x
        raise Failure(x * 2)

    for y in g():
        pass


def raises_numpy_index(x):
    return np.array([x, 1.0])[5]


V = np.array([0.5, -1.2, 2.0])
RAISING = [f for name, f in list(globals().items()) if name.startswith("raises_")]


@pytest.mark.parametrize("f", RAISING, ids=lambda f: f.__name__)
def test_exceptions_reach_the_caller(f):
    check_raises(f, 1.5)
    assert grad(square)(3.0) == 6.0


def test_exception_carries_plain_numbers():
    error = check_raises(raises_with_numbers, 2.0, 3.0)
    assert type(error.amount) is float


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"square\(\) missing 1 required positional argument: 'x'"):
        pullback(square)
    with pytest.raises(TypeError, match=r"square\(\) got an unexpected keyword argument 'y'"):
        pullback(square, 1.0, y=2.0)
