"""Wengert: automatic differentiation of ordinary Python and NumPy code."""

from .rules.registry import frule, mutates, nondiff, query, rrule
from .tracer.errors import (
    CotangentError,
    EscapeError,
    NoRuleError,
    TangentError,
    TraceError,
    WengertError,
)
from .tracer.tape import Op, Site, Tape
from .transforms.api import reverse, trace
from .transforms.cache import clear_cache, jit, settings
from .transforms.explain import explain
from .transforms.gradients import grad, value_and_grad
from .transforms.jacobians import hessian, hvp, jacobian
from .transforms.pullbacks import pullback, vjp
from .transforms.tangents import jvp, linearize

__all__ = [
    "CotangentError",
    "EscapeError",
    "NoRuleError",
    "Op",
    "Site",
    "TangentError",
    "Tape",
    "TraceError",
    "WengertError",
    "clear_cache",
    "explain",
    "frule",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jit",
    "jvp",
    "linearize",
    "mutates",
    "nondiff",
    "pullback",
    "query",
    "reverse",
    "rrule",
    "settings",
    "trace",
    "value_and_grad",
    "vjp",
]
__version__ = "0.1.0"
