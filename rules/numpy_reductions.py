"""What takes many elements together: sums and products, extremes, moments, cumulative forms, sorting."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .broadcasting import axis_size, expand, is_sequence, normal_axes, restore, settled, unbroadcast
from .equivalents import like
from .mutation import scatter
from .numpy_ufuncs import methods
from .registry import Operand, nondiff, query, rrule
from .zeros import as_computed, conj, float_dtype, product, quotient, ratio


def _array(a: Any) -> Any:
    """``a``, or the array that NumPy makes of a list."""
    return np.asarray(a) if is_sequence(a) else a


@query
def _given(where: Any) -> bool:
    """Was a mask given for ``where=``?"""
    return not (where is True or where is np._NoValue)


def _options(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not np._NoValue}


def _spread(dz: Any, a: Any, axis: Any, where: Any) -> Any:
    """The cotangent of a sum over ``axis``, in the shape of ``a``; zero where ``where`` leaves elements out."""
    d = expand(dz, np.shape(a), axis)
    return np.where(where, d, 0) if _given(where) else d


# ------------------------------------------------------------------------------------- sums and products


@rrule(np.sum, *methods("sum"))
def sum_(
    a,
    axis=None,
    dtype=None,
    out=None,
    keepdims=np._NoValue,
    initial: Operand = np._NoValue,
    where: Operand = np._NoValue,
):
    axis = settled(axis)
    options = _options(keepdims=keepdims, initial=initial, where=where)
    z = np.sum(a, axis=axis, dtype=dtype, **options)

    def pullback(dz):
        da = unbroadcast(_spread(dz, a, axis, where), a)
        return (
            da,
            None,
            None,
            None,
            None,
            unbroadcast(dz, initial) if "initial" in options else None,
        )

    return z, pullback


@rrule(np.add.reduce)
def add_reduce(
    array,
    axis=0,
    dtype=None,
    out=None,
    keepdims=False,
    initial: Operand = np._NoValue,
    where: Operand = True,
):
    return sum_(array, axis, dtype, out, keepdims, initial, where)


@rrule(np.add.reduceat)
def add_reduceat(array, indices, axis=0, dtype=None, out=None):
    z = np.add.reduceat(array, indices, axis, dtype)

    def pullback(dz):
        along = settled(axis) % np.ndim(array)
        before = (slice(None),) * along
        places, sums = segments(indices, np.shape(array)[along])
        d = scatter(dz[(*before, sums)], (*before, places), np.shape(array), dz.dtype)
        return unbroadcast(d, array), None

    return z, pullback


def segments(indices: Any, size: int) -> tuple[Any, Any]:
    """The places that `np.add.reduceat` adds up, and the number of the sum to which each of them goes."""
    starts = np.asarray(indices)
    stops = np.append(starts[1:], size)
    lengths = np.where(stops > starts, stops - starts, 1)
    sums = np.repeat(np.arange(len(starts)), lengths)
    offsets = np.arange(len(sums)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return starts[sums] + offsets, sums


nondiff(segments)


@rrule(np.nansum)
def nansum(
    a,
    axis=None,
    dtype=None,
    out=None,
    keepdims=np._NoValue,
    initial: Operand = np._NoValue,
    where: Operand = np._NoValue,
):
    axis = settled(axis)
    options = _options(keepdims=keepdims, initial=initial, where=where)
    z = np.nansum(a, axis=axis, dtype=dtype, **options)

    def pullback(dz):
        da = unbroadcast(np.where(np.isnan(a), 0, _spread(dz, a, axis, where)), a)
        dinitial = unbroadcast(dz, initial) if "initial" in options else None
        return da, None, None, None, None, dinitial

    return z, pullback


@rrule(np.mean, *methods("mean"))
def mean(a, axis=None, dtype=None, out=None, keepdims=np._NoValue, *, where: Operand = np._NoValue):
    axis = settled(axis)
    z = np.mean(a, axis=axis, dtype=dtype, **_options(keepdims=keepdims, where=where))

    def pullback(dz):
        n = _count(a, axis, where)
        d = quotient(restore(dz, a, axis), n) if _given(where) else dz / n
        return (unbroadcast(_spread(d, a, axis, where), a),)

    return z, pullback


def _count(a: Any, axis: Any, where: Any) -> Any:
    """How many elements a mean takes together; of `restore`'s shape if a mask says so."""
    if not _given(where):
        return axis_size(np.shape(a), axis)
    return np.add.reduce(np.broadcast_to(where, np.shape(a)), axis=axis, dtype=int, keepdims=True)


