"""Arrays, and numbers of NumPy's: calls of functions of them, their attributes, operators and items.

Nothing is written to an array: each that is boxed is read-only, so that a function that would do so raises. Whatever
NumPy raises, and a floating-point event that it would warn of, has this very call traced.

Words
-----
followed   a function that does nothing but compute: one with a pure rule of ours, or without a derivative.
opened     a list as an argument: itself where it holds numbers of Python's, else the items in it, where it has this
           length in every run.
"""

from __future__ import annotations

import operator
import types
from typing import Any

import numpy as np

from ...rules import registry
from .basics import NUMBERS, apart_by_length, decided, plain, refuse
from .nested import Whole, frame_of, plainly
from .recorder import Box, Passing, Recorder
from .region import RESULT, Call, Several, is_of_numpy, kind_of

DISPATCHED = type(np.dot)
LAYOUTS = (
    np.may_share_memory,
    np.shares_memory,
    np.isfortran,
)  # which tell how arrays lie in memory
UNKNOWN = frozenset(
    (np.empty, np.empty_like, *LAYOUTS)
)  # what they give depends on more than types and values
RESULTS = frozenset((float, int, bool))
PACKAGES = frozenset(("numpy", "scipy", "statistics"))
ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}  # NumPy's own

RAISED: Any = {"divide": "raise", "over": "raise", "invalid": "raise"}


def is_boxed(x: Any) -> bool:
    """Whether something is an array or a number of NumPy's that is followed."""
    return type(x) is Box and is_of_numpy(x.value)


def is_of_floats(x: Any) -> bool:
    """Whether something is an array of floats."""
    return is_boxed(x) and type(x.value) is np.ndarray and x.value.dtype == np.float64


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
    return isinstance(fn, type) and issubclass(fn, np.generic)


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
    if not is_followed(fn):
        return refuse(f"{name} is called")
    if kwargs.get("out") is not None or (type(fn) is np.ufunc and len(args) > fn.nin):
        return refuse(f"{name} writes to an array")
    if fn is np.shape and len(args) == 1 and is_boxed(args[0]):
        return shape(recorder, key, args[0])
    args = [opened(recorder, (key, i), x) for i, x in enumerate(args)]
    kwargs = {k: opened(recorder, (key, k), x) for k, x in kwargs.items()}
    found: list[Any] = []
    frame = frame_of(args, kwargs, found)
    try:
        value = fn(*map(plainly, args), **plainly(kwargs))
    except Exception as error:
        raise Passing(f"{name} raises a {type(error).__name__}") from None
    return given(recorder, key, fn, found, frame, value)


def given(recorder: Recorder, key: Any, fn: Any, found: list[Any], frame: Any, value: Any) -> Any:
    """What a call has given: an op, a decision, or a tuple of ops."""
    if isinstance(value, tuple):
        return parts(recorder, (key, frame), fn, found, frame, value)
    kind: Any = kind_of(value)
    if kind not in RESULTS and not is_of_numpy(value):
        return refuse(f"{getattr(fn, '__name__', fn)} gives a {kind.__name__}")
    key = key, frame
    op = recorder.add(
        key, fn, found, kind, lambda args: Call(key, fn, args, kind, recorder.region, frame)
    )
    if kind is bool:
        return recorder.decide(op, value)
    box: Box = recorder.read_only(value, op)
    op.now = box
    return box


def parts(
    recorder: Recorder, key: Any, fn: Any, found: list[Any], frame: Any, value: tuple[Any, ...]
) -> tuple[Any, ...]:
    """What is in a tuple that a call has given: numbers and arrays."""
    kinds = [*map(kind_of, value)]
    for kind, x in zip(kinds, value, strict=True):
        if kind not in NUMBERS and not is_of_numpy(x):
            return tuple(refuse(f"{getattr(fn, '__name__', fn)} gives a {kind.__name__}"))
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


def opened(recorder: Recorder, key: Any, x: Any) -> Any:
    """An argument, with lists of the run's own taken apart."""
    if type(x) is tuple:
        return tuple([opened(recorder, (key, i), y) for i, y in enumerate(x)])
    if id(x) not in recorder.memories:
        return x
    if type(x) is not list:
        return refuse(f"a {type(x).__name__} is given to a function of arrays")
    if x and all(type(plain(y)) in NUMBERS for y in x):
        return Whole(x)
    items = apart_by_length(recorder, key, x)
    return [opened(recorder, (key, i), y) for i, y in enumerate(items)]


def binary(
    recorder: Recorder, key: Any, op: Any, fn: Any, left: Any, right: Any, value: Any
) -> Any:
    """What ``left + right`` and the like have given; ``op`` may change ``left``, ``fn`` does not."""
    if not is_boxed(left) and not is_boxed(right):
        return refuse(f"{fn.__name__} gives a {type(value).__name__}")
    if op is not fn and type(left) is Box and type(left.value) is np.ndarray:
        return refuse("an array is written to")
    if not is_followed(fn):
        return refuse(f"{fn.__name__} of arrays is not followed")
    return given(recorder, key, fn, [left, right], ("call", ("x", "x"), ()), value)


def truth(recorder: Recorder, key: Any, x: Box) -> bool:
    """``bool(x)``, of a number or an array of one."""
    try:
        value = bool(x.value)
    except Exception as error:
        raise Passing(f"the truth of an array raises a {type(error).__name__}") from None
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
    return refuse(f"the attribute {name} of a {type(value).__name__} is read")


def item(recorder: Recorder, key: Any, x: Any, index: Any) -> Any:
    """``x[index]``."""
    return called(recorder, key, operator.getitem, (x, index), {})


def length(recorder: Recorder, key: Any, x: Any) -> Box:
    """``len(x)``."""
    return called(recorder, key, len, (x,), {})  # type: ignore[no-any-return]
