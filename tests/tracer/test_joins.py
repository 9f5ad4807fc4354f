"""Forks and joins: every way is told where it begins and ends, and gets the values of its variables through hooks."""

# ruff: noqa: E402, F821, F841, SIM102, SIM103, SIM108, SIM114, SIM208, SIM210

from __future__ import annotations

import importlib
import math
import sys
import types
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_rewrite import Transparent, twin

from wengert.tracer.cycles import Loop
from wengert.tracer.joins import UNBOUND, Fork, assigned_outside, names_of
from wengert.tracer.rewrite import instrument


class Folding(Transparent):
    """Hooks that give back what they get, and keep account of what is open in each frame."""

    folds = True

    def __init__(self):
        super().__init__()
        self.open = {}
        self.seen = Counter()
        self.births = []
        self.given = []

    def scopes(self):
        """The loops and forks that are open in the frame that calls a hook, outer ones first."""
        return self.open.setdefault(sys._getframe(2), [])

    def handed(self, names, values):
        """A hook has been given exactly the values of these variables."""
        frame = sys._getframe(2)
        known, code = frame.f_locals, frame.f_code
        assert len(names) == len(values)
        for i, value in zip(names, values):
            assert known[names_of(code)[i]] is value
        self.given.append(values)

    def loop(self, site, loop):
        count = len(loop.carried)

        def hook(*values):
            names = *loop.carried, *loop.looked
            self.handed(names, values if names else ())
            scopes = self.scopes()
            if loop in scopes:
                assert scopes[-1] is loop
            else:
                scopes.append(loop)
            return values[0] if count == 1 else values[:count]

        return hook

    def leave(self, site, loops, names, exit, pushed):
        assert {*names} == {i for loop in loops for i in loop.left[exit]}

        def hook(*values):
            scopes = self.scopes()
            self.handed(names, values[pushed:] if names else ())
            for loop in loops:
                if loop in scopes:
                    assert scopes.pop() is loop
                    self.seen["left"] += 1
            return values[0] if len(values) == 1 else values

        return hook

    def fork(self, site, fork):
        def hook(nothing):
            scopes = self.scopes()
            assert fork not in scopes
            scopes.append(fork)
            self.seen["fork"] += 1

        return hook

    def join(self, site, forks, names, pushed):
        assert {*names} == {i for fork in forks for i in fork.stored}

        def hook(*values):
            scopes = self.scopes()
            assert len(values) == (len(names) + pushed or 1)
            self.handed(names, values[pushed:] if names else ())
            while scopes and scopes[-1] in forks:
                scopes.pop()
                self.seen["join"] += 1
            assert not {*forks} & {*scopes}
            return values[0] if len(values) == 1 else values

        return hook

    def caught_here(self, site, index, region, names):
        def hook(error, *values):
            assert isinstance(error, BaseException)
            scopes = self.scopes()
            self.handed(names, values)
            while scopes and self.begin(scopes[-1]) in region:
                scopes.pop()
            assert not [x for x in scopes if self.begin(x) in region]
            self.seen["caught"] += 1
            return values[0] if len(values) == 1 else values

        return hook

    @staticmethod
    def begin(scope):
        return scope.head if isinstance(scope, Loop) else scope.index

    def cell(self, site):
        return lambda value: SimpleNamespace(value=value)

    def load_cell(self, site, name):
        check = assigned_outside(name)
        return lambda held: check(held.value if type(held) is SimpleNamespace else held)

    def store_cell(self, site):
        def hook(held, x):
            held.value = x
            self.seen["stored"] += 1

        return hook

    def born(self, site):
        def hook(container):
            self.births.append(container)
            return container

        return hook

    def extended(self, site):
        def hook(other, items):
            assert any(items is x for x in self.births)
            self.seen["extended"] += 1
            items.extend(other)

        return hook

    def united(self, site):
        return lambda other, held: held.update(other)

    merged = merged_keywords = united

    def starred(self, site):
        return lambda items: items

    lazily = starred

    def text(self, site, how, has_spec):
        shown = {"": lambda x: x, "s": str, "r": repr, "a": ascii}[how]
        if has_spec:
            return lambda spec, x: format(shown(x), spec)
        return lambda x: format(shown(x), "")

    def converted(self, site, how):
        return {"s": str, "r": repr, "a": ascii}[how]

    def list_append(self, site):
        def hook(value, items):
            assert any(items is x for x in self.births)
            self.seen["append"] += 1
            items.append(value)

        return hook

    def unsure(self, site):
        return lambda nothing: self.seen.update(["unsure"])

    yielded = list_append

    def collected(self, site):
        def hook(items):
            self.seen["collected"] += 1
            return iter(items)

        return hook

    def ended(self):
        """After a run: what is still open are loops out of which a function has returned."""
        if not self.seen["caught"]:
            assert not [x for scopes in self.open.values() for x in scopes if isinstance(x, Fork)]
            assert self.seen["fork"] == self.seen["join"]


