"""Differences in 40 digits: what a derivative is compared with where rounding must not be in doubt."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import GuardError, TraceError
from ...tracer.tape import Tape
from ..api import trace
from ..differences import Slope
from .systems import System

DIGITS = 40
STEP = -40  # of two, relative: its square is 8e-25, and 40 digits over it are 28


class Program:
    """A program, run in 40 digits by way of the tape of its run."""

    def __init__(self, f: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            import mpmath
        except ModuleNotFoundError as error:
            raise TraceError("exact=True needs the package mpmath\npip install mpmath") from error
        self.mpmath = mpmath
        self.args = args
        self.tape: Tape = trace(f, *copy.deepcopy(args))
        self.run = self.tape.compile(math=mpmath)
        self.system = System(mpmath)

    def slope(
        self, projected: Callable[[Any], Any], moved: Callable[[Any], tuple[Any, ...]], x: float
    ) -> Slope:
        """The derivative of ``projected(run(*moved(t)))`` at t = 0, and what it is in doubt by.

        Central differences with a step h of about 1e-12: their error is h**2 = 1e-24. What the two sides differ by is
        h times the second derivative, and much more at a kink.
        """
        mp = self.mpmath
        with mp.workdps(DIGITS):
            h = mp.ldexp(mp.mpf(max(abs(x), 2.0**-10)), STEP)
            try:
                left, here, right = (projected(self.run(*moved(t))) for t in (-h, mp.mpf(0), h))
                before, after = (here - left) / h, (right - here) / h
                value, doubt = float((before + after) / 2), float(abs(after - before))
            except GuardError as error:
                decision = str(error).partition("\n")[0]
                raise TraceError(
                    f"exact=True cannot take differences here, for between {x:.17g} and what is {float(h):.1e} beside "
                    f"it the function decides otherwise ({decision})\n"
                    "check it without exact=True, or elsewhere"
                ) from error
            except (ArithmeticError, ValueError):
                return Slope(math.nan, math.inf)
        size = max(1.0, abs(value))
        return Slope(value, doubt if doubt > 1e-6 * size else 1e-13 * size)


def shifted(program: Program, x: Any, t: Any, v: Any) -> Any:
    """``x + t * v`` in 40 digits, for a number or an array."""
    lifted = program.system.lifted(x)
    return lifted + t * (np.asarray(v, object) if isinstance(v, np.ndarray) else float(v))


def inner(d: Any, x: Any) -> Any:
    """sum(d * x) for a number or an array and its cotangent; arrays are of objects."""
    return np.sum(np.multiply(np.asarray(d, object), np.asarray(x, object)))
