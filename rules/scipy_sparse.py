"""Products and solutions with sparse matrices, in the vector and in the stored elements of the matrix.

A matrix that was made inside the differentiated function has a gradient in its ``data``, in each of the formats that
keep their elements in arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy._lib._util import _prune_array
from scipy.sparse import linalg

from .broadcasting import unbroadcast
from .registry import caller, query, rrule

# The arrays that say where the stored elements stand, by format.
PLACES = {
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}


class Pattern:
    """Where the stored elements of a matrix stand; ``with_data`` makes a matrix of them."""

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(self, kind: Any, form: str, shape: Any, places: tuple[Any, ...]) -> None:
        self.kind, self.form, self.shape, self.where = kind, form, shape, places

    def with_data(self, data: Any) -> Any:
        parts = (data, self.where) if self.form == "coo" else (data, *self.where)
        return self.kind(parts, shape=self.shape)

    def places(self, size: Any) -> tuple[Any, Any, Any]:
        """The row and column of each stored element, and which of them stand in the matrix; ``size`` is the data's."""
        if self.form == "coo":
            return (*self.where, True)
        if self.form == "dia":
            columns = np.broadcast_to(np.arange(size[-1]), size)
            rows = columns - self.where[0][:, None]
            inside = (rows >= 0) & (rows < self.shape[0]) & (columns < self.shape[1])
            return np.where(inside, rows, 0), np.where(inside, columns, 0), inside
        indices, indptr = self.where
        major = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        if self.form == "bsr":
            _, height, width = size
            rows = major[:, None, None] * height + np.arange(height)[:, None]
            columns = indices[:, None, None] * width + np.arange(width)
            rows, columns = np.broadcast_arrays(rows, columns)
            return rows, columns, True
        return (major, indices, True) if self.form == "csr" else (indices, major, True)


class Constant:
    """A matrix of another form, none of whose elements has a derivative."""

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.copy()

    def with_data(self, _: Any) -> Any:
        return self.matrix


@query
def places(pattern: Pattern, data: Any) -> tuple[Any, Any, Any]:
    return pattern.places(np.shape(data))


def outer_at(pattern: Pattern, d: Any, x: Any, data: Any) -> Any:
    """The elements of the outer product of ``d`` and ``x`` that stand where those of the pattern do."""
    rows, columns, inside = places(pattern, data)
    z = d[rows] * x[columns]
    z = np.sum(z, axis=-1) if np.ndim(x) == 2 else z
    return z if inside is True else np.where(inside, z, 0)


def product(pattern: Any, data: Any, x: Any, turned: bool) -> Any:
    """The matrix, or its transpose, times ``x``."""
    matrix = pattern.with_data(data)
    return (matrix.T if turned else matrix) @ x


@rrule(product)
def _product(pattern, data, x, turned):
    def pullback(dz):
        dx = unbroadcast(product(pattern, data, dz, not turned), x)
        if data is None:
            return None, None, dx
        ddata = outer_at(pattern, x, dz, data) if turned else outer_at(pattern, dz, x, data)
        return None, unbroadcast(ddata, data), dx

    return product(pattern, data, x, turned), pullback


def solution(pattern: Any, data: Any, b: Any, turned: bool, options: Any) -> Any:
    """The solution of a system with the matrix, or with its transpose."""
    matrix = pattern.with_data(data)
    return linalg.spsolve(matrix.T if turned else matrix, b, **dict(options))


@rrule(solution)
def _solution(pattern, data, b, turned, options):
    x = solution(pattern, data, b, turned, options)

    def pullback(dx):
        db = solution(pattern, data, dx, not turned, options)
        column = np.reshape(db, np.shape(b))  # of one column SciPy makes a vector
        if data is None:
            return None, None, unbroadcast(column, b)
        ddata = -(outer_at(pattern, x, db, data) if turned else outer_at(pattern, db, x, data))
        return None, unbroadcast(ddata, data), unbroadcast(column, b)

    return x, pullback


def taken_apart(engine: Any, matrix: Any) -> tuple[Any, Any]:
    """The pattern of a matrix, and its stored elements as the traced function sees them."""
    form = getattr(matrix, "format", "")
    if form not in PLACES:
        engine.must_be_plain(matrix)
        return Constant(engine.plain(matrix)), None
    data = engine.attribute(matrix, "data")
    where = tuple(engine.plain(engine.attribute(matrix, x)).copy() for x in PLACES[form])
    shape = tuple(engine.plain(x) for x in matrix.shape)
    return Pattern(type(matrix), form, shape, where), data


def times(engine: Any, self: Any, other: Any) -> Any:
    pattern, data = taken_apart(engine, self)
    return engine.record(product, pattern, data, other, False)


def times_from_left(engine: Any, self: Any, other: Any, **_: Any) -> Any:
    if sparse.issparse(other) or np.ndim(engine.plain(other)) not in (1, 2):
        raise NotImplementedError("the derivative is for products with vectors and dense matrices")
    pattern, data = taken_apart(engine, self)
    return engine.record(product_from_left, pattern, data, other)


def product_from_left(pattern: Any, data: Any, x: Any) -> Any:
    """``x`` times the matrix."""
    return x @ pattern.with_data(data)


@rrule(product_from_left)
def _product_from_left(pattern, data, x):
    def pullback(dz):
        dx = unbroadcast(np.transpose(product(pattern, data, np.transpose(dz), False)), x)
        if data is None:
            return None, None, dx
        ddata = outer_at(pattern, np.transpose(x), np.transpose(dz), data)
        return None, unbroadcast(ddata, data), dx

    return product_from_left(pattern, data, x), pullback


for kind in (
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    sparse.dia_array,
    sparse.bsr_array,
):
    for name in ("_matmul_vector", "_matmul_multivector"):
        if hasattr(kind, name):
            caller(getattr(kind, name))(times)
    if hasattr(kind, "_rmatmul_dispatch"):
        caller(kind._rmatmul_dispatch)(times_from_left)


@caller(_prune_array)
def prune_array(engine, array):
    return array  # it would be copied, to save memory


@caller(linalg.spsolve)
def spsolve(engine, A, b, permc_spec=None, use_umfpack=True):
    if sparse.issparse(b):
        raise NotImplementedError("the derivative of spsolve is for a dense right-hand side")
    pattern, data = taken_apart(engine, A)
    options = (("permc_spec", permc_spec), ("use_umfpack", use_umfpack))
    return engine.record(solution, pattern, data, b, False, options)
