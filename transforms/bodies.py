"""Bodies: the variants of a loop function, made from the pattern of its iterations.

Words
-----
slot       the place of a carried variable among those that change.
steady     a carried variable that no iteration changes: an invariant.
delay      what an op has computed so many iterations ago, where an iteration uses that: carried as well.
"""

from __future__ import annotations

from typing import Any

from ..tracer.kinds import is_one_of, isinstance
from ..tracer.loops import Carry, carry, drawn
from ..tracer.tape import FloatOp, Input, KeywordOp, Op, Signature, Tape
from .columns import Column
from .loops import EXIT, WHILE, Choice, Family, Variant
from .patterns import Numbers, Pattern, Spot, alike, is_constant, patterns, refilled, spots

Group = Any  # a roll.Group
TAPE = Tape("loop")


class Delay:
    """The value of an op of the latest iteration, or what another delay (``before``) held in that."""

    __slots__ = ("before", "first", "number", "value")

    def __init__(self, number: int, before: int, first: dict[int, Any], value: Any) -> None:
        self.number = number
        self.before = before
        self.first = first  # by passage, what it holds at the beginning
        self.value = value  # an example

    def agrees(self, first: dict[int, Any]) -> bool:
        """Whether it may hold this at the beginning; if so, it does from now on."""
        if any(not alike(x, self.first.get(r, x)) for r, x in first.items()):
            return False
        self.first.update(first)
        return True


