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
from ...tracer.active import active
from ...tracer.kinds import is_one_of
from ...tracer.places import called_from, is_library
from ...tracer.structure import Leaf
from ...tracer.tape import Op, Signature, Site, Tape, type_name
from ..columns import Column
from ..reverse import Numeric, Parts, dependents, run_steps


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


class Callers:
    """The lines of the user's that led to the libraries in which operations lie; noted while a run goes on."""

    def __init__(self) -> None:
        self.known: dict[int, Site] = {}  # by the number of the op that comes next

    def note(self, site: Site) -> Site:
        """The line of the user's that an operation at a place is about to be done for."""
        caller = called_from(site)
        if caller is None:
            return site
        self.known[len(active.tracer.tape.ops)] = caller
        return caller

    def of(self, op: Op) -> Site:
        """The line of the user's that an op comes from; a decision has that of what was decided on."""
        if not is_library(op.site.filename):
            return op.site
        return self.by_op.get(op.args[0] if op.kind == "guard" else op, op.site)

    def close(self, tape: Tape) -> None:
        """The run has ended."""
        ops = tape.ops
        self.by_op = {ops[i]: site for i, site in self.known.items() if i < len(ops)}


def one(leaf: Leaf) -> Any:
    """The cotangent 1, or ones, of a result."""
    value = leaf.value
    return np.ones_like(value)[()] if isinstance(value, (np.ndarray, np.generic)) else 1.0


def kept(d: Any) -> Any:
    """A cotangent as it is now: the sweep may write into its arrays."""
    return d.copy() if type(d) is np.ndarray else d


def numbers_in(value: Any) -> Iterator[Any]:
    """The floating-point and complex numbers and arrays in a value, a cotangent, or a nested argument."""
    if isinstance(value, Parts):
        yield from numbers_in([value.whole, *value.parts])
    elif isinstance(value, (list, tuple, Column)):
        for x in value:
            yield from numbers_in(x)
    elif isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind in "fc":
            yield value
    elif is_one_of(type(value), (float, complex)):
        yield value


def is_finite(value: Any) -> bool:
    """Whether no NaN and no infinity is in a value."""
    return all(np.isfinite(x).all() for x in numbers_in(value))


def size_of(value: Any) -> float:
    """The largest absolute value of the numbers in a value; 0 where there are none."""
    return max((float(np.max(np.abs(x), initial=0.0)) for x in numbers_in(value)), default=0.0)


def summary(value: Any) -> str:
    """A value in a few words: a number as it is, of an array its type, and what is remarkable in it."""
    if isinstance(value, Parts):
        return "(" + ", ".join("0" if x is None else summary(x) for x in value.parts) + ")"
    if isinstance(value, np.ndarray) and value.size > 6:
        if value.dtype.kind not in "fc":
            return type_name(value)
        counts = {
            "NaN": np.isnan(value),
            "infinite": np.isinf(value),
            "zero": value == 0,
        }
        told = [f"{int(x.sum())} {name}" for name, x in counts.items() if x.any()]
        plain = value[np.isfinite(value)]
        if plain.size and value.dtype.kind == "f":
            told.insert(0, f"{plain.min():.4g} to {plain.max():.4g}")
        return f"{type_name(value)} ({', '.join(told)})"
    if isinstance(value, np.ndarray):
        return f"{type_name(value)} {np.array2string(value, precision=4)}".replace("\n", "")
    if isinstance(value, (list, tuple)) and len(value) > 6:
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(summary, value))})"
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    if isinstance(value, (int, complex, str, np.generic, bool, type(None))):
        return str(value)
    return getattr(value, "__name__", type(value).__name__)
