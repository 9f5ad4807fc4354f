"""Arrays, and numbers of NumPy's: calls of functions of them, their attributes, operators and items.

Nothing is written to an array that is boxed: it is read-only, so that a function that would do so raises. Those that
are written to stand in an `Array` (see `written`). Whatever NumPy raises, and a floating-point event that it would warn
of, has this very call traced.

Words
-----
followed   a function that does nothing but compute: one with a pure rule of ours, or without a derivative.
opened     a list as an argument: itself where it holds numbers of Python's, else the items in it, where it has this
           length in every run.
"""

from __future__ import annotations

import operator
import types
from functools import lru_cache
from typing import Any

import numpy as np

from ...rules import registry
from ...rules.permissions import permissions
from ...rules.signatures import by_position, has_out
from ...rules.words import with_article
from .basics import NUMBERS, apart_by_length, decided, plain, refuse
from .nested import Whole, frame_of, is_of_types, plainly
from .recorder import Box, Passing, Recorder
from .region import FLOATS, RESULT, Array, Call, Several, is_number, is_of_numpy, kind_of
from .written import (
    EMPTY,
    content,
    contents,
    get,
    is_anew,
    must_be_memory,
    put,
    settled,
    transposed,
)
from .written import is_array as is_advanced

DISPATCHED = type(np.dot)
CACHE = type(lru_cache(int))
LAYOUTS = (
    np.may_share_memory,
    np.shares_memory,
    np.isfortran,
)  # which tell how arrays lie in memory
UNKNOWN = frozenset(
    (np.empty, np.empty_like, *LAYOUTS)
)  # what they give depends on more than types and values
OF_TYPES = tuple(  # which say something of dtypes alone
    getattr(np, name)
    for name in ("issubdtype", "isdtype", "can_cast", "promote_types", "result_type")
    if hasattr(np, name)
)
RESULTS = frozenset((float, int, bool))
PACKAGES = frozenset(("numpy", "scipy", "statistics"))
ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}  # NumPy's own

RAISED: Any = {"divide": "raise", "over": "raise", "invalid": "raise"}


def is_boxed(x: Any) -> bool:
    """Whether something is an array or a number of NumPy's that is followed."""
    return type(x) is Box and (is_of_numpy(x.value) or is_opaque(x.value))


def is_array(x: Any) -> bool:
    """Whether something is an array or a number of NumPy's, whether it is written to or not."""
    return type(x) is Array or is_boxed(x)


def is_of_floats(x: Any) -> bool:
    """Whether something is an array of floats."""
    return is_boxed(x) and type(x.value) is np.ndarray and x.value.dtype.type in FLOATS


def is_of_arrays(fn: Any) -> bool:
    """Whether a callable is one of those of NumPy, SciPy and `statistics` that may be followed."""
    kind = type(fn)
    if kind is np.ufunc or kind is DISPATCHED:
        return True
    if kind is types.MethodDescriptorType:
        return fn.__objclass__ is np.ndarray or fn.__objclass__ is np.generic
    if kind is types.FunctionType or kind is types.BuiltinFunctionType:
        module = fn.__module__
        return type(module) is str and module.partition(".")[0] in PACKAGES
    return issubclass(kind, type) and issubclass(fn, np.generic)


def in_python(fn: Any) -> Any:
    """The Python function that one of NumPy's without a rule comes down to, for arrays of its own."""
    own = getattr(fn, "_implementation", None)
    return own if type(own) is types.FunctionType and registry.lookup(fn) is None else None


def is_followed(fn: Any) -> bool:
    """Whether a function does nothing but compute."""
    rule = registry.lookup(fn)
    if rule is None or fn in UNKNOWN:
        return False
    if rule.kind == registry.RRULE:
        return rule.function is not None and rule.pure and registry.is_ours(rule.function)
    return rule.kind in (registry.NONDIFF, registry.QUERY)


def called(recorder: Recorder, key: Any, fn: Any, args: Any, kwargs: Any) -> Any:
    """``fn(*args, **kwargs)``, of a function that is followed."""
    name = getattr(fn, "__name__", "a function")
    if args and is_itself(fn, args[0], args[1:], kwargs):
        return args[0]
    if not is_followed(fn) and fn not in EMPTY:
        return refuse(f"{name} is called")
    if fn is np.ndarray.view and (len(args) > 1 or kwargs):
        return refuse("a view of another dtype is taken")
    if kwargs.get("out") is not None or has_out(fn, args, kwargs):
        return refuse(f"{name} writes to an array")
    if any(x is not False for x in permissions(fn, args, kwargs).values()):
        return refuse(f"{name} may destroy an array")
    if fn is np.shape and len(args) == 1 and is_array(args[0]):
        return shape(recorder, key, args[0])
    if type(args[0] if args else None) is Array and is_transposed(fn, args, kwargs):
        return transposed(recorder, key, args[0])
    args, kwargs = by_position(fn, args, kwargs)
    anew = is_anew(fn, kwargs)
    args = [opened(recorder, (key, i), x, anew) for i, x in enumerate(args)]
    kwargs = {k: opened(recorder, (key, k), x, anew) for k, x in kwargs.items()}
    found: list[Any] = []
    frame = frame_of(args, kwargs, found)
    try:
        value = fn(*map(plainly, args), **plainly(kwargs))
    except Exception as error:
        raise Passing(f"{name} raises {with_article(type(error).__name__)}") from None
    return given(recorder, key, fn, found, frame, value)


