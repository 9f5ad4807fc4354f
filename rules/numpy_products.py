"""Products of vectors, matrices and tensors, and convolution."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .broadcasting import broadcast_axes, is_sequence, settled, unbroadcast
from .mutation import setitem
from .numpy_ufuncs import methods
from .registry import nondiff, query, rrule
from .zeros import conj, float_dtype


def _array(x: Any) -> Any:
    """``x``, or the array that NumPy makes of a list."""
    return np.asarray(x) if is_sequence(x) else x


def _swap(x: Any) -> Any:
    """The transposed matrices of a stack."""
    return np.transpose(x) if np.ndim(x) == 2 else np.swapaxes(x, -1, -2)


# ------------------------------------------------------------------------------------- matrix products


def _along(fn: Any, rule: Any, x: Any, y: Any, axes: Any, **options: Any) -> Any:
    """``rule`` for a product whose vectors and matrices lie along ``axes`` of the operands and of the result.

    It is that of the same product of what has these axes at its end.
    """
    in_x, in_y, in_z = axes
    z = fn(x, y, axes=axes, **options)
    _, back = rule(_last(_array(x), in_x), _last(_array(y), in_y))

    def pullback(dz):
        dx, dy = back(_last(dz, in_z))
        return unbroadcast(_from_last(dx, in_x), x), unbroadcast(_from_last(dy, in_y), y)

    return z, pullback


def _last(x: Any, axes: Any) -> Any:
    """``x`` with its ``axes``, a number or some, at the end."""
    if axes in LAST:
        return x
    return np.moveaxis(x, axes, range(-len(axes), 0) if is_sequence(axes) else -1)


def _from_last(x: Any, axes: Any) -> Any:
    """``x``, which has ``axes`` at its end, with these where they belong."""
    if x is None or axes in LAST:
        return x
    return np.moveaxis(x, range(-len(axes), 0) if is_sequence(axes) else -1, axes)


LAST = (-1, (-1,), (-2, -1))


@rrule(np.matmul, operator.matmul, operator.imatmul)
def matmul(x, y, **options):
    if options.get("axes") is not None:
        return _along(np.matmul, matmul, x, y, **options)
    z = np.matmul(x, y, **options)
    a, b = _array(x), _array(y)

    def pullback(dz):
        if np.ndim(a) == 1 and np.ndim(b) == 1:
            return unbroadcast(dz * b, x), unbroadcast(dz * a, y)
        if np.ndim(a) == 2 and np.ndim(b) == 1:
            return unbroadcast(dz[:, None] * b, x), unbroadcast(dz @ a, y)
        if np.ndim(a) == 1 and np.ndim(b) == 2:
            return unbroadcast(b @ dz, x), unbroadcast(a[:, None] * dz, y)
        if np.ndim(a) == 1:
            d = dz[..., None]
            return (
                unbroadcast((b @ d)[..., 0], x),
                unbroadcast(a[:, None] * np.swapaxes(d, -1, -2), y),
            )
        if np.ndim(b) == 1:
            d = dz[..., None]
            return unbroadcast(d * b, x), unbroadcast((_swap(a) @ d)[..., 0], y)
        return unbroadcast(dz @ _swap(b), x), unbroadcast(_swap(a) @ dz, y)

    return z, pullback


@rrule(np.dot, *methods("dot"))
def dot(a, b, out=None):
    z = np.dot(a, b)
    x, y = _array(a), _array(b)

    def pullback(dz):
        n, m = np.ndim(x), np.ndim(y)
        if n == 0 or m == 0:
            return unbroadcast(dz * y, a), unbroadcast(dz * x, b)
        if n == 1 and m == 1:
            return unbroadcast(dz * y, a), unbroadcast(dz * x, b)
        if n == 2 and m == 2:
            return unbroadcast(np.dot(dz, _swap(y)), a), unbroadcast(np.dot(_swap(x), dz), b)
        if n == 2 and m == 1:
            return unbroadcast(np.outer(dz, y), a), unbroadcast(np.dot(dz, x), b)
        if n == 1 and m == 2:
            return unbroadcast(np.dot(y, dz), a), unbroadcast(np.outer(x, dz), b)
        dx, dy = _tensordot_pullback(dz, x, y, (n - 1,), (max(m - 2, 0),))
        return unbroadcast(dx, a), unbroadcast(dy, b)

    return z, pullback


@rrule(np.vdot)
def vdot(a, b):
    def pullback(dz):
        da = conj(dz * np.reshape(b, np.shape(a)))
        return unbroadcast(da, a), unbroadcast(dz * np.conjugate(np.reshape(a, np.shape(b))), b)

    return np.vdot(a, b), pullback


@rrule(np.inner)
def inner(a, b):
    z = np.inner(a, b)
    x, y = _array(a), _array(b)

    def pullback(dz):
        n, m = np.ndim(x), np.ndim(y)
        if n == 0 or m == 0:
            return unbroadcast(dz * y, a), unbroadcast(dz * x, b)
        dx, dy = _tensordot_pullback(dz, x, y, (n - 1,), (m - 1,))
        return unbroadcast(dx, a), unbroadcast(dy, b)

    return z, pullback


@rrule(np.outer)
def outer(a, b, out=None):
    z = np.outer(a, b)

    def pullback(dz):
        x, y = np.reshape(a, (-1,)), np.reshape(b, (-1,))
        dx, dy = np.dot(dz, y), np.dot(x, dz)
        return (
            unbroadcast(np.reshape(dx, np.shape(a)), a),
            unbroadcast(np.reshape(dy, np.shape(b)), b),
        )

    return z, pullback


@rrule(np.tensordot)
def tensordot(a, b, axes=2):
    z = np.tensordot(a, b, axes)
    x, y = _array(a), _array(b)

    def pullback(dz):
        dx, dy = _tensordot_pullback(dz, x, y, *_contracted(settled(axes), np.ndim(x), np.ndim(y)))
        return unbroadcast(dx, a), unbroadcast(dy, b)

    return z, pullback


@query
def _contracted(axes: Any, n: int, m: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of both operands that `np.tensordot` sums over."""
    if not isinstance(axes, (tuple, list)):
        k = int(axes)
        return tuple(range(n - k, n)), tuple(range(k))
    xs, ys = ((a,) if isinstance(a, (int, np.integer)) else tuple(a) for a in axes)
    return tuple(int(i) % n for i in xs), tuple(int(i) % m for i in ys)


