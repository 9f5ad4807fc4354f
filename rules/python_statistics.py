"""The module ``statistics``, where it computes with fractions: what is in floats there is traced as it stands."""

from __future__ import annotations

import math
import statistics
from typing import Any

from .broadcasting import unbroadcast
from .python_math import like
from .registry import Operand, query, rrule
from .zeros import ratio


@query
def is_iterator(data: Any) -> bool:
    """Is ``data`` read only once?"""
    return hasattr(data, "__next__")


def must_be_held(*given: Any) -> None:
    """Raise where numbers that a pullback needs once more are gone when the value has been computed."""
    if any(is_iterator(x) for x in given):
        raise NotImplementedError("an iterator is read only once; pass a list of its numbers")


def shared(d: list[Any], data: Any) -> Any:
    """Cotangents of the numbers in data; those of a range have none."""
    return None if isinstance(data, range) else like(d, data)


def centred(data: Any, center: Any) -> tuple[Any, list[Any]]:
    """What numbers are measured from, their mean where nothing is given, and the distances."""
    numbers = [*data]
    middle = math.fsum(numbers) / len(numbers) if center is None else center
    return middle, [x - middle for x in numbers]


def spread(function: Any, data: Any, center: Any, lost: int, root: bool) -> Any:
    """Value and pullback of a variance, or of its ``root``; ``lost`` degrees of freedom go into the mean.

    For v = sum((x_i - m)^2) / (n - lost) and s = sqrt(v): dv/dx_i = 2 (x_i - m) / (n - lost), ds = dv / (2 s); a mean
    of the very numbers adds nothing, for the distances from it add up to 0.
    """
    must_be_held(data)
    z = function(data, center)

    def pullback(dz):  # type: ignore[no-untyped-def]
        middle, distances = centred(data, center)
        scale = dz / (len(distances) - lost)
        scale = ratio(scale, z) if root else 2 * scale
        by_center = None if center is None else unbroadcast(-scale * sum(distances), middle)
        return shared([scale * d for d in distances], data), by_center

    return z, pullback


@rrule(statistics.variance)
def variance(data, xbar: Operand = None):
    return spread(statistics.variance, data, xbar, 1, False)


@rrule(statistics.stdev)
def stdev(data, xbar: Operand = None):
    return spread(statistics.stdev, data, xbar, 1, True)


@rrule(statistics.pvariance)
def pvariance(data, mu: Operand = None):
    return spread(statistics.pvariance, data, mu, 0, False)


@rrule(statistics.pstdev)
def pstdev(data, mu: Operand = None):
    return spread(statistics.pstdev, data, mu, 0, True)


@rrule(statistics.mean)
def mean(data):
    def pullback(dz):
        numbers = [*data]
        return (shared([dz / len(numbers) for _ in numbers], data),)

    return statistics.mean(data), pullback


@rrule(statistics.harmonic_mean)
def harmonic_mean(data, weights: Operand = None):
    """For h = W / sum(w_i / x_i), W = sum(w_i): dh/dx_i = w_i/W (h/x_i)^2 and dh/dw_i = h/W (1 - h/x_i)."""
    must_be_held(data, weights)
    z = statistics.harmonic_mean(data, weights)

    def pullback(dz):
        numbers = [*data]
        shares = [1.0] * len(numbers) if weights is None else [*weights]
        total = math.fsum(shares)
        parts = [z / x for x in numbers]
        by_data = [dz * (w / total) * q * q for w, q in zip(shares, parts, strict=True)]
        if weights is None:
            return shared(by_data, data), None
        return shared(by_data, data), shared([dz * z / total * (1.0 - q) for q in parts], weights)

    return z, pullback
