"""What NumPy writes in Python and has no rule: it is traced through its body."""

import warnings

import numpy as np
from checker import Table, check_first, check_forward, check_second, check_single

case = Table()

X = np.array([0.7, -1.3, 2.1, 0.4])
Y = np.array([0.2, 1.1, -0.6, 0.9])
M = np.array([[0.52, -1.23, 2.06], [0.71, 0.44, -0.63]])
S = np.array([[0.52, -1.23], [0.71, 0.44]])
T = np.arange(24.0).reshape(2, 3, 4) * 0.13 % 0.9 - 0.41
Z = np.array([0.3 + 1.2j, -0.7 - 0.4j, 1.1 + 0.2j])
GAPS = np.array([[True, False, True], [True, True, True]])
UP = np.array([0.0, 0.3, 0.4, 1.2])
LOOSE = {"tol": 1e-5}


def ignoring(f):
    """``f`` without the warnings about names that NumPy is going to drop."""

    def quiet(*args):
        with warnings.catch_warnings(action="ignore"):
            return f(*args)

    return quiet


# Joining, splitting, turning, padding
case(np.append, X, Y)
case(np.append, M, M[:1], axis=0)
case(np.array_split, X, 3)
case(np.array_split, M, 2, axis=1)
case(np.split, X, 2)
case(np.split, X, [1, 3])
case(np.hsplit, T, 3)
case(np.vsplit, M, 2)
case(np.dsplit, T, 2)
case(np.atleast_1d, 0.6)
case(np.atleast_1d, X, 0.3)
case(np.atleast_2d, X)
case(np.atleast_3d, M)
case(np.column_stack, [X, Y])
case(np.column_stack, (M, X[:2]))
case(np.dstack, [M, M])
case(np.dstack, [X, Y])
case(lambda a, b: np.block([[a, b], [b, a]]), S, S.T)
case(lambda a, b: np.block([a, 0.5, b]), X, Y)
case(np.extract, X > 0, X)
case(np.fliplr, M)
case(np.flipud, M)
case(np.rot90, M)
case(np.rot90, T, 3, axes=(1, 2))
case(np.rollaxis, T, 2)
case(np.rollaxis, T, 1, 3)
case(np.resize, X, (3, 3))
case(np.require, X, float, ["C"])
case(lambda x: np.ix_(x > 0, [True, False])[0] * x[0], X)
case(lambda x: np.trim_zeros(x * np.array([0, 1, 1, 0])), X)
case(np.vander, X)
case(np.vander, X, 3, increasing=True)
if hasattr(np, "unstack"):
    case(np.unstack, M)
    case(np.unstack, T, axis=1)
    case(np.astype, M, np.float32, case={"second": False, "tol": 1e-3})
    case(np.astype, M, np.complex128)
case(np.pad, X, 2)
case(np.pad, X, (1, 2), constant_values=0.5)
case(np.pad, M, ((1, 0), (2, 1)), mode="constant")
case(lambda x, v: np.pad(x, 1, constant_values=v), M, 0.7)
for mode in ("edge", "wrap", "reflect", "symmetric", "mean", "maximum", "minimum"):
    case(np.pad, X, (2, 1), mode=mode)
    case(np.pad, M, ((1, 0), (2, 1)), mode=mode)
case(np.pad, X, (2, 3), mode="linear_ramp", end_values=0.4)
case(np.pad, X, (2, 1), mode="median")
case(np.pad, X, (2, 1), mode="mean", stat_length=2)
case(np.pad, X, (3, 3), mode="reflect", reflect_type="odd")

# Elements chosen
case(lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1), M)
case(np.take_along_axis, X, np.array([2, 0, 2]), None)


def put_along(x, v):
    y = x * 2
    np.put_along_axis(y, np.array([[1], [0]]), v, axis=1)
    return y


case(put_along, M, M[:, :1])
case(lambda x, y: np.select([x > 1, x < 0], [x * y, y**2], 0.25), X, Y)
case(lambda x: np.select([x > 1, x < 0], [x, x**2], x**3), X)
case(lambda x: np.piecewise(x, [x < 0, x >= 1], [lambda v: v * v, lambda v: 3 * v, 0.7]), X)
case(lambda x: np.piecewise(x, [x < 0, x >= 0], [-1.0, 1.0]), X)
case(lambda x, w: np.histogram(x, 3, (-2.0, 3.0), weights=w)[0], X, Y)
case(lambda x, w: np.histogram(x, [-2.0, 0.5, 1.0, 3.0], weights=w)[0], X, Y)
case(lambda x, w: np.histogram2d(x, X, 2, [[-2, 3], [-2, 3]], weights=w)[0], X, Y)
case(lambda w: np.histogramdd(np.stack([X, Y]).T, 2, weights=w)[0], Y)
case(lambda x: np.histogram(x, 3, (-2.0, 3.0))[0] * x[:3], X)
case(lambda x: np.histogram_bin_edges(x, 3), X)

