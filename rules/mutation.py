"""What writes into arrays, as pure functions that return the array which the write would leave behind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .broadcasting import broadcast_axes, cast, is_integral, is_sequence, unbroadcast
from .registry import mutates, nondiff, query, rrule
from .zeros import conj, cotangent_dtype, is_plain, product, ratio


def setitem(x: Any, index: Any, value: Any) -> Any:
    """A copy of ``x`` with ``value`` written at ``index``."""
    y = np.array(x, order="K")  # the cotangent of a 0-d array may be a NumPy scalar
    y[index] = value
    return y


@rrule(setitem)
def _setitem(x, index, value):
    def pullback(dz):
        dv = dz[index]
        if may_repeat(index):
            dv = np.where(last_writes(index, np.shape(x)), dv, 0)
        return setitem(dz, index, 0), None, unbroadcast(dv, value)

    def pullback_of_mask(dz):
        dv = of_places(dz, index, np.shape(value))
        return setitem(dz, index, 0), None, unbroadcast(dv, value)

    masked = is_mask(index) and not is_sequence(value)
    return setitem(x, index, value), pullback_of_mask if masked else pullback


def of_places(d: Any, index: Any, shape: tuple[int, ...]) -> Any:
    """``d[index]``, summed to the ``shape`` of what was broadcast to these places, whose number may change."""
    found = d[index]
    axes = broadcast_axes(np.shape(found), shape)
    found = np.add.reduce(found, axis=axes) if axes else found
    return found if np.shape(found) == shape else np.reshape(found, shape)[()]


of_places.steady = True  # type: ignore[attr-defined]


@rrule(of_places)
def _of_places(d, index, shape):
    def pullback(dz):
        return setitem(np.zeros(np.shape(d), d.dtype), index, dz), None, None

    return of_places(d, index, shape), pullback


@query
def is_mask(index: Any) -> bool:
    """Does ``index`` name places by an array of bools?"""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(i, np.ndarray) and i.ndim > 0 and i.dtype == bool for i in parts)


def scatter(d: Any, index: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros of ``shape`` and ``dtype`` with ``d`` added at ``index``: the pullback of ``x[index]``."""
    y = np.zeros(shape, dtype)
    if may_repeat(index):
        np.add.at(y, index, d)
    else:
        y[index] = d
    return y


@rrule(scatter)
def _scatter(d, index, shape, dtype):
    def pullback(dz):
        return unbroadcast(dz[index], d), None, None, None

    return scatter(d, index, shape, dtype), pullback


def scatter_add(x: Any, index: Any, d: Any) -> Any:
    """A copy of ``x`` with ``d`` added at ``index``, repeated indices counted each time."""
    y = np.array(x, order="K")  # a copy of a scalar would be one
    np.add.at(y, index, d)
    return y


@rrule(scatter_add)
def _scatter_add(x, index, d):
    def pullback(dz):
        return dz, None, unbroadcast(dz[index], d)

    return scatter_add(x, index, d), pullback


@query
def may_repeat(index: Any) -> bool:
    """Can ``index`` name an element twice? Only arrays of integers can, and sequences that NumPy makes such of."""
    for i in index if isinstance(index, tuple) else (index,):
        if is_sequence(i) or (isinstance(i, np.ndarray) and i.ndim):
            if np.asarray(i).dtype.kind in "iu":
                return True
    return False


def last_writes(index: Any, shape: tuple[int, ...]) -> Any:
    """Which of the elements of ``x[index]`` an assignment leaves in place: the last one where some coincide."""
    owner = np.empty(shape, np.intp)
    ids = np.arange(owner[index].size).reshape(owner[index].shape)
    owner[index] = ids
    return owner[index] == ids


nondiff(last_writes)


def write_through(
    parent: Any, view: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], new: Any
) -> Any:
    """A copy of ``parent`` after ``new`` has been written into its view ``view(parent, *args, **kwargs)``."""
    y = np.array(parent, order="K")  # which may be a scalar, as in `setitem`
    part = view(y, *args, **kwargs)
    if np.may_share_memory(part, y) or not y.size:
        part[...] = new
        return y
    # Where the copy is laid out in another way than the original, a reshape may have copied: find the
    # elements by their number instead.
    y = np.array(parent, order="C")
    where = view(np.arange(y.size).reshape(y.shape), *args, **kwargs)
    y.reshape(-1)[where] = new
    return y


@rrule(write_through)
def _write_through(parent, view, args, kwargs, new):
    def pullback(dz):
        dz = dz if np.ndim(parent) else np.asarray(dz)  # a scalar has not all views of an array
        if by_memory(args, kwargs):
            dz = laid_out_as(dz, parent)
        # What is seen as real and imaginary part has the cotangents of these, without conjugation.
        complex_parent, complex_view = np.iscomplexobj(parent), np.iscomplexobj(new)
        source = conj(dz) if complex_parent and not complex_view else dz
        part = view(source, *args, **kwargs)
        part = conj(part) if complex_view and not complex_parent else part
        dnew = None if is_integral(new) else unbroadcast(part, new)
        return write_through(dz, view, args, kwargs, 0), None, None, None, dnew

    return write_through(parent, view, args, kwargs, new), pullback


