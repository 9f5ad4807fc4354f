"""Linear algebra in forward mode: with what the value itself has found, and at most one more factorisation.

The formulas are those of M. Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008); the conventions (the triangle that is read, equal eigenvalues, the phase of
singular vectors) those of the rules for reverse mode in ``numpy_linalg``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .broadcasting import is_complex, is_sequence
from .elementwise import filled
from .numpy_linalg import (
    DEFICIENT,
    SQUARE,
    SVDVALS,
    _array,
    _h,
    _is_vector,
    _t,
    cofactors,
    cut_part,
    invertible,
    series,
)
from .registry import Missing, frule
from .zeros import ratio


def direction(da: Any, a: Any) -> Any:
    """The tangent of a matrix; that of a list of rows as an array."""
    return np.asarray(filled(da, a)) if is_sequence(a) else da


def by_triangle(d: Any, lower: bool) -> Any:
    """The tangent of a Hermitian matrix of which one triangle is read."""
    strict = np.tril(d, -1) if lower else np.triu(d, 1)
    return strict + _h(strict) + np.eye(np.shape(d)[-1]) * np.real(d)


@frule(np.linalg.inv, np.linalg._umath_linalg.inv)
def inv(primals, tangents, **options):
    z = np.linalg.inv(primals[0])
    return z, -(z @ direction(tangents[0], primals[0]) @ z)


@frule(np.linalg.solve)
def solve(primals, tangents):
    # a x = b gives a dx = db - da x: all tangents of one solve share a factorisation.
    (a, b), (da, db) = primals, tangents
    x = np.linalg.solve(a, b)
    vector = _is_vector(a, b)
    right: Any = None
    if db is not None:
        db = direction(db, b)
        right = db[..., None] if vector else db
    if da is not None:
        moved = direction(da, a) @ (x[..., None] if vector else x)
        right = -moved if right is None else right - moved
    dx = np.linalg.solve(a, right)
    return x, dx[..., 0] if vector else dx


@frule(np.linalg.det)
def det(primals, tangents):
    (a,), (da,) = primals, tangents
    return np.linalg.det(a), np.add.reduce(cofactors(a) * direction(da, a), axis=(-2, -1))


@frule(np.linalg.slogdet)
def slogdet(primals, tangents):
    (a,), (da,) = primals, tangents
    z = np.linalg.slogdet(a)
    trace = np.add.reduce(np.swapaxes(np.linalg.inv(a), -1, -2) * direction(da, a), axis=(-2, -1))
    dsign = 1j * z[0] * np.imag(trace) if is_complex(_array(a)) else None
    return z, (dsign, np.real(trace))


@frule(np.linalg.cholesky)
def cholesky(primals, tangents, **options):
    (a,), (da,) = primals, tangents
    z = np.linalg.cholesky(a, **options)
    upper = options.get("upper", False)
    low = _h(z) if upper else z
    inverse = np.linalg.inv(low)
    n = np.shape(low)[-1]
    half = np.tril(np.ones((n, n))) - 0.5 * np.eye(n)
    d = low @ (inverse @ by_triangle(direction(da, a), not upper) @ _h(inverse) * half)
    return z, _h(d) if upper else d


@frule(np.linalg.eigvalsh)
def eigvalsh(primals, tangents, UPLO="L"):
    (a,), (da,) = primals, tangents
    v = np.linalg.eigh(a, UPLO)[1]
    d = by_triangle(direction(da, a), UPLO.upper() == "L")
    return np.linalg.eigvalsh(a, UPLO), diagonal_of(v, d @ v)


@frule(np.linalg.eigh)
def eigh(primals, tangents, UPLO="L"):
    (a,), (da,) = primals, tangents
    w, v = z = np.linalg.eigh(a, UPLO)
    turned = by_triangle(direction(da, a), UPLO.upper() == "L") @ v
    gaps = ratio(1.0, w[..., None, :] - w[..., :, None])
    return z, (diagonal_of(v, turned), v @ (gaps * (_h(v) @ turned)))


def diagonal_of(u: Any, d: Any) -> Any:
    """The real diagonal of the product of the adjoint of ``u`` with ``d``."""
    return np.real(np.add.reduce(np.conjugate(u) * d, axis=-2))


@frule(np.linalg.pinv)
def pinv(primals, tangents, **options):
    (a, *rest), (da, *others) = primals, tangents
    if any(t is not None for t in others):
        return NotImplemented
    # Golub & Pereyra (1973), and what is said of `cut_part`.
    p = np.linalg.pinv(a, *rest, **options)
    x, d = _array(a), direction(da, a)
    if options.get("hermitian", rest[1] if len(rest) > 1 else False):
        x, d = by_triangle(x, True), by_triangle(d, True)
    return p, _pinv_tangent(d, x, p)


def _pinv_tangent(d: Any, a: Any, p: Any) -> Any:
    m, n = np.shape(a)[-2:]
    if m < n:
        return _t(_pinv_tangent(_t(d), _t(a), _t(p)))
    dh, ph = _h(d), _h(p)
    square, rest = p @ ph, cut_part(a, p)
    rh = _h(rest)
    small = rh @ rest
    before = square @ (dh - (dh @ a) @ p + (p @ d) @ rh)
    before = before + series(square, square @ before @ rest, small) @ rh
    behind = series(small, (dh - (p @ a) @ dh + (rh @ d) @ p) @ ph, square) @ p
    return before + behind - (p @ d) @ p


@frule(np.linalg.svd)
def svd(primals, tangents, full_matrices=True, compute_uv=True, hermitian=False):
    (a,), (da,) = primals, tangents
    z = np.linalg.svd(a, full_matrices, compute_uv, hermitian)
    x, d = _array(a), direction(da, a)
    if hermitian:
        x, d = by_triangle(x, True), by_triangle(d, True)
    if not compute_uv:
        return z, singular(x, d)
    u, s, vh = z
    k = np.shape(s)[-1]
    more_u, more_v = np.shape(u)[-1] > k, np.shape(vh)[-2] > k
    u, vh = u[..., :, :k], vh[..., :k, :]
    v = _h(vh)
    p = _h(u) @ d @ v
    row, column = s[..., None, :], s[..., :, None]
    gaps = ratio(1.0, (row - column) * (row + column))
    inverse = ratio(1.0, row)
    ds = np.real(np.add.reduce(np.eye(k) * p, axis=-1))
    middle = gaps * (p * row + column * _h(p))
    if is_complex(x):
        middle = middle + 1j * np.eye(k) * np.imag(p) * inverse
    du = u @ middle
    if np.shape(u)[-2] > k:
        du = du + (d @ v - u @ p) * inverse
    dv = v @ (gaps * (column * p + _h(p) * row))
    if np.shape(v)[-2] > k:
        dv = dv + (_h(d) @ u - v @ _h(p)) * inverse
    return z, (no_more() if more_u else du, ds, no_more() if more_v else _h(dv))


def no_more() -> Missing:
    """Says that the vectors which make a factor square have no tangent."""
    return Missing(SQUARE)


def singular(x: Any, d: Any) -> Any:
    """The tangent of the singular values."""
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    return diagonal_of(u, d @ _h(vh))


if hasattr(np.linalg, "svdvals"):

    @frule(*SVDVALS)
    def svdvals(primals, tangents, **options):
        (a,), (da,) = primals, tangents
        return np.linalg.svd(a, compute_uv=False), singular(_array(a), direction(da, a))


@frule(np.linalg.qr)
def qr(primals, tangents, mode="reduced"):
    # Walter & Lehmann (2010): with B = Q^H dA R^-1 the tangent of Q is Q W and what is orthogonal to Q, for a
    # skew-Hermitian W that has the lower triangle of B.
    (a,), (da,) = primals, tangents
    if mode not in ("reduced", "complete", "r"):
        return NotImplemented
    z = np.linalg.qr(a, mode)
    x, d = _array(a), direction(da, a)
    m, n = np.shape(x)[-2:]
    k = min(m, n)
    q, r = np.linalg.qr(x) if mode != "reduced" else z
    square = r[..., :, :k] + invertible(r[..., :, :k], DEFICIENT)
    dx = _t(np.linalg.solve(_t(square), _t(d[..., :, :k])))
    b = _h(q) @ dx
    low = np.tril(b, -1)
    turn = low - _h(low)
    if is_complex(x):
        turn = turn + 1j * np.eye(k) * np.imag(b)
    dq = q @ turn + (dx - q @ b if m > k else 0.0)
    dr = _h(q) @ d - turn @ r
    if mode == "r":
        return z, dr
    if mode == "complete" and m > k:
        missing = np.zeros((*np.shape(dr)[:-2], m - k, n), dr.dtype)
        return z, (no_more(), np.concatenate([dr, missing], axis=-2))
    return z, (dq, dr)
