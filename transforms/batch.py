"""Columns: a part of a tape that is linear in some variables, run once for many values of them.

Words
-----
column    one of the values that a variable takes; all of them lie along a leading axis of one array.
logical   as it is on the tape that is run: the shape of one column.
rule      how an op is carried out for all columns at once: ``rule(batch, op)`` returns the op of all columns, or None
          where it declines. What has no rule is carried out column by column, that op alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..rules import registry
from ..rules.broadcasting import cast, expand, kept_shape
from ..rules.mutation import may_repeat, scatter, scatter_add, setitem
from ..rules.numpy_products import cross3, einsum_plan, kept_start, part_of
from ..rules.numpy_shapes import on_diagonal
from ..rules.numpy_ufuncs import methods
from ..tracer.arrays import append_saved, save_value
from ..tracer.kinds import isinstance
from ..tracer.places import module_of
from ..tracer.tape import Op, Site, Tape, element, ops_in, primal, substitute

Rule = Callable[["Batch", Op], Any]
rules: dict[Any, Rule] = {}
JOINING = frozenset((np.concatenate, np.stack, np.array, np.asarray))


def batched(*fns: Any) -> Callable[[Rule], Rule]:
    """Say how calls of each of these functions are carried out for all columns at once."""

    def decorate(rule: Rule) -> Rule:
        for fn in fns:
            rules[fn] = rule
        return rule

    return decorate


class Batch:
    """Carries out ops for ``count`` columns at once, by ops on ``tape``.

    ``columns`` holds, by the op of one column, the op of all of them (a tuple where the value is one).
    """

    def __init__(self, tape: Tape, site: Site, count: int) -> None:
        self.tape = tape
        self.site = site
        self.count = count
        self.columns: dict[Op, Any] = {}
        self.loops = 0  # how many ops were carried out column by column

    def run(self, ops: Iterable[Op]) -> None:
        """Carry out these ops; those that are the same for all columns as they are."""
        with np.errstate(all="ignore"):
            for op in ops:
                if op.kind == "call" and any(x in self.columns for x in op.operands()):
                    self.columns[op] = self.all_columns(op)
                elif op.kind != "input":
                    op.tape = self.tape
                    self.tape.ops.append(op)
                    save_value(self.tape, op)

    def do(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """Carry out one operation."""
        value = fn(*primal(args), **primal(kwargs))
        return append_saved(self.tape, fn, args, kwargs, value, self.site)

    def all_columns(self, op: Op) -> Any:
        """The op of all columns."""
        if op.fn is element:
            return self.columns[op.args[0]][op.args[1]]
        rule = rule_of(op.fn) if self.is_direct(op) else None
        found = None if rule is None else rule(self, op)
        if found is not None and np.shape(found.value) == (self.count, *np.shape(op.value)):
            return found
        self.loops += 1
        return self.one_by_one(op)

    def is_direct(self, op: Op) -> bool:
        """Whether each argument with columns is a variable itself, or a variable in a list that is to be joined."""
        given = (*op.args, *op.kwargs.values())
        if op.fn in JOINING and isinstance(op.args[0], (list, tuple)):
            given = (*op.args[0], *given[1:])
        return all(isinstance(x, Op) or self.only(x) for x in given)

    def one_by_one(self, op: Op) -> Any:
        """Carry out an op for each column by itself."""
        results: list[Any] = []
        for i in range(self.count):

            def column(x: Op, i: int = i) -> Any:
                return self.do(*one_of(self.columns[x], i, x.value)) if x in self.columns else x

            args, kwargs = substitute(op.args, column), substitute(op.kwargs, column)
            results.append(self.do(op.fn, *args, **kwargs))
        return self.together(results, op.value)

    def together(self, results: list[Any], value: Any) -> Any:
        if self.count == 0:
            return self.nothing(value)
        if isinstance(value, (tuple, list)):
            return tuple(
                [
                    self.together([self.do(element, x, i) for x in results], part)
                    for i, part in enumerate(value)
                ]
            )
        return self.do(np.stack, results)

    def nothing(self, value: Any) -> Any:
        """The columns of a value, if there are none."""
        if isinstance(value, (tuple, list)):
            return tuple(map(self.nothing, value))
        return self.do(np.zeros, (0, *np.shape(value)), np.asarray(value).dtype)

    # What rules are made of

    def has(self, x: Any) -> bool:
        """Whether an argument differs from column to column."""
        return isinstance(x, Op) and x in self.columns

    def only(self, *xs: Any) -> bool:
        """Whether none of these arguments has a column in it."""
        return not any(op in self.columns for x in xs for op in ops_in(x))

    def aligned(self, x: Any, rank: int) -> Any:
        """An argument in which ``rank`` logical axes stand behind that of the columns, for broadcasting."""
        if not self.has(x):
            return x
        shape = np.shape(x.value)
        if len(shape) >= rank:
            return self.columns[x]
        return self.do(
            np.reshape, self.columns[x], (self.count, *[1] * (rank - len(shape)), *shape)
        )

    def full(self, x: Any) -> Any:
        """An argument with all of its columns, even where they are all the same."""
        if self.has(x):
            return self.columns[x]
        return self.do(np.broadcast_to, x, (self.count, *np.shape(primal(x))))

    def shaped(self, x: Any, shape: tuple[int, ...]) -> Any:
        """The columns of an argument in another logical shape."""
        return self.do(np.reshape, self.columns[x], (self.count, *shape))


def one_of(columns: Any, i: int, value: Any) -> tuple[Any, ...]:
    """What to do for one of the columns of a ``value``: that of an array without axes is an array, too."""
    bare = isinstance(value, np.ndarray) and not value.ndim
    return operator.getitem, columns, (i, ...) if bare else i


def rule_of(fn: Any) -> Rule | None:
    """How calls of ``fn`` are carried out for all columns at once."""
    try:
        found = rules.get(fn)
    except TypeError:
        return None
    if found is not None:
        return found
    if isinstance(fn, np.ufunc):
        return elementwise if fn.signature is None and fn.nout == 1 else None
    known = registry.lookup(fn)
    if known is not None and known.partials is not None and scalar_only(fn) is False:
        return elementwise
    return None


def scalar_only(fn: Any) -> bool:
    """Whether a function is for Python's numbers alone."""
    return module_of(fn) in ("math", "cmath", "builtins")


