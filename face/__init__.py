"""Wengert: automatic differentiation of ordinary Python and NumPy code."""

from .rules.registry import mutates, nondiff, query, rrule
from .tracer.errors import CotangentError, EscapeError, NoRuleError, TraceError, WengertError
from .tracer.tape import Op, Site, Tape
from .transforms.api import grad, pullback, reverse, trace, value_and_grad, vjp

__all__ = [
    "CotangentError",
    "EscapeError",
    "NoRuleError",
    "Op",
    "Site",
    "Tape",
    "TraceError",
    "WengertError",
    "grad",
    "mutates",
    "nondiff",
    "pullback",
    "query",
    "reverse",
    "rrule",
    "trace",
    "value_and_grad",
    "vjp",
]
__version__ = "0.1.0"
