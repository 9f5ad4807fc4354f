"""Which computations are equal: the keys by which an op that is needed again is found.

Words
-----
key     what two equal computations have in common; None where an op is not worth remembering.
real    a real number, or an array of them: what the algebra of a reverse sweep is for.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..rules.zeros import product, quotient
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.tape import (
    Op,
    Signature,
)
from .kernels import hashable, static
from .simplify import is_shared, part_key


def plain(x: Any) -> Any:
    return x.value if isinstance(x, Op) else x


def is_real(value: Any) -> bool:
    """Is this a real number, or an array of them? The rules are for these only."""
    if type(value) is np.ndarray or isinstance(value, np.floating):
        return bool(value.dtype.kind == "f")
    return type(value) is float


def is_factor(x: Any) -> bool:
    """Can ``x`` stand in a sum, or be multiplied with one?"""
    if isinstance(x, Op):
        value = x.value
        return is_real(value) or (type(value) is np.ndarray and value.dtype.kind in "biu")
    return is_one_of(type(x), (float, int, bool)) and abs(x) < 2**53


def float_key(fn: Any, x: Any, y: Any) -> Hashable:
    """`key_of` for arithmetic on two Python numbers."""
    parts = part_key(x), part_key(y)
    return fn, frozenset(parts) if fn in COMMUTES else parts


def key_of(fn: Any, args: Any, kwargs: Any) -> Hashable | None:
    """A key that equal computations share."""
    if not hashable(fn):
        return None
    if fn in SUMS:
        return sum_key(fn, args, kwargs)
    fn = SAME.get(fn, fn)
    if kwargs or not is_shared(fn):
        return None
    try:
        parts = tuple([part_key(x) for x in args])
        hash(parts)
    except TypeError:
        return None
    return fn, frozenset(parts) if fn in COMMUTES else parts


def sum_key(fn: Any, args: Any, kwargs: Any) -> Any:
    """The key of a sum over axes of an array: that array, the axes, and whether these are kept."""
    if not isinstance(args[0], Op) or len(args) > 2 or not kwargs.keys() <= {"axis", "keepdims"}:
        return None
    axis = args[1] if len(args) == 2 else kwargs.get("axis", 0 if fn == np.add.reduce else None)
    if (
        not isinstance(axis, (int, tuple, type(None)))
        or not static(axis)
        or not is_real(args[0].value)
    ):
        return None
    return (
        np.sum,
        id(args[0]),
        axes_of(axis, np.ndim(args[0].value)),
        kwargs.get("keepdims") is True,
    )


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(sorted(a % ndim for a in (axis if isinstance(axis, tuple) else (axis,))))


def dropped(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def ones_at(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


SUMS = frozenset((np.sum, np.add.reduce, np.ndarray.sum))
SAME = {
    np.multiply: operator.mul, np.add: operator.add, np.subtract: operator.sub, np.negative: operator.neg,
    np.divide: operator.truediv, np.matmul: operator.matmul, product: operator.mul, quotient: operator.truediv,
}  # fmt: skip
ARITHMETIC = frozenset((operator.add, operator.sub, operator.mul, operator.truediv))
signatures: dict[Any, Signature] = {}
COMMUTES = frozenset((operator.add, operator.mul))
