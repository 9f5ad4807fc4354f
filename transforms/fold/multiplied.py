"""The pullback that a folded program gives: the gradients of one number, which a cotangent multiplies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...tracer.errors import TraceError
from ...tracer.intrinsic import intrinsic
from ...tracer.kinds import MISSING
from ...tracer.outline import Iterations
from ...tracer.run import Run, run
from ..api import Pullback
from ..loops import Miss

# The format of what a program gives for `pullback` (see `RegionBuilder.region`).
PULLBACK = "({value}, {make}(self.f, ({given}), {value}, ({gradients})))"
CLOSE = 1e-6


class Multiplied(Pullback):
    """A pullback that has the gradients already. They are finite, or the call is traced.

    Where more is asked of it than to multiply them by a number, the function is run once more for its tape, with the
    arguments as they were: it does nothing but compute.
    """

    run: Run | None = None

    def __init__(
        self, f: Any, args: tuple[Any, ...], value: Any, gradients: tuple[Any, ...]
    ) -> None:
        if not all(map(is_finite, numbers(gradients))):
            raise Miss
        self.f = f
        self.args = taken(tuple([x for x in args if x is not MISSING]))  # those that were given
        self.value = value
        self.gradients = gradients

    def __call__(self, dy: Any) -> tuple[Any, ...]:
        if type(dy) is float and math.isfinite(dy):
            return times(self.gradients, dy)  # type: ignore[no-any-return]
        return super().__call__(dy)

    @property
    def done(self) -> Run:  # type: ignore[override]
        if self.run is None:
            made = run(self.f, taken(self.args), {}, protect=True, outline=Iterations)
            own = Pullback(made)(type(self.value)(1.0))
            if repr(made.value) != repr(self.value) or not alike(own, self.gradients):
                raise TraceError(
                    f"what {self.f.__name__} reads has changed since the call of pullback, and its tape is asked for "
                    "now\ncall pullback again"
                )
            self.run = made.close()
        return self.run


intrinsic(Multiplied.__call__)


def taken(x: Any) -> Any:
    """An argument as it is now: what may be written to is copied."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([taken(y) for y in x])
    if kind is dict:
        return {key: taken(y) for key, y in x.items()}
    return x.copy("K") if kind is np.ndarray else x


def times(x: Any, dy: float) -> Any:
    """Gradients multiplied by a cotangent, in containers of their own."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([times(y, dy) for y in x])
    if kind is dict:
        return {key: times(y, dy) for key, y in x.items()}
    return None if x is None else dy * x + 0.0  # of -0.0 the zero that stands for no influence


def numbers(x: Any) -> Iterator[Any]:
    """The numbers and arrays in gradients."""
    if type(x) is dict:
        x = (*x.values(),)
    if type(x) is tuple or type(x) is list:
        for y in x:
            yield from numbers(y)
    elif x is not None:
        yield x


def is_finite(x: Any) -> bool:
    return bool(np.isfinite(x).all()) if type(x) is np.ndarray else math.isfinite(x)


def alike(x: Any, y: Any) -> bool:
    """Whether gradients that were computed in two ways are the same."""
    pairs = zip(numbers(x), numbers(y), strict=False)
    return all(np.allclose(a, b, rtol=CLOSE, atol=CLOSE) for a, b in pairs)
