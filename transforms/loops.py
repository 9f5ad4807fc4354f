"""Loop functions: a rolled loop as one function of what it starts from, differentiable like any other.

Words
-----
steps      what tells a loop how to run: the count of its iterations (the most that are known, of a loop that
           a decision ends; None if any number will do), or which variant each of them takes.
carried    what an iteration hands on to the next; a loop function is called with what the first one gets.
invariant  a value from before the loop that every iteration uses.
column     one value for each iteration, in their order whichever way the loop runs; an argument or a result.
variant    what an iteration does under certain decisions. A column may belong to one variant: it has the values of
           the iterations that took it.
choice     operations and the decision at their end: the variants of a loop are the leaves of a tree of choices.
form       ``count``: runs a given number of times. ``while``: runs until a decision leads to the exit.
           ``steps``: takes no decisions, but is told its variants, as the reverse of a loop is.
plain      a family that computes the same by plain arithmetic, as long as all of its results are finite (see `rescue`).

A loop function is called ``fn(steps, *carried, *invariants, *columns)`` and returns a tuple: what is carried out of
the last iteration, then the columns that it collects. The reverse of a loop function is a loop function that runs
the other way, over columns of the values that were carried into each iteration; so loops can be differentiated as
often as one likes. What must be collected for that is found out when it is first asked for.
"""

from __future__ import annotations

import cmath
import contextlib
import linecache
import math
import operator
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..rules import registry
from ..tracer.loops import Carry, Pick
from ..tracer.source import Text, Writer
from ..tracer.tape import NOWHERE, Input, Op, Site, Tape, append, element, ops_in, primal
from .assemble import WRITES, Assembly, Storage
from .columns import AddColumns, Column
from .expand import expansion_of, leaves_of, looked_at
from .kernels import is_array, is_steady
from .owned import owned_slots
from .reverse import OWN, Machine, Numeric, Parts, Recorded, dependents, sweep, zero
from .rewrites import rewritten_part
from .simplify import pruned, simplified

COUNT, WHILE, STEPS = "count", "while", "steps"
EXIT = "exit"
DEEPEST = 8  # nested operations in one expression
# Computing these again is faster than keeping their values.
CHEAP = frozenset((operator.add, operator.sub, operator.mul, operator.truediv, operator.neg))


class Miss(Exception):
    """A loop function met a decision that the traced run did not: the function must be traced again."""


class Unrolled(Exception):
    """Why a loop cannot be rolled."""


class Choice:
    """Operations of an iteration, and what comes of them.

    That is either the end of the variant with the number ``variant``, or a decision on ``subject`` with ``branches``
    by its value, which lead on to other choices or to EXIT.
    """

    __slots__ = ("branches", "ops", "subject", "variant")

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.subject: Any = None
        self.branches: list[tuple[Any, Any]] = []
        self.variant: int | None = None


class Variant:
    """What an iteration does: the calls ``ops`` on what stands for its arguments, and what it hands on."""

    __slots__ = ("carried", "columns", "following", "invariants", "ops")

    def __init__(
        self,
        ops: list[Op],
        carried: list[Op],
        invariants: list[Op],
        columns: dict[int, Op],
        following: list[Any],
    ) -> None:
        self.ops = ops
        self.carried = carried
        self.invariants = invariants
        self.columns = columns
        self.following = following


