"""Wengert: automatic differentiation of ordinary Python and NumPy code."""

import os.path
from typing import TYPE_CHECKING

# In a checkout the other folders lie beside this one.
if not os.path.isdir(os.path.join(__path__[0], "tracer")):
    __path__.append(os.path.dirname(__path__[0]))

from .rules.registry import frule, mutates, nondiff, query, rrule
from .tracer.demand import on_demand
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
from .transforms.cache import clear_cache, settings
from .transforms.check import GradientError, check_grads
from .transforms.checkpoint import checkpoint
from .transforms.custom import custom_rule
from .transforms.explain import explain
from .transforms.forward import forward
from .transforms.gradients import grad, value_and_grad
from .transforms.jacobians import hessian, hvp, jacfwd, jacobian, jacrev
from .transforms.jit import jit
from .transforms.linear import linearize
from .transforms.numeric import NumericRuleWarning, numeric_rule
from .transforms.pullbacks import pullback, vjp
from .transforms.stop import stop_gradient
from .transforms.tangents import jvp

if TYPE_CHECKING:
    from .transforms.tools.bytecode import bytecode
    from .transforms.tools.interpret import interpret
    from .transforms.tools.nans import NonFiniteError
    from .transforms.tools.profiling import profile
    from .transforms.tools.saving import save
    from .transforms.tools.stages import stages
    from .transforms.tools.why import why

# What is imported when it is asked for, by the module of `transforms.tools` that has it.
ON_DEMAND = {
    "NonFiniteError": "nans",
    "bytecode": "bytecode",
    "interpret": "interpret",
    "profile": "profiling",
    "save": "saving",
    "stages": "stages",
    "why": "why",
}


if not TYPE_CHECKING:  # which would take any name for one of ours
    __getattr__ = on_demand(
        globals(), {name: f".transforms.tools.{module}" for name, module in ON_DEMAND.items()}
    )

    def __dir__() -> list[str]:
        return sorted({*globals(), *ON_DEMAND})


__all__ = [
    "CotangentError",
    "EscapeError",
    "GradientError",
    "GuardError",
    "NoRuleError",
    "NonFiniteError",
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
    "interpret",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linearize",
    "mutates",
    "nondiff",
    "numeric_rule",
    "profile",
    "pullback",
    "query",
    "reverse",
    "rrule",
    "save",
    "settings",
    "stages",
    "stop_gradient",
    "trace",
    "value_and_grad",
    "vjp",
    "why",
]
__version__ = "0.1.0"
