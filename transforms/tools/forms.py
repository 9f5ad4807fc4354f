"""The tape of value-and-pullback pairs, and the reverse sweep that calls the pullbacks.

Words
-----
pair      a primitive with its rule: called as the primitive is, it gives the value and the pullback of this call.
copy      what stands on the tape of pairs for an op of the forward run.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from ...rules import registry
from ...rules.elementwise import unknown
from ...tracer.errors import NoRuleError, TraceError
from ...tracer.kinds import isinstance
from ...tracer.missing import place_of_op
from ...tracer.pairs import Pair
from ...tracer.tape import (
    NOWHERE,
    KeywordOp,
    Op,
    Site,
    Tape,
    append,
    copy_of,
    element,
    fn_name,
    ops_in,
    primal,
    substitute,
    variable,
)
from ..expand import REFUSALS, bound, refusal
from ..reverse import OWN, dependents, zero


class PairOf:
    """What ``pair(mul)`` is: ``pair(mul)(x, y)`` gives ``x * y`` and its pullback."""

    unpacked = True  # its results have a name each

    def __init__(self, op: Op) -> None:
        rule = registry.lookup(op.fn)
        if type(op.fn) is Pair or (rule is not None and rule.function and not rule.pure):
            raise TraceError(
                f"{place_of_op(op)}: the rule of {fn_name(op.fn)} is not pure, so that it runs once a call, and no "
                "tape can call it again\nif it does nothing but compute from its arguments, declare it with pure=True"
            )
        if type(op.fn) in OWN:
            raise TraceError(
                f"{place_of_op(op)}: {fn_name(op.fn)} has no pullback of its own that could be called: "
                'its rule is part of the run\nform="naive" and form="final" show what the sweep does with it'
            )
        if rule is None or rule.kind != registry.RRULE or rule.function is None:
            raise NoRuleError(
                f"{place_of_op(op)}: {fn_name(op.fn)} has no rule that gives a pullback\n"
                'give it one with wengert.rrule, or see form="naive" and form="final"'
            )
        self.fn = op.fn
        self.rule = rule
        self.__name__ = f"pair({fn_name(op.fn)})"

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Callable[[Any], Any]]:
        assert self.rule.function is not None
        value, back = self.rule.function(*args, **kwargs)
        if kwargs:  # whose cotangents come behind those of the others, in their order
            given = KeywordOp(self.fn, args, kwargs, value, NOWHERE, NO_TAPE)
            return value, lambda dz: bound(given, self.rule, back(dz))
        return value, back


NO_TAPE = Tape("pairs")


class Back:
    """Calls a pullback: ``back4(dz)`` gives a cotangent for each argument."""

    unpacked = True
    __name__ = "back"

    def __call__(self, back: Callable[[Any], Any], dz: Any) -> Any:
        return back(dz)


back = Back()


def swept_by_pairs(
    tape: Tape, wrt: list[Any], seeds: list[tuple[Op, Any]], out: Tape
) -> tuple[dict[Op, Any], dict[Op, Op]]:
    """Put the pairs of a tape and their reverse sweep on another: the cotangents of ``wrt``, and the copies."""
    sweep = Pairs(tape, wrt, seeds, out)
    sweep.forward()
    out.forward = frozenset(out.ops)
    sweep.backward()
    return {x: sweep.cotangent(x) for x in wrt}, sweep.copies


class Pairs:
    """One tape of pairs."""

    def __init__(self, tape: Tape, wrt: list[Any], seeds: list[tuple[Op, Any]], out: Tape) -> None:
        self.tape, self.out, self.seeds = tape, out, seeds
        self.outline = out.outline
        self.steps, self.active = dependents(tape.ops, wrt)
        self.copies: dict[Op, Op] = {}
        self.backs: dict[Op, Op] = {}
        self.pairs: dict[int, PairOf] = {}  # by id of the primitive
        self.known: dict[Op, Any] = {}  # cotangents; of what has several values, a list of theirs
        inputs = [d for _, d in seeds if isinstance(d, Op)]
        out.ops = []
        self.inputs = inputs

    def add(self, fn: Any, args: tuple[Any, ...], kwargs: Any, value: Any, site: Site) -> Op:
        return append(self.out, fn, args, kwargs, value, site)

    def forward(self) -> None:
        """Each op that a gradient flows through as a pair, all others as they are."""
        pulled = set(self.steps)
        for op in self.tape.ops:
            start = len(self.out.ops)
            if op in pulled and op.fn is not element:
                self.pair(op)
            elif op.kind == "input":
                self.out.ops.append(op)
                self.copies[op] = op
            else:
                new = self.copies[op] = copy_of(op, self.out, self.copies)
                new.value = op.value
                self.out.ops.append(new)
            self.follow(op, start)
        self.out.ops += self.inputs

    def follow(self, op: Op, start: int) -> None:
        """The lines from ``start`` on stand where the op did."""
        region = self.outline.regions.get(op)
        if region is not None:
            self.outline.regions.update(dict.fromkeys(self.out.ops[start:], region))

    def pair(self, op: Op) -> None:
        fn = self.pairs.get(id(op.fn))
        if fn is None:
            fn = self.pairs[id(op.fn)] = PairOf(op)
        args = substitute(op.args, self.copies.__getitem__)
        kwargs = substitute(op.kwargs, self.copies.__getitem__)
        try:
            found = fn(*primal(args), **primal(kwargs))
        except REFUSALS as error:
            raise refusal(op, error) from error
        both = self.add(fn, args, kwargs, (op.value, found[1]), op.site)
        self.copies[op] = self.add(element, (both, 0), {}, op.value, op.site)
        self.backs[op] = self.add(element, (both, 1), {}, found[1], op.site)
        name = variable(op)
        if name is not None:
            self.outline.names[self.copies[op]] = name

    def backward(self) -> None:
        """Call the pullbacks, the last one first."""
        for op, seed in self.seeds:
            self.accumulate(op, seed)
        for op in reversed(self.steps):
            start = len(self.out.ops)
            dz = self.cotangent(op)
            self.known.pop(op, None)
            if dz is None:
                continue
            if op.fn is element:
                whole, index = op.args
                parts = self.known.setdefault(whole, [None] * len(whole.value))
                parts[index] = dz if parts[index] is None else self.sum(parts[index], dz)
                continue
            if isinstance(dz, list):
                dz = tuple([zero(v) if d is None else d for d, v in zip(dz, op.value, strict=True)])
            self.pull(op, dz)
            self.outline.place(self.out.ops[start:], op, self.active, self.known)

    def pull(self, op: Op, dz: Any) -> None:
        name = variable(op)
        if name is not None and isinstance(dz, Op):
            self.outline.names.setdefault(dz, f"d{name}")
        pullback = self.backs[op]
        try:
            found = pullback.value(primal(dz))
        except REFUSALS as error:
            raise refusal(op, error) from error
        if not isinstance(found, tuple):
            raise TraceError(
                f"{place_of_op(op)}: the pullback of {fn_name(op.fn)} must return a tuple\n"
                "it has one cotangent for each argument, and None where there is none: return (dx,)"
            )
        given = self.add(back, (pullback, dz), {}, found, op.site.plain)
        parts: list[tuple[Op, Op]] = []
        for i, tree in enumerate((*op.args, *op.kwargs.values())):
            if i < len(found):
                self.take(op, tree, given, i, found[i], parts)
        for x, part in parts:
            self.accumulate(x, part)

    def take(
        self, op: Op, tree: Any, given: Op, index: Any, d: Any, parts: list[tuple[Op, Op]]
    ) -> None:
        """Take what a pullback gave for an argument, which may be nested: ops with parts of their cotangents."""
        if d is None or not any(x in self.active for x in ops_in(tree)):
            return
        if isinstance(d, unknown):
            raise NoRuleError(
                f"{place_of_op(op)}: {fn_name(op.fn)} has no formula for its derivative in {d.name}\n"
                f"let {d.name} be a constant (wengert.stop_gradient), or ask for other derivatives"
            )
        part = self.add(element, (given, index), {}, d, op.site.plain)
        if isinstance(tree, Op):
            parts.append((tree, part))
            return
        for key, inner in items_of(tree):
            if any(x in self.active for x in ops_in(inner)):
                self.take(op, inner, part, key, d[key], parts)

    def cotangent(self, op: Op) -> Any:
        return self.known.get(op)

    def accumulate(self, op: Op, d: Any) -> None:
        have = self.known.get(op)
        self.known[op] = d if have is None else self.sum(have, d)

    def sum(self, x: Any, y: Any) -> Op:
        return self.add(operator.add, (x, y), {}, primal(x) + primal(y), NOWHERE)


def items_of(tree: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of a nested argument, by what leads to them."""
    if isinstance(tree, dict):
        yield from tree.items()
    elif isinstance(tree, (list, tuple)):
        yield from enumerate(tree)
