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


def pairwise(name: str, part: Callable[[Any], Any], gathered: Callable[[Any], Any]) -> None:
    """A distance that is ``gathered`` from a ``part`` for each coordinate, weighted."""
    compiled = getattr(distance, "_distance_pybind", None)  # which older versions do not have

    def cdist(x, y, w: Operand = None, out=None):
        d = np.asarray(x)[:, None] - np.asarray(y)[None]
        return gathered(weighted(part(d), w))

    def pdist(x, w: Operand = None, out=None):
        i, j = np.triu_indices(np.shape(x)[0], 1)
        x = np.asarray(x)
        return gathered(weighted(part(x[i] - x[j]), w))

    for function in (cdist, pdist):
        primitive = getattr(compiled, f"{function.__name__}_{name}", None)
        if primitive is not None:
            like(primitive)(function)


pairwise("euclidean", np.square, euclidean)
pairwise("sqeuclidean", np.square, total)
pairwise("cityblock", np.abs, total)