class Family:
    """What is common to the loop functions that differ only in how much they collect.

    ``collected`` lists the columns that may be asked for: of which variant each is (None: of all), and what in the
    variant's operations it collects. A loop function collects the first so many of them.
    """

    def __init__(
        self,
        form: str,
        variants: list[Variant],
        columns: list[int | None],
        collected: list[tuple[int | None, dict[int | None, Any]]],
        descending: bool = False,
        tree: Choice | None = None,
        site: Site = NOWHERE,
        capped: bool = False,
    ) -> None:
        self.form = form
        self.variants = variants
        self.columns = columns
        self.collected = collected
        self.descending = descending
        self.tree = tree
        self.site = site
        self.capped = capped  # whether a `while` may take no more than a given number of iterations
        self.count = len(variants[0].carried)
        self.told = form == STEPS  # the variants that its iterations take
        self.members: dict[int, LoopFunction] = {}
        self.reverses: dict[Any, Reverse] = {}
        self.plain: Family | None = None

    def member(self, size: int | None = None) -> LoopFunction:
        """The loop function that collects the first ``size`` columns (all that were ever asked for)."""
        size = len(self.collected) if size is None else size
        if size not in self.members:
            self.members[size] = LoopFunction(self, size)
        return self.members[size]

    def insert(self, after: Op, op: Op) -> None:
        """Let every variant that does ``after`` do ``op`` next."""
        lists = [v.ops for v in self.variants]
        todo = [self.tree] if self.tree is not None else []
        while todo:
            choice = todo.pop()
            lists.append(choice.ops)
            todo += [then for _, then in choice.branches if then != EXIT]
        for ops in {id(ops): ops for ops in lists}.values():
            if after in ops:
                ops.insert(ops.index(after) + 1, op)
        self.changed()

    def changed(self) -> None:
        """What the variants do has changed: the loop functions are compiled anew."""
        for member in self.members.values():
            member.function = None

    def collecting(self, of: int | None, item: Any) -> int:
        """The number of the column that collects an item of a variant (``"steps"``: which variants were taken)."""
        for i, (owner, items) in enumerate(self.collected):
            if owner == of and (
                item is items.get(of) if of is not None else item == items.get(None)
            ):
                return i
        self.collected.append((of, {of: item}))  # type: ignore[dict-item]
        return len(self.collected) - 1


class LoopFunction:
    """A rolled loop; see above. ``source()`` shows it as Python, which is what runs."""

    __name__ = "loop"

    def __init__(self, family: Family, size: int) -> None:
        self.family = family
        self.size = size
        self.function: Any = None
        self.slow: Any = None

    def __call__(self, *args: Any) -> Any:
        if self.function is None:
            self.compile()
        return self.function(*args)

    def __repr__(self) -> str:
        return f"<loop at {self.family.site}>"

    def __reduce__(self) -> Any:
        return LoopFunction, (self.family, self.size)

    @property
    def plain(self) -> LoopFunction | None:
        """The same by plain arithmetic, if there is such."""
        plain = self.family.plain
        return None if plain is None or self.size != len(plain.collected) else plain.member()

    @property
    def steady(self) -> bool:
        """Whether the types of the results follow from those of the arguments."""
        return all(
            all(is_steady(op) for op in v.ops)
            and all(
                same_kind(x.value, example(y)) for x, y in zip(v.carried, v.following, strict=True)
            )
            for v in self.family.variants
        )

    def sample(self, path: Sequence[int]) -> tuple[Any, ...]:
        """Results such as a call gives whose iterations take the variants of ``path``: the values are any."""
        family = self.family
        found = [example(x) for x in family.variants[0].following]
        for of, items in family.collected[: self.size]:
            if of is not None:
                found.append(Column([example(items[of])] * list(path).count(of)))
            elif items.get(None) == "steps":
                found.append(Column(path) if len(family.variants) > 1 else len(path))
            else:
                found.append(Column([example(items[number]) for number in path]))
        return tuple(found)

    def compile(self) -> None:
        plain = self.plain
        if plain is None:
            self.function = self.defined()
        else:
            self.function = plain.defined(self.careful)

    def careful(self, *args: Any) -> Any:
        """What the loop comes to if plain arithmetic has given something that is not finite."""
        if self.slow is None:
            self.slow = self.defined()
        return self.slow(*args)

    def defined(self, careful: Any = None) -> Any:
        """The function that the source defines; ``careful`` is asked where its results are not finite."""
        writer = LoopWriter(self)
        text = writer.write("loop", careful)
        name = f"<loop {self.family.site} {id(self):x}>"
        exec(compile(text, name, "exec"), writer.namespace)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        return writer.namespace["loop"]

    def source(self, name: str = "loop") -> str:
        """The loop as a Python function."""
        return LoopWriter(self).write(name)

    def split(self, args: Sequence[Any]) -> tuple[Any, list[Any], list[Any], list[Any]]:
        """The arguments: steps, carried, invariants, columns."""
        family = self.family
        a = 1 + family.count
        b = a + len(family.variants[0].invariants)
        return args[0], list(args[1:a]), list(args[a:b]), list(args[b:])