def is_itself(fn: Any, x: Any, others: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a function gives the very array that it is given."""
    if not is_array(x) or type(x.value) is not np.ndarray:
        return False
    if fn is np.ndarray.astype or fn is np.array:
        if "copy" not in kwargs or kwargs["copy"] not in SPARING[fn]:
            return False
        kwargs = {name: y for name, y in kwargs.items() if name != "copy"}
    elif fn is np.atleast_1d:
        return not others and x.value.ndim > 0
    elif fn is not np.asarray and fn is not np.asanyarray:
        return False
    if len(others) + len(kwargs) > 1 or not {*kwargs} <= {"dtype"}:
        return False
    asked = [y for y in (*others, *kwargs.values()) if y is not None]
    return all(is_of_types(y) and np.dtype(y) == x.value.dtype for y in asked)


# What is to be said of `copy` for an array to be given as it is.
MODES = getattr(np, "_CopyMode", None)
SPARING: dict[Any, Any] = {
    np.ndarray.astype: (False,),
    np.array: (None, False, *([MODES.IF_NEEDED, MODES.NEVER] if MODES else [])),
}


def is_transposed(fn: Any, args: Any, kwargs: Any) -> bool:
    return (fn is np.transpose or fn is np.ndarray.transpose) and len(args) == 1 and not kwargs


def given(recorder: Recorder, key: Any, fn: Any, found: list[Any], frame: Any, value: Any) -> Any:
    """What a call has given: an op, a decision, or a tuple of ops."""
    if isinstance(value, tuple):
        return parts(recorder, (key, frame), fn, found, frame, value)
    kind: Any = kind_of(value)
    unknown = fn in EMPTY and not value.ndim
    if is_opaque(value) and all(type(x) is not Box or is_opaque(x.value) for x in found):
        unknown = False
    elif kind not in RESULTS and not is_of_numpy(value):
        unknown = True
    if unknown:
        return refuse(f"{getattr(fn, '__name__', fn)} gives {with_article(kind.__name__)}")
    own = key, frame
    op = recorder.add(
        own, fn, found, kind, lambda args: Call(own, fn, args, kind, recorder.region, frame)
    )
    if kind is bool:
        return recorder.decide(op, value)
    box: Box = recorder.read_only(value, op)
    op.now = box
    if fn in EMPTY:  # whose content is not to be looked at before it is written
        recorder.written.add(key)
    return settled(recorder, key, box) if is_anew(fn) else box


def is_opaque(value: Any) -> bool:
    """Whether something is an array of objects: of constants, if nothing else has gone into it."""
    return type(value) is np.ndarray and value.dtype == object


def parts(
    recorder: Recorder, key: Any, fn: Any, found: list[Any], frame: Any, value: tuple[Any, ...]
) -> tuple[Any, ...]:
    """What is in a tuple that a call has given: numbers and arrays."""
    kinds = [*map(kind_of, value)]
    for kind, x in zip(kinds, value, strict=True):
        if kind not in NUMBERS and not is_of_numpy(x):
            return tuple(
                refuse(f"{getattr(fn, '__name__', fn)} gives {with_article(kind.__name__)}")
            )
    op = recorder.add(
        key, fn, found, tuple, lambda args: Several(key, fn, args, tuple, recorder.region, frame)
    )
    if not op.results:
        op.results[None] = recorder.fresh(RESULT, value, recorder.region)
    if [x.type for x in op.results[None]] != kinds:
        return tuple(refuse(f"{getattr(fn, '__name__', fn)} gives other things than before"))
    for x, part in zip(value, op.results[None], strict=True):
        part.now = recorder.read_only(x, part)
    return tuple([part.now for part in op.results[None]])


def opened(recorder: Recorder, key: Any, x: Any, anew: bool) -> Any:
    """An argument, with lists of the run's own taken apart; ``anew`` says that no view of it is given."""
    if type(x) is tuple:
        return tuple([opened(recorder, (key, i), y, anew) for i, y in enumerate(x)])
    if type(x) is Array:
        return (
            content(recorder, key, x)
            if anew
            else refuse("a view of an array that is written to is taken")
        )
    if id(x) not in recorder.memories:
        return x
    if type(x) is not list:
        return refuse(f"{with_article(type(x).__name__)} is given to a function of arrays")
    if x and all(type(y) is Array for y in x):
        return Whole(contents(recorder, key, x))
    if x and all(type(plain(y)) in NUMBERS or is_boxed(y) for y in x):
        return Whole(x)
    items = apart_by_length(recorder, key, x)
    return [opened(recorder, (key, i), y, anew) for i, y in enumerate(items)]


def binary(
    recorder: Recorder, key: Any, op: Any, fn: Any, left: Any, right: Any, value: Any
) -> Any:
    """What ``left + right`` and the like have given; ``op`` may change ``left``, ``fn`` does not."""
    if not is_boxed(left) and not is_boxed(right):
        return refuse(f"{fn.__name__} gives {with_article(type(value).__name__)}")
    if op is not fn and type(left) is Box and type(left.value) is np.ndarray:
        return must_be_memory(recorder, left)
    if not is_followed(fn):
        return refuse(f"{fn.__name__} of arrays is not followed")
    return given(recorder, key, fn, [left, right], ("call", ("x", "x"), ()), value)


def binary_of_written(recorder: Recorder, key: Any, op: Any, fn: Any, left: Any, right: Any) -> Any:
    """The same where one of the two is written to; ``op`` may be what writes to the left one."""
    a, b = [
        content(recorder, (key, i), x) if type(x) is Array else x
        for i, x in enumerate((left, right))
    ]
    kinds = [kind_of(x.value if type(x) is Box else x) for x in (a, b)]
    if not all(map(is_number, kinds)):
        return refuse(
            f"{fn.__name__} of {kinds[0].__name__} and {kinds[1].__name__} is not followed"
        )
    try:
        value = fn(*map(plain, (a, b)))
    except Exception as error:
        raise Passing(f"{fn.__name__} raises {with_article(type(error).__name__)}") from None
    if op is fn or type(left) is not Array:
        return binary(recorder, key, op, fn, a, b, value)
    if not is_followed(fn) or fn is operator.matmul:
        return refuse(f"{fn.__name__} in place is not followed")
    if kind_of(value) is not kind_of(left.value):
        raise Passing(f"{fn.__name__} does not fit into an array")
    if np.shape(value) != left.value.shape or np.ndim(plain(b)) > left.value.ndim:
        raise Passing(f"{fn.__name__} does not fit into an array")
    made = given(recorder, (key, "new"), fn, [a, b], ("call", ("x", "x"), ()), value)
    put(recorder, key, left, ..., made)
    return left


def truth(recorder: Recorder, key: Any, x: Box) -> bool:
    """``bool(x)``, of a number or an array of one."""
    try:
        value = bool(x.value)
    except Exception as error:
        raise Passing(
            f"the truth of an array raises {with_article(type(error).__name__)}"
        ) from None
    return decided(recorder, key, operator.truth, (x,), value)


def shape(recorder: Recorder, key: Any, x: Any) -> tuple[Any, ...]:
    """``x.shape``: a number for each axis."""
    return tuple([called(recorder, (key, i), np.size, (x, i), {}) for i in range(np.ndim(x.value))])


def attribute(recorder: Recorder, key: Any, x: Any, name: str) -> Any:
    """An attribute of an array or a number."""
    value = x.value
    if name == "shape":
        return shape(recorder, key, x)
    if name == "ndim":
        return value.ndim
    if name == "dtype":
        return value.dtype if type(value) is not np.ndarray else kind_of(value).dtype
    if name == "size":
        return called(recorder, key, np.size, (x,), {})
    if name == "T" and type(value) is np.ndarray:
        return called(recorder, key, np.transpose, (x,), {})
    method = getattr(type(value), name, None)
    if type(method) is types.MethodDescriptorType and is_of_arrays(method):
        return types.MethodType(method, x)
    return refuse(f"the attribute {name} of {with_article(type(value).__name__)} is read")


def item(recorder: Recorder, key: Any, x: Any, index: Any) -> Any:
    """``x[index]``."""
    index = index_of(recorder, key, index)
    if type(x) is Array:
        return get(recorder, key, x, index)
    found = called(recorder, key, operator.getitem, (x, index), {})
    return settled(recorder, key, found) if is_advanced(index) and type(found) is Box else found


def index_of(recorder: Recorder, key: Any, index: Any) -> Any:
    """An index: of an array that is written to, what is in it now."""
    if type(index) is Array:
        return called(recorder, (key, "index"), np.copy, (index,), {})
    return index


def length(recorder: Recorder, key: Any, x: Any) -> Box:
    """``len(x)``."""
    return called(recorder, key, len, (x,), {})  # type: ignore[no-any-return]
