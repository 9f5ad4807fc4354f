"""A run without its values: what all calls that a program answers have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tracer.kinds import isinstance
from ..tracer.reads import Reads
from ..tracer.run import Run
from ..tracer.structure import Leaf, Tree, mapped, on_tape
from ..tracer.tape import Input, Op, Tape, copy_of
from ..tracer.traits import lasting


def copied(done: Run, value: Callable[[Op, Op], Any]) -> tuple[Run, dict[Op, Op]]:
    """A copy of a run in which an op has the value that ``value(old, new)`` gives, and the new ops by the old ones."""
    result = Run(Tape(done.tape.name, done.tape.site))
    result.names, result.fixed = done.names, lasting(done.fixed)
    result.tape.hold_as(done.tape)
    copies: dict[Op, Op] = {}

    def leaf(x: Leaf) -> Leaf:
        op = None if x.op is None else copies[x.op]
        return Leaf(op, stub(x.value) if op is None else op.value)

    for op in done.tape.ops:
        new = copies[op] = copy_of(op, result.tape, copies)
        new.value = value(op, new)
        if isinstance(new, Input):
            new.place = None  # which holds what stood there
        result.tape.ops.append(new)
        if op in done.tape.callers:
            result.tape.callers[new] = done.tape.callers[op]

    if done.tape.outline is not None:
        result.tape.outline = done.tape.outline.copied(result.tape, copies)

    def tree_of(tree: Tree) -> Tree:
        return mapped(tree, leaf, copies.__getitem__)

    result.args = [tree_of(tree) for tree in done.args]
    result.kwargs = {k: tree_of(tree) for k, tree in done.kwargs.items()}
    result.result = tree_of(done.result)
    result.tape.result = on_tape(result.result)
    return result, copies


def own_copy(done: Run, reads: Reads | None) -> Run:
    """A run for the caller to keep; the loops of the other will be rolled, and its arguments let go."""
    if reads is None:
        return done
    known = set(done.tape.ops)
    if any(x not in known for op in done.tape.ops for x in op.operands()):
        reads.problem("the pullback of another run is called with traced values")
        return done
    own = copied(done, lambda old, new: old.value)[0]
    own.fixed = done.fixed
    return own


def stub(value: Any) -> Any:
    """A value by its type alone, where it is an array."""
    if isinstance(value, np.ndarray) and value.size > 1:
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    if isinstance(value, (tuple, list)) and any(isinstance(x, np.ndarray) for x in value):
        parts = [stub(x) for x in value]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    return value