def ndim(x: Any) -> int:
    return np.ndim(primal(x))


def shape_of(x: Any) -> tuple[int, ...]:
    return np.shape(primal(x))


def option(op: Op, place: int, name: str, default: Any = None) -> Any:
    """An option of a call, given by its place or by its name."""
    return op.args[place] if len(op.args) > place else op.kwargs.get(name, default)


def are_axes(*axes: Any) -> bool:
    """Whether all of these are plain integers (no variables, which may change)."""
    return all(isinstance(i, (int, np.integer)) for i in axes)


# ------------------------------------------------------------------------------------------- elementwise


COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)


@batched(np.where, np.real, np.imag, *COMPARISONS)
def elementwise(b: Batch, op: Op) -> Any:
    rank = max(ndim(x) for x in (*op.args, *op.kwargs.values()))
    args = [b.aligned(x, rank) for x in op.args]
    return b.do(op.fn, *args, **{k: b.aligned(x, rank) for k, x in op.kwargs.items()})


@batched(float, complex)
def _convert(b: Batch, op: Op) -> Any:
    return b.do(cast, b.shaped(op.args[0], ()), op.fn)


@batched(cast, np.copy, np.ndarray.copy, np.ndarray.astype, np.tril, np.triu, np.linalg.inv)
def _by_itself(b: Batch, op: Op) -> Any:
    """What acts on the last axes only, or on no axis at all."""
    x, *rest = op.args
    return b.do(op.fn, b.columns[x], *rest, **op.kwargs) if b.has(x) and b.only(*rest) else None


# ------------------------------------------------------------------------------------------------ shapes


@batched(np.reshape, np.ndarray.reshape, np.ravel, np.ndarray.ravel, np.ndarray.flatten)
@batched(np.expand_dims, np.squeeze, np.ndarray.squeeze, np.atleast_1d)
def _reshape(b: Batch, op: Op) -> Any:
    if "order" in op.kwargs or any(isinstance(x, str) for x in op.args) or not b.has(op.args[0]):
        return None
    return b.shaped(op.args[0], np.shape(op.value))


