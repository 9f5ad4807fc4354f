"""SciPy's linear algebra.

As in `numpy_linalg`, transposes stand in the place of adjoints, and of a matrix of which one triangle is read,
the gradient lies in that triangle. What is the same as a function of NumPy's but for its last bits is
differentiated like that one; block_diag, khatri_rao and others that SciPy writes in Python are traced through.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import linalg

from .broadcasting import is_complex, is_sequence, settled, unbroadcast
from .equivalents import like
from .numpy_fft import fitted
from .numpy_linalg import _pinv_pullback, _svd_pullback, invertible, largest, triangle_read
from .registry import Operand, caller, factored, frule, nondiff, query, rrule, varies
from .zeros import conj, plus, ratio

# Square roots, logarithms and eigenvectors are complex or not; a part of the eigenvalues may be asked for.
varies(
    linalg.sqrtm,
    linalg.logm,
    linalg.fractional_matrix_power,
    linalg.eig,
    linalg.eigvals,
    linalg.eigh,
)


def array(x: Any) -> Any:
    return np.asarray(x) if is_sequence(x) else x


def t(x: Any) -> Any:
    """The transposed matrices."""
    return np.swapaxes(x, -1, -2)


def h(x: Any) -> Any:
    """The adjoint matrices."""
    return conj(np.swapaxes(x, -1, -2))


def columns(x: Any) -> Any:
    """A right-hand side as a matrix."""
    return x[:, None] if np.ndim(x) == 1 else x


def refuse(flag: Any, what: str) -> None:
    """An error for what a rule does not know."""
    if flag:
        raise NotImplementedError(f"the derivative is not known {what}")


# ---------------------------------------------------------------------------------------------- solving

SYMMETRIC = ("sym", "symmetric", "her", "hermitian", "pos", "positive definite")


def meant(a: Any, structure: Any, lower: Any) -> Any:
    """The matrix of which SciPy reads only a part, as its structure says."""
    if structure in SYMMETRIC:
        part = np.tril(a, -1) if lower else np.triu(a, 1)
        mirrored = t(part) if structure in ("sym", "symmetric") else h(part)
        diagonal = a if structure in ("sym", "symmetric") else np.real(a)
        return part + mirrored + np.eye(np.shape(a)[-1]) * diagonal
    if structure == "diagonal":
        return np.eye(np.shape(a)[-1]) * a
    if structure == "upper triangular":
        return np.triu(a)
    if structure == "lower triangular":
        return np.tril(a)
    if structure == "tridiagonal":
        return np.triu(np.tril(a, 1), -1)
    return a


def part_read(d: Any, structure: Any, lower: Any) -> Any:
    """The cotangent of the matrix that is meant, brought to the part that is read."""
    if structure in ("sym", "symmetric"):
        both = d + t(d)
        strict = np.tril(both, -1) if lower else np.triu(both, 1)
        return strict + np.eye(np.shape(d)[-1]) * d
    if structure in SYMMETRIC:
        return triangle_read(d, lower)
    return meant(d, structure, lower)


@rrule(linalg.solve)
def solve(
    a,
    b,
    lower=False,
    overwrite_a=False,
    overwrite_b=False,
    check_finite=True,
    assume_a=None,
    transposed=False,
):
    z = linalg.solve(a, b, lower, assume_a=assume_a, transposed=transposed)
    refuse(overwrite_a or overwrite_b, "where an argument may be overwritten")

    def pullback(dz):
        m = meant(array(a), assume_a, lower)
        vector = np.ndim(b) == 1
        d = dz[..., None] if vector else dz
        x = z[..., None] if vector else z
        db = np.linalg.solve(m if transposed else t(m), d)
        da = -(x @ t(db)) if transposed else -(db @ t(x))
        return (
            unbroadcast(part_read(da, assume_a, lower), a),
            unbroadcast(db[..., 0] if vector else db, b),
        )

    return z, pullback


@rrule(linalg.inv)
def inv(a, overwrite_a=False, check_finite=True, **options):
    z = linalg.inv(a, **options)
    structure, lower = options.get("assume_a"), options.get("lower", False)
    refuse(overwrite_a, "where the argument may be overwritten")

    def pullback(dz):
        zt = t(z)
        return (unbroadcast(part_read(-(zt @ dz @ zt), structure, lower), a),)

    return z, pullback


@query
def transposition(trans: Any) -> int:
    """0, 1 or 2 for a system with the matrix, its transpose, its adjoint."""
    return {"N": 0, "T": 1, "C": 2}.get(trans, trans)


def system_cotangent(trans: int, x: Any, db: Any) -> Any:
    """The cotangent of the matrix of a system, of its solution and the cotangent of its right-hand side."""
    d = -(columns(db) @ t(columns(x)))
    return d if trans == 0 else t(d) if trans == 1 else conj(t(d))


@rrule(linalg.solve_triangular)
def solve_triangular(
    a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True
):
    x = linalg.solve_triangular(a, b, trans, lower, unit_diagonal)
    refuse(overwrite_b, "where an argument may be overwritten")

    def pullback(dx):
        op = transposition(settled(trans))
        m = conj(array(a)) if op == 2 else array(a)
        db = linalg.solve_triangular(m, dx, 1 if op == 0 else 0, lower, unit_diagonal)
        d = system_cotangent(op, x, db)
        k = 1 if unit_diagonal else 0
        return unbroadcast(np.tril(d, -k) if lower else np.triu(d, k), a), unbroadcast(db, b)

    return x, pullback


def factor_cotangent(c: Any, lower: Any, x: Any, db: Any) -> Any:
    """The cotangent of the Cholesky factor ``c``, from that of the matrix, ``-db @ x.T``, which is never made."""
    x, db = columns(x), columns(db)
    if lower:
        low = conj(np.tril(c))
        return np.tril(-(db @ (t(x) @ low) + conj(x) @ (h(db) @ low)))
    up = conj(np.triu(c))
    return np.triu(-((up @ db) @ t(x) + (up @ conj(x)) @ h(db)))


@rrule(linalg.cho_solve)
def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    c, lower = c_and_lower
    x = linalg.cho_solve((c, lower), b)
    refuse(overwrite_b, "where an argument may be overwritten")

    def pullback(dx):
        db = conj(linalg.cho_solve((c, lower), conj(dx)))
        dc = factor_cotangent(array(c), lower, x, db)
        return (unbroadcast(dc, c), None), unbroadcast(db, b)

    return x, pullback


def pivoted(pivots: Any, rows: int) -> Any:
    """The order of rows that LAPACK's sequence of exchanges leads to."""
    order = np.arange(rows)
    for i, j in enumerate(pivots):
        order[[i, j]] = order[[j, i]]
    return order


