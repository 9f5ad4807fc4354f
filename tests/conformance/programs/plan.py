"""A program: the text of a module, and the plan of what happens with it.

Words
-----
plan      steps one after the other: calls of the module's function `f`, and changes of the world between them.
call      the text of the arguments, as they would stand between the parentheses of `f(…)`; it is evaluated in the
          module, so that an argument may be an object of the world, or one that was an argument before (`kept_…`).
way       how the engine is asked for the value and its derivatives in this call (see `ways.py`).
"""

from __future__ import annotations

import dataclasses
import random
import re

from .grammar import ARGUMENTS, COMMON, MODULES, PIECES, Piece, Sections
from .known import KNOWN
from .writer import Scope, Writer

WAYS = {"value_and_grad": 8, "pullback": 8, "grad": 3, "jvp": 2, "late": 2, "second": 1}


@dataclasses.dataclass(frozen=True)
class Step:
    kind: str  # "call" or "change"
    text: str
    way: str = "pullback"

    def __str__(self) -> str:
        return f">> f({self.text})  # {self.way}" if self.kind == "call" else indented(self.text)


@dataclasses.dataclass(frozen=True)
class Program:
    seed: int
    source: str
    plan: tuple[Step, ...]

    def __str__(self) -> str:
        return self.source.rstrip() + "\n\n" + "\n".join(map(str, self.plan)) + "\n"


def indented(text: str) -> str:
    return "-- " + text.replace("\n", "\n   ")


def parsed(text: str, seed: int = 0) -> Program:
    """The program that was printed as `text`."""
    source: list[str] = []
    plan: list[Step] = []
    for line in text.strip().split("\n"):
        if line.startswith(">> f("):
            call, _, way = line[5:].rpartition(")  # ")
            plan.append(Step("call", call or line[5:].rstrip()[:-1], way if call else "pullback"))
        elif line.startswith("-- "):
            plan.append(Step("change", line[3:]))
        elif plan and line.startswith("   "):
            plan[-1] = Step("change", f"{plan[-1].text}\n{line[3:]}")
        else:
            source.append(line)
    return Program(seed, "\n".join(source).strip() + "\n", tuple(plan))


def generate(seed: int, attempt: int = 0, everything: bool = False) -> Program:
    """The program of a seed."""
    return Author(random.Random(f"{seed}/{attempt}"), everything).program(seed)


EVERY_GLOBAL = {name for piece in PIECES.values() for name in piece.globals}
PARAMETERS = {  # of f, by kind
    "n": ["a", "b"],
    "l": ["xs"],
    "v": ["v"],
    "d": ["d"],
    "t": ["t"],
    "r": ["rs"],
    "k": ["k"],
    "s": ["s"],
    "m": ["m"],
    "f": ["g"],
}


