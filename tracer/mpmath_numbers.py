"""mpmath, and SymPy, which computes with it: a traced number that becomes a number of theirs is an error.

They take a float apart into integers, from which no gradient comes back. Imported when a function of mpmath is called
inside a traced one (``registry.awaited``).
"""

from __future__ import annotations

import importlib
from typing import Any

from . import calls
from .border import is_constant
from .errors import TraceError
from .handlers import handles
from .places import called_from, in_words
from .record import has_box, operand
from .session import Tracer
from .tape import Site


def makes_numbers_of_its_own(fn: Any) -> None:
    """Let a function be run as any other, unless it is given a traced number."""

    @handles(fn)
    def convert(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
        if has_box((args, kwargs)) and not is_constant(tracer, operand((args, kwargs), [])):
            raise TraceError(
                f"{in_words(called_from(site) or site)}: a traced number becomes a number of SymPy or mpmath, into "
                "which no gradient can be followed\n"
                "compute with math or NumPy (math.sin(x)); formulas are given outside by "
                "wengert.trace(f, x).compile(math=sympy), more digits by math=mpmath\n"
                "a formula of SymPy becomes a function that can be traced with sympy.lambdify"
            )
        return calls.call_function(tracer, site, fn, args, kwargs)


_libmp: Any = importlib.import_module("mpmath.libmp")
makes_numbers_of_its_own(_libmp.from_float)
makes_numbers_of_its_own(_libmp.from_npfloat)