def outcome(fn, *args):
    try:
        return "returned", fn(*args)
    except Exception as error:
        return "raised", type(error), str(error)


def if_else(a, b):
    if a > b:
        x = a
    else:
        x = b
    return x * 2


def if_alone(a, b):
    x = 1
    if a > b:
        x = a
    return x + b


def elif_chain(a, b):
    if a == 0:
        x, y = 1, 2
    elif a == 1:
        x, y = b, 3
    elif a == 2:
        x = y = 4
    else:
        y = a
        x = b
    return x - y, x, y


def nested_ifs(a, b):
    if a > 0:
        if b > 0:
            x = 1
        else:
            x = 2
        y = x
    else:
        y = 3
        if b > 1:
            y += 4
    return y


def one_raises(a, b):
    if a > 1:
        if b > 1:
            raise ValueError(a)
        x = 1
    else:
        x = 2
    return x


def unbound_on_one_way(a, b):
    if a > 0:
        x = b
    y = a
    if a > 0:
        y += x
    return y


def early_return(a, b):
    if a == 1:
        return b
    if b == 1:
        x = 2
    else:
        x = 3
    if x > a:
        return x
    return a


def conjunction(a, b):
    if a and b:
        x = 1
    else:
        x = 2
    return x, a and b, a and b and 7, not (a and b)


def disjunction(a, b):
    if a or b:
        x = 1
    else:
        x = 2
    y = a or b
    z = 1 + (a or b or 5)
    return x, y, z, a and b or 3, (a or b) and 4


def comparison_or(a, b):
    return (a < b) or b, (a < b) and a, (a in (1, 2)) or b, (a is b) or a, (not a) or b


def ternaries(a, b):
    x = a if a > b else b
    y = 1 + (a if a else (b if b else 7))
    return x, y, [a if b else 1, 2 if a else b], (a if a < b else -a) + (b if b < a else -b)


def ternary_of_calls(a, b):
    return (min if a < b else max)(a if a else 2, b if b else 3, key=(abs if a else None))


def ternary_in_condition(a, b):
    if a < b if a else b > 1:
        return 1
    return 2


def chained(a, b):
    x = 0 <= a < b
    if 0 < a <= b < 3:
        y = 1
    else:
        y = 2
    return x, y, a < b < 3 < 4, 1 if a < b < 2 else 0


def none_tests(a, b):
    c = None if a > 1 else a
    d = 1 if c is None else c
    if c is not None:
        d += b
    return c, d


def negations(a, b):
    if not a:
        x = 1
    else:
        x = not b
    return x, a not in (b, 1), a is not b


def walrus(a, b):
    x = 0
    if (y := a + b) > 2:
        x = y
    z = (w := a) if a > 1 else (w := b)
    return x, y, z, w


def while_break(a, b):
    n, x = 0, 1
    while n < 5:
        n += 1
        if n == a:
            continue
        if n > b + 2:
            break
        x += n
    else:
        x = -x
    return n, x


def while_true(a, b):
    x = a
    while True:
        if x > 10:
            break
        if x % 2:
            x += 3
        else:
            x += b + 1
    return x


def if_before_while(a, b):
    x = 0
    if a:
        x = b
    while x < 3:
        if x == b:
            x += 2
        x += 1
    return x


def while_return(a, b):
    while True:
        a += 1
        if a % 3 == b:
            return a
        if a > 8:
            return -1


