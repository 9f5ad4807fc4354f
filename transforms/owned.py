"""Which of the arrays that a loop carries lie in memory of its own, so that its iterations may write into them.

Words
-----
slot     the place of a carried value among all that an iteration hands on.
owned    a slot that holds, whenever an iteration begins, an array that nothing else refers to. The first iteration
         gets a copy for it, or an array that nobody needs any more.
handed   what an iteration leaves behind besides: what it collects, and what it hands on in other slots.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from ..rules.mutation import scatter_add, setitem
from ..tracer.kinds import isinstance
from ..tracer.tape import Op, element, ops_in
from .kernels import is_array, is_fresh

# Of ``loops``, which imports this module.
Family = Any
LoopFunction = Any
Variant = Any
WRITERS = frozenset((setitem, scatter_add))


def owned_slots(loop: LoopFunction, asked: Collection[int] | None = None) -> frozenset[int]:
    """The slots of a loop that are owned, if only the results ``asked`` for are made (all of them)."""
    family = loop.family
    collected = [
        items
        for i, (_, items) in enumerate(family.collected[: loop.size])
        if asked is None or family.count + i in asked
    ]
    slots = range(family.count)
    return frozenset(
        j
        for j in slots
        if all(is_owned(v, j, collected) for v in family.variants) and is_worth_it(family, j)
    )


def is_worth_it(family: Family, j: int) -> bool:
    """Whether iterations write into the array: the sums of a reverse, and what the program itself writes to."""
    if family.told:
        return True
    return any(type(x) is Op and x.fn in WRITERS for x in (v.following[j] for v in family.variants))


def is_owned(v: Variant, j: int, collected: Iterable[Any]) -> bool:
    """Whether a variant hands on an array of the same kind, in memory that nothing else lies in."""
    start, handed_on = v.carried[j], v.following[j]
    if not is_array(start) or not start.value.ndim or not is_array(handed_on):
        return False
    kinds = {(x.value.dtype, x.value.shape) for x in (start, handed_on)}
    if len(kinds) > 1 or not (handed_on is start or is_anew(handed_on)):
        return False
    handed = [x for k, x in enumerate(v.following) if k != j]
    handed += [x for items in collected for x in items.values()]
    return handed_on not in sharers(ops_in(handed))


def is_anew(op: Op) -> bool:
    """Whether a value lies in memory that was made for it, or that nothing else needed any more."""
    if op.fn is element and hasattr(op.args[0].fn, "family"):
        inner = op.args[0].fn
        return op.args[1] in owned_slots(inner)
    return is_fresh(op)


def sharers(ops: Iterable[Op]) -> set[Op]:
    """Some ops and all in whose memory their values may lie."""
    found: set[Op] = set()
    todo = list(ops)
    while todo:
        op = todo.pop()
        if op in found or isinstance(op.value, (float, int, complex, np.generic)):
            continue
        found.add(op)
        if not is_anew(op):
            todo += op.operands()
    return found
