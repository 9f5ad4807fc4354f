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
    GuardError,
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

__all__ = [
    "CotangentError",
    "EscapeError",
    "GradientError",
    "GuardError",
    "NoRuleError",
    "NumericRuleWarning",
    "Op",
    "Site",
    "TangentError",
    "Tape",
    "TraceError",
    "WengertError",
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
    "save",
    "settings",
    "stop_gradient",
    "trace",
    "value_and_grad",
    "vjp",
]
__version__ = "0.1.0"

if TYPE_CHECKING:
    from .transforms.tools.saving import save

TOOLS = {"save": "saving"}  # names of tools, each loaded when it is first asked for: their modules


def __getattr__(name: str) -> Any:
    if name not in TOOLS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.transforms.tools.{TOOLS[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*globals(), *TOOLS]