nondiff(pivoted)


@rrule(linalg.lu_solve)
def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    lu, piv = lu_and_piv
    x = linalg.lu_solve((lu, piv), b, trans)
    refuse(overwrite_b, "where an argument may be overwritten")

    def pullback(dx):
        op = transposition(settled(trans))
        if op == 2:
            db = conj(linalg.lu_solve((lu, piv), conj(dx), 0))
        else:
            db = linalg.lu_solve((lu, piv), dx, 1 - op)
        # The cotangent of the matrix is -left @ right, two factors as narrow as the right-hand side.
        left, right = (columns(db), columns(x)) if op == 0 else (columns(x), columns(db))
        if op == 2:
            left, right = conj(left), conj(right)
        left, right = left[pivoted(piv, np.shape(lu)[0])], t(right)
        low = np.tril(lu, -1) + np.eye(np.shape(lu)[0])
        dlu = -(np.tril(left @ (right @ t(np.triu(lu))), -1) + np.triu((t(low) @ left) @ right))
        return (unbroadcast(dlu, lu), None), unbroadcast(db, b)

    return x, pullback


def lu_solved(a, lu_and_piv, b, trans=0):
    """What `lu_solve` gives with the factors of ``a``; the derivative takes nothing but one more solve with them."""
    return linalg.lu_solve(lu_and_piv, b, trans)


@rrule(lu_solved)
def lu_solved_rule(a, lu_and_piv, b, trans=0):
    x = linalg.lu_solve(lu_and_piv, b, trans)

    def pullback(dx):
        op = transposition(settled(trans))
        if op == 2:
            db = conj(lu_solved(a, lu_and_piv, conj(dx), 0))
        else:
            db = lu_solved(a, lu_and_piv, dx, 1 - op)
        return unbroadcast(system_cotangent(op, x, db), a), None, unbroadcast(db, b)

    return x, pullback


