"""``custom_rule``: a function that comes with its own pullback.

Words
-----
custom   a function that is written as its own rule: it returns its value and the pullback.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ..rules.registry import RRULE, Rule, rules
from ..tracer import places
from ..tracer.errors import CotangentError, TraceError
from ..tracer.session import active, intrinsic
from ..tracer.tracebacks import entrance


@intrinsic
@entrance
def custom_rule(rule: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    """Turn a function that returns its value and its pullback into a function that returns its value.

    The decorated function is written like a rule (see `rrule`): it returns ``(value, pullback)``, and the pullback maps
    the cotangent of the value to a tuple with one cotangent for each parameter, in order; ``None`` is a zero. What
    comes back is called for its value everywhere, and is differentiated by that pullback alone: the body is not looked
    into. It may be a method; then ``self`` is the first parameter, and its cotangent None.

    The pullback is traced when it is needed, so second derivatives need no more than operations that have rules.
    Parameters with a default are options, which are plain values. What the function reads beside its arguments (by a
    closure, from ``self``) has no derivative: where that is a traced value, the call raises `TraceError`. A cotangent
    of another shape than its argument raises `CotangentError`.

    >>> import math
    >>> from wengert import grad
    >>> @custom_rule
    ... def log1pexp(x):
    ...     def pullback(dy):
    ...         return (dy / (1 + math.exp(-x)),)
    ...     return math.log1p(math.exp(x)), pullback
    >>> log1pexp(0.0) == math.log(2)
    True
    >>> grad(log1pexp)(0.0), grad(grad(log1pexp))(0.0)
    (0.5, 0.25)
    """
    if not isinstance(rule, types.FunctionType):
        raise TypeError(f"custom_rule decorates a function, not a {type(rule).__name__}")
    if active.tracer is not None:
        raise TraceError(
            f"{places.blame(places.user_site())}: custom_rule is used inside a function that is being traced; define "
            f"{rule.__name__} outside of it"
        )

    @functools.wraps(rule)
    def function(*args: Any, **kwargs: Any) -> Any: return pair(rule, rule(*args, **kwargs))[0]  # fmt: skip

    code, made = rule.__code__, cast(types.FunctionType, function)
    # The place of the user's function, so that errors, tapes and `explain` show it; and a code object of its own.
    made.__code__ = made.__code__.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )
    # No program and no expansion can know of a new function: nothing has to be forgotten, as after `register`.
    dict.__setitem__(rules, function, Rule(RRULE, checked(rule)))
    return function


def place_of(rule: types.FunctionType) -> str:
    return f"{rule.__name__} ({rule.__code__.co_filename}:{rule.__code__.co_firstlineno})"


def pair(rule: types.FunctionType, made: Any) -> tuple[Any, Any]:
    """What a rule returned, if it is a value and a pullback."""
    if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
        raise CotangentError(f"{place_of(rule)} is a custom rule and must return (value, pullback)")
    return made


def checked(rule: types.FunctionType) -> Callable[..., Any]:
    """The rule, with a look at what it and its pullback return."""

    @functools.wraps(rule)
    def checking(*args, **kwargs):  # type: ignore[no-untyped-def]
        value, pullback = pair(rule, rule(*args, **kwargs))

        def checking_pullback(dy):  # type: ignore[no-untyped-def]
            cotangents = pullback(dy)
            if not isinstance(cotangents, tuple) or len(cotangents) > len(args) + len(kwargs):
                raise CotangentError(
                    f"the pullback of {place_of(rule)} must return a tuple with one cotangent for each argument"
                )
            for i in range(min(len(args), len(cotangents))):
                x, dx = args[i], cotangents[i]
                if dx is not None and isinstance(x, (float, complex, np.ndarray, np.generic)):
                    if np.shape(dx) != np.shape(x):
                        raise CotangentError(
                            f"the pullback of {place_of(rule)} gives a cotangent of shape {np.shape(dx)} for argument "
                            f"{i}, whose shape is {np.shape(x)}"
                        )
            return cotangents

        return value, checking_pullback

    return checking