def at_places(x: Any, places: Any) -> Any:
    """The elements of ``x`` with these numbers, counted along the rows: what another array shows of its memory."""
    return np.reshape(x, -1)[places]


@rrule(at_places)
def _at_places(x, places):
    def pullback(dz):
        d = scatter(dz, places, (np.size(x),), cotangent_dtype(x))
        return unbroadcast(np.reshape(d, np.shape(x)), x), None

    return at_places(x, places), pullback


@query
def by_memory(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Does the view go by how its array lies in memory, as the orders "A" and "K" do?"""
    return any(isinstance(x, str) and x in "AK" for x in (*args, *kwargs.values()))


def laid_out_as(d: Any, x: Any) -> Any:
    """A copy of ``d`` that lies in memory as ``x`` does."""
    y = np.empty_like(x, d.dtype, order="K")
    y[...] = d
    return y


@rrule(laid_out_as)
def _laid_out_as(d, x):
    def pullback(dz):
        return dz, None

    return laid_out_as(d, x), pullback


def multiply_at(x: Any, index: Any, factor: Any) -> Any:
    """A copy of ``x`` after ``np.multiply.at(x, index, factor)``."""
    y = np.array(x, order="K")  # which may be a scalar, as in `setitem`
    np.multiply.at(y, index, factor)
    return y


@rrule(multiply_at)
def _multiply_at(x, index, factor):
    def pullback(dz):
        if may_repeat(index):
            d = dz[index] * others_at(x, index, factor)
        elif is_mask(index) and not is_sequence(factor):
            d = of_places(product(dz, x), index, np.shape(factor))
        else:
            d = dz[index] * x[index]
        return multiply_at(dz, index, factor), None, unbroadcast(d, factor)

    return multiply_at(x, index, factor), pullback


def others_at(x: Any, index: Any, factor: Any) -> Any:
    """For each factor of `multiply_at` the product of the element and of the other factors there, zeros or not."""
    with np.errstate(all="ignore"):
        z = multiply_at(x, index, factor)[index]
        found = z / factor
        if np.all(np.isfinite(found) & (np.abs(z) >= np.finfo(found.dtype).tiny)):
            return found
    places = np.arange(np.size(x)).reshape(np.shape(x))[index]
    order = np.argsort(places, axis=None, kind="stable")
    place = places.reshape(-1)[order]
    factors = np.broadcast_to(factor, places.shape).reshape(-1)[order]
    found = np.empty(place.shape, np.result_type(x, factors))
    with np.errstate(all="ignore"):
        before = products_before(place, factors)
        after = products_before(place[::-1], factors[::-1])[::-1]
        found[order] = np.reshape(x, -1)[place] * before * after
    return found.reshape(places.shape)


def products_before(place: Any, factors: Any) -> Any:
    """For each of ``factors`` the product of those before it that have its place; those of one place are together."""
    here = np.arange(place.size)
    follows = np.equal(place, np.roll(place, 1)) & (here > 0)
    turn = here - np.maximum.accumulate(np.where(follows, 0, here))
    found = np.where(follows, np.roll(factors, 1), np.ones_like(factors))
    step = 1
    while step <= turn.max(initial=0):  # each holds the last ``step`` of its factors
        found = np.where(turn >= step, np.roll(found, step) * found, found)
        step *= 2
    return found


@rrule(others_at)
def _others_at(x, index, factor):
    z = others_at(x, index, factor)

    def pullback(dz):
        w = dz * z
        rest = scatter(w, index, np.shape(x), w.dtype)[index] - w
        dfactor = np.where(divides(x, index, factor), ratio(rest, factor), 0)
        dx = dz * others_at(np.ones_like(x), index, factor)
        dx = scatter(dx, index, np.shape(x), dx.dtype)
        return unbroadcast(dx, x), None, unbroadcast(dfactor, factor)

    return z, pullback


def divides(x: Any, index: Any, factor: Any) -> Any:
    """Where a product of factors of `multiply_at` can be divided by one of them; none but a lone one may be zero."""
    places = np.arange(np.size(x)).reshape(np.shape(x))[index]
    zero = np.broadcast_to(np.equal(factor, 0), places.shape)
    if np.any(np.bincount(places.reshape(-1))[places[zero]] > 1):
        raise NotImplementedError(
            "np.multiply.at with a factor of zero at a place that has several factors, beyond the first derivative"
        )
    return ~zero


nondiff(divides)


# ---------------------------------------------------------------------- mutators, by their equivalents


def _resized(index: Any, size: int) -> Any:
    """The numbers 0 to ``size``, over and over."""
    return np.resize(np.arange(size), np.size(index))


nondiff(_resized)


def reused(values, like):
    """``values`` in a row, over and over as `np.put` and `np.place` reuse too few, as many as ``like`` has; or one."""
    values = np.reshape(values, -1)
    size = np.size(values)
    return values if size == 1 or size == np.size(like) else values[_resized(like, size)]


@mutates(np.ndarray.fill)
def fill(a, value):
    return setitem(a, ..., np.reshape(value, ()) if may_fill(a, value) else value)


@query
def may_fill(a: Any, value: Any) -> bool:
    """Is ``value`` an array of one element? Raises what NumPy raises for what an array cannot be filled with."""
    if is_sequence(value) or np.ndim(value):
        np.ndarray.fill(np.empty((), a.dtype), value)
        return True
    return False


@mutates(np.ndarray.sort)
def sort(a, axis=-1, kind=None, order=None, **options):
    return np.sort(a, axis, kind, order, **options)


@mutates(np.ndarray.partition)
def partition(a, kth, axis=-1, kind="introselect", order=None):
    return np.partition(a, kth, axis, kind, order)


@mutates(np.put)
def put_function(a, ind, v, mode="raise"):
    return put(a, ind, v, mode)


@mutates(np.ndarray.put)
def put(a, indices, values, mode="raise"):
    numbers = put_index(indices, np.size(a), mode)
    return with_numbers(a, numbers, reused(values, numbers))


def with_numbers(a, numbers, values):
    """``a`` with values written to the elements with these numbers, counted along the rows; it lies as ``a`` does."""
    if np.ndim(a) < 2:
        return np.reshape(setitem(np.reshape(a, -1), numbers, values), np.shape(a))
    return setitem(a, at_numbers(numbers, np.shape(a)), values)


def at_numbers(numbers: Any, shape: tuple[int, ...]) -> Any:
    """The index of the elements with these numbers, counted along the rows. A negative one counts from the end."""
    size = math.prod(shape)
    if np.any((numbers >= size) | (numbers < -size)):
        np.empty(size, bool)[numbers]  # which raises
    return np.unravel_index(np.where(numbers < 0, numbers + size, numbers), shape)


nondiff(at_numbers)


def put_index(indices: Any, size: int, mode: str) -> Any:
    """``indices`` in a row and below ``size``, as the ``mode`` of `np.put` has it."""
    index = np.reshape(np.asarray(indices), -1).astype(np.intp)
    if mode == "wrap":
        return index % size
    return np.clip(index, 0, size - 1) if mode == "clip" else index


nondiff(put_index)


@mutates(np.copyto)
def copyto(dst, src, casting="same_kind", where=True):
    must_be_castable(dst, src, casting)
    if where is True:
        return setitem(dst, ..., src)
    return laid_out_as(np.where(where, cast(src, dst.dtype), dst), dst)


def must_be_castable(dst: Any, src: Any, casting: Any) -> None:
    """Raise what `np.copyto` raises where the types do not allow it."""
    if not np.can_cast(np.asarray(src).dtype, dst.dtype, casting):
        np.copyto(dst.copy(), src, casting)


nondiff(must_be_castable)


@mutates(np.place)
def place(arr, mask, vals):
    numbers = np.flatnonzero(mask)
    return with_numbers(arr, numbers, reused(vals, numbers))


@mutates(np.putmask)
def putmask(a, mask, values):
    every = reused(values, a)
    every = np.reshape(every, () if np.size(every) == 1 else np.shape(a))
    return laid_out_as(np.where(mask, cast(every, a.dtype), a), a)


@mutates(np.add.at)
def add_at(a, indices, b):
    return scatter_add(a, indices, b)


@mutates(np.subtract.at)
def subtract_at(a, indices, b):
    return scatter_add(a, indices, -b if is_plain(b) else np.negative(b, dtype=common_dtype(a, b)))


@query
def common_dtype(a: Any, b: Any) -> Any:
    """The dtype in which NumPy computes with ``a`` and ``b``: unsigned integers have no negatives of their own."""
    return np.result_type(a.dtype, np.asarray(b).dtype)


@mutates(np.multiply.at)
def multiply_at_(a, indices, b):
    return multiply_at(a, indices, b)


@mutates(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False):
    numbers = diagonal_numbers(np.shape(a), wrap)
    return with_numbers(a, numbers, reused(val, numbers))


def diagonal_numbers(shape: tuple[int, ...], wrap: bool) -> Any:
    """Where the diagonal lies among the elements counted along the rows."""
    a = np.zeros(shape, bool)
    np.fill_diagonal(a, True, wrap)
    return np.flatnonzero(a)


nondiff(diagonal_numbers)
