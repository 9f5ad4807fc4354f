"""Python's built-in functions of numbers, and the methods of ``int``, ``float`` and ``complex``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .broadcasting import unbroadcast
from .elementwise import elementwise
from .operators import abs_slope, power_by_base, power_by_exponent
from .registry import Operand, nondiff, rrule
from .zeros import conj

elementwise(abs, abs_slope)
elementwise(pow, power_by_base, power_by_exponent)
elementwise(float, 1)
elementwise(float.conjugate, 1)
elementwise(int.conjugate, 1)

nondiff(int, bool, round, float.is_integer, float.as_integer_ratio, int.bit_length, int.bit_count)


@nondiff
def modular_power(base: int, exponent: int, modulus: int) -> int:
    """``pow`` of three integers."""
    return pow(base, exponent, modulus)


@rrule(complex)
def complex_(real: Operand = 0, imag: Operand = None):
    def pullback(dz):
        return unbroadcast(dz, real), None if imag is None else unbroadcast(dz * 1j, imag)

    return complex(real) if imag is None else complex(real, imag), pullback


@rrule(complex.conjugate)
def conjugate(x):
    def pullback(dz):
        return (conj(dz),)

    return conj(x), pullback


@rrule(divmod)
def divmod_(x, y):
    z = divmod(x, y)

    def pullback(dz):
        d = dz[1]  # the quotient is a whole number
        return (None, None) if d is None else (unbroadcast(d, x), unbroadcast(-d * z[0], y))

    return z, pullback


@rrule(sum)
def _sum(items, start=0):
    def pullback(dz):
        return [unbroadcast(dz, x) for x in items], unbroadcast(dz, start)

    return sum(items, start), pullback


@rrule(sum)
def sum_(numbers, start: Operand = 0):
    def pullback(dz):
        d = [unbroadcast(dz, x) for x in numbers]
        return tuple(d) if isinstance(numbers, tuple) else d, unbroadcast(dz, start)

    return sum(numbers, start), pullback


def same(x, z):
    """Is ``x`` as large as the extremum ``z``? NaN is as large as NaN here."""
    return x == z or (z != z and x != x)


nondiff(same)


def spread(d, z, items):
    """A cotangent ``d`` of the extremum ``z``, shared equally by those of the ``items`` that are as large."""
    chosen = [same(x, z) for x in items]
    part = d / max(sum(chosen), 1)
    zero = type(part)(0) if isinstance(part, np.generic) else 0.0  # whoever wins, of one type
    return tuple([part if yes else zero for yes in chosen])


def gathered(parts, z, items):
    """The transpose of ``spread``: the mean of the ``parts`` that belong to items as large as ``z``."""
    chosen = [part for part, x in zip(parts, items) if same(x, z)]
    return sum([part for part in chosen if part is not None]) / max(len(chosen), 1)


@rrule(spread)
def _spread(d, z, items):
    def pullback(parts):
        return gathered(parts, z, items), None, None

    return spread(d, z, items), pullback


@rrule(gathered)
def _gathered(parts, z, items):
    def pullback(d):
        return spread(d, z, items), None, None

    return gathered(parts, z, items), pullback


def _extremum(fn):
    def rule(*items):
        z = fn(*items)

        def pullback(dz):
            if len(items) > 1:
                return spread(dz, z, items)
            return (spread(dz, z, items[0]),)

        return z, pullback

    rrule(fn)(rule)


_extremum(max)
_extremum(min)


def pick(items: Any, index: int) -> Any:
    """``items[index]`` for an index that changes from call to call; an array comes as a view."""
    item = items[index]
    return item[...] if isinstance(item, np.ndarray) else item


def put_back(d: Any, index: int, count: int) -> tuple[Any, ...]:
    """Zeros but for ``d`` at an index: the pullback of `pick`."""
    return tuple([d if i == index % count else d * 0 for i in range(count)])


@rrule(pick)
def _pick(items, index):
    def pullback(d):
        return list(put_back(d, index, len(items))), None

    return pick(items, index), pullback


@rrule(put_back)
def _put_back(d, index, count=0):
    def pullback(ds):
        return pick([d * 0 if part is None else part for part in ds], index), None

    return put_back(d, index, count), pullback


def tied(x: Any, y: Any) -> Any:
    """``x``, into which ``y`` went as well, and nobody knows how."""
    return x


@rrule(tied)
def _tied(x, y):
    def pullback(d):
        return d, d

    return tied(x, y), pullback
