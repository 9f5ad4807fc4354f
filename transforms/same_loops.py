"""Which loop functions are the same: two runs of a function make a loop function each of the same loop.

Words
-----
twin     the op of one of two loops that corresponds to an op of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tracer.kinds import isinstance
from ..tracer.tape import Op
from .columns import Column
from .loops import EXIT, Choice, Family, LoopFunction, Variant

Alike = Callable[[Any, Any, dict[Op, Op]], bool]


def same_loops(a: LoopFunction, b: LoopFunction, alike: Alike) -> bool:
    """Whether two loop functions compute and collect the same; ``alike`` compares arguments, but for twins."""
    f, g = a.family, b.family
    if a.size != b.size or shape_of(f) != shape_of(g):
        return False
    twins: dict[Op, Op] = {}
    return (
        all(same_variant(v, w, twins, alike) for v, w in zip(f.variants, g.variants, strict=True))
        and same_choice(f.tree, g.tree, twins, alike)
        and alike(f.exits, g.exits, twins)
        and alike([items for _, items in f.collected], [items for _, items in g.collected], twins)
    )


def shape_of(f: Family) -> tuple[Any, ...]:
    collected = [of for of, _ in f.collected]
    return f.form, f.capped, f.descending, f.count, len(f.variants), f.columns, collected


def same_variant(v: Variant, w: Variant, twins: dict[Op, Op], alike: Alike) -> bool:
    if len(v.invariants) != len(w.invariants) or [*v.columns] != [*w.columns]:
        return False
    if len(v.ops) != len(w.ops):
        return False
    given = zip(
        (*v.carried, *v.invariants, *v.columns.values()),
        (*w.carried, *w.invariants, *w.columns.values()),
        strict=True,
    )
    for x, y in given:
        if not same_kind(x.value, y.value) or twins.setdefault(x, y) is not y:
            return False
    for x, y in zip(v.ops, w.ops, strict=True):
        if x in twins:
            if twins[x] is not y:
                return False
            continue
        if not same_op(x, y, twins, alike):
            return False
        twins[x] = y
    return alike(v.following, w.following, twins)


def same_op(x: Op, y: Op, twins: dict[Op, Op], alike: Alike) -> bool:
    if type(x) is not type(y) or not same_kind(x.value, y.value):
        return False
    return (
        alike(x.fn, y.fn, twins)
        and alike(x.args, y.args, twins)
        and alike(x.kwargs, y.kwargs, twins)
    )


def same_choice(c: Choice | None, d: Choice | None, twins: dict[Op, Op], alike: Alike) -> bool:
    """Whether two trees of choices decide the same in the same order."""
    if c is None or d is None:
        return c is d
    if c.variant != d.variant or len(c.branches) != len(d.branches):
        return False
    if not alike(c.ops, d.ops, twins) or not alike(c.subject, d.subject, twins):
        return False
    for (x, then), (y, other) in zip(c.branches, d.branches, strict=True):
        if not alike(x, y, twins) or (then == EXIT) != (other == EXIT):
            return False
        if then != EXIT and not same_choice(then, other, twins, alike):
            return False
    return True


def same_kind(a: Any, b: Any) -> bool:
    """Whether two values are alike in all that an assembly looks at."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
    if isinstance(a, Column):  # however often its loop has run
        return same_kind([*a[:1]], [*b[:1]])
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same_kind, a, b))
    return True
