"""The tape as Python source, one operation a statement, as a reader would have written it by hand."""

from __future__ import annotations

import keyword
import math
import operator
import sys
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..rules.mutation import may_repeat, scatter, setitem
from .kinds import attribute, is_one_of, isinstance
from .tape import Input, Op, Tape, element, primal

INFIX = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
    operator.mod: "%", operator.pow: "**", operator.matmul: "@", operator.lt: "<", operator.le: "<=",
    operator.eq: "==", operator.ne: "!=", operator.gt: ">", operator.ge: ">=", operator.and_: "&",
    operator.or_: "|", operator.xor: "^", operator.lshift: "<<", operator.rshift: ">>",
}  # fmt: skip
PREFIX = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}
BUILTINS = vars(sys.modules["builtins"])
# What compiled source calls `np` and `math`: as they were imported, whoever may patch them later.
AS_IMPORTED: dict[str, Any] = {
    "np": types.SimpleNamespace(**{**vars(np), "linalg": types.SimpleNamespace(**vars(np.linalg))}),
    "math": types.SimpleNamespace(**vars(math)),
}


class Text:
    """How values, nested arguments and calls read in source; ``namespace`` collects what is referred to by name."""

    def __init__(self, namespace: dict[str, Any], taken: Iterable[str] = ()) -> None:
        self.namespace = namespace
        self.names: dict[Op, str] = {}
        self.taken: set[str] = {*taken, *namespace, *keyword.kwlist}
        self.known: dict[int, str] = {id(value): name for name, value in namespace.items()}
        self.latest: dict[str, int] = {}  # the number behind the latest name of those that begin so

    def fresh(self, wanted: str) -> str:
        """A name that is not taken yet."""
        base = wanted.strip("_")
        if not base.isidentifier():
            words = "".join([x if x.isalnum() or x == "_" else " " for x in wanted])
            base = "_".join(words.split()).strip("_") or "x"
        if base[0].isdigit():
            base = "x" + base
        name, i = base, self.latest.get(base, 1)
        while name in self.taken or name in BUILTINS:
            i += 1
            name = f"{base}{i}"
        self.taken.add(name)
        self.latest[base] = i
        return name

    def name_of(self, op: Op) -> str:
        if op not in self.names:
            self.names[op] = self.fresh(f"t{len(self.names) + 1}")
        return self.names[op]

    def constant(self, value: Any, hint: str) -> str:
        """How the source refers to a constant: as a literal where that is exact, else by name."""
        if value is None or value is Ellipsis or is_one_of(type(value), (bool, int, str)):
            return repr(value) if value is not Ellipsis else "..."
        if type(value) is float and math.isfinite(value):
            return repr(value)
        return "np._NoValue" if value is np._NoValue else self.named(value, hint)

    def named(self, value: Any, hint: str) -> str:
        """The name in the namespace that stands for this very object."""
        name = self.known.get(id(value))
        if name is None:
            name = self.known[id(value)] = self.fresh(hint)
            self.namespace[name] = value
        return name

    def argument(self, tree: Any) -> str:
        if isinstance(tree, Op):
            return self.names.get(tree) or self.name_of(tree)
        if type(tree) is tuple:
            return "(" + ", ".join(map(self.argument, tree)) + ("," if len(tree) == 1 else "") + ")"
        if type(tree) is list:
            return "[" + ", ".join(map(self.argument, tree)) + "]"
        if type(tree) is dict:
            return "{" + ", ".join(f"{k!r}: {self.argument(v)}" for k, v in tree.items()) + "}"
        if type(tree) is slice:
            return (
                "slice(" + ", ".join(map(self.argument, (tree.start, tree.stop, tree.step))) + ")"
            )
        if isinstance(tree, tuple) and hasattr(tree, "_make"):
            return f"{self.function(type(tree))}(" + ", ".join(map(self.argument, tree)) + ")"
        return self.function(tree) if callable(tree) else self.constant(tree, "c1")

    def function(self, fn: Any) -> str:
        """How the source refers to a callable."""
        name = attribute(fn, "__name__", "fn")
        owner = attribute(fn, "__self__")
        if isinstance(owner, np.ufunc):
            return f"np.{owner.__name__}.{name}"
        if BUILTINS.get(name) is fn:
            return name
        for module, prefix in (
            (math, "math"),
            (np, "np"),
            (np.linalg, "np.linalg"),
            (np.ndarray, "np.ndarray"),
        ):
            if getattr(module, name, None) is fn:
                return f"{prefix}.{name}"
        return self.constant(fn, name)

    def callee(self, fn: Any) -> str:
        """How it refers to what is called, which may be something in the place of a function."""
        return self.function(fn)

    def index(self, tree: Any) -> str:
        """An index as it stands between brackets."""
        if (
            type(tree) is tuple and tree
        ):  # one inside it is a sequence of numbers, and keeps its parentheses
            return ", ".join(map(self.part, tree)) + ("," if len(tree) == 1 else "")
        return self.part(tree)

    def part(self, tree: Any) -> str:
        """What stands between the commas of an index."""
        if type(tree) is slice:
            start, stop, step = (
                "" if x is None else self.argument(x) for x in (tree.start, tree.stop, tree.step)
            )
            return f"{start}:{stop}" + (f":{step}" if step else "")
        return self.argument(tree)

    def operand(self, tree: Any) -> str:
        """An argument beside an operator."""
        text = self.argument(tree)
        return f"({text})" if text.startswith("-") else text

    def expression(self, op: Op) -> str:
        fn, args = op.fn, op.args
        if not op.kwargs and callable(fn) and fn.__hash__ is not None:
            if fn in INFIX and len(args) == 2:
                return f"{self.operand(args[0])} {INFIX[fn]} {self.operand(args[1])}"
            if fn in PREFIX and len(args) == 1:
                return f"{PREFIX[fn]}{self.operand(args[0])}"
            if (fn is operator.getitem or fn is element) and len(args) == 2:
                return f"{self.operand(args[0])}[{self.index(args[1])}]"
        given = [self.argument(x) for x in args] + [
            f"{k}={self.argument(x)}" for k, x in op.kwargs.items()
        ]
        objclass = attribute(fn, "__objclass__")
        if objclass is not None and args and objclass is np.ndarray:
            return f"{self.operand(args[0])}.{fn.__name__}({', '.join(given[1:])})"
        return f"{self.callee(fn)}({', '.join(given)})"


