"""Distances between all pairs of points, which scipy.spatial.distance leaves to compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial import distance

from .equivalents import like
from .registry import Operand


def euclidean(d: Any) -> Any:
    """The square root, with a slope of zero between points that coincide."""
    total = np.sum(d, -1)
    apart = total > 0
    return np.where(apart, np.sqrt(np.where(apart, total, 1.0)), 0.0)


def total(d: Any) -> Any:
    return np.sum(d, -1)


def weighted(d: Any, w: Any) -> Any:
    return d if w is None else d * w


def minkowski(d: Any, w: Any, p: Any) -> Any:
    """The p-th root of the sum of p-th powers, with a slope of zero between points that coincide."""
    if p == np.inf:
        return chebyshev(d, w, p)
    size = np.abs(d)
    apart = size > 0
    powers = np.sum(weighted(np.where(apart, np.where(apart, size, 1.0) ** p, 0.0), w), -1)
    apart = powers > 0
    return np.where(apart, np.where(apart, powers, 1.0) ** (1 / p), 0.0)


def chebyshev(d: Any, w: Any, p: Any) -> Any:
    if w is not None:
        raise NotImplementedError("the derivative is not known for weights of greatest differences")
    return np.max(np.abs(d), -1)


def summed(part: Callable[[Any], Any], gathered: Callable[[Any], Any]) -> Callable[..., Any]:
    """A distance that is ``gathered`` from a ``part`` for each coordinate, weighted."""
    return lambda d, w, p: gathered(weighted(part(d), w))


def pairwise(name: str, measure: Callable[..., Any]) -> None:
    """A ``measure`` of differences, weights and powers, between all pairs."""
    compiled = getattr(distance, "_distance_pybind", None)  # which older versions do not have

    def cdist(x, y, w: Operand = None, out=None, p: Operand = 2.0):
        return measure(np.asarray(x)[:, None] - np.asarray(y)[None], w, p)

    def pdist(x, w: Operand = None, out=None, p: Operand = 2.0):
        i, j = np.triu_indices(np.shape(x)[0], 1)
        x = np.asarray(x)
        return measure(x[i] - x[j], w, p)

    for function in (cdist, pdist):
        primitive = getattr(compiled, f"{function.__name__}_{name}", None)
        if primitive is not None:
            like(primitive)(function)


pairwise("euclidean", summed(np.square, euclidean))
pairwise("sqeuclidean", summed(np.square, total))
pairwise("cityblock", summed(np.abs, total))
pairwise("chebyshev", chebyshev)
pairwise("minkowski", minkowski)