@batched(np.broadcast_to)
def _broadcast_to(b: Batch, op: Op) -> Any:
    shape = np.shape(op.value)
    return b.do(np.broadcast_to, b.aligned(op.args[0], len(shape)), (b.count, *shape))


@batched(expand)
def _expand(b: Batch, op: Op) -> Any:
    shape = np.shape(op.value)
    kept = kept_shape(shape, option(op, 2, "axis"))
    return b.do(np.broadcast_to, b.shaped(op.args[0], kept), (b.count, *shape))


@batched(np.transpose, np.ndarray.transpose)
def _transpose(b: Batch, op: Op) -> Any:
    x, *axes = op.args
    axes = axes or [op.kwargs.get("axes")]
    order = axes[0] if len(axes) == 1 and not are_axes(axes[0]) else axes
    n = ndim(x)
    order = range(n)[::-1] if order is None else order
    if isinstance(order, Op) or not are_axes(*order):
        return None
    return b.do(np.transpose, b.columns[x], (0, *[i % n + 1 for i in order]))


@batched(np.swapaxes, np.ndarray.swapaxes, np.moveaxis)
def _swapaxes(b: Batch, op: Op) -> Any:
    x, *axes = op.args
    if op.kwargs or not are_axes(*axes):
        return None
    return b.do(op.fn, b.columns[x], *[i % ndim(x) + 1 for i in axes])


@batched(np.sum, np.add.reduce, np.mean, np.ndarray.sum, np.ndarray.mean)
def _reduce(b: Batch, op: Op) -> Any:
    x, *rest = op.args
    n = ndim(x)
    axis = option(op, 1, "axis", 0 if op.fn is np.add.reduce else None)
    axes = range(n) if axis is None or n == 0 else axis if isinstance(axis, tuple) else (axis,)
    options = {k: v for k, v in op.kwargs.items() if k != "axis" and v is not np._NoValue}
    if len(rest) > 1 or not are_axes(*axes) or options not in ({}, KEPT, {"keepdims": False}):
        return None
    return b.do(op.fn, b.columns[x], axis=tuple([i % n + 1 for i in axes]), **options)


KEPT = {"keepdims": True}


@batched(np.cumsum, np.ndarray.cumsum, np.add.accumulate, np.flip, np.roll)
def _along(b: Batch, op: Op) -> Any:
    """What moves along one axis."""
    x, *rest = op.args
    place = 2 if op.fn is np.roll else 1
    axis = option(op, place, "axis", 0 if op.fn is np.add.accumulate else None)
    if axis is None and (ndim(x) == 1 or op.fn is np.flip):
        axis = 0 if ndim(x) == 1 else tuple(range(ndim(x)))
    axes = axis if isinstance(axis, tuple) else (axis,)
    if len(rest) > place or set(op.kwargs) - {"axis"} or not are_axes(*axes) or ndim(x) == 0:
        return None
    moved = tuple([i % ndim(x) + 1 for i in axes])
    axis = moved if isinstance(axis, tuple) else moved[0]
    return b.do(op.fn, b.columns[x], *rest[: place - 1], axis=axis)


FFT = (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft)


@batched(np.take, *methods("take"), np.repeat, *methods("repeat"), *FFT)
def _by_axis(b: Batch, op: Op) -> Any:
    """What has its axis in the third place, and takes all elements in a row where there is none."""
    x, *rest = op.args
    axis = option(op, 2, "axis", -1 if op.fn in FFT else None)
    if not b.has(x) or not b.only(*rest):
        return None
    columns, n = b.columns[x], ndim(x)
    if axis is None or n == 0:
        columns, n, axis = b.shaped(x, (np.size(x.value),)), 1, 0
    if not are_axes(axis):
        return None
    options = {**op.kwargs, "axis": axis % n + 1}
    if len(rest) > 1:
        rest[1] = options.pop("axis")
    return b.do(op.fn, columns, *rest, **options)


@batched(np.tile)
def _tile(b: Batch, op: Op) -> Any:
    x, reps = op.args[0], option(op, 1, "reps")
    counts = (reps,) if are_axes(reps) else tuple(reps)
    if not b.has(x) or not are_axes(*counts):
        return None
    rank = max(ndim(x), len(counts))
    return b.do(np.tile, b.aligned(x, rank), (1, *[1] * (rank - len(counts)), *counts))


