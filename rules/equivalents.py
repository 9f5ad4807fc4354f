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

from .registry import RRULE, F, Rule, register

pullback: Callable[..., Any] = None  # type: ignore[assignment]
value: Callable[..., Any] = None  # type: ignore[assignment]


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
            found = pullback(f, *[args[i] for i in at], *[options[name] for name in named])[1](dz)
            by_name = dict(zip([order[i] for i in at] + named, found)) if not several else {}
            return found if several else tuple([by_name.get(name) for name in order])

        return primitive(*args, **options), back

    return rule
