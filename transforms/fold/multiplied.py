"""The pullback that a folded program gives: the gradients of one number, which a cotangent multiplies."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...tracer import frames
from ...tracer.errors import TraceError
from ...tracer.fold.region import is_looked_into
from ...tracer.intrinsic import intrinsic
from ...tracer.kinds import MISSING
from ...tracer.outline import Iterations
from ...tracer.run import Run, run
from ..api import Pullback
from ..argnums import leave_aux
from ..loops import Miss
from ..programs import Program
from ..trial import Trial
from .along import along
from .structured import numbers

# Up to here a number of single precision multiplies gradients: what leads to them would overflow no sooner.
MODERATE = 2.0**16
# The format of what a program gives for `pullback` (see `RegionBuilder.region`).
PULLBACK = "({value}, {multiplied}(self.f, {program}, ({given}), {main}, ({gradients}), {drawn}))"


class Multiplied(Pullback):
    """A pullback that has the gradients already. They are finite, or the call is traced.

    Where more is asked of it than to multiply them by a number, the function is run once more for its tape, with the
    arguments as they were, and with what it has ``drawn``. The program is asked first: where it answers as before,
    nothing that is read has changed, and beside drawing the function does nothing but compute.
    """

    run: Run | None = None
    asked = "pullback"
    how: ClassVar[dict[str, Any]] = {"outline": Iterations}  # the function is run

    def __init__(
        self,
        f: Any,
        program: Program,
        args: tuple[Any, ...],
        value: Any,
        gradients: tuple[Any, ...],
        drawn: Sequence[Any],
    ) -> None:
        if not all(map(is_finite, numbers(gradients))):
            raise Miss
        self.f = f
        self.program = program
        self.args = taken(tuple([x for x in args if x is not MISSING]))  # those that were given
        self.value = value
        self.gradients = gradients
        self.drawn = drawn

    def __call__(self, dy: Any) -> tuple[Any, ...]:
        narrow = type(self.value) is np.float32
        if type(dy) is float and (abs(dy) <= MODERATE if narrow else math.isfinite(dy)):
            dy = float(np.float32(dy)) if narrow else dy  # as the cotangent of such a value is
            return times(self.gradients, dy)  # type: ignore[no-any-return]
        return super().__call__(dy)

    @property
    def done(self) -> Run:  # type: ignore[override]
        if self.run is None:
            if not self.is_as_before():
                raise TraceError(
                    f"what {self.f.__name__} reads has changed since the call of {self.asked}, and its tape is asked "
                    f"for now\ncall {self.asked} again"
                )
            drawn = [*self.drawn]
            self.run = run(self.f, taken(self.args), {}, protect=True, drawn=drawn, **self.how)
            if self.program.aux:
                leave_aux(self.f, self.run)
            self.run.close()
        return self.run

    def is_as_before(self) -> bool:
        """Whether the program gives what it gave, to the bit."""
        trial = Trial(self.f)
        again = self.program.given(self.drawn)(trial, *self.args)
        return trial.error is None and self.gives_what(again[1])

    def gives_what(self, other: Any) -> bool:
        """Whether another pullback of the same program has come from the same."""
        if repr(other.value) != repr(self.value):
            return False
        pairs = zip(numbers(other.gradients), numbers(self.gradients), strict=True)
        return all(np.array_equal(a, b) for a, b in pairs)


intrinsic(Multiplied.__call__)
# What formats refer to by these names: it is given the gradients, and gives what the call gives.
MAKERS: dict[str, Any] = {"multiplied": Multiplied, "along": along}


def makers_in(answer: str) -> list[str]:
    """The names of those that a format refers to."""
    return [name for name in MAKERS if f"{{{name}}}" in answer]


def taken(x: Any) -> Any:
    """An argument as it is now: what may be written to is copied."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([taken(y) for y in x])
    if kind is dict:
        return {key: taken(y) for key, y in x.items()}
    if is_looked_into(kind):
        return frames.made(kind, {key: taken(y) for key, y in frames.attributes(x).items()})
    return x.copy("K") if kind is np.ndarray else x


def times(x: Any, dy: float) -> Any:
    """Gradients multiplied by a cotangent, in containers of their own."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([times(y, dy) for y in x])
    if kind is dict:
        return {key: times(y, dy) for key, y in x.items()}
    if dataclasses.is_dataclass(kind):
        return frames.made(kind, times(frames.attributes(x), dy))
    if x is None:
        return None
    found = dy * x + 0.0  # of -0.0 the zero that stands for no influence
    return np.array(found) if kind is np.ndarray and not x.ndim else found  # NumPy makes a number


def is_finite(x: Any) -> bool:
    return bool(np.isfinite(x).all()) if type(x) is np.ndarray else math.isfinite(x)
