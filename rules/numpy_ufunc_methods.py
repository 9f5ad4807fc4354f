"""The methods of ufuncs: reduce, accumulate, reduceat, outer and at, for every ufunc that has a rule.

What has a formula of its own (sums, products, extremes) has its rule in `numpy_reductions`; the others follow from the
rule of the ufunc, step by step.

Words
-----
step     one application of the ufunc: the next running value from the last one and an element.
running  the values after each step; the last one is the reduction.
round    elements that `at` changes at one go, because no index comes twice among them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .broadcasting import is_sequence, restore, settled, unbroadcast
from .mutation import scatter, setitem
from .numpy_reductions import axis_last, segments
from .numpy_ufuncs import weight
from .registry import NONDIFF, Operand, lookup, mutates, nondiff, rrule
from .zeros import product, ratio


def _array(a: Any) -> Any:
    """``a``, or the array that NumPy makes of a list."""
    return np.asarray(a) if is_sequence(a) else a


def _slices(x: Any, axis: int = -1) -> list[Any]:
    """The elements of ``x`` along an axis."""
    x = np.moveaxis(x, axis, -1)
    return [x[..., i] for i in range(np.shape(x)[-1])]


def unfold(backs: list[Any], first: Any, elements: list[Any], d: list[Any]) -> list[Any]:
    """The cotangents of the first value and of the elements, from those of the running values after each step."""
    parts: list[Any] = []
    last = d[-1]
    for i in range(len(backs) - 1, -1, -1):
        before, element = (None, None) if last is None else backs[i](last)
        parts.append(np.zeros(np.shape(elements[i])) if element is None else element)
        last = d[i] if before is None else before if d[i] is None else d[i] + before
    parts.append(np.zeros(np.shape(first)) if last is None else last)
    return parts[::-1]


def _where(step: Any, mask: Any) -> Any:
    """The step that is taken where the mask says so; elsewhere the running value stays what it is."""

    def masked(before, element):
        value, back = step(before, element)

        def pullback(d):
            dbefore, delement = back(np.where(mask, d, 0))
            stays = np.where(mask, 0, d)
            return stays if dbefore is None else stays + dbefore, delement

        return np.where(mask, value, before), pullback

    return masked


def leaves_out(ufunc: np.ufunc) -> bool:
    """Whether the reduction of a vector by this NumPy is something other than the fold of its elements.

    Those of ``power`` and ``arctan2`` may combine the first one with the last.
    """
    x = np.array([1.1, 1.2, 1.3])
    try:
        return bool(ufunc.reduce(x) != ufunc(ufunc(x[0], x[1]), x[2]))
    except TypeError:  # it is not for floats
        return False


def _reduce(ufunc: np.ufunc, step: Any) -> None:
    skipping = leaves_out(ufunc)

    @rrule(ufunc.reduce)
    def reduce(
        array,
        axis=0,
        dtype=None,
        out=None,
        keepdims=False,
        initial: Operand = np._NoValue,
        where: Operand = True,
    ):
        axis = settled(axis)
        z = ufunc.reduce(array, axis, dtype, keepdims=keepdims, initial=initial, where=where)

        def pullback(dz):
            x = _array(array)
            order, inverse, shape, moved = axis_last(np.shape(x), axis)
            elements = _slices(np.reshape(np.transpose(x, order), shape))
            given = initial is not np._NoValue and initial is not None
            alone = not given and where is True  # it begins with the first of the elements
            if alone:
                first, elements = elements[0], elements[1:]
            else:
                first = np.broadcast_to(initial if given else ufunc.identity, shape[:-1])
            steps = [step] * len(elements)
            if where is not True:
                mask = np.transpose(np.broadcast_to(where, np.shape(x)), order)
                steps = [_where(step, m) for m in _slices(np.reshape(mask, shape))]
            running, backs = first, []
            for one, element in zip(steps, elements, strict=True):
                running, back = one(running, element)
                backs.append(back)
            if skipping and not np.allclose(running, np.reshape(z, shape[:-1]), equal_nan=True):
                raise NotImplementedError(
                    f"NumPy's {ufunc.__name__}.reduce leaves elements out here"
                )
            last = np.reshape(dz, shape[:-1])
            parts = unfold(backs, first, elements, [*[None] * len(backs), last])
            dinitial = unbroadcast(parts[0], initial) if given else None
            parts = parts if alone else parts[1:]
            if not parts:
                return None, None, None, None, None, dinitial
            dx = np.transpose(np.reshape(np.stack(parts, axis=-1), moved), inverse)
            return unbroadcast(dx, array), None, None, None, None, dinitial

        return z, pullback


def _formula(ufunc: np.ufunc, share: Any) -> None:
    """The rule of a symmetric reduction from the derivative ``share(x, z)`` of its value by one element."""

    @rrule(ufunc.reduce)
    def reduce(
        array,
        axis=0,
        dtype=None,
        out=None,
        keepdims=False,
        initial: Operand = np._NoValue,
        where: Operand = True,
    ):
        axis = settled(axis)
        z = ufunc.reduce(array, axis, dtype, keepdims=keepdims, initial=initial, where=where)

        def pullback(dz):
            x = _array(array)
            total = restore(z, x, axis)
            d = restore(dz, x, axis)
            dx = product(d, share(x, total))
            if where is not True:
                dx = np.where(where, dx, 0)
            given = initial is not np._NoValue and initial is not None
            dinitial = unbroadcast(product(d, share(initial, total)), initial) if given else None
            return unbroadcast(dx, array), None, None, None, None, dinitial

        return z, pullback


def _accumulate(ufunc: np.ufunc, step: Any) -> None:
    @rrule(ufunc.accumulate)
    def accumulate(array, axis=0, dtype=None, out=None):
        axis = settled(axis)
        z = ufunc.accumulate(array, axis, dtype)

        def pullback(dz):
            x = _array(array)
            if np.size(x) == 0:
                return (None,)
            running, elements, d = (_slices(v, axis) for v in (z, x, dz))
            backs = [step(*pair)[1] for pair in zip(running, elements[1:])]
            parts = unfold(backs, elements[0], elements[1:], d)
            return (unbroadcast(np.moveaxis(np.stack(parts, axis=-1), -1, axis), array),)

        return z, pullback


def _reduceat(ufunc: np.ufunc) -> None:
    @rrule(ufunc.reduceat)
    def reduceat(array, indices, axis=0, dtype=None, out=None):
        z = ufunc.reduceat(array, indices, axis, dtype)
        rule: Any = lookup(ufunc.reduce).function  # type: ignore[union-attr]

        def pullback(dz):
            x = _array(array)
            along = settled(axis) % np.ndim(x)
            before = (slice(None),) * along
            parts = []
            for i, (start, stop) in enumerate(bounds(indices, np.shape(x)[along])):
                _, back = rule(x[(*before, slice(start, stop))], along)
                parts.append(back(dz[(*before, i)])[0])
            places, _ = segments(indices, np.shape(x)[along])
            d = np.concatenate(parts, axis=along)
            return unbroadcast(scatter(d, (*before, places), np.shape(x), d.dtype), array), None

        return z, pullback


def bounds(indices: Any, size: int) -> list[tuple[int, int]]:
    """Where each segment that `reduceat` reduces begins and ends."""
    starts = settled([int(i) for i in indices])
    stops = (*starts[1:], size)
    return [(i, j if j > i else i + 1) for i, j in zip(starts, stops)]


def _outer(ufunc: np.ufunc, step: Any) -> None:
    @rrule(ufunc.outer)
    def outer(x, y, **options):
        column = np.reshape(_array(x), np.shape(x) + (1,) * np.ndim(y))
        z, back = step(column, y, **options)

        def pullback(dz):
            dx, dy = back(dz)
            return unbroadcast(None if dx is None else np.reshape(dx, np.shape(x)), x), dy

        return z, pullback


# ----------------------------------------------------------------------------------------------- at


def occurrence(numbers: Any) -> Any:
    """How often each of ``numbers`` has come before, as `at` goes through them."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    first = np.searchsorted(ordered, ordered, side="left")
    counts = np.empty(len(numbers), np.intp)
    counts[order] = np.arange(len(numbers)) - first
    return counts


