"""Random programs as in `random_programs`, with what everyday programs use besides.

    python -m tests.fold.random_everyday --seed 0 --count 200 --at-once

Iterators and generators that are asked item by item and left early, any and all, queues, dicts with defaults, keys
that are taken out, named tuples, ``with`` statements, texts of numbers, and ``match``.
"""

from __future__ import annotations

import sys

from . import random_programs
from .random_programs import PRELUDE, Scope, Writer

MORE = """
from collections import Counter, defaultdict, deque
from contextlib import nullcontext, suppress
from itertools import islice, takewhile
from typing import NamedTuple

class Pair(NamedTuple):
    a: float
    b: float = 0.5

    def both(self):
        return self.a * 0.5 - self.b

class Guard:
    def __init__(self, held, kind=None):
        self.held, self.kind = held, kind

    def __enter__(self):
        self.held.append(0.25)
        return self.held[0]

    def __exit__(self, kind, error, traceback):
        self.held.append(self.held[-1] * 0.5)
        return kind is self.kind and kind is not None

def steps(p):
    while True:
        yield p
        p = p * 0.8 + 0.1

def evens(n, p):
    for i in range(n):
        if i % 2 == 0:
            yield i * p
        elif p > 0.5:
            yield p
"""
ITERATED = "next(g, {})"  # in the scope where all that stands in `begin` has a value