def _moment(fn: Any, slope: Any) -> None:
    """The rule of the variance, or of what has the slope ``slope(z)`` by it."""

    @rrule(fn, *methods(fn.__name__))
    def moment(
        a,
        axis=None,
        dtype=None,
        out=None,
        ddof: Operand = 0,
        keepdims=np._NoValue,
        *,
        where: Operand = np._NoValue,
        mean: Operand = np._NoValue,
        correction: Operand = np._NoValue,
    ):
        axis = settled(axis)
        options = _options(keepdims=keepdims, where=where, mean=mean, correction=correction)
        z = fn(a, axis=axis, dtype=dtype, ddof=ddof, **options)

        def pullback(dz):
            x = _array(a)
            less = ddof if correction is np._NoValue else correction
            n = _count(x, axis, where) - less
            given = mean is not np._NoValue
            deviation = x - (mean if given else _mean(x, axis, where))
            if not given:
                # The mean is rounded. Of equal numbers what is left would be all that there is, over a deviation that
                # is as small.
                deviation = deviation - _mean(deviation, axis, where)
            dvariance = restore(slope(dz, z), x, axis)
            d = product(dvariance, quotient(2.0, n) * conj(deviation))
            if _given(where):
                d = np.where(where, d, 0)
            dmean = unbroadcast(-d, mean) if given else None
            dless = None
            if not isinstance(less, (int, np.integer)):
                dless = unbroadcast(np.sum(d * deviation / (2 * n)), less)
            if correction is np._NoValue:
                return unbroadcast(d, a), None, None, None, dless, None, None, dmean
            return unbroadcast(d, a), *(None,) * 6, dmean, dless

        return z, pullback


def _mean(x: Any, axis: Any, where: Any) -> Any:
    """The mean along ``axis`` that broadcasts against ``x``."""
    return np.mean(x, axis=axis, keepdims=True, **_options(where=where))


_moment(np.var, lambda dz, z: dz)
_moment(np.std, lambda dz, z: product(dz, ratio(0.5, z)))


@rrule(np.prod, *methods("prod"))
def prod(
    a,
    axis=None,
    dtype=None,
    out=None,
    keepdims=np._NoValue,
    initial: Operand = np._NoValue,
    where: Operand = np._NoValue,
):
    axis = settled(axis)
    options = _options(keepdims=keepdims, initial=initial, where=where)
    z = np.prod(a, axis=axis, dtype=dtype, **options)

    def pullback(dz):
        x = np.where(where, a, 1) if _given(where) else _array(a)
        d = restore(dz, x, axis)
        dinitial = None
        if "initial" in options:
            dinitial = unbroadcast(d * np.prod(x, axis=axis, keepdims=True), initial)
            d = d * initial
        d = product(d, _others(x, axis))
        return unbroadcast(np.where(where, d, 0) if _given(where) else d, a), *(None,) * 4, dinitial

    return z, pullback


@rrule(np.multiply.reduce)
def multiply_reduce(
    array,
    axis=0,
    dtype=None,
    out=None,
    keepdims=False,
    initial: Operand = np._NoValue,
    where: Operand = True,
):
    return prod(array, axis, dtype, out, keepdims, initial, where)


