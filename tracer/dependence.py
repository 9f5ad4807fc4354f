"""Dependence: whether a value has a derivative that somebody may ask for.

Words
-----
wanted     an op by which a derivative may be asked for: a number that is an argument or part of one, a variable of an
           inner transform, a number that was read from behind a seal or out of what an argument has captured.
dependent  of an op: it is wanted, or computed from one that is.
constant   of an op: it is not dependent. A number from outside, what a clock says and what is computed from these alone
           may go where a gradient cannot follow, for there is none to lose.

That an op is constant is found out when it matters, and remembered: if it turns out to be wanted after all, it is too
late, and the run must end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..rules import registry
from ..rules.linear import variable
from .errors import TraceError
from .structure import is_differentiable
from .tape import GONE, Input, Op


class Dependence:
    """What a run, and the runs within it, know of which ops are dependent."""

    __slots__ = ("constant", "dependent", "wanted")

    def __init__(self) -> None:
        self.wanted: set[Op] = (
            set()
        )  # but for arguments and variables, which can be told from others
        self.constant: set[Op] = set()
        self.dependent: set[Op] = set()

    def want(self, ops: Iterable[Op]) -> None:
        """Note that derivatives by these ops may be asked for."""
        for op in ops:
            if op in self.constant:
                name = op.name if isinstance(op, Input) else f"the {op.type} of {op.site}"
                raise TraceError(
                    f"{name} was handed to code that cannot be differentiated, before it was seen to belong to an "
                    "argument, so its gradient would be lost\npass it as an argument of its own"
                )
            self.wanted.add(op)

    def has(self, op: Op) -> bool:
        """Whether an op is dependent."""
        todo, seen = [op], set()
        while todo:
            x = todo.pop()
            if x in seen or x in self.constant:
                continue
            seen.add(x)
            if x in self.dependent or x in self.wanted or is_variable(x):
                self.dependent.add(op)
                return True
            todo += sources(x)
        self.constant |= seen
        return False


def is_variable(op: Op) -> bool:
    """Whether it can be told from an op itself that a derivative by it may be asked for."""
    if isinstance(op, Input):
        return op.role == "argument" and is_differentiable(op.value)
    return op.tape is GONE or (op.fn is variable and may_carry(op.value))


def sources(op: Op) -> list[Op]:
    """The ops on which the derivative of an op depends."""
    if isinstance(op, Input) or not may_carry(op.value):
        return []
    kind = kind_of_rule(op.fn)
    if kind == registry.NONDIFF:
        return []
    found = op.operands()
    if type(op.value) is int and kind is not None:  # d(2 * n)/dn exists, d(round(x))/dx does not
        return [x for x in found if type(x.value) is int]
    return found


def may_carry(value: Any) -> bool:
    """Whether a value has a derivative, or may be made of values, or stand for some, that have one."""
    if isinstance(value, (bool, np.bool_)):
        return False
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind not in "biu"
    return True


def kind_of_rule(fn: Any) -> str | None:
    try:
        rule = registry.rules.get(fn)
    except (TypeError, ValueError):  # not hashable
        return None
    return None if rule is None else rule.kind
