"""The writer turns templates into text.

Words
-----
template   a piece of program text with holes: `$n + $n`. One line of the grammar is one construct.
hole       `$kind`: another template of that kind stands there; `$kind1` twice in a template is the same text twice.
           `${kind z w}`: in it the numbers z and w may be used as well (the parameters of a lambda, say).
           `$new1` is a name that nothing else has; `$new_f1` can be called from then on as a `$f`.
           `$block` and `${body z}` on a line of their own are statements, and the inside of a function of z.
kind       what a text stands for: n (number), l (list of numbers), test, place, statement … (see `grammar.txt`).
scope      what names may be used here, by kind, and which of them may be assigned.
"""

from __future__ import annotations

import ast
import functools
import random
import re
from collections.abc import Iterable

HOLE = re.compile(r"\$(?:\{([A-Za-z_]+)((?: \w+)*)\}|([A-Za-z_]+?)(\d?)(?![A-Za-z_]))")
DEPTH = 3  # holes within holes within holes; what is deeper is a name or a literal


WRITABLE = "ldvm"  # an L is an l that can be written to


class Scope:
    """The names of a function, or of a block in it."""

    def __init__(self, level: int = 0, outer: Scope | None = None) -> None:
        self.level = level
        self.readable: dict[str, list[str]] = {}
        self.own: dict[str, list[str]] = {}  # that a statement may assign
        self.outer = outer  # of the function around, whose names can be declared nonlocal
        self.loops = 0
        self.blocks = 0
        if outer is not None:
            self.readable = {kind: list(names) for kind, names in outer.readable.items()}

    def inside(self, loops: int = 0) -> Scope:
        """The scope of a block."""
        scope = Scope(self.level, self.outer)
        scope.readable = {kind: list(names) for kind, names in self.readable.items()}
        scope.own = self.own
        scope.loops, scope.blocks = self.loops + loops, self.blocks + 1
        return scope

    def with_names(self, kind: str, names: Iterable[str]) -> Scope:
        """The scope of a lambda or a comprehension."""
        scope = self.inside()
        scope.readable.setdefault(kind, []).extend(names)
        return scope

    def add(self, kind: str, name: str, own: bool = False) -> None:
        self.readable.setdefault(kind, []).append(name)
        if kind in WRITABLE:
            self.readable.setdefault(kind.upper(), []).append(name)
        if own:
            self.own.setdefault(kind, []).append(name)


# The local variables of every function, by kind, and what they are in the beginning.
LOCALS = {
    "n": {"p": "$n", "q": "$lit"},
    "l": {"ys": "[$n, $n, $lit]"},
    "v": {"w": "$v"},
    "d": {"e": "{'p': $n, 'r': $lit}"},
    "m": {"u": "$m"},
    "s": {"text": "$s"},
}


