"""Products and quotients for cotangents, in which zero wins.

Where ``np.where(x > 0, np.log(x), 0)`` takes the other branch, the cotangent of the logarithm is zero and
its derivative infinite; their product has to be zero, not NaN. The elementwise rules therefore multiply
with `product` and divide with `quotient` as soon as an array takes part. Between Python numbers, where a
branch that is not taken is not computed either, they use plain ``*`` and ``/``.
"""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np

from .registry import query

PLAIN = (int, float, complex, bool)
FLOATS = (float, np.float64)


@query
def is_plain(*xs: Any) -> bool:
    """Are all of ``xs`` numbers of Python's own (not NumPy's)?"""
    return all(type(x) in PLAIN for x in xs)


@query
def is_complex(x: Any) -> bool:
    """Is ``x`` a complex number or an array of them?"""
    return isinstance(x, complex) or getattr(getattr(x, "dtype", None), "kind", "") == "c"


@query
def cotangent_dtype(x: Any) -> Any:
    """The dtype of the cotangents and tangents of ``x``: its own, and float64 for integers that were computed."""
    dtype = np.result_type(x) if isinstance(x, (np.ndarray, np.generic)) else np.asarray(x).dtype
    return dtype if dtype.kind in "fcO" else np.dtype(float)


def float_dtype(x: Any) -> Any:
    """The dtype of ``x``, or float64 where it is not one of floating-point numbers."""
    dtype = np.asarray(x).dtype
    return dtype if dtype.kind in "fc" else np.dtype(float)


def _finite(x: Any) -> bool:
    if isinstance(x, np.ndarray):
        if x.dtype.kind in "biu":
            return True
        # One pass without a temporary; the sum of squares of finite numbers may overflow, which only
        # takes the slower way below.
        return cmath.isfinite(np.vdot(x, x)) if x.size < 10_000 else bool(np.isfinite(x).all())
    return cmath.isfinite(x)


def product(d: Any, p: Any) -> Any:
    """``d * p``, and zero wherever ``d`` is zero, even where ``p`` is infinite or NaN."""
    if _finite(p):
        return d * p
    with np.errstate(all="ignore"):
        r = d * p
    return _cleared(r, d)


def quotient(d: Any, q: Any) -> Any:
    """``d / q``, and zero wherever ``d`` is zero; elsewhere a division by zero gives infinity."""
    if type(d) in PLAIN and type(q) in PLAIN and q != 0:
        return d / q
    if type(d) in FLOATS and type(q) in FLOATS and q != 0:  # without a warning to be kept back
        r = np.float64(float(d) / float(q))
        return r if cmath.isfinite(r) else _cleared(r, d)
    with np.errstate(all="ignore"):
        r = np.divide(d, q)
    if type(d) in PLAIN and type(q) in PLAIN:
        r = r.item()
    return r if _finite(r) else _cleared(r, d)


def _cleared(r: Any, d: Any) -> Any:
    """``r``, a fresh value, with zeros where ``d`` is zero."""
    if isinstance(r, np.ndarray) and r.ndim:
        r[np.broadcast_to(np.equal(d, 0), r.shape)] = 0
        return r
    return type(r)(0) if d == 0 else r


def ratio(a: Any, b: Any) -> Any:
    """``a / b``, and zero wherever ``b`` is zero: the finite choice for the slope of a root at zero."""
    if type(a) in PLAIN and type(b) in PLAIN:
        return a / b if b != 0 else 0.0
    zero = np.equal(b, 0)
    if not zero.any():
        return a / b
    with np.errstate(all="ignore"):
        r = np.divide(a, b)
    if isinstance(r, np.ndarray) and r.ndim:
        r[np.broadcast_to(zero, r.shape)] = 0
        return r
    return type(r)(0)


def plus(a: Any, b: Any) -> Any:
    """The sum of two cotangents, each of which may be None."""
    return b if a is None else a if b is None else a + b


def as_computed(x: Any, z: Any) -> Any:
    """``x`` in the dtype of ``z``, which was computed from it: with ``dtype=`` another one than that of ``x``."""
    dtype = getattr(z, "dtype", None)
    return x if dtype is None or getattr(x, "dtype", dtype) == dtype else np.asarray(x, dtype)


def conj(x: Any) -> Any:
    """The complex conjugate: a real number itself, and of Python's kind for Python's numbers."""
    if not is_complex(x):
        return x
    return x.conjugate() if is_plain(x) else np.conjugate(x)
