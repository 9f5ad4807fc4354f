"""Programs and changes of the world made at random: cached calls against plain Python and against fresh traces.

In the environment variable WENGERT_WORLDS stands how many worlds are tried, where there is time for more.
"""

import contextlib
import os
import random

import pytest

pytest.importorskip("hypothesis")

from hypothesis import Phase, assume, given, note, settings
from hypothesis import strategies as st
from worlds import WAYS, Call, Refused, compare, execute

PRELUDE = """
import math, random, numpy as np
from wengert import grad
class Thing:
    rate = 1.5
    def __init__(self, k): self.k, self.items, self.n = k, [k, 2.0], 0
    def weigh(self, v): return v * self.k + self.rate
    @property
    def twice(self): return self.k * 2
    def __mul__(self, v): return v * self.k
    def __call__(self, v):
        self.n += 1
        self.last = v
        return v + self.n
def made(k):
    count = 0
    def inner(v):
        nonlocal count
        count += 1
        return v * k + count
    return inner
thing, other = Thing(2.0), Thing(0.5)
gain, flag, mode, steps, table, items = 0.5, True, 'a', 3, {'p': 1.5, 'q': -0.5}, [0.5, 1.5, -1.0]
vector, weights, log, rng = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.25, -0.5]), [], np.random.default_rng(5)
nested = {'a': [1.0, {'b': (2.0, np.ones(2))}]}
closure, source = made(0.75), iter(range(1000))
def helper(v, k=2.0): return v * k + gain
"""


