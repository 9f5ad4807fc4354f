"""Linear filters of scipy.ndimage: each the same as sums over shifted copies, which are differentiated instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import ndimage

from .broadcasting import settled
from .equivalents import like
from .registry import Operand, query
from .zeros import conj

MODES: dict[str, Any] = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip


@query
def neighbours(n: int, before: int, after: int, mode: str) -> Any:
    """Which elements stand where an axis of length ``n`` is continued to both sides; -1 for a constant."""
    if MODES[mode] == "constant":
        return np.pad(np.arange(n), (before, after), constant_values=-1)
    return np.pad(np.arange(n), (before, after), mode=MODES[mode])


def continued(x: Any, axis: int, before: int, after: int, mode: str, cval: Any) -> Any:
    """The array with its boundary continued along an axis."""
    index = neighbours(np.shape(x)[axis], before, after, mode)
    y = np.take(x, index, axis=axis)
    if MODES[mode] != "constant":
        return y
    inside = np.reshape(index >= 0, [-1 if i == axis else 1 for i in range(np.ndim(x))])
    return np.where(inside, y, cval)


def new_array(output: Any) -> None:
    if isinstance(output, np.ndarray):
        raise NotImplementedError(
            "the derivative is for filters that return a new array, without output="
        )


def each(value: Any, n: int) -> list[Any]:
    """An option for each of ``n`` axes."""
    return list(value) if isinstance(value, (tuple, list, np.ndarray)) else [value] * n


@like(ndimage.correlate)
def correlate(
    input, weights, output=None, mode="reflect", cval: Operand = 0.0, origin=0, *, axes=None
):
    new_array(output)
    if axes is not None:
        raise NotImplementedError("the derivative is not known for a filter with axes=")
    n = np.ndim(input)
    sizes = np.shape(weights)
    weights = conj(np.asarray(weights))  # as in all that SciPy calls a correlation
    starts = [k // 2 + settled(o) for k, o in zip(sizes, each(origin, n))]
    x = input
    for axis, (size, start, m) in enumerate(zip(sizes, starts, each(mode, n))):
        x = continued(x, axis, start, size - 1 - start, m, cval)
    total = 0.0
    for index in np.ndindex(*sizes):
        window = tuple([slice(k, k + np.shape(input)[i]) for i, k in enumerate(index)])
        total = total + weights[index] * x[window]
    return total


def opposite(origin: Any, size: int) -> Any:
    """The origin of a correlation that is a convolution."""
    return -origin - (1 if size % 2 == 0 else 0)


@like(ndimage.convolve)
def convolve(
    input, weights, output=None, mode="reflect", cval: Operand = 0.0, origin=0, *, axes=None
):
    sizes = np.shape(weights)
    origins = [opposite(settled(o), k) for o, k in zip(each(origin, len(sizes)), sizes)]
    return correlate(input, conj(np.flip(weights)), output, mode, cval, origins, axes=axes)


@like(ndimage.correlate1d)
def correlate1d(
    input, weights, axis=-1, output=None, mode="reflect", cval: Operand = 0.0, origin=0
):
    new_array(output)
    along = settled(axis) % np.ndim(input)
    return correlated(input, conj(np.asarray(weights)), along, mode, cval, settled(origin))


def correlated(input: Any, w: Any, along: int, mode: str, cval: Any, origin: int) -> Any:
    """The sums of the elements along an axis, each weighted by how far away it is."""
    size = np.shape(w)[0]
    start = size // 2 + origin
    x = continued(input, along, start, size - 1 - start, mode, cval)
    n = np.shape(input)[along]
    total = 0.0
    for k in range(size):
        window = tuple(
            [slice(k, k + n) if i == along else slice(None) for i in range(np.ndim(input))]
        )
        total = total + w[k] * x[window]
    return total


@like(ndimage.convolve1d)
def convolve1d(input, weights, axis=-1, output=None, mode="reflect", cval: Operand = 0.0, origin=0):
    w = conj(np.asarray(weights))
    return correlate1d(
        input, w[::-1], axis, output, mode, cval, opposite(settled(origin), np.size(w))
    )


@like(ndimage.uniform_filter1d)
def uniform_filter1d(
    input, size: Any, axis=-1, output=None, mode="reflect", cval: Operand = 0.0, origin=0
):
    n = settled(size)
    return correlate1d(input, np.full(n, 1.0 / n), axis, output, mode, cval, origin)


@like(ndimage.uniform_filter)
def uniform_filter(
    input, size=3, output=None, mode="reflect", cval: Operand = 0.0, origin=0, *, axes=None
):
    n = np.ndim(input)
    along = range(n) if axes is None else [settled(i) for i in each(axes, 1)]
    x = input
    for axis, k, m, o in zip(along, each(size, n), each(mode, n), each(origin, n)):
        if settled(k) > 1:
            x = uniform_filter1d(x, k, axis, output, m, cval, o)
    return x


def gaussian_weights(sigma: Any, order: int, radius: int) -> Any:
    """Samples of a normal density, or of its derivative, as a correlation needs them."""
    t = np.arange(-radius, radius + 1)
    phi = np.exp(-0.5 / (sigma * sigma) * t**2)
    phi = phi / np.sum(phi)
    if not order:
        return phi[::-1]
    before, hermite = 1.0, -t / (sigma * sigma)  # phi' is hermite times phi, and so on
    for k in range(1, order):
        before, hermite = hermite, -(t * hermite + k * before) / (sigma * sigma)
    return (hermite * phi)[::-1]


@like(ndimage.gaussian_filter1d)
def gaussian_filter1d(
    input,
    sigma,
    axis=-1,
    order=0,
    output=None,
    mode="reflect",
    cval: Operand = 0.0,
    truncate=4.0,
    *,
    radius=None,
):
    reach = settled(int(truncate * float(sigma) + 0.5) if radius is None else radius)
    w = gaussian_weights(sigma, settled(order), reach)
    return correlate1d(input, w, axis, output, mode, cval, 0)


@like(ndimage.gaussian_filter)
def gaussian_filter(
    input,
    sigma,
    order=0,
    output=None,
    mode="reflect",
    cval: Operand = 0.0,
    truncate=4.0,
    *,
    radius=None,
    axes=None,
):
    n = np.ndim(input)
    along = range(n) if axes is None else [settled(i) for i in each(axes, 1)]
    x = input
    for axis, s, k, m, r in zip(
        along, each(sigma, n), each(order, n), each(mode, n), each(radius, n)
    ):
        if s > 1e-15:
            x = gaussian_filter1d(x, s, axis, k, output, m, cval, truncate, radius=r)
    return x


def along_one(input: Any, axis: Any, across: list[int], mode: Any, cval: Any) -> Any:
    """Central differences along one axis, weighted by ``across`` along the others."""
    n = np.ndim(input)
    modes, along = each(mode, n), settled(axis) % n
    x = correlated(input, np.asarray([-1, 0, 1]), along, modes[along], cval, 0)
    weights = np.asarray(across)
    for i in range(n):
        if i != along:
            x = correlated(x, weights, i, modes[i], cval, 0)
    return x


@like(ndimage.sobel)
def sobel(input, axis=-1, output=None, mode="reflect", cval: Operand = 0.0):
    new_array(output)
    return along_one(input, axis, [1, 2, 1], mode, cval)


@like(ndimage.prewitt)
def prewitt(input, axis=-1, output=None, mode="reflect", cval: Operand = 0.0):
    new_array(output)
    return along_one(input, axis, [1, 1, 1], mode, cval)


def every(input: Any, axes: Any, mode: Any) -> list[tuple[int, str]]:
    """The axes of a filter, each with its mode."""
    along = range(np.ndim(input)) if axes is None else [settled(i) for i in each(axes, 1)]
    return [(i % np.ndim(input), m) for i, m in zip(along, each(mode, len(along)))]


@like(ndimage.laplace)
def laplace(input, output=None, mode="reflect", cval: Operand = 0.0, *, axes=None):
    new_array(output)
    weights, total = np.asarray([1, -2, 1]), 0.0
    for axis, m in every(input, axes, mode):
        total = total + correlated(input, weights, axis, m, cval, 0)
    return total


def derivatives(
    input: Any, sigma: Any, order: int, mode: Any, cval: Any, axes: Any, kwargs: Any
) -> list[Any]:
    """Gaussian derivatives along each axis in turn."""
    along = [axis for axis, _ in every(input, axes, mode)]
    return [
        gaussian_filter(
            input,
            sigma,
            [order * (i == axis) for i in along],
            None,
            mode,
            cval,
            axes=axes,
            **kwargs,
        )
        for axis in along
    ]


@like(ndimage.gaussian_laplace)
def gaussian_laplace(
    input, sigma, output=None, mode="reflect", cval: Operand = 0.0, *, axes=None, **kwargs
):
    new_array(output)
    return sum(derivatives(input, sigma, 2, mode, cval, axes, kwargs))


@like(ndimage.gaussian_gradient_magnitude)
def gaussian_gradient_magnitude(
    input, sigma, output=None, mode="reflect", cval: Operand = 0.0, *, axes=None, **kwargs
):
    new_array(output)
    return np.sqrt(sum([d * d for d in derivatives(input, sigma, 1, mode, cval, axes, kwargs)]))