class Writer(Text):
    """Writes one tape, one name for each op."""

    def __init__(self, tape: Tape) -> None:
        super().__init__({"np": np, "math": math})
        self.tape = tape

    def inputs(self) -> list[str]:
        """The names of the inputs."""
        for op in self.tape.ops:
            if isinstance(op, Input):
                self.names[op] = self.fresh(op.name)
        return [self.names[op] for op in self.tape.ops if isinstance(op, Input)]

    def statements(self) -> list[str]:
        """One line for each op that is not an input."""
        lines = []
        for op in self.tape.ops:
            if op.kind == "guard":
                lines.append(f"    assert {self.argument(op.args[0])} == {op.value!r}  # {op.site}")
            elif op.kind == "effect":
                lines.append(f"    {self.expression(op)}")
            elif op.kind == "call":
                lines += self.statement(op)
        return lines

    def statement(self, op: Op) -> list[str]:
        """The lines of one call; pure writes are spelled out as a copy that is written to."""
        fn, args = op.fn, op.args
        if fn is setitem and not op.kwargs:
            copied, index, value = (
                self.operand(args[0]),
                self.index(args[1]),
                self.argument(args[2]),
            )
            name = self.name_of(op)
            return [f"    {name} = {copied}.copy()", f"    {name}[{index}] = {value}"]
        if fn is scatter and not op.kwargs:
            d, shape = self.argument(args[0]), self.argument(args[2])
            name = self.name_of(op)
            made = f"    {name} = np.zeros({shape}, {str(args[3])!r})"
            if may_repeat(primal(args[1])):
                return [made, f"    np.add.at({name}, {self.argument(args[1])}, {d})"]
            return [made, f"    {name}[{self.index(args[1])}] = {d}"]
        text = self.expression(op)
        return [f"    {self.name_of(op)} = {text}"]

    def write(self, name: str) -> str:
        """The whole function."""
        lines = [f"def {name}({', '.join(self.inputs())}):", *self.statements()]
        lines.append(f"    return {self.argument(self.tape.result)}")
        return "\n".join(lines) + "\n"

    def run(self, source: str, name: str) -> Any:
        """The function of that name which the source defines."""
        namespace = {**self.namespace, **AS_IMPORTED}
        exec(compile(source, f"<{name}>", "exec"), namespace)
        return namespace.pop(name)  # which has the namespace: on a cycle it would live on


def compiled(tape: Tape, name: str) -> Any:
    """The tape as a Python function of its inputs."""
    writer = Writer(tape)
    return writer.run(writer.write(name), name)