class Writer:
    """Writes a random program `f(a, b, xs, v)` of statements over what is inside and what is outside."""

    def __init__(self, rng):
        self.rng, self.choice = rng, rng.choice
        self.lines, self.indent, self.loops, self.budget = [], 1, 0, 14

    def chance(self, one_in):
        return self.rng.randrange(one_in) == 0

    def put(self, line):
        self.lines.append("    " * self.indent + line)

    # numbers

    def number(self, depth=2):
        if depth == 0 or self.chance(4):
            return self.choice(["a", "b", "c", "a", "b", self.choice(["0.5", "-1.5", "2", "0.0"])])
        d = depth - 1
        n = self.number
        if self.chance(2):
            return self.choice(
                [
                    "gain", "thing.k", "thing.rate", "thing.twice", "other.k", "thing.items[0]", "items[0]",
                    "items[-1]", "sum(items)", "len(items) * a", "table['p']", "table.get('z', b)", "steps * a",
                    "sum(table.values())", "nested['a'][1]['b'][0]", "nested['a'][0]", "xs[0]", "xs[-1]",
                    "sum(xs)", "vector[0]", "vector.sum()", "(vector * weights).sum()", "v[0]", "v @ weights",
                    "v.sum()", "(v * a).max()", "float(v[-1])", "w[0]", "w.sum()", "len(log) * b",
                    f"helper({n(d)})", f"helper({n(d)}, {n(0)})", f"thing.weigh({n(d)})", f"closure({n(d)})",
                    f"thing({n(d)})", f"thing * {n(d)}", f"other.weigh({n(0)})", "rng.random() * a",
                    "random.random()", "next(source) * 0.1", f"grad(helper)({n(0)})",
                    f"grad(lambda z: z * z * gain)({n(0)})", f"(lambda z, k=gain: z * k)({n(d)})",
                    "log[-1][0] if log else a", "getattr(thing, 'extra', 1.0)", "globals()['gain']",
                    "vars(thing)['k']", "float(mode == 'a') * b", "rng.integers(5) * a", "made(a)(b)",
                ]
            )  # fmt: skip
        return self.choice(
            [
                f"({n(d)} {self.choice('+-*')} {n(d)})",
                f"({n(d)} {self.choice('+-*')} {n(d)})",
                f"({n(d)} / (1.5 + abs({n(d)})))",
                f"{self.choice(['math.sin', 'math.tanh', 'abs', '-', 'np.cos', 'float'])}({n(d)})",
                f"{self.choice(['min', 'max'])}({n(d)}, {n(d)})",
                f"({n(d)} if {self.test(0)} else {n(d)})",
                f"(c := {n(d)})",
                f"({n(d)}) {self.choice(['/', '//', '%'])} {n(0)}",
                f"sum([z * {n(0)} for z in {self.choice(['xs', 'items', 'v', 'range(steps)'])}])",
                f"math.sqrt({n(d)})",
                f"sorted([{n(0)}, a, b])[1]",
                f"round({n(d)}, 1)",
                f"int({n(0)}) * a",
            ]
        )

    def test(self, depth=1):
        def n(d):
            return self.number(min(d, depth))

        return self.choice(
            [
                f"{n(1)} {self.choice(['<', '>', '<=', '==', '!='])} {n(1)}",
                f"{n(1)} > {self.choice(['0', '0.5', '1'])}",
                f"not {n(0)} < {n(0)}",
                f"{n(0)} > 0 {self.choice(['and', 'or'])} {n(0)} < 1",
                "flag", "mode == 'a'", "items", "'p' in table", "a in xs", "len(items) > 3", "thing.n % 3",
                "rng.random() > 0.5", "hasattr(thing, 'extra')", "(v > 0).all()", "isinstance(a, float)",
                "thing is other", "gain is True", "len(log) % 4 == 3",
            ]
        )  # fmt: skip

    # statements

    def block(self, size):
        for _ in range(self.rng.randint(1, size)):
            self.statement()

    def inside(self, size=2):
        self.indent += 1
        self.block(size)
        self.indent -= 1

    def statement(self):
        self.budget -= 1
        kinds = "assign assign simple simple effect effect"
        if self.budget > 0 and self.indent < 4:
            kinds += " branch branch loop loop attempt leave"
        if self.loops:
            kinds += " escape"
        getattr(self, f"do_{self.choice(kinds.split())}")()

    def do_assign(self):
        self.put(f"{self.choice('abc')} {self.choice(['=', '=', '+=', '*='])} {self.number()}")

    def do_simple(self):
        n = self.number(1)
        self.put(
            self.choice(
                [
                    f"xs.append({n})", f"xs[0] = {n}", "c = xs.pop()", f"xs = [z * {n} for z in xs]", "xs = xs[:3]",
                    f"v = v * {n}", f"v[0] = {n}", f"v[1:] += {n}", "w = v[::-1]", f"w[0] = {n}", "w = vector",
                    "v = np.where(v > 0, v, weights)", "a, b = b, a", f"v = np.array([a, b, {n}])", "v = v.copy()",
                    "w = v", "xs = items", "v = vector", "xs = list(items)", "v[v > 0.5] = a",
                ]
            )
        )  # fmt: skip

    def do_effect(self):
        n = self.number(1)
        self.put(
            self.choice(
                [
                    f"print('at', {n})", f"print(f'{{a:.3f}} {{b}} {{{n}!r}}')", f"log.append(({n}, 'x'))",
                    f"log.append([{n}, a])", f"items.append({n})", f"items[0] = {n}", "items.sort()",
                    f"table['r'] = {n}", f"table['p'] = {n}", "table.pop('q', None)", f"thing.k = {n}",
                    f"thing.extra = {n}", "thing.n += 1", f"other.items.append({n})", f"Thing.rate = {n}",
                    f"vector[1] = {n}", f"vector *= {n}", f"weights[:] = v * {n}", f"gain = {n}",
                    "steps = steps % 4 + 1", "flag = not flag", "mode = 'b'", f"nested['a'][0] = {n}",
                    "log.clear()", "del items[:1]",
                    "closure = made(2.0)", "thing, other = other, thing", "random.shuffle(items)",
                ]
            )
        )  # fmt: skip

    def do_branch(self):
        self.put(f"if {self.test()}:")
        self.inside()
        if self.chance(2):
            self.put("else:")
            self.inside()

    def do_loop(self):
        if self.loops == 2:
            return self.do_assign()
        self.loops += 1
        i = "ij"[self.loops - 1]
        if self.chance(2):
            self.put(f"{i} = 0")
            self.put(f"while {i} < {self.choice(['3', 'steps', '6'])} and ({self.test()}):")
            self.put(f"    {i} += 1")
        else:
            head = ["range(steps)", "range(3)", "xs[:3]", "items[:4]", "list(table)[:2]", "v"]
            self.put(f"for {i} in {self.choice(head)}:")
        self.inside()
        self.loops -= 1

    def do_escape(self):
        self.put(f"if {self.test()}: {self.choice(['break', 'continue'])}")

    def do_attempt(self):
        self.put("try:")
        self.inside()
        if self.chance(2):
            bad = [
                "xs[9]",
                "table['none']",
                "1 / (a - a)",
                "math.sqrt(a)",
                "items[3]",
                "1 / int(a)",
            ]
            self.put(f"    {self.choice(bad)}")
        self.put("except (ArithmeticError, LookupError, ValueError) as error:")
        self.put(f"    {self.choice(['log.append(repr(error))', 'a = b', 'print(error)'])}")
        if self.chance(3):
            self.put("finally:")
            self.put(f"    {self.choice(['a = a + 1', 'log.append(a)', 'print(a)'])}")

    def do_leave(self):
        self.put(f"if {self.test()}: return {self.number(1)}")

    def program(self):
        outside = "gain, flag, mode, steps, vector, weights, closure, thing, other"
        self.put(f"global {outside}")
        self.put("c, w = 1.0, v")
        self.block(7)
        self.put(f"return {self.number()} + a * b + c")
        return "def f(a, b, xs, v):\n" + "\n".join(self.lines) + "\n"


