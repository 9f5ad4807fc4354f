"""Derivatives of several numbers: rows of a Jacobian, each by one reverse part of a folded program.

A row belongs to one number of what a call gives, and takes about as long as the call itself: a traced call takes 20 to
2,000 times as long, the less of it is done by functions of arrays. What is not finite, or has dtypes and structures
that are not followed here, is a `Miss`: the traced call says what it comes to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..loops import Miss
from .along import ALONG, ALONG_AUX, product
from .deferred import ROWS, SEVERAL, Several
from .multiplied import MAKERS, is_finite
from .structured import numbers

MOST = 200  # rows: a traced call computes them all at once
FLOAT = np.dtype(float)
Back = Callable[..., Any]


def jacobian_of(value: Any, back: Back, single: bool) -> Any:
    """The Jacobian of ``value`` by the arguments whose gradients ``back`` gives, or by the only one."""
    return Rows(value, back).of(
        value, lambda rows, leaf: block([row[0] for row in rows] if single else rows, leaf)
    )


def gradient_of(value: Any, gradients: tuple[Any, ...], single: bool) -> Any:
    """The same of one number."""
    return block([gradients[0] if single else gradients], value)


def along_several(value: Any, back: Back, tangents: Any) -> Any:
    """The derivative of ``value`` along ``tangents``, in its structure."""

    def put(rows: list[Any], leaf: Any) -> Any:
        slopes = [product(row, tangents) for row in rows]
        if not all(map(math.isfinite, slopes)):
            raise Miss
        if type(leaf) is np.ndarray:
            return np.array(slopes).reshape(leaf.shape)
        return type(leaf)(slopes[0])

    return Rows(value, back).of(value, put)


class Rows:
    """The gradients of each number of a value."""

    def __init__(self, value: Any, back: Back) -> None:
        if sum(map(np.size, leaves(value))) > MOST:
            raise Miss
        self.back = back
        self.seeds = [zero(x) for x in leaves(value)]
        self.place = -1  # of the leaf that is looked at

    def row(self, seed: Any) -> tuple[Any, ...]:
        """The gradients where one leaf has this cotangent, and the others have none."""
        before = self.seeds[self.place]
        self.seeds[self.place] = seed
        found: tuple[Any, ...] = self.back(*self.seeds)
        self.seeds[self.place] = before
        if not all(map(is_finite, numbers(found))):
            raise Miss
        return found

    def of(self, value: Any, put: Callable[[list[Any], Any], Any]) -> Any:
        """What ``put`` makes of the rows of each leaf and the leaf, in the structure of the value."""
        if type(value) is tuple:
            return tuple([self.of(x, put) for x in value])
        self.place += 1
        if type(value) is np.ndarray:
            return put([self.row(unit.reshape(value.shape)) for unit in np.eye(value.size)], value)
        if type(value) is not list:
            return put([self.row(1.0)], value)
        units = np.eye(len(value)).tolist()
        return [put([self.row(unit)], x) for unit, x in zip(units, value, strict=True)]


def leaves(value: Any) -> Iterator[Any]:
    if type(value) is tuple:
        for x in value:
            yield from leaves(x)
    else:
        yield value


def zero(leaf: Any) -> Any:
    if type(leaf) is list:
        return [0.0] * len(leaf)
    return np.zeros(leaf.shape) if type(leaf) is np.ndarray else 0.0


def block(rows: list[Any], leaf: Any) -> Any:
    """The derivatives of one leaf, of rows of one structure: axes of the leaf come before those of the argument."""
    x = rows[0]
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([block([*parts], leaf) for parts in zip(*rows, strict=True)])
    if kind is dict:
        return {key: block([row[key] for row in rows], leaf) for key in x}
    if kind is not float and (kind not in (np.ndarray, np.float64) or x.dtype != FLOAT):
        raise Miss
    shape = np.shape(leaf) + np.shape(x)
    if shape:
        return np.array(rows).reshape(shape) if type(leaf) is np.ndarray else x
    return x if kind is float is type(leaf) else np.float64(x)


MAKERS.update(jacobian_of=jacobian_of, gradient_of=gradient_of, along_several=along_several)
# The formats of what a program gives for `jacobian`: by whether there is one argnum, and an aux.
JACOBIANS = {
    (single, aux): f"({text}, {{aux}})" if aux else text
    for single in (False, True)
    for aux in (False, True)
    for text in [f"{{gradient_of}}({{main}}, ({{gradients}}), {single})"]
}
for _one in (*JACOBIANS.values(), ALONG, ALONG_AUX):
    _form = _one.replace("gradient_of}({main}, ({gradients})", "jacobian_of}({main}, {back}")
    _form = _form.replace("along}", "along_several}").replace("({gradients})", "{back}")
    SEVERAL[_one] = Several(_form, MOST)
ROWS.update(JACOBIANS.values(), (ALONG, ALONG_AUX))
