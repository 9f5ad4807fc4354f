"""What moves elements about without computing: shapes, axes, joining, repeating, copying, diagonals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .broadcasting import is_sequence, settled, unbroadcast
from .mutation import scatter
from .numpy_ufuncs import methods
from .registry import nondiff, query, rrule
from .zeros import cotangent_dtype, float_dtype

# ------------------------------------------------------------------------------------------------ shapes


def axes_read(x: Any, order: str) -> Any:
    """The axes of an array as reading it in the order "A" or "K" goes through them, the slowest first."""
    axes = range(np.ndim(x))
    if order == "A":
        return np.array(axes[::-1] if np.isfortran(x) else axes)
    # NumPy is asked, on a small array that lies like this one: an axis along which the same elements come again and
    # again may stand anywhere.
    shape = [min(n, 2) for n in np.shape(x)]
    strides = [abs(n) for n in x.strides]
    small = np.lib.stride_tricks.as_strided(np.empty(0, x.dtype), shape, strides)
    steps = np.nditer(small, ["multi_index", "refs_ok", "zerosize_ok"], order="K")
    found: list[int] = []
    while not steps.finished:
        found += [i for i, k in enumerate(steps.multi_index) if k and i not in found]
        steps.iternext()
    return np.array([*(i for i in axes if i not in found), *found[::-1]])


nondiff(axes_read)


def read_out(x: Any, axes: Any, shape: tuple[int, ...]) -> Any:
    """``x``, read through its ``axes``, in another shape."""
    order = list(axes)
    if order == list(range(np.ndim(x)))[::-1]:
        return np.reshape(x, shape, order="F")
    return np.reshape(np.transpose(x, order), shape)


def lay_out(d: Any, axes: Any, shape: tuple[int, ...]) -> Any:
    """``d``, which `read_out` made, back in the shape that it was read from."""
    order = list(axes)
    if order == list(range(len(shape)))[::-1]:
        return np.reshape(d, shape, order="F")
    return np.transpose(np.reshape(d, [shape[i] for i in order]), np.argsort(order))


@rrule(read_out)
def _read_out(x, axes, shape):
    def pullback(dz):
        return lay_out(dz, axes, np.shape(x)), None, None

    return read_out(x, axes, shape), pullback


@rrule(lay_out)
def _lay_out(d, axes, shape):
    def pullback(dz):
        return read_out(dz, axes, np.shape(d)), None, None

    return lay_out(d, axes, shape), pullback


def reshaped(x: Any, order: str) -> Callable[[Any], Any]:
    """What brings a cotangent back into the shape of ``x``, which is read in this order."""
    if order in ("A", "K") and np.ndim(x) > 1:
        axes = axes_read(x, order)
        return lambda dz: lay_out(dz, axes, np.shape(x))
    if order == "F":
        return lambda dz: np.reshape(dz, np.shape(x), order="F")
    return lambda dz: np.reshape(dz, np.shape(x))


@rrule(np.reshape)
def reshape(a, shape, order="C", **options):
    back = reshaped(a, order)

    def pullback(dz):
        return unbroadcast(back(dz), a), None

    return np.reshape(a, shape, order=order, **options), pullback


@rrule(*methods("reshape"))
def reshape_method(a, *shape, order="C", **options):
    back = reshaped(a, order)

    def pullback(dz):
        return unbroadcast(back(dz), a), *(None for _ in shape)

    return a.reshape(*shape, order=order, **options), pullback


@rrule(np.ravel, *methods("ravel"))
def ravel(a, order="C"):
    back = reshaped(a, order)

    def pullback(dz):
        return (unbroadcast(back(dz), a),)

    return np.ravel(a, order), pullback


@rrule(*methods("flatten"))
def flatten(a, order="C"):  # always a copy
    back = reshaped(a, order)

    def pullback(dz):
        return (unbroadcast(back(dz), a),)

    return a.flatten(order), pullback


@rrule(np.squeeze, *methods("squeeze"))
def squeeze(a, axis=None):
    def pullback(dz):
        return (unbroadcast(np.reshape(dz, np.shape(a)), a),)

    return np.squeeze(a, axis), pullback


@rrule(np.expand_dims)
def expand_dims(a, axis):
    def pullback(dz):
        return unbroadcast(np.reshape(dz, np.shape(a)), a), None

    return np.expand_dims(a, axis), pullback


@rrule(np.broadcast_to)
def broadcast_to(array, shape, subok=False):
    def pullback(dz):
        return unbroadcast(dz, array), None

    return np.broadcast_to(array, shape, subok), pullback


@rrule(np.broadcast_arrays)
def broadcast_arrays(*args, subok=False):
    def pullback(dz):
        return tuple(unbroadcast(d, x) for d, x in zip(dz, args))

    return np.broadcast_arrays(*args, subok=subok), pullback


@rrule(np.meshgrid)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    def pullback(dz):
        order = [1, 0, *range(2, len(xi))] if indexing == "xy" and len(xi) > 1 else range(len(xi))
        parts = []
        for d, own, x in zip(dz, order, xi):
            if d is not None:
                d = np.add.reduce(d, axis=tuple(i for i in range(len(xi)) if i != own))
                d = unbroadcast(np.reshape(d, np.shape(x)), x)
            parts.append(d)
        return tuple(parts)

    return np.meshgrid(*xi, copy=copy, sparse=sparse, indexing=indexing), pullback


# -------------------------------------------------------------------------------------------------- axes


@query
def inverse(axes: Any) -> Any:
    """The permutation of axes that undoes ``axes`` (None reverses them all)."""
    if axes is None:
        return None
    order = [int(i) % len(axes) for i in axes]
    return tuple(order.index(i) for i in range(len(order)))


@rrule(np.transpose)
def transpose(a, axes=None):
    def pullback(dz):
        return (unbroadcast(np.transpose(dz, inverse(settled(axes))), a),)

    return np.transpose(a, axes), pullback


@rrule(*methods("transpose"))
def transpose_method(a, *axes):
    alone = len(axes) == 1 and (axes[0] is None or is_sequence(axes[0]) or np.ndim(axes[0]))
    order = settled(axes[0] if alone else axes or None)

    def pullback(dz):
        return np.transpose(dz, inverse(order)), *(None for _ in axes)

    return np.transpose(a, order), pullback


@rrule(np.swapaxes, *methods("swapaxes"))
def swapaxes(a, axis1, axis2):
    def pullback(dz):
        return unbroadcast(np.swapaxes(dz, axis1, axis2), a), None, None

    return np.swapaxes(a, axis1, axis2), pullback


@rrule(np.moveaxis)
def moveaxis(a, source, destination):
    def pullback(dz):
        return unbroadcast(np.moveaxis(dz, destination, source), a), None, None

    return np.moveaxis(a, source, destination), pullback


if hasattr(np, "matrix_transpose"):  # new in NumPy 2

    @rrule(np.matrix_transpose, np.linalg.matrix_transpose)
    def matrix_transpose(x, /):
        def pullback(dz):
            return (unbroadcast(np.swapaxes(dz, -1, -2), x),)

        return np.matrix_transpose(x), pullback


@rrule(np.flip)
def flip(m, axis=None):
    def pullback(dz):
        return (unbroadcast(np.flip(dz, axis), m),)

    return np.flip(m, axis), pullback


@rrule(np.roll)
def roll(a, shift, axis=None):
    def pullback(dz):
        back = np.negative(shift, dtype=int)  # unsigned integers would stay so
        return unbroadcast(np.roll(dz, back, axis), a), None

    return np.roll(a, shift, axis), pullback


# ----------------------------------------------------------------------------------- joining, repeating


def _parts(parts: list[Any], arrays: Any) -> Any:
    """The cotangents of the arrays that were joined, as ``arrays`` holds them."""
    if not is_sequence(arrays):
        return np.reshape(np.stack(parts), np.shape(arrays)) if len(parts) else None
    d = [unbroadcast(p, x) for p, x in zip(parts, arrays)]
    return tuple(d) if isinstance(arrays, tuple) else d


@rrule(np.concatenate)
def concatenate(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    axis = settled(axis)
    z = np.concatenate(arrays, axis=axis, dtype=dtype, casting=casting)

    def pullback(dz):
        parts = [np.reshape(dz[s], shape) for s, shape in _slices(arrays, axis)]
        return (_parts(parts, arrays),)

    return z, pullback


@query
def _slices(arrays: Any, axis: Any) -> list[Any]:
    """Where each of ``arrays`` lies in their concatenation, and its shape."""
    start, slices = 0, []
    for x in arrays:
        shape = np.shape(x)
        if axis is None:
            stop = start + int(np.prod(shape))
            slices.append((slice(start, stop), shape))
        else:
            stop = start + shape[axis]
            slices.append(((slice(None),) * (axis % len(shape)) + (slice(start, stop),), shape))
        start = stop
    return slices


@rrule(np.stack)
def stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    axis = settled(axis)
    z = np.stack(arrays, axis=axis, dtype=dtype, casting=casting)

    def pullback(dz):
        before = (slice(None),) * (axis % np.ndim(dz))
        return (_parts([dz[(*before, i)] for i in range(len(arrays))], arrays),)

    return z, pullback


@rrule(np.vstack)
def vstack(tup, *, dtype=None, casting="same_kind"):
    z = np.vstack(tup, dtype=dtype, casting=casting)

    def pullback(dz):
        parts = [np.reshape(dz[s], shape) for s, shape in _rows(tup)]
        return (_parts(parts, tup),)

    return z, pullback


@query
def _rows(arrays: Any) -> list[Any]:
    """Where each of ``arrays`` lies in their vertical stack, and its shape."""
    start, slices = 0, []
    for x in arrays:
        stop = start + (np.shape(x)[0] if np.ndim(x) > 1 else 1)
        slices.append((slice(start, stop), np.shape(x)))
        start = stop
    return slices


@rrule(np.hstack)
def hstack(tup, *, dtype=None, casting="same_kind"):
    z = np.hstack(tup, dtype=dtype, casting=casting)

    def pullback(dz):
        parts = [np.reshape(dz[s], shape) for s, shape in _columns(tup)]
        return (_parts(parts, tup),)

    return z, pullback


@query
def _columns(arrays: Any) -> list[Any]:
    """Where each of ``arrays`` lies in their horizontal stack, and its shape."""
    start, slices = 0, []
    for x in arrays:
        shape = np.shape(x)
        flat = len(shape) < 2
        stop = start + (int(np.prod(shape)) if flat else shape[1])
        slices.append((slice(start, stop) if flat else (slice(None), slice(start, stop)), shape))
        start = stop
    return slices


@rrule(np.repeat, *methods("repeat"))
def repeat(a, repeats, axis=None):
    axis = settled(axis)
    z = np.repeat(a, repeats, axis)

    def pullback(dz):
        shape = (np.size(a),) if axis is None or np.ndim(a) == 0 else np.shape(a)
        along = 0 if axis is None else axis % len(shape)
        if np.ndim(repeats) == 0:
            d = np.reshape(dz, (*shape[: along + 1], repeats, *shape[along + 1 :]))
            d = np.add.reduce(d, axis=along + 1)
        else:
            index = np.repeat(np.arange(shape[along]), repeats)
            d = scatter(dz, (slice(None),) * along + (index,), shape, dz.dtype)
        return unbroadcast(np.reshape(d, np.shape(a)), a), None

    return z, pullback


@rrule(np.tile)
def tile(A, reps):
    def pullback(dz):
        d = np.reshape(dz, _tiles(np.shape(A), settled(reps)))
        return unbroadcast(np.add.reduce(d, axis=_counts(dz)), A), None

    return np.tile(A, reps), pullback


@query
def _tiles(shape: tuple[int, ...], reps: Any) -> tuple[int, ...]:
    """The shape of a tiling with two axes for each: the number of the tile, and the place in it."""
    counts = tuple(reps) if isinstance(reps, (tuple, list, np.ndarray)) else (reps,)
    ndim = max(len(shape), len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    shape = (1,) * (ndim - len(shape)) + tuple(shape)
    return tuple(n for pair in zip(counts, shape) for n in pair)


@query
def _counts(z: Any) -> tuple[int, ...]:
    """The axes of `_tiles` that count the tiles."""
    return tuple(range(0, 2 * np.ndim(z), 2))


@rrule(np.delete)
def delete(arr, obj, axis=None):
    def pullback(dz):
        kept = np.delete(np.reshape(np.arange(np.size(arr)), np.shape(arr)), obj, axis)
        return unbroadcast(_from_flat(dz, kept, arr), arr), None

    return np.delete(arr, obj, axis), pullback


@rrule(np.insert)
def insert(arr, obj, values, axis=None):
    def pullback(dz):
        numbers = np.reshape(np.arange(np.size(arr)), np.shape(arr))
        origin = np.insert(numbers, obj, -1, axis)
        old = np.greater_equal(origin, 0)
        darr = _from_flat(dz[old], origin[old], arr)
        # Which element of values each of the new ones is.
        count = np.reshape(np.arange(np.size(values)), np.shape(values))
        source = np.insert(np.full(np.shape(arr), -1), obj, count, axis)
        new = np.greater_equal(source, 0)
        return (
            unbroadcast(darr, arr),
            None,
            unbroadcast(_from_flat(dz[new], source[new], values), values),
        )

    return np.insert(arr, obj, values, axis), pullback


@rrule(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    z = np.lib.stride_tricks.sliding_window_view(
        x, window_shape, axis, subok=subok, writeable=writeable
    )

    def pullback(dz):
        numbers = np.reshape(np.arange(np.size(x)), np.shape(x))
        places = np.lib.stride_tricks.sliding_window_view(numbers, window_shape, axis)
        return unbroadcast(_from_flat(dz, places, x), x), None

    return z, pullback


def _from_flat(d: Any, numbers: Any, x: Any) -> Any:
    """Zeros in the shape of ``x`` with ``d`` added at the elements of these numbers, counted along the rows."""
    return np.reshape(scatter(d, numbers, (np.size(x),), d.dtype), np.shape(x))


# ---------------------------------------------------------------------------------------------- copying


@rrule(np.array)
def array(object, dtype=None, **options):
    def pullback(dz):
        return (unbroadcast(dz, object),)

    return np.array(object, dtype, **options), pullback


def same_content(fn):
    """Declare the rule of a function that gives an array of what is in another, which may lie in memory otherwise."""

    @rrule(fn)
    def rule(a, *args, **options):
        def pullback(dz):
            return unbroadcast(dz, a), *[None] * len(args)

        return fn(a, *args, **options), pullback


# Each by itself, for their orders differ; asarray_chkfinite has none, it is traced for its check.
for fn in (np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray):
    same_content(fn)
for fn in (np.copy, *methods("copy")):
    same_content(fn)


@rrule(*methods("astype"))
def astype(a, dtype, order="K", casting="unsafe", subok=True, copy=True):
    def pullback(dz):
        return unbroadcast(dz, a), None

    return a.astype(dtype, order, casting, subok, copy), pullback


if hasattr(np.ndarray, "to_device"):  # new in NumPy 2

    @rrule(*methods("to_device"))
    def to_device(a, device, **options):
        def pullback(dz):
            return unbroadcast(dz, a), None

        return a.to_device(device, **options), pullback


@rrule(*methods("item"))
def item(a, *args):
    def pullback(dz):
        if np.size(a) == 1:
            return unbroadcast(np.reshape(dz, np.shape(a)), a), *(None for _ in args)
        index = args[0] if len(args) == 1 and is_sequence(args[0]) else args
        if len(index) == 1:
            d = np.reshape(scatter(dz, index, (np.size(a),), cotangent_dtype(a)), np.shape(a))
        else:
            d = scatter(dz, tuple(index), np.shape(a), cotangent_dtype(a))
        return d, *(None for _ in args)

    return a.item(*args), pullback


@rrule(*methods("view"))
def view(a, *args, **options):
    z = a.view(*args, **options)

    def pullback(dz):
        have, seen = a.dtype, z.dtype
        if have == seen:
            d = dz
        elif have.kind == "c" and seen == np.real(a).dtype:
            # The cotangent of x + iy is dx - i dy.
            d = np.conjugate(np.ascontiguousarray(dz).view(have))
        elif seen.kind == "c" and have == np.real(z).dtype:
            d = np.ascontiguousarray(np.conjugate(dz)).view(have)
        else:
            raise TypeError(f"a view of {have} as {seen} has no derivative")
        return np.reshape(d, np.shape(a)), *(None for _ in args)

    return z, pullback


# -------------------------------------------------------------------------------------------- diagonals


@rrule(np.tril)
def tril(m, k=0):
    def pullback(dz):
        return (unbroadcast(np.tril(dz, k), m),)

    return np.tril(m, k), pullback


@rrule(np.triu)
def triu(m, k=0):
    def pullback(dz):
        return (unbroadcast(np.triu(dz, k), m),)

    return np.triu(m, k), pullback


@query
def diagonal_index(shape: tuple[int, ...], offset: int) -> tuple[Any, ...]:
    """The index of a diagonal of the last two axes of an array of ``shape``."""
    rows, columns = shape[-2:]
    i = np.arange(max(0, min(rows + min(offset, 0), columns - max(offset, 0))))
    return (..., i - min(offset, 0), i + max(offset, 0))


def on_diagonal(d: Any, shape: tuple[int, ...], offset: int, axis1: int = 0, axis2: int = 1) -> Any:
    """Zeros of ``shape`` with the last axis of ``d`` on a diagonal: the pullback of `np.diagonal`."""
    order = order_for_diagonal(len(shape), axis1, axis2)
    zeros = np.zeros([shape[i] for i in order], float_dtype(d))
    zeros[diagonal_index(zeros.shape, offset)] = d
    return np.transpose(zeros, inverse(order))


@rrule(on_diagonal)
def _on_diagonal(d, shape, offset, axis1=0, axis2=1):
    def pullback(dz):
        return unbroadcast(np.diagonal(dz, offset, axis1, axis2), d), None, None

    return on_diagonal(d, shape, offset, axis1, axis2), pullback


def order_for_diagonal(ndim: int, axis1: int, axis2: int) -> tuple[int, ...]:
    """The axes with the two of the diagonal at the end."""
    axis1, axis2 = axis1 % ndim, axis2 % ndim
    return (*(i for i in range(ndim) if i not in (axis1, axis2)), axis1, axis2)


@rrule(np.diagonal, *methods("diagonal"))
def diagonal(a, offset=0, axis1=0, axis2=1):
    def pullback(dz):
        return (unbroadcast(on_diagonal(dz, np.shape(a), offset, axis1, axis2), a),)

    return np.diagonal(a, offset, axis1, axis2), pullback


@rrule(np.trace, *methods("trace"))
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    def pullback(dz):
        d = np.reshape(dz, (*np.shape(dz), 1))
        return (unbroadcast(on_diagonal(d, np.shape(a), offset, axis1, axis2), a),)

    return np.trace(a, offset, axis1, axis2, dtype), pullback


@rrule(np.diag)
def diag(v, k=0):
    z = np.diag(v, k)

    def pullback(dz):
        if np.ndim(v) == 1:
            return (unbroadcast(np.diagonal(dz, k), v),)
        return (unbroadcast(on_diagonal(dz, np.shape(v), k), v),)

    return z, pullback


@rrule(np.diagflat)
def diagflat(v, k=0):
    def pullback(dz):
        return (unbroadcast(np.reshape(np.diagonal(dz, k), np.shape(v)), v),)

    return np.diagflat(v, k), pullback
