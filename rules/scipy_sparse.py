"""Products and solutions with sparse matrices, in the vector and in the stored elements of the matrix.

A matrix in compressed form that was made inside the differentiated function has a gradient in its ``data``; any
other is a constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy._lib._util import _prune_array
from scipy.sparse import linalg

from .broadcasting import unbroadcast
from .registry import caller, query, rrule


class Pattern:
    """Where the stored elements of a matrix stand; ``with_data`` makes a matrix of them."""

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(self, kind: Any, shape: Any, indices: Any, indptr: Any) -> None:
        self.kind, self.shape, self.indices, self.indptr = kind, shape, indices, indptr
        self.by_rows = issubclass(kind, (sparse.csr_array, sparse.csr_matrix))

    def with_data(self, data: Any) -> Any:
        return self.kind((data, self.indices, self.indptr), shape=self.shape)

    def places(self) -> tuple[Any, Any]:
        """The row and the column of each stored element."""
        major = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return (major, self.indices) if self.by_rows else (self.indices, major)


class Constant:
    """A matrix of another form, none of whose elements has a derivative."""

    momentary = True  # made anew in each run, so that no expansion is kept for it

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix.copy()

    def with_data(self, _: Any) -> Any:
        return self.matrix


@query
def places(pattern: Pattern) -> tuple[Any, Any]:
    return pattern.places()


def outer_at(pattern: Pattern, d: Any, x: Any) -> Any:
    """The elements of the outer product of ``d`` and ``x`` that the pattern has."""
    rows, columns = places(pattern)
    z = d[rows] * x[columns]
    return np.sum(z, axis=-1) if np.ndim(z) == 2 else z


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
        ddata = outer_at(pattern, x, dz) if turned else outer_at(pattern, dz, x)
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
        if data is None:
            return None, None, unbroadcast(db, b)
        ddata = -(outer_at(pattern, x, db) if turned else outer_at(pattern, db, x))
        return None, unbroadcast(ddata, data), unbroadcast(db, b)

    return x, pullback


def taken_apart(engine: Any, matrix: Any) -> tuple[Any, Any]:
    """The pattern of a matrix, and its stored elements as the traced function sees them."""
    if getattr(matrix, "format", "") not in ("csr", "csc"):
        return Constant(engine.plain(matrix)), None
    data, indices, indptr = (engine.attribute(matrix, x) for x in ("data", "indices", "indptr"))
    shape = tuple(engine.plain(x) for x in matrix.shape)
    return Pattern(
        type(matrix), shape, engine.plain(indices).copy(), engine.plain(indptr).copy()
    ), data


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
        ddata = outer_at(pattern, np.transpose(x), np.transpose(dz))
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
