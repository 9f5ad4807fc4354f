"""``custom_rule``: a function that comes with its own pullback.

Words
-----
custom   a function that is written as its own rule: it returns its value and the pullback.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, cast, overload

import numpy as np

from ..rules.registry import RRULE, Rule, rules
from ..rules.words import with_article
from ..tracer import places
from ..tracer.active import active
from ..tracer.entrances import entrance
from ..tracer.errors import CotangentError, TraceError
from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import isinstance
from ..tracer.pairs import pair_of, place_of
from .typed import P, R


@overload
def custom_rule(rule: Callable[P, tuple[R, Any]], *, pure: bool = False) -> Callable[P, R]: ...
@overload
def custom_rule(
    rule: None = None, *, pure: bool = False
) -> Callable[[Callable[P, tuple[R, Any]]], Callable[P, R]]: ...
@intrinsic
@entrance
def custom_rule(rule: Callable[..., tuple[Any, Any]] | None = None, *, pure: bool = False) -> Any:
    """Turn a function that returns its value and its pullback into a function that returns its value.

    The decorated function is written like a rule (see `rrule`): it returns ``(value, pullback)``, and the pullback maps
    the cotangent of the value to a tuple with one cotangent for each parameter, in order; ``None`` is a zero. What
    comes back is called for its value everywhere, and is differentiated by that pullback alone: no derivative flows
    through the body. It may be a method; then ``self`` is the first parameter, and its cotangent None.

    The function runs once a call, and its pullback once in each reverse sweep that comes there, in reverse order; both
    share the variables of that call, and may draw random numbers, print, append or count. They are traced when a second
    derivative is taken, which needs no more than operations that have rules. A function that does nothing but compute
    from its arguments is pure: ``@custom_rule(pure=True)`` runs it once for arguments of the same types, and is as fast
    as a rule of the package.

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
    if rule is None:
        return functools.partial(custom_rule, pure=pure)
    if not isinstance(rule, types.FunctionType):
        raise TypeError(
            f"custom_rule decorates a function, not {with_article(type(rule).__name__)}\n"
            "one that returns its value and its pullback: @custom_rule above its def"
        )
    if active.tracer is not None:
        raise TraceError(
            f"{places.blame(places.user_site())}: custom_rule is used inside a function that is being traced\ndefine "
            f"{rule.__name__} outside of it"
        )

    @functools.wraps(rule)
    def function(*args: Any, **kwargs: Any) -> Any: return pair_of(rule, rule(*args, **kwargs))[0]  # fmt: skip

    code, made = rule.__code__, cast(types.FunctionType, function)
    # The place of the user's function, so that errors, tapes and `explain` show it; and a code object of its own.
    made.__code__ = made.__code__.replace(
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )
    # No program and no expansion can know of a new function: nothing has to be forgotten, as after `register`.
    dict.__setitem__(
        rules, function, Rule(RRULE, checked(rule) if pure else rule, pure=pure, custom=True)
    )
    return function


def checked(rule: types.FunctionType) -> Callable[..., Any]:
    """A pure rule, with a look at what it and its pullback return."""

    @functools.wraps(rule)
    def checking(*args, **kwargs):  # type: ignore[no-untyped-def]
        value, pullback = pair_of(rule, rule(*args, **kwargs))

        def checking_pullback(dy):  # type: ignore[no-untyped-def]
            cotangents = pullback(dy)
            if not isinstance(cotangents, tuple) or (
                len(cotangents) > len(args) + len(kwargs)
                and len(cotangents) > rule.__code__.co_argcount
            ):
                raise CotangentError(
                    f"the pullback of {place_of(rule)} must return a tuple with one cotangent for each argument\n"
                    "of one argument too: return (dx,)"
                )
            for i in range(min(len(args), len(cotangents))):
                x, dx = args[i], cotangents[i]
                if dx is not None and isinstance(x, (float, complex, np.ndarray, np.generic)):
                    if np.shape(dx) != np.shape(x):
                        raise CotangentError(
                            f"the pullback of {place_of(rule)} gives a cotangent of shape {np.shape(dx)} for argument "
                            f"{i}, whose shape is {np.shape(x)}\n"
                            "a cotangent has the shape of its argument: sum over what was broadcast"
                        )
            return cotangents

        return value, checking_pullback

    return checking