# Sets
case(np.union1d, X, Y)
case(lambda x: np.intersect1d(x, np.append(x[1:], 9.0)), X)
case(lambda x: np.setdiff1d(x, np.append(x[1:], 9.0)), X)
case(np.setxor1d, X, Y)
if hasattr(np, "unique_all"):
    case(lambda x: np.unique_all(x)[0], X)
    case(lambda x: np.unique_counts(x)[0], X)
    case(lambda x: np.unique_inverse(x)[0], X)
    case(np.unique_values, X)
case(np.sort_complex, Z)

# Statistics
for f in (np.nanmean, np.nanvar, np.nanstd, np.nanprod, np.nansum, np.nanmedian, np.nancumsum):
    case(f, M)
    case(f, M, axis=1)
    case(f, X[:3], axis=0)
for f in (np.nanmean, np.nanvar, np.nanstd, np.nanprod, np.nanmedian):
    case(f, M, axis=0, keepdims=True)
    case(f, M, axis=(0, 1))
case(np.nancumprod, M, axis=1)
for f in (
    np.nansum,
    np.nanmean,
    np.nanvar,
    np.nanstd,
    np.nanprod,
    np.nanmax,
    np.nanmin,
    np.nanmedian,
):
    for axis in (None, 0, 1):
        case(lambda x, f=f, axis=axis: f(np.where(GAPS, x, np.nan), axis=axis), M)
for f in (np.nancumsum, np.nancumprod):
    case(lambda x, f=f: f(np.where(GAPS, x, np.nan), axis=1), M)
case(lambda x: np.nanquantile(np.where(GAPS, x, np.nan), [0.25, 0.6], axis=1), M)
case(lambda x: np.nanpercentile(np.where(GAPS, x, np.nan), 40), M)
case(np.nanvar, M, axis=1, ddof=1)
case(np.nanpercentile, M, 40, axis=1)
case(np.nanquantile, M, [0.25, 0.7])
METHODS = (
    "linear lower higher midpoint nearest inverted_cdf averaged_inverted_cdf closest_observation "
    "interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased"
).split()
for method in METHODS:
    case(np.quantile, X, 0.37, method=method)
    case(np.percentile, M, [25, 60], axis=0, method=method)
case(np.quantile, M, 0.3, axis=(0, 1), keepdims=True)
case(lambda x: np.quantile(x, [0.0, 1.0]), X)
case(lambda x, q: np.quantile(x, q), X, 0.6)
case(lambda x, q: np.percentile(x, q), X, np.array([30.0, 60.0]))
case(np.median, M, axis=1, keepdims=True)
case(np.median, T, axis=(0, 2))
case(np.cov, X)
case(np.cov, X, Y)
case(np.cov, M, rowvar=False)
case(np.cov, M, bias=True)
case(np.cov, M, ddof=0)
case(np.cov, M, aweights=np.array([0.3, 1.2, 0.5]))
case(np.cov, M, fweights=np.array([1, 2, 1]))
case(np.cov, np.stack([Z, Z[::-1] * 1j]))
case(np.corrcoef, X, Y)
case(np.corrcoef, M, rowvar=False, case={"second": False})
case(np.average, M, axis=0, returned=True)
case(np.average, T, axis=(0, 1), weights=np.abs(T[:, :, 0]) + 0.1)

# Differences, integrals, interpolation
case(np.gradient, X, UP)
case(np.gradient, M)
case(np.gradient, M, 0.3, 0.7)
case(np.gradient, M, axis=1)
case(np.gradient, X, edge_order=2)
case(np.gradient, X, UP, edge_order=2)
case(np.diff, X, prepend=0.3, append=[0.2, 0.5])
case(np.diff, M, n=2, axis=-1)
if hasattr(np, "trapezoid"):
    case(np.trapezoid, M, axis=0)
    case(np.trapezoid, M, UP[:3])
    case(np.trapezoid, Z)
if hasattr(np, "trapz"):
    case(ignoring(lambda x: np.trapz(x, dx=0.3)), X)  # noqa: NPY201
if hasattr(np, "row_stack"):
    case(ignoring(lambda x: np.row_stack([x, x])), X)  # noqa: NPY201
case(np.unwrap, np.array([0.1, 3.0, 6.5, 9.9]))
case(np.unwrap, np.array([[0.1, 3.9, 8.5], [1.0, -4.0, 2.0]]), axis=1)
case(np.unwrap, np.array([0.1, 3.0, 6.5]), period=2.5)
case(np.geomspace, 0.5, 4.0, 5)
case(np.geomspace, 0.5, 4.0, 4, endpoint=False)
case(np.logspace, 0.5, 2.0, 5)
case(np.logspace, 0.5, 2.0, 5, base=2.0)
case(lambda a, b, c: np.logspace(a, b, 4, base=c), 0.5, 2.0, 3.0)

