"""Calls of functions of arrays: as plain calls, or as pairs of a value and its pullback.

Words
-----
number of NumPy's   a value whose type is a `Kind`, or a class of NumPy's scalars.
call                an op whose function is called with its operands as they nest in the arguments (see `Call`), or any
                    other that has to do with numbers of NumPy's.
pair                how an active call is written: ``value, back = rule(...)``, and in reverse ``back(cotangent)``,
                    which gives a cotangent for each argument, None where none flows. ``back`` is a residual.
elementwise         an active call that is none: its function is called as it is, and in reverse its partial derivatives
                    give the cotangents of the operands that are active, and of no others.
lowered             another one that is none: the reverse part has what its rule comes down to (see ``lowered``).
path                where an operand stands in what ``back`` gives: the number of the argument, and the way in it.

A rule that is called with plain values gives what the function gives, to the bit (``tests/fold/test_pairs.py``).
"""

from __future__ import annotations

import dis
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from ...rules.broadcasting import cast, unbroadcast
from ...rules.elementwise import over, times, unknown, use_of, wider_dtype
from ...rules.registry import NONDIFF, QUERY, RRULE, Rule, lookup
from ...tracer.fold.region import (
    FLOATS,
    SCALARS,
    TRANSPOSED,
    Call,
    Constant,
    Kind,
    Op,
    Reference,
    Written,
    kind_of,
)
from ...tracer.kinds import is_one_of
from .ways import Unemittable

LEAST = {  # how many elements an array must have, or NumPy warns in Python's way before it computes
    **dict.fromkeys((np.mean, np.ndarray.mean), 1),
    **dict.fromkeys((np.var, np.std, np.ndarray.var, np.ndarray.std), 2),
}
ONE, ITEMS = "x", "items"  # the frames of an operand, and of a list that is one
Path = tuple[int, ...]


def is_numpy_type(kind: Any) -> bool:
    """Whether a type is one of arrays or of NumPy's scalars."""
    return type(kind) is Kind or is_one_of(kind, SCALARS)


def is_of_floats(kind: Any) -> bool:
    """Whether values of a type are floats, of Python's or of NumPy's, or arrays of them."""
    if type(kind) is Kind:
        return bool(kind.dtype.kind == "f")
    return kind is float or is_one_of(kind, FLOATS)


def is_call(op: Op) -> bool:
    if type(op.fn) is str or op.fn is None:
        return False
    if isinstance(op, Call) or is_numpy_type(op.type):
        return True
    return any(isinstance(x, Op) and is_numpy_type(x.type) for x in op.args)


def is_constant(op: Op) -> bool:
    """Whether a call has no derivative by its very function."""
    rule = lookup(op.fn)
    return rule is not None and rule.kind in (NONDIFF, QUERY)


def frame_of(op: Op) -> Any:
    return op.frame if isinstance(op, Call) else ("call", (ONE,) * len(op.args), ())


def tests(kind: Any, text: str, name: Callable[[Any], str]) -> Iterator[str]:
    """The conditions under which ``text`` is of a type of NumPy's; ``name`` gives the source text of an operand."""
    if type(kind) is not Kind:
        yield f"type({text}) is {name(Constant(kind))}"
        return
    yield f"type({text}) is {name(Constant(np.ndarray))}"
    yield f"{text}.dtype == {name(Constant(kind.dtype))}"
    yield f"{text}.ndim == {kind.ndim}"


def is_sure(op: Op) -> bool:
    """Whether the type of a call's value follows from those of its operands.

    That of an operation does, one by one, whatever the sizes are.
    """
    plain = all(x is ONE or x == ONE for x in frame_of(op)[1]) and not frame_of(op)[2]
    by_elements = type(op.fn) is np.ufunc and op.fn.signature is None and op.fn.nout == 1
    rule = lookup(op.fn)
    arithmetic = getattr(operator, getattr(op.fn, "__name__", ""), None) is op.fn
    return plain and (by_elements or (arithmetic and rule is not None and bool(rule.partials)))


# ------------------------------------------------------------------------------------------- as source


def text_of(
    op: Op,
    fn: Any,
    names: Sequence[str],
    expression: Callable[[Any, Sequence[str]], str],
    constant: Callable[[Any], str],
) -> str:
    """The source text of a call of ``fn`` with the operands of an op, whose texts are ``names``.

    ``expression`` writes a call with arguments that are operands, ``constant`` a constant.
    """
    left = iter(names)
    _, frames, named = frame_of(op)
    args = [argument(x, left, constant) for x in frames]
    if fn is operator.getitem and len(args) == 2:
        return f"{args[0]}[{args[1]}]"
    return expression(fn, [*args, *(f"{k}={argument(x, left, constant)}" for k, x in named)])