class Author:
    """Chooses what a program is made of, and lets the writer write it."""

    def __init__(self, rng: random.Random, everything: bool) -> None:
        self.rng = rng
        self.known = known = {} if everything else KNOWN
        names = [name for name in PIECES if f"piece {name}" not in known]
        self.pieces: list[Piece] = [
            PIECES[name] for name in rng.sample(names, rng.choice([1, 2, 2, 3, 3, 4]))
        ]
        special: Sections = {}
        for piece in self.pieces:
            for kind, found in self.allowed(piece.sections).items():
                special.setdefault(kind, []).extend(found)
        self.changes = special.pop("change", [])
        self.arguments = special.pop("argument", [])
        self.writer = Writer(rng, self.allowed(COMMON), special)
        self.writer.globals = [name for piece in self.pieces for name in piece.globals]

    def allowed(self, sections: Sections) -> Sections:
        return {kind: [t for t in found if t not in self.known] for kind, found in sections.items()}

    def program(self, seed: int) -> Program:
        functions = self.helpers()
        functions.append(self.main())
        functions_text = "\n\n".join(functions)
        sources = [piece.source for piece in self.pieces]
        return Program(
            seed,
            "\n\n".join([MODULES.strip(), *sources, functions_text]) + "\n",
            tuple(self.plan()),
        )

    # --------------------------------------------------------------------------------------- functions

    def helpers(self) -> list[str]:
        """Functions of the module that `f` may call."""
        written = []
        for name in ["helper1", "helper2"][: self.rng.choice([0, 0, 1, 1, 2])]:
            scope = Scope()
            scope.add("n", "z", own=True)
            scope.add("n", "y", own=True)
            for helper in written:
                scope.add("f", helper.split("(")[0][4:])
            self.writer.budget = 3
            body = self.writer.function_body(scope, self.rng.choice([1, 2]))
            written.append(f"def {name}(z, y={self.writer.write_lit()}):\n" + indented_block(body))
        self.helper_names = [helper.split("(")[0][4:] for helper in written]
        return written

    def main(self) -> str:
        rng = self.rng
        kinds = [
            "n",
            "n",
            *rng.sample(["l", "v", "d", "t", "r", "k", "s", "m", "f"], rng.choice([0, 1, 2, 2, 3])),
        ]
        if rng.random() < 0.3:
            kinds.remove("n")
        free = {kind: list(names) for kind, names in PARAMETERS.items()}
        self.parameters = [(kind, free[kind].pop(0)) for kind in kinds]
        self.thing = rng.choice(
            [p for p in self.pieces if self.allowed(p.sections).get("argument")] or [None]
        )
        scope = Scope()
        for kind, name in self.parameters:
            scope.add(kind, name, own=kind == "n")
        if self.thing is not None and rng.random() < 0.6:
            self.parameters.append(("thing", "it"))
            self.special_names(scope)
        for name in self.helper_names:
            scope.add("f", name)
        signature = self.signature()
        self.writer.budget = rng.choice([4, 8, 12])
        body = self.writer.function_body(scope, rng.choice([2, 3, 4, 5, 6]), result="$result")
        return f"def f({signature}):\n" + indented_block(body)

    def special_names(self, scope: Scope) -> None:
        """The parameter of a kind that only one piece knows."""
        own = [
            kind
            for kind in self.thing.sections
            if kind not in COMMON and kind not in ("change", "argument")
        ]
        if own:
            scope.add(own[0], "it")
        scope.add("any", "it")

    def signature(self) -> str:
        """The parameters of `f`, some with defaults, some by name only."""
        self.optional: set[str] = set()
        self.named: set[str] = set()
        parts = [name for _, name in self.parameters]
        numbers = [name for kind, name in self.parameters if kind == "n"]
        if numbers and self.rng.random() < 0.25:  # the last number comes last, with a default
            name = numbers[-1]
            self.optional.add(name)
            parts.remove(name)
            text = f"{name}={self.writer.write_lit()}"
            if self.rng.random() < 0.5:
                parts.append("*")
                self.named.add(name)
            parts.append(text)
            pair = next(p for p in self.parameters if p[1] == name)
            self.parameters.remove(pair)
            self.parameters.append(pair)
        return ", ".join(parts)

    # -------------------------------------------------------------------------------------------- plan

    def plan(self) -> list[Step]:
        rng = self.rng
        self.forms = Forms(self)
        steps: list[Step] = []
        ways = {way: weight for way, weight in WAYS.items() if f"way {way}" not in self.known}
        way = rng.choices(list(ways), list(ways.values()))[0]
        mixed = rng.random() < 0.25
        same = self.forms.call()
        for number in range(rng.choice([5, 6, 7, 8, 9])):
            if number >= 3 and self.changes and rng.random() < 0.55:
                steps.append(self.change())
                if rng.random() < 0.2:
                    steps.append(self.change())
            elif number >= 2 and rng.random() < 0.25:
                self.forms.vary()
            if mixed:
                way = rng.choices(list(ways), list(ways.values()))[0]
            text = same if rng.random() < 0.25 else self.forms.call()
            steps.append(Step("call", text, way))
        return steps

    def change(self) -> Step:
        template = self.rng.choice(self.changes)
        return Step("change", self.writer.expand(template, Scope()))


class Forms:
    """The arguments of calls, which keep their form for a while."""

    def __init__(self, author: Author) -> None:
        self.author = author
        self.rng = author.rng
        self.forms = {name: self.possible(kind) for kind, name in author.parameters}
        self.form = {name: forms[0] for name, forms in self.forms.items()}
        self.kept: set[str] = set()
        self.omitted = {name for name in author.optional if self.rng.random() < 0.5}

    def possible(self, kind: str) -> list[str]:
        """The forms of a kind, without what belongs to other worlds than this one."""
        if kind == "thing":
            return self.author.allowed(self.author.thing.sections)["argument"]
        foreign = EVERY_GLOBAL - {name for piece in self.author.pieces for name in piece.globals}
        return [form for form in ARGUMENTS[kind] if not foreign & set(re.findall(r"\w+", form))]

    def vary(self) -> None:
        """Another form of one argument from now on."""
        _, name = self.rng.choice(self.author.parameters)
        forms = self.forms[name]
        self.form[name] = forms[0] if self.rng.random() < 0.25 else self.rng.choice(forms)
        for name in self.author.optional:
            if self.rng.random() < 0.5:
                self.omitted ^= {name}

    def call(self) -> str:
        """The text of the arguments of a call."""
        parts = []
        for _, name in self.author.parameters:
            if name in self.omitted:
                continue
            text = self.argument(name)
            by_name = name in self.author.optional and self.rng.random() < 0.5
            parts.append(f"{name}={text}" if by_name or name in self.author.named else text)
        return ", ".join(parts)

    def argument(self, name: str) -> str:
        form = self.form[name]
        text = self.author.writer.expand(form.removeprefix("again "), Scope(), 0)
        if not form.startswith("again "):
            return text
        kept = f"kept_{name}"
        if kept in self.kept and self.rng.random() < 0.7:
            return kept
        self.kept.add(kept)
        return f"({kept} := {text})"


def indented_block(lines: list[str]) -> str:
    return "\n".join("    " + line for line in lines) + "\n"
