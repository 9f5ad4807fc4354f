"""Shapes that the data decide: what is made of one is a constant on the tape, which holds for that shape alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules.python_builtins import pick
from ..tracer.kinds import attribute, isinstance
from ..tracer.loops import Carry
from ..tracer.tape import FloatOp, Op, element, fn_name
from .equal import plain
from .kernels import SAFE, is_steady, may_raise
from .loops import LoopFunction

# Whose results are complex or real as the data decide, and have shapes that follow from those of the operands, but for
# the residuals of dependent columns.
LINEAR_ALGEBRA = ("numpy.linalg", "scipy.linalg")
RESIDUALS = ("lstsq",)


def has_free_shape(op: Op) -> bool:
    """Whether an op gives arrays whose shapes do not follow from those of its operands, as ``x[x > 0]`` does."""
    value = op.value
    if op.kind != "call" or op.fn is element or not isinstance(value, (np.ndarray, tuple)):
        return False
    if str(attribute(op.fn, "__module__")).startswith(LINEAR_ALGEBRA):
        return attribute(op.fn, "__name__") in RESIDUALS
    if op.fn is pick:
        return len({np.shape(plain(x)) for x in op.args[0]}) > 1
    arrays = isinstance(value, np.ndarray) or any(isinstance(x, np.ndarray) for x in value)
    return arrays and not is_steady(op)


def may_stop(op: Op) -> bool:
    """Whether an op of a forward run tells that a tape does not hold: it may raise, or give another shape.

    It stays, needed or not: where it raises, so does the function, or goes another way.
    """
    if type(op) is FloatOp:
        return op.fn not in SAFE
    if op.kind != "call" or op.fn is element or isinstance(op.fn, Carry):
        return False
    if type(op.fn) is LoopFunction or str(attribute(op.fn, "__module__")).startswith(
        LINEAR_ALGEBRA
    ):
        return True
    return not is_steady(op) or may_raise(op)


def shapes_of(x: Any) -> Any:
    """The shape of an array, or those of several; None for what has none."""
    if isinstance(x, tuple):
        return [shapes_of(y) for y in x]
    return x.shape if isinstance(x, np.ndarray) else None


def shape_in_words(op: Op) -> str:
    """Where an array of a free shape was made, and the shape that it had."""
    place = f"{op.site}: " if op.site.filename else ""
    return (
        f"{place}what {fn_name(op.fn)} gives had the shape {shapes_of(op.value)} in the traced run"
    )
