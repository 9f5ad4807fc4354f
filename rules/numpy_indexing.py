"""Elements chosen by number or by mask, searched for, or interpolated between."""

from __future__ import annotations

from typing import Any

import numpy as np

from .broadcasting import settled, unbroadcast
from .mutation import scatter, scatter_add
from .numpy_ufuncs import methods
from .registry import Operand, nondiff, rrule
from .zeros import cotangent_dtype


@rrule(np.take, *methods("take"))
def take(a, indices, axis=None, out=None, mode="raise"):
    def pullback(dz):
        shape, dtype = np.shape(a), cotangent_dtype(a)
        if axis is None or not shape:
            where = within(indices, np.size(a), mode)
            d = np.reshape(scatter(dz, where, (np.size(a),), dtype), shape)
        else:
            where = within(indices, shape[axis], mode)
            d = scatter(dz, _along(where, settled(axis), len(shape)), shape, dtype)
        return unbroadcast(d, a), None

    return np.take(a, indices, axis=axis, mode=mode), pullback


def within(indices: Any, size: int, mode: str) -> Any:
    """``indices`` as numbers below ``size``, as the ``mode`` of `np.take` has it."""
    indices = np.asarray(indices, np.intp)  # True is the number 1 here, and no condition
    if mode == "wrap":
        return indices % size
    return np.clip(indices, 0, size - 1) if mode == "clip" else indices


nondiff(within)


def _along(index: Any, axis: int, ndim: int) -> tuple[Any, ...]:
    """``index`` as an index into ``axis``."""
    return (slice(None),) * (axis % ndim) + (index,)


@rrule(np.compress)
def compress(condition, a, axis=None, out=None):
    def pullback(dz):
        index = np.flatnonzero(condition)
        if axis is None:
            d = np.reshape(scatter(dz, index, (np.size(a),), cotangent_dtype(a)), np.shape(a))
        else:
            shape = np.shape(a) or (1,)
            d = scatter(dz, _along(index, settled(axis), len(shape)), shape, cotangent_dtype(a))
        return None, unbroadcast(d, a)

    return np.compress(condition, a, axis=axis), pullback


@rrule(*methods("compress"))
def compress_method(a, condition, axis=None, out=None):
    z, back = compress(condition, a, axis)

    def pullback(dz):
        return back(dz)[::-1]

    return z, pullback


@rrule(np.choose)
def choose(a, choices, out=None, mode="raise"):
    def pullback(dz):
        number = within(a, len(choices), mode)
        d = [unbroadcast(np.where(np.equal(number, i), dz, 0), x) for i, x in enumerate(choices)]
        return None, tuple(d) if isinstance(choices, tuple) else np.array(d) if isinstance(
            choices, np.ndarray
        ) else d

    return np.choose(a, choices, mode=mode), pullback


@rrule(np.ndarray.choose)
def choose_method(a, *choices, out=None, mode="raise"):
    listed = len(choices) == 1  # otherwise each stands on its own
    z, back = choose(a, choices[0] if listed else choices, mode=mode)

    def pullback(dz):
        d = back(dz)[1]
        return (None, d) if listed else (None, *d)

    return z, pullback


@rrule(np.bincount)
def bincount(x, /, weights: Operand = None, minlength=0):
    def pullback(dz):
        return None, None if weights is None else unbroadcast(np.take(dz, x), weights)

    return np.bincount(x, weights, minlength), pullback


@rrule(np.interp)
def interp(x, xp, fp, left: Operand = None, right: Operand = None, period: Operand = None):
    z = np.interp(x, xp, fp, left, right, period)

    def pullback(dz):
        # In double precision, as NumPy takes them: differences of unsigned integers would wrap around.
        at, nodes, values, order = x, np.asarray(xp, float), np.asarray(fp, z.dtype), None
        if period is not None:
            # One period in order, and a neighbour on both sides.
            wide = np.abs(period)
            turn, turns = np.floor_divide(x, wide), np.floor_divide(nodes, wide)
            at, nodes = np.remainder(x, wide), np.remainder(nodes, wide)
            order = np.argsort(nodes)
            order = np.concatenate([order[-1:], order, order[:1]])
            nodes, values = nodes[order], values[order]
            nodes = np.concatenate([nodes[:1] - wide, nodes[1:-1], nodes[-1:] + wide])
        below, above = np.less(at, nodes[0]), np.greater(at, nodes[-1])
        last = len(nodes) - 1
        i = np.clip(np.searchsorted(nodes, at, side="right") - 1, 0, max(last - 1, 0))
        j = np.minimum(i + 1, last)
        jump = np.equal(nodes[i], nodes[j])  # the last node, where it is there twice or alone
        width = np.where(jump, 1, nodes[j] - nodes[i])
        flat = np.logical_or(np.logical_or(below, above), jump)
        slope = np.where(flat, 0, (values[j] - values[i]) / width)
        up = np.logical_or(above, jump)
        t = np.where(below, 0, np.where(up, 1, (at - nodes[i]) / width))
        dvalue, dleft, dright, dperiod = dz, None, None, None
        if left is not None and period is None:
            dleft, dvalue = np.where(below, dz, 0), np.where(below, 0, dvalue)
        if right is not None and period is None:
            dright, dvalue = np.where(above, dz, 0), np.where(above, 0, dvalue)
        dnode = -dz * slope
        size, dtype = (len(nodes),), cotangent_dtype(dz)
        dvalues = scatter_add(scatter(dvalue * (1 - t), i, size, dtype), j, dvalue * t)
        dnodes = scatter_add(scatter(dnode * (1 - t), i, size, dtype), j, dnode * t)
        if order is not None:
            dwide = (
                dnodes[-1] - dnodes[0] - np.sum(dz * slope * turn) - np.sum(dnodes * turns[order])
            )
            dperiod = unbroadcast(np.sign(period) * dwide, period)
            dvalues = scatter(dvalues, order, np.shape(xp), dtype)
            dnodes = scatter(dnodes, order, np.shape(xp), dtype)
        return (
            unbroadcast(dz * slope, x),
            unbroadcast(dnodes, xp),
            unbroadcast(dvalues, fp),
            unbroadcast(dleft, left),
            unbroadcast(dright, right),
            dperiod,
        )

    return z, pullback


nondiff(np.nonzero, np.flatnonzero, np.argwhere, np.ndarray.nonzero)
nondiff(np.searchsorted, np.digitize, *methods("searchsorted"))
nondiff(*[getattr(np, name) for name in ("isin", "in1d") if hasattr(np, name)])
nondiff(np.unravel_index, np.ravel_multi_index)
