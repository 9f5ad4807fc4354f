"""The forward sweep: tangents flow along the tape, from its inputs to its results.

Words
-----
steps     the ops that depend on the variables with a tangent, and that a result depends on.
tangents  what has been found so far, by op; a missing one is zero, and that of a tuple is a tuple of tangents.

Tangents are ops on a tape, so the sweep is a program that can be differentiated again. They belong to one sweep and
are looked up by variable: a sweep within another one cannot take the other's for its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..rules import registry
from ..tracer.arrays import append_saved
from ..tracer.entrances import entrance
from ..tracer.errors import NoRuleError, TraceError
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.lifetimes import unlink
from ..tracer.loops import Carry, Pick, Put
from ..tracer.outline import Mirrored
from ..tracer.places import raise_at
from ..tracer.seals import Unfollowed
from ..tracer.structure import is_differentiable
from ..tracer.tape import (
    FloatOp,
    Input,
    Op,
    Site,
    Tape,
    element,
    fn_name,
    free,
    ops_in,
    primal,
    substitute,
    variable,
)
from . import asking
from .expand import REFUSALS, overflowed, refusal
from .pushforward import Pushforward, pushforward_of
from .reverse import (
    Recorded,
    decisions,
    dependents,
    led_by_values,
    looked_at_by,
    must_be_derivable,
    zero,
)
from .shapes import may_stop
from .simplify import pruned, simplified


class Pusher:
    """Carries tangents along ops, and puts what that takes on a tape."""

    def __init__(self, tape: Tape, site: Site, fixed: bool = False) -> None:
        self.tape = tape
        self.site = site
        self.fixed = fixed  # whether the tape is for these values of the variables alone
        self.tangents: dict[Op, Any] = {}
        self.momentary = ""  # the name of a function whose pushforward holds for this run only
        self.decided = ""  # and of one whose rule other values may lead another way
        self.looked: dict[Op, None] = {}  # the integers on whose values the sweep depends
        self.gaps = False  # whether a part of a tangent is missing
        self.recorder = Recorded(tape, site)
        self.recipes: dict[Any, Recipe | None] = {}  # by signature and pattern
        self.still: set[Op] = set()  # what is known to have no tangent

    def at(self, op: Op) -> Any:
        """The tangent of an op while the run goes on, for a rule that runs with it (see ``tracer.directions``)."""
        tangents, still = self.tangents, self.still
        todo = [op]
        with np.errstate(all="ignore"):
            while todo:
                x = todo[-1]
                if x in tangents or x in still:
                    todo.pop()
                    continue
                operands = x.operands() if x.kind == "call" else []
                before = [y for y in operands if y not in tangents and y not in still]
                if before:
                    todo += before
                    continue
                moves = any(y in tangents for y in operands)
                t = self.push(x) if moves and getattr(x.value, "dtype", None) != bool else None
                if t is None:
                    still.add(x)
                else:
                    tangents[x] = t
        return self.known(op)

    def sweep(self, ops: Iterable[Op], seeds: list[tuple[Op, Any]], results: list[Op]) -> list[Any]:
        """The tangents of ``results``, given those of some variables (``seeds``); None is a zero."""
        tangents = self.tangents
        tangents.update({op: t for op, t in seeds if t is not None})
        steps, _ = dependents(ops, list(tangents))
        op = None
        try:
            with np.errstate(all="ignore"):
                for op in needed(steps, results):
                    t = self.push(op) if op not in tangents else None
                    if t is not None:
                        tangents[op] = t
        except OverflowError as error:
            overflowed(op, error)
        return [self.known(op) for op in results]

    def known(self, op: Op) -> Any:
        t = self.tangents.get(op)
        if isinstance(t, registry.Missing):
            raise NoRuleError(t.why)
        return t

    def push(self, op: Op) -> Any:
        """The tangent of an op."""
        if op.fn is element:
            whole = self.tangents.get(op.args[0])
            return None if whole is None else whole[op.args[1]]
        if is_one_of(type(op.fn), OWN):
            return OWN[type(op.fn)](self, op)
        if self.gaps:
            for x in op.operands():
                self.known(x)
        if type(op) is FloatOp:
            given = [self.tangents.get(x) if isinstance(x, Op) else None for x in op.args]
            if all(t is None or type(primal(t)) is float for t in given):
                key = op.signature, tuple([t is None for t in given])
                if key not in self.recipes:
                    found = None if is_asked_forward(op) else pushforward_of(op, self.tangents)[0]
                    self.recipes[key] = recipe_of(found)
                recipe = self.recipes[key]
                if recipe is not None:
                    return self.follow(recipe, op, given)
        if is_asked_forward(op):
            return asking.push(self, op)
        pushforward, inputs = pushforward_of(op, self.tangents)
        if pushforward is None:
            return None
        if pushforward.momentary:
            self.momentary = fn_name(op.fn)
        if pushforward.decided:
            self.decided = fn_name(op.fn)
        if pushforward.drawn:
            self.looked.update(dict.fromkeys(looked_at_by(pushforward, inputs[1:])))
        try:
            found = replayed(pushforward.tape, inputs, self.tape, op.site)
        except REFUSALS as error:
            raise_at(op.site, refusal(op, error))
        self.gaps |= isinstance(found, tuple) and any(
            isinstance(t, registry.Missing) for t in found
        )
        return found

    def follow(self, recipe: Recipe, op: Op, given: list[Any]) -> Any:
        """Record the pushforward of arithmetic on plain floats."""
        known = [op, *op.args, *[t for t in given if t is not None]]
        for fn, args in recipe.steps:
            operands = tuple([known[i] if i >= 0 else x for i, x in args])
            known.append(self.recorder.arithmetic(fn, operands, op.site))
        place, number = recipe.result
        return known[place] if place >= 0 else number


# Callables that carry tangents along by themselves, by their type: fn(pusher, op) gives the tangent.
OWN: dict[type, Any] = {}


def push_unfollowed(pusher: Pusher, op: Op) -> Any:
    """Nobody knows the derivative by the values behind a thing that C code reads."""
    if any(pusher.tangents.get(x) is not None for x in op.args[1:]):
        raise NoRuleError(op.fn.reason)
    return pusher.tangents.get(op.args[0])


OWN[Unfollowed] = push_unfollowed


def push_carry(pusher: Pusher, op: Op) -> Any:
    """The tangent of what is carried is that of where it comes from."""
    return pusher.tangents.get(op.args[0])


OWN[Carry] = OWN[Pick] = OWN[Put] = push_carry


def is_asked_forward(op: Op) -> bool:
    """Whether an operation has rules that must be run in the sweep, and no other: see `expand.is_asked`."""
    rule = registry.lookup(op.fn)
    if rule is None or rule.pure or rule.function is None:
        return False
    return rule.forward is None or not rule.pure_forward


class Recipe(NamedTuple):
    """A pushforward of arithmetic in short: what is called on what, and which value is the tangent.

    An argument is the place of a value among the op, its operands, their tangents and the earlier steps, or -1 and a
    number.
    """

    steps: list[tuple[Any, list[tuple[int, Any]]]]
    result: tuple[int, Any]


def recipe_of(pushforward: Pushforward | None) -> Recipe | None:
    """The recipe of a pushforward, if it is plain arithmetic."""
    if pushforward is None or pushforward.momentary:
        return None
    places: dict[Op, int] = {x: i for i, x in enumerate(pushforward.inputs)}

    def place(x: Any) -> tuple[int, Any]:
        return (places[x], None) if isinstance(x, Op) else (-1, x)

    steps = []
    for op in pushforward.tape.ops:
        if op.kind == "call":
            if op.kwargs or not all(isinstance(x, (Op, float, int)) for x in op.args):
                return None
            steps.append((op.fn, [place(x) for x in op.args]))
            places[op] = len(places)
    result = pushforward.tape.result
    return Recipe(steps, place(result)) if isinstance(result, (Op, float, int)) else None


def replayed(small: Tape, inputs: list[Any], tape: Tape, site: Site) -> Any:
    """Put the ops of a small tape, with these inputs, on another tape; what its result is there."""
    known: dict[Op, Any] = dict(zip(small.inputs, inputs, strict=True))

    def now(x: Op) -> Any:
        return known[x]

    for x in small.ops:
        if x.kind == "call":
            args, kwargs = substitute(x.args, now), substitute(x.kwargs, now)
            value = x.fn(*primal(args), **primal(kwargs))
            known[x] = append_saved(tape, x.fn, args, kwargs, value, site)
    return substitute(small.result, now)


@entrance
class Shown(Pusher):
    """A sweep that tells, to print it by, which line of the run each of its own pushes."""

    def __init__(self, tape: Tape, site: Site, outline: Mirrored) -> None:
        super().__init__(tape, site)
        self.outline = tape.outline = outline
        self.count = len(tape.ops)

    def push(self, op: Op) -> Any:
        t = super().push(op)
        new = self.tape.ops[self.count :]
        for x in new:
            if x.site is op.site:
                x.site = op.site.plain  # it is not what the user's variable holds
        self.outline.place(new, op, self.tangents, {})
        self.count += len(new)
        name = variable(op)
        if name is not None and new and t is new[-1]:
            self.outline.names.setdefault(t, f"d{name}")
        return t


@entrance
def forward(tape: Tape, wrt: str | None = None, value: bool = True) -> Tape:
    """The tape that computes the value of ``tape`` and its derivative along a direction in the space of its inputs.

    Its result is ``(value, tangent)``, or without ``value`` the tangent alone. The tangents of the inputs are inputs
    named ``d`` and the input's name, behind the others: it is called with the arguments, and then with a tangent for
    each, of the same structure. With ``wrt``, the name of an input, there is that one alone, and it is 1 if it is a
    number.

    >>> from wengert import forward, trace
    >>> tape = trace(lambda m, x, b: m * x + b, 2.0, 3.0, 1.0)
    >>> print(forward(tape, value=False).source("slope"), end="")  # doctest: +ELLIPSIS
    def slope(m, x, b, dm, dx, db):
        \"\"\"tangent of <lambda> (...), traced for m: float, ...\"\"\"
        t7 = dm * x
        t8 = dx * m
        t9 = t7 + t8
        t10 = t9 + db
        return t10
    """
    from .tools.signature import with_tangents

    must_be_derivable(tape, "forward")
    out = Tape(f"tangent of {tape.name}", tape.site)
    inputs = [x for x in tape.inputs if x.role == "argument" and is_differentiable(x.value)]
    if wrt is not None and wrt not in [x.name for x in inputs]:
        raise TraceError(
            f"{tape.name} has no input named {wrt!r} with a derivative\nit has {[x.name for x in inputs]}"
        )
    seeds: list[tuple[Op, Any]] = []
    taken = tape.named()
    for x in inputs:
        if wrt is None or x.name == wrt:
            one = (
                np.ones_like(x.value)[()] if isinstance(x.value, (np.ndarray, np.generic)) else 1.0
            )
            if wrt is None or np.ndim(x.value):
                seeds.append((x, Input(free(f"d{x.name}", taken), one, out)))
            else:
                seeds.append((x, one))
    given = [t for _, t in seeds if isinstance(t, Input)]
    first = next((i for i, op in enumerate(tape.ops) if op.kind != "input"), len(tape.ops))
    out.options = tape.options
    out.ops = [*tape.ops[:first], *given, *tape.ops[first:]]
    results = list(dict.fromkeys(ops_in(tape.result)))
    pusher = Shown(out, tape.site, Mirrored(out, tape.outline))
    found = dict(zip(results, pusher.sweep(tape.ops, seeds, results), strict=True))
    out.ops += decisions(pusher.looked, out)
    out.hold_as(tape, led_by_values(pusher.decided))

    def tangent(x: Any) -> Any:
        """The tangent of a result; None where it has none."""
        if isinstance(x, (tuple, list)):
            parts = [tangent(part) for part in x]
            return x._make(parts) if hasattr(x, "_make") else type(x)(parts)
        if isinstance(x, dict):
            return {key: tangent(part) for key, part in x.items()}
        t, plain = (found[x], x.value) if isinstance(x, Op) else (None, x)
        return zero(plain) if t is None and is_differentiable(plain) else t

    tangents = tangent(tape.result)
    unlink(tangent)
    out.result = (tape.result, tangents) if value else tangents
    stay = [*filter(may_stop, tape.ops)]
    program = pruned(simplified(out, keep=tape.ops), keep_guards=True, stay=stay)
    directions = {x: t for x, t in seeds if isinstance(t, Input)}
    program.parameters = with_tangents(tape, directions) if wrt is None else tape.parameters
    return program


def needed(steps: list[Op], results: Iterable[Op]) -> list[Op]:
    """The steps that the results depend on by way of a derivative."""
    wanted = set(results)
    kept: list[Op] = []
    for op in reversed(steps):
        if op in wanted:
            rule = registry.lookup(op.fn)
            if rule is None or rule.kind not in (registry.NONDIFF, registry.QUERY):
                kept.append(op)
                given = [op.args[0], *op.args[2:]] if registry.by_matrix(op.fn) else None
                wanted.update(op.operands() if given is None else ops_in(given))
    return kept[::-1]
