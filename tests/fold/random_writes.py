"""Random programs that write to arrays which they have made: in plain Python, traced, and with programs kept.

    python -m tests.fold.random_writes --seed 0 --count 300             # print what differs, with the source

Each has a function ``f(x, y, n)`` of two floats and an int, as in `random_programs`, which compares them. The grammar
has what is dangerous: arrays with several names, views that are kept and written through, arrays in lists and objects,
handed to functions, swapped, written on some ways only, made anew in loops, and read as a whole between writes.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
import warnings

import wengert
from wengert.transforms import cache
from wengert.transforms.budget import Budget

from .random_programs import CALLS, judge
from .random_programs import PRELUDE as OF_NUMBERS

PRELUDE = (
    OF_NUMBERS
    + """
import numpy as np

class Holder:
    def __init__(self, u):
        self.u = u
        self.last = 0.0

    def add(self, q):
        if q > 0.1:
            self.u[0] += q
        else:
            self.u[-1] *= 0.7
        self.last = self.u[0]
        return self.last

def touched(p, q):
    p[0] = 0.5 * q * p[-1] + 0.1
    if q > 0.1:
        p[-1] += q
    return p

def deep(p, q, n):
    if n <= 0:
        return q * p[0]
    p[n % len(p)] += 0.3 * q
    z = p[1 % len(p):]
    z *= 0.9
    return deep(p, 0.9 * q, n - 1) + 0.1 * p[n % len(p)]

def made(p, q):
    z = np.zeros_like(p)
    z[1:] = q * p[:-1]
    z[0] = q
    return z
