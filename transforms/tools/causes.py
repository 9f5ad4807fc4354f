"""Causes: why a derivative ends, explodes or is undefined at an operation, and what to do about it.

Words
-----
end     an operation behind which nothing of a variable's influence is left.
birth   an operation with finite operands, or a finite cotangent, that gives a NaN or an infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ...rules.mutation import setitem
from ...rules.registry import NONDIFF, lookup
from ...rules.words import with_article
from ...tracer.tape import Op, fn_name, primal
from ..stop import held


class Cause(NamedTuple):
    """What kind of cause it is, what happens there, and what to do."""

    name: str
    what: str
    cure: str


def named(fn: Any) -> str:
    """The bare name of a callable: ``sum`` of ``ndarray.sum``."""
    return fn_name(fn).rpartition(".")[2].strip("_")


ROUNDING = frozenset(
    "round rint floor ceil trunc fix around floordiv floor_divide divmod modf frexp".split()
)
STEPS = frozenset("sign heaviside copysign signbit".split())
CHOOSING = frozenset(
    "argmax argmin nanargmax nanargmin argsort argpartition lexsort searchsorted digitize nonzero flatnonzero "
    "argwhere".split()
)
PICKING = frozenset(
    "where select choose maximum minimum fmax fmin max min amax amin nanmax nanmin clip median sort partition relu "
    "piecewise".split()
)
TIMES = frozenset("mul multiply matmul dot vdot inner outer einsum tensordot imul imatmul".split())
ADDING = frozenset("add sub subtract iadd isub sum".split())
SUMS = frozenset("sum mean average trace nansum nanmean".split())
SATURATING = frozenset(
    "tanh erf erfc expit logistic exp exp2 expm1 arctan atan softmax log_expit ndtr sigmoid".split()
)
DIVIDING = frozenset("truediv divide true_divide reciprocal".split())
POWERS = frozenset("pow power float_power square".split())
KINKS = frozenset("sqrt abs absolute fabs norm hypot dist std nanstd".split())


UNDERFLOW = Cause(
    "underflow",
    "each slope on the way is a number, but their product is smaller than any float",
    "scale the variables, or compute in logarithms",
)


# -------------------------------------------------------------------------------------------------- ends


def where_it_ends(op: Op, alive: list[Op]) -> Cause:
    """Why nothing is left of the influence of the operands ``alive`` behind an operation."""
    name, rule = named(op.fn), lookup(op.fn)
    if op.fn is held:
        return Cause(
            "stop_gradient",
            "stop_gradient makes a constant of it",
            "take stop_gradient away where this derivative is wanted",
        )
    if name in ROUNDING:
        return Cause(
            "rounding",
            f"{name} is constant between its jumps: its derivative is zero",
            "leave it out, or let the derivative pass it: x + stop_gradient(round(x) - x)",
        )
    if name in CHOOSING:
        return Cause(
            "choice",
            f"{name} gives a position, which does not change with small changes of its operands",
            "use a smooth choice (a softmax as weights), or differentiate what is chosen, not which one",
        )
    if is_truth(op.value):
        return Cause(
            "comparison",
            f"{name} gives true or false, which does not change with small changes of its operands",
            "use a smooth step (1 / (1 + exp(-k*x))) in the place of the comparison",
        )
    if is_whole(op.value) and not all(is_whole(x.value) for x in alive):
        return Cause(
            "integers",
            f"{name} makes integers of it: the derivative ends in a cast",
            "keep floats: leave out int() and astype(int), and make the array with a dtype of float",
        )
    if name in STEPS:
        return Cause(
            "step",
            f"{name} gives the same on either side of its jump: its derivative is zero",
            "use a smooth step (np.tanh(k * x), 1 / (1 + exp(-k*x))) in its place",
        )
    if rule is not None and rule.kind == NONDIFF:
        return Cause(
            "no derivative",
            f"{name} is declared to have no derivative",
            "compute with something that has one, or write a rule (@wengert.rrule)",
        )
    if op.fn is setitem:
        return Cause(
            "overwritten",
            "it is overwritten here (a slice is a view: what is written to it is written to the array it comes from)",
            "write into a copy (x.copy()), or into another array",
        )
    if name in PICKING:
        untaken = not all(map(finite, primal(op.args)))
        also = "; what is not taken is NaN or infinite" if untaken else ""
        return Cause(
            "not taken",
            f"{name} takes another operand here, or a bound{also}",
            "start on the other side, or use a smooth form (softplus, np.logaddexp, a leaky slope); where the exact "
            "derivative there is not zero, write it as a custom_rule",
        )
    if name == "getitem" and not any(x is op.args[0] for x in alive):
        return Cause(
            "choice",
            "it says which elements are picked, which does not change with small changes of it",
            "use a smooth choice (a softmax as weights), or differentiate what is picked, not which one",
        )
    if name == "getitem":
        return Cause(
            "not picked",
            "it is not among the elements that are picked",
            "check the index, or the mask",
        )
    both = is_stationary(op, alive)
    others = [
        x.value if isinstance(x, Op) else x
        for x in op.args
        if both or not any(x is y for y in alive)
    ]
    if name in ("mul", "multiply", "imul") and not some(lambda x: x == 0, others):
        return UNDERFLOW
    if name in TIMES and both:
        return stationary(name)
    if name in TIMES:
        return Cause(
            "times zero",
            f"{name} multiplies it by zero",
            "look where the zero comes from: a mask, weights that start at zero, an operand that has underflowed",
        )
    if name in SUMS or (name in ADDING and (len(alive) > 1 or repeats(op))):
        return Cause(
            "cancelled",
            f"{name} puts two influences of it together that cancel",
            "this is a minimum, a maximum or a saddle; if it is so everywhere, the function does not depend on it: "
            "check the signs, or divide by what it is normalised with only once",
        )
    if name in KINKS:
        return kink(name)
    if name in SATURATING or (name in DIVIDING and not all(map(finite, primal(op.args)))):
        return Cause(
            "saturation",
            f"{name} is saturated: its slope at this value is smaller than any float",
            "scale its operand down (smaller weights, normalised inputs), or use the logarithm (np.logaddexp, "
            "scipy.special.log_expit)",
        )
    if name in POWERS:
        base, *exponents = primal(op.args)[:2]
        if exponents and not some(lambda x: x != 0, exponents):
            return Cause(
                "times zero",
                f"{name} with the exponent zero is 1, whatever its base",
                "check the exponent",
            )
        if not some(lambda x: x == 0, [base]):
            return UNDERFLOW
        return kink(name) if some(lambda x: x < 1, exponents) else stationary(name)
    return Cause(
        "flat",
        f"the derivative of {name} is zero at these values",
        "start elsewhere, or look at whether the function should depend on it here",
    )


def kink(name: str) -> Cause:
    smooth = "np.sqrt(x + 1e-12)" if name == "sqrt" else "np.sqrt(x * x + 1e-12)"
    smooth = "(x + 1e-12) ** p" if name in POWERS else smooth
    smooth = "np.sqrt(x.var() + 1e-12)" if name in ("std", "nanstd") else smooth
    return Cause(
        "kink",
        f"{name} has no derivative at this value (a kink, or an infinite slope): by convention it is zero",
        f"start elsewhere, or add a small constant: {smooth}",
    )


def stationary(name: str) -> Cause:
    return Cause(
        "stationary",
        f"the slope of {name} is zero at zero",
        "this is a minimum, a maximum or a saddle; if the search shall go on, start elsewhere",
    )


def is_stationary(op: Op, alive: list[Op]) -> bool:
    """Whether a product is one of a thing with itself."""
    return repeats(op) or len(alive) > 1


def repeats(op: Op) -> bool:
    found = op.operands()
    return len(set(found)) < len(found)


def is_truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_)) or getattr(value, "dtype", None) == bool


def is_whole(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return kind in ("i", "u") if kind else type(value) is int


def finite(value: Any) -> bool:
    try:
        return bool(np.isfinite(value).all())
    except (TypeError, ValueError):
        return True


# ----------------------------------------------------------------------------------- NaN, infinite, huge


def some(test: Callable[[Any], Any], values: Iterable[Any]) -> bool:
    """Whether a test holds of any number in one of the values."""
    for x in values:
        if isinstance(x, (int, float, complex, np.generic, np.ndarray)):
            with np.errstate(all="ignore"):
                try:
                    if np.any(test(np.asarray(x))):
                        return True
                except TypeError:
                    pass
    return False


LOGARITHMS = frozenset("log log2 log10 log1p xlogy xlog1py slogdet logaddexp".split())
EXPONENTIALS = frozenset("exp exp2 expm1 cosh sinh".split())
BOUNDS = {
    "acosh": "np.maximum(x, 1 + 1e-12)",
    "arccosh": "np.maximum(x, 1 + 1e-12)",
    "cbrt": "np.cbrt(x + 1e-12)",
}
EDGED = frozenset("asin acos arcsin arccos atanh arctanh acosh arccosh cbrt".split())


def where_it_is_born(op: Op, forward: bool) -> Cause:
    """Why an operation gives a NaN or an infinity, in the run (``forward``) or as its derivative."""
    if op.kind == "input":
        return Cause(
            "given", "it comes from outside like that", "clean the data: np.isfinite tells where"
        )
    return where_a_call_bears_it(op.fn, list(primal(op.args)), forward)


def where_a_call_bears_it(fn: Any, values: list[Any], forward: bool) -> Cause:
    """The same of a call with these arguments."""
    name = named(fn)
    if some(np.isnan, values):
        return Cause(
            "given",
            f"{name} takes a NaN that comes from outside",
            "clean the data: np.isfinite tells where",
        )
    if name in LOGARITHMS and some(lambda x: x <= 0, values):
        return Cause(
            "logarithm",
            f"{name} is taken of zero or of a negative number",
            "bound its operand (np.log(np.maximum(x, tiny))), or put the np.where around the operand, not around "
            "the logarithm",
        )
    if name in DIVIDING and some(lambda x: x == 0, values[-1:]):
        return Cause(
            "division",
            f"{name} divides by zero",
            "bound the divisor, or put a np.where around it: x / np.where(ok, y, 1.0)",
        )
    if name in POWERS and some(lambda x: x < 0, values[:1]) and not grows(*values[:2]):
        return Cause(
            "root",
            f"{name} of a negative base has no real {'value' if forward else 'slope by its exponent'}",
            "keep the base positive"
            + ("" if forward else ", or take the gradient by the base alone (argnums)"),
        )
    if name in POWERS and some(lambda x: x == 0, values[:1]):
        return Cause(
            "root",
            f"{name} is taken where it has no finite value or slope",
            "bound its base away from zero: (x + 1e-12) ** p",
        )
    if name in KINKS and some(lambda x: x <= 0, values[:1]):
        return Cause(
            "root",
            f"{name} is taken where it has no finite value or slope",
            "bound its operand away from zero: np.sqrt(x + 1e-12)",
        )
    if name in EDGED:
        return Cause(
            "edge",
            f"the slope of {name} is infinite at {'zero' if name == 'cbrt' else 'the edge of its domain'}",
            f"bound its operand inside: {BOUNDS.get(name, 'np.clip(x, -1 + 1e-12, 1 - 1e-12)')}",
        )
    if some(np.isinf, values) and name in TIMES | ADDING | DIVIDING:
        return Cause(
            "infinite operands",
            f"{name} takes an infinity, which gives NaN with zero or with another one: a mask that multiplies does not "
            "hide it",
            "choose with np.where in the place of multiplying by a mask, and keep the operand finite",
        )
    if name in EXPONENTIALS | TIMES | POWERS | ADDING | DIVIDING:
        return Cause(
            "overflow",
            f"{name} is larger than the largest float",
            "work with logarithms (np.logaddexp, log-sum-exp), or scale down before it",
        )
    which = "value" if forward else "derivative"
    return Cause(
        "undefined",
        f"{name} has no finite {which} at these values",
        "keep its operands away from there: bound them, or put a np.where around the operand",
    )


def grows(base: Any, exponent: Any = 2.0) -> bool:
    """Whether a power is larger than the largest float, whatever the sign of its base."""
    try:
        with np.errstate(all="ignore"):
            return not finite(np.abs(base) ** np.asarray(exponent, float))
    except (TypeError, ValueError):
        return False


def factor_of(power: float) -> str:
    """A power of ten in words, be it larger than a float."""
    return f"{10.0**power:.3g}" if abs(power) < 300 else f"10 to the power {power:.0f}"


def where_it_grows(op: Op, power: float, count: int) -> Cause:
    """What makes a cotangent large: an operation, or ``count`` of them at one line, by this power of ten."""
    name, factor = named(op.fn), factor_of(power)
    if count > 1:
        return Cause(
            "repeated",
            f"{count} times {name} multiply it by {factor} together ({factor_of(power / count)} each time)",
            "shorten the chain, scale each step, or clip the gradient",
        )
    if name in DIVIDING:
        return Cause(
            "small divisor",
            f"{name} divides by a small number and multiplies it by {factor}",
            "bound the divisor, or scale the variables",
        )
    return Cause(
        "steep",
        f"{name} multiplies it by {factor}",
        "scale its operand, or compute in logarithms",
    )


def where_it_shrinks(op: Op, power: float, count: int) -> Cause:
    """What makes a cotangent tiny."""
    name, factor = named(op.fn), factor_of(power)
    if count > 1:
        return Cause(
            "repeated",
            f"{count} times {name} multiply it by {factor} together ({factor_of(power / count)} each time)",
            "shorten the chain, scale each step, or add a way around it (a residual connection)",
        )
    if name in SATURATING | DIVIDING:
        return Cause(
            "saturation",
            f"{name} is nearly saturated and multiplies it by {factor}",
            "scale its operand down, or use the logarithm (np.logaddexp, scipy.special.log_expit)",
        )
    return Cause("flat", f"{name} multiplies it by {factor}", "scale the variables")


# -------------------------------------------------------------------------------------------- no gradient


def of_what_has_none(value: Any) -> Cause:
    """Why an argument has the gradient None."""
    if isinstance(value, str):
        return Cause("text", "it is a string, which has no derivative", "pass the number itself")
    if is_truth(value):
        return Cause(
            "truth",
            "it is true or false, and has no derivative",
            "convert to float: x.astype(float)",
        )
    if is_whole(value) or getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u"):
        return Cause(
            "integer argument",
            "integers have no derivative",
            "convert to float: x.astype(float), np.asarray(x, float)",
        )
    if getattr(getattr(value, "dtype", None), "kind", "") == "O":
        return Cause(
            "objects", "an array of objects has no derivative", "convert to float: x.astype(float)"
        )
    return Cause(
        "no number",
        f"{with_article(type(value).__name__)} has no derivative",
        "pass its numbers, as floats or arrays",
    )