def cho_solved(a, c_and_lower, b):
    """The same for `cho_solve`."""
    return linalg.cho_solve(c_and_lower, b)


@rrule(cho_solved)
def cho_solved_rule(a, c_and_lower, b):
    x = linalg.cho_solve(c_and_lower, b)

    def pullback(dx):
        db = conj(cho_solved(a, c_and_lower, conj(dx)))
        da = triangle_read(system_cotangent(0, x, db), c_and_lower[1])
        return unbroadcast(da, a), None, unbroadcast(db, b)

    return x, pullback


factored[linalg.lu_solve] = (linalg.lu_factor, lu_solved)
factored[linalg.cho_solve] = (linalg.cho_factor, cho_solved)


@rrule(linalg.solve_sylvester)
def solve_sylvester(a, b, q):
    x = linalg.solve_sylvester(a, b, q)

    def pullback(dx):
        dq = linalg.solve_sylvester(t(array(a)), t(array(b)), dx)
        return unbroadcast(-(dq @ t(x)), a), unbroadcast(-(t(x) @ dq), b), unbroadcast(dq, q)

    return x, pullback


@like(linalg.solve_continuous_lyapunov)
def solve_continuous_lyapunov(a, q):
    return linalg.solve_sylvester(a, h(array(a)), q)


@rrule(linalg.pinv)
def pinv(a, *, atol=None, rtol=None, return_rank=False, check_finite=True):
    z = linalg.pinv(a, atol=atol, rtol=rtol, return_rank=return_rank)

    def pullback(dz):
        p, dp = (z[0], dz[0]) if return_rank else (z, dz)
        return (None if dp is None else unbroadcast(_pinv_pullback(dp, array(a), p), a),)

    return z, pullback


def rank_by_qr(a: Any, b: Any, cond: Any) -> Any:
    """The rank that `lstsq` finds without singular values."""
    return linalg.lstsq(a, b, cond, lapack_driver="gelsy")[2]


nondiff(rank_by_qr)


@like(linalg.lstsq)
def lstsq(a, b, cond=None, *_, lapack_driver=None, **options):
    eps = np.finfo(np.result_type(array(a), array(b), np.float32)).eps
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond=eps if cond is None else cond)
    if lapack_driver == "gelsy":  # which estimates the rank in another way
        rank = rank_by_qr(a, b, cond)
    refuse(rank < np.shape(x)[0] and np.shape(a)[0] > rank, "for matrices without full rank")
    if np.ndim(b) == 1 and np.size(residuals):
        residuals = residuals[0]
    return x, residuals, rank, None if lapack_driver == "gelsy" else s


def diagonal_index(l_and_u: Any, n: int) -> Any:
    """Where the elements of the banded form of a matrix stand in it, and which of them are in it at all."""
    low, up = l_and_u
    columns_ = np.arange(n)[None, :]
    rows = np.arange(-up, low + 1)[:, None] + columns_
    inside = (rows >= 0) & (rows < n)
    return np.where(inside, rows, 0), columns_, inside


def unbanded(l_and_u: Any, ab: Any) -> Any:
    """The full matrix of a banded form."""
    n = np.shape(ab)[1]
    rows, at, inside = diagonal_index(l_and_u, n)
    full = np.zeros((n, n), np.result_type(ab))
    full[np.broadcast_to(rows, inside.shape)[inside], np.broadcast_to(at, inside.shape)[inside]] = (
        ab[inside]
    )
    return full


nondiff(unbanded)


@rrule(linalg.solve_banded)
def solve_banded(l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True):
    low, up = settled(l_and_u)
    x = linalg.solve_banded((low, up), ab, b)
    refuse(overwrite_ab or overwrite_b, "where an argument may be overwritten")

    def pullback(dx):
        m = array(ab)
        rows, at, inside = diagonal_index((low, up), np.shape(m)[1])
        # The transposed matrix has the diagonals in the opposite order, each from another start.
        n = np.shape(m)[1]
        i, _, present = diagonal_index((up, low), n)
        turned = np.where(present, m[np.arange(low + up, -1, -1)[:, None], i], 0)
        db = linalg.solve_banded((up, low), turned, dx)
        y, w = columns(x), columns(db)
        d = -np.add.reduce(w[rows] * y[at], axis=-1)
        return None, unbroadcast(np.where(inside, d, 0), ab), unbroadcast(db, b)

    return x, pullback


