"""Elements chosen by number or by mask, searched for, or interpolated between."""

from __future__ import annotations

from typing import Any

import numpy as np

from .broadcasting import settled, unbroadcast
from .mutation import scatter, scatter_add
from .numpy_ufuncs import methods
from .registry import Operand, nondiff, query, rrule


@rrule(np.take, *methods("take"))
def take(a, indices, axis=None, out=None, mode="raise"):
    def pullback(dz):
        shape, dtype = np.shape(a), _dtype(a)
        if axis is None:
            where = within(indices, np.size(a), mode)
            d = np.reshape(scatter(dz, where, (np.size(a),), dtype), shape)
        else:
            where = within(indices, shape[axis], mode)
            d = scatter(dz, _along(where, settled(axis), len(shape)), shape, dtype)
        return unbroadcast(d, a), None

    return np.take(a, indices, axis=axis, mode=mode), pullback


def within(indices: Any, size: int, mode: str) -> Any:
    """``indices`` as numbers below ``size``, as the ``mode`` of `np.take` has it."""
    indices = np.asarray(indices)
    if mode == "wrap":
        return indices % size
    return np.clip(indices, 0, size - 1) if mode == "clip" else indices


nondiff(within)


@query
def _dtype(a: Any) -> Any:
    return np.result_type(a) if isinstance(a, (np.ndarray, np.generic)) else np.asarray(a).dtype


def _along(index: Any, axis: int, ndim: int) -> tuple[Any, ...]:
    """``index`` as an index into ``axis``."""
    return (slice(None),) * (axis % ndim) + (index,)


@rrule(np.compress)
def compress(condition, a, axis=None, out=None):
    def pullback(dz):
        index = np.flatnonzero(condition)
        if axis is None:
            d = np.reshape(scatter(dz, index, (np.size(a),), _dtype(a)), np.shape(a))
        else:
            d = scatter(dz, _along(index, settled(axis), np.ndim(a)), np.shape(a), _dtype(a))
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
        return None, tuple(d) if isinstance(choices, tuple) else np.array(d) if isinstance(choices, np.ndarray) else d

    return np.choose(a, choices, mode=mode), pullback


@rrule(np.bincount)
def bincount(x, /, weights: Operand = None, minlength=0):
    def pullback(dz):
        return None, None if weights is None else unbroadcast(np.take(dz, x), weights)

    return np.bincount(x, weights, minlength), pullback


@rrule(np.interp)
def interp(x, xp, fp, left: Operand = None, right: Operand = None, period=None):
    z = np.interp(x, xp, fp, left, right, period)

    def pullback(dz):
        at, nodes, values, order = x, np.asarray(xp), np.asarray(fp), None
        if period is not None:
            at, order = np.remainder(x, period), np.argsort(np.remainder(nodes, period))
            nodes = np.remainder(nodes, period)[order]
            values = values[order]
            nodes = np.concatenate([nodes[-1:] - period, nodes, nodes[:1] + period])
            values = np.concatenate([values[-1:], values, values[:1]])
        below, above = np.less(at, nodes[0]), np.greater(at, nodes[-1])
        outside = np.logical_or(below, above)
        i = np.clip(np.searchsorted(nodes, at, side="right") - 1, 0, max(len(nodes) - 2, 0))
        j = np.minimum(i + 1, len(nodes) - 1)
        width = np.where(np.equal(i, j), 1, nodes[j] - nodes[i])
        slope = np.where(outside, 0, (values[j] - values[i]) / width)
        t = np.clip(np.where(np.equal(i, j), 0, (at - nodes[i]) / width), 0, 1)
        dvalue = dz
        dleft = dright = None
        if left is not None and period is None:
            dleft = unbroadcast(np.where(below, dz, 0), left)
            dvalue = np.where(below, 0, dvalue)
        if right is not None and period is None:
            dright = unbroadcast(np.where(above, dz, 0), right)
            dvalue = np.where(above, 0, dvalue)
        zeros = np.zeros(np.shape(nodes), _dtype(dz))
        dvalues = scatter_add(scatter_add(zeros, i, dvalue * (1 - t)), j, dvalue * t)
        dnodes = scatter_add(scatter_add(zeros, i, -dz * slope * (1 - t)), j, -dz * slope * t)
        if period is not None:
            dvalues, dnodes = _unwrapped(dvalues, order), _unwrapped(dnodes, order)
        return (
            unbroadcast(dz * slope, x),
            unbroadcast(dnodes, xp),
            unbroadcast(dvalues, fp),
            dleft,
            dright,
        )

    return z, pullback


def _unwrapped(d: Any, order: Any) -> Any:
    """Cotangents of the nodes of one period, from those of the nodes with a neighbour added on both sides."""
    inner = scatter_add(scatter_add(d[1:-1], -1, d[0]), 0, d[-1])
    return scatter(inner, order, np.shape(inner), _dtype(inner))


nondiff(np.nonzero, np.flatnonzero, np.argwhere, np.ndarray.nonzero)
nondiff(np.searchsorted, np.digitize, *methods("searchsorted"))
nondiff(np.isin, np.unravel_index, np.ravel_multi_index)