class Writer:
    """Writes the functions of a program by a grammar: kinds with their templates."""

    def __init__(
        self, rng: random.Random, common: dict[str, list[str]], special: dict[str, list[str]]
    ):
        self.rng = rng
        self.common = common
        self.special = (
            special  # of the pieces of this program's world: taken as often as all others
        )
        self.globals: list[str] = []  # that a function may assign
        self.names = 0
        self.budget = 0

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # ------------------------------------------------------------------------------------- expressions

    def text(self, kind: str, scope: Scope, depth: int = DEPTH) -> str:
        """A text of a kind."""
        if hasattr(self, f"write_{kind}"):
            return getattr(self, f"write_{kind}")(scope)
        names = scope.readable.get(kind, [])
        templates = bool(self.common.get(kind) or self.special.get(kind))
        if names and (not templates or self.chance(0.8 if depth <= 1 or kind.isupper() else 0.35)):
            return self.rng.choice(names)
        return self.expand(self.template(kind, depth, bool(names)), scope, depth - 1)

    def template(self, kind: str, depth: int, has_names: bool = False) -> str:
        common, special = self.common.get(kind, []), self.special.get(kind, [])
        if depth <= 1:
            both = [*common, *special]
            flat = [t for t in both if is_flat(t, LEAVES)] or [
                t for t in both if is_flat(t, NUMBERS)
            ]
            if flat:
                return self.rng.choice(flat)
        if special and (not common or self.chance(0.5)):
            return self.rng.choice(special)
        return self.rng.choice(common)

    def expand(self, template: str, scope: Scope, depth: int = DEPTH) -> str:
        """The template with its holes filled."""
        memory: dict[str, str] = {}
        lines: list[str] = []
        for line in template.split("\n"):
            indent = line[: len(line) - len(line.lstrip())]
            whole = HOLE.fullmatch(line.strip())
            kind = whole and (whole[1] or whole[3])
            if kind == "block" or kind == "loop":
                inner = self.block(scope.inside(loops=kind == "loop"), memory)
            elif kind in ("body", "gen"):
                inner = self.body(whole[2].split(), scope, generator=kind == "gen")
            else:
                inner = [self.line(line.strip(), scope, depth, memory)]
            lines += [indent + part for text in inner for part in text.split("\n")]
        for name, text in memory.items():
            if name.startswith("new_f"):
                scope.add("f", text)
        return "\n".join(lines)

    def line(self, line: str, scope: Scope, depth: int, memory: dict[str, str]) -> str:
        def fill(hole: re.Match[str]) -> str:
            kind, names, digit = hole[1] or hole[3], (hole[2] or "").split(), hole[4] or ""
            key = kind + digit
            if digit and key in memory:
                return memory[key]
            if kind.startswith("new"):
                self.names += 1
                text = f"{kind[4:] or 'u'}{self.names}"
            else:
                text = self.text(kind, scope.with_names("n", names) if names else scope, depth)
            if not is_atom(text):
                text = f"({text})"
            if digit:
                memory[key] = text
            return text

        return HOLE.sub(fill, line)

    def write_lit(self, scope: Scope | None = None) -> str:
        """A float, mostly one that nothing else is equal to."""
        if self.chance(0.3):
            return self.rng.choice(["0.5", "-0.5", "0.0", "-0.0", "1.0", "2.0", "-1.5"])
        return str(round(self.rng.uniform(-2, 2), 3))

    def write_int(self, scope: Scope | None = None) -> str:
        return str(self.rng.randrange(4))

    def write_to(self, scope: Scope) -> str:
        """Where a number may be stored: a variable or a place in something."""
        if self.chance(0.6) and scope.own.get("n"):
            return self.rng.choice(scope.own["n"])
        if scope.outer is not None and scope.outer.own.get("n") and self.chance(0.4):
            return self.rng.choice(scope.outer.own["n"])
        return self.expand(self.template("place", DEPTH), scope, 1)

    def write_var(self, scope: Scope) -> str:
        """A variable that holds a number, to be read."""
        return self.rng.choice(scope.readable.get("n", ["math.pi"]))

    def write_name(self, scope: Scope) -> str:
        """A variable for a number."""
        return self.rng.choice(scope.own["n"])

    # -------------------------------------------------------------------------------------- statements

    def block(self, scope: Scope, memory: dict[str, str] | None = None) -> list[str]:
        """The statements of a block."""
        for name, text in (memory or {}).items():
            if name.startswith("new_"):
                scope.add(name[4:].rstrip("0123456789"), text)
        return [self.statement(scope) for _ in range(self.rng.choice([1, 1, 2, 2, 3]))]

    def statement(self, scope: Scope) -> str:
        self.budget -= 1
        kind = "simple"
        if self.budget > 0 and scope.blocks < 3 and self.chance(0.45):
            kind = "compound"
            if scope.loops < 2 and self.chance(0.4):
                kind = "loops"
            elif scope.loops and self.chance(0.15):
                kind = "escape"
            elif scope.level < 2 and not scope.loops and self.chance(0.25):
                kind = "inner"
        return self.expand(self.template(kind, DEPTH), scope)

    def body(self, parameters: Iterable[str], outer: Scope, generator: bool = False) -> list[str]:
        """The inside of a function in a function."""
        scope = Scope(outer.level + 1, outer)
        for name in parameters:
            scope.add("n", name, own=True)
        before = self.budget
        self.budget = min(self.budget, 3)
        lines = self.function_body(scope, self.rng.choice([1, 1, 2]), generator)
        self.budget += before - min(before, 3)
        return lines

    def function_body(
        self, scope: Scope, size: int, generator: bool = False, result: str = "$n"
    ) -> list[str]:
        suffix = str(scope.level) if scope.level else ""
        beginnings = {}
        for kind, names in LOCALS.items():
            for name, template in names.items():
                beginnings[name + suffix] = self.expand(template, scope, 1)
        for kind, names in LOCALS.items():
            for name in names:
                scope.add(kind, name + suffix, own=True)
        lines = [self.statement(scope) for _ in range(size)]
        if generator:
            lines.append(self.expand("yield $n", scope, 2))
        else:
            lines.append(self.expand(f"return {result}", scope, 2))
        lines = "\n".join(lines).split("\n")
        begin = [f"{name} = {text}" for name, text in beginnings.items() if mentions(lines, name)]
        body = begin + lines
        declared = [name for name in self.globals if assigns(body, name)]
        if declared:
            body.insert(0, f"global {', '.join(declared)}")
        if scope.outer is not None:
            mine = {name for names in scope.own.values() for name in names}
            theirs = [name for names in scope.outer.own.values() for name in names]
            foreign = [name for name in theirs if name not in mine and assigns(body, name)]
            if foreign:
                body.insert(0, f"nonlocal {', '.join(foreign)}")
        return body


LEAVES = frozenset("lit int word var".split())
NUMBERS = LEAVES | {"n", "k"}


@functools.cache
def is_flat(template: str, kinds: frozenset[str]) -> bool:
    """Whether all holes of a template are of these kinds."""
    return all((hole[1] or hole[3]) in kinds for hole in HOLE.finditer(template))


ATOMS = (
    ast.Name,
    ast.Call,
    ast.Subscript,
    ast.Attribute,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.ListComp,
)
ATOMS += (ast.DictComp, ast.SetComp, ast.JoinedStr)


@functools.cache
def is_atom(text: str) -> bool:
    """Whether a text can stand anywhere without parentheses."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:  # no expression on its own
        return True
    plain = isinstance(tree, ast.Constant) and not isinstance(tree.value, int)
    in_parentheses = tree.col_offset > 0 or isinstance(tree, ast.Tuple) and text.startswith("(")
    return plain or in_parentheses or isinstance(tree, ATOMS)


def mentions(lines: Iterable[str], name: str) -> bool:
    pattern = re.compile(rf"(?<![\w.]){name}\b(?!['\"])")
    return any(pattern.search(line) for line in lines)


def assigns(lines: Iterable[str], name: str) -> bool:
    pattern = re.compile(
        rf"(?<![\w.(]){name}\b(?:[^=\n]*[^=!<>\n])?=(?!=)|for [^:]*\b{name}\b.* in |{name} :=|as {name}\b|del {name}\b"
    )
    return any(pattern.search(line) for line in lines)
