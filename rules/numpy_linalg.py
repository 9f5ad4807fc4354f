"""NumPy's linear algebra, on stacks of matrices.

Most formulas are in M. Giles, "An extended collection of matrix derivative results for forward and reverse
mode algorithmic differentiation" (2008), with transposes in the place of adjoints where JAX's convention for
complex numbers asks for it. What NumPy itself writes in Python (norm, cond, multi_dot, matrix_power, ...) has
no rule: it is traced through.

cholesky, eigh, eigvalsh, and svd and pinv with hermitian=True, read one triangle of their argument only, and so
their gradients lie in that triangle; on a symmetric matrix they act as the symmetric gradient does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .broadcasting import is_complex, is_sequence, unbroadcast
from .equivalents import like
from .numpy_fft import fitted
from .numpy_ufuncs import NUMPY2
from .registry import nondiff, query, rrule, varies
from .zeros import conj, plus, ratio

# Eigenvalues are complex or not, and the residuals of dependent columns are none.
varies(np.linalg.eig, np.linalg.eigvals, np.linalg.lstsq, np.roots)


def _array(x: Any) -> Any:
    """``x``, or the array that NumPy makes of a list."""
    return np.asarray(x) if is_sequence(x) else x


def _t(x: Any) -> Any:
    """The transposed matrices."""
    return np.swapaxes(x, -1, -2)


def _h(x: Any) -> Any:
    """The adjoint matrices."""
    return np.conjugate(np.swapaxes(x, -1, -2)) if is_complex(x) else np.swapaxes(x, -1, -2)


def _matrix(d: Any) -> Any:
    """Numbers, one for each matrix of a stack, ready to be multiplied with the matrices."""
    return np.reshape(d, (*np.shape(d), 1, 1))


# ---------------------------------------------------------------------------------------------- solving


@rrule(np.linalg.inv, np.linalg._umath_linalg.inv)  # np.linalg.cond calls the inner one
def inv(a, **options):
    z = np.linalg.inv(a)

    def pullback(dz):
        zt = _t(z)
        return (unbroadcast(-(zt @ dz @ zt), a),)

    return z, pullback


@query
def _is_vector(a: Any, b: Any) -> bool:
    """Does `np.linalg.solve` take ``b`` for a vector, or (before NumPy 2) for a stack of vectors?"""
    return np.ndim(b) == (1 if NUMPY2 else np.ndim(a) - 1)


@rrule(np.linalg.solve)
def solve(a, b):
    z = np.linalg.solve(a, b)

    def pullback(dz):
        at = _t(_array(a))
        if _is_vector(a, b):
            db = np.linalg.solve(at, dz[..., None])
            return unbroadcast(-(db * z[..., None, :]), a), unbroadcast(db[..., 0], b)
        db = np.linalg.solve(at, dz)
        return unbroadcast(-(db @ _t(z)), a), unbroadcast(db, b)

    return z, pullback


@rrule(np.linalg.pinv)
def pinv(a, rcond=None, hermitian=False, **options):
    # Golub & Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems ..."
    # (1973): dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P; and see `cut_part`.
    if rcond is not None:
        options["rcond"] = rcond
    p = np.linalg.pinv(a, hermitian=hermitian, **options)

    def pullback(dp):
        x = _array(a)
        if hermitian:
            x = np.tril(x) + _h(np.tril(x, -1))
            return (unbroadcast(triangle_read(_pinv_pullback(dp, x, p)), a),)
        return (unbroadcast(_pinv_pullback(dp, x, p), a),)

    return p, pullback


def _pinv_pullback(dp: Any, a: Any, p: Any) -> Any:
    m, n = np.shape(a)[-2:]
    if m < n:  # no product here is larger than the smaller side allows
        return _t(_pinv_pullback(_t(dp), _t(a), _t(p)))
    d = _t(dp)
    ph = _h(p)
    square, rest = p @ ph, cut_part(a, p)
    rh = _h(rest)
    small = rh @ rest
    before = ph @ series(square, p @ d, small)
    behind = d @ square
    behind = behind + rest @ series(small, rh @ behind @ square, square)
    # In the convention Re(sum(dp * dP)) each term is linear in dA or in its adjoint.
    straight = p @ before @ rh + rh @ behind @ p - p @ d @ p
    adjoint = behind - a @ (p @ behind) + before - (before @ p) @ a
    return _t(straight) + np.conjugate(adjoint)


def cut_part(a: Any, p: Any) -> Any:
    """What belongs to the singular values of ``a`` that were cut where ``p`` was made of it.

    Where they are not zero the spaces of the others turn into those of these: with R the part that was cut, the
    terms of Golub and Pereyra are no more than the first of a series in P^H P and R^H R, and one in P P^H and R R^H.
    """
    rest = was_cut(a, p) * a
    if np.any(rest):
        for _ in range(2):  # the second time takes away what the first leaves by rounding
            rest = rest - a @ (p @ rest)
            rest = rest - (rest @ p) @ a
    return rest


@like(cut_part)
def _cut_part(a, p):
    return was_cut(a, p) * (a - a @ (p @ a))


def was_cut(a: Any, p: Any) -> Any:
    """One for each matrix of which singular values that are not zero were cut, else zero."""
    count = min(a.shape[-2:])
    trace = np.sum(a * _t(p), axis=(-2, -1))  # of a projector
    rank = np.rint(np.real(trace)).astype(int)
    none = np.zeros(np.shape(rank), bool)
    if np.all(rank >= count):
        return _matrix(none)
    s = np.linalg.svd(a, compute_uv=False)
    s = np.concatenate((s, np.zeros_like(s[..., :1])), axis=-1)
    rank = np.clip(rank, 0, count)[..., None]
    kept = np.take_along_axis(s, np.maximum(rank - 1, 0), -1)[..., 0]
    cut = np.take_along_axis(s, rank, -1)[..., 0]
    eps = np.finfo(s.dtype).eps * s[..., 0]
    some = (rank[..., 0] > 0) & (cut > eps)
    if np.any(some & (kept - cut <= 10 * max(a.shape[-2:]) * eps)):
        raise np.linalg.LinAlgError(TIED)
    return _matrix(some & (cut * np.linalg.norm(p, 2, axis=(-2, -1)) < 1))


nondiff(was_cut)
TIED = "the least singular value that is kept and the largest that is cut are equal, and what is kept has no derivative"


def series(a: Any, c: Any, b: Any) -> Any:
    """The sum of a^k c b^k for k = 0, 1, 2, ...: the z for which z = c + a z b."""
    z = np.array(c)
    if not (np.any(a) and np.any(b)):
        return z
    for _ in range(64):  # each step doubles the number of terms
        size = _most(b)
        size = np.where(size > 0, size, 1)
        a, b = a * size, b / size
        more = a @ z @ b
        z = z + more
        if np.all(_most(more) <= np.finfo(z.dtype).eps * _most(z)):
            break
        a, b = a @ a, b @ b
    return z


def _most(a: Any) -> Any:
    """The size of the largest element of each matrix."""
    return np.max(np.abs(a), axis=(-2, -1), keepdims=True)


@rrule(series)
def _series(a, c, b):
    z = series(a, c, b)

    def pullback(dz):
        dc = series(_t(a), dz, _t(b))
        return dc @ _t(z @ b), dc, _t(a @ z) @ dc

    return z, pullback


@rrule(np.linalg.lstsq)
def lstsq(a, b, rcond=None):
    z = np.linalg.lstsq(a, b, rcond=rcond)

    def pullback(dz):
        dx, dresiduals, _, ds = dz
        x, y = _array(a), _array(b)
        columns = y[:, None] if np.ndim(y) == 1 else y
        das, dbs = [], []
        if dx is not None:
            p = np.linalg.pinv(x, rcond=cut_between(z[3], z[2]))
            d = dx[:, None] if np.ndim(y) == 1 else dx
            dbs.append(_t(p) @ d)
            das.append(_pinv_pullback(d @ _t(columns), x, p))
        if dresiduals is not None and np.size(dresiduals):
            solution = z[0][:, None] if np.ndim(y) == 1 else z[0]
            r = 2 * dresiduals * conj(columns - x @ solution)
            dbs.append(r)
            das.append(-(r @ _t(solution)))
        if ds is not None:
            u, _, vh = np.linalg.svd(x, full_matrices=False)
            das.append(np.conjugate(u * ds @ vh))
        da = unbroadcast(sum(das[1:], das[0]), a) if das else None
        db = unbroadcast(np.reshape(sum(dbs[1:], dbs[0]), np.shape(b)), b) if dbs else None
        return da, db

    return z, pullback


def cut_between(s: Any, rank: Any) -> float:
    """Below which part of the largest singular value `pinv` must cut, so that it keeps as many as that."""
    if rank == 0 or s[0] == 0:
        return 1.0
    least = s[rank] if rank < len(s) else 0.0
    return float((s[rank - 1] + least) / (2 * s[0]))


nondiff(cut_between)


# ------------------------------------------------------------------------------------------ determinants


def cofactors(a: Any) -> Any:
    """The matrix of cofactors, det(a) times the transposed inverse of ``a``; also where ``a`` is singular."""
    a = np.asarray(a)
    with np.errstate(all="ignore"):
        det = np.linalg.det(a)
        if np.all(np.isfinite(det) & (det != 0)):
            inverse = np.linalg.inv(a)
            if np.all(_size(a) * _size(inverse) < WELL):
                return _matrix(det) * _t(inverse)
    u, s, vh = np.linalg.svd(a)
    one = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([one, s[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([one, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return np.conjugate(
        (np.conjugate(phase)[..., None, None] * u) * (before * after)[..., None, :] @ vh
    )


WELL = 1e6  # up to this condition number the inverse is as good as the singular values


def _size(a: Any) -> Any:
    """The largest sum of a row."""
    return np.max(np.sum(np.abs(a), axis=-1), axis=-1, initial=0)


@rrule(cofactors)
def _cofactors(a):
    c = cofactors(a)

    def pullback(dc):
        x = _t(np.linalg.inv(a))
        d = _matrix(np.linalg.det(a)) * dc
        inner = _matrix(np.add.reduce(dc * x, axis=(-2, -1)))
        return (unbroadcast(inner * c - x @ _t(d) @ x, a),)

    return c, pullback


@rrule(np.linalg.det)
def det(a):
    def pullback(dz):
        return (unbroadcast(_matrix(dz) * cofactors(a), a),)

    return np.linalg.det(a), pullback


@rrule(np.linalg.slogdet)
def slogdet(a):
    z = np.linalg.slogdet(a)

    def pullback(dz):
        dsign, dlog = dz
        x = _t(np.linalg.inv(a))
        d = None if dlog is None else _matrix(dlog) * x
        if dsign is not None and is_complex(a):
            turned = _matrix(1j * np.imag(dsign * z[0])) * x
            d = turned if d is None else d + turned
        return (unbroadcast(d, a),)

    return z, pullback


# --------------------------------------------------------------------------------------- factorisations


def triangle_read(d: Any, lower: bool = True) -> Any:
    """The cotangent of a Hermitian matrix, brought to the one triangle that is read of it."""
    both = d + _h(d)
    n = np.shape(d)[-1]
    strict = np.tril(both, -1) if lower else np.triu(both, 1)
    return strict + np.eye(n) * np.real(d)


@rrule(np.linalg.cholesky)
def cholesky(a, /, **options):
    # I. Murray, "Differentiation of the Cholesky decomposition" (2016), equation 10.
    z = np.linalg.cholesky(a, **options)
    upper = options.get("upper", False)

    def pullback(dz):
        low, d = (_t(z), _t(dz)) if upper else (z, dz)
        n = np.shape(low)[-1]
        half = np.tril(np.ones((n, n))) - 0.5 * np.eye(n)
        if is_complex(low):
            low, d = low, np.conjugate(d)
        inverse = np.linalg.inv(low)
        s = _h(inverse) @ (_h(low) @ d * half) @ inverse
        s = 0.5 * (s + _h(s))
        if is_complex(low):
            s = np.conjugate(s)
        return (unbroadcast(triangle_read(s, lower=not upper), a),)

    return z, pullback


@rrule(np.linalg.eigvalsh)
def eigvalsh(a, UPLO="L"):
    w = np.linalg.eigvalsh(a, UPLO)

    def pullback(dw):
        v = np.linalg.eigh(a, UPLO)[1]
        d = np.conjugate(v * dw[..., None, :] @ _h(v))
        return (unbroadcast(triangle_read(d, UPLO.upper() == "L"), a),)

    return w, pullback


@rrule(np.linalg.eigh)
def eigh(a, UPLO="L"):
    # The eigenvectors of equal eigenvalues have no derivative; what they would add is left out.
    w, v = z = np.linalg.eigh(a, UPLO)

    def pullback(dz):
        dw, dv = dz
        middle = None if dw is None else dw[..., None, :] * np.eye(np.shape(w)[-1])
        if dv is not None:
            gaps = ratio(1.0, w[..., None, :] - w[..., :, None])
            turned = gaps * (_h(v) @ np.conjugate(dv))
            middle = turned if middle is None else middle + turned
        if middle is None:
            return (None,)
        d = np.conjugate(v @ middle @ _h(v))
        return (unbroadcast(triangle_read(d, UPLO.upper() == "L"), a),)

    return z, pullback


@rrule(np.linalg.eigvals)
def eigvals(a):
    def pullback(dw):
        v = np.linalg.eig(a)[1]
        v = v + invertible(v, DEFECTIVE)
        return (unbroadcast(np.linalg.solve(_t(v), dw[..., :, None] * _t(v)), a),)

    return np.linalg.eigvals(a), pullback


@rrule(np.roots)
def roots(p):
    z = np.roots(p)

    def pullback(dz):
        # For p(z) = c0 z^n + ... + cn: whichever coefficients are zero, z changes by -z^(n-k)/p'(z) with ck.
        c = np.reshape(p, -1)
        n, count = np.size(c) - 1, np.size(z)
        factors = np.broadcast_to(z[:, None], (count, n))
        powers = np.cumprod(np.concatenate((np.ones((count, 1)), factors), 1), 1)[:, ::-1]
        parts = powers[:, 1:] * (c[:-1] * np.arange(n, 0, -1))
        slope = np.sum(parts, 1)
        d = -(dz / (slope + simple(slope, parts))) @ powers
        return (unbroadcast(np.reshape(d, np.shape(p)), p),)

    return z, pullback


def simple(slope: Any, parts: Any) -> float:
    """Zero, if no slope at a root, each the sum of ``parts``, is zero in the precision at hand."""
    size = np.sum(np.abs(parts), 1)
    if np.any(np.abs(slope) <= size * parts.shape[1] * np.finfo(parts.dtype).eps):
        raise np.linalg.LinAlgError(REPEATED)
    return 0.0


nondiff(simple)
REPEATED = "one of the roots occurs more than once, and it has no derivative"


def largest(v: Any) -> Any:
    """1 for the largest component of each column, else 0."""
    rows = np.argmax(np.abs(v), axis=-2)[..., None, :]
    return (np.reshape(np.arange(v.shape[-2]), (-1, 1)) == rows).astype(np.real(v).dtype)


nondiff(largest)


@rrule(np.linalg.eig)
def eig(a):
    # With C = V^-1 dA V, the eigenvalues change by the diagonal of C and the vectors by P = V Q, where
    # Q_ij = C_ij/(w_j - w_i) off the diagonal, and by a multiple of each vector, which keeps its length and
    # the phase that LAPACK gives it: the largest component is real.
    w, v = z = np.linalg.eig(a)

    def pullback(dz):
        dw, dv = dz
        middle = None if dw is None else dw[..., None, :] * np.eye(np.shape(w)[-1])
        if dv is not None:
            s = np.add.reduce(dv * v, axis=-2, keepdims=True)
            d = dv - np.real(s) * conj(v)
            if is_complex(v):
                top = largest(v)
                length = np.add.reduce(top * np.real(v), axis=-2, keepdims=True)
                d = d - 1j * top * ratio(np.imag(s), length)
            turned = ratio(1.0, w[..., None, :] - w[..., :, None]) * (_t(v) @ d)
            middle = turned if middle is None else middle + turned
        vt = _t(v) + invertible(v, DEFECTIVE)
        return (unbroadcast(np.linalg.solve(vt, middle @ _t(v)), a),)

    return z, pullback


@rrule(np.linalg.svd)
def svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    z = np.linalg.svd(a, full_matrices, compute_uv, hermitian)

    def pullback(dz):
        x = _array(a)
        if not compute_uv:
            u, _, vh = np.linalg.svd(x, full_matrices=False, hermitian=hermitian)
            d = np.conjugate(u * np.expand_dims(dz, -2) @ vh)
            return (unbroadcast(triangle_read(d) if hermitian else d, a),)
        u, s, vh = z
        du, ds, dvh = dz
        k = np.shape(s)[-1]
        if np.shape(u)[-1] > k and du is not None:
            du = du[..., :, :k] + unused(du[..., :, k:])
        if np.shape(vh)[-2] > k and dvh is not None:
            dvh = dvh[..., :k, :] + unused(dvh[..., k:, :])
        u, vh = u[..., :, :k], vh[..., :k, :]
        d = _svd_pullback(x, u, s, vh, du, ds, dvh)
        return (unbroadcast(triangle_read(d) if hermitian else d, a),)

    return z, pullback


def unused(d: Any) -> float:
    """Zero, if nothing flows back to the vectors that are only there to make a factor square.

    They have no derivative, for any others that are orthogonal to the rest would do.
    """
    if np.any(d):
        raise NotImplementedError(SQUARE)
    return 0.0


SQUARE = (
    "the vectors that make a factor of a rectangular matrix square (np.linalg.svd with "
    'full_matrices=True, np.linalg.qr with mode="complete") have no derivative\nuse '
    'full_matrices=False or mode="reduced"'
)


nondiff(unused)


def invertible(factor: Any, what: str) -> float:
    """Zero, if a factor that the derivative divides by can be inverted in the precision at hand."""
    if factor.size:
        s = np.linalg.svd(factor, compute_uv=False)
        if np.any(s[..., -1] <= s[..., 0] * s.shape[-1] * np.finfo(s.dtype).eps):
            raise np.linalg.LinAlgError(what)
    return 0.0


nondiff(invertible)
DEFECTIVE = "the matrix has fewer eigenvectors than eigenvalues, and they have no derivative"
DEFICIENT = "the columns of the matrix depend on one another, and its factors have no derivative"


def _svd_pullback(a: Any, u: Any, s: Any, vh: Any, du: Any, ds: Any, dvh: Any) -> Any:
    """J. Townsend, "Differentiating the singular value decomposition" (2016).

    With complex matrices as in Z.-Q. Wan and S.-X. Zhang, "Automatic differentiation for complex valued
    SVD" (2019). Equal singular values have no derivative of their vectors; what they would add is left out.
    """
    v, ut = _h(vh), _h(u)
    k = np.shape(s)[-1]
    row, column = s[..., None, :], s[..., :, None]
    gaps = ratio(1.0, (row - column) * (row + column))
    inverse = ratio(1.0, row)
    middle = None if ds is None else ds[..., None, :] * np.eye(k)
    rest = None
    if du is not None:
        g = np.conjugate(du)
        uu = gaps * (ut @ g)
        middle = plus(middle, (uu + _h(uu)) * row)
        if np.shape(u)[-2] > k:
            rest = (g - u @ (ut @ g)) * inverse @ vh
        if is_complex(a):
            diagonal = np.eye(k) * (ut @ g)
            middle = middle + 0.5 * (diagonal - _h(diagonal)) * inverse
    if dvh is not None:
        g = _t(dvh)
        vv = gaps * (vh @ g)
        middle = plus(middle, column * (vv + _h(vv)))
        if np.shape(v)[-2] > k:
            rest = plus(rest, u * inverse @ _h(g - v @ (vh @ g)))
    return np.conjugate(plus(u @ middle @ vh, rest))


def svdvals(x, **options):
    def pullback(ds):
        u, _, vh = np.linalg.svd(x, full_matrices=False)
        return (unbroadcast(np.conjugate(u * ds[..., None, :] @ vh), x),)

    return np.linalg.svd(x, compute_uv=False), pullback


# New in NumPy 2, whose later releases have np.linalg.cond call the inner one.
SVDVALS = tuple(
    getattr(space, name)
    for space, name in ((np.linalg, "svdvals"), (np.linalg._umath_linalg, "svd"))
    if hasattr(space, name)
)
if SVDVALS:
    rrule(*SVDVALS)(svdvals)


@rrule(np.linalg.qr)
def qr(a, mode="reduced"):
    z = np.linalg.qr(a, mode)

    def pullback(dz):
        x = _array(a)
        m, n = np.shape(x)[-2:]
        if mode not in ("reduced", "complete", "r"):
            raise NotImplementedError(f'np.linalg.qr has no derivative in the mode "{mode}"')
        (q, r), (dq, dr) = ((None, z), (None, dz)) if mode == "r" else (z, dz)
        k = min(m, n)
        if q is None:
            q = _t(np.linalg.solve(_t(r[..., :, :k]), _t(x[..., :, :k])))
        if np.shape(q)[-1] > k:  # columns that are only there to make it square
            if dq is not None:
                dq = dq[..., :, :k] + unused(dq[..., :, k:])
            q, r, dr = q[..., :, :k], r[..., :k, :], None if dr is None else dr[..., :k, :]
        gq = None if dq is None else np.conjugate(dq)
        gr = None if dr is None else np.conjugate(dr)
        if n == k:
            return (unbroadcast(np.conjugate(_qr_pullback(q, r, gq, gr)), a),)
        # D. A. O. Roberts and L. R. Roberts, "QR and LQ decomposition matrix backpropagation algorithms for
        # square, wide, and deep matrices" (2020): with A = [X Y], R = [U V], X = QU and V = Q^H Y.
        if gr is None:
            left = _qr_pullback(q, r[..., :, :k], gq, None)
            return (unbroadcast(np.conjugate(fitted(left, n, -1)), a),)
        first, rest = gr[..., :, :k], gr[..., :, k:]
        gq = plus(gq, x[..., :, k:] @ _h(rest))
        left = _qr_pullback(q, r[..., :, :k], gq, first)
        return (unbroadcast(np.conjugate(np.concatenate([left, q @ rest], axis=-1)), a),)

    return z, pullback


def _qr_pullback(q: Any, r: Any, gq: Any, gr: Any) -> Any:
    """S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with application in
    optimum experimental design" (2010), for a square ``r``; the cotangents are conjugated, and either may be None."""
    r = r + invertible(r, DEFICIENT)
    m = plus(None if gr is None else r @ _h(gr), None if gq is None else -(_h(gq) @ q))
    low = np.tril(m, -1)
    both = low + _h(low) + np.eye(np.shape(r)[-1]) * np.real(m)
    return _h(np.linalg.solve(r, _h(plus(gq, q @ both))))


nondiff(np.linalg.matrix_rank)
