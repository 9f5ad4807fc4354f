"""Elementwise functions: one line with the partial derivatives makes the rules of both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .broadcasting import broadcast_like, cast, is_sequence, unbroadcast
from .registry import RRULE, Operand, Rule, frule, query, register
from .zeros import cotangent_dtype, is_plain, plus, product, quotient, ratio


class over:
    """A partial derivative given by its reciprocal: ``over(lambda x, z: x)`` is 1/x.

    The pullback then divides by it, which saves an operation and keeps the zeros of the cotangent. With a second
    function it multiplies by that after it has divided: ``over(lambda x, y, z: y, lambda x, y, z: -z)`` is -z/y.
    """

    __slots__ = ("factor", "reciprocal")

    def __init__(
        self, reciprocal: Callable[..., Any], factor: Callable[..., Any] | None = None
    ) -> None:
        self.reciprocal = reciprocal
        self.factor = factor


class unknown:
    """A partial derivative for which there is no formula, of the operand of that name.

    A gradient that would flow there is an error.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_: Any) -> Any:
        raise NotImplementedError(f"there is no formula for the derivative in {self.name}")


Partial = Callable[..., Any] | over | float | None


def first(x: Any, y: Any, z: Any) -> Any:
    """The first operand: the partial derivative of a product by the second."""
    return x


def second(x: Any, y: Any, z: Any) -> Any:
    """The second operand: the partial derivative of a product by the first."""
    return y


def elementwise(primitives: Any, *partials: Partial) -> None:
    """Give ``primitives`` (one callable, or a tuple of names for one function) the rules that follow from its partials.

    There is one partial for each operand: a function of the operands and of the value, ``over`` such a
    function, a constant, None for an operand through which no derivative flows, or ``unknown("name")`` for one
    in which there is a derivative but no formula. A formula gets the operands in the precision of the value;
    integers in which no derivative is known are orders and degrees, and stay whole.

    >>> elementwise(np.sin, lambda x, z: np.cos(x))
    >>> elementwise(np.multiply, lambda x, y, z: y, lambda x, y, z: x)
    >>> elementwise(np.log, over(lambda x, z: x))
    """
    primitives = primitives if isinstance(primitives, tuple) else (primitives,)
    primitive = primitives[0]
    forward = _forward(primitive, partials)
    gaps = any(type(p) is unknown for p in partials)
    register(primitives, Rule(RRULE, _rule(primitive, partials), partials, forward, gaps))


def _rule(primitive: Callable[..., Any], partials: tuple[Partial, ...]) -> Callable[..., Any]:
    rule: Callable[..., Any]
    uses = uses_of(partials)
    if isinstance(primitive, np.ufunc):

        def rule(*operands: Any, where: Operand = True, **options: Any) -> Any:
            z = primitive(*operands, where=where, **options)
            xs = tuple(np.asarray(x) if is_sequence(x) else x for x in operands)

            def pullback(dz):
                if where is not True:
                    dz = np.where(where, dz, 0)
                ys = widened(uses, xs, z)
                return tuple(
                    partial
                    if type(partial) is unknown
                    else unbroadcast(times(dz, partial, ys, z), x)
                    for partial, x in zip(partials, operands, strict=True)
                )

            return z, pullback

    else:

        def rule(*operands):
            z = primitive(*operands)

            def pullback(dz):
                ys = widened(uses, operands, z)
                return tuple(
                    partial
                    if type(partial) is unknown
                    else unbroadcast(times(dz, partial, ys, z), x)
                    for partial, x in zip(partials, operands, strict=True)
                )

            return z, pullback

    rule.__name__ = rule.__qualname__ = getattr(primitive, "__name__", "rule")
    return rule


def _forward(primitive: Callable[..., Any], partials: tuple[Partial, ...]) -> Callable[..., Any]:
    """The frule: the sum of what each partial makes of its operand's tangent."""
    uses = uses_of(partials)

    def forward(operands: Any, tangents: Any, **options: Any) -> Any:
        z = primitive(*operands, **options)
        xs = tuple(np.asarray(x) if is_sequence(x) else x for x in operands)
        ys = widened(uses, xs, z)
        total = None
        for partial, x, dx in zip(partials, operands, tangents, strict=True):
            if dx is None or partial is None:
                continue
            dx = np.asarray(filled(dx, x)) if is_sequence(x) else dx
            term = times(dx, partial, ys, z)
            total = term if total is None else total + term
        if total is not None and options.get("where", True) is not True:
            total = np.where(options["where"], total, 0)
        return z, broadcast_like(total, z)

    return forward