def index_of(frame: Any, names: Sequence[str], constant: Callable[[Any], str]) -> str:
    """The source text of an index, as it stands in brackets."""
    left = iter(names)
    several = frame[0] == "tuple" and len(frame) > 1
    found = [part_of_index(x, left, constant) for x in (frame[1:] if several else [frame])]
    return f"{found[0]}," if several and len(found) == 1 else ", ".join(found)


def view_of(text: str, frame: Any, names: Sequence[str], constant: Callable[[Any], str]) -> str:
    """The source text of a part of an array, or of one of its views."""
    if frame == TRANSPOSED:
        return f"{text}.T"
    return f"{text}[{index_of(frame, names, constant)}]"


def part_of_index(frame: Any, names: Iterator[str], constant: Callable[[Any], str]) -> str:
    """The source text of what stands for one axis."""
    if frame[0] != "slice":
        return argument(frame, names, constant)
    parts = ["" if x == ("is", None) else argument(x, names, constant) for x in frame[1:]]
    return ":".join(parts if parts[2] else parts[:2])


def argument(frame: Any, names: Iterator[str], constant: Callable[[Any], str]) -> str:
    """The source text of an argument."""
    if frame == ONE:
        return next(names)
    if frame == ITEMS:  # which may change before the pullback is called
        return f"[*{next(names)}]"
    word, *parts = frame
    if word == "is":
        return constant(parts[0])
    if word == "dict":
        return f"{{{', '.join(f'{k!r}: {argument(x, names, constant)}' for k, x in parts)}}}"
    inside = [argument(x, names, constant) for x in parts]
    if word == "slice":
        return f"slice({', '.join(inside)})"
    if word == "list":
        return f"[{', '.join(inside)}]"
    return f"({', '.join(inside)}{',' if len(inside) == 1 else ''})"


# ------------------------------------------------------------------------------------------------ pairs


def rule_of(op: Op, active: Sequence[bool]) -> Rule:
    """The rule of a call of which these operands are active; raises `Unemittable` where it cannot be a pair."""
    rule = lookup(op.fn)
    name = getattr(op.fn, "__name__", op.fn)
    if rule is None or rule.kind != RRULE or rule.function is None:
        raise Unemittable(f"there is no rule for {name}")
    if rule.custom or not rule.pure:
        raise Unemittable(f"the rule of {name} is not pure")
    if any(here and path is None for path, here in zip(paths(op, rule), active, strict=True)):
        raise Unemittable(f"there may be no formula for a derivative of {name}")
    if rule.gaps:
        at = {path[0] for path, here in zip(paths(op, rule), active, strict=True) if here and path}
        assert rule.partials is not None
        if any(type(rule.partials[i]) is unknown for i in at):
            raise Unemittable(f"there is no formula for a derivative of {name}")
    return rule


@lru_cache(maxsize=1024)
def signature(fn: Any) -> inspect.Signature:
    return inspect.signature(fn)


def paths(op: Op, rule: Rule) -> list[Path | None]:
    """Where each operand of a call stands in what ``back`` gives; None for what is an option of the rule."""
    _, frames, named = frame_of(op)
    known = signature(rule.function)
    try:
        known.bind(*frames, **dict(named))
    except TypeError:
        raise Unemittable(f"the rule of {op.fn.__name__} is not called as it is") from None
    found: list[Path | None] = []
    for i, frame in enumerate(frames):
        found += inside(frame, (i,))
    for name, frame in named:
        at = None
        for i, p in enumerate(known.parameters.values()):
            if p.kind is p.VAR_POSITIONAL:  # behind which are options
                break
            if p.name == name:
                at = i
        found += inside(frame, None if at is None else (at,))
    return found


def inside(frame: Any, path: Path | None) -> Iterator[Path | None]:
    """The paths of the operands in an argument."""
    if frame in (ONE, ITEMS):
        yield path
    elif frame[0] in ("tuple", "list"):
        for i, x in enumerate(frame[1:]):
            yield from inside(x, None if path is None else (*path, i))
    elif frame[0] != "is":  # through an index no derivative flows
        for x in frame[1:]:
            yield from inside(x[1] if frame[0] == "dict" else x, None)


def is_certain(rule: Rule, path: Path) -> bool:
    """Whether a float that is an argument always gets a cotangent."""
    partials = rule.partials
    return partials is not None and len(path) == 1 and partials[path[0]] is not None


def is_elementwise(op: Op, rule: Rule) -> bool:
    """Whether the operands of a call are those of a rule that is made of partial derivatives."""
    _, frames, named = frame_of(op)
    plain = not named and all(x == ONE for x in frames)
    return plain and rule.partials is not None and len(rule.partials) == len(frames)


