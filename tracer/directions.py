"""Rules for the forward mode that are not pure: they run once a call, for whatever tangents may come.

Words
-----
direction   what stands for the tangents of the operands while such a rule runs: these, where they are known, else ones.
linear      what the rule computes from the directions. It is kept beside the value as a small tape, from the directions
            and what else it takes (``sources``) to the tangent, and carries any tangents forward, or cotangents back.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ..rules.broadcasting import broadcast_like
from ..rules.linear import variable
from ..rules.registry import Rule
from . import meaning
from .box import BOXES
from .errors import NoRuleError
from .kinds import is_one_of, isinstance
from .lifetimes import unlink
from .places import blame
from .record import box, operand
from .session import Tracer
from .structure import is_differentiable
from .tape import Input, Op, Site, Tape, append, copy_of, fn_name, ops_in, primal, type_name


class Linear:
    """The derivative of one call of a primitive, as the callable of an op ``linear(operands…, sources, value)``.

    ``tape`` takes the directions of the operands, then the sources; its result is a tuple of the tangents of the leaves
    of the value, where None is a zero. ``places`` says which of the operands have a direction; the others have none.
    One is ``decided`` whose rule went by directions, and ``guessed`` if these were ones for want of the tangents.
    """

    def __init__(
        self, fn: Any, tape: Tape, places: list[int], decided: bool, guessed: bool
    ) -> None:
        self.fn = fn
        self.tape = tape
        self.places = places
        self.decided = decided
        self.guessed = guessed
        self.transposable: bool | None = None  # which is found out when somebody asks
        self.__name__ = fn_name(fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[-1]

    def __repr__(self) -> str:
        return f"<a call of {self.__name__}>"


def direction(tape: Tape, value: Any, site: Site) -> Op:
    """An op that stands for the tangent of a value."""
    if isinstance(value, np.ndarray):
        one = np.ones(value.shape, value.dtype)
        return append(tape, np.ones, (one.shape, one.dtype), {}, one, site)
    kind = type(value) if isinstance(value, (complex, np.inexact)) else float
    return append(tape, kind, (1.0,), {}, kind(1.0), site)


def known(tracer: Tracer, op: Op, site: Site) -> Op | None:
    """The tangent of an op, if the transform that waits for the call has one already."""
    t = tracer.forward.at(op) if hasattr(tracer.forward, "at") else None
    return None if t is None else append(tracer.tape, variable, (t,), {}, primal(t), site)


def operands_of(rule: Rule, args: Any) -> int:
    """How many of the positional arguments are operands; the others are options."""
    if rule.function is None:
        return len(args)
    parameters = list(inspect.signature(rule.function).parameters.values())
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return len(args)
    return min(len(args), sum(p.default is p.empty for p in parameters))


def called(
    tracer: Tracer, site: Site, fn: Any, rule: Rule, args: Any, kwargs: Any
) -> tuple[Any, Any, dict[Op, Op]] | None:
    """Run a rule: the value and the tangent that it gives, and the directions by operand; None if it declines."""
    count = operands_of(rule, args)
    names = list(inspect.signature(rule.function).parameters) if rule.function is not None else []
    options = {**dict(zip(names[count:], args[count:], strict=False)), **kwargs}
    directions: dict[Op, Op] = {}

    def tangent(x: Any) -> Any:
        if is_one_of(type(x), BOXES) and is_differentiable(x.value):
            op = operand(x, [])
            if op not in directions:
                directions[op] = known(tracer, op, site) or direction(tracer.tape, x.value, site)
            return box(tracer, directions[op], [])
        if is_one_of(type(x), (list, tuple)):
            parts = [tangent(y) for y in x]
            return None if all(t is None for t in parts) else type(x)(parts)
        return None

    primals = tuple(args[:count])
    tangents = tuple([tangent(x) for x in primals])
    unlink(tangent)
    answer = meaning.calls.call(tracer, site, rule.forward, (primals, tangents), options)
    if answer is NotImplemented:
        return None
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise NoRuleError(
            f"{blame(site)}: the frule of {fn_name(fn)} must return (value, tangent)\n"
            "an frule is fn(primals, tangents, **options) -> (value, tangent) (docs/asking.md)"
        )
    return (*answer, directions)


def flattened(tracer: Tracer, fn: Any, site: Site, t: Any, value: Any) -> list[Any]:
    """The tangents of the leaves of a value, each of its kind and dtype; an error if the shape is another."""
    if isinstance(value, (tuple, list, dict)):
        kind = dict if isinstance(value, dict) else (tuple, list)
        if t is not None and (not isinstance(t, kind) or len(t) != len(value)):
            raise misfit(fn, site, t, value)
        keys = value if isinstance(value, dict) else range(len(value))
        parts = [flattened(tracer, fn, site, None if t is None else t[k], value[k]) for k in keys]
        return [x for part in parts for x in part]
    if not is_number(value):
        return []
    if t is None:
        return [None]
    if not is_number(t) or np.shape(plain(t)) != np.shape(plain(value)):
        raise misfit(fn, site, t, value)
    return [meaning.calls.call(tracer, site, broadcast_like, (t, value), {})]


def misfit(fn: Any, site: Site, t: Any, value: Any) -> NoRuleError:
    return NoRuleError(
        f"{blame(site)}: the rule of {fn_name(fn)} failed: its tangent is {type_name(plain(t))}, but the value is "
        f"{type_name(plain(value))}\n"
        "a tangent has the structure and the shapes of the value; None is a zero"
    )


def plain(x: Any) -> Any:
    return x.value if is_one_of(type(x), BOXES) else x


def is_number(x: Any) -> bool:
    """Whether a value may have a derivative, if a rule says so: numbers and arrays, but no bools."""
    x = plain(x)
    if type(x) is np.ndarray or isinstance(x, np.generic):
        return x.dtype.kind in "fciu"
    return is_one_of(type(x), (float, int, complex))


def decides(ops: list[Op], directions: list[Op]) -> bool:
    """Whether a rule goes by the values of directions, or of what it computes from them."""
    moving = set(directions)
    for op in ops:
        if not moving.isdisjoint(op.operands()):
            if op.kind == "guard":
                return True
            moving.add(op)
    return False


def linear_part(
    name: str, site: Site, ops: list[Op], directions: list[Op], result: Any
) -> tuple[Tape, list[Op]]:
    """What is computed from the directions, as a tape of its own, and its sources."""
    moving = dict.fromkeys(directions)
    steps = []
    for op in ops:
        if op.kind == "call" and any(x in moving for x in op.operands()):
            moving[op] = None
            steps.append(op)
    wanted = set(ops_in(result))
    for op in reversed(steps):
        if op in wanted:
            wanted.update(op.operands())
    steps = [op for op in steps if op in wanted]
    sources = list(dict.fromkeys(x for op in steps for x in op.operands() if x not in moving))
    sources += [x for x in dict.fromkeys(ops_in(result)) if x not in moving and x not in sources]
    small = Tape(f"tangent of {name}", site)
    known: dict[Op, Op] = {}
    for i, op in enumerate((*directions, *sources)):
        known[op] = Input(f"x{i}", op.value, small)
        small.ops.append(known[op])
    for op in steps:
        known[op] = copy_of(op, small, known)
        known[op].value = op.value
        small.ops.append(known[op])
    small.result = renamed(result, known)
    return small, sources


def renamed(tree: Any, known: dict[Op, Op]) -> Any:
    if isinstance(tree, tuple):
        return tuple([renamed(x, known) for x in tree])
    return known[tree] if isinstance(tree, Op) else tree
