"""The module ``math``, in Python numbers throughout: a float stays a float."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from .broadcasting import is_sequence, unbroadcast
from .elementwise import elementwise, over
from .operators import finite_power, log_or_zero, sign
from .registry import Operand, nondiff, rrule
from .zeros import quotient, ratio


def polygamma(n: int, x: float) -> float:
    """The ``n``-th derivative of digamma, psi^(n)(x), at a real ``x``.

    Abramowitz & Stegun, Handbook of Mathematical Functions: the recurrence 6.4.6 lifts x above 15, where
    the asymptotic series 6.3.18 (n = 0) and 6.4.11 (n > 0) hold to the last digits; digamma and trigamma of
    negative numbers come from the reflection 6.4.7.
    """
    if x <= 0.0 and x == math.floor(x):
        return math.nan
    if x < 0.0 and n < 2:
        fraction = math.pi * (x - round(x))
        if n == 0:
            return polygamma(0, 1.0 - x) - math.pi / math.tan(fraction)
        return (math.pi / math.sin(fraction)) ** 2 - polygamma(1, 1.0 - x)
    factor = math.factorial(n) * (-1.0 if n % 2 == 0 else 1.0)
    terms = []
    while x < 15.0 + n:
        terms.append(factor / x ** (n + 1))
        x = x + 1.0  # a new number: this one may be an array of the user's
    if n == 0:
        terms += [math.log(x), -0.5 / x]
        terms += [-b / (k * x**k) for k, b in BERNOULLI]
    else:
        # (-1)^(n-1) [(n-1)!/x^n + n!/(2 x^(n+1)) + sum of B_2k (2k+n-1)!/((2k)! x^(2k+n))]
        terms += [factor / (n * x**n), factor / (2.0 * x ** (n + 1))]
        terms += [
            math.copysign(1.0, factor) * b * math.prod(range(k + 1, k + n)) / x ** (k + n)
            for k, b in BERNOULLI
        ]
    return math.fsum(terms)


# The Bernoulli numbers B_2 to B_16, each with its index.
BERNOULLI = [
    (2, 1 / 6),
    (4, -1 / 30),
    (6, 1 / 42),
    (8, -1 / 30),
    (10, 5 / 66),
    (12, -691 / 2730),
    (14, 7 / 6),
    (16, -3617 / 510),
]

elementwise(polygamma, None, lambda n, x, z: polygamma(n + 1, x))

elementwise(math.sin, lambda x, z: math.cos(x))
elementwise(math.cos, lambda x, z: -math.sin(x))
elementwise(math.tan, lambda x, z: 1.0 + z * z)
elementwise(math.asin, lambda x, z: quotient(1.0, math.sqrt(1.0 - x * x)))
elementwise(math.acos, lambda x, z: quotient(-1.0, math.sqrt(1.0 - x * x)))
elementwise(math.atan, over(lambda x, z: 1.0 + x * x))
elementwise(
    math.atan2, lambda y, x, z: ratio(x, x * x + y * y), lambda y, x, z: ratio(-y, x * x + y * y)
)
elementwise(math.sinh, lambda x, z: math.cosh(x))
elementwise(math.cosh, lambda x, z: math.sinh(x))
elementwise(math.tanh, lambda x, z: 1.0 - z * z)
elementwise(math.asinh, over(lambda x, z: math.sqrt(1.0 + x * x)))
elementwise(math.acosh, lambda x, z: quotient(1.0, math.sqrt(x * x - 1.0)))
elementwise(math.atanh, over(lambda x, z: 1.0 - x * x))
elementwise(math.exp, lambda x, z: z)
elementwise(math.expm1, lambda x, z: z + 1.0)
elementwise(math.log2, over(lambda x, z: x * math.log(2.0)))
elementwise(math.log10, over(lambda x, z: x * math.log(10.0)))
elementwise(math.log1p, over(lambda x, z: 1.0 + x))
elementwise(math.sqrt, lambda x, z: ratio(0.5, z))
elementwise(math.fabs, lambda x, z: sign(x))
elementwise(math.copysign, lambda x, y, z: sign(x) * math.copysign(1.0, y), None)
elementwise(math.fmod, 1, lambda x, y, z: -math.trunc(x / y))
elementwise(math.remainder, 1, lambda x, y, z: -round((x - z) / y))
elementwise(math.degrees, lambda x, z: 180.0 / math.pi)
elementwise(math.radians, lambda x, z: math.pi / 180.0)
elementwise(math.erf, lambda x, z: 2.0 / math.sqrt(math.pi) * math.exp(-x * x))
elementwise(math.erfc, lambda x, z: -2.0 / math.sqrt(math.pi) * math.exp(-x * x))
elementwise(math.gamma, lambda x, z: z * polygamma(0, x))
elementwise(math.lgamma, lambda x, z: polygamma(0, x))
elementwise(math.ldexp, lambda x, i, z: math.ldexp(1.0, i), None)
elementwise(math.nextafter, 1, None)
elementwise(
    math.pow,
    lambda x, y, z: y * finite_power(x, y - 1, y),
    lambda x, y, z: z * log_or_zero(x, z),
)
elementwise(math.exp2, lambda x, z: z * math.log(2.0))
elementwise(math.cbrt, lambda x, z: quotient(1.0, 3.0 * z * z))

if sys.version_info >= (3, 13):
    elementwise(math.fma, lambda x, y, a, z: y, lambda x, y, a, z: x, 1)
if sys.version_info >= (3, 15):
    elementwise(math.fmax, lambda x, y, z: chosen(x, y), lambda x, y, z: chosen(y, x))
    elementwise(math.fmin, lambda x, y, z: chosen(-x, -y), lambda x, y, z: chosen(-y, -x))

nondiff(
    math.ceil, math.floor, math.trunc, math.ulp, math.isfinite, math.isinf, math.isnan, math.isclose
)
nondiff(math.comb, math.factorial, math.gcd, math.isqrt, math.lcm, math.perm)
for name in ("signbit", "isnormal", "issubnormal"):  # new in 3.15
    if hasattr(math, name):
        nondiff(getattr(math, name))


def chosen(x: float, y: float) -> float:
    """1 where ``x`` is larger than ``y``, 1/2 for a tie, else 0; a NaN loses."""
    return 0.5 if x == y else float(x > y or y != y)


nondiff(chosen)


@rrule(math.log)
def log(x, *base):
    z = math.log(x, *base)

    def pullback(dz):
        if not base:
            return (unbroadcast(dz / x, x),)
        (b,) = base
        d = dz / math.log(b)
        return unbroadcast(d / x, x), unbroadcast(-z * d / b, b)

    return z, pullback


@rrule(math.modf)
def modf(x):
    def pullback(dz):
        return (dz[0],)

    return math.modf(x), pullback


@rrule(math.frexp)
def frexp(x):
    z = math.frexp(x)

    def pullback(dz):
        return (None if dz[0] is None else math.ldexp(dz[0], -z[1]),)

    return z, pullback


@rrule(math.hypot)
def hypot(*coordinates):
    z = math.hypot(*coordinates)

    def pullback(dz):
        return tuple(unbroadcast(dz * ratio(x, z), x) for x in coordinates)

    return z, pullback


@rrule(math.dist)
def dist(p, q):
    z = math.dist(p, q)

    def pullback(dz):
        d = [dz * ratio(a - b, z) for a, b in zip(p, q, strict=True)]
        return like(d, p), like([-a for a in d], q)

    return z, pullback


@rrule(math.fsum)
def fsum(numbers):
    def pullback(dz):
        return (like([dz for _ in numbers], numbers),)

    return math.fsum(numbers), pullback


@rrule(math.prod)
def prod(numbers, *, start: Operand = 1):
    z = math.prod(numbers, start=start)

    def pullback(dz):
        # The product of all the others, from the products of those before and of those after.
        before, after = [start], [1]
        for x in numbers:
            before.append(before[-1] * x)
        for x in reversed(numbers):
            after.append(after[-1] * x)
        after.reverse()
        d = [dz * (b * a) for b, a in zip(before, after[1:], strict=False)]
        return like(d, numbers), unbroadcast(dz * after[0], start)

    return z, pullback


if sys.version_info >= (3, 12):

    @rrule(math.sumprod)
    def sumprod(p, q):
        def pullback(dz):
            return like([dz * b for b in q], p), like([dz * a for a in p], q)

        return math.sumprod(p, q), pullback


def like(d: list[Any], x: Any) -> Any:
    """The cotangents ``d`` of the numbers in ``x``, in a list, a tuple or an array as ``x`` is one."""
    if not is_sequence(x):
        return unbroadcast(np.array(d), x)
    parts = [unbroadcast(a, b) for a, b in zip(d, x, strict=True)]
    return tuple(parts) if isinstance(x, tuple) else parts
