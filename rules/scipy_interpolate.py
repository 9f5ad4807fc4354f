"""Splines and grids: in the places where they are evaluated, and in the data that they interpolate.

A piecewise polynomial is evaluated by C code, which is differentiated as the polynomial itself; what SciPy does
to find its coefficients (CubicSpline, PchipInterpolator, ...) is Python, and traced. A B-spline is linear in its
coefficients, and its coefficients in the data: for these, the knots are constants. On a regular grid, C code finds the
cell of each place and where it lies in that, and blends the corners of a cell in two dimensions.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from scipy import interpolate

from .broadcasting import unbroadcast
from .elementwise import unknown
from .equivalents import like
from .registry import caller, nondiff, rrule
from .zeros import product, ratio


def interval(x: Any, xp: Any, periodic: bool) -> tuple[Any, Any]:
    """The number of the interval between breakpoints in which each place lies, and by how much it is moved there."""
    moved = np.asarray(xp, float)
    if periodic:
        moved = x[0] + (moved - x[0]) % (x[-1] - x[0])
    i = np.clip(np.searchsorted(x, moved, side="right") - 1, 0, len(x) - 2)
    return i, moved - xp


nondiff(interval)


def ppoly(c: Any, x: Any, xp: Any, nu: int = 0, extrapolate: Any = True) -> Any:
    """The derivative of order ``nu`` of a piecewise polynomial."""
    return interpolate.PPoly.construct_fast(c, x, extrapolate)(xp, nu)


@like(ppoly)
def ppoly_by_powers(c, x, xp, nu=0, extrapolate=True):
    i, moved = interval(x, xp, extrapolate == "periodic")
    s = xp + moved - x[i]
    s = np.reshape(s, (*np.shape(s), *[1] * (np.ndim(c) - 2)))
    terms = [math.perm(power, nu) * c[-1 - power][i] for power in range(nu, np.shape(c)[0])]
    if not terms:
        return np.zeros((*np.shape(xp), *np.shape(c)[2:]))
    total = terms.pop()
    while terms:
        total = total * s + terms.pop()
    return total


@caller(interpolate.PPoly.__call__)
def evaluated(engine, self, x, nu=0, extrapolate=None):
    c, breaks, axis = engine.attribute(self, "c"), engine.attribute(self, "x"), self.axis
    if axis:
        raise NotImplementedError(
            "the derivative is for splines along the first axis; move it to the front"
        )
    if extrapolate is None:
        extrapolate = self.extrapolate
    return engine.record(ppoly, c, breaks, x, engine.plain(nu), extrapolate)


def bspline(t: Any, c: Any, k: int, xp: Any, nu: int, extrapolate: Any) -> Any:
    """The derivative of order ``nu`` of a B-spline."""
    return interpolate.BSpline.construct_fast(t, c, k, extrapolate)(xp, nu)


def basis(t: Any, c: Any, k: int, xp: Any, nu: int, extrapolate: Any, d: Any) -> Any:
    """The cotangent of the coefficients: the transposed matrix of basis functions times ``d``."""
    n = len(t) - k - 1
    every = interpolate.BSpline.construct_fast(t, np.eye(n), k, extrapolate)
    matrix, d = np.reshape(every(xp, nu), (-1, n)), np.reshape(d, (np.size(xp), -1))
    outside = np.isnan(matrix).any(axis=1)  # where the value is NaN: if not used it has no part
    if outside.any():
        used = np.any(d[outside] != 0, axis=0)
        sums = matrix[~outside].T @ d[~outside] + np.where(used, np.nan, 0)
    else:
        sums = matrix.T @ d
    return np.reshape(sums, (n, *np.shape(c)[1:]))


@rrule(basis)
def _basis(t, c, k, xp, nu, extrapolate, d):
    def pullback(dz):
        dd = np.reshape(bspline(t, dz, k, xp, nu, extrapolate), np.shape(d))
        slope = bspline(t, dz, k, xp, nu + 1, extrapolate)
        return (
            None,
            None,
            None,
            unbroadcast(trailing_sum(dd_times(d, slope), xp), xp),
            None,
            None,
            dd,
        )

    return basis(t, c, k, xp, nu, extrapolate, d), pullback


def dd_times(d: Any, slope: Any) -> Any:
    return product(d, np.reshape(slope, np.shape(d)))


def trailing_sum(z: Any, xp: Any) -> Any:
    """The sum over the components of the values."""
    axes = tuple(range(np.ndim(xp), np.ndim(z)))
    return np.sum(z, axis=axes) if axes else z


@rrule(bspline)
def _bspline(t, c, k, xp, nu, extrapolate):
    def pullback(dz):
        slope = bspline(t, c, k, xp, nu + 1, extrapolate)
        dc = basis(t, c, k, xp, nu, extrapolate, dz)
        dx = trailing_sum(dd_times(dz, slope), xp)
        return unknown("the knots"), unbroadcast(dc, c), None, unbroadcast(dx, xp)

    return bspline(t, c, k, xp, nu, extrapolate), pullback


def core(spline: Any) -> Any:
    """The object that holds what a spline is made of: another one, in newer versions of SciPy."""
    return getattr(spline, "_delegate_to", spline)


def held(spline: Any, name: str) -> str:
    """Under which name it does: there may be a property in front."""
    if name in vars(spline):
        return name
    if "_" + name in vars(spline):
        return "_" + name
    raise NotImplementedError(f"this version of SciPy keeps {name} of a spline in an unknown place")


@caller(interpolate.BSpline.__call__)
def evaluated_b(engine, self, x, nu=0, extrapolate=None):
    c, t = (engine.attribute(core(self), held(core(self), name)) for name in "ct")
    if self.axis:
        raise NotImplementedError(
            "the derivative is for splines along the first axis; move it to the front"
        )
    if extrapolate is None:
        extrapolate = self.extrapolate
    k = engine.plain(self.k)
    count = len(engine.plain(t)) - k - 1
    if np.shape(engine.plain(c))[0] > count:  # `splrep` fills up the coefficients with zeros
        c = engine.record(operator.getitem, c, slice(count))
    return engine.record(bspline, t, c, k, x, engine.plain(nu), extrapolate)


def coefficients(x: Any, y: Any, k: int, t: Any, bc_type: Any) -> Any:
    """The coefficients of the B-spline that interpolates ``y`` at ``x``."""
    return interpolate.make_interp_spline(x, y, k, t, bc_type).c


@rrule(coefficients)
def _coefficients(x, y, k, t, bc_type):
    def pullback(dc):
        n = np.shape(y)[0]
        # They are linear in y, but for the boundary conditions, which do not depend on it.
        zero = coefficients(x, np.zeros(n), k, t, bc_type)
        matrix = coefficients(x, np.eye(n), k, t, bc_type) - zero[:, None]
        dy = np.reshape(matrix.T @ np.reshape(dc, (np.shape(dc)[0], -1)), np.shape(y))
        return unknown("the places of the data"), unbroadcast(dy, y)

    return coefficients(x, y, k, t, bc_type), pullback


@caller(interpolate.make_interp_spline)
def make_interp_spline(engine, x, y, k=3, t=None, bc_type=None, axis=0, check_finite=True):
    if engine.plain(axis) or not (bc_type is None or isinstance(bc_type, str)):
        raise NotImplementedError(
            "the derivative is for data along the first axis, and bc_type by name"
        )
    k, t = engine.plain(k), engine.plain(t)
    made = interpolate.make_interp_spline(engine.plain(x), engine.plain(y), k, t, bc_type)
    vars(core(made))[held(core(made), "c")] = engine.record(coefficients, x, y, k, t, bc_type)
    return made


grids: Any = getattr(interpolate, "_rgi_cython", None)  # which older versions do not have


def find_indices(grid, xi):
    z = indices, _ = grids.find_indices(grid, xi)

    def pullback(dz):
        if dz[1] is None:
            return (None,)
        scales = np.stack([ratio(1.0, x[i + 1] - x[i]) for x, i in zip(grid, indices)])
        return [unknown("the grid") for _ in grid], dz[1] * scales

    return z, pullback


def blended(values: Any, indices: Any, distances: Any, grid: Any) -> Any:
    """The corners of the cells in which places lie, by their distances from these."""
    out = np.empty(np.shape(indices)[1], values.dtype)
    return grids.evaluate_linear_2d(values, indices, distances, grid, out)


def as_whole(indices: Any) -> Any:
    """Indices of which `like` has made numbers with a derivative."""
    return np.asarray(indices).astype(np.intp)


nondiff(as_whole)


@like(blended)
def corners(values, indices, distances, grid):
    (i, j), (y, z) = as_whole(indices), distances
    upper = values[i, j] * (1 - z) + values[i, j + 1] * z
    lower = values[i + 1, j] * (1 - z) + values[i + 1, j + 1] * z
    return upper * (1 - y) + lower * y


def evaluate_linear_2d(engine, values, indices, norm_distances, grid, out):
    return engine.record(blended, values, indices, norm_distances, grid)  # in an array of its own


interpnd: Any = getattr(interpolate, "_interpnd", None)


def coordinates(points: Any, ndim: Any = None) -> Any:
    """Places, one a row, in an array of their own."""
    return interpnd._ndim_coords_from_arrays(points, ndim).copy()


@like(coordinates)
def rows(points, ndim=None):
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        return np.stack(np.broadcast_arrays(*points), axis=-1)
    points = np.asarray(points)
    return np.reshape(points, (-1, ndim or 1)) if np.ndim(points) == 1 else points


def coordinates_from_arrays(engine, points, ndim=None):
    return engine.record(coordinates, points, engine.plain(ndim))


if interpnd is not None:
    caller(interpnd._ndim_coords_from_arrays)(coordinates_from_arrays)
if grids is not None:
    rrule(grids.find_indices)(find_indices)
    caller(grids.evaluate_linear_2d)(evaluate_linear_2d)
