"""``numeric_rule``: derivatives of a callable without a rule, by finite differences, where somebody asks for them.

Words
-----
slope   a cotangent by differences, for one operand: an operation of its own on the tape.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..rules.registry import RRULE, Rule, lookup, query, register
from ..rules.words import with_article
from ..tracer import places
from ..tracer.entrances import entrance
from ..tracer.intrinsic import intrinsic
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.tape import fn_name, type_name
from .differences import derivative

F = TypeVar("F", bound=Callable[..., Any])


class NumericRuleWarning(UserWarning):
    """A derivative is taken by finite differences, since somebody asked for it with `numeric_rule`."""


@intrinsic
@entrance
def numeric_rule(fn: F) -> F:
    """Let ``fn``, a callable that has no rule, be differentiated by finite differences.

    Arguments and value are real numbers, or arrays of them. The derivative is slow, some 20 calls of ``fn`` for each
    element of each argument; it has some ten digits in double precision where ``fn`` is smooth; and there is none of
    second order. ``fn`` is taken to do nothing but compute from its arguments: the differences are taken when the
    derivative is asked for, in the world of that moment. The first time that it is needed a `NumericRuleWarning` names
    ``fn``. Returns ``fn``, and serves as a decorator as well. For an exact rule see `rrule` and `custom_rule`.

    Raises TypeError if ``fn`` is no callable or has a rule. At the derivative, `NoRuleError` says if an argument or the
    value is of another kind, if the differences do not converge, or that a second derivative was asked for.

    >>> import warnings
    >>> from statistics import NormalDist
    >>> from wengert import grad
    >>> @numeric_rule
    ... def quantile(p):
    ...     return NormalDist().inv_cdf(p)
    >>> with warnings.catch_warnings(action="ignore"):
    ...     round(grad(quantile)(0.5), 9)
    2.506628275
    """
    if not callable(fn):
        raise TypeError(
            f"numeric_rule takes a callable, not {with_article(type(fn).__name__)}\n"
            "the function itself: numeric_rule(fn), and then fn is called as ever"
        )
    if lookup(fn) is not None:
        raise TypeError(
            f"{fn_name(fn)} has a rule already\nleave numeric_rule out: that one is exact"
        )
    slope = Slopes(fn)

    def rule(*args, **kwargs):  # type: ignore[no-untyped-def]
        y = fn(*args, **kwargs)

        def pullback(dy):  # type: ignore[no-untyped-def]
            dxs = [slope(dy, i, args, kwargs) if is_real(x) else None for i, x in enumerate(args)]
            for key in kwargs:
                if is_real(kwargs[key]):
                    i = slope.position(key)
                    dxs += [None] * (i + 1 - len(dxs))
                    dxs[i] = slope(dy, key, args, kwargs)
            return tuple(dxs)

        return y, pullback

    rule.numeric = True  # type: ignore[attr-defined]
    if slope.signature is not None:
        rule.__signature__ = slope.signature  # type: ignore[attr-defined]
    register([fn], Rule(RRULE, rule))
    register([slope], Rule(RRULE, slope.rule))
    return fn


BY = "numeric_rule has no derivative by an argument of type"
WRAP = (
    "wrap the function in one of real numbers and arrays of them that returns one, and give it that"
)


@query
def is_real(x: Any) -> bool:
    """Whether an argument is a real number or an array of them; raises TypeError for what has another derivative."""
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype.kind in "cO":
            raise TypeError(f"{BY} {type_name(x)}\n{WRAP}")
        return x.dtype.kind == "f"
    if isinstance(x, (complex, list, tuple, dict)):
        raise TypeError(f"{BY} {type_name(x)}\n{WRAP}")
    return is_one_of(type(x), (int, float))


class Slopes:
    """The cotangents of ``fn``'s operands, by differences."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.__name__ = f"differences of {fn_name(fn)}"
        self.warned = False
        try:
            self.signature: inspect.Signature | None = inspect.signature(fn)
        except (TypeError, ValueError):
            self.signature = None

    @query
    def position(self, key: str) -> int:
        """The place of a keyword argument among the cotangents."""
        parameters = self.signature.parameters if self.signature is not None else {}
        kinds = [p.kind for p in parameters.values()]
        if key not in parameters or inspect.Parameter.VAR_POSITIONAL in kinds:
            raise TypeError(
                f"the argument {key} must be given by its position, not by keyword\n"
                f"write {fn_name(self.fn)}(…, {key}) with its value in its place"
            )
        return list(parameters).index(key)

    def __call__(
        self, dy: Any, which: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The cotangent of the operand ``which``, a number or a keyword."""
        self.warn()
        return differences(self.fn, dy, which, args, kwargs)

    def warn(self) -> None:
        if not self.warned:
            self.warned = True
            site = places.user_site()
            warnings.warn_explicit(
                f"the derivative of {fn_name(self.fn)} is taken by finite differences, as numeric_rule has it",
                NumericRuleWarning,
                site.filename or "<unknown>",
                max(site.lineno, 1),
            )

    def rule(self, *args: Any) -> Any:
        raise NotImplementedError("numeric_rule gives first derivatives only")


def differences(
    fn: Any, dy: Any, which: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The cotangent of an operand of ``fn``, by differences."""
    x = kwargs[which] if isinstance(which, str) else args[which]
    at = np.array(x, dtype=getattr(x, "dtype", float))
    found = np.empty_like(at)
    for index in np.ndindex(at.shape):

        def moved(t: float, index: tuple[int, ...] = index) -> float:
            there = at.copy()
            there[index] += t
            return projected(fn, dy, which, alike(x, there), args, kwargs)

        slope = derivative(moved, float(at[index]), float(np.finfo(at.dtype).eps))
        if not slope.doubt <= CONVERGED * max(1.0, abs(slope.value)):
            raise ArithmeticError(
                f"the differences do not converge: {slope.value}, give or take {slope.doubt}"
            )
        found[index] = slope.value
    return alike(x, found)


def projected(fn: Any, dy: Any, which: int | str, x: Any, args: Any, kwargs: Any) -> float:
    """The product of ``dy`` and the value of ``fn`` at another ``x``."""
    if isinstance(which, str):
        value = fn(*args, **{**kwargs, which: x})
    else:
        value = fn(*args[:which], x, *args[which + 1 :], **kwargs)
    if not isinstance(value, FLOATS) or getattr(value, "dtype", np.dtype(float)).kind != "f":
        raise TypeError("numeric_rule takes no value of type " + type(value).__name__ + "\n" + WRAP)
    return float(np.sum(np.multiply(value, dy, dtype=float)))


FLOATS = (float, np.floating, np.ndarray)
CONVERGED = 1e-3  # what the differences may be in doubt by, at most


def alike(x: Any, array: Any) -> Any:
    """The contents of an array as an array, a NumPy scalar or a number, whatever ``x`` is."""
    if isinstance(x, np.ndarray):
        return array
    return array[()] if isinstance(x, np.generic) else float(array)