# Polynomials
case(np.polyval, X, 0.7)
case(np.polyval, X, Y)
case(np.polyadd, X, Y[:2])
case(np.polysub, X[:3], Y)
case(np.polymul, X, Y[:3])
case(lambda x, y: np.polymul(np.append([0.0, 0.0], x), np.append([0.0], y)), X, Y)
case(np.polymul, 0.7, Y)
case(np.polymul, Z, Y[:2])
case(np.polydiv, X, Y[:2])
case(np.polyder, X)
case(np.polyder, X, 2)
case(np.polyint, X)
case(np.polyint, X, 2, [0.3, 0.7])
case(np.poly, X)
case(np.poly, S, case=LOOSE)
case(np.roots, np.array([1.3, -0.4, -2.1, 0.3]), case=LOOSE)
case(lambda x, y: np.polyfit(x, y, 1), X, Y, case=LOOSE)
case(lambda x, y, w: np.polyfit(x, y, 1, w=w), X, Y, np.abs(Y), case=LOOSE)

# Functions of functions
case(lambda x: np.apply_along_axis(lambda v: v * v.sum(), 1, x), M)
case(lambda x: np.apply_along_axis(np.sum, 0, x), M)
case(lambda x: np.apply_over_axes(np.sum, x, [0, 2]), T)
case(lambda x: np.fromfunction(lambda i, j: i * x + j, (2, 3)), 0.7)
case(lambda x: np.vectorize(lambda v: v * v if v > 0 else -v)(x), X)
case(lambda x, y: np.vectorize(lambda v, w: v * w)(x, y), M, X[:3])
case(lambda x: np.vectorize(lambda v: v * v.sum(), signature="(n)->(n)")(x), M)
case(lambda x, y: np.vectorize(np.dot, signature="(m,n),(n)->(m)")(x, y), T, X)
case(lambda x, y: np.vectorize(lambda v, w: (v * w, v + w))(x, y), M, X[:3])
case(lambda x: np.vectorize(lambda v, k: v**k, excluded=["k"])(x, k=2), X)
case(lambda x: np.vectorize(lambda v: v * v, otypes=["d"])(x), M)
case(lambda x, y: np.vectorize(lambda v, w: v * w)(x, w=y), X, Y)

# Special functions and windows
case(np.i0, X)
case(np.i0, np.array([0.0, 9.5, -12.0]))
case(np.kaiser, 5, 1.7)
case(np.real_if_close, X)
case(np.real_if_close, Z)
case(np.kron, X, M)
case(np.kron, Z, X)

# Index tricks
case(lambda x, y: np.r_[x, 0.5, y], X, Y)
case(lambda x, y: np.c_[x, y], X, Y)
case(lambda x: np.mgrid[0:2:3j] * x, 0.7)
case(lambda x: np.ogrid[0:2:3j] * x, 0.7)
case(lambda x: x[np.s_[1:3]], X)
case(lambda x: sum(v * i[0] for i, v in np.ndenumerate(x)), X)
case(lambda x: sum(x[i] * sum(i) for i in np.ndindex(2, 3)), M)
case(lambda x: sum(v * v for v in x.flat), M)
case(lambda x: np.emath.sqrt(x) * np.emath.log(x), np.array([0.7, 1.3]))
case(lambda x: np.poly1d(x)(0.7), X)
case(lambda c: np.polynomial.polynomial.polyval(0.7, c), X)
case(lambda x, c: np.polynomial.chebyshev.chebval(x, c), Y, X)
case(lambda c: np.polynomial.Polynomial(c)(0.7), X)
case(lambda x: x.T * 2.0, M)
case(lambda x: x.real * x.imag, Z)
case(lambda x: x.tolist()[0][1] * 2.0, M)
case(lambda x: np.fromiter((v * v for v in x), float), X)
if hasattr(np.ndarray, "mT"):
    case(lambda x: x.mT * 2.0, T)
    case(lambda x: x.to_device("cpu") * 2.0, M)

# Linear algebra
A = np.array([[1.9, -0.4, 0.3], [0.2, 1.3, -0.7], [-0.5, 0.8, 2.2]])
case(
    np.linalg.tensorinv,
    np.arange(36.0).reshape(2, 3, 6) * 0.13 % 0.9 + np.eye(6).reshape(2, 3, 6),
    case=LOOSE,
)
case(np.linalg.tensorinv, A, 1)
case(np.linalg.tensorsolve, A.reshape(3, 1, 3), X[:3].reshape(3, 1))
for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
    case(np.linalg.cond, A, p, case=LOOSE)
for n in (-3, -1, 0, 1, 2, 3, 5, 8):
    case(np.linalg.matrix_power, A, n)
case(np.linalg.matrix_power, np.stack([A, A.T]), 3)
case(np.linalg.multi_dot, [A, A.T])
case(np.linalg.multi_dot, [X[:3], A, A, X[:3]])
case(np.linalg.multi_dot, [M, A, A.T, M.T])


@case.each
def test_gradient(case):
    check_first(case)


@case.each
def test_forward(case):
    check_forward(case)


@case.second
def test_second_order(case):
    check_second(case)


@case.single
def test_single_precision(case):
    check_single(case)