def _tensordot_pullback(dz: Any, x: Any, y: Any, xs: tuple[int, ...], ys: tuple[int, ...]) -> Any:
    """The cotangents of x and y for dz, whose axes are the free ones of x and then those of y."""
    free_x, free_y, back_x, back_y = _tensordot_plan(np.ndim(x), np.ndim(y), xs, ys)
    k = len(free_x)
    dx = np.tensordot(dz, y, (tuple(range(k, k + len(free_y))), free_y))
    dy = np.tensordot(x, dz, (free_x, tuple(range(k))))
    return np.transpose(dx, back_x), np.transpose(dy, back_y)


@query
def _tensordot_plan(n: int, m: int, xs: tuple[int, ...], ys: tuple[int, ...]) -> Any:
    """The free axes of both operands, and how the axes of the cotangents must be put in order."""
    free_x = tuple(i for i in range(n) if i not in xs)
    free_y = tuple(i for i in range(m) if i not in ys)
    # dx comes with the free axes of x, then the contracted ones in the order in which y has them.
    have_x = [*free_x, *(x for _, x in sorted(zip(ys, xs)))]
    have_y = [*(y for _, y in sorted(zip(xs, ys))), *free_y]
    return (
        free_x,
        free_y,
        tuple(have_x.index(i) for i in range(n)),
        tuple(have_y.index(i) for i in range(m)),
    )


if hasattr(np, "vecdot"):  # new in NumPy 2

    @rrule(np.vecdot)
    def vecdot(x1, x2, **options):
        in_x, in_y, *in_z = options.get("axes") or [options.get("axis", -1)] * 3
        z = np.vecdot(x1, x2, **options)
        a, b = _last(_array(x1), in_x), _last(_array(x2), in_y)

        def pullback(dz):
            kept = options.get("keepdims", False)
            d = _last(dz, in_z[0] if in_z else -1) if kept else np.expand_dims(dz, -1)
            da = unbroadcast(np.conjugate(d * b), a)
            db = unbroadcast(d * np.conjugate(a), b)
            return unbroadcast(_from_last(da, in_x), x1), unbroadcast(_from_last(db, in_y), x2)

        return z, pullback


if hasattr(np, "matvec"):  # new in NumPy 2.2

    @rrule(np.matvec)
    def matvec(x1, x2, **options):
        if options.get("axes") is not None:
            return _along(np.matvec, matvec, x1, x2, **options)
        z = np.matvec(x1, x2, **options)
        a, b = _array(x1), _array(x2)

        def pullback(dz):
            d = dz[..., None]
            return unbroadcast(d * b[..., None, :], x1), unbroadcast((_swap(a) @ d)[..., 0], x2)

        return z, pullback

    @rrule(np.vecmat)
    def vecmat(x1, x2, **options):
        if options.get("axes") is not None:
            return _along(np.vecmat, vecmat, x1, x2, **options)
        z = np.vecmat(x1, x2, **options)
        a, b = np.conjugate(x1), _array(x2)

        def pullback(dz):
            da = (b @ dz[..., None])[..., 0]
            return unbroadcast(np.conjugate(da), x1), unbroadcast(
                a[..., None] * dz[..., None, :], x2
            )

        return z, pullback


