"""Random programs with vectors, matrices and floats, each as source and as the region of all its ways."""

from __future__ import annotations

import math
import operator as o
import random
from typing import Any

import numpy as np

from wengert.tracer.fold.region import APPEND, EXHAUSTED, LIST, POP, Folded, Op

from .regions import At, array, body, item, whole

VECTOR, MATRIX, MASK = array(1), array(2), array(1, bool)
F64 = np.float64
Made = tuple[str, Any]  # an expression and its operand
ELEMENTWISE = {"np.sin": np.sin, "np.tanh": np.tanh, "np.arctan": np.arctan, "np.abs": np.abs}
BOTH = {"+": o.add, "-": o.sub}
TOTALS = {"np.sum": np.sum, "np.mean": np.mean, "np.max": np.max, "np.min": np.min}


class Maker:
    """Writes statements of ``f(x, w, m, a, k)``: two vectors of one size, a square matrix, a float and an int."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0

    def program(self) -> tuple[str, Folded]:
        folded, at, inputs = whole(VECTOR, VECTOR, MATRIX, float, int)
        env: dict[str, Any] = dict(zip("xwmak", inputs, strict=True))
        self.lines.append("def f(x, w, m, a, k):")
        at = self.block(at, env, 1, self.random.randint(2, 6), 2)
        v, s = self.vector(at, env), self.scalar(at, env)
        total = at.call(np.sum, at.call(o.mul, v[1], env["x"], kind=VECTOR), kind=F64)
        self.lines.append(f"    return np.sum({v[0]} * x) + {s[0]}")
        at.end("return", (F64,), at.call(o.add, total, s[1], kind=F64))
        return "\n".join(self.lines) + "\n", folded

    # ------------------------------------------------------------------------------------------ expressions

    def names(self, env: dict[str, Any], *kinds: Any) -> list[str]:
        return [k for k, x in env.items() if isinstance(x, Op) and x.type in kinds]

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def vector(self, at: At, env: dict[str, Any], deep: int = 2) -> Made:
        """A vector of the size of all others, which stays small."""
        r = self.random.random()
        if not deep or r < 0.2:
            name = self.random.choice(self.names(env, VECTOR))
            return name, env[name]
        text, x = self.vector(at, env, deep - 1)
        if r < 0.4:
            word, fn = self.random.choice([*ELEMENTWISE.items()])
            return f"{word}({text})", at.call(fn, x, kind=VECTOR)
        if r < 0.5:
            product = at.call(o.matmul, env["m"], x, kind=VECTOR)
            return f"np.tanh(m @ {text})", at.call(np.tanh, product, kind=VECTOR)
        if r < 0.6:
            return f"{text}[::-1]", at.call(o.getitem, x, slice(None, None, -1), kind=VECTOR)
        if r < 0.7:
            number, s = self.scalar(at, env, deep - 1)
            product = at.call(o.mul, x, s, kind=VECTOR)
            return f"np.arctan({text} * {number})", at.call(np.arctan, product, kind=VECTOR)
        other, y = self.vector(at, env, deep - 1)
        if r < 0.8:
            mask = at.call(o.gt, x, y, kind=MASK)
            return f"np.where({text} > {other}, {text}, 0.5)", at.call(
                np.where, mask, x, 0.5, kind=VECTOR
            )
        if r < 0.85:
            both = at.call(np.stack, [x, y], kind=MATRIX)
            return f"np.sum(np.stack([{text}, {other}]), axis=0)", at.call(
                np.sum, both, axis=0, kind=VECTOR
            )
        if r < 0.9:
            both = at.call(np.concatenate, (x, y), kind=VECTOR)
            size = at.call(np.size, x, kind=int)
            part = at.call(o.getitem, both, slice(size, None, None), kind=VECTOR)
            return f"np.concatenate(({text}, {other}))[np.size({text}):]", part
        word, fn = self.random.choice([*BOTH.items()])
        return f"({text} {word} {other})", at.call(fn, x, y, kind=VECTOR)

    def scalar(self, at: At, env: dict[str, Any], deep: int = 2) -> Made:
        """A float of NumPy's."""
        r = self.random.random()
        names = self.names(env, F64)
        if names and (not deep or r < 0.2):
            name = self.random.choice(names)
            return name, env[name]
        if deep and r < 0.3:
            text, s = self.scalar(at, env, deep - 1)
            return f"(a * {text})", at.call(o.mul, env["a"], s, kind=F64)
        if deep and r < 0.4:
            text, s = self.scalar(at, env, deep - 1)
            other, t = self.scalar(at, env, deep - 1)
            made = at.op(math.atan, at.op(float, s))
            return f"(math.atan(float({text})) + {other})", at.call(o.add, made, t, kind=F64)
        text, x = self.vector(at, env, max(deep - 1, 0))
        if r < 0.5:
            other, y = self.vector(at, env, max(deep - 1, 0))
            dot = at.call(np.dot, x, y, kind=F64)
            return f"np.tanh(np.dot({text}, {other}))", at.call(np.tanh, dot, kind=F64)
        if r < 0.6:
            return f"{text}[-1]", at.call(o.getitem, x, -1, kind=F64)
        word, fn = self.random.choice([*TOTALS.items()])
        return f"{word}({text})", at.call(fn, x, kind=F64)

    # ------------------------------------------------------------------------------------------- statements

    def block(self, at: At, env: dict[str, Any], depth: int, length: int, levels: int) -> At:
        for _ in range(length):
            kinds = [self.assign] * 3 + [self.list]
            if levels:
                kinds += [self.choice, self.loop, self.loop]
            at = self.random.choice(kinds)(at, env, "    " * depth, levels)
        return at

    def assign(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        make, letter = self.random.choice([(self.vector, "v"), (self.scalar, "s")])
        text, x = make(at, env)
        kind = VECTOR if letter == "v" else F64
        own = [n for n in self.names(env, kind) if n not in "xw"]
        name = self.random.choice(own) if own and self.random.random() < 0.4 else self.fresh(letter)
        self.lines.append(f"{pad}{name} = {text}")
        env[name] = x
        return at

    def list(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        """Vectors go into a list, and one comes out of it."""
        name, out = self.fresh("l"), self.fresh("v")
        first, second = self.vector(at, env), self.vector(at, env)
        memory = at.op(LIST, first[1], kind=list)
        at.op(APPEND, memory, second[1], kind=None)
        env[out] = at.op(POP, memory, kind=VECTOR)
        self.lines += [f"{pad}{name} = [{first[0]}]", f"{pad}{name}.append({second[0]})"]
        self.lines.append(f"{pad}{out} = {name}.pop()")
        return at

    def choice(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        """One of two ways, which meet again with other values of some variables."""
        text, s = self.scalar(at, env)
        limit = round(self.random.uniform(-1, 1), 2)
        self.lines.append(f"{pad}if {text} > {limit}:")
        scope, inner = at.scope()
        no, yes = inner.decide(inner.call(o.gt, s, limit, kind=np.bool_))
        names = self.carried(env)
        for way, word in ((yes, ""), (no, "else:")):
            own = dict(env)
            if word:
                self.lines.append(f"{pad}{word}")
            way = self.block(way, own, len(pad) // 4 + 1, self.random.randint(1, 2), levels - 1)
            way.end("return", "s", *(own[n] for n in names))
        at, found = at.after(scope, "s", *(env[n].type for n in names))
        env.update(zip(names, found, strict=True))
        return at

    def loop(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        """``k`` turns, some of which are left early."""
        names = self.carried(env)
        loop = at.loop([env[n] for n in names], at.op(range, env["k"], kind=range))
        head, carried = body(loop, "s", *(env[n].type for n in names))
        turn, nothing = head.decide(EXHAUSTED)
        item(turn)
        nothing.end("leave", "s", *carried)
        self.lines.append(f"{pad}for _ in range(k):")
        own = env | dict(zip(names, carried, strict=True))
        turn = self.block(turn, own, len(pad) // 4 + 1, self.random.randint(1, 3), levels - 1)
        if self.random.random() < 0.3:
            text, s = self.scalar(turn, own)
            turn, out = turn.decide(turn.call(o.gt, s, 0.9, kind=np.bool_))
            out.end("leave", "s", *(own[n] for n in names))
            self.lines += [f"{pad}    if {text} > 0.9:", f"{pad}        break"]
        turn.end("next", "s", *(own[n] for n in names))
        at, found = at.after(loop, "s", *(env[n].type for n in names))
        env.update(zip(names, found, strict=True))
        return at

    def carried(self, env: dict[str, Any]) -> list[str]:
        return [n for n in self.names(env, VECTOR, F64) if n not in "xw"]
