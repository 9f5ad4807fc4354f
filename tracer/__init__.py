"""The tracer: bytecode in, tape out."""

from ..rules import awaited
from . import (
    attributes,
    boxing,
    calls,
    closing,
    escape,
    foreign,
    hooks,
    marks,
    meaning,
    opaque,
    operators,
    overrides,
    protocols,
    renewal,
    scopes,
    sights,
    source,
    tracebacks,
    unannounced,
    unboxing,
    writers,
)
from . import builtin_calls as _builtin_calls  # noqa: F401  (these four say how some functions are called)
from . import draws as _draws  # noqa: F401
from . import errstate as _errstate  # noqa: F401
from . import stack as _stack  # noqa: F401

awaited["mpmath.libmp"] = awaited["mpmath.ctx_mp_python"] = f"{__name__}.mpmath_numbers"
awaited["sympy.core"] = f"{__name__}.sympy_numbers"
meaning.set_up(
    *(attributes, boxing, calls, closing, escape, foreign, hooks, marks, opaque, operators),
    *(overrides, protocols, renewal, scopes, sights, source, tracebacks, unannounced),
    *(unboxing, writers),
)
