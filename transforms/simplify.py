"""Simplify and prune: a tape that computes the same with less.

``simplified`` applies algebra that is free in a reverse sweep only (x*1, x+0, --x, common subexpressions): it must
not be applied to the ops of a forward run. ``pruned`` drops what nobody needs; effects and guards stay.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Hashable, Iterable
from typing import Any

import numpy as np

from ..rules import registry
from ..rules.broadcasting import cast, expand
from ..rules.mutation import scatter, scatter_add
from ..rules.zeros import product
from ..tracer.kinds import attribute, is_one_of, isinstance
from ..tracer.tape import Op, Tape, append, element, ops_in, substitute

NUMBERS = (int, float)
# What may be computed once for all that need it, beside elementwise functions: see `is_shared`.
SHARED = frozenset(
    (
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow),
        *(operator.gt, operator.lt, operator.ge, operator.le, operator.eq, operator.ne),
        *(operator.and_, operator.or_, operator.invert, operator.getitem, element, np.sum),
        *(operator.matmul, np.matmul, np.dot, np.array, np.eye, np.full, np.arange, np.where),
        *(np.reshape, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.tril, np.triu),
        *(cast, expand, scatter, scatter_add, float, int, np.float64, max, min),
    )
)


# What undoes itself when it is done twice, with the same options.
INVOLUTIONS = (np.conjugate, np.swapaxes, operator.neg, np.negative)


def simplified(tape: Tape, keep: Iterable[Op] = ()) -> Tape:
    """The tape with algebra applied to every op that is not in ``keep`` (the ops of the forward run)."""
    fixed = set(keep)
    out = tape.like()
    better: dict[Op, Any] = {}
    seen: dict[Hashable, Op] = {}

    def now(op: Op) -> Any:
        return better.get(op, op)

    for op in tape.ops:
        if op.kind == "input":
            out.ops.append(op)
            continue
        args = substitute(op.args, now)
        if op in fixed or op.kind != "call":
            if any(a is not b for a, b in zip(args, op.args, strict=True)):
                op.args = args
            out.ops.append(op)
            key = share_key(op.fn, args)
            if key is not None:
                seen.setdefault(key, op)
            continue
        value = algebra(op.fn, args, op) if not op.kwargs else None
        if value is not None:
            better[op] = value[0]
            continue
        key = share_key(op.fn, args) if not op.kwargs else None
        if key is not None and key in seen:
            better[op] = seen[key]
            continue
        changed = any(a is not b for a, b in zip(args, op.args, strict=True))
        kwargs = substitute(op.kwargs, now) if op.kwargs else {}
        if changed or op.kwargs:
            new = append(out, op.fn, args, kwargs, op.value, op.site)
            better[op] = new
            if out.outline is not None:
                out.outline.replace(op, new)
        else:
            out.ops.append(op)
            new = op
        if key is not None:
            seen[key] = new
    out.result = substitute(tape.result, now)
    return out


def is_shared(fn: Any) -> bool:
    """Whether two calls of a function may be one.

    It is in the list, or its rule says that it is elementwise, or it finds out something for the rules.
    """
    if fn in SHARED:
        return True
    rule = registry.rules.get(fn)
    if rule is None:
        return False
    if rule.kind == registry.NONDIFF and str(attribute(fn, "__module__", "")).startswith(RULES):
        return True
    return rule.partials is not None or isinstance(fn, np.ufunc)


RULES = f"{registry.__package__}."


def share_key(fn: Any, args: Any) -> Hashable | None:
    """A key by which two equal computations are recognised."""
    try:
        if not is_shared(fn):
            return None
        key = fn, part_key(args)
        hash(key)
    except TypeError:
        return None
    return key


def part_key(x: Any) -> Hashable:
    """A key for an argument: -0.0 is told from 0.0, and a slice, which has no hash before CPython 3.12, gets one."""
    if isinstance(x, Op):
        return id(x)
    if type(x) is slice:
        return slice, part_key((x.start, x.stop, x.step))
    if type(x) is tuple or type(x) is list:
        return type(x), tuple([part_key(y) for y in x])
    return type(x), repr(x) if type(x) is float else x


def algebra(fn: Any, args: Any, op: Op) -> tuple[Any] | None:
    """What an op in a reverse sweep comes down to, or None."""
    if is_one_of(type(op.value), NUMBERS) and not any(True for _ in ops_in(args)):
        return (op.value,)
    if fn is np.conjugate and len(args) == 1 and isinstance(args[0], Op):
        if not np.iscomplexobj(args[0].value) and same_type(args[0], op):
            return (args[0],)
    if any(fn is x for x in INVOLUTIONS) and args and isinstance(args[0], Op):
        before = args[0]
        if before.fn is fn and before.args[1:] == args[1:] and isinstance(before.args[0], Op):
            return (before.args[0],) if not before.kwargs else None
    if len(args) != 2:
        return None
    x, y = args
    if (
        is_one_of(type(x), NUMBERS)
        and is_one_of(type(y), NUMBERS)
        and is_one_of(type(op.value), NUMBERS)
    ):
        return (op.value,)
    if fn is operator.mul or fn is np.multiply or fn is product:
        if is_one_of(type(y), NUMBERS) and y == 1 and same_type(x, op):
            return (x,)
        if is_one_of(type(x), NUMBERS) and x == 1 and same_type(y, op):
            return (y,)
    if (
        (fn is operator.truediv or fn is operator.pow)
        and is_one_of(type(y), NUMBERS)
        and y == 1
        and same_type(x, op)
    ):
        return (x,)
    if fn is operator.add or fn is np.add:
        if is_one_of(type(y), NUMBERS) and y == 0 and same_type(x, op):
            return (x,)
        if is_one_of(type(x), NUMBERS) and x == 0 and same_type(y, op):
            return (y,)
    if fn is operator.sub and is_one_of(type(y), NUMBERS) and y == 0 and same_type(x, op):
        return (x,)
    return None


def same_type(x: Any, op: Op) -> bool:
    """Whether a variable may stand for an op: type, dtype and shape are the same."""
    value = x.value if isinstance(x, Op) else x
    if type(value) is not type(op.value):
        return False
    return not isinstance(value, np.ndarray) or (
        value.dtype == op.value.dtype and value.shape == op.value.shape
    )


def pruned(tape: Tape, keep_guards: bool = False, stay: Collection[Op] = ()) -> Tape:
    """The tape without the calls that neither its result nor an effect or guard needs."""
    needed = {*ops_in(tape.result), *stay}
    kept: list[Op] = []
    for op in reversed(tape.ops):
        stays = op.kind == "input" or op.kind == "effect" or (op.kind == "guard" and keep_guards)
        if stays or op in needed:
            kept.append(op)
            needed.update(op.operands())
    out = tape.like()
    out.ops = kept[::-1]
    out.result = tape.result
    return out