def use_of(partial: Partial) -> str:
    """What formulas do with an operand of this partial: "count" by it, "multiply" by it alone, or "compute"."""
    if partial is None or type(partial) is unknown:
        return "count"
    return "multiply" if partial is first or partial is second else "compute"


def uses_of(partials: tuple[Partial, ...]) -> tuple[str, ...] | None:
    """The uses of all operands; None where no partial is a formula."""
    formulas = any(callable(p) or type(p) is over for p in partials)
    return tuple(map(use_of, partials)) if formulas else None


def widened(uses: tuple[str, ...] | None, operands: tuple[Any, ...], z: Any) -> tuple[Any, ...]:
    """The operands as formulas take them: in the precision of the value ``z``.

    What is narrower would wrap around (``-y`` of unsigned integers, ``x * x`` of small ones) or be rounded (the
    logarithm of a uint8 is one of half precision), where the function itself has computed with more.
    """
    if uses is None:
        return operands
    dtypes = wider(uses, z, *operands)
    if dtypes is None:
        return operands
    return tuple(x if d is None else cast(x, d) for x, d in zip(operands, dtypes, strict=True))


@query
def wider(uses: tuple[str, ...], z: Any, *operands: Any) -> tuple[Any, ...] | None:
    """The dtype in which a formula takes each operand, None where that is its own; None where all are."""
    value = dtype_of(z)
    found = [wider_dtype(use, dtype_of(x), value) for use, x in zip(uses, operands, strict=True)]
    return tuple(found) if any(d is not None for d in found) else None


def dtype_of(x: Any) -> Any:
    """The dtype of an array or a number of NumPy's, None for one of Python's."""
    return x.dtype if isinstance(x, (np.ndarray, np.generic)) else None


def wider_dtype(use: str, own: Any, value: Any) -> Any:
    """The dtype of an operand of dtype ``own`` with the precision of a value of dtype ``value``, None where it has it.

    Numbers of Python's, which have None, neither wrap around nor are rounded; as values they are in double precision.
    """
    if own is None or own == value or own.kind not in "biufc":
        return None
    if own.kind in "biu" and use == "multiply":
        return None  # the product with a cotangent is one of floats
    if own.kind in "biu" and use == "count":
        precision = np.dtype(int)
    elif value is None:
        precision = np.dtype(float)
    elif value.kind in "fc":
        precision = np.finfo(value).dtype
    else:
        return None
    dtype = np.result_type(own, precision)
    return None if dtype == own else dtype


def filled(tangent: Any, x: Any) -> Any:
    """A tangent with zeros in the place of each None, in the structure of ``x``."""
    if is_sequence(x):
        parts = [filled(None if tangent is None else tangent[i], x[i]) for i in range(len(x))]
        return tuple(parts) if isinstance(x, tuple) else parts
    return zero_of(x) if tangent is None else tangent


def zero_of(x: Any) -> Any:
    """The zero that belongs to a number or an array."""
    return (
        np.zeros(np.shape(x), cotangent_dtype(x))[()]
        if isinstance(x, (np.ndarray, np.generic))
        else 0.0
    )


def times(dz: Any, partial: Partial, operands: tuple[Any, ...], z: Any) -> Any:
    """The cotangent that ``partial`` makes of ``dz``."""
    if partial is None:
        return None
    if isinstance(partial, over):
        q = partial.reciprocal(*operands, z)
        dz = dz / q if is_plain(dz, q, z) else quotient(dz, q)
        if partial.factor is None:
            return dz
        partial = partial.factor
    if callable(partial):
        p = partial(*operands, z)
        return dz * p if is_plain(dz, p) else product(dz, p)
    return dz if partial == 1 else -dz if partial == -1 else dz * partial


elementwise(product, lambda d, p, z: p, lambda d, p, z: d)


@frule(product, pure=True)
def pushed(operands: Any, tangents: Any) -> Any:
    """A cotangent that is zero wins over the tangent of ``p`` too, which may be infinite in a branch not taken."""
    (d, p), (dd, dp) = operands, tangents
    z = product(d, p)
    terms = [None if dd is None else product(dd, p), None if dp is None else product(d, dp)]
    return z, broadcast_like(plus(*terms), z)


elementwise(quotient, lambda d, q, z: quotient(1.0, q), lambda d, q, z: quotient(-z, q))
elementwise(ratio, lambda a, b, z: ratio(1.0, b), lambda a, b, z: -ratio(z, b))
