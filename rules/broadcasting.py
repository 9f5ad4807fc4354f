"""Shapes and dtypes, handled once: how a cotangent finds its way back to the operand it belongs to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .registry import query, rrule
from .zeros import is_complex


def unbroadcast(d: Any, x: Any) -> Any:
    """``d`` summed over the axes along which ``x`` was broadcast, in the kind and the dtype of ``x``.

    The real part is taken where ``x`` is real and ``d`` complex; float32 stays float32. A list or tuple
    gets its cotangents in the same structure, an array of integers or booleans gets None.
    """
    if fits(d, x):
        return d
    if d is None or is_integral(x):
        return None
    if is_sequence(x):
        return unstack(d, x)
    if is_complex(d) and not is_complex(x):
        d = np.real(d)
    axes = broadcast_axes(np.shape(d), np.shape(x))
    if axes:
        d = np.add.reduce(d, axis=axes)
    if np.shape(d) != np.shape(x):
        d = np.reshape(d, np.shape(x))
    d = as_kind(d, x)
    return np.asarray(d) if is_bare(d, x) else d


@query
def is_bare(d: Any, x: Any) -> bool:
    """Is ``d`` a number of Python's and ``x`` an array, which is indexed, copied and reshaped as no such number is?"""
    return type(d) in (float, complex) and isinstance(x, np.ndarray)


@query
def fits(d: Any, x: Any) -> bool:
    """Is ``d`` a float like ``x``, or an array of the shape and the dtype of ``x``, which is one of floats?"""
    return type(d) is type(x) is float or (
        type(d) is type(x) is np.ndarray
        and d.shape == x.shape
        and d.dtype == x.dtype
        and x.dtype.kind in "fc"
    )


def as_kind(d: Any, x: Any) -> Any:
    """``d``, which has the shape of ``x``, in the dtype of ``x``; a Python float for a Python number."""
    dtype = missing_dtype(d, x)
    if dtype is None:
        return d
    return dtype(d) if dtype is float or dtype is complex else cast(d, dtype)


def broadcast_like(t: Any, z: Any) -> Any:
    """The tangent ``t`` in the shape, the kind and the dtype of the value ``z``: the counterpart of `unbroadcast`."""
    if t is None:
        return None
    if is_complex(t) and not is_complex(z):
        t = np.real(t)
    if np.shape(t) != np.shape(z):
        t = np.broadcast_to(t, np.shape(z))
    return of_type(as_kind(t, z), z)


def of_type(t: Any, z: Any) -> Any:
    """``t`` as an array or a NumPy scalar where ``z`` is one: what can be done to ``z`` can then be done to it."""
    if isinstance(z, np.ndarray):
        return t if isinstance(t, np.ndarray) else np.asarray(t)
    if isinstance(z, np.inexact):
        return t[()] if isinstance(t, np.ndarray) else t if is_scalar(t) else cast(t, z.dtype)
    return t


@query
def is_scalar(x: Any) -> bool:
    """Is ``x`` a number of NumPy's?"""
    return isinstance(x, np.generic)


@query
def is_integral(x: Any) -> bool:
    """Is ``x`` a bool or an array of bools?

    Integers are numbers here: one that depends on a Python int argument has a derivative, and of others nobody asks.
    """
    return type(x) is bool or getattr(getattr(x, "dtype", None), "kind", "") == "b"


@query
def is_sequence(x: Any) -> bool:
    """Is ``x`` a list or a tuple, which NumPy would take for an array?"""
    return isinstance(x, (list, tuple))


