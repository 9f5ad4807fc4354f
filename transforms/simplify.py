"""Simplify and prune: a tape that computes the same with less.

Words
-----
rewriting   one pass over a tape. Each op that is not fixed is handed to the rules of its function, and what they say
            stands for it from then on: an op, a number, or, in the algebra of reverse sweeps, a sum (see ``algebra``).
fixed       the ops of a forward run: they stay as they are, and are used where the same is to be computed again.
identity    a rule that changes no bit, beside the signs of zeros: x*1, x+0, --x, arithmetic on constants.

``simplified`` goes by the identities alone, and computes nothing twice. What is free in a reverse sweep only must not
be done to the ops of a forward run. ``pruned`` drops what nobody needs; effects and guards stay.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Hashable, Iterable, MutableMapping
from typing import Any

import numpy as np

from ..rules.zeros import product
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.outline import Memos
from ..tracer.tape import FloatOp, Op, Tape, append, ops_in, substitute
from .equal import EXACT, key_of, plainer, same_type
from .kernels import hashable, static

NUMBERS = (int, float)


class Rewriting:
    """One pass over a tape; ``out`` is the tape that it makes."""

    def __init__(self, tape: Tape, keep: Iterable[Op]) -> None:
        self.tape = tape
        self.out = tape.like()
        self.fixed = set(keep)
        self.made: dict[Op, Any] = {}  # what has the value of an op of the old tape
        self.known: MutableMapping[Hashable, Op] = {}

    def run(self) -> Tape:
        fixed, started = self.fixed, False
        for op in self.tape.ops:
            if op.kind == "call" and op not in fixed:
                started = True
                self.step(op)
                continue
            if started and op.args:
                op.args = substitute(op.args, self.value)
            self.out.ops.append(op)
            if op.kind == "call":
                self.remember(op)
        self.finish()
        return self.out

    def remember(self, op: Op) -> None:
        """Note what a fixed op computes."""
        key = key_of(op.fn, op.args, op.kwargs)
        if key is not None:
            self.known.setdefault(key, op)

    def value(self, op: Op) -> Any:
        """What has the value of an op of the old tape."""
        return self.made.get(op, op)

    def step(self, op: Op) -> None:
        """Find what stands for an op."""
        args, kwargs = substitute(op.args, self.value), substitute(op.kwargs, self.value)
        self.made[op] = self.literal(op, args, kwargs)

    def literal(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What an op comes down to by the identities, or one that computes the same, or itself."""
        fn, args = plainer(op.fn, args)
        found = identity(op, fn, args) if not kwargs else None
        if found is not None:
            return found[0]
        key = key_of(fn, args, kwargs, EXACT)
        known = self.known.get(key) if key is not None else None
        if known is not None and same_type(known, op):
            return known
        if not kwargs and fn is op.fn and all(map(operator.is_, args, op.args)):
            new = op
            self.out.ops.append(op)
        else:
            new = append(
                self.out, fn, args, kwargs, self.computed_by(op, fn, args, kwargs), op.site
            )
            if self.out.outline is not None:
                self.out.outline.replace(op, new)
        if key is not None:
            self.known[key] = new
        return new

    def computed_by(self, op: Op, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value of what stands for an op: the same to the bit."""
        return op.value

    def finish(self) -> None:
        self.out.result = substitute(self.tape.result, self.value)


class InPasses(Rewriting):
    """One pass over a tape with an outline, to be read: each pass of a loop does its own part."""

    def __init__(self, tape: Tape, keep: Iterable[Op]) -> None:
        super().__init__(tape, keep)
        self.memos = Memos(tape.outline)

    def remember(self, op: Op) -> None:
        self.known = self.memos.at(op)
        super().remember(op)

    def step(self, op: Op) -> None:
        self.known = self.memos.at(op)
        super().step(op)


def simplified(tape: Tape, keep: Iterable[Op] = ()) -> Tape:
    """The tape with the identities applied to every op that is not in ``keep`` (the ops of the forward run)."""
    return (Rewriting if tape.outline is None else InPasses)(tape, keep).run()


# --------------------------------------------------------------------------------------------- the identities

Identity = Callable[[Op, Any], tuple[Any] | None]
IDENTITIES: dict[Any, Identity] = {}


def identity(op: Op, fn: Any, args: tuple[Any, ...]) -> tuple[Any] | None:
    """What an op comes down to that calls ``fn`` with these operands, or None."""
    if is_one_of(type(op.value), NUMBERS) and static(args):
        return (op.value,)
    rule = IDENTITIES.get(fn) if hashable(fn) else None
    return rule(op, args) if rule is not None and args else None


def neutral(*fns: Any, number: int, left: bool) -> None:
    """Enter functions that change nothing if their second operand, or on the ``left`` their first, is a number."""

    def rule(op: Op, args: Any) -> tuple[Any] | None:
        if len(args) == 2:
            x, y = args
            if is_one_of(type(y), NUMBERS) and y == number and same_type(x, op):
                return (x,)
            if left and is_one_of(type(x), NUMBERS) and x == number and same_type(y, op):
                return (y,)
        return None

    IDENTITIES.update(dict.fromkeys(fns, rule))


neutral(operator.mul, np.multiply, product, number=1, left=True)
neutral(operator.truediv, operator.pow, number=1, left=False)
neutral(operator.add, np.add, number=0, left=True)
neutral(operator.sub, number=0, left=False)


def undone(op: Op, args: Any) -> tuple[Any] | None:
    """What undoes itself when it is done twice, with the same options."""
    before = args[0]
    if not isinstance(before, Op):
        return None
    if op.fn is np.conjugate and not np.iscomplexobj(before.value) and same_type(before, op):
        return (before,) if len(args) == 1 else None
    same = before.fn is op.fn and before.args[1:] == args[1:] and not before.kwargs
    return (before.args[0],) if same and isinstance(before.args[0], Op) else None


IDENTITIES.update(dict.fromkeys((np.conjugate, np.swapaxes, operator.neg, np.negative), undone))


def pruned(tape: Tape, keep_guards: bool = False, stay: Collection[Op] = ()) -> Tape:
    """The tape without the calls that neither its result nor an effect or guard needs."""
    needed: set[Any] = {*ops_in(tape.result), *stay}
    kept: list[Op] = []
    for op in reversed(tape.ops):
        stays = op.kind == "input" or op.kind == "effect" or (op.kind == "guard" and keep_guards)
        if stays or op in needed:
            kept.append(op)
            needed.update(op.args if type(op) is FloatOp else op.operands())
    out = tape.like()
    out.ops = kept[::-1]
    out.result = tape.result
    return out