def is_finite(x: Any) -> bool:
    """Whether all the numbers of a result are; overflow of the test itself counts as well."""
    if isinstance(x, list):
        return math.isfinite(sum(x)) if {*map(type, x)} == {float} else all(map(is_finite, x))
    return cmath.isfinite(np.vdot(x, x) if np.ndim(x) else x)


def asked_results(ops: Iterable[Op]) -> dict[Op, set[int]]:
    """By loop, the numbers of the results that the others among some operations ask for."""
    asked: dict[Op, set[int]] = {}
    for op in ops:
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
        todo = [self.family.tree] if self.family.tree is not None else []
        while todo:
            choice = todo.pop()
            decided.append(choice.subject)
            todo += [then for _, then in choice.branches if then != EXIT]
        variants = self.family.variants
        trees = [*decided, *[v.following for v in variants]]
        trees += [x for _, (_, items) in self.outs for of, x in items.items() if of is not None]
        self.used.update(ops_in(trees))
        live = set(self.used)
        for v in variants:
            for op in reversed(v.ops):
                if op.fn is not element or op in live:
                    live.update(op.operands())
        ops = {op: None for v in variants for op in v.ops if op.fn is not element or op in live}
        for op in ops:
            self.used.update(op.operands())
        self.assembly.asked = asked_results(ops)
        for op in ops if not self.arrays else ():
            if self.used[op] == 1 and is_cheap(op) and not op.kwargs and self.depth(op) < DEEPEST:
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
            number = type(x) in (int, float) and not found.startswith("-")
            if not found.isidentifier() and (careful is not None or not number):
                lines.append(f"    {self.fresh(hint)} = {found}")
                return lines[-1].split()[0]
            return found

        invariants = [text(x, "r") for x in invariants]
        for v in self.family.variants:
            self.names.update(zip(v.invariants, invariants, strict=True))
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
        ops = [op for op in ops if op.fn is not element or op in self.used]
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


# ------------------------------------------------------------------------------------------------------ reverse


class Reverse:
    """The reverse of a loop function for some active arguments and some results that have cotangents.

    ``family`` runs it. It carries the cotangents of ``carried`` and those of ``invariants`` so far; it takes the
    forward loop's ``given_invariants`` and, as columns, the forward's own (``given_columns``), the cotangents of
    results (``cotangents``) and what the forward has collected (``trail``). It gives, as columns, the cotangents of
    ``columns``. ``steps`` is where among the forward's results it is told how the loop ran.
    """

    __slots__ = (
        "carried", "columns", "cotangents", "family", "given_columns", "given_invariants", "invariants",
        "steps", "trail",
    )  # fmt: skip

    carried: list[int]
    columns: list[int]
    cotangents: list[int]
    family: Family
    given_columns: list[int]
    given_invariants: list[int]
    invariants: list[int]
    steps: int | None
    trail: list[int]

    def __init__(self, **parts: Any) -> None:
        for name, value in parts.items():
            setattr(self, name, value)


