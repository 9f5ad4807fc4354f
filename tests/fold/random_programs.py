"""Random scalar programs: called in plain Python, traced at each call, and with programs kept.

    python -m tests.fold.random_programs --seed 0 --count 200           # print what differs, with the source
    python -m tests.fold.random_programs --seed 17 --count 1 --show     # print the program too
    python -m tests.fold.random_programs --count 200 --at-once          # fold from the first call on

Each program is a module of its own with a function ``f(x, y, n)`` of two floats and an int, called several times
with new arguments. Values (to the bit), exceptions (type, message, lines of the traceback) and what the function
leaves in its module must be the same in all three ways, gradients nearly the same in the two of the engine.

The grammar has what is dangerous where ways of many calls become one program: loops of one turn in some calls and of
many in others, state in cells, objects, lists and dicts, constants that change from turn to turn, names unbound on
some ways, lists with several names, exceptions that cross loops and calls. Every program ends: loops are bounded, and
a call that takes too many lines is left out.
"""

from __future__ import annotations

import argparse
import collections
import linecache
import math
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import wengert
from wengert import value_and_grad
from wengert.tracer.errors import WengertError
from wengert.transforms import cache
from wengert.transforms.budget import Budget

CALLS = 8
LINES = 1500  # executed in one call, at most
RELATIVE = 1e-7

PRELUDE = """\
import math

class Stop(Exception):
    pass

class Thing:
    rate = 0.5

    def __init__(self, x, other=None):
        self.x = x
        self.kind = 0
        self.other = other
        self.items = [x]

    def step(self, q, gain=0.3):
        if q > self.x:
            self.x = self.x * 0.7 + gain * q
            self.kind = self.kind + 1
        elif self.kind > 1:
            self.kind = 0
            self.items.append(self.x)
        return self.x - q * self.rate

    def __add__(self, q):
        return Thing(self.x + q, self)

    def __repr__(self):
        return f"Thing({self.x!r}, {self.kind!r}, {self.items!r})"

log = []
level = 0.25
"""


@dataclass
class Scope:
    """The names a block may use, and what it may do."""

    floats: list[str]
    ints: list[str]
    flags: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)  # lists of lists
    dicts: list[str] = field(default_factory=list)
    things: list[str] = field(default_factory=list)
    calls: list[str] = field(
        default_factory=list
    )  # patterns of calls with float results; {} is a float
    constants: list[str] = field(default_factory=list)  # ints that no statement may set
    depth: int = 0  # of blocks
    loops: int = 0  # around
    in_loop: bool = False  # where break and continue are allowed
    lengths: bool = True  # whether lists may change their lengths

    def inner(self, **changes: Any) -> Scope:
        made = {
            k: [*v] if isinstance(v, list) else v
            for k, v in ((k, getattr(self, k)) for k in self.__dataclass_fields__)
        }
        return Scope(**{**made, "depth": self.depth + 1, **changes})


