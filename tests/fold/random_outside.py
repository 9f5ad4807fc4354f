"""Random programs that read lists, dicts, objects and generators outside, which change between the calls.

    python -m tests.fold.random_outside --seed 0 --count 200

Each call is made in plain Python, by a folded program, and traced: values are equal to the bit, gradients close, and
what is written to the outside is the same.
"""

from __future__ import annotations

import argparse
import collections
import linecache
import random
from typing import Any

import wengert
from wengert import jit, value_and_grad
from wengert.transforms import cache
from wengert.transforms.budget import Budget

CALLS = 24
STEADY = 6  # calls before anything changes
PRELUDE = """
import math
class Node:
    K = 0.5
    def __init__(self, v, nxt=None, items=()): self.v, self.nxt, self.items = v, nxt, items
    def scaled(self, q): return q * self.v + self.K
    def __iter__(self):
        for w in self.items: yield w
        if self.nxt is not None: yield from self.nxt
class Slot:
    __slots__ = ("v", "nxt", "items")
    K = 0.25
    def __init__(self, v, nxt=None, items=()): self.v, self.nxt, self.items = v, nxt, items
    def scaled(self, q): return q - self.v * self.K
    def __iter__(self):
        for w in self.items: yield w
def walk(q, depth):
    yield q, depth
    if depth > 0: yield from walk(q * 0.5 + RATE, depth - 1)
def total(node, q):
    if node is None: return 0.1 * q
    s = node.v * q
    for w in node.items: s = s + w * 0.1
    return s + total(node.nxt, s * 0.3)
TABLE = {"a": 0.5, "b": 1.5, 1: 2.0, 2: 0.3}
ITEMS, ROWS, RATE = [0.5, 1.0, -0.3], [[0.1, 0.2], [0.3]], 0.4
OBJ = Node(0.5, Node(0.3, None, [0.1]), [0.2, 0.4])
"""
HEAD = """
def f(x, n, arg):
    s, t, u, held, own, pick = x, 0.5, x * 0.5, [x], Node(x), OBJ
    for i in range(n):
"""
TAIL = "    return s + t * u + sum(held) * 0.1 + own.v + pick.v\n"
NUMBERS = (
    "{0}", "{0}", "{0} * {1} * 0.3", "math.sin({0})", "RATE", "TABLE.get({2}, {0})", 'TABLE["a"]', "sum(ITEMS) * 0.2",
    "ITEMS[int(abs({0})) % len(ITEMS)]", "OBJ.v", "OBJ.scaled({0})", "total(OBJ, {0})", "max(ITEMS, key=abs)",
    "(OBJ.nxt.v if OBJ.nxt is not None else {0})", "arg.v", "arg.scaled({0})", "own.v", "own.scaled({0})",
    "sum(w * {0} for w in OBJ)", "sum(q for q, d in walk({0}, n % 3)) * 0.1", "len(TABLE) * 0.1", "float(n) * 0.1",
    "sum(map(lambda w: w * RATE, ITEMS))",
)  # fmt: skip
CONDITIONS = (
    "{0} > 0.2", "{0} > -0.1", "n > 2", "{2} in TABLE", "OBJ.nxt is None", "len(ITEMS) > 2", "arg is OBJ", "RATE > {0}",
    "own is arg", "isinstance(arg, Node)", "pick.nxt is None",
)  # fmt: skip
LOOPS = (
    "ITEMS", "OBJ.items", "OBJ", "arg.items", "held", "TABLE.values()", "ROWS[0]", "[d for _, d in walk({0}, 2)]",
)  # fmt: skip
CHANGES = (
    'TABLE["a"] = rng.random()', "TABLE[2] = rng.choice([rng.random(), 2, True])", "TABLE.pop(1, None)",
    "TABLE[1] = rng.random()", 'TABLE = {"a": 1.0, 3: 0.5}', "ITEMS.append(rng.random())", "RATE = rng.random()",
    "ITEMS = [rng.random() for _ in range(rng.randint(1, 4))]", "OBJ.v = rng.choice([rng.random(), 2])",
    "OBJ = Node(rng.random())", "OBJ.nxt = None", "OBJ.nxt = Node(rng.random(), None, (0.5,))", "Node.K = rng.random()",
    "Node.scaled = lambda self, q: q * 0.5", "OBJ.items = [rng.random()]", "ROWS = [[0.5], ITEMS]",
)  # fmt: skip