CHANGES = [
    "gain = {}", "gain = 2", "gain = True", "gain = np.float64({})", "gain = float('nan')", "gain = -0.0",
    "flag = not flag", "mode = 'ba'[mode == 'b']", "steps = {int}", "steps += 1", "next(source)",
    "thing.k = {}", "thing.k = {int}", "Thing.rate = {}", "thing.rate = {}", "thing = Thing({})", "other = thing",
    "thing.items = [{}, {}]", "thing.items[0] = {}", "thing.extra = {}", "vars(thing).pop('extra', 0)", "thing.n = 0",
    "class Thing(Thing): pass\nthing = Thing({})", "thing.__class__ = Thing", "other.items = thing.items",
    "Thing.weigh = lambda self, v: v * {}", "Thing.__mul__ = lambda self, v: v + self.k",
    "Thing.twice = property(lambda self: {})", "Thing.twice = {}", "Thing.__call__ = lambda self, v: v",
    "items[0] = {}", "items.append({})", "items = [{}, {}]", "items.reverse()", "del items[:1]\nitems += [1.0, 2.0]",
    "items = thing.items", "table['p'] = {}", "table['z'] = {}", "table = dict(reversed(table.items()))",
    "table.pop('z', 0)", "table['p'] = {int}", "vector[0] = {}", "vector = np.array([{}, {}, {}])",
    "vector = np.ones(3, '>f8')", "vector = vector[::-1]", "weights[1] = {}", "weights = vector", "nested['a'][0] = {}",
    "nested['a'][1]['b'] = ({}, np.zeros(2))", "nested['a'][1]['b'][1][0] = {}", "closure = made({})",
    "closure.__closure__[1].cell_contents = {}", "rng = np.random.default_rng({int})", "random.seed({int})",
    "log.clear()", "log = []", "source = iter([{}] * 1000)", "helper.__defaults__ = ({},)",
    "def helper(v, k=2.0): return v * k + gain", "def helper(v, k=2.0): return v - k",
]  # fmt: skip

NUMBERS = [0.5, -0.5, 1.25, 0.0, -0.0, 2.0, 1e3, -1.5, float("nan"), 0.75]


def text_of(x):
    return repr(x).replace("nan", "float('nan')")  # never one and the same


def change(rng):
    text = rng.choice(CHANGES)
    while "{}" in text:
        text = text.replace("{}", text_of(rng.choice(NUMBERS)), 1)
    return text.replace("{int}", str(rng.randrange(1, 5)))


class Arguments:
    """Arguments that stay of one kind for a while, with numbers on this or that side of a decision."""

    def __init__(self, rng):
        self.rng = rng
        self.again()

    def again(self):
        self.kind = self.rng.choice(["float"] * 6 + ["int", "np.float64"])
        self.size = self.rng.choice([3, 3, 3, 3, 2])
        self.dtype = self.rng.choice(["f8"] * 8 + [">f8", "i8"])
        self.layout = self.rng.choice(["", "", "", "[::-1]", "shared"])

    def source(self):
        r = self.rng

        def number():
            return r.choice([r.uniform(-2, 2), r.uniform(-2, 2), *NUMBERS])

        a = text_of(number()) if self.kind != "int" else str(r.randrange(-2, 3))
        a = f"np.float64({a})" if self.kind == "np.float64" else a
        xs = "[" + ", ".join(text_of(number()) for _ in range(self.size)) + "]"
        v = f"np.array([{', '.join(text_of(r.uniform(-2, 2)) for _ in range(3))}], '{self.dtype}')"
        v = "vector" if self.layout == "shared" else v + self.layout
        return f"{a}, {text_of(number())}, {xs}, {v}"


class Story:
    """A program, and what happens to the world: made once, told three times."""

    def __init__(self, seed, rounds=5):
        rng = random.Random(seed)
        self.program = Writer(rng).program()
        self.steps = []
        arguments = Arguments(rng)
        for _ in range(rounds):
            same = arguments.source()
            for _ in range(rng.randrange(2, 5)):
                self.steps.append(("call", same if rng.random() < 0.4 else arguments.source()))
            for _ in range(rng.randrange(1, 3)):
                self.steps.append(("change", change(rng)))
            if rng.random() < 0.3:
                arguments.again()

    def __str__(self):
        return self.program + "\n".join(f"{kind}: {text}" for kind, text in self.steps)

    def __call__(self, world):
        m = world.module(PRELUDE + self.program)
        for kind, text in self.steps:
            if kind == "call":
                m.called = Call
                call = eval(f"called(f, {text})", vars(m))
                del m.called
                yield call
            else:
                with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError):
                    execute(m, text)


COUNT = int(os.environ.get("WENGERT_WORLDS", "70"))


@settings(
    max_examples=COUNT,
    derandomize="WENGERT_WORLDS" not in os.environ,
    phases=[Phase.generate],  # a smaller seed makes no smaller program
    report_multiple_bugs=False,
)
@given(st.integers(0, 2**32), st.sampled_from(["value_and_grad", "pullback", "turns"]))
def test_random_worlds(seed, way):
    story = Story(seed)
    note(f"{way}\n{story}")
    assert way in WAYS
    try:
        compare(story, way)
    except Refused:
        assume(False)
