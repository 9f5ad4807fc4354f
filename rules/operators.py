"""The operators of the module ``operator``, in place or not, on Python numbers and on arrays."""

from __future__ import annotations

import cmath
import math
import operator as op
from typing import Any

import numpy as np

from .broadcasting import is_complex
from .elementwise import elementwise, first, over, second
from .mutation import scatter
from .registry import nondiff, rrule
from .zeros import PLAIN, conj, cotangent_dtype, is_plain, ratio


def sign(x: Any) -> Any:
    """-1, 0 or 1, for a Python number as for an array, NaN for NaN: the slope of ``abs``, zero at its kink."""
    if type(x) in PLAIN:
        return float((x > 0) - (x < 0)) if x == x else x
    return np.sign(x)


nondiff(sign)


def abs_slope(x: Any, z: Any) -> Any:
    """The slope of ``z = abs(x)``, zero at zero."""
    return ratio(conj(x), z) if is_complex(x) else sign(x)


def is_steady_slope(p: Any, y: Any) -> bool:
    """Is ``x ** p`` the power in the slope of ``x ** y`` at any base? These are numbers of Python's."""
    return not complex(p).real < 0 <= complex(y).real


def finite_power(x: Any, p: Any, y: Any) -> Any:
    """``x ** p`` in a slope of ``x ** y``: 0 in the place of what is not finite where that slope is 0.

    It is that of a root, whose ``y`` is positive, at ``x`` = 0, and where ``p`` < 0 that of a power whose ``y`` is a
    whole number from 0 on, in whose slope zero is a factor.
    """
    if type(x) in PLAIN and type(p) in PLAIN and type(y) in PLAIN:
        if is_steady_slope(p, y) or not (x == 0 or y == round(complex(y).real)):
            return x**p
        try:
            z = x**p
        except (OverflowError, ZeroDivisionError):
            return 0.0
        return z if cmath.isfinite(z) else 0.0
    falls = np.less(np.real(p), 0) & np.greater_equal(np.real(y), 0)
    if not falls.any():
        return x**p
    with np.errstate(all="ignore"):
        z = (x + 0.0) ** p  # of integers it would be an error
    falls = falls & (np.equal(x, 0) | np.equal(y, np.rint(np.real(y))))
    return np.where(falls & ~np.isfinite(z), 0, z)[()]


def log_or_zero(x: Any, z: Any) -> Any:
    """The logarithm of the base of a power ``z``: for 0, 0 unless that is infinite; NaN for negative numbers."""
    if type(x) in PLAIN and (x != 0 or type(z) in PLAIN):
        if type(x) is complex:
            return cmath.log(x) if x != 0 else 0j
        return math.log(x) if x > 0 else 0.0 if x == 0 else math.nan
    with np.errstate(all="ignore"):
        return np.where(np.equal(x, 0) & np.isfinite(z), 0, np.log(x))[()]


elementwise(
    finite_power,
    lambda x, p, y, z: p * finite_power(x, p - 1, y),
    lambda x, p, y, z: power_by_exponent(x, p, z),
    None,
)
elementwise(log_or_zero, lambda x, z, log: ratio(1.0, x), None)


def of_numpy(x: Any) -> Any:
    """A real number of NumPy's in the place of one of Python's: their powers are NaN where Python's are complex."""
    return np.positive(float(x)) if is_plain(x) and not is_complex(x) else x


def power_by_base(x: Any, y: Any, z: Any) -> Any:
    """d(x**y)/dx. A root has the slope 0 at 0."""
    return y * finite_power(x, y - 1, y)


def power_by_exponent(x: Any, y: Any, z: Any) -> Any:
    """d(x**y)/dy: z log(x) where x is positive or z infinite, 0 at other 0 and NaN below, unless z is complex."""
    return z * log_or_zero(x + 0j if is_complex(z) and not is_complex(x) else x, z)


def power_in_place(x: Any, y: Any) -> Any:
    """What ``x **= y`` makes of an array: NumPy rounds that of complex numbers otherwise than ``x ** y``."""
    z = x.copy()
    z **= y
    return z


elementwise((op.add, op.iadd), 1, 1)
elementwise((op.sub, op.isub), 1, -1)
elementwise((op.mul, op.imul), second, first)
elementwise(
    (op.truediv, op.itruediv), over(lambda x, y, z: y), over(lambda x, y, z: y, lambda x, y, z: -z)
)
elementwise((op.mod, op.imod), 1, lambda x, y, z: -(x // y))
elementwise((op.pow, op.ipow, power_in_place), power_by_base, power_by_exponent)
elementwise(op.neg, -1)
elementwise(op.pos, 1)
elementwise(op.abs, abs_slope)

nondiff(op.floordiv, op.ifloordiv)
nondiff(op.lt, op.le, op.eq, op.ne, op.gt, op.ge, op.not_, op.truth, op.index)
nondiff(op.and_, op.or_, op.xor, op.invert, op.inv, op.lshift, op.rshift)
nondiff(op.iand, op.ior, op.ixor, op.ilshift, op.irshift)


@rrule(op.getitem)
def getitem(x, index):
    def pullback(dz):
        return scatter(dz, index, np.shape(x), cotangent_dtype(x)), None

    return x[index], pullback
