"""The module ``cmath``: its functions of a complex number, and polar coordinates."""

from __future__ import annotations

import cmath
import math

from .broadcasting import unbroadcast
from .elementwise import elementwise, over
from .registry import nondiff, rrule
from .zeros import plus, ratio

elementwise(cmath.sin, lambda x, z: cmath.cos(x))
elementwise(cmath.cos, lambda x, z: -cmath.sin(x))
elementwise(cmath.tan, lambda x, z: 1.0 + z * z)
elementwise(cmath.asin, over(lambda x, z: cmath.sqrt(1.0 - x * x)))
elementwise(cmath.acos, over(lambda x, z: -cmath.sqrt(1.0 - x * x)))
elementwise(cmath.atan, over(lambda x, z: 1.0 + x * x))
elementwise(cmath.sinh, lambda x, z: cmath.cosh(x))
elementwise(cmath.cosh, lambda x, z: cmath.sinh(x))
elementwise(cmath.tanh, lambda x, z: 1.0 - z * z)
elementwise(cmath.asinh, over(lambda x, z: cmath.sqrt(1.0 + x * x)))
elementwise(cmath.acosh, over(lambda x, z: cmath.sqrt(x - 1.0) * cmath.sqrt(x + 1.0)))
elementwise(cmath.atanh, over(lambda x, z: 1.0 - x * x))
elementwise(cmath.exp, lambda x, z: z)
elementwise(cmath.log10, over(lambda x, z: x * math.log(10.0)))
elementwise(cmath.sqrt, lambda x, z: ratio(0.5, z))

nondiff(cmath.isfinite, cmath.isinf, cmath.isnan, cmath.isclose)


@rrule(cmath.log)
def log(x, *base):
    z = cmath.log(x, *base)

    def pullback(dz):
        if not base:
            return (unbroadcast(dz / x, x),)
        (b,) = base
        d = dz / cmath.log(b)
        return unbroadcast(d / x, x), unbroadcast(-z * d / b, b)

    return z, pullback


@rrule(cmath.phase)
def phase(x):
    def pullback(dz):
        return (unbroadcast(ratio(-1j * dz, x), x),)

    return cmath.phase(x), pullback


@rrule(cmath.polar)
def polar(x):
    z = cmath.polar(x)

    def pullback(dz):
        # r = |x| and phi, the imaginary part of log(x)
        dr, dphi = dz
        d = plus(
            None if dr is None else ratio(dr * complex(x).conjugate(), z[0]),
            None if dphi is None else ratio(-1j * dphi, x),
        )
        return (unbroadcast(d, x),)

    return z, pullback


@rrule(cmath.rect)
def rect(r, phi):
    z = cmath.rect(r, phi)

    def pullback(dz):
        return unbroadcast(dz * cmath.rect(1.0, phi), r), unbroadcast(dz * 1j * z, phi)

    return z, pullback
