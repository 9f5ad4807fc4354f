"""The source of loop functions: a rolled loop as Python statements, on its own or among others.

Words
-----
outs       the columns that the loop collects: the lists to which its iterations append.
nested     an op that is written out where it is used, since it is used once and cheap.
careful    what answers instead where plain arithmetic has given something that is not finite.
"""

from __future__ import annotations

import cmath
import contextlib
import math
import operator
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from ..tracer.kinds import is_one_of, isinstance
from ..tracer.source import INFIX, PREFIX, Text, Writer
from ..tracer.tape import FloatOp, Op, Tape, element, ops_in, primal
from . import asking
from .assemble import WRITES, Assembly, Storage
from .columns import Column
from .kernels import SAFE, is_array, is_straight
from .loops import EXIT, STEPS, WHILE, LoopFunction, Miss, example
from .owned import owned_slots

DEEPEST = 8  # nested operations in one expression
# Computing these again is faster than keeping their values.
CHEAP = frozenset((operator.add, operator.sub, operator.mul, operator.truediv, operator.neg))


def is_finite(x: Any) -> bool:
    """Whether all the numbers of a result are; overflow of the test itself counts as well."""
    if isinstance(x, list):
        return math.isfinite(sum(x)) if {*map(type, x)} == {float} else all(map(is_finite, x))
    return cmath.isfinite(np.vdot(x, x) if np.ndim(x) else x)


def asked_results(ops: Iterable[Op]) -> dict[Op, set[int]]:
    """By loop, the numbers of the results that the others among some operations ask for."""
    asked: dict[Op, set[int]] = {}
    for op in ops:
        if type(op) is FloatOp:
            continue
        if op.fn is element and type(op.args[0]) is Op and type(op.args[0].fn) is LoopFunction:
            asked.setdefault(op.args[0], set()).add(op.args[1])
        else:
            for x in op.operands():
                if type(x.fn) is LoopFunction:
                    asked[x] = {*asked.get(x, ()), *range(len(x.value))}
    return asked


