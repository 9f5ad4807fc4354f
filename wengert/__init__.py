"""Wengert: automatic differentiation of ordinary Python and NumPy code."""

import importlib
import os.path
from typing import TYPE_CHECKING, Any

# In a checkout the other folders lie beside this one.
if not os.path.isdir(os.path.join(__path__[0], "tracer")):
    __path__.append(os.path.dirname(__path__[0]))

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
from .transforms.check import GradientError, check_grads
from .transforms.checkpoint import checkpoint
from .transforms.custom import custom_rule
from .transforms.explain import explain
from .transforms.forward import forward
from .transforms.gradients import grad, value_and_grad
from .transforms.jacobians import hessian, hvp, jacobian
from .transforms.linear import linearize
from .transforms.numeric import NumericRuleWarning, numeric_rule
from .transforms.pullbacks import pullback, vjp
from .transforms.stop import stop_gradient
from .transforms.tangents import jvp

if TYPE_CHECKING:
    from .transforms.tools.bytecode import bytecode
    from .transforms.tools.stages import stages

__all__ = [
    "CotangentError",
    "EscapeError",
    "GradientError",
    "NoRuleError",
    "NumericRuleWarning",
    "Op",
    "Site",
    "TangentError",
    "Tape",
    "TraceError",
    "WengertError",
    "bytecode",
    "check_grads",
    "checkpoint",
    "clear_cache",
    "custom_rule",
    "explain",
    "forward",
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
    "numeric_rule",
    "pullback",
    "query",
    "reverse",
    "rrule",
    "settings",
    "stages",
    "stop_gradient",
    "trace",
    "value_and_grad",
    "vjp",
]
__version__ = "0.1.0"

# What is imported when it is asked for.
_LATER = {"bytecode": "transforms.tools.bytecode", "stages": "transforms.tools.stages"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    return found
