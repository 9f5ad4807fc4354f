"""Recording: run a primitive on plain values and put what was done on the tape.

Words
-----
operand   an argument as the tape holds it: ops in the place of boxes.
born      a value made without traced operands: an array is boxed all the same, since it may be written to.
followed  a type of result that can carry a derivative, or that carries none for certain.
"""

from __future__ import annotations

import array
import operator
from collections import deque
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, GeneratorType, ModuleType
from typing import Any

import numpy as np

from ..rules.registry import factored, is_ours, is_typed_by_operands, is_users, lookup
from ..rules.words import with_article
from . import meaning
from .active import active
from .arrays import (
    LINEAR,
    Memory,
    box_array,
    current,
    dtype_of,
    is_followed,
    is_traced_array,
    is_value_free,
    rebuilt,
    save,
)
from .border import see
from .box import BOXES, ArrayBox, Box
from .errors import TraceError
from .frames import MUTABLE, items_of, native, valued
from .held import lent_by
from .kinds import HEAP_TYPE, attribute, flags_of, has_dict, is_one_of, isinstance, static
from .loops import is_fixed
from .marks import failed, follow, is_text
from .places import UNTRACED, blame, user_site
from .plain_calls import plain_call
from .session import Tracer
from .shown import shows
from .structure import is_container
from .tape import Guard, Op, Site, Tape, append, element, fn_name, primal
from .text import TEXTS, drawn

NUMBERS = (float, int, complex, np.number)
ORDERED = frozenset((np.ascontiguousarray, np.asfortranarray))


def operand(
    value: Any, arrays: list[ArrayBox], path: tuple[int, ...] = (), read: bool = True
) -> Any:
    """An argument as the tape holds it. Boxes of arrays that are met are added to ``arrays``.

    ``path`` has what the argument lies in: a container that contains itself ends there. It is ``read``
    where C code may ask containers in it for their items, in their own ways.
    """
    kind = type(value)
    if kind is Box:
        return value.op
    if kind is ArrayBox:
        arrays.append(value)
        return current(value)
    if kind is tuple:
        parts = [operand(x, arrays, path, read) for x in value]
        return value if not read and all(map(operator.is_, parts, value)) else tuple(parts)
    if kind is slice:
        return slice(
            *[operand(x, arrays, path, read) for x in (value.start, value.stop, value.step)]
        )
    nested = kind is list or kind is dict
    if not nested and not (issubclass(kind, NESTED) and has_box(value)):
        return value.value if is_one_of(kind, TEXTS) else value
    if id(value) in path:
        return itself()
    path = (*path, id(value))
    if kind is list:
        return [operand(x, arrays, path, read) for x in value]
    if kind is dict:
        return valued(value, [operand(x, arrays, path, read) for x in value.values()])
    base = native(kind)
    if read and any(static(kind, name) is not static(base, name) for name in READING):
        raise not_read(kind, base)
    # Of another class, which C code reads as its base
    items = [(key, operand(x, arrays, path, read)) for key, x in items_of(value, base)]
    if isinstance(value, dict):
        return dict(items)
    parts = [x for _, x in items]
    if hasattr(value, "_make"):
        return value._make(parts)
    return tuple(parts) if isinstance(value, tuple) else parts


def stored(value: Any, arrays: list[ArrayBox]) -> Any:
    """What is stored somewhere as the tape holds it: nobody asks containers in it for their items.

    A tuple of constants is itself: it may be one that stands in the user's code.
    """
    return operand(value, arrays, (), False)


READING = ("__iter__", "__len__", "__getitem__")  # how C code may ask a container for its items


def not_read(kind: type, base: type) -> TraceError:
    """The error for a container that may not give C code the items that it has."""
    return TraceError(
        f"{blame(user_site())}: {with_article(kind.__name__)} has its own way to give its items, which cannot "
        "be followed here\n"
        f"pass {with_article(base.__name__)} of them"
    )


def itself() -> str:
    """What stands on the tape for a container within itself; a run with one is not kept."""
    tracer = active.tracer
    if tracer is not None and tracer.reads is not None:
        tracer.reads.problem("a container that contains itself is handed over")
    return "..."


NESTED = (tuple, list, dict, deque)