@batched(part_of)
def _part_of(b: Batch, op: Op) -> Any:
    d, start, size = op.args
    if not are_axes(start, size):
        return None
    place = slice(None), slice(start, start + np.size(d.value))
    return b.do(scatter, b.columns[d], place, (b.count, size), op.value.dtype)


@batched(np.diagonal, np.ndarray.diagonal, np.trace, np.ndarray.trace)
def _diagonal(b: Batch, op: Op) -> Any:
    x = op.args[0]
    offset, *axes = [
        option(op, i, k, d) for i, k, d in ((1, "offset", 0), (2, "axis1", 0), (3, "axis2", 1))
    ]
    if (
        len(op.args) > 4
        or set(op.kwargs) - {"offset", "axis1", "axis2"}
        or not are_axes(offset, *axes)
    ):
        return None
    return b.do(op.fn, b.columns[x], offset, *[i % ndim(x) + 1 for i in axes])


@batched(on_diagonal)
def _on_diagonal(b: Batch, op: Op) -> Any:
    d, shape, offset, *axes = op.args
    axes = axes or [0, 1]
    if op.kwargs or len(axes) != 2 or not are_axes(offset, *axes):
        return None
    moved = [i % len(shape) + 1 for i in axes]
    return b.do(on_diagonal, b.columns[d], (b.count, *shape), offset, *moved)


@batched(np.diag)
def _diag(b: Batch, op: Op) -> Any:
    x, k = op.args[0], option(op, 1, "k", 0)
    if not are_axes(k):
        return None
    if ndim(x) == 2:
        return b.do(np.diagonal, b.columns[x], k, 1, 2)
    return b.do(on_diagonal, b.columns[x], (b.count, *np.shape(op.value)), k, 1, 2)


@batched(np.concatenate, np.stack)
def _concatenate(b: Batch, op: Op) -> Any:
    parts = op.args[0]
    axis = option(op, 1, "axis", 0)
    if not isinstance(parts, (list, tuple)) or not are_axes(axis) or set(op.kwargs) - {"axis"}:
        return None
    return b.do(op.fn, [b.full(x) for x in parts], axis=axis % np.ndim(op.value) + 1)


@batched(np.array, np.asarray)
def _array(b: Batch, op: Op) -> Any:
    parts = op.args[0]
    if len(op.args) > 1 or op.kwargs:
        return None
    if isinstance(parts, Op):
        return b.do(np.positive, b.columns[parts])
    return b.do(np.stack, [b.full(x) for x in parts], axis=1)


# ---------------------------------------------------------------------------------------------- elements


def index_of(index: Any) -> tuple[Any, ...] | None:
    """An index behind the axis of the columns; None where that would bring its axes into another order."""
    parts = index if isinstance(index, tuple) else (index,)
    plain = [primal(x) for x in parts]
    places = [i for i, x in enumerate(plain) if is_advanced(x) or isinstance(x, (int, np.integer))]
    if any(map(is_advanced, plain)) and places[-1] - places[0] >= len(places):
        return None
    return (slice(None), *parts)


def is_advanced(index: Any) -> bool:
    return isinstance(index, (list, tuple, np.ndarray))


def rank_at(shape: tuple[int, ...], index: Any) -> int:
    """How many axes the elements at an index have."""
    return np.ndim(np.broadcast_to(0, shape)[primal(index)])


@batched(operator.getitem)
def _getitem(b: Batch, op: Op) -> Any:
    x, index = op.args
    full = index_of(index)
    if full is None or not b.has(x) or not b.only(index):
        return None
    return b.do(operator.getitem, b.columns[x], full)


@batched(scatter)
def _scatter(b: Batch, op: Op) -> Any:
    d, index, shape, dtype = op.args
    full = index_of(index)
    if full is None or not b.has(d) or not b.only(index):
        return None
    d = b.aligned(d, rank_at(shape, index))
    return b.do(scatter, d, full, (b.count, *shape), dtype)


