"""NumPy's ufuncs, and the elementwise functions that NumPy builds from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .broadcasting import is_complex, unbroadcast
from .elementwise import elementwise, first, over, second
from .operators import abs_slope, of_numpy, power_by_base, power_by_exponent, sign
from .registry import Operand, nondiff, rrule
from .zeros import as_computed, float_dtype, product, ratio

NUMPY2 = int(np.__version__.partition(".")[0]) >= 2


def methods(name: str) -> tuple[Any, ...]:
    """The method of arrays and that of NumPy's scalars."""
    return tuple(getattr(cls, name) for cls in (np.ndarray, np.generic) if hasattr(cls, name))


def silent_sqrt(x: Any) -> Any:
    """The square root, NaN without a warning where there is none."""
    with np.errstate(invalid="ignore"):
        return np.sqrt(x)


def cut_sqrt(x: Any) -> Any:
    """The square root of ``1 - x*x``, of complex numbers on the side of its cuts that the sign of a zero says."""
    if not is_complex(x):
        return silent_sqrt(1 - x * x)
    return silent_sqrt(-(x - 1)) * silent_sqrt(-(-x - 1))


def share(x: Any, y: Any, z: Any) -> Any:
    """The part of ``x`` in ``z = maximum(x, y)`` or ``minimum(x, y)``: 0 or 1, and 1/2 for a tie.

    A NaN that ``z`` is comes from the operand that is NaN.
    """
    x, y = as_computed(x, z), as_computed(y, z)
    hit, tie = np.equal(x, z), np.equal(x, y)
    unknown = np.isnan(z)
    if unknown.any():
        hit, tie = hit | unknown & np.isnan(x), tie | unknown & np.isnan(x) & np.isnan(y)
    if isinstance(z, np.ndarray) and not tie.any():
        return hit.astype(float_dtype(z))
    return (hit / (1 + tie)).astype(float_dtype(z), copy=False)


def weight(x: Any, z: Any) -> Any:
    """``exp(x - z)``, and 0 for ``x`` = -inf, also where ``z`` is -inf."""
    with np.errstate(invalid="ignore"):
        # Not np.isneginf(x), which takes no integer of more than 64 bits.
        return np.where(np.equal(x, -np.inf), 0, np.exp(np.subtract(x, z)))[()]


