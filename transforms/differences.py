"""Finite differences: derivatives of functions of one number, for checks and for callables without a rule.

Words
-----
step      how far from the point the function is evaluated.
tableau   central differences at steps h, h/2, h/4 …, extrapolated to the step 0: each column cancels one more even
          power of h.
doubt     an estimate of the error of an entry: how far its neighbours are from it, and what rounding may do to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

ROWS = 9  # of a tableau: the last step is 2**-8 of the first
NEAR = 2.0**-3  # what is nearer to zero than this may have its singularity there


class Slope(NamedTuple):
    """A derivative, and what it is in doubt by."""

    value: float
    doubt: float


def derivative(g: Callable[[float], float], x: float, eps: float = 2.0**-52) -> Slope:
    """The derivative of ``g(t)``, a function near ``x + t``, at t = 0: central differences, extrapolated.

    ``eps`` is the rounding error of ``g``. Where ``g`` raises an arithmetic or a value error, or is not finite, the
    step is too long; the derivative is NaN if no step will do. See C. J. F. Ridders, Accurate computation of F'(x) and
    F'(x)F''(x), Advances in Engineering Software 4 (1982) 75.
    """
    firsts = [max(NEAR, min(abs(x), 1.0), 2.0**-12 * abs(x))]
    if 0 < abs(x) < NEAR:
        firsts.append(abs(x))
    return min((tableau(g, first / 16, eps) for first in firsts), key=lambda found: found.doubt)


def tableau(g: Callable[[float], float], h: float, eps: float) -> Slope:
    """The best entry of the tableau that begins with the step ``h``."""
    best = Slope(math.nan, math.inf)
    row: list[float] = []
    for _ in range(ROWS):
        try:
            right, left = float(g(h)), float(g(-h))
        except (ArithmeticError, ValueError):
            right = left = math.nan
        rounding = eps * (abs(right) + abs(left)) / h
        if rounding > best.doubt:
            break
        above, row = row, [(right - left) / (2 * h)]
        for order, before in enumerate(above, 1):
            row.append(row[-1] + (row[-1] - before) / (4**order - 1))
            doubt = max(abs(row[-1] - row[-2]), abs(row[-1] - before)) + rounding
            if doubt <= best.doubt:
                best = Slope(row[-1], doubt)
        h /= 2
    return best