nondiff(occurrence)


def _at(ufunc: np.ufunc) -> None:
    def at(a, indices, *b):
        numbers = np.reshape(np.arange(np.size(a)), np.shape(a))[indices]
        shape = np.shape(numbers)
        b = [np.reshape(np.broadcast_to(x, shape), -1) if np.ndim(x) else x for x in b]
        numbers = np.reshape(numbers, -1)
        count = occurrence(numbers)
        y = np.reshape(a, -1)
        for i in range(int(np.max(count, initial=-1)) + 1):
            turn = np.equal(count, i)
            here = numbers[turn]
            given = [x[turn] if np.ndim(x) else x for x in b]  # by one number, NumPy takes a square
            y = setitem(y, here, ufunc(y[here], *given))
        return np.reshape(y, np.shape(a))

    mutates(ufunc.at)(at)


def complete(ufunc: np.ufunc) -> None:
    """Give a ufunc that has a rule the rules of those of its methods that have none yet."""
    rule = lookup(ufunc)
    if rule is None or ufunc.signature is not None:
        return
    if ufunc.nin == 2 and rule.kind == NONDIFF:
        names = ("reduce", "accumulate", "reduceat", "outer") if ufunc.nout == 1 else ("outer",)
        for name in names:
            nondiff(getattr(ufunc, name))
    elif ufunc.nin == 2:
        if ufunc.nout == 1:
            for name, make in METHODS.items():
                if lookup(getattr(ufunc, name)) is None:
                    make(ufunc, rule.function)
            if lookup(ufunc.reduceat) is None:
                _reduceat(ufunc)
        if lookup(ufunc.outer) is None:
            _outer(ufunc, rule.function)
    if ufunc.nout == 1 and lookup(ufunc.at) is None:
        _at(ufunc)


METHODS = {"reduce": _reduce, "accumulate": _accumulate}

_formula(np.logaddexp, weight)
_formula(np.logaddexp2, lambda x, z: weight(math.log(2) * x, math.log(2) * z))
_formula(np.hypot, ratio)
for _value in list(vars(np).values()):  # dir() would have NumPy import all of its own
    if isinstance(_value, np.ufunc):
        complete(_value)