def slopes(
    op: Op,
    rule: Rule,
    i: int,
    dz: str,
    value: Callable[[Any], str],
    like: Callable[[Any], str],
    named: Callable[[Any, str], str],
) -> str:
    """The text of the cotangent of operand ``i`` of an elementwise call whose value has the cotangent ``dz``.

    ``value`` gives the source text of an operand, which then is a residual, ``like`` that of something of its shape,
    and ``named`` that of a constant.
    """
    partial, x = rule.partials[i], op.args[i]  # type: ignore[index]
    # As are the operands. A number may stand for another one, unless it is rounded.
    alone = type(op.type) is not Kind and not any(map(is_narrow, (op, *op.args)))
    if partial == 1 or partial == -1:
        given = dz if partial == 1 else f"-{dz}"
        return given if alone else f"{named(fitted, 'unbroadcast')}({given}, {like(x)})"
    needed = looked_at(partial)
    texts = []
    for k, y in enumerate(op.args):
        text = value(y) if needed is None or k in needed else "None"
        dtype = wider_dtype(use_of(rule.partials[k]), dtype_of(y), dtype_of(op))  # type: ignore[index]
        wide = dtype is not None and text != "None"
        texts.append(f"{named(cast, 'cast')}({text}, {named(dtype, 'dtype')})" if wide else text)
    z = value(op) if needed is None or len(op.args) in needed else "None"
    given = f"{dz}, {named(partial, 'slope')}, ({', '.join(texts)},), {z}"
    if alone:
        return f"{named(times, 'times')}({given})"
    return f"{named(pulled, 'pulled')}({given}, {like(x)})"


def dtype_of(x: Any) -> Any:
    """The dtype of an operand or of the value of an op; None for numbers of Python's."""
    if isinstance(x, Constant):
        x = x.value
    kind = (
        x.ops[0].type if isinstance(x, Reference) else x.type if isinstance(x, Op) else kind_of(x)
    )
    kind = kind.kind if type(kind) is Written else kind
    if type(kind) is Kind:
        return kind.dtype
    return np.dtype(kind) if kind in SCALARS else None


def is_narrow(x: Any) -> bool:
    """Whether an operand, or the value of an op, is of floats of less than double precision."""
    dtype = dtype_of(x)
    return dtype is not None and dtype.kind == "f" and dtype.itemsize < 8


def looked_at(partial: Any) -> set[int] | None:
    """Which of its parameters a partial derivative looks at; None where nobody knows."""
    if type(partial) is over:
        found = [looked_at(f) for f in (partial.reciprocal, partial.factor) if f is not None]
        return None if None in found else {i for f in found for i in f or ()}
    if not callable(partial):
        return set()
    code = getattr(partial, "__code__", None)
    return None if code is None or code.co_flags & inspect.CO_VARARGS else loaded(code)


@lru_cache(1000)
def loaded(code: CodeType) -> set[int]:
    """Which of its parameters a function looks at."""
    names = {
        y
        for x in dis.get_instructions(code)
        for y in (x.argval if type(x.argval) is tuple else [x.argval])
    }
    return {i for i, name in enumerate(code.co_varnames[: code.co_argcount]) if name in names}


def pulled(d: Any, partial: Any, operands: tuple[Any, ...], z: Any, x: Any) -> Any:
    """The cotangent that a partial derivative makes of ``d``, for the operand ``x``."""
    return fitted(times(d, partial, operands, z), x)


def fitted(d: Any, x: Any) -> Any:
    """The same as `unbroadcast`, at a third of its price where ``x`` was repeated as a whole."""
    if (
        type(d) is type(x) is np.ndarray
        and d.ndim > x.ndim > 0
        and d.shape[d.ndim - x.ndim :] == x.shape
        and d.dtype == x.dtype
        and d.dtype.kind == "f"
    ):
        lead = d.ndim - x.ndim
        return np.add.reduce(d, axis=0 if lead == 1 else tuple(range(lead)))
    return unbroadcast(d, x)


def part(cotangents: Any, path: Path) -> Any:
    """What stands at a path in cotangents, or None."""
    for i in path:
        if cotangents is None:
            return None
        cotangents = cotangents[i]
    return cotangents


# -------------------------------------------------------------------------------------------- gradients


def gradient_by(x: Any, d: Any) -> Any:
    """The gradient by an array: its cotangent, in an array that nobody else holds; zeros where there is none."""
    return np.zeros(x.shape, x.dtype) if d is None else np.array(d, x.dtype)


def own_gradient_by(x: Any, d: Any) -> Any:
    """The same where nobody else holds the cotangent, which is of the dtype of ``x``."""
    return np.zeros(x.shape, x.dtype) if d is None else d