@batched(setitem, scatter_add)
def _write(b: Batch, op: Op) -> Any:
    x, index, value = op.args
    full = index_of(index)
    if full is None or not b.only(index) or (op.fn is setitem and may_repeat(primal(index))):
        return None  # which of several writes to an element comes last depends on the other axes
    value = b.aligned(value, rank_at(shape_of(x), index))
    return b.do(op.fn, b.full(x), full, value)


# ---------------------------------------------------------------------------------------------- products


@batched(operator.matmul, np.matmul, np.dot, np.ndarray.dot)
def matmul(b: Batch, op: Op) -> Any:
    x, y = op.args
    m, n = ndim(x), ndim(y)
    dot = op.fn in (np.dot, np.ndarray.dot)
    if op.kwargs or (dot and max(m, n) > 2):
        return None
    if dot and not (m and n):
        rank = max(m, n)
        return b.do(np.multiply, b.aligned(x, rank), b.aligned(y, rank))
    if not b.has(x) and m == 2 and n == 1:  # one product of two matrices
        return b.do(np.matmul, b.columns[y], b.do(np.transpose, x))
    if not b.has(y) and n <= 2 and (m == 1 or n == 1):
        return b.do(np.matmul, b.columns[x], y)
    rank = max(m, n, 2)
    x = as_matrix(b, x, (1, *shape_of(x)) if m == 1 else shape_of(x), rank)
    y = as_matrix(b, y, (*shape_of(y), 1) if n == 1 else shape_of(y), rank)
    return b.do(np.reshape, b.do(np.matmul, x, y), (b.count, *np.shape(op.value)))


def as_matrix(b: Batch, x: Any, shape: tuple[int, ...], rank: int) -> Any:
    """An argument of a product in the shape of a stack of matrices."""
    if b.has(x):
        return b.shaped(x, (*[1] * (rank - len(shape)), *shape))
    return x if shape_of(x) == shape else b.do(np.reshape, x, shape)


@batched(np.outer)
def _outer(b: Batch, op: Op) -> Any:
    x, y = op.args
    p, q = np.shape(op.value)
    x = b.shaped(x, (p, 1)) if b.has(x) else b.do(np.reshape, x, (p, 1))
    y = b.shaped(y, (1, q)) if b.has(y) else b.do(np.reshape, y, (1, q))
    return b.do(np.multiply, x, y)


@batched(np.einsum)
def _einsum(b: Batch, op: Op) -> Any:
    terms, result, places = einsum_plan(primal(op.args))
    if any(True for i, x in enumerate(op.args) if i not in places for _ in ops_in(x)):
        return None
    new = next((c for c in LETTERS if c not in "".join(terms)), None)
    if new is None:
        return None
    xs = [op.args[i] for i in places]
    terms = [new + t if b.has(x) else t for t, x in zip(terms, xs, strict=True)]
    args = [b.columns[x] if b.has(x) else x for x in xs]
    return b.do(np.einsum, f"{','.join(terms)}->{new}{result}", *args, **op.kwargs)


LETTERS = "ZYXWVUTSRQPONMLKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba"


@batched(cross3)
def _cross3(b: Batch, op: Op) -> Any:
    rank = max(map(ndim, op.args))
    return b.do(op.fn, *[b.aligned(x, rank) for x in op.args])


@batched(np.cross)
def _cross(b: Batch, op: Op) -> Any:
    """Of vectors along the last axis."""
    axes = [*op.args[2:], *op.kwargs.values()]
    if any(axis is not None and axis != -1 for axis in axes):
        return None
    rank = max(map(ndim, op.args[:2]))
    return b.do(op.fn, *[b.aligned(x, rank) for x in op.args[:2]])


@batched(np.inner)
def _inner(b: Batch, op: Op) -> Any:
    x, y = op.args
    if not ndim(x) or not ndim(y) or (b.has(x) and b.has(y)):
        return None
    if b.has(x):
        return b.do(np.inner, b.columns[x], y)
    return b.do(np.moveaxis, b.do(np.inner, x, b.columns[y]), ndim(x) - 1, 0)


@batched(np.multiply.outer, np.add.outer, np.subtract.outer)
def _of_pairs(b: Batch, op: Op) -> Any:
    x, y = op.args
    if op.kwargs or (b.has(x) and b.has(y)):
        return None
    if b.has(x):
        return b.do(op.fn, b.columns[x], y)
    return b.do(np.moveaxis, b.do(op.fn, x, b.columns[y]), ndim(x), 0)


