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

from ..rules import registry
from ..rules.broadcasting import cast, expand
from ..rules.mutation import scatter, scatter_add
from ..rules.operators import finite_power, is_steady_slope
from ..rules.zeros import product, quotient
from ..tracer.kinds import attribute, is_one_of, isinstance
from ..tracer.tape import Op, element
from .kernels import hashable, static

# What may be computed once for all that need it, beside elementwise functions: see `is_shared`.
SHARED = frozenset(
    (
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow),
        *(operator.gt, operator.lt, operator.ge, operator.le, operator.eq, operator.ne),
        *(operator.and_, operator.or_, operator.invert, operator.getitem, element, np.sum),
        *(operator.matmul, np.matmul, np.dot, np.array, np.eye, np.full, np.arange, np.where),
        *(np.reshape, np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.tril, np.triu),
        *(cast, expand, scatter, scatter_add, float, int, np.float64, max, min),
    )
)
RULES = f"{registry.__package__}."
FACTORISING = ("numpy.linalg", "scipy.linalg")
LARGEST = 2.0**53  # numbers that are folded


def is_shared(fn: Any) -> bool:
    """Whether two calls of a function may be one.

    It is in the list, or its rule says that it is elementwise, or it finds out something for the rules, or it is
    linear algebra, of which a rule computes again what its function has given in several parts.
    """
    if fn in SHARED:
        return True
    rule = registry.rules.get(fn)
    if rule is None:
        return False
    module = str(attribute(fn, "__module__", ""))
    if rule.kind == registry.NONDIFF and module.startswith(RULES):
        return True
    return rule.partials is not None or isinstance(fn, np.ufunc) or module.startswith(FACTORISING)


def part_key(x: Any) -> Hashable:
    """A key for an argument: -0.0 is told from 0.0, and a slice, which has no hash before CPython 3.12, gets one."""
    kind = type(x)
    if issubclass(kind, Op):
        return x  # type: ignore[no-any-return]
    if kind is float:
        return x or repr(x)  # type: ignore[no-any-return]
    if kind is slice:
        return slice, part_key((x.start, x.stop, x.step))
    if kind is tuple or kind is list:
        return kind, tuple([part_key(y) for y in x])
    return kind, x


def plain(x: Any) -> Any:
    return x.value if issubclass(type(x), Op) else x


def is_real(value: Any) -> bool:
    """Is this a real number, or an array of them? The rules are for these only."""
    if type(value) is np.ndarray or isinstance(value, np.floating):
        return bool(value.dtype.kind == "f")
    return type(value) is float


def is_factor(x: Any) -> bool:
    """Can ``x`` stand in a sum, or be multiplied with one?"""
    if issubclass(type(x), Op):
        value = x.value
        return is_real(value) or (type(value) is np.ndarray and value.dtype.kind in "biu")
    return is_one_of(type(x), (float, int, bool)) and abs(x) < LARGEST


def pair_key(fn: Any, x: Any, y: Any) -> Hashable:
    """`key_of` for two operands that are no rows, in arithmetic on Python's numbers for example."""
    a, b = issubclass(type(x), Op), issubclass(type(y), Op)
    if not a:
        x = part_key(x)
    if not b:
        y = part_key(y)
    elif fn in COMMUTES and (not a or id(y) < id(x)):
        x, y = y, x
    return fn, x, y


def key_of(fn: Any, args: Any, kwargs: Any, same: dict[Any, Any] | None = None) -> Hashable | None:
    """A key that equal computations share; ``same`` are the functions that stand for others (`SAME`)."""
    if not hashable(fn):
        return None
    if fn in SUMS:
        key = sum_key(fn, args, kwargs)
        if key is not None:
            return key  # type: ignore[no-any-return]
    fn = (SAME if same is None else same).get(fn, fn)
    if not is_shared(fn):
        return None
    if kwargs:
        key = fn, *map(part_key, args), *[(k, part_key(x)) for k, x in sorted(kwargs.items())]
    elif len(args) == 2 and not is_one_of(type(plain(args[0])), ROWS):
        key = pair_key(fn, *args)
    else:
        key = fn, *map(part_key, args)
    try:
        hash(key)
    except TypeError:
        return None
    return key


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
        args[0],
        axes_of(axis, np.ndim(args[0].value)),
        kwargs.get("keepdims") is True,
    )


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    # an array without axes may be given axis 0 or -1
    return tuple(sorted(a % max(ndim, 1) for a in (axis if isinstance(axis, tuple) else (axis,))))


def dropped(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def ones_at(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def same_type(x: Any, op: Op) -> bool:
    """Whether a variable may stand for an op: type, dtype and shape are the same."""
    value = plain(x)
    if type(value) is not type(op.value):
        return False
    return not isinstance(value, np.ndarray) or (
        value.dtype == op.value.dtype and value.shape == op.value.shape
    )


SUMS = frozenset((np.sum, np.add.reduce, np.ndarray.sum))
# What gives the same to the bit, and what does where all is finite (see `rescue`).
EXACT: dict[Any, Any] = {
    np.multiply: operator.mul, np.add: operator.add, np.subtract: operator.sub, np.negative: operator.neg,
    np.divide: operator.truediv, np.matmul: operator.matmul,
}  # fmt: skip
SAME = {**EXACT, product: operator.mul, quotient: operator.truediv}
ARITHMETIC = frozenset((operator.add, operator.sub, operator.mul, operator.truediv))
COMMUTES = frozenset((operator.add, operator.mul))
ROWS = (tuple, list, str, bytes)  # whose sums are in order


def plainer(fn: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The same call, or a plainer one that comes to the same for these constants among the operands."""
    if fn is finite_power:
        x, p, y = args
        if (
            is_one_of(type(p), (int, float))
            and is_one_of(type(y), (int, float))
            and is_steady_slope(p, y)
        ):
            return operator.pow, (x, p)
    return fn, args