def sinc_derivative(n: int, x: Any) -> Any:
    """The ``n``-th derivative of sin(pi x)/(pi x).

    Near 0 from the Taylor series of the sine; elsewhere f = sin(pi x)/(pi x), differentiated as a product
    x f = sin(pi x)/pi, gives x f_n = pi^(n-1) sin(pi x + n pi/2) - n f_(n-1).
    """
    x = np.asarray(x)
    near = np.abs(x) < 1.0 + n
    s = np.where(near, x, 0.0)
    series = np.zeros_like(s, dtype=float_dtype(x))
    for k in range((n + 1) // 2, 24 + 4 * n):
        power = 2 * k - n
        factor = (-1.0) ** k * math.pi ** (2 * k) / (math.factorial(power) * (2 * k + 1))
        series = series + factor * s**power
    far = np.where(near, 1.0, x)
    f = np.sin(np.pi * far) / (np.pi * far)
    for m in range(1, n + 1):
        f = (math.pi ** (m - 1) * np.sin(np.pi * far + m * np.pi / 2) - m * f) / far
    return np.where(near, series, f)[()]


elementwise(silent_sqrt, lambda x, z: ratio(0.5, z))
elementwise(weight, lambda x, z, w: w, lambda x, z, w: -w)
elementwise(sinc_derivative, None, lambda n, x, z: sinc_derivative(n + 1, x))
nondiff(share)

# Arithmetic
elementwise(np.add, 1, 1)
elementwise(np.subtract, 1, -1)
elementwise(np.multiply, second, first)
elementwise(np.divide, over(lambda x, y, z: y), over(lambda x, y, z: y, lambda x, y, z: -z))
elementwise(np.remainder, 1, lambda x, y, z: -np.floor_divide(x, y))
elementwise(np.fmod, 1, lambda x, y, z: -np.trunc(np.divide(x, y)))
for _power in (np.power, np.float_power):
    elementwise(_power, lambda x, y, z: power_by_base(of_numpy(x), y, z), power_by_exponent)
elementwise(np.negative, -1)
elementwise(np.positive, 1)
elementwise(np.reciprocal, lambda x, z: -z * z)
elementwise(np.square, lambda x, z: 2 * x)
elementwise(np.sqrt, lambda x, z: ratio(0.5, z))
elementwise(np.cbrt, over(lambda x, z: 3 * z * z))
elementwise(np.absolute, abs_slope)
elementwise(np.fabs, lambda x, z: sign(x))
elementwise(np.copysign, lambda x, y, z: sign(x) * np.copysign(1, y), None)
elementwise(np.heaviside, None, lambda x, h, z: np.equal(x, 0))
elementwise(np.ldexp, lambda x, i, z: np.ldexp(1.0, i), None)
elementwise(np.nextafter, 1, None)
elementwise((np.deg2rad, np.radians), lambda x, z: math.pi / 180)
elementwise((np.rad2deg, np.degrees), lambda x, z: 180 / math.pi)
elementwise(np.maximum, lambda x, y, z: share(x, y, z), lambda x, y, z: share(y, x, z))
elementwise(np.minimum, lambda x, y, z: share(x, y, z), lambda x, y, z: share(y, x, z))
elementwise(np.fmax, lambda x, y, z: share(x, y, z), lambda x, y, z: share(y, x, z))
elementwise(np.fmin, lambda x, y, z: share(x, y, z), lambda x, y, z: share(y, x, z))

# Exponentials and logarithms
elementwise(np.exp, lambda x, z: z)
elementwise(np.exp2, lambda x, z: z * math.log(2))
elementwise(np.expm1, lambda x, z: z + 1)
elementwise(np.log, over(lambda x, z: x))
elementwise(np.log2, over(lambda x, z: x * math.log(2)))
elementwise(np.log10, over(lambda x, z: x * math.log(10)))
elementwise(np.log1p, over(lambda x, z: x + 1))
elementwise(np.logaddexp, lambda x, y, z: weight(x, z), lambda x, y, z: weight(y, z))
elementwise(
    np.logaddexp2,
    lambda x, y, z: weight(math.log(2) * x, math.log(2) * z),
    lambda x, y, z: weight(math.log(2) * y, math.log(2) * z),
)

# Trigonometric and hyperbolic functions
elementwise(np.sin, lambda x, z: np.cos(x))
elementwise(np.cos, lambda x, z: -np.sin(x))
elementwise(np.tan, lambda x, z: 1 + z * z)
elementwise(np.arcsin, over(lambda x, z: cut_sqrt(x)))
elementwise(np.arccos, over(lambda x, z: -cut_sqrt(x)))
elementwise(np.arctan, over(lambda x, z: 1 + x * x))
elementwise(
    np.arctan2,
    lambda y, x, z: ratio(x, x * x + y * y),
    lambda y, x, z: ratio(-y, x * x + y * y),
)
elementwise(np.hypot, lambda x, y, z: ratio(x, z), lambda x, y, z: ratio(y, z))
elementwise(np.sinh, lambda x, z: np.cosh(x))
elementwise(np.cosh, lambda x, z: np.sinh(x))
elementwise(np.tanh, lambda x, z: 1 - z * z)
elementwise(np.arcsinh, over(lambda x, z: np.sqrt(1 + x * x)))
elementwise(np.arccosh, over(lambda x, z: silent_sqrt(x - 1) * silent_sqrt(-(-x - 1))))
elementwise(np.arctanh, over(lambda x, z: 1 - x * x))
elementwise(np.sinc, lambda x, z: sinc_derivative(1, x))

nondiff(np.floor, np.ceil, np.rint, np.trunc, np.fix, np.round, np.around, *methods("round"))
nondiff(np.floor_divide, np.spacing, np.signbit)
nondiff(np.isnan, np.isinf, np.isfinite, np.isnat, np.isneginf, np.isposinf)
nondiff(np.isclose, np.allclose, np.array_equal, np.array_equiv, np.isreal, np.iscomplex)
nondiff(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
nondiff(np.logical_and, np.logical_or, np.logical_xor, np.logical_not)
nondiff(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift)
nondiff(np.gcd, np.lcm)
if hasattr(np, "bitwise_count"):  # new in NumPy 2
    nondiff(np.bitwise_count)


@rrule(np.sign)
def sign_(x, **options):
    z = np.sign(x, **options)

    def pullback(dz):
        if not is_complex(x) or not NUMPY2:
            return (None,)
        # x/r with r = |x|; along v it changes by v/r - x Re(conj(x) v)/r^3.
        r = np.absolute(x)
        return (ratio(dz, r) - np.real(dz * z) * ratio(np.conjugate(z), r),)

    return z, pullback


@rrule(np.conjugate)
def conjugate(x, **options):
    def pullback(dz):
        return (unbroadcast(np.conjugate(dz), x),)

    return np.conjugate(x, **options), pullback


@rrule(*methods("conjugate"), *methods("conj"))
def conjugate_method(x, *args):
    def pullback(dz):
        return (unbroadcast(np.conjugate(dz), x), *(None for _ in args))

    return x.conjugate(*args), pullback  # which is ``x`` itself, if it is real


@rrule(np.real)
def real(val):
    def pullback(dz):
        return (unbroadcast(dz, val),)

    return np.real(val), pullback


@rrule(np.imag)
def imag(val):
    def pullback(dz):
        return (unbroadcast(-1j * dz, val) if is_complex(val) else None,)

    return np.imag(val), pullback


@rrule(np.angle)
def angle(z, deg=False):
    def pullback(dy):
        if not is_complex(z):
            return (None,)
        d = ratio(-1j * dy, z)
        return (unbroadcast(d * (180 / math.pi) if deg else d, z),)

    return np.angle(z, deg), pullback


@rrule(np.modf)
def modf(x, **options):
    def pullback(dz):
        return (unbroadcast(dz[0], x),)

    return np.modf(x, **options), pullback


@rrule(np.frexp)
def frexp(x, **options):
    z = np.frexp(x, **options)

    def pullback(dz):
        return (None if dz[0] is None else unbroadcast(np.ldexp(dz[0], -z[1]), x),)

    return z, pullback


@rrule(np.divmod)
def divmod_(x, y, **options):
    z = np.divmod(x, y, **options)

    def pullback(dz):
        d = dz[1]  # the quotient is a whole number
        return (None, None) if d is None else (unbroadcast(d, x), unbroadcast(product(-d, z[0]), y))

    return z, pullback


@rrule(np.where)
def where(condition, *branches):
    z = np.where(condition, *branches)

    def pullback(dz):
        if not branches:
            return (None,)  # np.where(c) is np.nonzero(c)
        x, y = branches
        return (
            None,
            unbroadcast(np.where(condition, dz, 0), x),
            unbroadcast(np.where(condition, 0, dz), y),
        )

    return z, pullback


@rrule(np.clip, *methods("clip"))
def clip(
    a,
    a_min: Operand = None,
    a_max: Operand = None,
    *,
    min: Operand = None,
    max: Operand = None,
    **options,
):
    low = a_min if min is None else min
    high = a_max if max is None else max
    z = np.clip(a, low, high, **options)

    def pullback(dz):
        # z = minimum(maximum(a, low), high)
        y, dlow, dhigh = a, None, None
        if low is not None:
            y = np.maximum(a, low)
        dy = dz
        if high is not None:
            dy, dhigh = dz * share(y, high, z), dz * share(high, y, z)
        da = dy
        if low is not None:
            da, dlow = dy * share(a, low, y), dy * share(low, a, y)
        da, dlow, dhigh = unbroadcast(da, a), unbroadcast(dlow, low), unbroadcast(dhigh, high)
        return (
            da,
            dlow if min is None else None,
            dhigh if max is None else None,
            None if min is None else dlow,
            None if max is None else dhigh,
        )

    return z, pullback


@rrule(np.nan_to_num)
def nan_to_num(x, copy=True, nan: Operand = 0, posinf: Operand = None, neginf: Operand = None):
    if np.iscomplexobj(x) and not (posinf is None and neginf is None):
        raise NotImplementedError("the derivative by posinf= and neginf= is for real numbers")
    z = np.nan_to_num(x, copy, nan, posinf, neginf)

    def pullback(dz):
        where = lambda places, value: unbroadcast(np.where(places, dz, 0), value)
        return (
            where(np.isfinite(x), x),
            None,
            where(np.isnan(x), nan),
            None if posinf is None else where(np.isposinf(x), posinf),
            None if neginf is None else where(np.isneginf(x), neginf),
        )

    return z, pullback