class LoopWriter(Writer):
    """Writes a loop function."""

    def __init__(
        self, loop: LoopFunction, outer: Text | None = None, asked: Collection[int] | None = None
    ) -> None:
        super().__init__(Tape())
        self.loop = loop
        self.family = loop.family
        self.assembly = Assembly({} if outer is None else outer.namespace)
        if isinstance(outer, LoopWriter):
            outer = outer.assembly
        if isinstance(outer, Assembly):
            self.assembly.share(outer)
        self.namespace, self.names = self.assembly.namespace, self.assembly.names
        self.taken, self.known = self.assembly.taken, self.assembly.known
        self.arrays = any(is_array(op) for v in self.family.variants for op in v.ops)
        self.owned = sorted(owned_slots(loop, asked)) if self.arrays else []
        self.written: set[Op] = {
            v.carried[j] for j in self.owned for v in self.family.variants
        }  # by the assembly, which may use their names again
        self.outs = [
            (i, column)
            for i, column in enumerate(self.family.collected[: loop.size])
            if asked is None or self.family.count + i in asked
        ]
        self.used: Counter[Op] = Counter()  # how often the body uses an op
        self.nested: set[Op] = set()  # ops that are written out where they are used
        self.miss = f"raise {self.named(Miss, 'Miss')}"
        self.count()

    def name_of(self, op: Op) -> str:
        if op not in self.names:
            self.names[op] = self.assembly.new_name()
        return self.names[op]

    def statement(self, op: Op) -> list[str]:
        elements = self.assembly.elements
        if type(op.fn) is LoopFunction:
            lines: list[str] = []
            write_loop(self, op, "    ", lines)
            return lines
        if op.fn is element and op.args[0] in elements:
            self.names[op] = elements[op.args[0]][op.args[1]]
            return []
        return super().statement(op)

    def argument(self, tree: Any) -> str:
        return f"({self.expression(tree)})" if self.is_nested(tree) else super().argument(tree)

    def is_nested(self, tree: Any) -> bool:
        return isinstance(tree, Op) and tree in self.nested

    def whole(self, tree: Any) -> str:
        """An expression that stands alone."""
        return self.expression(tree) if self.is_nested(tree) else self.argument(tree)

    def expression(self, op: Op) -> str:
        if op.fn is operator.add and type(op.value) is float:  # the same to the bit
            x, y = op.args
            if self.is_nested(y) and y.fn is operator.neg:
                return f"{self.operand(x)} - {self.operand(y.args[0])}"
            if self.is_nested(x) and x.fn is operator.neg:
                return f"{self.operand(y)} - {self.operand(x.args[0])}"
        return super().expression(op)

    def count(self) -> None:
        """Find out how often each op is used: what is cheap and used once needs no name."""
        decided: list[Any] = []
        made_in: dict[Op, int] = {}
        used_in: dict[Op, int] = {}
        variants = self.family.variants
        for i, choice in enumerate(self.family.choices()):
            decided.append(choice.subject)
            made_in.update(dict.fromkeys(choice.ops, i))
            last = [choice.subject]
            if choice.variant is not None:
                last += [variants[choice.variant].following]
                last += [items.get(choice.variant) for _, (_, items) in self.outs]
            for x in (*ops_in(last), *[y for op in choice.ops for y in op.operands()]):
                used_in[x] = i
        trees = [*decided, *[v.following for v in variants]]
        trees += [x for _, (_, items) in self.outs for of, x in items.items() if of is not None]
        self.used.update(ops_in(trees))
        live = set(self.used)
        for v in variants:
            for op in reversed(v.ops):
                if not is_idle(op) or op in live:
                    live.update(op.operands())
        ops = {op: None for v in variants for op in v.ops if not is_idle(op) or op in live}
        for op in ops:
            self.used.update(op.operands())
        self.assembly.asked = asked_results(ops)
        for op in ops if not self.arrays else ():
            if self.used[op] == 1 and is_arithmetic(op) and self.depth(op) < DEEPEST:
                # What may raise must not move into a branch that is not always taken.
                if is_idle(op) or made_in.get(op) == used_in.get(op):
                    self.nested.add(op)

    def depth(self, op: Any) -> int:
        """How deep the expression of an op is nested."""
        return 1 + max([self.depth(x) for x in op.args if self.is_nested(x)], default=0)

    def write(self, name: str, careful: Any = None) -> str:
        """The loop as a function; ``careful`` answers where a result is not finite."""
        self.taken |= {name}
        steps = self.fresh("steps" if self.is_told else "n")
        invariants = self.shared([v.invariants for v in self.family.variants], "r")
        columns = [self.fresh(f"column{i + 1}") for i in range(len(self.family.columns))]
        carried = self.carry()
        starts = carried if careful is None else [self.fresh(f"{x}_0") for x in carried]
        arguments = ", ".join([steps, *starts, *invariants, *columns])
        results = [*carried, *self.outputs()]
        lines = [f"def {name}({arguments}):"]
        column = self.named(Column, "Column") if self.out else ""
        given = self.own(starts)
        if given != carried:
            lines.append(f"    {', '.join(carried)} = {', '.join(given)}")
        lines += self.body(steps, columns)
        if careful is not None:
            asked = f"{self.named(careful, 'careful')}({arguments})"
            lines.append(f"    if not ({self.finite(results)}): return {asked}")
        results = [f"{column}({x})" if x in self.lists else x for x in results]
        lines.append(f"    return ({', '.join(results)}{',' if len(results) == 1 else ''})")
        return "\n".join(lines) + "\n"

    def inline(
        self, op: Op, outer: Text, careful: Any = None, free: Collection[int] = ()
    ) -> tuple[list[str], list[str]]:
        """The loop as statements among those of ``outer``, and the names of its results.

        It need not copy the arrays that it gets in the slots that are ``free``.
        """
        steps, starts, invariants, columns = self.loop.split(op.args)
        lines = []

        def text(x: Any, hint: str) -> str:
            """What stands for an argument, however often."""
            found = outer.argument(x)
            number = is_one_of(type(x), (int, float)) and not found.startswith("-")
            if not found.isidentifier() and (careful is not None or not number):
                lines.append(f"    {self.fresh(hint)} = {found}")
                return lines[-1].split()[0]
            return found

        invariants = [text(x, "r") for x in invariants]
        for v in self.family.variants:
            self.names.update(zip(v.invariants, invariants, strict=True))
        self.note_straight(op, outer)
        columns = [text(x, "column") for x in columns]
        count, given = outer.argument(steps), [outer.argument(x) for x in starts]
        carried = self.carry()
        if carried:
            lines.append(f"    {', '.join(carried)} = {', '.join(self.own(given, free))}")
        results = [*carried, *self.outputs()]
        lines += self.body(count, columns)
        if careful is not None:
            asked = ", ".join([count, *given, *invariants, *columns])
            targets = ", ".join(results) + ("," if len(results) == 1 else "")
            asked = f"{self.named(careful, 'careful')}({asked})"
            lines.append(f"    if not ({self.finite(results)}): {targets} = {asked}")
        if not op.fn.steady:  # whoever wrote the call will look at the types
            column = self.named(Column, "Column") if self.lists else ""
            lines += [f"    {x} = {column}({x})" for x in self.lists]
        return lines, results

    def note_straight(self, op: Op, outer: Text) -> None:
        """Note which arrays that come in are straight (see `kernels`), in the first iteration and in later ones."""
        known = outer.assembly if isinstance(outer, LoopWriter) else outer
        if not isinstance(known, Assembly):
            return
        _, starts, invariants, _ = self.loop.split(op.args)
        for v in self.family.variants:
            for own, x in zip(v.invariants, invariants, strict=True):
                if is_straight(x, known.straight):
                    self.assembly.straight.add(own)
        for j, x in enumerate(starts):
            following = [v.following[j] for v in self.family.variants]
            if all(is_straight(y, known.straight) for y in (x, *following)):
                self.assembly.straight.update(v.carried[j] for v in self.family.variants)

    @property
    def is_told(self) -> bool:
        return self.family.form == STEPS and len(self.family.variants) > 1

    def carry(self) -> list[str]:
        """Names for what is carried."""
        self.carried = self.shared([v.carried for v in self.family.variants], "c")
        for op in self.written:
            self.assembly.storage[op] = Storage(op, True)
        return self.carried

    def own(self, starts: list[str], free: Collection[int] = ()) -> list[str]:
        """What the first iteration gets, in memory of the loop's own where it may write into that."""
        found = []
        for j, x in enumerate(starts):
            value = self.family.variants[0].carried[j].value
            if j in self.owned and j not in free:
                x = f"{x}.copy('K')"
            elif (
                self.family.told and type(value) is np.float64
            ):  # the first cotangent may be a float
                x = f"{self.named(np.float64, 'float64')}({x})"
            found.append(x)
        return found

    def outputs(self) -> list[str]:
        """Names for the columns that are collected."""
        self.out = {i: self.fresh(f"out{i}") for i, _ in self.outs}
        return [self.out.get(i, "_") for i in range(self.loop.size)]

    def body(self, steps: str, columns: list[str]) -> list[str]:
        """The loop itself, from the names of what it starts from."""
        family = self.family
        lines = []
        self.lists: list[str] = []
        single = len(family.variants) == 1
        whole = [i for i, (_, items) in self.outs if items.get(None) != "steps"]
        self.counting = (
            whole[0] if single and whole else None
        )  # whose length is the number of steps
        for i, (_, items) in self.outs:
            if items.get(None) != "steps" or not single:
                lines.append(f"    {self.out[i]} = []")
                self.lists.append(self.out[i])
            elif self.counting is None:
                lines.append(f"    {self.out[i]} = 0")
        lines += self.told(steps, columns) if self.is_told else self.counted(steps, columns)
        for i, (_, items) in self.outs:
            if items.get(None) == "steps":
                if self.counting is not None:
                    lines.append(f"    {self.out[i]} = len({self.out[self.counting]})")
            elif family.descending:
                lines.append(f"    {self.out[i]}.reverse()")
        return lines

    def finite(self, results: list[str]) -> str:
        """The condition that all results are finite."""
        numbers = {}
        for name, tree in zip(results, self.family.variants[0].following, strict=False):
            value = example(tree)
            if type(value) is float:
                numbers[name] = name
            elif type(value) is np.ndarray and value.dtype == float:
                numbers[name] = f"float({self.named(np.vdot, 'vdot')}({name}, {name}))"
        for i, (_, items) in self.outs:
            if all(type(example(x)) is float for x in items.values()):
                numbers[self.out[i]] = f"sum({self.out[i]})"
        rest = [x for x in results if x not in numbers and x != "_"]
        tests = [f"{self.named(is_finite, 'is_finite')}({x})" for x in rest]
        if numbers:
            isfinite = self.named(math.isfinite, "isfinite")
            tests.insert(0, f"{isfinite}({' + '.join(numbers.values())})")
        return " and ".join(tests)

    def shared(self, rows: list[list[Op]], letter: str) -> list[str]:
        """Names for arguments, each of which has an op in every variant."""
        names = []
        for i in range(len(rows[0])):
            hint = getattr(rows[0][i], "name", "") or f"{letter}{i + 1}"
            name = self.fresh(hint)
            names.append(name)
            for row in rows:
                self.names[row[i]] = name
        return names

    def way(self, columns: list[str]) -> list[str]:
        return [f"reversed({x})" for x in columns] if self.family.descending else columns

    def counted(self, steps: str, columns: list[str]) -> list[str]:
        """A loop that runs a number of times, or until a decision ends it."""
        family = self.family
        first = family.variants[0]
        read = [i for i in range(len(columns)) if self.reads(i)]
        items = [self.fresh("x") for _ in read]
        for name, i in zip(items, read, strict=True):
            for v in family.variants:
                if i in v.columns:
                    self.names[v.columns[i]] = name
        sources = self.way([columns[i] for i in read])
        if family.form == WHILE and not sources and not family.capped:
            lines = ["    while True:"]
        elif not sources:
            lines = [f"    for _ in range({steps}):"]
        elif len(sources) == 1:
            lines = [f"    for {items[0]} in {sources[0]}:"]
        else:
            lines = [f"    for {', '.join(items)} in zip({', '.join(sources)}):"]
        if family.form == STEPS:
            body = self.calls(first.ops, self.wanted(0), 2) + self.leaf(0, 2)
        else:
            body = self.choice(family.tree, 2)
        lines += body or ["        pass"]
        if family.form == WHILE and not lines[0].endswith("while True:"):
            lines += ["    else:", f"        {self.miss}"]
        return lines

    def reads(self, column: int) -> bool:
        """Whether any variant uses a column."""
        return any(
            v.columns.get(column) in self.used for v in self.family.variants if column in v.columns
        )

    def told(self, steps: str, columns: list[str]) -> list[str]:
        """A loop that is told which variant to take."""
        family = self.family
        lines, readers = [], {}
        for i, source in zip(range(len(columns)), self.way(columns), strict=True):
            if self.reads(i):
                readers[i] = self.fresh(f"next{i + 1}")
                lines.append(f"    {readers[i]} = iter({source}).__next__")
        lines.append(f"    for path in {self.way([steps])[0]}:")
        for i, reader in readers.items():
            if family.columns[i] is None:
                name = self.fresh("x")
                lines.append(f"        {name} = {reader}()")
                for v in family.variants:
                    if i in v.columns:
                        self.names[v.columns[i]] = name
        for number, v in enumerate(family.variants):
            lines.append(f"        {'if' if number == 0 else 'elif'} path == {number}:")
            body = []
            for i, reader in readers.items():
                if family.columns[i] == number:
                    name = self.names[v.columns[i]] = self.fresh("x")
                    body.append(f"            {name} = {reader}()")
            with self.apart():
                body += self.calls(v.ops, self.wanted(number), 3) + self.leaf(number, 3)
            lines += body or ["            pass"]
        return lines

    def wanted(self, number: int) -> set[Op]:
        """What is handed on or collected at the end of a variant."""
        collected = [items.get(number) for _, (_, items) in self.outs]
        return {*ops_in((self.family.variants[number].following, collected))}

    def wanted_after(self, choice: Any) -> set[Op]:
        """What the decision at the end of a choice, and all that may follow, need."""
        if choice.variant is not None:
            return self.wanted(choice.variant)
        wanted = {*ops_in(choice.subject)}
        for _, then in choice.branches:
            if then == EXIT:
                wanted.update(self.family.variants[0].carried)
            else:
                wanted |= self.wanted_after(then).union(*[op.operands() for op in then.ops])
        return wanted

    def calls(self, ops: list[Op], wanted: set[Op], depth: int) -> list[str]:
        """The statements of some operations; what is ``wanted`` afterwards keeps its name."""
        ops = [op for op in ops if not is_idle(op) or op in self.used]
        if self.arrays:
            self.assembly.bound.update(self.names.keys() - self.written)
            self.written.update(ops)
            return self.assembly.emit(ops, wanted, self.miss, depth)
        lines = []
        for op in ops:
            if op not in self.nested:
                lines += ["    " * (depth - 1) + line for line in self.statement(op)]
        return lines

    def choice(self, choice: Any, depth: int) -> list[str]:
        """The lines of a tree of choices."""
        pad = "    " * depth
        if choice == EXIT:
            return [pad + "break"]
        lines = self.calls(choice.ops, self.wanted_after(choice), depth)
        if choice.variant is not None:
            return lines + self.leaf(choice.variant, depth)
        subject = self.whole(choice.subject)
        branches = choice.branches
        if len(branches) == 1:
            ((value, then),) = branches
            lines.append(f"{pad}if {self.test(subject, value, False)}:")
            return [*lines, f"{pad}    {self.miss}", *self.branch(then, depth)]
        exits = [b for b in branches if b[1] == EXIT]
        branches = exits + [b for b in branches if b[1] != EXIT]
        whole = {value for value, _ in branches if value is True or value is False} == {True, False}
        for i, (value, then) in enumerate(branches):
            if whole and i == 1:
                if branches[0][1] == EXIT:
                    return [*lines, *self.branch(then, depth)]
                lines.append(f"{pad}else:")
            else:
                word = "if" if i == 0 else "elif"
                lines.append(f"{pad}{word} {self.test(subject, value, True)}:")
            lines += self.branch(then, depth + 1) or [f"{pad}    pass"]
        if not whole:
            lines += [f"{pad}else:", f"{pad}    {self.miss}"]
        return lines

    def branch(self, then: Any, depth: int) -> list[str]:
        """The lines of one branch of a choice."""
        with self.apart():
            return self.choice(then, depth)

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Write a branch: what it does with names is not the business of the others."""
        before = self.assembly
        self.assembly = before.fork()
        self.names = self.assembly.names
        yield
        self.assembly, self.names = before, before.names

    def test(self, subject: str, value: Any, equal: bool) -> str:
        if value is True or value is False:
            return subject if value is equal else f"not {subject}"
        return f"{'' if equal else 'not '}{self.named(same, 'same')}({subject}, {self.constant(value, 'decided')})"

    def leaf(self, number: int, depth: int) -> list[str]:
        """Hand on what is carried, and collect."""
        pad = "    " * depth
        v = self.family.variants[number]
        lines = []
        for i, (of, items) in self.outs:
            if items.get(None) == "steps":
                if len(self.family.variants) > 1:
                    lines.append(f"{pad}{self.out[i]}.append({number})")
                elif self.counting is None:
                    lines.append(f"{pad}{self.out[i]} += 1")
            elif of is None or of == number:
                lines.append(f"{pad}{self.out[i]}.append({self.whole(items[number])})")
        targets, values = [], []
        for name, tree in zip(self.carried, v.following, strict=True):
            text = self.whole(tree)
            if text != name:
                targets.append(name)
                values.append(text)
        if targets:
            lines.append(f"{pad}{', '.join(targets)} = {', '.join(values)}")
        return lines


def same(x: Any, y: Any) -> bool:
    """Whether a decision is the one that was traced: of the same type and exactly equal."""
    return type(x) is type(y) and (x == y and repr(x) == repr(y))


def is_idle(op: Op) -> bool:
    """Whether an operation does nothing but give its value, so that it may be left out where that is not used."""
    return op.fn is element or (op.fn in SAFE and is_one_of(type(op.value), (float, int)))


def is_arithmetic(op: Op) -> bool:
    """Whether an operation takes plain numbers to a plain number."""
    known = op.fn in INFIX or op.fn in PREFIX or isinstance(op.fn, BuiltinFunctionType)
    return (
        known
        and not op.kwargs
        and all(is_one_of(type(x), PLAIN) for x in (op.value, *primal(op.args)))
    )


PLAIN = (float, int, bool)


def is_cheap(op: Op) -> bool:
    return op.fn in CHEAP and is_one_of(type(op.value), (float, int))


def write_loop(self: Any, op: Op, pad: str, lines: list[str], dying: Sequence[Op] = ()) -> None:
    """A loop in the midst of other statements; nobody needs the operands that are ``dying`` after it."""
    fn = op.fn
    assembly = self.assembly if isinstance(self, LoopWriter) else self
    writer = LoopWriter(fn.plain or fn, self, assembly.asked.get(op))
    careful = fn.left if assembly.kept and fn.family.gaps else fn.careful
    careful = None if fn.plain is None else careful
    assembly.remote.append(op)  # for what is in it
    _, starts, *others = fn.split(op.args)
    free = [
        j
        for j in writer.owned
        if careful is None
        and assembly.disposable(starts[j], dying)
        and starts[j] not in ops_in(others)
    ]
    text, results = writer.inline(op, self, careful, free)
    lines += [pad[4:] + line for line in text]
    assembly.elements[op] = results
    assembly.anew[op] = owned_slots(fn).intersection(writer.owned)
    shown = ", ".join("None" if x == "_" else x for x in results)
    assembly.names[op] = f"({shown},)" if results else "()"


def write_loop_in_program(
    self: Assembly, op: Op, dying: Sequence[Op], pad: str, lines: list[str]
) -> None:
    write_loop(self, op, pad, lines, dying)
    self.release([x for x in dying if x is not op], pad, lines)


WRITES[LoopFunction] = write_loop_in_program
asking.writer = LoopWriter
