"""Functions with ``out=``: the value is computed, and then written where it belongs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules.signatures import with_named_out
from . import meaning
from .arrays import ONE_BY_ONE, dtype_of, must_be_apart, refusing, write_all
from .arrays import write_item as write_array_item
from .box import ArrayBox
from .errors import TraceError
from .kinds import isinstance
from .places import blame
from .plain_calls import plainly
from .record import append, has_box, operand
from .session import Tracer
from .slots import is_object, plain_of
from .tape import Site, primal


def call_with_out(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """A function with ``out=``: compute the value, then write it where it belongs."""
    if is_misplaced(fn, args, kwargs):
        told = [primal(operand(x, [])) for x in (args, kwargs)]
        plainly(fn, *told)  # raises what NumPy raises
    args, kwargs = with_named_out(fn, args, kwargs)
    kwargs = dict(kwargs)
    out = kwargs.pop("out", None)
    if out is Ellipsis:
        return meaning.calls.call(
            tracer, site, np.asarray, (meaning.calls.call(tracer, site, fn, args, kwargs),), {}
        )
    targets = out if isinstance(out, tuple) else (out,)
    if all(x is None for x in targets):
        return meaning.calls.call(tracer, site, fn, args, kwargs)
    mask = kwargs.pop("where", True) if is_elementwise(fn) else True
    if not (has_box(args) or has_box(kwargs) or has_box(targets)):
        return fn(*args, **kwargs, out=out, **({} if mask is True else {"where": mask}))
    if meaning.overrides.has_object((*args, mask)) and meaning.overrides.takes_arrays(fn):
        # Whatever NumPy may say, it says of the arrays that they become, for which they are asked once.
        args = meaning.overrides.as_arguments(tracer, site, fn, args, kwargs)
        mask = meaning.overrides.as_operand(tracer, site, mask)
    objects = any(is_object(x) for x in (*args, *targets))
    if not objects and any(map(is_read_only, targets)):
        plainly(fn, *refusable(args, kwargs, targets, mask))  # raises before anything is computed
    if fn in ONE_BY_ONE:
        must_be_apart(plain_of(targets[0]), primal(operand(args, [])), site)
    failed = None
    try:
        if mask is not True:  # elsewhere nothing is computed, and the array keeps what it held
            nowhere = None if len(targets) == 1 else (None,) * len(targets)  # no mistake, to NumPy
            chosen = {**kwargs, "where": mask, "out": nowhere}
            results = meaning.calls.call(tracer, site, fn, args, chosen)
            several = results if isinstance(results, tuple) else (results,)
            results = tuple(
                [
                    x if y is None else meaning.calls.call(tracer, site, np.where, (mask, x, y), {})
                    for x, y in zip(several, targets, strict=True)
                ]
            )
        else:
            results = meaning.calls.call(tracer, site, fn, args, kwargs)
    except (TypeError, ValueError) as error:
        failed = error
    if failed is not None:
        if not objects:
            plainly(fn, *refusable(args, kwargs, targets, mask))  # raises what plain Python raises
        raise failed
    found = results if isinstance(results, tuple) else (results,)
    for target, result in zip(targets, found, strict=True):
        if target is not None:
            arrays: list[ArrayBox] = []
            value = operand(result, arrays)
            as_it_is = type(target) is ArrayBox and fits(fn, plain_of(result), target.value)
            if not as_it_is:
                plain, named = refusable(args, kwargs, targets, mask)
                plainly(fn, plain, named)  # raises what plain Python raises
            if type(target) is not ArrayBox:
                raise TraceError(
                    f"{site}: out= must be an array\ngive an array, or leave out= away"
                )
            if not as_it_is:
                written = named["out"][targets.index(target)] if len(targets) > 1 else named["out"]
                must_be_cast(tracer, site, fn, plain_of(result), written)
                write_array_item(target, Ellipsis, value, site)
            elif isinstance(value, (int, float, complex)) or type(value).__name__ == "bool":
                write_array_item(target, Ellipsis, value, site)
            else:
                # Of an array without axes the first makes a number, and of bools nothing.
                plus = target.value.ndim and dtype_of(value.value).kind != "b"
                copy = np.positive if plus else np.copy
                made = append(tracer.tape, copy, (value,), {}, copy(value.value), site)
                write_all(target, made, site)
    given = tuple([x if y is None else y for x, y in zip(found, targets, strict=True)])
    return given if len(targets) > 1 else given[0]


def is_misplaced(fn: Any, args: Any, kwargs: Any) -> bool:
    """Whether a ufunc is told twice where to write, or is given too few arrays or too many to write to."""
    if type(fn) is not np.ufunc:
        return False
    out = kwargs.get("out")
    twice = len(args) > fn.nin and "out" in kwargs
    count = len(out) if type(out) is tuple else 1
    return twice or len(args) > fn.nargs or (out is not None and count != fn.nout)


def is_elementwise(fn: Any) -> bool:
    """Whether a mask chooses among the elements of the result; elsewhere it chooses among those of the operand."""
    if type(fn) is np.ufunc or fn in (np.clip, np.ndarray.clip):
        return True
    return type(getattr(fn, "__self__", None)) is np.ufunc and fn.__name__ == "outer"


def is_read_only(target: Any) -> bool:
    plain = plain_of(target)
    return isinstance(plain, np.ndarray) and not plain.flags.writeable


def fits(fn: Any, result: Any, out: np.ndarray) -> bool:
    """Whether NumPy surely takes an array for the result of a function. Some want it row by row, or of its type."""
    own = np.asarray(result).dtype
    if type(fn) is np.ufunc:
        taken = np.can_cast(own, out.dtype, "same_kind")
    else:
        taken = own == out.dtype and out.flags.c_contiguous
    return taken and np.shape(result) == out.shape and out.flags.writeable


def refusable(args: Any, kwargs: Any, targets: Any, mask: Any) -> tuple[Any, Any]:
    """The arguments of a call with ``out=`` for NumPy to judge, which writes to copies."""
    out = tuple([refusing(plain_of(x)) if x is not None else None for x in targets])
    options = {} if mask is True else {"where": primal(operand(mask, []))}
    plain, named = primal(operand(args, [])), primal(operand(kwargs, []))
    return plain, {**named, **options, "out": out if len(out) > 1 else out[0]}


def must_be_cast(tracer: Tracer, site: Site, fn: Any, result: Any, written: np.ndarray) -> None:
    """Make sure that what NumPy has written into an array of another type is the result, cast."""
    cast = np.empty_like(written)
    with np.errstate(all="ignore"):
        cast[...] = result
    if not np.array_equal(cast, written, equal_nan=written.dtype.kind in "fc"):
        raise TraceError(
            f"{blame(site)}: {fn.__name__} computes otherwise for out= of type {written.dtype}\nleave out= away"
        )
    if tracer.reads is not None:
        tracer.reads.problem("a result is written into an array of another type")