def has_box(value: Any) -> bool:
    """Whether a box is in a nested argument."""
    todo: list[Any] = [value]
    seen: set[int] = set()
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind is Box or kind is ArrayBox:
            return True
        if kind is slice:
            todo += (value.start, value.stop, value.step)
        elif kind is tuple:
            todo += value
        elif isinstance(value, NESTED) and id(value) not in seen:
            seen.add(id(value))
            todo += value if kind is list else [x for _, x in items_of(value, native(kind))]
    return False


def as_known(tracer: Tracer, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with the boxes of plain arrays that the run knows: C code has moved these about."""
    return tuple([tracer.arrays.get(id(x), x) if type(x) is np.ndarray else x for x in args])


def record(
    tracer: Tracer,
    site: Site,
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    watched: bool = False,
) -> Any:
    """Call the primitive ``fn`` on the values of its arguments, note it on the tape, and box the result.

    It is ``watched`` where objects are among them, whose special methods it may call.
    """
    arrays: list[ArrayBox] = []
    if tracer.arrays:
        args = as_known(tracer, args)
    operands = operand(args, arrays)
    options = operand(kwargs, arrays) if kwargs else {}
    try:
        plain_args, plain_options = primal(operands), primal(options)
        if tracer.tape.perform is not None:
            value = performed(tracer, site, fn, plain_args, plain_options, watched)
        elif watched:
            value = meaning.escape.watched(fn, plain_args, plain_options, site)
        else:
            value = plain_call(fn, plain_args, plain_options)
    except Exception as error:
        failed_by_value(tracer, site, fn, error)
        failed(tracer, site, fn, (args, kwargs), error)
        exact = None
        if type(error) is TypeError and (len(args) == 1 or not watched):
            exact = complaint(fn, args, primal(operands), primal(options))
        if exact is None:
            raise
    else:
        return finish(tracer, site, fn, fixed(operands), options, value, arrays)
    raise exact  # out here: the first error is nothing that the program has been handling


# What may be written to later, by methods of its own; and what holds the same.
LIVE: dict[type, Any] = {
    deque: list,
    array.array: list,
    bytearray: list,
    memoryview: memoryview.tolist,
}


def fixed(operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands as they are at this moment: plain containers among them may be changed before the reverse sweep."""
    return tuple([LIVE[type(x)](x) if is_one_of(type(x), LIVE) else x for x in operands])


def performed(
    tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, watched: bool = False, **how: Any
) -> Any:
    """The value of a primitive call on plain values, where somebody may be asked for it."""
    perform = tracer.tape.perform

    def go(*args: Any, **kwargs: Any) -> Any:
        if watched:
            return meaning.escape.watched(fn, args, kwargs, site, **how)
        return plain_call(fn, args, kwargs)

    return go(*args, **kwargs) if perform is None else perform(fn, tuple(args), kwargs, site, go)


def complaint(
    fn: Any, args: tuple[Any, ...], values: tuple[Any, ...], options: Any
) -> TypeError | None:
    """What a function that takes no container says of the class of the one that it was given, where that is no list."""
    other = [
        isinstance(x, NESTED) and type(x) is not type(y) for x, y in zip(args, values, strict=True)
    ]
    if any(other):
        given = [namesake(type(x)) if o else y for o, x, y in zip(other, args, values, strict=True)]
        try:
            fn(*given, **options)
        except TypeError as error:
            error.__context__ = None
            return error
    return None


def namesake(kind: type) -> Any:
    """An empty container of a class of that name."""
    base = native(kind)
    return base() if kind is base else type(kind.__name__, (base,), {})()


def raised(tracer: Tracer | None, site: Site, error: BaseException) -> None:
    """An operation failed. Where the program goes on all the same, nothing on the tape says why it did."""
    if tracer is not None and tracer.reads is not None:
        tracer.reads.problem(f"{with_article(type(error).__name__)} was caught", site)


# What is raised for the types, names, keys and lengths of what was read, which are guarded.
GUARDED = (
    TypeError,
    AttributeError,
    NameError,
    LookupError,
    StopIteration,
    ImportError,
    GeneratorExit,
)


def failed_by_value(tracer: Tracer | None, site: Site, fn: Any, error: Exception) -> None:
    """An operation on traced values failed, which it may not do for others."""
    raised(tracer, site, error)
    if tracer is not None and (is_users(fn) or not isinstance(error, GUARDED)):
        tracer.tape.once = (
            tracer.tape.once or f"{with_article(type(error).__name__)} was caught ({site})"
        )


def finish(
    tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, value: Any, arrays: list[ArrayBox]
) -> Any:
    """Note a call that was made on the tape, and box its value."""
    if type(value) is np.ndarray:
        for known in arrays:
            if known.value is value:
                if (attribute(fn, "__module__") or "").startswith("scipy.ndimage"):
                    raise TraceError(
                        f"{site}: {fn.__name__} writes into an array\nleave out output= where it is traced"
                    )
                if fn in ORDERED or "order" in kwargs:
                    tracer.tape.layout = True  # of another array it makes a copy
                return known  # np.asarray(a) is a
    if value is None:
        must_give(fn, site)
    if value is None or value is NotImplemented:
        if value is None and not is_typed_by_operands(fn):  # it may be another for other values
            decide(tracer, append(tracer.tape, fn, args, kwargs, value, site), value)
        return value
    if type(fn) is FunctionType and fn in factored:
        fn, args, kwargs = by_the_matrix(tracer.tape, fn, args, kwargs)
    op = append(tracer.tape, fn, args, kwargs, value, site)
    result = box(tracer, op, arrays)
    if arrays and not (type(result) is ArrayBox and result.derivation is not None):
        save(needed_values(fn, args, arrays) if is_value_free(fn) else arrays)
    return result


def by_the_matrix(tape: Tape, fn: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """A solution by factors as one by the matrix that they were made of on this tape; else the call as it is."""
    factor, solver = factored[fn]
    factors = args[0] if 1 < len(args) < solver.__code__.co_argcount else None
    if type(factors) is tuple and len(factors) == 2 and isinstance(factors[0], Op):
        first, second = factors
        made = first.args[0] if first.fn is element else None
        if isinstance(made, Op) and made.fn is factor and made.tape is tape and made.args:
            ours = all(is_ours(rule.function) for rule in (lookup(fn), lookup(factor)) if rule)
            same = second is made.value[1] or (isinstance(second, Op) and second.args == (made, 1))
            if ours and same and isinstance(made.args[0], Op) and made.args[0].value.ndim == 2:
                kwargs = {key: x for key, x in kwargs.items() if key == "trans"}
                return solver, (made.args[0], *args), kwargs
    return fn, args, kwargs


def save_whole(op: Op, parts: Iterable[Any]) -> None:
    """Note that a rule may ask for a result of several arrays as it was, when one of them has been written to."""
    for part in parts:
        if type(part) is ArrayBox:
            part.memory.saved.append(op)
        elif is_one_of(type(part), (tuple, list)):
            save_whole(op, part)


def needed_values(fn: Any, args: Any, arrays: list[ArrayBox]) -> list[ArrayBox]:
    """The operands of a value-free function whose values its pullback will ask for all the same: indices."""
    return [] if fn in LINEAR else [x for x in arrays if x.op is not args[0]]


def box(tracer: Tracer, op: Op, arrays: list[ArrayBox]) -> Any:
    """Box the value of an op: each number and array in it gets a box of its own."""
    value = op.value
    kind = type(value)
    if kind is bool:
        decide(tracer, op, value)
        return value
    if issubclass(kind, NUMBERS) or kind is np.bool_:
        return Box(value, op)
    if is_traced_array(value) or (
        is_followed(value) and any(type(x.value) is type(value) for x in arrays)
    ):
        fresh = is_value_free(op.fn) or not any(True for _ in op.operands())
        return lent_by(tracer, box_array(op, arrays, fresh))
    if issubclass(kind, (tuple, list)):
        parts = []
        if not is_typed_by_operands(op.fn):
            decide(tracer, append(tracer.tape, extent, (op,), {}, len(value), op.site), len(value))
        for i, part in enumerate(value):
            piece = append(tracer.tape, element, (op, i), {}, part, op.site)
            if part is None:  # as in (q, r, None): a decision of the function that was called
                decide(tracer, piece, None)
            parts.append(None if part is None else box(tracer, piece, arrays))
        save_whole(op, parts)
        return rebuilt(value, parts)
    if isinstance(value, np.dtype) or not any(True for _ in op.operands()):
        return value
    if is_text(value):
        if isinstance(value, (str, bytes)):
            decide(tracer, op, value)
        elif isinstance(value, np.ndarray):
            texts = append(tracer.tape, spelling, (op,), {}, spelling(value), op.site)
            decide(tracer, texts, texts.value)
        return follow(tracer, op.site, op.fn, value, drawn(tracer, op, "", op.site).origin)
    if not any(map(tracer.dependence.has, op.operands())):
        if tracer.reads is not None:
            tracer.reads.problem(f"{fn_name(op.fn)} makes {with_article(describe(value))}", op.site)
        if isinstance(value, np.ndarray) and value.base is not None:
            return shows(tracer, value, arrays)
        return value
    raise TraceError(
        f"{blame(op.site)}: {getattr(op.fn, '__name__', op.fn)} makes {with_article(describe(value))} "
        "of traced values, through which no gradient can be followed\n"
        f"{advice_on(value)} (docs/errors.md#other-classes)"
    )


def must_give(fn: Any, site: Site) -> None:
    """Raise where finite differences are to be taken of what returns nothing: it has written into its arguments."""
    rule = lookup(fn)
    if rule is not None and hasattr(rule.function, "numeric"):
        raise TraceError(
            f"{blame(site)}: {fn_name(fn)} returns None, of which there are no differences\n"
            "call it in a function that returns a number or an array, and give that to numeric_rule"
        )


def extent(value: Any) -> int | None:
    """The length of a list or a tuple, which somebody's function may give, or something else for other values."""
    return len(value) if isinstance(value, (list, tuple)) else None


def spelling(value: Any) -> str:
    """The texts in an array, as one text."""
    return repr(value.tolist())


def advice_on(value: Any) -> str:
    """What to do in the place of making an object of a class that no gradient can be followed through."""
    if isinstance(value, np.ma.MaskedArray):
        return "keep data and mask on their own, and compute with np.where(mask, 0.0, data)"
    if isinstance(value, np.ndarray):
        return (
            "compute with plain arrays of floats, and make the other array of the result, outside"
        )
    return "compute with floats and arrays, and make the other object of the result, outside"


def box_of(tracer: Tracer, op: Op) -> Box:
    """A box for an op that the program has not come by itself: an array is one of its own."""
    if not is_traced_array(op.value):
        return Box(op.value, op)
    copy = (
        np.positive if op.value.ndim else np.copy
    )  # of an array without axes the first makes a number
    own = append(tracer.tape, copy, (op,), {}, copy(op.value), op.site)
    memory = Memory(own.value)
    memory.saved.append(own)
    return ArrayBox(own.value, own, memory)


def known(tracer: Tracer, value: Any, site: Site) -> Any:
    """A box for an array that a sweep has found without computing it."""
    fn, args = (np.copy, (value,)) if np.any(value) else (np.zeros, (value.shape, value.dtype))
    return box(tracer, append(tracer.tape, fn, args, {}, value, site), [])


def describe(value: Any) -> str:
    return (
        f"{type(value).__name__} of dtype {dtype_of(value)}"
        if isinstance(value, np.ndarray)
        else type(value).__name__
    )


def is_error(args: Any, value: Any) -> bool:
    """Whether finite numbers give one that is not, of which NumPy's error state says what is to be done."""
    kind = getattr(value, "dtype", None)
    if kind is None or kind.kind not in "fc" or np.isfinite(value).all():
        return False
    return all(isinstance(x, (int, float, complex)) or np.isfinite(x).all() for x in args)


def born(
    tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, value: Any, pure: bool
) -> Any:
    """The result of a call that no traced value went into."""
    kind = type(value)
    if tracer.reads is not None and type(fn) is np.ufunc and is_error(args, value):
        tracer.reads.problem(
            f"{fn.__name__} of constants is no finite number: NumPy may warn", site
        )
    if is_traced_array(value):
        known = tracer.arrays.get(id(value))
        if known is not None and known.value is value:
            return known
        op = append(tracer.tape, fn, operand(args, []), operand(kwargs, []), value, site)
        return shared(tracer, box(tracer, op, []), pure)
    if not pure and (kind is float or kind is complex or isinstance(value, np.inexact)):
        return box(
            tracer, append(tracer.tape, fn, operand(args, []), operand(kwargs, []), value, site), []
        )
    if is_one_of(kind, MUTABLE | {tuple}) or (isinstance(value, tuple) and hasattr(value, "_make")):
        return born_parts(tracer, site, fn, args, kwargs, value, pure)
    if not pure and not isinstance(value, type) and not callable(value) and has_dict(value):
        if id(value) not in tracer.inside and not is_of_run(fn, value):
            see(tracer.outside, value)  # it may be somebody's own
    return value


def met(tracer: Tracer, value: Any, depth: int = 3) -> Any:
    """What code gives that runs as it is: an object that the run has not made is somebody's own."""
    kind = type(value)
    if kind is GeneratorType:
        return (met(tracer, x) for x in value)
    if isinstance(value, (list, tuple, dict)):
        for _, x in items_of(value, native(kind)) if depth else ():
            met(tracer, x, depth - 1)
    elif flags_of(kind) & HEAP_TYPE and not isinstance(value, (type, ModuleType)):
        makes = str(static(kind, "__module__")).partition(".")[0] in UNTRACED  # it may just have
        if not makes and not is_one_of(kind, BOXES) and id(value) not in tracer.inside:
            see(tracer.outside, value)
    return value


def shared(tracer: Tracer, made: Any, pure: bool) -> Any:
    """What a call without traced operands gave: an array that may lie in memory which somebody outside holds."""
    if type(made) is ArrayBox and not (pure and made.value.base is None):
        tracer.exposed.append(made)
    return made


def is_of_run(fn: Any, value: Any) -> bool:
    """Whether a call has made an object: of a class of the user's with the ``__new__`` of a builtin one."""
    made = fn is type(value) and flags_of(fn) & HEAP_TYPE
    return bool(made) and type(static(fn, "__new__")) is BuiltinFunctionType


def see_inside(tracer: Tracer, values: Iterable[Any]) -> None:
    """Note objects of the run's own, to which weak references are made: it may meet them again by those."""
    for x in values:
        if id(x) in tracer.outside or id(x) in tracer.originals or isinstance(x, type):
            continue
        if type(x).__weakrefoffset__ and (has_dict(x) or is_container(x)):
            see(tracer.inside, x)


def born_parts(
    tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, value: Any, pure: bool
) -> Any:
    """A container made without traced operands: the arrays in it are boxed.

    What an impure function gives beside arrays may be something else at the next call: numbers are boxed as well, and
    other plain values guarded.
    """
    if isinstance(value, tuple(MUTABLE)):
        if id(value) in tracer.inside:
            return value
        return meaning.boxing.enter(
            tracer, value, attribute(fn, "__name__", "made")
        )  # it may be somebody's own
    if not any(map(is_traced_array, value)):
        return value
    whole = append(tracer.tape, fn, operand(args, []), operand(kwargs, []), value, site)
    boxes = {}
    for key, x in enumerate(value):
        number = not pure and isinstance(x, (float, complex, np.inexact))
        if is_traced_array(x) or number:
            op = append(tracer.tape, element, (whole, key), {}, x, site)
            boxes[key] = shared(tracer, box(tracer, op, []), pure)
        elif not pure and meaning.opaque.is_plain_value(x):
            op = append(tracer.tape, element, (whole, key), {}, x, site)
            tracer.tape.ops.append(Guard(operator.eq, (op,), x, site, tracer.tape))
        elif not pure and tracer.reads is not None:
            kind = type(x).__name__
            tracer.reads.problem(f"{fn_name(fn)} gives {with_article(kind)} beside an array", site)
    return rebuilt(value, [boxes.get(i, x) for i, x in enumerate(value)])


def decide(tracer: Tracer, op: Op, value: Any) -> None:
    """Note that the program depends on ``op`` having had this plain value."""
    ops = tracer.tape.ops
    last = ops[-1]
    if last.kind == "guard" and last.args[0] is op:
        if type(value) is bool or type(last.value) is not bool:
            return  # the whole of its value is known already; its truth alone would say less
    if tracer.loops is not None and type(value) is not bool and is_fixed(op):
        tracer.loops.draw()
        return
    site = op.site
    if last is not op or op.kind == "input":  # decided later than made
        site = user_site()
    ops.append(Guard(operator.eq, (op,), value, site, tracer.tape))