class Builder:
    """Makes the variants of a loop function from a pattern."""

    def __init__(self, group: Group, form: str) -> None:
        self.group = group
        self.form = form
        self.root = group.root
        given = range(group.given)
        ends = [x.end or [] for x in group.ends]
        steady = {
            j for j in given if all(end[j].local == j for end in ends)
        }  # what no iteration changes
        self.slots = [j for j in given if j not in steady]
        self.steady: dict[int, int] = {}  # a carried variable that never changes -> the invariant
        self.invariants: list[Any] = []  # spots, or numbers of carried variables
        self.columns: list[Spot] = []
        self.place_of: dict[
            int, tuple[str, int]
        ] = {}  # id of a spot -> invariant or column, and its number
        self.delays: list[Delay] = []
        self.delay_of: dict[int, int] = {}  # id of a spot -> its number
        seen: dict[Any, int] = {}
        for j in sorted(steady):
            self.steady[j] = len(self.invariants)
            self.invariants.append(j)
        for pattern in patterns(self.root):
            for spot in spots(pattern):
                if spot.behind is not None:
                    self.delay(spot)
                    continue
                if spot.local >= 0 or self.is_literal(spot):
                    continue
                key: Any
                if spot.changing is None:
                    key = tuple([(r, id(x)) for r, x in sorted(spot.same.items())])
                    if key not in seen:
                        seen[key] = len(self.invariants)
                        self.invariants.append(spot)
                    self.place_of[id(spot)] = ("invariant", seen[key])
                else:
                    key = tuple([(at, id(x)) for at, x in sorted(spot.changing.items())])
                    if key not in seen:
                        seen[key] = len(self.columns)
                        self.columns.append(spot)
                    self.place_of[id(spot)] = ("column", seen[key])
        self.variants: list[Variant] = []
        self.outputs: list[dict[int | None, Any]] = [{} for _ in group.outputs]

    def delay(self, spot: Spot) -> None:
        """Find the delay that a spot takes its values from, or make it and those that it follows."""
        assert spot.behind is not None
        ago, number = spot.behind
        before = -1
        for j in range(1, ago + 1):
            first = {r: row[ago - j] for r, row in spot.first.items() if len(row) > ago - j}
            for i, known in enumerate(self.delays):  # noqa: B007
                if (known.number, known.before) == (number, before) and known.agrees(first):
                    break
            else:
                i = len(self.delays)
                self.delays.append(Delay(number, before, first, self.group.example(number)))
            before = i
        self.delay_of[id(spot)] = before

    def is_literal(self, spot: Spot) -> bool:
        """Whether the same constant stands in a spot always."""
        if spot.changing is not None:
            return False
        values = list(spot.same.values())
        return not isinstance(values[0], Op) and all(alike(values[0], x) for x in values)

    def family(self) -> Family:
        group = self.group
        tree = self.node(self.root, {}, [], {})
        passage = group.passages[0]
        return Family(
            self.form,
            self.variants,
            [None] * len(self.columns),
            [(None, items) for items in self.outputs],
            tree=tree,
            site=passage.loop.site,
            capped=passage.loop.counted,
        )

    def node(
        self, pattern: Pattern, made: dict[int, Any], ops: list[Op], outside: dict[Any, Op]
    ) -> Any:
        """The choice that a pattern comes to; ``made`` are the ops so far by their number in the segment."""
        made, ops, outside = dict(made), list(ops), dict(outside)
        own: list[Op] = []
        if pattern is self.root:
            for i, delay in enumerate(self.delays):
                made[-1 - i] = Input(f"p{i + 1}", delay.value, TAPE)
        i = pattern.start
        for step in pattern.steps:
            op = step.op
            leaves = [self.leaf(spot, made, outside) for spot in step.spots]
            if op.fn is drawn:
                i += 1
                continue
            if i < self.group.given and op.fn is carry:
                made[i] = Input(f"c{i + 1}", op.value, TAPE)
            elif isinstance(op.fn, Carry):
                made[i] = leaves[0]
            elif is_constant(op.fn, leaves) and is_one_of(type(op.value), (int, float, bool)):
                made[i] = op.value
            else:
                new = copied(op, leaves)
                made[i] = new
                own.append(new)
            i += 1
        ops += own
        if pattern.end is not None:
            return self.finish(pattern, made, ops, outside, own)
        choice = Choice()
        choice.ops = own
        assert pattern.guard is not None
        choice.subject = self.leaf(pattern.guard.spots[0], made, outside)
        if self.form == WHILE:
            choice.branches += [(value, EXIT) for value in pattern.exits]
        choice.branches += [
            (value, self.node(branch, made, ops, outside)) for value, branch in pattern.branches
        ]
        return choice

    def finish(
        self,
        pattern: Pattern,
        made: dict[int, Any],
        ops: list[Op],
        outside: dict[Any, Op],
        own: list[Op],
    ) -> Any:
        assert pattern.end is not None
        following = [self.leaf(pattern.end[j], made, outside) for j in self.slots]
        for delay in self.delays:
            following.append(made[-1 - delay.before if delay.before >= 0 else delay.number])
        delays = [made[-1 - i] for i in range(len(self.delays))]
        invariants = []
        for i, x in enumerate(self.invariants):
            if isinstance(x, int):
                invariants.append(made[x])
                made[x].name = f"r{i + 1}"  # type: ignore[attr-defined]
            else:
                invariants.append(self.outer("invariant", i, outside))
        columns = {c: self.outer("column", c, outside) for c in range(len(self.columns))}
        self.variants.append(
            Variant(ops, [*[made[j] for j in self.slots], *delays], invariants, columns, following)
        )
        choice = Choice()
        choice.ops, choice.variant = own, len(self.variants) - 1
        for items, output in zip(self.outputs, self.group.outputs, strict=True):
            items[choice.variant] = made[output[pattern]]
        return choice

    def leaf(self, spot: Spot, made: dict[int, Any], outside: dict[Any, Op]) -> Any:
        if spot.local >= 0:
            return made[spot.local]
        if spot.behind is not None:
            return made[-1 - self.delay_of[id(spot)]]
        place = self.place_of.get(id(spot))
        if place is None:
            return next(iter(spot.same.values()))
        return self.outer(*place, outside)

    def outer(self, kind: str, number: int, outside: dict[Any, Op]) -> Op:
        """What stands for an invariant or for an element of a column."""
        if (kind, number) not in outside:
            spot = (self.invariants if kind == "invariant" else self.columns)[number]
            values = spot.same if spot.changing is None else spot.changing
            example = next(iter(values.values()))
            value = example.value if isinstance(example, Op) else example
            outside[kind, number] = Input(
                f"{'r' if kind == 'invariant' else 'x'}{number + 1}", value, TAPE
            )
        return outside[kind, number]

    def arguments(
        self, r: int, steps: Any, begin: list[Any], count: int, form: str
    ) -> tuple[Any, ...]:
        """What one passage gives to the loop function."""
        first = self.group.begin[r]
        length = count + (form == WHILE)
        if form == WHILE and self.group.passages[r].counter is not None:
            length = steps  # whichever of them is the last
        invariants = [begin[x] if isinstance(x, int) else x.same.get(r) for x in self.invariants]
        columns: list[Any] = []
        for spot in self.columns:
            if type(spot.changing) is Numbers:
                columns.append(spot.changing.ranges[r][first : first + length])
                continue
            values = [spot.changing.get((r, first + k)) for k in range(length)]
            ops = any(isinstance(x, Op) for x in values)
            columns.append(tuple(values) if ops else Column(values))
        delays = [delay.first.get(r, delay.value) for delay in self.delays]
        return (steps, *[begin[j] for j in self.slots], *delays, *invariants, *columns)


def copied(op: Op, leaves: list[Any]) -> Op:
    """An op of a segment with other operands, for the body of a loop."""
    queue = iter(leaves)
    args = refilled(op.args, queue)
    if isinstance(op, KeywordOp):
        return KeywordOp(op.fn, args, refilled(op.kwargs, queue), op.value, op.site, TAPE)
    if type(op) is FloatOp:
        kinds = [Op if isinstance(x, Op) else type(x) for x in args]
        return FloatOp(op.fn, args, op.value, op.site, TAPE, Signature.of(op.fn, *kinds))
    return Op(op.fn, args, op.value, op.site, TAPE)