class Body(Recorded):
    """Sweeps over the operations of one iteration, which stand for those of all iterations."""

    def __init__(self, tape: Tape, family: Family, variant: Variant) -> None:
        super().__init__(tape, NOWHERE)
        self.family = family
        self.variant = variant

    def result(self, op: Op, i: int) -> Op:
        """One of the results of an inner loop: part of the forward iteration, so that it can be collected."""
        if not any(op is x for x in self.variant.ops):
            return append(self.tape, element, (op, i), {}, op.value[i], op.site)
        for x in self.variant.ops:
            if x.fn is element and x.args[0] is op and x.args[1] == i:
                return x
        made = Op(element, (op, i), op.value[i], op.site, op.tape)
        self.family.insert(op, made)
        self.tape.ops.append(made)
        return made

    def pull(self, op: Op, dz: Any, active: set[Op]) -> None:
        if isinstance(dz, Parts):
            dz = self.whole(op, dz)
        expansion, leaves = expansion_of(op, active, primal(dz))
        if expansion is None:
            return
        rule = registry.lookup(op.fn)
        assert rule is not None
        looked = looked_at.get((rule, leaves_of(op, rule)[1]), ())
        if expansion.momentary or any(isinstance(leaves[i], Op) for i in looked):
            raise Unrolled(f"the derivative of {op.fn} depends on values that change ({op.site})")
        super().pull(op, dz, active)


def reverse_of(
    family: Family, carried: set[int], invariants: set[int], columns: set[int], results: set[int]
) -> Reverse:
    """The reverse for these active arguments, and cotangents of these results."""
    key = (frozenset(carried), frozenset(invariants), frozenset(columns), frozenset(results))
    found = family.reverses.get(key)
    if found is None:
        found = family.reverses[key] = Reverser(
            family, carried, invariants, columns, results
        ).build()
    return found