@rrule(linalg.solveh_banded)
def solveh_banded(ab, b, overwrite_ab=False, overwrite_b=False, lower=False, check_finite=True):
    x = linalg.solveh_banded(ab, b, lower=lower)
    refuse(overwrite_ab or overwrite_b, "where an argument may be overwritten")

    def pullback(dx):
        m = array(ab)
        width, n = np.shape(m)[0] - 1, np.shape(m)[1]
        db = conj(linalg.solveh_banded(m, conj(dx), lower=lower))
        rows, at, inside = diagonal_index((width, 0) if lower else (0, width), n)
        y, w = columns(x), columns(db)
        d = -np.add.reduce(w[rows] * y[at], axis=-1)
        mirrored = -np.add.reduce(conj(w[at] * y[rows]), axis=-1)
        diagonal = 0 if lower else width
        middle = np.arange(width + 1)[:, None] == diagonal
        both = np.where(middle, np.real(d), d + mirrored)
        return unbroadcast(np.where(inside, both, 0), ab), unbroadcast(db, b)

    return x, pullback


# ------------------------------------------------------------------------------- matrices made of vectors


def diagonal_sums(d: Any) -> Any:
    """The sums over the diagonals of a matrix, from the lower left corner to the upper right one."""
    n, m = np.shape(d)
    padded = np.concatenate((d[::-1], np.zeros((n, n), np.result_type(d))), axis=1)
    skewed = np.reshape(np.reshape(padded, -1)[: n * (n + m - 1)], (n, n + m - 1))
    return np.add.reduce(skewed, axis=0)


def flat(x: Any) -> None:
    refuse(np.ndim(x) != 1, "of a matrix of several vectors; make one at a time")


@rrule(linalg.toeplitz)
def toeplitz(c, r: Operand = None):
    z = linalg.toeplitz(c, r)

    def pullback(dz):
        n = np.shape(dz)[0]
        flat(c)
        s = diagonal_sums(dz)
        dc = s[:n][::-1]
        edge = np.concatenate((np.zeros(1), s[n:]))
        if r is None:
            return (unbroadcast(dc + conj(edge), c),)
        flat(r)
        return unbroadcast(dc, c), unbroadcast(edge, r)

    return z, pullback


@rrule(linalg.hankel)
def hankel(c, r: Operand = None):
    z = linalg.hankel(c, r)

    def pullback(dz):
        flat(c)
        n = np.shape(dz)[0]
        s = diagonal_sums(dz[::-1])
        if r is None:
            return (unbroadcast(s[:n], c),)
        flat(r)
        return unbroadcast(s[:n], c), unbroadcast(np.concatenate((np.zeros(1), s[n:])), r)

    return z, pullback


@rrule(linalg.circulant)
def circulant(c):
    def pullback(dz):
        flat(c)
        n = np.shape(dz)[0]
        s = diagonal_sums(dz)
        return (unbroadcast(s[:n][::-1] + np.concatenate((np.zeros(1), s[n:][::-1])), c),)

    return linalg.circulant(c), pullback


@like(linalg.solve_toeplitz)
def solve_toeplitz(c_or_cr, b, check_finite=True):
    matrix = linalg.toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else linalg.toeplitz(c_or_cr)
    return np.linalg.solve(matrix, b)


