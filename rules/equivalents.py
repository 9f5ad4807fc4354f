"""Rules by equivalence: where another function, which can be differentiated, computes the same.

Words
-----
equivalent   a Python function of the same parameters and the same derivative as a primitive.
pullback     `wengert.pullback`, which transforms put here: rules may differentiate functions that they are given.
value        calls a function on plain values, outside of every trace; put here by the tracer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .broadcasting import as_integers, cast
from .registry import RRULE, F, Rule, query, register

pullback: Callable[..., Any] = None  # type: ignore[assignment]
value: Callable[..., Any] = None  # type: ignore[assignment]


def pulled_back(f: Callable[..., Any], *args: Any) -> Any:
    """The same for a function of the user's, which is given arrays of integers that were computed as what they are."""
    dtypes = [x.dtype if is_integer(x) else None for x in args]
    if all(t is None for t in dtypes):
        return pullback(f, *args)

    def of_reals(*xs: Any) -> Any:
        return f(*[x if t is None else as_integers(x, t) for x, t in zip(xs, dtypes)])

    return pullback(of_reals, *[real(x) for x in args])


def real(x: Any) -> Any:
    """An array of integers as floats: as an argument of `pullback`, it would have no derivative."""
    return cast(x, np.float64) if is_integer(x) else x


@query
def is_integer(x: Any) -> bool:
    """Whether a value is an array of integers, or one of its elements."""
    return isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "iu"


def like(*primitives: Callable[..., Any]) -> Callable[[F], F]:
    """Differentiate ``primitives`` as the decorated function is differentiated; the value stays their own.

    As in a rule, parameters without a default are operands, the others options.

    >>> import numpy as np
    >>> @like(np.hypot)
    ... def hypot(x, y):
    ...     return np.sqrt(x * x + y * y)
    """

    def decorate(equivalent: F) -> F:
        parameters = inspect.signature(equivalent).parameters.values()
        names = [p.name for p in parameters if is_operand(p)]
        several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        for primitive in primitives:
            register([primitive], Rule(RRULE, rule_of(primitive, equivalent, names, several)))
        return equivalent

    return decorate


def is_operand(p: inspect.Parameter) -> bool:
    """Whether a derivative flows through a parameter."""
    if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
        return False
    return p.default is p.empty or p.annotation == "Operand"


def rule_of(primitive: Any, equivalent: Any, names: list[str], several: bool) -> Any:
    order = list(inspect.signature(equivalent).parameters)

    @functools.wraps(equivalent)
    def rule(*args: Any, **options: Any) -> Any:
        at = [i for i in range(len(args)) if several or order[i] in names]
        named = [name for name in options if name in names]

        def f(*xs: Any) -> Any:
            full, given = list(args), dict(options)
            for i, x in zip(at, xs):
                full[i] = x
            for name, x in zip(named, xs[len(at) :]):
                given[name] = x
            return equivalent(*full, **given)

        def back(dz: Any) -> Any:
            operands = [args[i] for i in at] + [options[name] for name in named]
            found = pullback(f, *[real(x) for x in operands])[1](dz)
            by_name = dict(zip([order[i] for i in at] + named, found)) if not several else {}
            return found if several else tuple([by_name.get(name) for name in order])

        return primitive(*args, **options), back

    return rule