# ------------------------------------------------------------------------------------------------ einsum


@rrule(np.einsum)
def einsum(*operands, optimize=False, **options):
    z = np.einsum(*operands, optimize=optimize, **options)

    def pullback(dz):
        # In einsum(x, [0, 1], y, [1, 2], [0, 2]) there are lists of labels between the operands.
        labelled = operands
        if not isinstance(operands[0], str):
            labelled = [settled(x) if is_sequence(x) else x for x in operands]
        terms, result, positions = einsum_plan(labelled)
        cotangents: list[Any] = [None] * len(operands)
        arrays = [_array(operands[p]) for p in positions]
        for k, p in enumerate(positions):
            others = [(terms[i], arrays[i]) for i in range(len(terms)) if i != k]
            cotangents[p] = unbroadcast(
                _einsum_pullback(dz, result, others, terms[k], np.shape(arrays[k]), optimize),
                operands[p],
            )
        return tuple(cotangents)

    return z, pullback


def _einsum_pullback(
    dz: Any, result: str, others: Any, term: str, shape: Any, optimize: Any
) -> Any:
    """The cotangent of the operand with the labels ``term``."""
    subscripts, insert, sizes, diagonal = _cotangent_plan(
        result, [t for t, _ in others], term, shape
    )
    d = np.einsum(subscripts, dz, *[x for _, x in others], optimize=optimize)
    if insert:  # labels that were summed over in this operand alone
        d = np.broadcast_to(
            np.expand_dims(d, insert),
            [max(n, m) for n, m in zip(_padded(np.shape(d), insert), sizes)],
        )
    if diagonal is None:
        return d
    return setitem(np.zeros(shape, d.dtype), diagonal, d)


@query
def _padded(shape: tuple[int, ...], insert: tuple[int, ...]) -> tuple[int, ...]:
    rest = iter(shape)
    return tuple(1 if i in insert else next(rest) for i in range(len(shape) + len(insert)))


@query
def _cotangent_plan(result: str, others: list[str], term: str, shape: tuple[int, ...]) -> Any:
    """How to compute the cotangent of one operand.

    Returns the subscripts that give it over those labels of ``term`` which occur elsewhere, the axes to
    insert for the rest, the size of each label, and, if ``term`` repeats labels, the index of the diagonal.
    """
    labels = list(dict.fromkeys(term))
    size = dict(zip(term, shape))
    elsewhere = set(result).union(*others)
    kept = "".join(c for c in labels if c in elsewhere)
    insert = tuple(i for i, c in enumerate(labels) if c not in elsewhere)
    subscripts = ",".join([result, *others]) + "->" + kept
    diagonal = None
    if len(labels) < len(term):
        grid = np.ogrid[tuple(slice(size[c]) for c in labels)]
        diagonal = tuple(grid[labels.index(c)] for c in term)
    return subscripts, insert, tuple(size[c] for c in labels), diagonal


@query
def einsum_plan(operands: Any) -> tuple[list[str], str, list[int]]:
    """The labels of each operand and of the result, in letters and without dots, and where the operands are."""
    if isinstance(operands[0], str):
        inputs, arrow, result = operands[0].replace(" ", "").partition("->")
        implicit = not arrow
        terms = inputs.split(",")
        positions = list(range(1, len(operands)))
    else:
        # einsum(x, [0, 1], y, [1, 2], [0, 2]), where the order of letters is that of the numbers
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        n = len(operands) // 2
        terms = [_letters(operands[2 * i + 1], letters) for i in range(n)]
        positions = [2 * i for i in range(n)]
        implicit = len(operands) % 2 == 0
        result = "" if implicit else _letters(operands[-1], letters)
    free = [
        c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba" if c not in "".join(terms)
    ]
    extra = [
        np.ndim(operands[p]) - len(t) + 3 if "..." in t else 0 for t, p in zip(terms, positions)
    ]
    dots = "".join(free[: max(extra)])[::-1] if extra else ""
    if implicit:
        named = "".join(terms).replace("...", "")
        result = "..." + "".join(sorted(c for c in set(named) if named.count(c) == 1))
    terms = [t.replace("...", dots[len(dots) - n :]) for t, n in zip(terms, extra)]
    return terms, result.replace("...", dots), positions


def _letters(labels: Any, letters: str) -> str:
    return "".join("..." if i is Ellipsis else letters[i] for i in labels)


nondiff(np.einsum_path)