def norm_of(a: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    """SciPy's norm."""
    return linalg.norm(a, ord, axis, keepdims)


@like(norm_of)
def _norm_of(a, ord=None, axis=None, keepdims=False):
    return np.linalg.norm(a, ord, axis, keepdims)


@caller(linalg.norm)
def norm(engine, a, ord=None, axis=None, keepdims=False, check_finite=True):
    # Which formula holds is decided by the value of ord.
    ord, axis = engine.constant(ord, "ord"), engine.plain(axis)
    return engine.record(norm_of, a, ord, axis, engine.plain(keepdims))


@like(linalg.det)
def det(a, overwrite_a=False, check_finite=True):
    refuse(overwrite_a, "where the argument may be overwritten")
    return np.linalg.det(a)


# --------------------------------------------------------------------------------------- factorisations


def spare(d: Any) -> float:
    """Zero, if nothing flows back to the orthonormal vectors that complete a basis: they have no derivative."""
    if np.any(d):
        raise NotImplementedError(
            "the vectors that complete the orthonormal factor of a rectangular matrix have no derivative; "
            'use full_matrices=False, or mode="economic"'
        )
    return 0.0


nondiff(spare)

CLEAN = not linalg.cho_factor(np.array([[2.0, 1.0], [1.0, 2.0]]))[0][
    1, 0
]  # not what was there before


def cholesky_cotangent(low: Any, d: Any) -> Any:
    """I. Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10; for the lower factor."""
    n = np.shape(low)[-1]
    half = np.tril(np.ones((n, n))) - 0.5 * np.eye(n)
    middle = h(low) @ conj(d) * half
    inner = linalg.solve_triangular(low, middle, 2, True)
    s = h(linalg.solve_triangular(low, h(inner), 2, True))
    return conj(0.5 * (s + h(s)))


@rrule(linalg.cholesky)
def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    z = linalg.cholesky(a, lower)
    refuse(overwrite_a, "where the argument may be overwritten")

    def pullback(dz):
        s = (
            cholesky_cotangent(z, np.tril(dz))
            if lower
            else conj(cholesky_cotangent(h(z), h(np.triu(dz))))
        )
        return (unbroadcast(triangle_read(s if lower else conj(s), lower), a),)

    return z, pullback


@rrule(linalg.cho_factor)
def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    z = linalg.cho_factor(a, lower)
    refuse(overwrite_a, "where the argument may be overwritten")

    def pullback(dz):
        c, d = z[0], dz[0]
        s = (
            cholesky_cotangent(np.tril(c), np.tril(d))
            if lower
            else conj(cholesky_cotangent(h(np.triu(c)), h(np.triu(d))))
        )
        s = triangle_read(s if lower else conj(s), lower)
        if not CLEAN:  # the other triangle of the argument is left standing
            s = s + (np.triu(d, 1) if lower else np.tril(d, -1))
        return (unbroadcast(s, a),)

    return z, pullback


def lu_cotangent(low: Any, up: Any, dlow: Any, dup: Any) -> Any:
    """The cotangent of the matrix ``low @ up`` with rows in their final order, from those of its factors.

    Either of these may be None.
    """
    m, k = np.shape(low)[-2:]
    n = np.shape(up)[-1]
    l1, u1 = low[..., :k, :], up[..., :, :k]
    dl1 = None if dlow is None else np.tril(dlow[..., :k, :], -1)
    du1 = None if dup is None else np.triu(dup[..., :, :k])
    right = bottom = None
    if n > k and dup is not None:
        right = linalg.solve_triangular(l1, dup[..., :, k:], 1, True, True)
        dl1 = plus(dl1, -np.tril(right @ t(up[..., :, k:]), -1))
    if m > k and dlow is not None:
        bottom = t(linalg.solve_triangular(u1, t(dlow[..., k:, :])))
        du1 = plus(du1, -np.triu(t(low[..., k:, :]) @ bottom))
    inner = plus(
        None if dl1 is None else np.tril(t(l1) @ dl1, -1),
        None if du1 is None else np.triu(du1 @ t(u1)),
    )
    d = linalg.solve_triangular(l1, t(linalg.solve_triangular(u1, t(inner))), 1, True, True)
    d = fitted(d, n, -1) if right is None else np.concatenate((d, right), axis=-1)
    return fitted(d, m, -2) if bottom is None else np.concatenate((d, bottom), axis=-2)


@rrule(linalg.lu)
def lu(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False):
    z = linalg.lu(a, permute_l, p_indices=p_indices)
    refuse(overwrite_a, "where the argument may be overwritten")

    def pullback(dz):
        refuse(np.ndim(a) != 2, "for stacks of matrices")
        x = array(a)
        p, low, up = linalg.lu(x) if permute_l or p_indices else z
        dlow, dup = dz[-2:]
        if permute_l and dlow is not None:
            dlow = t(p) @ dlow
        d = lu_cotangent(low, up, dlow, dup)
        return (unbroadcast(p @ d, a),)

    return z, pullback


@rrule(linalg.lu_factor)
def lu_factor(a, overwrite_a=False, check_finite=True):
    z = linalg.lu_factor(a)
    refuse(overwrite_a, "where the argument may be overwritten")

    def pullback(dz):
        refuse(np.ndim(a) != 2, "for stacks of matrices")
        f, d = z[0], dz[0]
        m, n = np.shape(f)
        k = min(m, n)
        low = np.tril(f[:, :k], -1) + np.eye(m, k)
        dx = lu_cotangent(low, np.triu(f[:k, :]), d[:, :k], d[:k, :])
        return (unbroadcast(dx[np.argsort(pivoted(z[1], m))], a),)

    return z, pullback


def qr_cotangent(q: Any, r: Any, gq: Any, gr: Any) -> Any:
    """S. F. Walter and L. Lehmann (2010), as in `numpy_linalg.qr`; for a wide matrix, by its first columns.

    ``gq`` and ``gr`` are conjugated cotangents, either of which may be None, and so is the result.
    """
    k, n = np.shape(r)[-2:]
    r1, gr1 = r[..., :k], None if gr is None else gr[..., :k]
    if n > k and gr is not None:
        gq = plus(gq, q @ (r[..., k:] @ h(gr[..., k:])))
    m = plus(None if gr1 is None else r1 @ h(gr1), None if gq is None else -(h(gq) @ q))
    low = np.tril(m, -1)
    both = low + h(low) + np.eye(k) * np.real(m)
    g = h(np.linalg.solve(r1, h(plus(gq, q @ both))))
    if n == k:
        return g
    return fitted(g, n, -1) if gr is None else np.concatenate((g, q @ gr[..., k:]), axis=-1)


@rrule(linalg.qr)
def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    z = linalg.qr(a, mode=mode, pivoting=pivoting)
    refuse(overwrite_a, "where the argument may be overwritten")

    def pullback(dz):
        refuse(np.ndim(a) != 2, "for stacks of matrices")
        refuse(mode == "raw", 'for mode="raw"')
        x = array(a)
        k = min(np.shape(x))
        parts = linalg.qr(x, mode="economic", pivoting=pivoting) if mode == "r" else z
        q, r = parts[0][:, :k], parts[1][:k]
        dq, dr = (None, dz[0]) if mode == "r" else (dz[0], dz[1])
        if dq is not None and np.shape(dq)[1] > k:
            dq = dq[:, :k] + spare(dq[:, k:])
        gq = None if dq is None else np.conjugate(dq)
        gr = None if dr is None else np.conjugate(dr)[:k]
        d = np.conjugate(qr_cotangent(q, r, gq, gr))
        return (unbroadcast(d[:, np.argsort(parts[2])] if pivoting else d, a),)

    return z, pullback


@rrule(linalg.svd)
def svd(
    a,
    full_matrices=True,
    compute_uv=True,
    overwrite_a=False,
    check_finite=True,
    lapack_driver="gesdd",
):
    z = linalg.svd(a, full_matrices, compute_uv, lapack_driver=lapack_driver)
    refuse(overwrite_a, "where the argument may be overwritten")

    def pullback(dz):
        x = array(a)
        if not compute_uv:
            u, _, vh = linalg.svd(x, full_matrices=False)
            return (unbroadcast(np.conjugate(u * np.expand_dims(dz, -2) @ vh), a),)
        u, s, vh = z
        du, ds, dvh = dz
        k = np.shape(s)[-1]
        if np.shape(u)[-1] > k and du is not None:
            du = du[..., :, :k] + spare(du[..., :, k:])
        if np.shape(vh)[-2] > k and dvh is not None:
            dvh = dvh[..., :k, :] + spare(dvh[..., k:, :])
        return (unbroadcast(_svd_pullback(x, u[..., :, :k], s, vh[..., :k, :], du, ds, dvh), a),)

    return z, pullback


@rrule(linalg.svdvals)
def svdvals(a, overwrite_a=False, check_finite=True):
    refuse(overwrite_a, "where the argument may be overwritten")

    def pullback(ds):
        u, _, vh = linalg.svd(array(a), full_matrices=False)
        return (unbroadcast(np.conjugate(u * np.expand_dims(ds, -2) @ vh), a),)

    return linalg.svdvals(a), pullback


@rrule(linalg.eigh)
def eigh(
    a,
    b: Operand = None,
    *,
    lower=True,
    eigvals_only=False,
    type=1,
    subset_by_index=None,
    subset_by_value=None,
    **options,
):
    # With v^H b v = 1: dw = v^H (da - w db) v, and dv = v c with c_ij = v_i^H (da - w_j db) v_j/(w_j - w_i),
    # c_ii = -v_i^H db v_i/2. What vectors of equal eigenvalues would add is left out.
    given = {
        "lower": lower,
        "type": type,
        "subset_by_index": subset_by_index,
        "subset_by_value": subset_by_value,
    }
    z = linalg.eigh(a, b, eigvals_only=eigvals_only, **given, **options)

    def pullback(dz):
        refuse(type != 1, "for a generalised problem of type 2 or 3")
        if eigvals_only:
            w, v = linalg.eigh(a, b, **given, **options)
            dw, dv = dz, None
        else:
            (w, v), (dw, dv) = z, dz
        refuse(
            dv is not None and np.shape(v)[-1] < np.shape(v)[-2], "for a part of the eigenvectors"
        )
        row, one = np.expand_dims(w, -2), np.eye(np.shape(w)[-1])
        middle = None if dw is None else np.expand_dims(dw, -2) * one
        overlap = None if dv is None else h(v) @ np.conjugate(dv)
        if overlap is not None:
            middle = plus(middle, ratio(1.0, row - np.expand_dims(w, -1)) * overlap)
        da = unbroadcast(triangle_read(np.conjugate(v @ middle @ h(v)), lower), a)
        if b is None:
            return (da,)
        inner = plus(middle * row, None if overlap is None else 0.5 * overlap * one)
        return da, unbroadcast(triangle_read(-np.conjugate(v @ inner @ h(v)), lower), b)

    return z, pullback


@like(linalg.eigvalsh)
def eigvalsh(a, b: Operand = None, **options):
    return linalg.eigh(a, b, eigvals_only=True, **options)


@rrule(linalg.eig)
def eig(a, b=None, left=False, right=True, homogeneous_eigvals=False, **options):
    # As in `numpy_linalg.eig`: a vector keeps its length and the phase that LAPACK gives it.
    z = linalg.eig(a, b, left, right, homogeneous_eigvals=homogeneous_eigvals)

    def pullback(dz):
        refuse(
            b is not None or left or homogeneous_eigvals, "but for eig(a) and eig(a, right=False)"
        )
        if right:
            (w, v), (dw, dv) = z, dz
        else:
            (w, v), (dw, dv) = linalg.eig(a), (dz, None)
        middle = None if dw is None else dw[None, :] * np.eye(np.shape(w)[-1])
        if dv is not None:
            s = np.add.reduce(dv * v, axis=-2, keepdims=True)
            d = dv - np.real(s) * conj(v)
            if is_complex(v):
                top = largest(v)
                length = np.add.reduce(top * np.real(v), axis=-2, keepdims=True)
                d = d - 1j * top * ratio(np.imag(s), length)
            middle = plus(middle, ratio(1.0, w[None, :] - w[:, None]) * (t(v) @ d))
        return (unbroadcast(np.linalg.solve(t(v), middle @ t(v)), a),)

    return z, pullback


@rrule(linalg.eigvals)
def eigvals(a, b=None, homogeneous_eigvals=False, **options):
    def pullback(dw):
        refuse(b is not None or homogeneous_eigvals, "for a generalised problem")
        v = linalg.eig(a)[1]
        return (unbroadcast(np.linalg.solve(t(v), dw[:, None] * t(v)), a),)

    return linalg.eigvals(a, b, homogeneous_eigvals=homogeneous_eigvals), pullback


# ----------------------------------------------------------------------------------- functions of matrices


def corner(function: Any, x: Any, e: Any) -> Any:
    """The derivative of an analytic function of a matrix along ``e``: the corner of the function of [x, e; 0, x].

    N. J. Higham, "Functions of Matrices" (2008), equation 3.16.
    """
    n = np.shape(x)[-1]
    top = np.concatenate((x, e), axis=-1)
    bottom = np.concatenate((np.zeros(np.shape(x)), x), axis=-1)
    return function(np.concatenate((top, bottom), axis=-2))[..., :n, n:]


@rrule(linalg.expm)
def expm(A):
    def pullback(dz):
        return (unbroadcast(corner(linalg.expm, t(array(A)), dz), A),)

    return linalg.expm(A), pullback


def logarithm(a: Any) -> Any:
    """``logm``, which estimates norms at random, and leaves NumPy's random numbers as they were; without warnings."""
    state = np.random.get_state()
    try:
        with warnings.catch_warnings(action="ignore"):
            return linalg.logm(a)
    finally:
        np.random.set_state(state)


@rrule(logarithm)
def _logarithm(a):
    return logarithm(a), lambda dz: (corner(logarithm, t(array(a)), dz),)


@rrule(linalg.logm)
def logm(A, **options):
    z = linalg.logm(A, **options)

    def pullback(dz):
        refuse(isinstance(z, tuple), "with disp=False")
        return (unbroadcast(corner(logarithm, t(array(A)), dz), A),)

    return z, pullback


@frule(linalg.expm)
def expm_forward(primals, tangents):
    (a,), (da,) = primals, tangents
    return linalg.expm(a), corner(linalg.expm, array(a), array(da))


@frule(linalg.logm)
def logm_forward(primals, tangents):
    (a,), (da,) = primals, tangents
    return linalg.logm(a), corner(logarithm, array(a), array(da))


@rrule(linalg.sqrtm)
def sqrtm(A, **options):
    z = linalg.sqrtm(A, **options)

    def pullback(dz):
        refuse(isinstance(z, tuple), "with disp=False")
        refuse(np.ndim(A) != 2, "for stacks of matrices")
        return (unbroadcast(linalg.solve_sylvester(t(z), t(z), dz), A),)

    return z, pullback


def fractional(a: Any, exponent: Any) -> Any:
    """``fractional_matrix_power``, which estimates norms at random as well."""
    state = np.random.get_state()
    try:
        return linalg.fractional_matrix_power(a, exponent)
    finally:
        np.random.set_state(state)


def invertible_or_whole(a: Any, exponent: Any) -> float:
    """Zero, if a power of a matrix has a derivative."""
    return 0.0 if exponent == np.floor(exponent) else invertible(a, SINGULAR)


nondiff(invertible_or_whole)
CUT = "for a real matrix with a complex power: rounding takes negative eigenvalues to both sides of the cut"
SINGULAR = "the matrix is singular, and its fractional powers have no derivative"


def power_pullback(a: Any, exponent: Any, z: Any, dz: Any) -> Any:
    x = array(a)
    refuse(is_complex(z) and not is_complex(x), CUT)
    x = x + invertible_or_whole(x, exponent)
    da = corner(lambda b: fractional(b, exponent), t(x), dz)
    return unbroadcast(da, a), unbroadcast(np.sum(dz * (logarithm(x) @ z)), exponent)


@rrule(fractional)
def _fractional(a, exponent):
    z = fractional(a, exponent)
    return z, lambda dz: power_pullback(a, exponent, z, dz)


@rrule(linalg.fractional_matrix_power)
def fractional_matrix_power(A, t):
    z = linalg.fractional_matrix_power(A, t)
    return z, lambda dz: power_pullback(A, t, z, dz)


def power_forward(power: Any) -> None:
    @frule(power)
    def rule(primals, tangents):
        (a, exponent), (da, dexponent) = primals, tangents
        z, x, dz = power(a, exponent), array(a), None
        refuse(is_complex(z) and not is_complex(x), CUT)
        if da is not None:
            y = x + invertible_or_whole(x, exponent)
            dz = corner(lambda b: fractional(b, exponent), y, array(da))
        return z, dz if dexponent is None else plus(dz, dexponent * (logarithm(x) @ z))


power_forward(fractional)
power_forward(linalg.fractional_matrix_power)
