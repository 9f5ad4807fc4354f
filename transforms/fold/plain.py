"""Plain arithmetic in the reverse part of a program that calls functions of arrays (see ``rescue`` for the words).

What the rules multiply and divide with are variables there. The reverse part runs with the plain operators first, and
again with the functions in which zero wins, if a gradient is not finite then. It does so where NaN stays NaN on the way
to the gradients, or is dropped as if it had been zero; elsewhere it runs with those functions alone.
"""

from __future__ import annotations

import cmath
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...rules.zeros import product, quotient
from ...tracer.tape import Op, Tape
from ..rescue import TRANSPARENT, swallowed

PLAIN: dict[Any, Callable[..., Any]] = {product: operator.mul, quotient: operator.truediv}


def persists(tape: Tape, given: Op) -> bool:
    """Whether what is not finite in ``given`` stays so in the ops of a tape."""
    flowing = {given}
    for op in tape.ops:
        if op.kind != "input" and not flowing.isdisjoint(op.operands()):
            flowing.add(op)
    ops = [op for op in tape.ops if op in flowing and op is not given]
    return flowing.isdisjoint(swallowed(ops, ()))


def is_transparent(fn: Any) -> bool:
    """Whether that holds for the pullback of a function, which is linear as the function is."""
    try:
        return fn in TRANSPARENT
    except TypeError:  # a callable that is not hashable
        return False


def finite(*gradients: Any) -> bool:
    """Whether all gradients that there are are finite; one of very large numbers may be taken for one that is not."""
    for d in gradients:
        if d is not None and not cmath.isfinite(np.vdot(d, d) if type(d) is np.ndarray else d):
            return False
    return True
