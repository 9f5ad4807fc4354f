"""Pullbacks of single ops, as the rules of the engine come down to them, as expressions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection
from typing import Any

from ...rules.operators import finite_power
from ...tracer.errors import NoRuleError
from ...tracer.fold.region import Constant, Op
from ...tracer.tape import NOWHERE, Input, Tape
from ...tracer.tape import Op as TapeOp
from ..expand import Expansion, expansion_of
from .ways import Unemittable
from .writer import Writer

EXAMPLES = {float: (1.5, 0.5), int: (2, 1), bool: (True, True)}
NUMBERS = (float, int, bool)


def example(
    op: Op, wanted: Collection[int], which: int = 0
) -> tuple[TapeOp, list[TapeOp], set[Any]]:
    """The op on a tape of its own with an example for each operand: the op, its inputs, and those of ``wanted``.

    ``wanted`` are positions among the operands.
    """
    tape = Tape()
    args: list[Any] = []
    inputs: list[TapeOp] = []
    active: set[Any] = set()
    for i, x in enumerate(op.args):
        if isinstance(x, Op):
            if x.type not in EXAMPLES:
                raise Unemittable(f"{op.fn} of a {x.type.__name__}")
            entry = Input("x", EXAMPLES[x.type][which], tape)
            inputs.append(entry)
            args.append(entry)
            if i in wanted:
                active.add(entry)
        else:
            args.append(x.value if isinstance(x, Constant) else x)
    value = EXAMPLES[op.type][which] if op.type in EXAMPLES else None
    return TapeOp(op.fn, tuple(args), value, NOWHERE, tape), inputs, active


class Pulls:
    """Writes what a cotangent comes to at the operands of an op."""

    def __init__(self, writer: Writer, value: Callable[[Any], str]) -> None:
        self.writer = writer
        self.value = value  # the source text of an operand's value in the reverse part
        self.known: dict[Op, tuple[Expansion, list[Any], dict[Any, Op]] | None] = {}

    def write(self, op: Op, dz: str, add: Callable[[str], None]) -> list[tuple[Op, str]]:
        """The operands that get a cotangent out of ``dz``, each with its text; ``add`` takes statements."""
        writer = self.writer
        if op not in self.known:  # what is written more than once comes down to the same
            plain = Op(op.key, op.fn, tuple(map(writer.resolve, op.args)), op.type, op.home)
            self.known[op] = self.expansion(plain)
        found = self.known[op]
        if found is None:
            return []
        expansion, leaves, operands = found
        tape = expansion.tape
        given, z, *entries = tape.inputs
        sources: dict[Any, Any] = {given: None, z: op}
        for entry, leaf in zip(entries, leaves, strict=True):
            sources[entry] = operands.get(leaf, leaf) if isinstance(leaf, TapeOp) else leaf
        steps = Steps(writer, {given: dz}, sources, self.value)
        results = steps.write(tape, add)
        return [
            (operands[leaves[i]], text) for i, text in zip(expansion.wanted, results, strict=True)
        ]

    def expansion(self, op: Op) -> tuple[Expansion, list[Any], dict[Any, Op]] | None:
        """How the rule comes down, the leaves that it is given, and the operands of those that are inputs."""
        wanted = [i for i, x in enumerate(op.args) if self.writer.active(x)]
        for which in (0, 1):  # the second where the function is not defined at the first
            entry, inputs, active = example(op, wanted, which)
            try:
                expansion, leaves = expansion_of(entry, active, 1.0)
            except NoRuleError as error:
                failure = Unemittable(str(error))
                failure.__cause__ = error
                continue
            if expansion is None:
                return None
            operands = dict(zip(inputs, [x for x in op.args if isinstance(x, Op)], strict=True))
            looked_at = any(isinstance(leaves[i], TapeOp) for i in expansion.drawn)
            if expansion.momentary or looked_at or any(expansion.forms):
                raise Unemittable(f"the rule of {op.fn} looks at values")
            return expansion, leaves, operands
        raise failure


class Steps:
    """The ops of an expansion as nested expressions."""

    def __init__(
        self,
        writer: Writer,
        names: dict[Any, str],
        sources: dict[Any, Any],
        value: Callable[[Any], str],
    ) -> None:
        self.writer = writer
        self.names = names
        self.sources = sources
        self.value = value
        self.constants: dict[Any, Any] = {}

    def write(self, tape: Tape, add: Callable[[str], None]) -> list[str]:
        """The texts of the results."""
        for entry, source in self.sources.items():
            if type(source) in NUMBERS:
                self.constants[entry] = source
        uses: dict[Any, int] = {}
        for op in tape.ops:
            for x in op.operands():
                uses[x] = uses.get(x, 0) + 1
        for x in tape.result:
            uses[x] = uses.get(x, 0) + 1
        for op in tape.ops:
            if op.kind == "input":
                continue
            if op.kind != "call" or op.kwargs:
                raise Unemittable(f"the rule of {tape.name} is not plain arithmetic")
            if op in uses and not self.folds(op):
                text = self.expression(op.fn, op.args)
                if uses[op] == 1 or text.isidentifier():
                    self.names[op] = text if text.isidentifier() else f"({text})"
                else:
                    name = self.names[op] = self.writer.fresh("q")
                    add(f"{name} = {text}")
        return [unwrapped(self.text(x)) for x in tape.result]

    def folds(self, op: TapeOp) -> bool:
        """Compute what depends on constants alone."""
        values = [self.constants.get(x, x) if isinstance(x, TapeOp) else x for x in op.args]
        if not all(type(x) in NUMBERS for x in values):
            return False
        try:
            value = op.fn(*values)
        except Exception:  # it will be raised where the program computes it
            return False
        if type(value) not in NUMBERS or (type(value) is float and not math.isfinite(value)):
            return False
        self.constants[op] = value
        return True

    def expression(self, fn: Any, args: tuple[Any, ...]) -> str:
        if fn is operator.pow and self.constant(args[1]) == 1:
            return self.text(args[0])
        p, y = [self.constant(x) for x in args[1:]] if fn is finite_power else (None, None)
        if p is not None and y is not None:
            base, exponent, _ = map(self.text, args)
            power = f"{base} ** {exponent}"
            return f"0.0 if {base} == 0 else {power}" if p < 0 < y else power
        return self.writer.expression(fn, [self.text(x) for x in args])

    def constant(self, x: Any) -> Any:
        """The number that an operand is, or None."""
        x = self.constants.get(x, x) if isinstance(x, TapeOp) else x
        return x if type(x) in NUMBERS else None

    def text(self, x: Any) -> str:
        if isinstance(x, TapeOp):
            if x in self.constants:
                return self.writer.constant(self.constants[x])
            if x not in self.names:
                self.names[x] = self.value(self.sources[x])
            return self.names[x]
        if type(x) is tuple:
            return f"({', '.join(map(self.text, x))},)"
        if type(x) is list or type(x) is dict or type(x) is slice:
            raise Unemittable("a rule that puts operands together")
        return self.writer.constant(x) if type(x) in NUMBERS else self.writer.name(Constant(x))


def unwrapped(text: str) -> str:
    """A whole expression without the parentheses around it."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for i, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if not depth and i < len(text) - 1:
            return text
    return text[1:-1]
