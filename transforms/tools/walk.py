"""The reverse sweep made op by op, for those who want to look at it on the way.

Words
-----
walk    a sweep that stops after each op which has handed its cotangent on.
step    where it stops: the op, and the cotangent that it had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ...rules.registry import rules
from ...tracer.structure import Leaf
from ...tracer.tape import Op, Signature
from ..reverse import Numeric, dependents, run_steps


class Step(NamedTuple):
    """An op that has handed its cotangent on to its operands, and the seconds that it took.

    ``cotangent`` is what it had, and ``handed`` the very object, into which the sweep may have written since.
    """

    op: Op
    cotangent: Any
    handed: Any
    seconds: float


class Walk:
    """A reverse sweep that is made step by step: ``for step in Walk(ops, wrt, seeds)``.

    ``cotangents`` has, by op, what has been accumulated for those that the walk has not come to; at its end these are
    the variables asked for.
    """

    def __init__(self, ops: Iterable[Op], wrt: list[Op], seeds: list[tuple[Op, Any]]) -> None:
        Signature.renew(rules.changes)
        self.steps, self.active = dependents(ops, wrt)
        self.machine = Numeric()
        self.cotangents = self.machine.cotangents
        for op, seed in seeds:
            if seed is not None:
                self.machine.accumulate(op, seed)

    def __iter__(self) -> Iterator[Step]:
        for op in reversed(self.steps):
            handed = self.cotangents.get(op)
            if handed is not None:
                dz = kept(handed)
                with np.errstate(all="ignore"):
                    start = perf_counter()
                    self.hand_on(op)
                    took = perf_counter() - start
                yield Step(op, dz, handed, took)

    def hand_on(self, op: Op) -> None:
        """Let one op hand its cotangent on."""
        run_steps([op], self.active, self.machine)

    def found(self, wrt: list[Op]) -> list[Any]:
        return [self.cotangents.get(op) for op in wrt]


def one(leaf: Leaf) -> Any:
    """The cotangent 1, or ones, of a result."""
    value = leaf.value
    return np.ones_like(value)[()] if isinstance(value, (np.ndarray, np.generic)) else 1.0


def kept(d: Any) -> Any:
    """A cotangent as it is now: the sweep may write into its arrays."""
    return d.copy() if type(d) is np.ndarray else d
