"""What a folded program gives where a call gives several numbers: its reverse part, as a function of their cotangents.

Words
-----
leaf    of what a call gives: a float, an array or a list of floats. The reverse part is given a cotangent for each.
held    what a program has looked into and others hold as well: the reverse part reads it, and answers as long as it is
        what it was.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...tracer import frames
from ...tracer.fold.region import is_looked_into
from ...tracer.intrinsic import intrinsic
from ...tracer.kinds import MISSING, is_one_of
from ..api import Pullback
from ..loops import Miss
from ..programs import Program
from ..silence import ignoring, restore
from .multiplied import MAKERS, PULLBACK, Multiplied, is_finite, taken
from .structured import must_have_gradients, numbers

# The format of what a program gives for `pullback` where a call gives several numbers.
DEFERRED = (
    "({value}, "
    "{deferred}(self.f, {program}, ({given}), ({main}, {aux}), {back}, {drawn}, ({outside})))"
)


class Several(NamedTuple):
    """What is given where a call gives several numbers: in which format, and how many they may be."""

    form: str
    most: float


SEVERAL = {PULLBACK: Several(DEFERRED, math.inf)}  # by the format that is for one number
ROWS: set[str] = set()  # the formats for which a row is computed for each number
REALS = (float, np.float64)
EXACT = 2**53  # up to which integers are floats
ATOMS = (float, int, str, bool, np.float64, np.float32, np.int64, np.bool_)


class Deferred(Multiplied):
    """A pullback whose reverse sweep is the reverse part of a folded program."""

    def __init__(
        self,
        f: Any,
        program: Program,
        args: tuple[Any, ...],
        results: tuple[Any, Any],
        back: Callable[..., tuple[Any, ...]],
        drawn: Sequence[Any],
        outside: tuple[Any, ...],
    ) -> None:
        must_have_gradients(args)  # of others no copy can be made
        must_be_plain(outside)
        args = tuple([x for x in args if x is not MISSING])
        held = (args, outside, results, [*owners(results)])
        self.f = f
        self.program = program
        self.held, self.before = held, taken(held)
        self.args, (self.value, _) = self.before[0], self.before[2]
        self.back = back
        self.drawn = taken(list(drawn))
        self.lock = threading.Lock()  # the reverse part has variables that its calls share

    def __call__(self, dy: Any) -> tuple[Any, ...]:
        seeds: list[Any] = []
        found = self.swept_back(seeds) if fits(self.value, dy, seeds) else None
        return Pullback.__call__(self, dy) if found is None else found

    def swept_back(self, seeds: Sequence[Any]) -> tuple[Any, ...] | None:
        """The gradients for these cotangents of the leaves; None where the tape has to say what they are."""
        if not is_same(self.held, self.before):
            return None
        quiet = ignoring()
        try:
            with self.lock:
                found = self.back(*seeds)
        except Exception:  # as where a slope is divided by zero
            return None
        finally:
            restore(quiet)
        return found if all(map(is_finite, numbers(found))) else None

    def gives_what(self, other: Any) -> bool:
        return is_same(other.before[1:], self.before[1:])  # what was read outside, and the results


intrinsic(Deferred.__call__)
MAKERS["deferred"] = Deferred


def must_be_plain(x: Any) -> None:
    """Let no object of a class of the user's lie in the lists, dicts and tuples that are found outside."""
    kind = type(x)
    if kind is list or kind is tuple or kind is dict:
        for y in x.values() if kind is dict else x:
            must_be_plain(y)
    elif is_looked_into(kind):
        raise Miss


def owners(x: Any) -> Iterator[Any]:
    """The arrays of which those in results are views."""
    if type(x) is tuple or type(x) is list or type(x) is dict:
        for y in x.values() if type(x) is dict else x:
            yield from owners(y)
    elif type(x) is np.ndarray and x.base is not None:
        while type(x.base) is np.ndarray:
            x = x.base
        yield x


def is_same(x: Any, y: Any) -> bool:
    """Whether what may be written to is what it was when the copy ``y`` was taken, to the bit."""
    kind = type(x)
    if x is y:
        return True
    if kind is not type(y):
        return False
    if kind is tuple or kind is list:
        return len(x) == len(y) and all(map(is_same, x, y))
    if kind is dict:
        return [*x] == [*y] and all(map(is_same, x.values(), y.values()))
    if kind is np.ndarray:
        if x.dtype.kind != "f":
            return x.dtype == y.dtype and np.array_equal(x, y)
        same = x.dtype == y.dtype and np.array_equal(x, y, equal_nan=True)
        return same and np.array_equal(np.signbit(x), np.signbit(y))
    if is_looked_into(kind):
        return is_same(frames.attributes(x), frames.attributes(y))
    return is_one_of(kind, ATOMS) and repr(x) == repr(y)


def fits(value: Any, dy: Any, seeds: list[Any]) -> bool:
    """Whether a cotangent has the structure of a value and is finite; those of the leaves are added to ``seeds``."""
    kind = type(value)
    if kind is tuple:
        if type(dy) is not tuple or len(dy) != len(value):
            return False
        return all(fits(x, d, seeds) for x, d in zip(value, dy, strict=True))
    if kind is np.ndarray:
        seeds.append(dy)
        same = type(dy) is np.ndarray and dy.dtype == value.dtype and dy.shape == value.shape
        return same and bool(np.isfinite(dy).all())
    if kind is list:
        if type(dy) is not list or len(dy) != len(value) or not all(map(is_finite_number, dy)):
            return False
        seeds.append([*map(float, dy)])
        return True
    if is_finite_number(dy):
        seeds.append(float(dy))
        return True
    return False


def is_finite_number(x: Any) -> bool:
    if type(x) is int:
        return abs(x) < EXACT
    return is_one_of(type(x), REALS) and math.isfinite(x)