class Everyday(Writer):
    """Writes the source of a random program of this kind."""

    def has_all(self, s: Scope) -> bool:
        return ITERATED in s.calls

    def test(self, s: Scope, d: int = 1) -> str:
        if not self.chance(0.15):
            return super().test(s, d)
        q = self.name("q")
        over = self.pick(s.lists) if s.lists else f"({self.pick(s.floats)}, 0.3)"
        if self.chance(0.3):
            over = f"evens(n, {self.pick(s.floats)})"
        which, order = self.pick(["any", "all"]), self.pick(["<", ">"])
        forms = [f"{which}({q} {order} {self.pick(s.floats)} for {q} in {over})"] * 3
        forms += [f"next(({q} for {q} in {over} if {q} > 0.1), 0.0) {order} 0.4"]
        forms += ["q", "len(q) > 1", "0 in e", "w.a > w.b", "w == (0.5, 0.25)"] * self.has_all(s)
        return self.pick(forms)

    def statement(self, s: Scope, pad: int) -> None:
        if not self.chance(0.35):
            super().statement(s, pad)
        elif self.has_all(s) and self.chance(0.6):
            self.put(pad, self.pick(self.changes(s)))
        elif s.depth < 4:
            self.pick([self.managed, self.matched, self.gone_through])(s, pad)
        else:
            self.assign(s, pad)

    def changes(self, s: Scope) -> list[str]:
        a, b, e, k = self.pick(s.floats), self.pick(s.floats), self.number(s, 1), self.integer(s)
        forms = [f"q.append({e})", f"q.appendleft({e})", f"if q: {a} = q.popleft()"]
        forms += [
            f"{a} = q.pop() if q else {b}",
            f"{a} = sum(q)",
            f"q = deque([{e}, {a}], maxlen=3)",
        ]
        forms += [f"e[{k} % 3] += {e}", f"{a} = e[{k} % 2]", f"{a} = e.pop({k} % 3, {b})"]
        forms += [f"if {k} % 2 in e: del e[{k} % 2]", f"{a} = sum(e.values()) + len(e)"]
        forms += [
            f"w = w._replace(b={e})",
            f"w = Pair({e}, {a})",
            f"{a}, {b} = w",
            f"{a} = w.both()",
        ]
        forms += [f"{a} = w[{k} % 2]", f"m = {{**m, {k} % 3: {e}}}", f"m.update({{1: {e}}}, s={a})"]
        forms += [
            f"m[f'{{{k} % 3}}'] = {e}",
            f"{a} = m.pop({self.key(s)}, {b})",
            f"m[str({k} % 2)] = {a}",
        ]
        forms += [f"g = steps({a})", f"it = iter([{a}, {e}, {b}])", f"{a} = next(it, {b})"]
        forms += [
            f"{a} = next(g)",
            f"g = evens(n, {e})",
            f"{a} += sum(islice(steps({b}), {k} % 4))",
        ]
        forms += [f"{a} = sum(it)", f"{a} += sum(takewhile(lambda q: q < 0.5, evens(n, {e})))"]
        if s.lists:
            forms += [
                f"it = iter({self.pick(s.lists)})",
                f"{a}, *z = [{e}, {b}, *{self.pick(s.lists)}]",
            ]
        if s.lists and s.lengths:
            u = self.pick(s.lists)
            forms += [f"if len({u}) > 2: del {u}[{self.index(s, u)}]"]
        return forms

    def managed(self, s: Scope, pad: int) -> None:
        a = self.pick(s.floats)
        errors = ["ZeroDivisionError", "Stop", "ValueError"]
        if self.has_all(s):
            held = self.pick([f"Guard([{a}], {self.pick([*errors, 'None'])})", "Guard(z)"])
            heads = [f"with {held}:", f"with {held} as {a}:"]
        else:
            heads = [f"with Guard([{a}], {self.pick(errors)}) as {a}:"]
        heads += [
            f"with suppress({', '.join(self.rng.sample(errors, 2))}):",
            f"with nullcontext({a}) as {a}:",
        ]
        self.put(pad, self.pick(heads))
        self.block(s.inner(), pad + 1, 2)
        danger = f"{a} = {a} / ({self.integer(s)})"
        self.put(pad + 1, self.pick([danger, f"if {self.test(s)}: raise Stop(f'{{{a}:.2f}}', n)"]))

    def matched(self, s: Scope, pad: int) -> None:
        a, b, k, p = self.pick(s.floats), self.pick(s.floats), self.integer(s), self.name("p")
        subjects = [
            f"({k} % 3, {a})",
            f"[{a}, {b}]",
            a,
            f"{{'s': {a}, 1: {k}}}",
            f"Pair({a}, {b})",
            f"{k} % 4",
        ]
        subjects += self.flags(s)
        if len(subjects) > 2 and self.chance(0.5):
            self.put(
                pad, f"{p} = {self.pick(subjects)} if {self.test(s)} else {self.pick(subjects)}"
            )
            self.put(pad, f"match {p}:")
        else:
            self.put(pad, f"match {self.pick(subjects)}:")
        patterns = [
            f"(0, {p})",
            f"[{p}, float()] if {p} > 0.2",
            f"float({p})",
            f"{{'s': {p}}}",
            f"Pair({p}, _)",
        ]
        patterns += [f"Pair(b={p})", f"int({p})", f"[{p}, *_]", f"0 | 1 as {p}", f"(1 | 2, {p})"]
        for pattern in self.rng.sample(patterns, self.rng.randint(1, 4)):
            self.put(pad + 1, f"case {pattern}:")
            self.put(pad + 2, f"{a} = {b} * 0.5 + {p} * 0.3")
            self.block(s.inner(), pad + 2, 1)
        if self.chance(0.5):
            self.put(pad + 1, f"case {self.pick(['_', 'None', 'str()'])}:")
            self.block(s.inner(), pad + 2, 1)

    def flags(self, s: Scope) -> list[str]:
        return [self.pick(s.flags)] if s.flags else []

    def gone_through(self, s: Scope, pad: int) -> None:
        """A loop over something that may be left early."""
        if s.loops >= 3:
            return self.assign(s, pad)
        inside = s.inner(loops=s.loops + 1, in_loop=True)
        q, a = self.name("q"), self.pick(s.floats)
        forms = [f"evens(n + 1, {a})", f"islice(steps({a}), 4)", f"zip(evens(4, {a}), range(n))"]
        forms += ["it", "g", "q", "list(e)", "zip(it, g)"] * self.has_all(s)
        over = self.pick(forms)
        inside.lengths = inside.lengths and over != "q"
        if over in ("q", "it", "g"):  # it might never end
            inside.calls, inside.things = [], []
        if over == "list(e)":
            self.put(pad, f"for {q} in list(e.values()):")
        elif over.startswith("zip"):
            self.put(pad, f"for {q}, _ in {over}:")
        else:
            self.put(pad, f"for {q} in {over}:")
        inside.floats.append(q)
        self.put(pad + 1, f"{a} = {a} * 0.5 + {q} * 0.3")
        self.put(pad + 1, f"if {a} > 0.8: break")
        self.block(inside, pad + 1, 2)
        if over == "g" or self.chance(0.3):
            self.put(pad + 1, f"if {self.pick(s.floats)} > -0.5: break")
        if self.chance(0.3):
            self.put(pad, "else:")
            self.block(s.inner(), pad + 1, 1)
        return None

    def block(self, s: Scope, pad: int, most: int = 3) -> None:
        if pad == 1 and s.floats[0] == "a" and not self.begun:  # of `f`
            self.begun = True
            for line in ("g = steps(x)", "it = iter([x, y, 0.5])", "q = deque([x, y])", "z = [y]"):
                self.put(1, line)
            for line in ("e = defaultdict(float)", "w = Pair(x, y)", "m = {'s': x, 0: y}"):
                self.put(1, line)
            s.calls += [ITERATED, "next(it, {})", "Pair({}, 2.0).both()", "e.setdefault(1, {})"]
        super().block(s, pad, most)

    def source(self) -> str:
        self.begun = False
        return super().source().replace(PRELUDE, PRELUDE + MORE)


if __name__ == "__main__":
    random_programs.Writer = Everyday  # type: ignore[misc]
    sys.exit(random_programs.main())