class Writer:
    """Writes the source of a random program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.pick = self.rng.choice
        self.lines: list[str] = []
        self.names = 0

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def put(self, pad: int, text: str) -> None:
        self.lines.append("    " * pad + text)

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    # ---------------------------------------------------------------------------------------- expressions

    def number(self, s: Scope, d: int = 2) -> str:
        """An expression for a float."""
        if d <= 0 or self.chance(0.25):
            return self.pick(s.floats)
        a, b = (self.number(s, d - 1) for _ in range(2))
        if self.chance(0.3):
            return self.load(s, d)
        if self.chance(0.08):
            return self.generator(s, d)
        forms = [  # ints and floats in `max` are never equal: that is a case of its own in test_soundness.py
            f"({a} + 0.5 * {b})", f"({a} - {b}) * 0.5", f"{a} * {b} * 0.3", f"math.sin({a})",
            f"{a} / (1.5 + {b} * {b})", f"0.7 * {a}", f"max({a}, {b})", f"min({a}, 0.5 * {b})", f"max({a}, {b}, 0.1)",
            f"max(0, {a} - 0.0371)", f"min(1, {a} + 0.0371) * {b}",
            f"({a} if {self.test(s, d - 1)} else {b})", f"-{a}", f"math.sqrt(1.0 + {a} * {a})", f"abs({a})",
            f"({a} + 0.1 * {self.integer(s)})", f"{a} * {b}", f"math.tanh({a})", f"float({self.integer(s)}) * 0.2",
            f"({a} + level)", f"math.exp(-abs({a}))", f"({a}) ** 2", f"({b} and {a})" if self.chance(0.2) else a,
        ]  # fmt: skip
        return self.pick(forms)

    def load(self, s: Scope, d: int) -> str:
        """A float out of a memory, or from a call."""
        forms = []
        if s.lists:
            u = self.pick(s.lists)
            forms += [
                f"{u}[{self.index(s, u)}]",
                f"len({u}) * {self.pick(s.floats)}",
                f"{u}[-1]",
                f"{u}[0]",
            ]
            forms += [f"sum({u})", f"max({u})"] if self.chance(0.3) else []
        if s.tables:
            t = self.pick(s.tables)
            forms += [f"{t}[{self.index(s, t)}][{self.pick(['0', '-1'])}]"]
        if s.dicts:
            d_ = self.pick(s.dicts)
            forms += [f"{d_}['s']", f"{d_}.get({self.key(s)}, {self.pick(s.floats)})"]
            forms += [f"{d_}[{self.key(s)}]"] if self.chance(0.3) else []
        if s.things:
            o = self.pick(s.things)
            forms += [
                f"{o}.x",
                f"{o}.step({self.number(s, d - 1)})",
                f"{o}.step({self.pick(s.floats)}, gain=0.2)",
            ]
            forms += [
                f"{o}.items[-1]",
                f"({o} + {self.pick(s.floats)}).x",
                f"{o}.rate * {self.pick(s.floats)}",
            ]
        forms += [self.pick(s.calls).format(self.number(s, d - 1))] * 3 if s.calls else []
        return self.pick(forms) if forms else self.pick(s.floats)

    def generator(self, s: Scope, d: int) -> str:
        """What a generator expression comes to, which reads what is around it."""
        q, j = self.name("q"), self.name("j")
        inner = s.inner(depth=5)
        if s.lists and self.chance(0.4):
            inner.floats = [*s.floats, q, q]
            over = f"{q} in {self.pick(s.lists)}"
        else:
            inner.constants = [*s.constants, j, j]
            over = f"{j} in range({self.integer(s)} % 4)"
        every = f"{self.number(inner, min(d, 2) - 1)} for {over}"
        if self.chance(0.3):
            every += f" if {self.test(inner, 0)}"
        forms = [f"sum({every})"] * 4
        forms += [f"math.fsum({every})", f"sorted({every})[0]", f"list({every})[-1]"]
        forms += [f"0.2 * len(list({every}))", f"math.prod({every})", f"max({every})"]
        return self.pick(forms)

    def integer(self, s: Scope) -> str:
        """An expression for an int that is not large."""
        k = self.pick([*s.ints, *s.constants])
        m = self.pick([*s.ints, *s.constants])
        forms = [
            k,
            k,
            f"{k} % 3",
            f"{k} // 2",
            f"({k} * 3 + 1) % 7",
            f"{k} - {m} % 4",
            f"({k} & 3)",
            f"-{k} % 5",
        ]
        forms += [
            "2",
            "0",
            f"(1 if {self.pick(s.floats)} > 0.1 else {k} % 4)",
            f"abs({k} - 2)",
            f"min({k}, 2)",
        ]
        forms += [f"len({self.pick(s.lists)})"] if s.lists else []
        forms += [f"{self.pick(s.lists)}.count({self.pick(s.floats)})"] if s.lists else []
        forms += [f"{k} + ({m} > 1)"]
        forms += [f"({k} ^ 1) % 8", f"int({k} > 2)", f"({k} + 12345678901234567890 * {m}) % 5"]
        return self.pick(forms)

    def index(self, s: Scope, u: str) -> str:
        if self.chance(0.2):
            return self.integer(s)
        return self.pick(
            [f"({self.integer(s)}) % len({u})", "0", "-1", f"({self.integer(s)}) % len({u})"]
        )

    def key(self, s: Scope) -> str:
        return self.pick(["'s'", "'t'", "'s'", f"({self.integer(s)}) % 3", "1", "True"])

    def test(self, s: Scope, d: int = 1) -> str:
        a, b = self.number(s, min(d, 1)), self.pick(s.floats)
        order = self.pick(["<", ">", "<=", ">="])
        forms = [f"{a} {order} {self.pick([b, '0.1', '0.5', '-0.2'])}"] * 4
        forms += [
            f"{self.integer(s)} {self.pick(['<', '==', '!=', '>'])} {self.pick(['0', '1', '2', '3'])}"
        ] * 2
        forms += [f"-0.3 < {a} <= 0.4", f"{self.integer(s)} in (0, 2)", f"({self.integer(s)}) % 2"]
        if s.flags:
            g = self.pick(s.flags)
            forms += [
                g,
                f"not {g}",
                f"{g} is None",
                f"{g} == 'a'",
                f"{g} == 1",
                f"{g} is not None and {g} != 'b'",
            ]
            forms += [
                f"isinstance({g}, str)",
                f"{g} is True",
                f"{g} in ('a', {self.integer(s)}, None)",
            ]
        if len(s.lists) > 1:
            forms += [f"{s.lists[0]} is {self.pick(s.lists[1:])}", f"len({s.lists[0]}) > 2"]
            u, k = self.pick(s.lists), self.integer(s)
            forms += [
                self.pick([f"{u} == {self.pick(s.lists)}", f"{u}[:1] != [{b}]", f"{b} in {u}"]),
                self.pick(
                    [f"{k} in ({k}, {self.integer(s)})", f"{u} == {self.pick([*s.flags, 'None'])}"]
                ),
            ]
        if s.things:
            forms += [f"{self.pick(s.things)}.kind > 1", f"{self.pick(s.things)}.other is None"]
        if s.dicts:
            forms += [f"{self.key(s)} in {self.pick(s.dicts)}"]
        form = self.pick(forms)
        if d > 0 and self.chance(0.15):
            return f"({form} {self.pick(['and', 'or'])} {self.test(s, 0)})"
        return form

    # ----------------------------------------------------------------------------------------- statements

    def block(self, s: Scope, pad: int, most: int = 3) -> None:
        start = len(self.lines)
        for _ in range(self.rng.randint(1, most)):
            self.statement(s, pad)
        if len(self.lines) == start:
            self.put(pad, "pass")

    def statement(self, s: Scope, pad: int) -> None:
        kinds: list[tuple[Callable[[Scope, int], None], float]] = [
            (self.assign, 6),
            (self.numbers, 2),
        ]
        kinds += [(self.memory, 5)] if s.lists or s.dicts or s.things else []
        kinds += [(self.flag, 1.5)] if s.flags else []
        if s.depth < 4:
            kinds += [(self.branch, 3), (self.trial, 1.2), (self.late, 0.4), (self.closure, 0.5)]
        if s.depth < 4 and s.loops < 3:
            kinds += [(self.loop, 4)]
        if s.in_loop:
            kinds += [(self.leave_turn, 1.5)]
        if s.depth:
            kinds += [(self.leave, 0.6), (self.throw, 0.35)]
        self.rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0](s, pad)

    def assign(self, s: Scope, pad: int) -> None:
        a, b = self.pick(s.floats), self.pick(s.floats)
        forms = [f"{a} = {self.number(s)}"] * 4
        forms += [
            f"{a}, {b} = {b}, {self.number(s, 1)}",
            f"{a} = {b}",
            f"{a} += 0.3 * {self.number(s, 1)}",
        ]
        forms += [
            f"{a} *= 0.8",
            f"{a} = {b} = {self.number(s, 1)}",
            f"{a} = {self.pick(['0.5', '-0.25', '1.0', '0', '1', self.integer(s)])}",
        ]
        self.put(pad, self.pick(forms))

    def numbers(self, s: Scope, pad: int) -> None:
        if not s.ints:
            return self.assign(s, pad)
        k = self.pick(s.ints)
        forms = [
            f"{k} = {self.integer(s)}",
            f"{k} += 1",
            f"{k} = ({k} * 5 + 3) % 11",
            f"{k} -= {self.integer(s)}",
        ]
        self.put(pad, self.pick(forms))
        return None

    def flag(self, s: Scope, pad: int) -> None:
        values = [
            "None",
            "True",
            "False",
            "'a'",
            "'b'",
            "0",
            "1",
            "2",
            "''",
            f"{self.test(s, 0)}",
            f"{self.integer(s)}",
        ]
        self.put(pad, f"{self.pick(s.flags)} = {self.pick(values)}")

    def memory(self, s: Scope, pad: int) -> None:
        forms: list[str] = []
        a, e = self.pick(s.floats), self.number(s, 1)
        if s.lists:
            u, v = self.pick(s.lists), self.pick(s.lists)
            forms += [
                f"{u}[{self.index(s, u)}] = {e}",
                f"{u}[{self.index(s, u)}] += {e}",
                f"{a} = {u}[0]",
            ]
            forms += [
                f"{u}[0], {v}[-1] = {v}[-1], {u}[0]",
                f"{u} = [{e}, {a}]",
                f"{u} = {v}",
                f"{u}, {v} = {v}, {u}",
            ]
            forms += [
                f"{u} = [{a}] * {self.pick(['3', 'n', '2'])} + [{e}]",
                f"{u} = [0.5 * q for q in {v}]",
            ]
            forms += [
                f"{u} = {v}[:]",
                f"{u} = [q + {a} for q in {v} if q > 0.0] + [{e}]",
                f"{u} = ({u} + {v})[:5]",
            ]
            if s.lengths:
                forms += [f"{u}.append({e})"] * 3 + [
                    f"{a} = {u}.pop()",
                    f"if len({u}) > 1: {a} = {u}.pop()",
                ]
                forms += [f"if len({u}) > 2: {u}.pop(0)", f"{u}.insert(0, {e})"]
        if s.tables:
            t, u = self.pick(s.tables), self.pick(s.lists)
            forms += [
                f"{t}[{self.index(s, t)}][0] = {e}",
                f"{u} = {t}[{self.index(s, t)}]",
                f"{t}[0] = {u}",
            ]
            forms += [
                f"{t}[0][-1] += {a}",
                f"{t}[0], {t}[-1] = {t}[-1], {t}[0]",
                f"{t} = [{u}, [{a}]]",
            ]
        if s.dicts:
            d = self.pick(s.dicts)
            forms += [f"{d}[{self.key(s)}] = {e}"] * 2 + [
                f"{d}['s'] = {d}['s'] * 0.5 + {a}",
                f"{d} = {{'s': {e}}}",
            ]
        if s.things:
            o, p = self.pick(s.things), self.pick(s.things)
            forms += [f"{o}.x = {e}"] * 2 + [
                f"{o} = {p}",
                f"{o} = Thing({e})",
                f"{o} = {o} + {a}",
                f"{a} = {o}.step({e})",
            ]
            forms += [f"{o}.kind += 1", f"{o}, {p} = {p}, {o}", f"{o}.rate = 0.4"]
            forms += [f"{o}.items[-1] = {e}", f"if {o}.other is not None: {o} = {o}.other"]
            if s.lists:
                forms += [f"{o}.items = {self.pick(s.lists)}", f"{self.pick(s.lists)} = {o}.items"]
        if self.chance(0.03):
            forms = [f"log.append({a})"]
        self.put(pad, self.pick(forms))

    def branch(self, s: Scope, pad: int) -> None:
        self.put(pad, f"if {self.test(s)}:")
        self.block(s.inner(), pad + 1)
        if self.chance(0.2):
            self.put(pad, f"elif {self.test(s)}:")
            self.block(s.inner(), pad + 1)
        if self.chance(0.5):
            self.put(pad, "else:")
            self.block(s.inner(), pad + 1)

    def loop(self, s: Scope, pad: int) -> None:
        inside = s.inner(loops=s.loops + 1, in_loop=True)
        i = self.name("i")
        few = (
            self.pick(["2", "n % 3", "min(n, 2)"])
            if s.loops
            else self.pick(["n", "n + 1", "4", "n - 2"])
        )
        kind = self.rng.random()
        if kind < 0.45:
            ranges = [f"range({few})"] * 3 + [
                f"range({few}, 0, -1)",
                f"range(0, {few}, 2)",
                f"range(1, {few})",
            ]
            ranges += [
                f"range(1 if {self.test(s, 0)} else {few})",
                f"range(min({self.integer(s)}, 3))",
            ] * 2
            self.put(pad, f"for {i} in {self.pick(ranges)}:")
            inside.constants.append(i)
        elif kind < 0.55:
            self.put(pad, f"for {i} in ({self.pick(s.floats)}, 0.5, {self.number(s, 1)}):")
            inside.floats.append(i)
        elif kind < 0.62:
            self.put(pad, f"for {i} in ('a', None, 1, 'b'):")
            inside.flags.append(i)
        elif kind < 0.72 and s.lists:
            u, v, q = self.pick(s.lists), self.pick(s.lists), self.name("q")
            head = self.pick(
                [
                    "{q} in {u}",
                    "{q} in {u}[:3]",
                    "{i}, {q} in enumerate({u})",
                    f"{{i}}, {{q}} in enumerate({{u}}, {self.integer(s)})",
                    "{q} in reversed({u})",
                ]
            )
            if "enumerate" in head:
                inside.constants.append(i)
            elif self.chance(0.3):
                head = "{q}, {i} in zip({u}, {v})"
                inside.floats.append(i)
            inside.floats.append(q)
            inside.lengths, inside.things, inside.calls = False, [], []  # it might never end
            self.put(pad, f"for {head.format(q=q, u=u, v=v, i=i)}:")
        elif kind < 0.86:
            self.put(pad, f"{i} = 0")
            self.put(pad, f"while {self.test(s)} and {i} < {self.pick(['3', 'n', '6'])}:")
            self.put(pad + 1, f"{i} += 1")
            inside.constants.append(i)
        else:
            self.put(pad, f"{i} = {self.pick(['0', '-1', 'n - 3'])}")
            self.put(pad, "while True:")
            self.put(pad + 1, f"{i} += 1")
            self.put(pad + 1, f"if {i} > 3 or {self.test(s)}:")
            self.put(
                pad + 2, self.pick(["break", "break", "break", f"return {self.pick(s.floats)}"])
            )
            inside.constants.append(i)
        self.block(inside, pad + 1, 4)
        if self.chance(0.12):
            self.put(pad, "else:")
            self.block(s.inner(), pad + 1, 2)

    def trial(self, s: Scope, pad: int) -> None:
        a = self.pick(s.floats)
        self.put(pad, "try:")
        self.block(s.inner(), pad + 1, 2)
        dangers = [
            f"{a} = {a} / ({self.integer(s)})",
            f"{a} = math.sqrt({self.number(s, 1)})",
            "raise Stop(n)",
        ]
        dangers += [f"{a} = {a} * math.log({self.number(s, 1)})"]
        dangers += [f"{a} = {self.pick(s.lists)}[{self.integer(s)}]"] * 2 if s.lists else []
        dangers += [f"{a} = {self.pick(s.dicts)}[{self.key(s)}]"] if s.dicts else []
        dangers += [f"{a} = {self.pick(s.things)}.extra"] if s.things else []
        danger = self.pick(dangers)
        self.put(
            pad + 1, f"if {self.test(s)}: raise Stop(n)" if danger.startswith("raise") else danger
        )
        if self.chance(0.4):
            self.block(s.inner(), pad + 1, 1)
        kinds = [
            "(ZeroDivisionError, ValueError)",
            "(LookupError, AttributeError)",
            "Stop",
            "ArithmeticError",
        ]
        for kind in self.rng.sample(kinds, self.rng.randint(1, 3)):
            if kind == "Stop" and self.chance(0.6):
                e = self.name("e")
                self.put(pad, f"except Stop as {e}:")
                held = f"{e}.args[{self.pick(['0', '-1', 'n % 2 - 1'])}]"
                forms = [f"{a} = 0.1 * {e}.args[-1]", f"{a} += len({e}.args)"]
                forms += [f"if {held} == n: {a} = {a} * 0.5", f"raise Stop({a}, {held})"]
                self.put(pad + 1, self.pick(forms))
            else:
                self.put(pad, f"except {kind}:")
            self.block(s.inner(), pad + 1, 2)
        if self.chance(0.15):
            self.put(pad, "else:")
            self.block(s.inner(), pad + 1, 1)
        if self.chance(0.1):
            self.put(pad, "finally:")
            self.put(pad + 1, f"{a} = {self.number(s, 1)}")

    def late(self, s: Scope, pad: int) -> None:
        """A name bound on some ways only."""
        z, a = self.name("z"), self.pick(s.floats)
        self.put(pad, f"if {self.test(s)}:")
        self.put(pad + 1, f"{z} = {self.number(s, 1)}")
        self.block(s.inner(), pad, 1)
        if self.chance(0.4):
            self.put(pad, f"{a} = {a} + {z}")
        else:
            self.put(pad, "try:")
            self.put(pad + 1, f"{a} = {a} + {z}")
            self.put(pad, "except NameError:")
            self.put(pad + 1, f"{z} = {a} * 0.5")

    def closure(self, s: Scope, pad: int) -> None:
        """A function inside, with what it captures and may change."""
        g, q, c = self.name("g"), self.name("q"), self.name("c")
        if self.chance(0.4):
            inner = s.inner(calls=[], things=[], depth=3)
            inner.floats = [*s.floats, q]
            self.put(
                pad, f"{g} = lambda {q}, r={self.pick(s.floats)}: {self.number(inner, 2)} + 0.1 * r"
            )
        else:
            self.put(pad, f"{c} = {self.number(s, 1)}")
            body = Scope(
                [q, c],
                [],
                lists=s.lists[:1],
                constants=[*s.constants, *s.ints],
                depth=3,
                lengths=s.lengths,
            )
            self.put(pad, f"def {g}({q}, r={self.pick([*s.floats, '0.5'])}):")
            self.put(pad + 1, f"nonlocal {c}")
            self.put(pad + 1, f"if {q} > {c} * r:")
            self.put(pad + 2, f"{c} = {c} * 0.5 + {self.number(body, 1)}")
            if s.lists:
                self.put(pad + 2, f"{s.lists[0]}[0] = {c} + {q}")
            if self.chance(0.3):
                self.put(pad + 2, f"return {q}")
            self.put(pad + 1, f"return {c} - 0.5 * {q}")
        s.calls.append(f"{g}({{}})")
        if self.chance(0.4):
            self.kept(s, pad, g)

    def kept(self, s: Scope, pad: int, g: str) -> None:
        """Functions in containers, and functions that others give."""
        h, m, p, q = self.name("h"), self.name("m"), self.name("p"), self.name("q")
        made = f"{m}({self.number(s, 1)})"
        self.put(pad, f"def {m}({p}):")
        if self.chance(0.3):
            self.put(pad + 1, f"if {p} > 0.2:")
            self.put(pad + 2, f"return lambda {q}: {q} * {p}")
        elif self.chance(0.3):
            self.put(pad + 1, f"{p} = {p} * 0.5")
        self.put(pad + 1, f"return lambda {q}, z={p} * 0.3: {q} - z * {p}")
        if self.chance(0.5):
            self.put(pad, f"{h} = {made}")
            s.calls.append(f"{h}({{}})")
        else:
            held = self.pick(
                [f"[{g}, {made}]", f"[{made} for j in range(n + 2)]", f"({made}, {made})"]
            )
            self.put(pad, f"{h} = {held}")
            s.calls.append(f"{h}[{self.pick(['0', '1', '-1', 'n % 2'])}]({{}})")

    def leave_turn(self, s: Scope, pad: int) -> None:
        self.put(pad, f"if {self.test(s)}:")
        self.put(pad + 1, self.pick(["break", "continue"]))

    def leave(self, s: Scope, pad: int) -> None:
        self.put(pad, f"if {self.test(s)}:")
        self.put(pad + 1, f"return {self.result(s)}")

    def throw(self, s: Scope, pad: int) -> None:
        self.put(pad, f"if {self.test(s)}:")
        a = self.pick(s.floats)
        raised = [
            "Stop(n)",
            "Stop('far', n)",
            "ValueError('near')",
            "ZeroDivisionError",
            f"Stop({a})",
        ]
        self.put(pad + 1, f"raise {self.pick(raised)}")

    def result(self, s: Scope) -> str:
        return self.pick(["{}", "{} * 1.0", "{} + 0.0"]).format(self.pick(s.floats))

    # ------------------------------------------------------------------------------------------- programs

    def helper(self, number: int, calls: list[str]) -> str:
        """A function of a module, perhaps recursive; the pattern of its call."""
        name = f"h{number}"
        scope = Scope(["p", "q", "z"], ["m"], constants=["n"], calls=[*calls], depth=1, loops=1)
        if self.chance(0.4):
            self.put(0, f"def {name}(p, q, n, depth={self.pick(['2', '3'])}):")
            self.put(1, "z, m = p * q, depth")
            self.put(1, f"if depth <= 0 or {self.test(scope)}:")
            self.put(2, f"return {self.pick(scope.floats)}")
            scope.constants.append("depth")
            scope.loops = 2
            self.block(scope, 1)
            again = f"{name}(0.7 * z, {self.pick(scope.floats)}, n, depth - 1)"
            self.put(1, f"return {self.pick([again, f'0.5 * {again} + p', f'p - {again} * z'])}")
        else:
            default = self.pick(["u=None", "r=0.5", "mode='a'"])
            self.put(0, f"def {name}(p, q, n, {default}):")
            self.put(1, "z, m = p - 0.5 * q, n")
            if default == "u=None":
                self.put(1, "u = [p, q] if u is None else u")
                scope.lists.append("u")
            elif default == "r=0.5":
                scope.floats.append("r")
            else:
                scope.flags.append("mode")
            self.block(scope, 1, 4)
            self.put(1, f"return {self.pick(['p + z', 'z', 'q * p'])}")
        self.lines.append("")
        return f"{name}({{}}, {self.pick(['x', 'y', '0.5'])}, n)"

    def source(self) -> str:
        calls: list[str] = []
        for number in range(self.rng.randint(0, 2)):
            inside = [
                x.replace("(0.5", "(q").replace(", x,", ", p,").replace(", y,", ", q,")
                for x in calls
            ]
            calls.append(self.helper(number, inside))
        self.put(0, "def f(x, y, n):")
        self.put(1, "a, b, c, k = x, 0.5, x * y, n")
        s = Scope(["a", "b", "c", "x", "y"], ["k"], constants=["n"], calls=calls)
        if self.chance(0.6):
            self.put(1, "mode = " + self.pick(["None", "'a'", "0", "n % 3", "False"]))
            s.flags.append("mode")
        if self.chance(0.6):
            starts = [
                "[x, y]",
                "[a * 0.3 + 0.1 * j for j in range(n + 2)]",
                "[0.0] * (n + 2)",
                "[0.0, x]",
            ]
            self.put(1, f"u = {self.pick(starts)}")
            self.put(
                1, f"v = {self.pick(['u', '[y, x]', '[0.1 * j for j in range(n + 2)]', 'u[:]'])}"
            )
            s.lists += ["u", "v"]
            if self.chance(0.4):
                self.put(
                    1,
                    "t = "
                    + self.pick(["[u, v]", "[[x, b] for j in range(3)]", "[u] * 2", "[[y], u]"]),
                )
                s.tables.append("t")
        if self.chance(0.3):
            self.put(1, "d = {'s': x, 1: y}")
            s.dicts.append("d")
        if self.chance(0.35):
            self.put(1, "o = Thing(x)")
            self.put(1, f"p = {self.pick(['o', 'Thing(y, o)', 'Thing(0.5)'])}")
            s.things += ["o", "p"]
        for _ in range(3):
            self.block(s, 1, 4)
        self.put(
            1,
            "return a + 0.3 * b - c"
            + self.pick(["", "", " + 0.1 * k"])
            + (" + u[0]" if s.lists else ""),
        )
        return PRELUDE + "\n" + "\n".join(self.lines) + "\n"


# ---------------------------------------------------------------------------------------------- comparison


class TooLong(BaseException):
    """A call takes more lines than a test has time for."""


@dataclass
class Outcome:
    """What one call gave."""

    value: str = ""  # to the bit
    error: str = ""  # type, message, and the lines it came through
    world: str = ""  # what the module holds then
    gradient: tuple[float, ...] | None = None
    refused: bool = False  # the engine cannot or may not answer

    def plain(self) -> tuple[str, str, str]:
        return self.value, self.error, self.world


@dataclass
class Module:
    """A program, executed in a world of its own."""

    source: str
    name: str

    def __post_init__(self) -> None:
        lines = self.source.splitlines(keepends=True)
        linecache.cache[self.name] = (len(self.source), None, lines, self.name)
        self.space: dict[str, Any] = {"__name__": self.name}
        exec(compile(self.source, self.name, "exec"), self.space)
        self.f = self.space["f"]
        self.both = value_and_grad(self.f, argnums=(0, 1))

    def attempt(self, call: Callable[[], Any], gradient: bool) -> Outcome:
        """The outcome of a call, and what it left behind."""
        done = Outcome()
        try:
            found = call()
            value, slopes = found if gradient else (found, None)
            done.value, done.gradient = repr(value), slopes
        except WengertError as error:
            done.refused, done.error = True, f"{type(error).__name__}: {error}"
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            where = [(x.name, x.lineno) for x in frames if x.filename == self.name]
            done.error = f"{type(error).__name__}: {error} {where}"
        done.world = repr(
            (self.space["log"], self.space["level"], vars(self.space["Thing"])["rate"])
        )
        return done

    def plain(self, args: tuple[Any, ...]) -> Outcome:
        with few_lines(self.name):
            return self.attempt(lambda: self.f(*args), gradient=False)

    def asked(self, args: tuple[Any, ...], on: bool) -> Outcome:
        with wengert.jit(on):
            return self.attempt(lambda: self.both(*args), gradient=True)


@contextmanager
def few_lines(name: str) -> Iterator[None]:
    """Raise `TooLong` when too many lines of a file are executed."""
    left = LINES

    def step(frame: Any, event: str, arg: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != name:
            return None
        left -= 1
        if left < 0:
            raise TooLong
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        yield
    finally:
        sys.settrace(before)


def draw(rng: random.Random) -> tuple[Any, ...]:
    x, y = (
        rng.choice([0.0, -0.0, 1.0, 0.5]) if rng.random() < 0.05 else rng.uniform(-1, 1)
        for _ in range(2)
    )
    return x, y, rng.choice([0, 1, 1, 2, 3, 4, 5])


def close(found: tuple[float, ...], wanted: tuple[float, ...], within: float) -> bool:
    scale = max([abs(x) for x in wanted if math.isfinite(x)], default=0.0)
    return all(
        (p == q or (p != p and q != q)) or abs(p - q) <= max(within * scale, 1e-13)
        for p, q in zip(found, wanted)
    )


def rounding(module: Module, args: tuple[Any, ...], wanted: tuple[float, ...]) -> float:
    """How far the last bits of the arguments move the gradient: what cancels there is lost for every order of sums."""
    scale = max([abs(x) for x in wanted], default=0.0) or 1.0
    most = 0.0
    for x, y in ((1 + 3e-15, 1), (1, 1 + 3e-15), (1 - 3e-15, 1 + 3e-15)):
        moved = module.asked((args[0] * x, args[1] * y, args[2]), on=False)
        if moved.gradient is not None:
            most = max([most, *(abs(p - q) / scale for p, q in zip(moved.gradient, wanted))])
    return most


@dataclass
class Verdict:
    """What became of a program: a word, the first difference if any, and how many calls gave a gradient."""

    word: str
    difference: str = ""
    gradients: int = 0


def judge(source: str, seed: int, calls: int = CALLS) -> Verdict:
    """Call a program with `calls` draws in all ways; the first difference ends it."""
    name = f"<random program {seed}>"
    try:
        plain, traced, kept = (Module(source, name) for _ in range(3))
        rng = random.Random(seed)
        verdict = Verdict("right")
        for number in range(calls):
            args = draw(rng)
            at = f"call {number} with {args}"
            try:
                wanted = plain.plain(args)
            except TooLong:
                return Verdict("too long", gradients=verdict.gradients)
            off, on = traced.asked(args, on=False), kept.asked(args, on=True)
            if off.refused or on.refused:
                if off.error != on.error:
                    return Verdict("refusals", f"{at}\n  traced: {off}\n  kept:   {on}")
                return Verdict("refused", off.error)
            for way, found in (("traced", off), ("kept", on)):
                if found.plain() != wanted.plain():
                    return Verdict(f"{way} value", f"{at}\n  plain: {wanted}\n  {way}: {found}")
            if off.gradient is None or on.gradient is None:
                continue
            verdict.gradients += 1
            if [*map(type, on.gradient)] != [*map(type, off.gradient)]:
                verdict.word = "type of a gradient"
                verdict.difference = f"{at}\n  traced: {off.gradient}\n  kept:   {on.gradient}"
            if not close(on.gradient, off.gradient, RELATIVE) and not close(
                on.gradient, off.gradient, 100 * rounding(traced, args, off.gradient)
            ):
                return Verdict(
                    "gradient", f"{at}\n  traced: {off.gradient}\n  kept:   {on.gradient}"
                )
        return verdict
    finally:
        linecache.cache.pop(name, None)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--count", type=int, default=100, help="how many programs")
    parser.add_argument("--calls", type=int, default=CALLS, help="calls of each")
    parser.add_argument("--show", action="store_true", help="print every program")
    parser.add_argument("--at-once", action="store_true", help="fold from the first call on")
    options = parser.parse_args()
    wengert.settings.strict = True
    if options.at_once:
        cache.VARIED = 0
    Budget.limited = False  # keep programs whether or not they pay
    words: collections.Counter[str] = collections.Counter()
    gradients, start = 0, time.perf_counter()
    for seed in range(options.seed, options.seed + options.count):
        source = Writer(seed).source()
        if options.show:
            print(source)
        verdict = judge(source, seed, options.calls)
        words[verdict.word] += 1
        gradients += verdict.gradients
        if verdict.difference:
            print(f"seed {seed}: {verdict.word}: {verdict.difference}")
            if verdict.word != "refused":
                print(source.removeprefix(PRELUDE))
        wengert.clear_cache()
    print(f"{dict(words)}, {gradients} gradients compared, {time.perf_counter() - start:.1f} s")
    return 0 if set(words) <= {"right", "refused", "too long"} else 1


if __name__ == "__main__":
    sys.exit(main())