def for_else(a, b):
    total, last = 0, 0
    for i in range(5):
        if i == a:
            last = i
        elif i == b:
            continue
        elif i > a + b:
            break
        total += i if i > 1 else -i
    else:
        total = -total
    return total, last


def nested_loops(a, b):
    found = 0
    for i in range(a + 1):
        for j in range(b + 1):
            if (i + j) % 3 == 2:
                found += 1
                break
            if j > i:
                continue
            found += 10
        else:
            found += 100
        if found > 200:
            break
    return found


def loop_in_way(a, b):
    x = 0
    if a:
        for i in range(b):
            if i == 1:
                break
            x += i
    else:
        x = 5
    return x


def last_of_loop(a, b):
    for i in range(a):
        x = i
    return x if a else b


def carried_unbound(a, b):
    for i in range(a + 1):
        if i > 0:
            y = x + i
        x = i
        if i > b:
            break
    return x


def try_in_loop(a, b):
    total = 0
    for i in range(4):
        try:
            if i == a:
                total += 1 // 0
            elif i == b:
                total += [][i]
            total += i
        except ZeroDivisionError:
            total += 10
            if total > 12:
                break
        except IndexError as error:
            total += len(str(error))
            continue
        else:
            total += 100
        finally:
            total += 1000
    return total


def loop_in_try(a, b):
    x = 0
    try:
        for i in range(3):
            for j in [1, 2]:
                if i == a:
                    if j > b:
                        x += j // 0
                x += 1
    except ZeroDivisionError:
        x = -x
    if x < 0:
        x -= 1
    return x


def return_in_try(a, b):
    x = 1
    if a:
        try:
            x = 7 // b
        except ZeroDivisionError:
            return x
    return x + 1


def finally_return(a, b):
    x = 0
    try:
        if a:
            x = 1
            return x // b
        x = 2
    except ZeroDivisionError:
        x = 3
    finally:
        x += 10 if b else 20
    return x


def unsure_in_handler(a, b):
    try:
        x = a
        y = x // b
    except ZeroDivisionError:
        return x
    return y


def exception_groups(a, b):
    x = y = 0
    for i in range(3):
        try:
            if i == a:
                raise ExceptionGroup("g", [ValueError(i), KeyError(b)] if b else [KeyError(b)])
            x += i
        except* ValueError as error:
            x += 10 if error.exceptions else 3
        except* KeyError:
            y = x if b > 1 else 5
            x += y
        x += 1
    return x, y


class Manager:
    def __init__(self, swallow):
        self.swallow = swallow

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return self.swallow


def with_block(a, b):
    x = 0
    with Manager(a > 1) as m:
        if b:
            x = 1
        for i in range(2):
            x += 3 // (b - i) if b else 1
    return x if m.swallow else -x


def list_comprehensions(a, b):
    x = 5
    s = [x + a for x in range(4) if x != b]
    t = [y if y > a else x for y in range(3) if y or b]
    if a:
        x = 6
    u = [[x * y for x in range(y)] for y in range(3) if y > 0]
    return x, s, t, u


def unbound_around_comprehension(a, b):
    s = [x for x in range(a)]
    if b:
        x = 1
    else:
        x = 2
    return s, x


def comprehension_in_loop(a, b):
    total = 0
    for i in range(3):
        values = [i * j for j in range(a) if j != b]
        total += sum(values)
        if total > 2:
            i = 7
        total += sum([i for i in (1, 2)]) + i
    return total


def other_comprehensions(a, b):
    d = {x: (x if x > a else b) for x in range(3) if x != b}
    s = {x % 2 for x in range(a + 2) if x or a}
    g = sum(x for x in range(4) if x > b)
    return d, s, g


