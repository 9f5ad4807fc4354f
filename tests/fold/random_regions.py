"""Random programs, each as source and as the region of all its ways."""

from __future__ import annotations

import math
import operator as o
import random
from typing import Any

from wengert.tracer.fold.region import (
    APPEND,
    EXHAUSTED,
    LENGTH,
    LIST,
    LOAD,
    POP,
    REPEAT,
    STORE,
    Folded,
    Function,
    Op,
)

from .regions import At, body, function, item, whole

UNARY = {"math.sin": math.sin, "math.atan": math.atan, "abs": abs, "-": o.neg}
BINARY = {"+": o.add, "-": o.sub, "*": o.mul}
TESTS = {"<": o.lt, "<=": o.le, ">": o.gt, ">=": o.ge}


class Maker:
    """Writes statements, and what they do into blocks; ``env`` has the operand of each variable."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.folded: Folded
        self.made: Function | None = None
        self.returns: list[
            list[bool]
        ] = []  # the loops and scopes around, and whether they were returned from

    def program(self) -> tuple[str, Folded]:
        self.folded, at, (x, y, n) = whole(float, float, int)
        with_function = self.random.random() < 0.4
        if with_function:
            self.function()
        self.lines.append("def f(x, y, n):")
        env: dict[str, Any] = {"x": x, "y": y, "n": n}
        at = self.block(at, env, 1, self.random.randint(3, 7), 3)
        a = self.number(at, env)
        b = self.number(at, env)
        at.give(at.op(o.add, b[1], at.op(o.mul, a[1], at.op(math.sin, env["x"]))))
        self.lines.append(f"    return {b[0]} + {a[0]} * math.sin(x)")
        return "\n".join(self.lines) + "\n", self.folded

    def function(self) -> None:
        self.made, at, (v, k) = function(float, int)
        self.folded.functions["g"] = self.made
        self.lines += ["def g(v, k):", "    if k <= 0:", "        return math.sin(v)"]
        at, stop = at.test(o.le, k, 0)
        stop.give(stop.op(math.sin, v))
        env: dict[str, Any] = {"v": v, "k": k}
        at = self.block(at, env, 1, self.random.randint(1, 4), 2)
        text, r = self.number(at, env)
        self.lines.append(f"    return {text} * 0.5")
        at.give(at.op(o.mul, r, 0.5))

    # -------------------------------------------------------------------------------------------- statements

    def block(self, at: At, env: dict[str, Any], depth: int, length: int, levels: int) -> At:
        for _ in range(length):
            kinds = [self.assign] * 4 + [self.list, self.store, self.grow, self.shrink]
            if levels:
                kinds += [self.choice, self.choice, self.loop, self.loop, self.call, self.swap]
                kinds += [self.alias, self.nested, self.trying, self.leaving, self.late]
            at = self.random.choice(kinds)(at, env, "    " * depth, levels)
        return at

    def names(self, env: dict[str, Any], kind: type) -> list[str]:
        return [k for k, x in env.items() if (x.type if isinstance(x, Op) else type(x)) is kind]

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def number(self, at: At, env: dict[str, Any], deep: int = 2) -> tuple[str, Any]:
        """An expression of a float, which stays small."""
        r = self.random.random()
        if not deep or r < 0.3:
            names = self.names(env, float)
            if r < 0.05 or not names:
                value = round(self.random.uniform(-2, 2), 2)
                return f"({value})", value
            name = self.random.choice(names)
            return name, env[name]
        if r < 0.5:
            word, fn = self.random.choice([*UNARY.items()])
            text, x = self.number(at, env, deep - 1)
            return f"({word}({text}))", at.op(fn, x)
        if r < 0.58 and self.names(env, list):
            name, text, i = self.index(at, env)
            return f"{name}[{text}]", at.op(LOAD, env[name], i)
        if r < 0.64:
            text, x = self.number(at, env, deep - 1)
            other, y = self.number(at, env, deep - 1)
            return f"({text} / (1.0 + abs({other})))", at.op(
                o.truediv, x, at.op(o.add, 1.0, at.op(abs, y))
            )
        word, fn = self.random.choice([*BINARY.items()])
        left, x = self.number(at, env, deep - 1)
        right, y = self.number(at, env, deep - 1)
        found = at.op(fn, x, y)
        if word == "*":
            return f"math.atan({left} * {right})", at.op(math.atan, found)
        return f"({left} {word} {right})", found

    def index(self, at: At, env: dict[str, Any]) -> tuple[str, str, Any]:
        """A list that is not empty, and an index into it."""
        name = self.random.choice(self.names(env, list))
        if self.random.random() < 0.3:
            return name, "-1", -1
        whole = self.random.choice(self.names(env, int))
        size = at.op(LENGTH, env[name], kind=int)
        return name, f"{whole} % len({name})", at.op(o.mod, env[whole], size, kind=int)

    def assign(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        names = self.names(env, float)
        name = self.random.choice(names) if self.random.random() < 0.6 else self.fresh("v")
        text, env[name] = self.number(at, env)
        self.lines.append(f"{pad}{name} = {text}")
        return at

    def list(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        names = self.names(env, list)
        name = (
            self.random.choice(names) if names and self.random.random() < 0.5 else self.fresh("l")
        )
        texts, xs = zip(*[self.number(at, env, 1) for _ in range(2)], strict=True)
        made = at.op(LIST, *xs, kind=list)
        text = f"[{', '.join(texts)}]"
        if self.random.random() < 0.4:
            made = at.op(REPEAT, made, 2, kind=list)
            text += " * 2"
        env[name] = made
        self.lines.append(f"{pad}{name} = {text}")
        return at

    def store(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        if self.names(env, list):
            text, x = self.number(at, env)
            name, where, i = self.index(at, env)
            at.op(STORE, env[name], i, x)
            self.lines.append(f"{pad}{name}[{where}] = {text}")
        return at

    def grow(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        if self.names(env, list):
            name = self.random.choice(self.names(env, list))
            text, x = self.number(at, env)
            at.op(APPEND, env[name], x)
            self.lines.append(f"{pad}{name}.append({text})")
        return at

    def shrink(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        """Take one off, after one was put on, so that there is always one left."""
        if self.names(env, list):
            name = self.random.choice(self.names(env, list))
            text, x = self.number(at, env)
            at.op(APPEND, env[name], x)
            self.lines.append(f"{pad}{name}.append({text})")
            other = self.fresh("v")
            env[other] = at.op(POP, env[name])
            self.lines.append(f"{pad}{other} = {name}.pop()")
        return at

    def swap(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        names = self.names(env, self.random.choice([list, float]))
        if len(names) > 1:
            a, b = self.random.sample(names, 2)
            env[a], env[b] = env[b], env[a]
            self.lines.append(f"{pad}{a}, {b} = {b}, {a}")
        return at

    def call(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        whole = self.random.choice(self.names(env, int))
        if self.made is not None:
            text, x = self.number(at, env)
            less = 1 if "k" in env else 0
            k = (
                at.op(o.sub, env["k"], 1, kind=int)
                if less
                else at.op(o.mod, env[whole], 3, kind=int)
            )
            got = self.fresh("v")
            self.lines.append(f"{pad}{got} = g({text}, {'k - 1' if less else f'{whole} % 3'})")
            at, (env[got],) = at.after(at.invoke(self.made, x, k), (float,), float)
        return at

    def alias(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        if self.names(env, list):
            a, b = self.fresh("l"), self.random.choice(self.names(env, list))
            env[a] = env[b]
            self.lines.append(f"{pad}{a} = {b}")
        return at

    def nested(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        """One of two lists, out of a list."""
        if self.names(env, list):
            a, b = (self.random.choice(self.names(env, list)) for _ in range(2))
            got, whole = self.fresh("l"), self.random.choice(self.names(env, int))
            outer = at.op(LIST, env[a], env[b], kind=list)
            i = at.op(o.mod, env[whole], 2, kind=int)
            env[got] = at.op(LOAD, outer, i, kind=list)
            self.lines.append(f"{pad}{got} = [{a}, {b}][{whole} % 2]")
        return at

    def trying(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        text, x = self.number(at, env)
        got = self.fresh("v")
        scope, inner = at.scope()
        self.lines += [f"{pad}{got} = {text}", f"{pad}try:"]
        self.lines += [f"{pad}    {got} = math.sqrt({got})", f"{pad}except ValueError:"]
        root = inner.op(math.sqrt, x)
        wrong = inner.raised(root, ValueError)
        inner.end("return", "s", root)
        special = {**env, got: x}
        text, y = self.number(wrong, special)
        self.lines.append(f"{pad}    {got} = {text}")
        wrong.end("return", "s", y)
        at, (env[got],) = at.after(scope, "s", float)
        return at

    def leaving(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        """Return from the function, out of all loops and decisions around."""
        text, subject = self.test(at, env)
        at, out = at.decide(subject)
        self.lines.append(f"{pad}if {text}:")
        text, x = self.number(out, env)
        self.lines.append(f"{pad}    return {text}")
        self.leave(out, x)
        return at

    def leave(self, at: At, x: Any) -> None:
        if not self.returns:
            at.give(x)
            return
        self.returns[-1][0] = True
        at.end("leave" if self.returns[-1][1] else "return", "returned", x)

    def after(self, at: At, op: Any, state: Any, kinds: list[type]) -> tuple[At, list[Op]]:
        """What comes after a loop or scope that may have been returned from."""
        if not self.returns.pop()[0]:
            return at.after(op, state, *kinds)
        (at, found), (out, (x,)) = at.afters(op, {state: kinds, "returned": (float,)})
        self.leave(out, x)
        return at, found

    def late(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        """A variable that is None until a pass gives it a number."""
        carried = [*self.names(env, float), *self.names(env, list)]
        kinds = self.kinds(env, carried)
        got, name = self.fresh("v"), self.fresh("i")
        whole = self.random.choice(self.names(env, int))
        self.lines += [f"{pad}{got} = None", f"{pad}for {name} in range({whole} % 4):"]
        scope, inside = at.scope()
        size = inside.op(o.mod, env[whole], 4, kind=int)
        op = inside.loop([env[k] for k in carried], inside.op(range, size, kind=range))
        depth = len(pad) // 4 + 2
        for first in (True, False):
            head, parameters = body(op, first, *kinds, *([] if first else [float]))
            turn, nothing = head.decide(EXHAUSTED)
            nothing.end("leave", first, *parameters)
            inner = {**env, **dict(zip(carried, parameters, strict=False)), name: item(turn)}
            if not first:
                inner[got] = parameters[-1]
            self.lines.append(f"{pad}    if {got} is None:" if first else f"{pad}    else:")
            self.returns.append([False, True])
            turn = self.block(turn, inner, depth, self.random.randint(0, 2), 0)
            self.returns.pop()
            text, x = self.number(turn, inner)
            self.lines.append(f"{pad}        {got} = {text}")
            turn.end("next", False, *[inner[k] for k in carried], x)
        self.lines += [f"{pad}if {got} is None:"]
        (none, a), (some, b) = inside.afters(op, {True: kinds, False: [*kinds, float]})
        special = {**env, **dict(zip(carried, a, strict=True))}
        text, x = self.number(none, special)
        self.lines.append(f"{pad}    {got} = {text}")
        none.end("return", "s", *a, x)
        some.end("return", "s", *b)
        at, results = at.after(scope, "s", *kinds, float)
        env.update(zip([*carried, got], results, strict=True))
        return at

    def test(self, at: At, env: dict[str, Any]) -> tuple[str, Op]:
        word, fn = self.random.choice([*TESTS.items()])
        (left, x), (right, y) = self.number(at, env, 1), self.number(at, env, 1)
        return f"{left} {word} {right}", at.op(fn, x, y, kind=bool)

    def kinds(self, env: dict[str, Any], names: Any) -> list[type]:
        return [env[k].type if isinstance(env[k], Op) else type(env[k]) for k in names]

    def choice(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        """A decision whose ways meet again; what only one of them has made is forgotten."""
        scope, inner = at.scope()
        self.returns.append([False, False])
        text, subject = self.test(inner, env)
        no, yes = inner.decide(subject)
        self.lines.append(f"{pad}if {text}:")
        yes_env, no_env = dict(env), dict(env)
        depth = len(pad) // 4 + 1
        yes = self.block(yes, yes_env, depth, self.random.randint(1, 3), levels - 1)
        self.lines += [f"{pad}    pass", f"{pad}else:"]
        no = self.block(no, no_env, depth, self.random.randint(0, 3), levels - 1)
        self.lines.append(f"{pad}    pass")
        changed = [k for k in env if yes_env[k] is not env[k] or no_env[k] is not env[k]]
        state = "s"
        yes.end("return", state, *[yes_env[k] for k in changed])
        no.end("return", state, *[no_env[k] for k in changed])
        at, results = self.after(at, scope, state, self.kinds(env, changed))
        env.update(zip(changed, results, strict=True))
        return at

    def loop(self, at: At, env: dict[str, Any], pad: str, levels: int) -> At:
        """A loop over integers, which may be broken out of, or go on early."""
        carried = [*self.names(env, float), *self.names(env, list)]
        whole = self.random.choice(self.names(env, int))
        size = at.op(o.mod, env[whole], 4, kind=int)
        op = at.loop([env[k] for k in carried], at.op(range, size, kind=range))
        head, parameters = body(op, "s", *self.kinds(env, carried))
        turn, nothing = head.decide(EXHAUSTED)
        inner = {**env, **dict(zip(carried, parameters, strict=True))}
        name = self.fresh("i")
        inner[name] = item(turn)
        self.lines.append(f"{pad}for {name} in range({whole} % 4):")
        depth = len(pad) // 4 + 1
        nothing.end("leave", "s", *parameters)
        self.returns.append([False, True])
        turn = self.block(turn, inner, depth, self.random.randint(1, 3), levels - 1)
        way = self.random.random()
        states: dict[Any, list[type]] = {"s": self.kinds(env, carried)}
        if way < 0.6:
            text, subject = self.test(turn, inner)
            turn, out = turn.decide(subject)
            word = "break" if way < 0.3 else "continue" if way < 0.4 else "break"
            self.lines.append(f"{pad}    if {text}:")
            if self.random.random() < 0.5:
                special = dict(inner)
                out = self.block(out, special, depth + 1, 1, 0)
            else:
                special = inner
            outs = [special[k] for k in carried]
            if word == "continue":
                out.end("next", "s", *outs)
            else:
                out.end("leave", "s", *outs)
            self.lines.append(f"{pad}        {word}")
            turn = self.block(turn, inner, depth, self.random.randint(0, 2), levels - 1)
        self.lines.append(f"{pad}    pass")
        turn.end("next", "s", *[inner[k] for k in carried])
        at, results = self.after(at, op, "s", states["s"])
        env.update(zip(carried, results, strict=True))
        return at