@query
def broadcast_axes(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of ``shape`` to sum over to come from ``shape`` back to ``target``."""
    lead = len(shape) - len(target)
    return tuple(i for i, n in enumerate(shape) if i < lead or (target[i - lead] == 1 and n != 1))


@query
def missing_dtype(d: Any, x: Any) -> Any:
    """What `as_kind` must convert ``d`` to so that it has the kind of ``x``, or None."""
    if type(d) is type(x) is float:
        return None
    if isinstance(x, (np.ndarray, np.generic)):
        have = d.dtype if isinstance(d, (np.ndarray, np.generic)) else np.dtype(type(d))
        return x.dtype if x.dtype != have and x.dtype.kind in "fc" else None
    if isinstance(x, complex):
        return None if isinstance(d, complex) else complex
    return None if isinstance(d, (float, int)) or getattr(d, "dtype", None) == object else float


def unstack(d: Any, x: Any) -> Any:
    """The cotangents of the elements of ``x``, a nested list or tuple of which NumPy made an array."""
    if len(x) == 0:
        return None
    lead = np.ndim(d) - np.ndim(x)
    if lead > 0:
        d = np.add.reduce(d, axis=tuple(range(lead)))
    if np.shape(d)[0] != len(x):
        d = np.add.reduce(d, axis=0, keepdims=True)
    parts = [unbroadcast(d[i], x[i]) for i in range(len(x))]
    return tuple(parts) if isinstance(x, tuple) else parts


def cast(x: Any, dtype: Any) -> Any:
    """``x`` converted to ``dtype``."""
    return x.astype(dtype) if isinstance(x, (np.ndarray, np.generic)) else np.dtype(dtype).type(x)


@rrule(cast)
def _cast(x, dtype=float):
    def pullback(dz):
        return (unbroadcast(dz, x),)

    return cast(x, dtype), pullback


def as_integers(x: Any, dtype: Any) -> Any:
    """Floats that stand for integers as those: unlike `cast`, it does not round, so that its derivative is 1."""
    return cast(x, dtype)


@rrule(as_integers)
def _as_integers(x, dtype):
    def pullback(dz):
        return unbroadcast(dz, x), None

    return as_integers(x, dtype), pullback


def settled(option: Any) -> Any:
    """An option as plain integers, guarded if they come from traced ones.

    A rule must settle an option before a query looks at it: queries see values, but guard nothing.
    """
    if isinstance(option, (tuple, list)) or (isinstance(option, np.ndarray) and option.ndim):
        return tuple([settled(part) for part in option])
    # A range takes the integer out of its box, as indexing a list would.
    return range(option).stop if isinstance(option, (int, np.integer)) else option


@query
def normal_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """``axis`` (None, an int or a tuple) as a sorted tuple of axes counted from the front."""
    if axis is None or ndim == 0:  # NumPy takes the first and the last axis of a number for none
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(sorted(int(a) % ndim for a in axes))


@query
def kept_shape(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """``shape`` with ones at ``axis``: what a reduction with ``keepdims=True`` returns."""
    axes = normal_axes(axis, len(shape))
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


@query
def axis_size(shape: tuple[int, ...], axis: Any) -> int:
    """How many elements a reduction over ``axis`` takes together."""
    return math.prod(shape[i] for i in normal_axes(axis, len(shape)))


def restore(d: Any, x: Any, axis: Any) -> Any:
    """What a reduction of ``x`` gave, or its cotangent, with ones where ``axis`` has been (as keepdims does)."""
    shape = kept_shape(np.shape(x), axis)
    return d if np.shape(d) in ((), shape) else np.reshape(d, shape)


def expand(d: Any, shape: tuple[int, ...], axis: Any = None) -> Any:
    """The cotangent of a sum over ``axis`` spread back over ``shape`` (a read-only view, as broadcast_to gives)."""
    kept = (1,) * len(shape) if axis is None else kept_shape(shape, axis)
    # np.broadcast_to, at a fifth of its price.
    if axis is None and kept != shape and (type(d) is float or type(d) is np.float64):
        return np.ndarray(shape, np.float64, np.float64(d), 0, (0,) * len(shape))
    if not isinstance(d, np.ndarray):
        d = np.asarray(d)
    if d.shape != kept:
        d = d.reshape(kept)
    if kept == shape:
        return d
    strides = tuple([0 if k != n else s for k, n, s in zip(kept, shape, d.strides, strict=True)])
    if not d.flags.c_contiguous:
        return np.broadcast_to(d, shape)
    view = np.ndarray(shape, d.dtype, d, 0, strides)
    view.setflags(write=False)
    return view


@rrule(expand)
def _expand(d, shape=(), axis=None):
    def pullback(dz):
        axes = broadcast_axes(np.shape(dz), kept_shape(np.shape(dz), axis))
        g = np.add.reduce(dz, axis=axes) if axes else dz
        return (as_kind(np.reshape(g, np.shape(d)) if np.shape(g) != np.shape(d) else g, d),)

    return expand(d, shape, axis), pullback