"""
)


class Writer:
    """Writes the source of a random program: ``u`` and ``v`` have n + 2 items, ``w`` is any vector, ``m`` a matrix."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.pick = self.rng.choice
        self.lines: list[str] = []
        self.names = 0
        self.counters: list[str] = []

    def put(self, pad: int, *texts: str) -> None:
        self.lines += ["    " * pad + text for text in texts]

    def source(self) -> str:
        self.put(0, "def f(x, y, n):")
        self.put(1, "a, b, k = x, 0.5 * y, n", f"u = {self.made()}", f"v = {self.made()}")
        self.put(1, f"w = {self.pick(['u', 'v', 'u[1:]', 'np.ones(3) * y'])}")
        self.put(1, self.pick(["m = np.zeros((n + 2, 3))", "m = np.full((3, n + 2), y)"]))
        self.put(1, "o, t = Holder(u), [u, v.copy()]")
        self.put(1, "c, g = np.arange(n + 2), np.zeros(n + 2, dtype=bool)")
        if self.rng.random() < 0.3:
            self.put(1, "def inner(q):", "    u[0] = u[0] * 0.5 + q", "    return u[-1] + q")
        else:
            self.put(1, "def inner(q):", "    return 0.4 * q")
        for _ in range(2):
            self.block(1, 5, 0)
        total = self.pick(["u.sum()", "u @ v", "np.sum(w * w)", "np.tanh(m.sum()) + u[0]"])
        self.put(1, f"return a + 0.3 * b + {total} + 0.1 * np.sum(m) + t[0][0] + o.last")
        return PRELUDE + "\n" + "\n".join(self.lines) + "\n"

    # ---------------------------------------------------------------------------------------- expressions

    def made(self) -> str:
        return self.pick(
            [
                "np.zeros(n + 2)", "np.ones(n + 2)", "np.full(n + 2, x)", "np.arange(n + 2.0) * y",
                "np.array([x] + [0.1 * j for j in range(n + 1)])", "np.ones((2, n + 2))[1] * x",
            ]
        )  # fmt: skip

    def full(self) -> str:
        return self.pick("uv")

    def any(self) -> str:
        return self.pick(["u", "v", "w", "w", "t[0]", "t[-1]", "o.u", "m[0]", "m[:, 1]"])

    def index(self, p: str) -> str:
        return self.pick(["0", "-1", f"k % len({p})", f"(k + 1) % len({p})", "1 % len(" + p + ")"])

    def number(self) -> str:
        p = self.any()
        q = self.pick(["a", "b", "x", "y"])
        u, v = self.full(), self.full()
        return self.pick(
            [
                q, q, f"0.5 * {q}", f"math.tanh({q} + a)", f"{p}[{self.index(p)}] * 0.5", f"np.tanh({u} @ {v})",
                f"np.tanh({p}.sum())", f"float(np.max({p}) * 0.3)", f"m[{self.pick(['0', '-1'])}, 1] + 0.1 * {q}",
                f"np.mean({u} * {v})", f"np.sin(np.sum({p}[1:]))", "0.25", f"{q} * {q}", f"np.tanh(np.dot({u}, {u}))",
                "0.1 * c[k % len(c)]", "0.1 * c.sum()", f"{u}[c[0]] * 0.5", f"float(g[-1]) * {q}",
                f"np.sum(g) * {q} * 0.1",
                f"inner({q})", f"deep({p}, {q}, n % 3)", f"np.tanh(o.add({q}))", f"touched({p}, {q})[0]",
                f"np.tanh(np.linalg.norm({u} + 2.0))", f"np.sum({p} > {q}) * 0.1 * {q}",
                "np.tanh(np.sum(np.dot(m.T, m)))", f"np.tanh(np.sum(np.vstack([z[:2] for z in t]) * {q}))",
                f"np.tanh(np.stack([{u}, {v}])[-1, 0])", f"min(1, {u}[0], {q})", f"max({u}[-1], {v}[0]) * 0.5",
                f"np.tanh(np.sum(np.asarray({p}) * {p}))", f"np.tanh(m.T[-1, 0] * {q})",
                f"np.tanh(np.sum(m[:, :2])) * {q}", "np.tanh(np.sum(np.sin(m[1:, ::2]) * m[1:, ::2]))",
            ]
        )  # fmt: skip

    def vector(self) -> str:
        """Of the size of u and v."""
        u, v, q = self.full(), self.full(), self.pick(["a", "b", "x"])
        return self.pick(
            [
                f"{u}[c]", f"{u} * g", f"{u} - 0.1 * c", f"{u} * {q}", f"0.5 * ({u} + {v})",
                f"np.tanh({u} - {q})", f"{u}[::-1]", f"np.sin({u}) * {v}", u,
                f"np.where({u} > {v}, {u}, {q})", f"made({u}, {q})", f"np.tanh({u} * {u} + {v})",
                f"{u} / (1.5 + {v} * {v})",
            ]
        )  # fmt: skip

    def test(self) -> str:
        u, q = self.full(), self.pick(["a", "b", "x", "y"])
        return self.pick(
            [
                f"{q} > 0.1", f"{u}[0] > {q}", f"np.max({u}) > 0.7", f"k % 2 == {self.pick('01')}", f"{u}[-1] < 0.4",
                f"np.any({u} > {q})", "g[0]", "not g.all()", "c[1] > c[0]", "k > 2", f"{u}.sum() > 0.3",
                "w is u", "len(w) > 3",
            ]
        )  # fmt: skip

    # ----------------------------------------------------------------------------------------- statements

    def block(self, pad: int, most: int, loops: int) -> None:
        for _ in range(self.rng.randint(1, most)):
            kind = self.rng.choices(
                [self.write, self.name, self.assign, self.branch, self.loop, self.leave],
                [
                    6,
                    2.5,
                    2,
                    2 if pad < 5 else 0,
                    2.5 if loops < 2 and pad < 4 else 0,
                    0.7 * (pad > 1),
                ],
            )[0]
            kind(pad, loops)

    def write(self, pad: int, loops: int) -> None:
        p, e = self.any(), self.number()
        u, v = self.full(), self.full()
        i = self.index(p)
        forms = [
            f"{p}[{i}] = {e}", f"{p}[{i}] += {e}", f"{p}[{i}] *= 0.8", f"{p}[1:] = {e}", f"{p}[1:] -= 0.1 * {e}",
            f"{p}[:] = {p}[::-1]", f"{p}[1:] = {p}[:-1]", f"{u} += 0.1 * {v}", f"{u} *= 0.9", f"{u} -= {e}",
            f"{u}[:] = {self.vector()}", f"{u}[...] = 0.5 * {v}", f"{u}[1:-1] = 0.5 * ({v}[2:] - {u}[:-2])",
            f"{u}[{u} > 0.2] = {e}", f"{u}[{u} < {v}] *= 0.5", f"{p}[0], {p}[-1] = {p}[-1], {p}[0]",
            f"m[0] = {e}", f"m[-1, 0] = {e}", "m[:, 1] = 0.5 * m[:, 0]", "m[1:] += 0.1 * m[:-1]", "m *= 0.9",
            f"m[:, 0] += {e}", f"{p} += {e}" if p in "uvw" else f"{p}[0] -= {e}", f"{u}[k % 2::2] = {e}",
            "c[0], c[-1] = c[-1], c[0]", "c[k % len(c)] = c[0]", "c[1:] = c[:-1]", "c[:] = c[::-1]",
            f"g[k % len(g)] = {self.test()}", f"g |= {u} > {e}", "g[1:] = False", f"{u}[g] = {e}", f"{u}[~g] *= 0.7",
            f"{u}[g] = {v}[g]", "g[0] = not g[-1]", f"{u}[c[0]] += {e}", "c *= g", f"m.T[1] = {e}", "m[1:].T[0] *= 0.9",
            f"{u}[:2] = {v}[:2] * {e}", f"{u}[{u} > {v}] = {v}[{u} > {v}]",
        ]  # fmt: skip
        self.put(pad, self.pick(forms))

    def name(self, pad: int, loops: int) -> None:
        u, v = self.full(), self.full()
        forms = [
            f"{u} = {self.vector()}", f"{u} = {v}", "u, v = v, u", f"{u} = {v}.copy()", f"{u} = {self.made()}",
            "w = m.T[0]", f"w = np.asarray({u})", f"{u} = {v}.astype(float, copy=False)", "m = m.T",
            f"w = {u}", f"w = {u}[1:]", f"w = {u}[::-1]", "w = m[0]", "w = m[:, 1]", "w = m[-1][1:]",
            f"w = {self.vector()}",
            f"o.u = {u}", "u = o.u if len(o.u) == n + 2 else u", f"t[0] = {u}", f"t = [{u}, {v}]", f"o = Holder({u})",
            f"{u} = t[0]", f"t.append({u})", f"{u} = np.empty(n + 2); {u}[:] = {self.pick('abxy')}",
            f"w = touched({u}, a)",
            f"{u} = made({v}, a)", "t = [z * 0.5 for z in t]", "t[0], t[-1] = t[-1], t[0]", "w = np.zeros(3)",
        ]  # fmt: skip
        self.put(pad, self.pick(forms))

    def assign(self, pad: int, loops: int) -> None:
        q = self.pick("ab")
        self.put(pad, self.pick([f"{q} = {self.number()}", f"{q} = {self.number()}", "k += 1"]))

    def branch(self, pad: int, loops: int) -> None:
        self.put(pad, f"if {self.test()}:")
        self.block(pad + 1, 3, loops)
        if self.rng.random() < 0.5:
            self.put(pad, "else:")
            self.block(pad + 1, 3, loops)

    def loop(self, pad: int, loops: int) -> None:
        self.names += 1
        j = f"j{self.names}"
        form = self.pick(
            [f"for {j} in range(n):", f"for {j} in range(3):", f"for {j}, z in enumerate({self.full()}):", "while"]
        )  # fmt: skip
        if form == "while":
            self.put(pad, f"{j} = 0", f"while {j} < 4 and {self.test()}:")
            self.put(pad + 1, f"{j} += 1")
        else:
            self.put(pad, form)
            if "enumerate" in form:
                self.put(pad + 1, "a = 0.5 * a + 0.1 * z")
            elif self.rng.random() < 0.5:
                p = self.full()
                self.put(pad + 1, f"{p}[{j} % len({p})] = {self.number()}")
        self.block(pad + 1, 3, loops + 1)

    def leave(self, pad: int, loops: int) -> None:
        words = ["return a + u[0] * b"] + ["break", "continue"] * (loops > 0)
        self.put(pad, f"if {self.test()}:", f"    {self.pick(words)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--count", type=int, default=100, help="how many programs")
    parser.add_argument("--calls", type=int, default=CALLS, help="calls of each")
    parser.add_argument("--why", action="store_true", help="tell why programs are not folded")
    options = parser.parse_args()
    wengert.settings.strict = True
    cache.VARIED = 0
    Budget.limited = False
    words: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    gradients, hits, start = 0, 0, time.perf_counter()
    warnings.simplefilter("ignore")
    for seed in range(options.seed, options.seed + options.count):
        source = Writer(seed).source()
        verdict = judge(source, seed, options.calls)
        words[verdict.word] += 1
        gradients += verdict.gradients
        for entry in cache.entries.values():
            hits += entry.hits
            reasons[
                entry.folding.why or ("folded" if entry.folding.programs else "no program")
            ] += 1
        if verdict.difference:
            print(f"seed {seed}: {verdict.word}: {verdict.difference}")
            if verdict.word != "refused":
                print(source.removeprefix(PRELUDE))
        wengert.clear_cache()
    print(
        f"{dict(words)}, {gradients} gradients compared, {hits} hits, {time.perf_counter() - start:.1f} s"
    )
    if options.why:
        for why, count in reasons.most_common(20):
            print(f"{count:5} {why}")
    return 0 if set(words) <= {"right", "refused", "too long"} else 1


if __name__ == "__main__":
    sys.exit(main())