def _others(x: Any, axis: Any) -> Any:
    """For each element of ``x`` the product of all the others along ``axis``, zeros or not."""
    order, inverse, shape, moved = axis_last(np.shape(x), axis)
    flat = np.reshape(np.transpose(x, order), shape)
    ones = np.ones_like(flat[..., :1])
    before = np.cumprod(np.concatenate([ones, flat[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([ones, flat[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    return np.transpose(np.reshape(before * after, moved), inverse)


@query
def axis_last(shape: tuple[int, ...], axis: Any) -> tuple[Any, Any, Any, Any]:
    """How to move ``axis`` to the end as a single axis, and back again."""
    axes = normal_axes(axis, len(shape))
    order = [*(i for i in range(len(shape)) if i not in axes), *axes]
    inverse = [order.index(i) for i in range(len(shape))]
    kept = [shape[i] for i in order[: len(order) - len(axes)]]
    size = 1
    for i in axes:
        size *= shape[i]
    return tuple(order), tuple(inverse), (*kept, size), tuple(shape[i] for i in order)


# ---------------------------------------------------------------------------------------- extreme values


def ties(a: Any, z: Any, axis: Any, where: Any = True, among: bool = True, out: Any = None) -> Any:
    """The part of each element of ``a`` in the extreme value ``z`` along ``axis``; ties share equally.

    ``among`` tells that ``z`` is one of the elements, whatever they are. The result may be in ``out``.
    """
    a, kept = as_computed(a, z), restore(z, a, axis)
    hit = np.equal(a, kept)
    if np.isnan(z).any():
        hit |= np.isnan(a) & np.isnan(kept)  # the extreme value of what holds a NaN is that NaN
    if _given(where):
        hit &= where
    elif among and np.count_nonzero(hit) == np.size(z):
        if out is not None:
            np.copyto(out, hit)
            return out
        return hit.astype(float_dtype(z))  # at least one for each, so that there are no ties
    count = np.add.reduce(hit, axis=axis, dtype=np.intp, keepdims=True)
    return (hit / np.maximum(count, 1)).astype(float_dtype(z), copy=False)


nondiff(ties)


def _extreme(fn: Any, *names: Any) -> None:
    @rrule(fn, *names)
    def extreme(
        a,
        axis=None,
        out=None,
        keepdims=np._NoValue,
        initial: Operand = np._NoValue,
        where: Operand = np._NoValue,
    ):
        axis = settled(axis)
        options = _options(keepdims=keepdims, initial=initial, where=where)
        z = fn(a, axis=axis, **options)

        def pullback(dz):
            da, dinitial = _to_extremes(dz, a, z, axis, options, where)
            return da, None, None, None, dinitial

        return z, pullback


def _to_extremes(dz: Any, a: Any, z: Any, axis: Any, options: Any, where: Any) -> tuple[Any, Any]:
    """The cotangents of what the extreme values ``z`` were found among, and of the initial value."""
    share = ties(a, z, axis, where, "initial" not in options)
    d = restore(dz, a, axis)
    dinitial = None
    if "initial" in options:
        left = 1 - np.add.reduce(share, axis=axis, keepdims=True)
        dinitial = unbroadcast(d * left, options["initial"])
    return unbroadcast(d * share, a), dinitial


_extreme(np.max, np.amax, *methods("max"))
_extreme(np.min, np.amin, *methods("min"))
_extreme(np.nanmax)
_extreme(np.nanmin)


def _extreme_reduce(ufunc: np.ufunc) -> None:
    @rrule(ufunc.reduce)
    def reduce(
        array,
        axis=0,
        dtype=None,
        out=None,
        keepdims=False,
        initial: Operand = np._NoValue,
        where: Operand = True,
    ):
        axis = settled(axis)
        options = _options(initial=initial)
        z = ufunc.reduce(array, axis=axis, dtype=dtype, keepdims=keepdims, where=where, **options)

        def pullback(dz):
            da, dinitial = _to_extremes(dz, array, z, axis, options, where)
            return da, None, None, None, None, dinitial

        return z, pullback


for ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
    _extreme_reduce(ufunc)


@rrule(np.ptp)
def ptp(a, axis=None, out=None, keepdims=np._NoValue):
    axis = settled(axis)
    z = np.ptp(a, axis=axis, **_options(keepdims=keepdims))

    def pullback(dz):
        high, low = np.max(a, axis=axis), np.min(a, axis=axis)
        d = restore(dz, a, axis)
        return (unbroadcast(d * (ties(a, high, axis) - ties(a, low, axis)), a),)

    return z, pullback


nondiff(np.argmax, np.argmin, np.nanargmax, np.nanargmin, *methods("argmax"), *methods("argmin"))
nondiff(np.any, np.all, *methods("any"), *methods("all"), np.count_nonzero)
nondiff(np.logical_and.reduce, np.logical_or.reduce, np.logical_xor.reduce)


# -------------------------------------------------------------------------------------- cumulative forms


@rrule(np.cumsum, *methods("cumsum"))
def cumsum(a, axis=None, dtype=None, out=None):
    def pullback(dz):
        along = 0 if axis is None else axis
        d = np.flip(np.cumsum(np.flip(dz, along), axis=along), along)
        return (unbroadcast(np.reshape(d, np.shape(a)), a),)

    return np.cumsum(a, axis=axis, dtype=dtype), pullback


@rrule(np.add.accumulate)
def add_accumulate(array, axis=0, dtype=None, out=None):
    return cumsum(array, axis, dtype)


def recur(d: Any, a: Any) -> Any:
    """h_0 = d_0 and h_i = d_i + a_i h_(i-1), along the last axis."""
    h = np.array(np.broadcast_to(d, np.broadcast_shapes(np.shape(d), np.shape(a))), order="C")
    n = h.shape[-1]
    if h.size < FEW * n:  # Python's numbers are faster than short arrays
        rows, factors = h.reshape(-1, n), np.broadcast_to(a, h.shape).reshape(-1, n)
        for row, factor in zip(rows, factors, strict=True):
            steps = zip(row.tolist(), factor.tolist(), strict=True)
            row[:] = list(itertools.accumulate(steps, _recur_step, initial=0.0))[1:]
        return h
    for i in range(1, n):
        h[..., i] += a[..., i] * h[..., i - 1]
    return h


FEW = 20


def _recur_step(before: Any, step: tuple[Any, Any]) -> Any:
    return step[0] + step[1] * before if before else step[0]


@rrule(recur)
def _recur(d, a):
    h = recur(d, a)

    def pullback(dh):
        # The same recurrence, run from the end.
        w = np.flip(recur(np.flip(dh, -1), _shifted(np.flip(a, -1))), -1)
        return unbroadcast(w, d), unbroadcast(w * _shifted(h), a)

    return h, pullback


def _shifted(x: Any) -> Any:
    """``x`` moved by one along the last axis, with a zero before it."""
    return np.concatenate([np.zeros_like(x[..., :1]), x[..., :-1]], axis=-1)


@rrule(np.cumprod, *methods("cumprod"))
def cumprod(a, axis=None, dtype=None, out=None):
    z = np.cumprod(a, axis=axis, dtype=dtype)

    def pullback(dz):
        x = np.reshape(a, np.shape(z))
        if axis is not None:
            x, z_, d = (np.moveaxis(v, axis, -1) for v in (x, z, dz))
        else:
            z_, d = z, dz
        # With p_i the product of all before i: dx_i = p_i h_i, h_i = dz_i + x_(i+1) h_(i+1).
        h = np.flip(recur(np.flip(d, -1), _shifted(np.flip(x, -1))), -1)
        before = np.concatenate([np.ones_like(z_[..., :1]), z_[..., :-1]], axis=-1)
        dx = product(h, before)
        if axis is not None:
            dx = np.moveaxis(dx, -1, axis)
        return (unbroadcast(np.reshape(dx, np.shape(a)), a),)

    return z, pullback


@rrule(np.multiply.accumulate)
def multiply_accumulate(array, axis=0, dtype=None, out=None):
    return cumprod(array, axis, dtype)


def holders(a: Any, z: Any, axis: int) -> Any:
    """The position along ``axis`` of the element that holds the running extreme ``z``, the latest of equals."""
    n = np.shape(a)[axis]
    steps = np.reshape(
        np.arange(n), [n if i == axis % np.ndim(a) else 1 for i in range(np.ndim(a))]
    )
    a = as_computed(a, z)
    hit = np.equal(a, z) | np.isnan(a) & np.isnan(z)
    return np.maximum.accumulate(np.where(hit, steps, 0), axis=axis)


nondiff(holders)


def put_along(d: Any, indices: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Zeros of ``shape`` with ``d`` added at ``indices`` along ``axis``: the pullback of take_along_axis."""
    y = np.zeros(shape, float_dtype(d))
    index = list(np.ogrid[tuple(slice(n) for n in np.shape(indices))])
    index[axis] = indices
    np.add.at(y, tuple(index), d)
    return y


@rrule(put_along)
def _put_along(d, indices, shape, axis):
    def pullback(dz):
        return unbroadcast(np.take_along_axis(dz, indices, axis), d), None, None, None

    return put_along(d, indices, shape, axis), pullback


def _running(ufunc: np.ufunc) -> None:
    @rrule(ufunc.accumulate)
    def running(array, axis=0, dtype=None, out=None):
        z = ufunc.accumulate(array, axis=axis, dtype=dtype)

        def pullback(dz):
            return (
                unbroadcast(put_along(dz, holders(array, z, axis), np.shape(array), axis), array),
            )

        return z, pullback


_running(np.maximum)
_running(np.minimum)


# ------------------------------------------------------------------------------------------------ sorting


def origins(a: Any, z: Any, axis: int) -> Any:
    """The position in ``a`` of each element of ``z``, which holds the same elements in another order."""
    order = np.argsort(z, axis=axis, kind="stable")
    where = np.empty_like(order)
    np.put_along_axis(where, order, np.argsort(a, axis=axis, kind="stable"), axis=axis)
    return where


nondiff(origins)


def put_back(d: Any, order: Any, axis: int) -> Any:
    """The elements of ``d`` where they were before ``order`` was brought into them along ``axis``."""
    y = np.empty_like(d)
    np.put_along_axis(y, order, d, axis)
    return y


@rrule(put_back)
def _put_back(d, order, axis):
    def pullback(dz):
        return np.take_along_axis(dz, order, axis), None, None

    return put_back(d, order, axis), pullback


@rrule(np.sort)
def sort(a, axis=-1, kind=None, order=None, **options):
    z = np.sort(a, axis=axis, kind=kind, order=order, **options)

    def pullback(dz):
        flat, along = (np.ravel(a), -1) if axis is None else (_array(a), settled(axis))
        d = put_back(dz, np.argsort(flat, axis=along, kind="stable"), along)
        return (unbroadcast(np.reshape(d, np.shape(a)), a),)

    return z, pullback


@rrule(np.partition)
def partition(a, kth, axis=-1, kind="introselect", order=None):
    z = np.partition(a, kth, axis=axis, kind=kind, order=order)

    def pullback(dz):
        flat, along = (np.ravel(a), -1) if axis is None else (_array(a), settled(axis))
        d = put_back(dz, origins(flat, z, along), along)
        return unbroadcast(np.reshape(d, np.shape(a)), a), None

    return z, pullback


def middles(a: Any, axis: Any) -> tuple[Any, Any, Any]:
    """The places along an axis of the two middle ones (equal for an odd number) among those that are numbers.

    And the weight of each in the median: a half, or zero where there are no numbers.
    """
    order = np.argsort(a, axis=axis)  # NaN comes last
    count = np.sum(~np.isnan(a), axis=axis, keepdims=True)
    lower, upper = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, np.shape(a)[axis] - 1)
    low, high = (np.take_along_axis(order, i, axis) for i in (lower, upper))
    return low, high, 0.5 * (count > 0)


nondiff(middles)


@rrule(np.nanmedian)
def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=np._NoValue):
    axis = settled(axis)
    z = np.nanmedian(a, axis=axis, **_options(keepdims=keepdims))

    def pullback(dz):
        order, inverse, shape, moved = axis_last(np.shape(a), axis)
        if np.size(a) == 0:
            return (None,)
        x = np.reshape(np.transpose(_array(a), order), shape)
        low, high, weight = middles(x, -1)
        d = np.reshape(dz, np.shape(low)) * weight
        dx = put_along(d, low, shape, -1) + put_along(d, high, shape, -1)
        return (unbroadcast(np.transpose(np.reshape(dx, moved), inverse), a),)

    return z, pullback


nondiff(np.argsort, np.argpartition, np.lexsort, *methods("argsort"))
nondiff(np.ndarray.argpartition)


@rrule(np.unique)
def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, **options):
    z = np.unique(ar, return_index, return_inverse, return_counts, axis, **options)
    several = return_index or return_inverse or return_counts

    def pullback(dz):
        d = dz[0] if several else dz
        if d is None:
            return (None,)
        first = np.unique(ar, return_index=True, axis=axis, **options)[1]
        if axis is None:
            # with sorted=False NumPy may give the values in another order than with their indices
            order = np.argsort(z[0] if several else z)
            d = np.take(d, order)
            flat = scatter(d, first, (np.size(ar),), d.dtype)
            return (unbroadcast(np.reshape(flat, np.shape(ar)), ar),)
        index = (slice(None),) * (axis % np.ndim(ar)) + (first,)
        return (unbroadcast(scatter(d, index, np.shape(ar), d.dtype), ar),)

    return z, pullback


@rrule(np.ediff1d)
def ediff1d(ary, to_end: Operand = None, to_begin: Operand = None):
    z = np.ediff1d(ary, to_end, to_begin)

    def pullback(dz):
        begin = 0 if to_begin is None else np.size(to_begin)
        stop = begin + np.size(ary) - 1
        d = dz[begin:stop]
        zero = np.zeros(1, d.dtype)
        flat = np.concatenate([zero, d]) - np.concatenate([d, zero])
        return (
            unbroadcast(np.reshape(flat, np.shape(ary)), ary),
            None
            if to_end is None
            else unbroadcast(np.reshape(dz[stop:], np.shape(to_end)), to_end),
            None
            if to_begin is None
            else unbroadcast(np.reshape(dz[:begin], np.shape(to_begin)), to_begin),
        )

    return z, pullback


# ---------------------------------------------------------------------------------------- np.gradient


@like(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    along, order = settled(axis), settled(edge_order)
    axes = range(np.ndim(f)) if along is None else along if is_sequence(along) else (along,)
    steps = varargs if len(varargs) == len(axes) else (varargs or (1.0,)) * len(axes)
    found = [_slopes(f, step, axis, order) for step, axis in zip(steps, axes)]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(f: Any, step: Any, axis: int, order: int) -> Any:
    """`np.gradient` along one axis, by the formula for coordinates at any distances.

    Where they are evenly spaced, NumPy goes by the first distance alone: the value is the same, the derivative is not.
    """
    f = np.moveaxis(f, axis, -1)
    even = np.ndim(step) == 0
    width = step if even else np.diff(step)
    slope = np.diff(f) / width
    left, right, first, last = slope[..., :-1], slope[..., 1:], slope[..., :1], slope[..., -1:]
    before, after = (width, width) if even else (width[:-1], width[1:])
    inner = (after * left + before * right) / (before + after)
    if order == 2:
        bend = (right - left) / (before + after)
        start, end = (width, width) if even else (width[:1], width[-1:])
        first, last = first - bend[..., :1] * start, last + bend[..., -1:] * end
    return np.moveaxis(np.concatenate((first, inner, last), -1), -1, axis)
