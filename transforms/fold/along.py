"""The derivative of one number along a direction: its gradient times the direction.

So a program of a region serves forward mode as it serves reverse mode. What is not finite, or does not fit, is a
`Miss`: the traced call says what it comes to.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ...tracer import frames
from ..loops import Miss

# The formats of what a program gives for `jvp` (see `RegionBuilder.region`), without an aux and with one.
ALONG = "({main}, {along}({main}, ({gradients}), tangents))"
ALONG_AUX = "({main}, {along}({main}, ({gradients}), tangents), {aux})"
NUMBERS = (float, np.float64, np.float32)
LARGEST = float(np.finfo(np.float32).max)


def along(value: Any, gradients: tuple[Any, ...], tangents: Any) -> Any:
    """The derivative of ``value`` along ``tangents``, of its class."""
    found = product(gradients, tangents)
    if not math.isfinite(found) or (type(value) is np.float32 and abs(found) > LARGEST):
        raise Miss
    return type(value)(found)


def product(gradient: Any, tangent: Any) -> float:
    """The sum of the products of what stands at the same place."""
    kind = type(gradient)
    if tangent is None:
        return 0.0
    if kind in NUMBERS and type(tangent) in (*NUMBERS, int):
        return float(gradient) * float(tangent)
    if kind is not type(tangent):
        raise Miss
    if kind is np.ndarray:
        if gradient.shape != tangent.shape or gradient.dtype != tangent.dtype:
            raise Miss
        return float(np.vdot(gradient, tangent))
    if kind is tuple or kind is list:
        if len(gradient) != len(tangent):
            raise Miss
        return sum(map(product, gradient, tangent))
    if dataclasses.is_dataclass(kind):
        return product(frames.attributes(gradient), frames.attributes(tangent))
    if kind is dict and gradient.keys() == tangent.keys():
        return sum([product(d, tangent[key]) for key, d in gradient.items()])
    raise Miss