class Writer:
    """Writes one program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.loops = 0

    def filled(self, texts: tuple[str, ...], names: list[str]) -> str:
        choice = self.rng.choice
        return choice(texts).format(choice(names), choice(names), self.rng.randint(1, 3))

    def block(self, names: list[str], pad: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            lines += [pad + line for line in self.statement(names, depth)]
        return lines

    def statement(self, names: list[str], depth: int) -> list[str]:
        choice, target = self.rng.choice, self.rng.choice("stu")
        kind = self.rng.randint(0, 8)
        if kind < 3 or depth == 0:
            return [
                f"{target} = {self.filled(NUMBERS, names)}",
                f"if abs({target}) > 5: {target} = {target} * 0.1",
            ]
        if kind == 3:
            lines = [f"if {self.filled(CONDITIONS, names)}:", *self.block(names, "    ", depth - 1)]
            if self.rng.random() < 0.6:
                lines += ["else:", *self.block(names, "    ", depth - 1)]
            return lines
        if kind == 4:
            self.loops += 1
            item = f"w{self.loops}"
            body = self.block([*names, item], "    ", depth - 1)
            return [f"for {item} in {self.filled(LOOPS, names)}:", *body]
        if kind == 5:
            return [f"if len(held) < 8: held.append({self.filled(NUMBERS, names)})"]
        if kind == 6:
            made = f"{choice(['Node', 'Slot'])}({choice(names)}, {choice(['None', 'OBJ', 'arg'])}, ITEMS)"
            return [choice([f"own.v = {self.filled(NUMBERS, names)} * 0.5", f"own = {made}"])]
        if kind == 7:
            return [
                f"pick = {choice(['OBJ', 'arg', 'own'])}",
                f"{target} = {target} * 0.5 + pick.v",
            ]
        return [f"held = {choice(['[s]', 'ITEMS', 'ITEMS[:]'])}"]

    def source(self) -> str:
        return (
            PRELUDE + HEAD + "\n".join(self.block(["x", "s", "t", "u"], " " * 8, 3)) + "\n" + TAIL
        )


def outcome(f: Any, *args: Any) -> Any:
    try:
        return f(*args)
    except Exception as error:
        return type(error).__name__, str(error)


def failed(x: Any) -> bool:
    return isinstance(x, tuple) and isinstance(x[0], str)


class Difference(AssertionError):
    pass


def judge(seed: int) -> str:
    """How a program fares: "folded", or why it is not; raises `Difference`."""
    rng = random.Random(seed)
    source, name = Writer(rng).source(), f"<random outside {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    scope: dict[str, Any] = {"rng": rng}
    exec(compile(source, name, "exec"), scope)
    wengert.clear_cache()
    both = value_and_grad(scope["f"])
    for call in range(CALLS):
        if call >= STEADY and rng.random() < 0.5:
            exec(rng.choice(CHANGES), scope)
        node, slot, at = scope["Node"], scope["Slot"], scope["OBJ"]
        given = [
            at,
            node(rng.random(), at, [rng.random()]),
            slot(rng.random(), None, scope["ITEMS"]),
        ]
        args = rng.uniform(-0.5, 1.5), rng.randint(0, 5), rng.choice(given)
        found = []
        for f, programs in ((scope["f"], True), (both, True), (both, False)):
            kept = list(scope["ITEMS"])
            with jit(programs):
                answer = outcome(f, *args)
            found.append((answer, list(scope["ITEMS"])))
            scope["ITEMS"][:] = kept
        (plain, wrote), (mine, mine_wrote), (traced, traced_wrote) = found
        right = wrote == mine_wrote == traced_wrote
        if failed(plain) or failed(traced):
            right &= mine in (plain, traced) or (not failed(mine) and repr(mine[0]) == repr(plain))
        else:
            right &= not failed(mine) and repr(mine[0]) == repr(plain)
            right = right and abs(mine[1] - traced[1]) <= 1e-9 * max(1.0, abs(traced[1]))
        if not right:
            raise Difference(f"seed {seed}, call {call} with {args}: {found}\n\n{source}")
    entry = [x for x in cache.entries.values() if x.name == "f"][-1]
    return entry.folding.why or ("folded" if entry.folding.programs else "not tried")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--count", type=int, default=100, help="how many programs")
    options = parser.parse_args()
    wengert.settings.strict = True
    Budget.limited, cache.VARIED = False, 0
    words = collections.Counter(
        judge(seed) for seed in range(options.seed, options.seed + options.count)
    )
    for word, count in words.most_common():
        print(count, word)


if __name__ == "__main__":
    main()