class Reverser:
    """Builds the reverse of a loop function."""

    def __init__(
        self,
        family: Family,
        carried: set[int],
        invariants: set[int],
        columns: set[int],
        results: set[int],
    ) -> None:
        self.family = family
        self.invariants = sorted(invariants)
        self.columns = sorted(columns)
        self.outs = sorted(i - family.count for i in results if i >= family.count)
        self.active = self.spread(set(carried))
        self.flowing = {j for j in results if j < family.count} & self.active

    def leaves(self, v: Variant) -> list[Op]:
        """The active arguments as a variant knows them."""
        return [
            *[v.carried[j] for j in sorted(self.active)],
            *[v.invariants[i] for i in self.invariants],
            *[v.columns[c] for c in self.columns if c in v.columns],
        ]

    def spread(self, active: set[int]) -> set[int]:
        """The carried values that depend on active arguments, after any number of iterations."""
        self.active = active
        while True:
            before = len(active)
            for v in self.family.variants:
                _, known = dependents(v.ops, self.leaves(v))
                active |= {
                    j
                    for j, tree in enumerate(v.following)
                    if isinstance(tree, Op) and tree in known and is_smooth(tree.value)
                }
            if len(active) == before:
                return active

    def build(self) -> Reverse:
        family = self.family
        while True:
            before = len(self.flowing)
            swept = [self.sweep(number, v) for number, v in enumerate(family.variants)]
            for found, _, _ in swept:
                self.flowing |= {j for j, d in found[0].items() if d is not None}
            if len(self.flowing) == before:
                break
        flowing = sorted(self.flowing)
        used_invariants: set[int] = set()
        used_columns: set[int] = set()
        trails: list[tuple[int, Op]] = []
        bodies: list[Any] = []
        plain: list[Any] | None = []
        for number, (v, (found, tape, inputs)) in enumerate(
            zip(family.variants, swept, strict=True)
        ):
            results = [
                *[or_zero(found[0].get(j), v.carried[j]) for j in flowing],
                *[or_zero(found[1].get(i), v.invariants[i]) for i in self.invariants],
            ]
            given = {c: or_zero(d, v.columns[c]) for c, d in found[2].items()}
            tape.result = [results, list(given.values())]
            forward = set(v.ops)
            tape = pruned(simplified(tape, keep=forward))
            needed: dict[Op, None] = {}

            parts = (v, inputs, list(given), forward)
            bodies.append(self.body_of(tape, *parts, needed))
            part = rewritten_part(tape, forward, [*inputs[0].values(), *inputs[1].values()])
            if plain is not None and part is not None:
                plain.append(self.body_of(pruned(part), *parts, needed))
            else:
                plain = None
            for op in needed:
                if any(op is x for x in v.invariants):
                    used_invariants.add([x is op for x in v.invariants].index(True))
                    continue
                place = [c for c, x in v.columns.items() if x is op]
                if place and family.form != WHILE:  # which may end before its columns do
                    used_columns.add(place[0])
                else:
                    trails.append((number, op))
        return self.assemble(
            flowing, bodies, plain, sorted(used_invariants), sorted(used_columns), trails
        )

    def sweep(self, number: int, v: Variant) -> tuple[Any, Tape, Any]:
        """The sweep over one variant: cotangents of its arguments, the tape they are on, and the inputs of that."""
        tape = Tape("reverse")
        tape.ops = [*v.ops]
        seeds: list[tuple[Op, Any]] = []
        carried, sums, outs = {}, {}, {}
        for i in self.invariants:
            sums[i] = Input("s", zero(v.invariants[i].value), tape)
            seeds.append((v.invariants[i], sums[i]))
        for j in sorted(self.flowing):
            tree = v.following[j]
            carried[j] = Input("d", one_like(example(tree)), tape)
            if isinstance(tree, Op):
                seeds.append((tree, carried[j]))
        for i in self.outs:
            of, items = self.family.collected[i]
            tree = items.get(number)
            if (of is None or of == number) and isinstance(tree, Op):
                outs[i] = Input("e", one_like(tree.value), tape)
                seeds.append((tree, outs[i]))
        inputs: list[Op] = [*carried.values(), *sums.values(), *outs.values()]
        tape.ops = [*inputs, *v.ops]
        leaves = self.leaves(v)
        found = sweep(v.ops, leaves, seeds, Body(tape, self.family, v))
        cotangents = dict(zip(leaves, found, strict=True))
        parts = (
            {j: cotangents[v.carried[j]] for j in sorted(self.active)},
            {i: cotangents[v.invariants[i]] for i in self.invariants},
            {c: cotangents[v.columns[c]] for c in self.columns if c in v.columns},
        )
        return parts, tape, (carried, sums, outs)

    def body_of(
        self,
        tape: Tape,
        v: Variant,
        inputs: Any,
        columns: list[int],
        forward: set[Op],
        needed: dict[Op, None],
    ) -> Any:
        """What an iteration of the reverse does; what it takes from the forward run is added to ``needed``."""
        results, gradients = tape.result
        kept, ops = self.divide(tape, forward, v)
        needed.update(dict.fromkeys(kept))
        return v, ops, inputs, results, dict(zip(columns, gradients, strict=True))

    def divide(self, tape: Tape, forward: set[Op], v: Variant) -> tuple[list[Op], list[Op]]:
        """What the reverse takes from the forward run, and the operations that it does itself."""
        arguments = {*v.carried, *v.invariants, *v.columns.values()}
        needed = set(ops_in(tape.result))
        kept: dict[Op, None] = {}
        ops: list[Op] = []
        for op in reversed(tape.ops):
            if op.kind != "call" or op not in needed:
                continue
            if op in forward and not is_cheap(op):
                kept[op] = None
                continue
            ops.append(op)
            needed.update(op.operands())
        for op in arguments:
            if op in needed:
                kept[op] = None
        return list(kept), ops[::-1]

    def assemble(
        self,
        flowing: list[int],
        bodies: list[Any],
        plain: list[Any] | None,
        used_invariants: list[int],
        used_columns: list[int],
        trails: list[tuple[int, Op]],
    ) -> Reverse:
        family = self.family
        columns: list[int | None] = [family.columns[c] for c in used_columns]
        columns += [family.collected[i][0] for i in self.outs]
        columns += [number for number, _ in trails]

        def family_of(bodies: list[Any]) -> Family:
            variants = []
            collected: list[tuple[int | None, dict[int | None, Any]]] = [
                (family.columns[c], {}) for c in self.columns
            ]
            for number, (v, ops, (carried, sums, outs), results, given) in enumerate(bodies):
                places: dict[int, Op] = {}
                for place, c in enumerate(used_columns):
                    if c in v.columns:
                        places[place] = v.columns[c]
                for place, i in enumerate(self.outs):
                    if i in outs:
                        places[len(used_columns) + place] = outs[i]
                for place, (of, op) in enumerate(trails):
                    if of == number:
                        places[len(used_columns) + len(self.outs) + place] = op
                variants.append(
                    Variant(
                        ops,
                        [*[carried[j] for j in flowing], *sums.values()],
                        [v.invariants[i] for i in used_invariants],
                        places,
                        results,
                    )
                )
                for place, c in enumerate(self.columns):
                    if c in given:
                        collected[place][1][number] = given[c]
            return Family(
                STEPS, variants, columns, collected, not family.descending, site=family.site
            )

        backward = family_of(bodies)
        if plain is not None:
            backward.plain = family_of(plain)
        steps = None
        if family.form != STEPS and (family.form == WHILE or len(family.variants) > 1):
            steps = family.collecting(None, "steps")
        return Reverse(
            family=backward,
            carried=flowing,
            invariants=self.invariants,
            columns=self.columns,
            given_invariants=used_invariants,
            given_columns=used_columns,
            cotangents=self.outs,
            trail=[family.collecting(number, op) for number, op in trails],
            steps=steps,
        )