@batched(np.convolve)
def _convolve(b: Batch, op: Op) -> Any:
    x, y = op.args[:2]
    mode = option(op, 2, "mode", "full")
    if b.has(x) == b.has(y):
        return None
    x, y = (x, y) if b.has(x) else (y, x)
    start = kept_start(np.size(primal(x)), np.size(primal(y)), mode)
    return in_a_row(b, b.columns[x], y, start, np.size(op.value))


@batched(np.correlate)
def _correlate(b: Batch, op: Op) -> Any:
    """The convolution with the second operand turned round and conjugated."""
    x, y = op.args[:2]
    mode = option(op, 2, "mode", "valid")
    if b.has(x) == b.has(y):
        return None
    n, m, size = np.size(primal(x)), np.size(primal(y)), np.size(op.value)
    start = kept_start(n, m, mode)
    start = start if n >= m else n + m - 1 - size - start
    turned = b.do(np.flip, b.do(np.conjugate, b.columns[y] if b.has(y) else y), -1)
    if b.has(y):
        return in_a_row(b, turned, x, start, size)
    return in_a_row(b, b.columns[x], turned, start, size)


def in_a_row(b: Batch, x: Any, y: Any, start: int, size: int) -> Any:
    """The convolutions of the columns ``x`` with ``y``, ``size`` numbers of each from ``start`` on.

    It is one convolution, of all columns in a row with so many zeros between them that they do not meet.
    """
    m, whole = np.size(primal(y)), np.size(x.value[:1]) + np.size(primal(y)) - 1
    if ndim(y) != 1 or not b.count:
        return None
    zeros = b.do(np.zeros, (b.count, m - 1), x.value.dtype)
    row = b.do(np.reshape, b.do(np.concatenate, [x, zeros], axis=1), (-1,))
    found = b.do(operator.getitem, b.do(np.convolve, row, y), slice(b.count * whole))
    found = b.do(np.reshape, found, (b.count, whole))
    return b.do(operator.getitem, found, (slice(None), slice(start, start + size)))


@batched(np.tensordot)
def _tensordot(b: Batch, op: Op) -> Any:
    x, y, *rest = op.args
    axes = rest[0] if rest else op.kwargs.get("axes", 2)
    m, n = ndim(x), ndim(y)
    if are_axes(axes):
        axes = (tuple(range(m - axes, m)), tuple(range(axes)))
    if isinstance(axes, Op) or not b.only(*axes) or (b.has(x) and b.has(y)):
        return None
    xs, ys = ((i,) if are_axes(i) else tuple(i) for i in axes)
    if not are_axes(*xs, *ys):
        return None
    if b.has(x):
        return b.do(np.tensordot, b.columns[x], y, (tuple([i % m + 1 for i in xs]), ys))
    found = b.do(np.tensordot, x, b.columns[y], (xs, tuple([i % n + 1 for i in ys])))
    return b.do(np.moveaxis, found, m - len(xs), 0)


@batched(np.linalg.solve)
def _solve(b: Batch, op: Op) -> Any:
    a, y = op.args
    m, n = ndim(a), ndim(y)
    if m > 2 or n > 2:
        if n < m:
            return None  # for some releases of NumPy vectors, for others a matrix
        right = b.columns[y] if b.has(y) else b.do(np.expand_dims, y, 0)
        return b.do(np.linalg.solve, b.aligned(a, n), right)
    if b.has(a):
        right = (*shape_of(y), 1) if n == 1 else shape_of(y)
        found = b.do(np.linalg.solve, b.columns[a], b.do(np.reshape, b.full(y), (b.count, *right)))
        return b.do(np.reshape, found, (b.count, *np.shape(op.value)))
    # One factorisation for all columns, which stand side by side.
    rows = shape_of(y)[0]
    side = b.do(np.reshape, b.do(np.moveaxis, b.columns[y], 0, -1), (rows, -1))
    shape = (*np.shape(op.value), b.count)
    found = b.do(np.reshape, b.do(np.linalg.solve, a, side), shape)
    return b.do(np.moveaxis, found, -1, 0)
