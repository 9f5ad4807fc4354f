"""The reverse of loop functions: loop functions that run the other way.

Words
-----
flowing    the carried values that have a cotangent, after any number of iterations.
sums       the cotangents of invariants so far, which the reverse carries.
trail      what the forward loop collects for the reverse.
sample     a value of the type that an operation has, where the value itself is of no interest.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from ..rules import registry
from ..rules.zeros import product, quotient
from ..tracer.kinds import isinstance
from ..tracer.loops import Carry, Pick, Put
from ..tracer.tape import NOWHERE, Input, Op, Tape, append, element, ops_in, primal
from .columns import AddColumns, JoinColumns, MakeColumn, TakeColumn
from .expand import expansion_of, is_asked, leaves_of, looked_at
from .kernels import hashable
from .loop_source import is_cheap
from .loops import (
    STEPS,
    WHILE,
    Family,
    LoopFunction,
    Unrolled,
    Variant,
    building,
    example,
    is_smooth,
)
from .reverse import OWN, Machine, Numeric, Parts, Recorded, dependents, sweep, zero
from .rewrites import rewritten_part
from .simplify import Rewriting, pruned, simplified


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
        made = Op(element, (op, i), op.value[i], op.site, op)  # on the same tape
        self.family.insert(op, made)
        self.tape.ops.append(made)
        return made

    def pull(self, op: Op, dz: Any, active: set[Op]) -> None:
        if is_asked(op):
            raise Unrolled(f"the rule of {op.fn} runs at each call ({op.site})")
        if isinstance(dz, Parts):
            dz = self.whole(op, dz)
        expansion, leaves = expansion_of(op, active, primal(dz))
        if expansion is None:
            return
        rule = registry.lookup(op.fn)
        assert rule is not None
        looked = looked_at.get((rule, leaves_of(op, rule)[1])) or ()
        if expansion.momentary or any(isinstance(leaves[i], Op) for i in looked):
            raise Unrolled(f"the derivative of {op.fn} depends on values that change ({op.site})")
        super().pull(op, dz, active)


def reverse_of(
    family: Family, carried: set[int], invariants: set[int], columns: set[int], results: set[int]
) -> Reverse:
    """The reverse for these active arguments, and cotangents of these results."""
    key = (frozenset(carried), frozenset(invariants), frozenset(columns), frozenset(results))
    with building:
        found = family.reverses.get(key)
        if found is None:
            found = family.reverses[key] = Reverser(
                family, carried, invariants, columns, results
            ).build()
        return found


class Winning(Rewriting):
    """Lets the zero win in products and quotients of numbers and cotangents: it may stand where there is none.

    Against an infinite slope it would give NaN to what has no influence.
    """

    def __init__(self, tape: Tape, keep: Collection[Op], cotangents: Iterable[Op]) -> None:
        super().__init__(tape, keep)
        _, self.cotangents = dependents(tape.ops, list(cotangents))

    def literal(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        fn = WINNING.get(op.fn) if type(op.value) is float and hashable(op.fn) else None
        if fn is None or op.args[0] not in self.cotangents:
            return super().literal(op, args, kwargs)
        return append(self.out, fn, args, kwargs, op.value, op.site)


WINNING: dict[Any, Any] = {operator.mul: product, operator.truediv: quotient}


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
        self.results = results
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
        gaps = any(
            type(v.carried[j].value) is float
            and (j not in self.results or any(found[0].get(j) is None for found, _, _ in swept))
            for v in family.variants
            for j in flowing
        )
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
            literal = Winning(tape, forward, inputs[0].values()).run() if gaps else tape
            bodies.append(self.body_of(literal, *parts, needed))
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
            flowing, gaps, bodies, plain, sorted(used_invariants), sorted(used_columns), trails
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
        gaps: bool,
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
        backward.gaps = gaps
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

    def cotangent(j: int) -> Any:
        """That of a carried value; of a plain number a plain one, as in the body that was traced."""
        d = parts[j]
        if d is None:
            return machine.zero(op.value[j])
        if numeric or type(op.value[j]) is not float or type(primal(d)) is float:
            return d
        return append(machine.tape, float, (d,), {}, float(primal(d)), op.site)  # type: ignore[attr-defined]

    args = [
        given(steps) if reverse.steps is None else result(count + reverse.steps),
        *map(cotangent, reverse.carried),
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
        if numeric and reverse.family.gaps and type(d) is float and d == 0:
            continue  # there may be none
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
    if isinstance(dz, Parts):
        dz = machine.column(op, dz)
    for x in op.args:
        if x in active:
            machine.accumulate(x, dz)


def values_of(machine: Machine, op: Op, dz: Any) -> list[Any]:
    """The cotangents of the values of a column; None is a zero."""
    if isinstance(dz, Parts):
        if dz.whole is None:
            return dz.parts
        dz = machine.column(op, dz)
    if isinstance(dz, Op):
        tape = machine.tape  # type: ignore[attr-defined]
        return [append(tape, element, (dz, k), {}, x, op.site) for k, x in enumerate(dz.value)]
    return list(dz)


def pull_column(machine: Machine, op: Op, dz: Any, active: set[Op]) -> None:
    """The cotangents of a column go to what it was made of: values, or the rows of an array."""
    source = op.args[0]
    if not isinstance(source, Op):
        for x, d in zip(source, values_of(machine, op, dz), strict=True):
            if d is not None and isinstance(x, Op) and x in active:
                machine.accumulate(x, d)
        return
    if isinstance(dz, Parts):
        dz = machine.column(op, dz)
    if isinstance(dz, Op):
        value = np.array(dz.value)
        dz = append(machine.tape, np.array, (dz,), {}, value, op.site)  # type: ignore[attr-defined]
    machine.accumulate(source, dz if isinstance(dz, Op) else np.array(dz))


def pull_taken(machine: Machine, op: Op, dz: Any, active: set[Op]) -> None:
    """The cotangents of a part of a column."""
    column, part = op.args
    places = range(len(column.value))[part]
    for k, d in zip(places, values_of(machine, op, dz), strict=True):
        if d is not None:
            machine.accumulate_part(column, k, d)


def pull_joined(machine: Machine, op: Op, dz: Any, active: set[Op]) -> None:
    """The cotangents of a column go to the columns and the values that it was joined from."""
    found = iter(values_of(machine, op, dz))
    for piece in op.args:
        for k, x in enumerate(piece.value if isinstance(piece, Op) else piece):
            d = next(found)
            if d is None:
                continue
            if isinstance(piece, Op):
                machine.accumulate_part(piece, k, d)
            elif isinstance(x, Op) and x in active:
                machine.accumulate(x, d)


def pull_carry(machine: Machine, op: Op, dz: Any, active: set[Op]) -> None:
    """The cotangent of what is carried is that of where it comes from."""
    if op.args[0] in active:
        machine.accumulate(op.args[0], dz)


OWN[Carry] = OWN[Pick] = OWN[Put] = pull_carry
OWN[LoopFunction] = pull_loop
OWN[AddColumns] = pull_sum
OWN[MakeColumn] = pull_column
OWN[TakeColumn] = pull_taken
OWN[JoinColumns] = pull_joined