def is_cheap(op: Op) -> bool:
    return op.fn in CHEAP and type(op.value) in (float, int)


def is_smooth(value: Any) -> bool:
    """Whether a value can have a cotangent of its own kind."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fc"
    if type(value) in (Column, tuple):
        return True
    return isinstance(value, (float, complex, np.inexact))


def example(tree: Any) -> Any:
    return tree.value if isinstance(tree, Op) else tree


def same_kind(x: Any, y: Any) -> bool:
    """Whether two values are of the same type, dtype and shape."""
    if type(x) is not type(y):
        return False
    return type(x) is not np.ndarray or (x.dtype == y.dtype and x.shape == y.shape)


def write_loop(self: Any, op: Op, pad: str, lines: list[str], dying: Sequence[Op] = ()) -> None:
    """A loop in the midst of other statements; nobody needs the operands that are ``dying`` after it."""
    fn = op.fn
    assembly = self.assembly if isinstance(self, LoopWriter) else self
    writer = LoopWriter(fn.plain or fn, self, assembly.asked.get(op))
    careful = None if fn.plain is None else fn.careful
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
    assembly.names[op] = f"({', '.join('None' if x == '_' else x for x in results)},)"


def write_loop_in_program(
    self: Assembly, op: Op, dying: Sequence[Op], pad: str, lines: list[str]
) -> None:
    write_loop(self, op, pad, lines, dying)
    self.release([x for x in dying if x is not op], pad, lines)


WRITES[LoopFunction] = write_loop_in_program


def or_zero(d: Any, like: Op) -> Any:
    return zero(like.value) if d is None else d


def one_like(value: Any) -> Any:
    """A cotangent of the kind that belongs to a value."""
    return (
        1.0 if type(value) is float else value if type(value) is tuple else np.ones_like(value)[()]
    )


def sample_path(family: Family, columns: Sequence[Any]) -> list[int]:
    """Each of the variants, as often as there are cotangents to be told apart."""
    count = len(family.variants)
    most = max([len(x) for x in columns if type(x) is tuple], default=0)
    return [*range(count), *[0] * (most - count)]


def pull_loop(machine: Machine, op: Op, dz: Any, active: set[Op]) -> None:
    """Hand the cotangents of a loop's results on to its arguments."""
    parts = dz.parts if isinstance(dz, Parts) else list(dz)
    if not isinstance(dz, Parts) and isinstance(dz, Op):
        raise Unrolled("the cotangent of a loop must come by its parts")
    loop: LoopFunction = op.fn
    family = loop.family
    steps, carried, invariants, columns = loop.split(op.args)
    reverse = reverse_of(
        family,
        {j for j, x in enumerate(carried) if isinstance(x, Op) and x in active},
        {i for i, x in enumerate(invariants) if isinstance(x, Op) and x in active},
        {c for c, x in enumerate(columns) if not active.isdisjoint(ops_in(x))},
        {i for i, d in enumerate(parts) if d is not None},
    )
    numeric = isinstance(machine, Numeric)
    path = sample_path(family, columns)  # where values are of no interest, only their types
    if loop.size < len(family.collected):
        op.fn = loop = family.member()
        if numeric:
            op.value = loop(*primal(op.args))
        else:
            op.value = (*op.value[: family.count], *loop.sample(path)[family.count :])
        if isinstance(machine, Body):
            machine.family.changed()
    count = family.count

    def result(i: int) -> Any:
        """One of the results of the forward loop."""
        if numeric:
            return op.value[i]
        if isinstance(machine, Body):
            return machine.result(op, i)
        return append(machine.tape, element, (op, i), {}, op.value[i], op.site)  # type: ignore[attr-defined]

    def given(x: Any) -> Any:
        return primal(x) if numeric else x

    args = [
        given(steps) if reverse.steps is None else result(count + reverse.steps),
        *[machine.zero(op.value[j]) if parts[j] is None else parts[j] for j in reverse.carried],
        *[machine.zero(primal(invariants[i])) for i in reverse.invariants],
        *[given(invariants[i]) for i in reverse.given_invariants],
        *[given(columns[c]) for c in reverse.given_columns],
        *[parts[count + i] for i in reverse.cotangents],
        *[result(count + i) for i in reverse.trail],
    ]
    backward = reverse.family.member()
    taken: Any
    if numeric:
        taken = backward(*primal(tuple(args)))
    else:
        values = backward.sample(path)
        made = append(machine.tape, backward, tuple(args), {}, values, op.site)  # type: ignore[attr-defined]
        taken = [
            append(machine.tape, element, (made, i), {}, x, op.site)  # type: ignore[attr-defined]
            for i, x in enumerate(values)
        ]
    for j, d in zip(reverse.carried, taken, strict=False):
        if isinstance(carried[j], Op) and carried[j] in active:
            machine.accumulate(carried[j], d)
    place = len(reverse.carried)
    for i, d in zip(reverse.invariants, taken[place:], strict=False):
        machine.accumulate(invariants[i], d)
    place += len(reverse.invariants)
    for c, d in zip(reverse.columns, taken[place:], strict=False):
        column = columns[c]
        if isinstance(column, Op):
            machine.accumulate(column, d)
            continue
        for k, x in enumerate(column):
            if isinstance(x, Op) and x in active:
                if numeric:
                    machine.accumulate(x, d[k])
                else:
                    machine.accumulate(
                        x,
                        append(machine.tape, element, (d, k), {}, d.value[k], op.site),  # type: ignore[attr-defined]
                    )


def pull_sum(machine: Machine, op: Op, dz: Any, active: set[Op]) -> None:
    """The cotangent of a sum of columns is that of both."""
    for x in op.args:
        if x in active:
            machine.accumulate(x, dz)


def pull_carry(machine: Machine, op: Op, dz: Any, active: set[Op]) -> None:
    """The cotangent of what is carried is that of where it comes from."""
    if op.args[0] in active:
        machine.accumulate(op.args[0], dz)


OWN[Carry] = OWN[Pick] = pull_carry
OWN[LoopFunction] = pull_loop
OWN[AddColumns] = pull_sum