def failing_comprehension(a, b):
    x = a
    try:
        y = [7 // x for x in (2, b, 3) if x > -1]
        x = y[0]
    except ZeroDivisionError:
        y = x
    return x, y


def literals(a, b):
    xs = [a, b, 3]
    ys = [1, 2, 3, 4]
    zs = [*xs, *ys, a, *(b, 1)]
    d = {"a": a, "b": b}
    e = {a: 1, b: 2, **d, **({} if a else {"c": 3})}
    f = {}
    f["x"] = max(*xs, b)
    return xs, ys, zs, d, e, f, [], [[a], [b] if b else []]


def deleted(a, b):
    x = a
    if b:
        x = 2
    y = x
    del x
    if a:
        x = 3
    else:
        x = 4
    return x, y


def deleted_on_one_way(a, b):
    x = a
    if b > 1:
        del x
    return x


def closures(a, b):
    x = a

    def inner():
        nonlocal x
        if b:
            x += 1
        else:
            x = 5
        return x

    return inner(), (lambda y: y if y > a else x)(b), x


def shared_argument(a, b):
    try:
        x = (lambda: a)() // b
    except ZeroDivisionError:
        x = a
    for i in range(2):
        x += a if i else b
    return x


def shared_in_comprehension(a, b):
    x = a
    if b:
        x = 7
    fs = [lambda: x for x in range(a)]
    if a:
        x += 1
    return x, [f() for f in fs]


def cells(a, b):
    x, total = a, 0
    f = lambda: x + y
    for y in range(b):
        if y % 2:
            x = x + y
        total += f()
    while x > 3:
        x -= 2
        g = lambda: (x, y)
        try:
            z = 7 // (x - a)
            h = lambda: z
        except ZeroDivisionError:
            x -= 1
            z = g()
            h = lambda: (x, z)
        total += len([h() for _ in range(x)])
    return total, x, f() if b else g, h()


def cells_in_comprehensions(a, b):
    w = a
    h = lambda: w
    x = [[h() + w for h in [lambda: w * b]] for w in range(b)]
    if a:
        w = 7
    y = [(lambda k=k: (k, w, h()))() for k in range(a) if k != b for h in [h if k else (lambda: k)]]
    z = [f() for f in [lambda: w for w in range(a) for _ in range(w)]]
    try:
        q = [1 // w for w in range(a, -1, -1)]
    except ZeroDivisionError:
        q = w, h()
    return x, y, z, q, w, h()


def cell_without_a_value(a, b):
    def later():
        return x + y

    for x in range(a):
        if x == b:
            del x
            break
    if b:
        y = 1
    try:
        return later()
    except NameError as error:
        first = str(error)
        x = y = 2
        return first, later(), (lambda: error.args)()


def generator_expressions(a, b):
    x = 1
    s = sum(i * x for i in range(a))
    if a:
        x = 3
    t = sorted((i * x % 4 for i in range(a) if i != b for _ in range(i)), reverse=True)
    u = max((sum(i * j for j in range(i + b)) for i in range(a + 1)), default=x)
    later = (i * x for i in range(b))
    x = 5
    v = (
        [*later],
        *(x + i for i in range(2)),
        dict((i, x) for i in range(b)),
        ",".join(str(i) for i in range(a)),
    )
    w = (
        any(i > b for i in range(a)),
        all(i < b for i in range(a)),
        tuple(i for i in range(a) if i != 1),
    )
    y = [list(i + k for i in (j for j in range(k))) for k in range(b)]
    try:
        z = math.fsum(1 / (i - 2) for i in range(a))
    except ZeroDivisionError:
        z = sum(x for x in [1, 2])
    return s, t, u, v, w, y, z, sum((lambda: i)() for i in range(b))


def generators(a, b):
    def numbers(n):
        for i in range(n):
            if i != a:
                yield i if i > b else -i
        try:
            yield 7
        finally:
            n = 0

    return list(numbers(4))


def matching(a, b):
    match (a, b):
        case (0, y):
            x = y
        case (1, 1 | 2):
            x = 5
        case (x, 0) if x > 1:
            x += 1
        case [_, *rest]:
            x = rest
    match {"a": a}:
        case {"a": 0}:
            y = 1
        case {"a": n, **rest}:
            y = n
        case _:
            y = 3
    match a:
        case 1:
            z = 1
        case int(q):
            z = q
    return x, y, z


def asserting(a, b):
    assert a < 3, "too much"
    if b:
        assert a != 1
        x = 1
    else:
        x = 2
    return x


def many_variables(a, b):
    c = d = e = f = g = h = i = j = 0
    if a > b:
        c, d, e, f, g, h, i, j = range(8)
    elif a:
        j, i, h, g, f, e, d, c = range(8)
    return [c, d, e, f, g, h, i, j], c + (d if a else e) * (f or (g and h) or i)


def formatted(a, b):
    return f"{a if a > b else b}:{a or b:>{5 if a else 7}}"


FUNCTIONS = [
    x for x in [*globals().values()]
    if isinstance(x, types.FunctionType) and x.__code__.co_varnames[:2] == ("a", "b")
]  # fmt: skip


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_every_way_opens_and_closes(fn):
    hooks = Folding()
    folded = twin(fn, hooks)
    for a in range(4):
        for b in range(4):
            hooks.open.clear()
            hooks.seen.clear()
            hooks.births.clear()
            hooks.given.clear()
            expected = outcome(fn, a, b)
            assert outcome(folded, a, b) == expected
            if expected[0] == "returned":
                hooks.ended()


def made(name, monkeypatch, hooks=None):
    """A module of the standard library, made anew from its source: with ``hooks``, every function is a twin."""
    if name in ("bisect", "heapq", "statistics"):
        monkeypatch.setitem(sys.modules, f"_{name}", None)  # the same in C
    path = importlib.import_module(name).__file__
    with open(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    module = types.ModuleType(f"made_{name}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses and enums ask for it
    exec(code if hooks is None else instrument(code, hooks), module.__dict__)
    return module


def statistics_of(module):
    data = [3.5, 1.25, 8.0, -2.0, 8.0]
    return [
        getattr(module, name)(data)
        for name in (
            "mean",
            "median",
            "stdev",
            "mode",
            "fmean",
            "quantiles",
            "median_grouped",
            "pvariance",
        )
    ] + [
        outcome(module.mean, []),
        module.NormalDist(1, 2).cdf(1.5),
        module.linear_regression(data, data[::-1]),
    ]


def heaps(module):
    heap = [5, 3, 8, 1, 9, 2]
    module.heapify(heap)
    module._heapify_max(other := [2, 3, 1]) if hasattr(module, "_heapify_max") else other
    return (
        [module.heappop(heap) for _ in range(3)],
        module.nlargest(2, [4, 8, 1], key=lambda x: -x),
        module.nsmallest(2, "hello"),
        list(module.merge([1, 4], [2, 3], reverse=False)),
    )


def bisections(module):
    xs = [1, 2, 2, 5]
    return [
        module.bisect_left(xs, 2),
        module.bisect_right(xs, 2, 1),
        outcome(module.bisect, xs, 2, -1),
    ]


def fractions_of(module):
    f = module.Fraction
    return [
        str(x) for x in (
            f("3/7") + f(1.5), f("-1.25e2"), f(7, 21) ** 2, f(22, 7).limit_denominator(3), round(f(7, 2)),
            outcome(f, 1, 0), f(3, 4) < 0.8, hash(f(1, 3)), f(1, 3) % f(1, 5),
        )
    ]  # fmt: skip


def wrapped(module):
    text = "the quick brown fox  jumps over-the lazy dog, antidisestablishmentarianism\n\tin a line"
    return [
        module.wrap(text, 12), module.fill(text, 20, initial_indent="* ", subsequent_indent="  "),
        module.shorten(text, 30), module.dedent("  a\n    b\n"), module.indent("a\n\nb", "> "),
    ]  # fmt: skip


def decimals(module):
    d = module.Decimal
    x = d("2.5") ** 3 / d(7) - d("1e-5")
    return [
        str(v)
        for v in (
            x,
            x.sqrt(),
            x.quantize(d("0.01")),
            d(2).ln(),
            f"{x:+.3f}",
            outcome(d, "x"),
            d(3) % d(2),
        )
    ]


def templates(module):
    return [
        str(module.Template("$a and ${b}").substitute(a=1, b=2)),
        outcome(module.Template("$").substitute),
        module.capwords("a bc d"),
        module.Formatter().format("{0:>{1}} {x[0]}", 3, 5, x=[4]),
    ]


PROGRAMS = {
    "statistics": statistics_of, "heapq": heaps, "bisect": bisections, "fractions": fractions_of, "textwrap": wrapped,
    "_pydecimal": decimals, "string": templates,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_modules_work_as_ever(name, monkeypatch):
    expected = PROGRAMS[name](made(name, monkeypatch))
    hooks = Folding()
    assert repr(PROGRAMS[name](made(name, monkeypatch, hooks))) == repr(expected)
    assert hooks.seen["fork"]


@pytest.mark.parametrize(
    "name",
    ["argparse", "ast", "asyncio.base_events", "difflib", "inspect", "json.decoder", "typing"],
)
def test_modules_are_instrumented(name):
    path = importlib.import_module(name).__file__
    with open(path) as file:
        instrument(compile(file.read(), path, "exec", dont_inherit=True), Folding())


class Giving(Folding):
    """Hooks under which generators run at once."""

    runs_generators = True

    def give(self, site):
        return lambda x: self.seen.update(["give"])

    def give_all(self, site):
        def hook(x):
            self.seen["give"] += len(list(x))
            return iter(())

        return hook


@pytest.mark.parametrize("name", ["argparse", "ast", "difflib", "heapq", "typing"])
def test_modules_are_instrumented_with_generators(name):
    with open(importlib.import_module(name).__file__) as file:
        instrument(compile(file.read(), name, "exec", dont_inherit=True), Giving())


def test_a_generator_that_runs_at_once():
    def f(a, b):
        for k in range(a):
            if k != b:
                yield k
            yield from [k] * b
        return a

    for a in range(4):
        for b in range(3):
            hooks = Giving()
            assert twin(f, hooks)(a, b) == a
            assert hooks.seen["give"] == a - (b < a) + a * b


class Failing(Folding):
    """Hooks of which one kind raises an error in one line."""

    def __init__(self, kind, line):
        super().__init__()
        self.kind, self.line = kind, line

    def __getattribute__(self, name):
        made = super().__getattribute__(name)
        if name != object.__getattribute__(self, "kind"):
            return made

        def make(site, *details):
            hook = made(site, *details)
            return self.fail if site.lineno == self.line else hook

        return make

    def fail(self, *values):
        raise ZeroDivisionError(self.kind)


def guarded(a, b):
    x = y = 0
    try:
        x = 1 if a else 2
        for i in range(2):
            y += i
        x += 1
        z = [x]
        z = [*z, *[q for q in range(3)]]
    except ZeroDivisionError as error:
        return str(error), x, y
    return z


FIRST = guarded.__code__.co_firstlineno


@pytest.mark.parametrize(
    "kind, line, x, y",
    [
        ("fork", 3, 0, 0),
        ("join", 3, 0, 0),
        ("loop", 4, 1, 0),
        ("leave", 6, 1, 1),
        ("born", 7, 2, 1),
        ("extended", 8, 2, 1),
        ("list_append", 8, 2, 1),
    ],
)
def test_what_a_hook_raises_goes_where_the_instruction_would(kind, line, x, y):
    assert twin(guarded, Failing(kind, FIRST + line))(1, 2) == (kind, x, y)


class Listing(Folding):
    """Hooks that keep the forks, and the names that are handed over at joins, exits and handlers."""

    def __init__(self):
        super().__init__()
        self.forks, self.joined, self.exits, self.handlers = [], [], [], []

    def fork(self, site, fork):
        self.forks.append(fork)
        return super().fork(site, fork)

    def join(self, site, forks, names, pushed):
        self.joined.append((names, pushed))
        return super().join(site, forks, names, pushed)

    def leave(self, site, loops, names, exit, pushed):
        self.exits.append(names)
        return super().leave(site, loops, names, exit, pushed)

    def caught_here(self, site, index, region, names):
        self.handlers.append((names, region))
        return super().caught_here(site, index, region, names)


def listed(fn):
    hooks = Listing()
    twin(fn, hooks)
    names = fn.__code__.co_varnames

    def named(found):
        return {names[i] for i in found}

    hooks.joined = [(named(found), pushed) for found, pushed in hooks.joined]
    hooks.exits = [named(found) for found in hooks.exits]
    return hooks


def decisions(a, b):
    if a > b:
        x = a
    else:
        x = b
    y = [x, x + 1, x + 2, a or b]
    if a:
        if b:
            raise ValueError
        z = 1
    elif b:
        z = 2
    else:
        z = 3
    y += [z, z + 1, z + 2, None if a is None else -a]
    if a > 2:
        w = 3
    y += [a, b, y, x]
    if a > 2:
        return w
    return y, x, z, y


def test_what_is_handed_over_where_ways_meet():
    hooks = listed(decisions)
    assert hooks.joined == [({"x"}, 0), (set(), 1), ({"z"}, 0), (set(), 1), ({"w"}, 0)]
    assert len(hooks.forks) == 6  # not where a way raises, or where one returns
    for fork in hooks.forks:
        assert fork.join not in fork.region and fork.jump not in fork.region
        assert fork.index <= fork.jump < min(fork.region) < fork.join


def test_what_is_handed_over_where_a_loop_is_left():
    assert listed(while_break).exits == [{"n", "x"}] * len(listed(while_break).exits)
    assert {"x"} in listed(last_of_loop).exits  # it may have no value


def test_a_variable_without_a_value_is_handed_over_as_such():
    hooks = Folding()
    folded = twin(last_of_loop, hooks)
    assert folded(2, 5) == 1
    assert all(UNBOUND in values for values in hooks.given[:1])
    del hooks.given[:]
    assert folded(0, 5) == 5
    assert (UNBOUND,) in hooks.given

    def unbound(n):
        while n > 1:
            n -= 1
            x = n
        return x

    assert twin(unbound, Folding())(3) == 1
    with pytest.raises(
        UnboundLocalError, match="cannot access local variable 'x' where it is not associated"
    ):
        twin(unbound, Folding())(0)


def test_a_handler_knows_what_it_guards():
    """What an inner handler raises again comes from what that one guards."""
    hooks = listed(failing_comprehension)
    names, region = hooks.handlers[0]
    assert all(fork.index in region for fork in hooks.forks)
    assert {failing_comprehension.__code__.co_varnames[i] for i in names} == {"x"}


def test_cells_are_handed_over():
    def f(n):
        x = k = 0
        g = lambda: x + k + y
        for y in range(n):
            if y % 2:
                x = y
        return g(), k

    def named(found):
        return {names_of(f.__code__)[i] for i in found}

    hooks = Listing()
    folded = twin(f, hooks)
    assert {"x"} in [named(names) for names, _ in hooks.joined]
    assert [named(names) for names in hooks.exits] == [{"x", "y"}]
    assert folded(4) == f(4)
    hooks.open.clear()
    with pytest.raises(NameError, match="cannot access free variable 'y' where it is not assoc"):
        folded(0)


class Unseen(Folding):
    """Hooks that leave the frame alone: CPython 3.13 crashes where it looks for a cell that is put away."""

    def handed(self, names, values):
        self.given.append(values)


def test_a_comprehension_with_an_ordinary_variable_named_like_a_cell():
    def f(a, b):
        w = a
        h = lambda: w
        y = [w if w > b else k for k in range(b) for w in range(k) if w or k]
        w += 1
        return y, h(), [(w, h) for w, h in enumerate([b, a])], h(), w

    hooks = Unseen()
    folded = twin(f, hooks)
    for a in range(4):
        for b in range(4):
            hooks.open.clear()
            assert folded(a, b) == f(a, b)


def test_generator_expressions_that_are_first_arguments_run_at_once():
    hooks = Folding()
    folded = twin(generator_expressions, hooks)
    assert folded(3, 2) == generator_expressions(3, 2)
    assert not hooks.seen["caught"] - 1
    assert hooks.seen["collected"] >= 10

    seen = []

    def lazy(n):
        later = (seen.append(i) for i in range(n))
        seen.append("first")
        return [*later]

    twin(lazy, hooks)(2)
    assert seen == ["first", 0, 1]


def test_hooks_that_do_not_fold_are_asked_for_nothing_more():
    for fn in FUNCTIONS:
        hooks = Transparent()
        assert not hasattr(hooks, "fork")
        for a in range(2):
            assert outcome(twin(fn, hooks), a, 1) == outcome(fn, a, 1)