# --------------------------------------------------------------------------- cross product, convolution


@rrule(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    z = np.cross(a, b, axisa, axisb, axisc, axis)

    def pullback(dz):
        to_a, to_b, to_c = (axisa, axisb, axisc) if axis is None else (axis, axis, axis)
        x, y, d = np.moveaxis(a, to_a, -1), np.moveaxis(b, to_b, -1), dz
        if np.shape(x)[-1] == 3 and np.shape(y)[-1] == 3:
            d = np.moveaxis(dz, to_c, -1)
            dx, dy = cross3(y, d), cross3(d, x)
        else:
            raise NotImplementedError("the gradient of np.cross is for vectors of three components")
        dx, dy = _summed(dx, np.shape(x)), _summed(dy, np.shape(y))
        return (
            unbroadcast(np.moveaxis(dx, -1, to_a), a),
            unbroadcast(np.moveaxis(dy, -1, to_b), b),
        )

    return z, pullback


def _summed(d: Any, shape: tuple[int, ...]) -> Any:
    """``d`` summed over the axes along which an operand of this shape was broadcast."""
    axes = broadcast_axes(np.shape(d), shape)
    return np.reshape(np.add.reduce(d, axis=axes), shape) if axes else d


AFTER, BEFORE = [1, 2, 0], [2, 0, 1]


def cross3(x: Any, y: Any) -> Any:
    """The cross product of vectors of three components in the last axis."""
    return x[..., AFTER] * y[..., BEFORE] - x[..., BEFORE] * y[..., AFTER]


@rrule(cross3)
def _cross3(x, y):
    def pullback(dz):
        return unbroadcast(cross3(y, dz), x), unbroadcast(cross3(dz, x), y)

    return cross3(x, y), pullback


@rrule(np.convolve)
def convolve(a, v, mode="full"):
    z = np.convolve(a, v, mode)

    def pullback(dz):
        # In full, z[n] is the sum over k of a[k] v[n-k].
        n, m = np.size(a), np.size(v)
        d = part_of(dz, kept_start(n, m, mode), n + m - 1)
        return unbroadcast(_valid(d, v), a), unbroadcast(_valid(d, a), v)

    return z, pullback


@rrule(np.correlate)
def correlate(a, v, mode="valid"):
    z = np.correlate(a, v, mode)

    def pullback(dz):
        # np.correlate(a, v) is np.convolve(a, conj(v)[::-1]), the other way round where v is longer.
        n, m = np.size(a), np.size(v)
        start = kept_start(n, m, mode)
        d = part_of(dz, start if n >= m else n + m - 1 - np.size(dz) - start, n + m - 1)
        w = np.conjugate(v)[::-1]
        return unbroadcast(_valid(d, w), a), unbroadcast(np.conjugate(_valid(d, a))[::-1], v)

    return z, pullback


def leading_zeros(p: Any) -> int:
    """How many zeros the coefficients of a polynomial begin with, the last one not counted."""
    nonzero = np.flatnonzero(p)
    return int(nonzero[0]) if nonzero.size else max(np.size(p) - 1, 0)


nondiff(leading_zeros)


@rrule(np.polymul)
def polymul(a1, a2):
    def pullback(dz):
        # NumPy drops leading zeros, which have no place in the result.
        x, y = np.atleast_1d(a1), np.atleast_1d(a2)
        n, m = settled(leading_zeros(x)), settled(leading_zeros(y))
        dx, dy = _valid(dz, y[m:]), _valid(dz, x[n:])
        dx, dy = part_of(dx, n, np.size(x)), part_of(dy, m, np.size(y))
        return (
            unbroadcast(np.reshape(dx, np.shape(a1)), a1),
            unbroadcast(np.reshape(dy, np.shape(a2)), a2),
        )

    return np.polymul(a1, a2), pullback


def _valid(d: Any, v: Any) -> Any:
    """The sums over n of d[n] v[n-k], for each k."""
    return np.convolve(d, np.reshape(v, -1)[::-1], "valid")


@query
def kept_start(n: int, m: int, mode: Any) -> int:
    """Where the part that ``mode`` keeps begins in the full convolution of n with m numbers."""
    if mode in ("full", 2):
        return 0
    short = min(n, m)
    return short - 1 if mode in ("valid", 0) else (short - 1) // 2


def part_of(d: Any, start: int, size: int) -> Any:
    """``size`` zeros with ``d`` in the place from ``start`` on."""
    y = np.zeros(size, float_dtype(d))
    y[start : start + np.size(d)] = d
    return y


@rrule(part_of)
def _part_of(d, start, size):
    def pullback(dz):
        return unbroadcast(dz[start : start + np.size(d)], d), None, None

    return part_of(d, start, size), pullback
