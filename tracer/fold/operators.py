"""Operators on other things than numbers, comparisons, and questions with the answer True or False."""

from __future__ import annotations

import operator
import types
from enum import Enum, EnumMeta
from typing import Any

import numpy as np

from ...rules.words import with_article
from ..kinds import MISSING, isinstance, static
from . import arrays, equivalents
from .basics import (
    ATOMS,
    CONTAINERS,
    NUMBERS,
    computed,
    decided,
    is_constant,
    is_object,
    now,
    plain,
    refuse,
)
from .functions import call_function
from .memories import apart, elements, indexed
from .named import opened
from .recorder import BOOLS, Box, Recorder, is_made
from .region import LENGTH, OBJECT, REPEAT, Array

SPECIAL = {
    fn: (f"__{name}__", f"__r{name}__")
    for fn, name in (
        (operator.add, "add"), (operator.sub, "sub"), (operator.mul, "mul"), (operator.truediv, "truediv"),
        (operator.pow, "pow"), (operator.matmul, "matmul"), (operator.mod, "mod"), (operator.floordiv, "floordiv"),
    )
}  # fmt: skip

REFLECTED = {
    operator.lt: "__gt__", operator.le: "__ge__", operator.gt: "__lt__", operator.ge: "__le__",
}  # fmt: skip

COMPARING = {
    operator.lt: "__lt__", operator.le: "__le__", operator.gt: "__gt__", operator.ge: "__ge__",
    operator.eq: "__eq__", operator.ne: "__ne__",
}  # fmt: skip

UNARY = {operator.neg: "__neg__", operator.pos: "__pos__"}

EQUALS = frozenset((operator.eq, operator.ne))

TRUE = frozenset((  # of which anything is true
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type,
))  # fmt: skip

COUNTED = NUMBERS | {bool}

SIMPLE = frozenset((int, str, bytes, type(None)))

FAMILIES = {
    int: int, bool: int, float: int, str: str, bytes: bytes, type(None): type(None),
    tuple: tuple, list: list, dict: dict, set: set,
}  # fmt: skip


def binary(key: Any, op: Any, fn: Any, left: Any, right: Any) -> Any:
    """``left + right`` and the like, of something else than numbers; ``op`` may change ``left``, ``fn`` does not."""
    recorder = now()
    left, right = opened(recorder, (key, 0), left), opened(recorder, (key, 1), right)
    kind, other = type(left), type(right)
    if kind is Array or other is Array:
        return arrays.binary_of_written(recorder, key, op, fn, left, right)
    if kind is list is other and fn is operator.add:
        if op is fn:
            return call_function(recorder, key, equivalents.concatenated, (left, right), {})
        call_function(recorder, key, equivalents.extend, (left, apart(left, right)), {})
        return left
    if kind is list and id(left) in recorder.memories:
        if fn is operator.mul and op is fn and type(plain(right)) is int:
            return recorder.born(key, REPEAT, (left, right), left * plain(right))
        return refuse("lists are joined")
    if other is list and fn is operator.mul and type(plain(left)) is int:
        return recorder.born(key, REPEAT, (right, left), right * plain(left))
    if (pair := counted(left, right)) is not None:
        return recorder.value(key, fn, pair, computed(recorder, key, fn, pair))
    if (
        Box in (kind, other)
        and fn is operator.add
        and type(plain(left)) is str is type(plain(right))
    ):
        return recorder.value(key, fn, (left, right), plain(left) + plain(right))
    if kind in ATOMS and other in ATOMS:
        if fn not in (operator.add, operator.mul) and not (
            is_constant(left) and is_constant(right)
        ):
            return refuse("an operator looks at what is in a tuple")
        return op(left, right)
    if op is fn and fn in SPECIAL:
        own, reflected = SPECIAL[fn]
        first_refusal(recorder, left, right, reflected)
        for obj, name, x in ((left, own, right), (right, reflected, left)):
            if is_object(recorder, obj) and not (obj is not left and kind is other):
                method = recorder.outside.of_class(type(obj), name)
                if type(method) is types.FunctionType:
                    return answered(call_function(recorder, key, method, (obj, x), {}))
                if method is not MISSING:
                    break
    return refuse(f"{fn.__name__} of {kind.__name__} and {other.__name__} is not followed")


def counted(left: Any, right: Any) -> tuple[Any, Any] | None:
    """A number of the run's and a bool, which is taken for the integer that it is."""
    if Box not in (type(left), type(right)) or bool not in (type(left), type(right)):
        return None
    if type(plain(left)) not in NUMBERS and type(plain(right)) not in NUMBERS:
        return None
    return (int(left), right) if type(left) is bool else (left, int(right))


def first_refusal(recorder: Recorder, left: Any, right: Any, name: str) -> None:
    """Refuse what asks the operand on the right in a way of its own.

    One whose class is derived from that on the left is asked first; NumPy asks with each item, as Python's number.
    """
    kind, other = type(left), type(right)
    if isinstance(plain(left), (np.generic, np.ndarray)) and is_object(recorder, right):
        refuse(f"NumPy asks {with_article(other.__name__)} for {name}")
    if kind is not other and issubclass(other, kind) and is_object(recorder, right):
        if recorder.outside.of_class(other, name) not in (MISSING, static(object, name)):
            refuse(
                f"{with_article(other.__name__)} goes before {with_article(kind.__name__)} in {name}"
            )


def answered(value: Any) -> Any:
    """What a special method gives, which may be asked for nothing more."""
    return refuse("a special method declines") if value is NotImplemented else value


def unary(key: Any, op: Any, x: Any) -> Any:
    """``-x`` and the like."""
    if op is operator.not_:
        if is_bool(x) and now().loose >= BOOLS:
            return now().value(key, op, (x,), not x.value)
        return not truth(key, x)
    if type(x) is Box:
        if type(x.value) not in NUMBERS and arrays.is_boxed(x):
            return arrays.called(now(), key, op, (x,), {})
        return now().value(key, op, (x,), op(x.value))
    if type(x) is Array:
        return arrays.called(now(), key, op, (x,), {})
    if type(x) in ATOMS:
        return op(x)
    recorder = now()
    if op in UNARY and is_object(recorder, x):
        method = recorder.outside.of_class(type(x), UNARY[op])
        if type(method) is types.FunctionType:
            return call_function(recorder, key, method, (x,), {})
    return refuse(f"{op.__name__} of {with_article(type(x).__name__)} is not followed")


def compare(key: Any, op: Any, decides: bool, left: Any, right: Any) -> Any:
    """``left < right`` and the like; ``decides`` says that only the truth of it is asked."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        left, right = opened(now(), (key, 0), left), opened(now(), (key, 1), right)
    kind, other = type(left), type(right)
    if kind is Array or other is Array:
        result = arrays.called(now(), key, op, (left, right), {})
        return truth((key, "truth"), result) if decides else result
    if kind is Box or other is Box:
        a, b = plain(left), plain(right)
        if (type(a) in COUNTED and type(b) in COUNTED) or type(a) is str is type(b):
            return compared_numbers(key, op, decides, left, right, op(a, b))
        if (pair := counted(left, right)) is not None:
            return decided(now(), key, op, pair, op(a, b))
        if arrays.is_boxed(left) or arrays.is_boxed(right):
            result = arrays.called(now(), key, op, (left, right), {})
            return truth((key, "truth"), result) if decides else result
    elif kind in ATOMS and other in ATOMS and not kind is tuple is other:
        return op(left, right)
    recorder = now()
    if op in EQUALS and (same := by_content(recorder, key, left, right)) is not None:
        return same is (op is operator.eq)
    if kind is tuple and other is tuple:
        recorder.scope(key, op)
        return recorder.closed([compared(recorder, key, op, left, right)])[0]
    first_refusal(recorder, left, right, REFLECTED.get(op, COMPARING[op]))
    for obj, name, x in (
        (left, COMPARING[op], right),
        (right, REFLECTED.get(op, COMPARING[op]), left),
    ):
        if is_object(recorder, obj):
            method = recorder.outside.of_class(type(obj), name)
            if type(method) is types.FunctionType:
                result = answered(call_function(recorder, (key, "call"), method, (obj, x), {}))
                return truth((key, "truth"), result) if decides else result
            if method is not static(object, name):
                break
    return refuse(f"{kind.__name__} and {other.__name__} are compared")


def compared_numbers(key: Any, op: Any, decides: bool, left: Any, right: Any, value: bool) -> Any:
    """How two numbers, bools or texts compare: a value of the run, unless only the truth of it is asked."""
    recorder = now()
    if decides or recorder.loose < BOOLS:
        return decided(recorder, key, op, (left, right), value)
    recorder.met = max(recorder.met, BOOLS)
    return recorder.value(key, op, (left, right), value)


def compared(recorder: Recorder, key: Any, op: Any, left: Any, right: Any) -> bool:
    """How tuples compare: by the first two items that are not equal."""
    for i, (x, y) in enumerate(zip(left, right, strict=False)):
        part = (key, i)
        if not is_alike(recorder, part, x, y):
            if op in EQUALS:
                return op is operator.ne
            kinds = type(plain(x)), type(plain(y))
            if kinds == (tuple, tuple):
                return compared(recorder, (part, "order"), op, x, y)
            if not is_of_one_kind(kinds):
                refuse("items of different types are compared")
            return answer(recorder, (part, "order"), op, x, y)
    return bool(op(len(left), len(right)))


def alike(recorder: Recorder, key: Any, x: Any, y: Any) -> bool:
    """Whether two items of containers are the same to Python."""
    recorder.scope(key, equivalents.alike)
    return recorder.closed([is_alike(recorder, (key, "same"), x, y)])[0]  # type: ignore[no-any-return]


def is_unordered(recorder: Recorder, key: Any, x: Any) -> bool:
    """Whether NaN is in what is sorted: a number, a text, or a tuple of such."""
    x = opened(recorder, key, x)
    if type(x) is tuple:
        return any(is_unordered(recorder, (key, i), y) for i, y in enumerate(x))
    if type(x) is not Box and type(x) not in ATOMS:
        refuse(f"{with_article(type(x).__name__)} is sorted, which Python may ask in another order")
    return truth((key, "unordered"), compare((key, "nan"), operator.ne, True, x, x))


def is_bool(x: Any) -> bool:
    """Whether something is a bool of the run's."""
    return type(x) is Box and type(x.value) is bool


def is_alike(recorder: Recorder, key: Any, x: Any, y: Any) -> bool:
    x, y = opened(recorder, (key, 0), x), opened(recorder, (key, 1), y)
    kinds = type(plain(x)), type(plain(y))
    if kinds == (tuple, tuple):
        return compared(recorder, key, operator.eq, x, y)
    if (same := by_content(recorder, key, x, y)) is not None:
        return same
    if not all(FAMILIES.get(kind) in SIMPLE for kind in kinds):
        return bool(refuse("items are compared that are neither numbers nor texts"))
    if (pair := counted(x, y)) is not None:
        return answer(recorder, key, operator.eq, *pair)
    if not is_of_one_kind(kinds):
        return bool(x == y)
    # Only NaN, which no constant here but a NaN can be, makes a difference between the two.
    fixed = any(type(item) is not Box and item == item for item in (x, y))
    return answer(recorder, key, operator.eq if fixed else equivalents.alike, x, y)


def by_content(recorder: Recorder, key: Any, x: Any, y: Any) -> bool | None:
    """Whether values that are not both simple are equal: by their types, as lists, or as one object; else None."""
    a, b = family(recorder, x), family(recorder, y)
    if a is list is b:
        return truth(
            (key, "truth"), call_function(recorder, key, equivalents.same_items, (x, y), {})
        )
    if a is OBJECT is b:
        return same_object(key, x, y)
    return False if a is not b and None not in (a, b) else None


def family(recorder: Recorder, x: Any) -> Any:
    """A type, or `OBJECT` for all that equal nothing but themselves: of two of these no values are equal."""
    found = FAMILIES.get(type(plain(x)))
    in_c = type(x) is types.BuiltinFunctionType and type(x.__self__) is types.ModuleType
    if in_c or type(x) is types.FunctionType or type(x) is type:
        return OBJECT
    if found is None and (is_object(recorder, x) or is_member(x)):
        names, of_class = ("__eq__", "__ne__"), recorder.outside.of_class
        own = [of_class(type(x), name) is not static(object, name) for name in names]
        return None if any(own) else OBJECT
    return None if found in CONTAINERS and id(x) not in recorder.memories else found


def is_member(x: Any) -> bool:
    """Whether something is a member of an enumeration."""
    return isinstance(x, Enum) and type(type(x)) is EnumMeta


def is_of_one_kind(kinds: tuple[Any, Any]) -> bool:
    """Whether two numbers, bools among them, or two texts have these types."""
    return kinds == (str, str) or all(kind in COUNTED for kind in kinds)


def answer(recorder: Recorder, key: Any, fn: Any, x: Any, y: Any) -> bool:
    """What a comparison of two numbers or texts gives."""
    value = bool(fn(plain(x), plain(y)))
    if type(x) is Box or type(y) is Box:
        return decided(recorder, key, fn, (x, y), value)
    return value


def truth(key: Any, x: Any) -> bool:
    """``bool(x)``."""
    kind = type(x)
    if kind is Box:
        return arrays.truth(now(), key, x)
    if kind in ATOMS:
        return bool(x)
    if kind in TRUE:
        return True
    recorder = now()
    if id(x) in recorder.memories and kind is not Array:
        if kind in CONTAINERS:
            count = recorder.value(key, LENGTH, (x,), len(x))
            return decided(recorder, key, operator.truth, (count,), bool(x))
        for name in ("__bool__", "__len__"):
            method = recorder.outside.of_class(kind, name)
            if type(method) is types.FunctionType:
                result = call_function(recorder, (key, name), method, (x,), {})
                if name == "__len__":
                    result = a_length(recorder, (key, "length"), result)
                if type(plain(result)) is (bool if name == "__bool__" else int):
                    return truth((key, name, "truth"), result)
        if all(
            recorder.outside.of_class(kind, name) is MISSING for name in ("__bool__", "__len__")
        ):
            return True
    return bool(refuse(f"the truth of {with_article(kind.__name__)} is asked"))


def a_length(recorder: Recorder, key: Any, size: Any) -> Any:
    """What ``__len__`` has given, which Python looks at: another run may give another one."""
    if type(plain(size)) is not int:
        return refuse("no length")
    if type(size) is Box and size.op.fn == LENGTH:
        return size
    return call_function(recorder, key, equivalents.a_length, (size,), {})


def contains(key: Any, container: Any, item: Any) -> bool:
    """``item in container``."""
    recorder = now()
    container = opened(recorder, (key, "container"), container)
    kind = type(container)
    if kind is tuple and not (is_constant(container) and (type(item) is Box or is_constant(item))):
        container, kind = elements(recorder, (key, "items"), container), list
    if kind is list and id(container) in recorder.memories:
        found = call_function(recorder, key, equivalents.holds, (container, item), {})
        return truth((key, "truth"), found)
    if is_object(recorder, container):
        method = recorder.outside.of_class(kind, "__contains__")
        if type(method) is types.FunctionType:
            result = call_function(recorder, (key, "call"), method, (container, item), {})
            return truth((key, "truth"), result)
    if type(item) is not Box and type(item) not in ATOMS:
        refuse("it is asked whether a container holds a container")
    if id(container) in recorder.memories and kind in (dict, set):
        given, where = indexed(recorder, key, item)
        return decided(recorder, key, operator.contains, (container, given), where in container)
    if kind is tuple or kind is str or kind is frozenset:
        if type(item) is not Box:
            return item in container
        found = item.value in container
        return decided(recorder, key, operator.contains, (container, item), found)
    return bool(refuse(f"it is asked what {with_article(kind.__name__)} holds"))


SMALL = frozenset(range(-5, 257))  # integers of which CPython has one object each


def same_object(key: Any, left: Any, right: Any) -> bool:
    """``left is right``."""
    recorder = now()
    if left is None or right is None:
        return left is right
    memories = [id(x) in recorder.memories for x in (left, right)]
    if all(memories):
        if id(left) in recorder.copied or id(right) in recorder.copied:
            refuse("it is asked whether dicts in arguments are one")
        return decided(recorder, key, operator.is_, (left, right), left is right)
    if any(memories):
        return False
    if type(left) is int and type(right) is int and {left, right} <= SMALL:
        return left == right
    if bool in (kinds := [type(plain(x)) for x in (left, right)]):  # there are but two of them
        if Box not in (type(left), type(right)) or kinds != [bool, bool]:
            return plain(left) is plain(right)
        return decided(recorder, key, operator.is_, (left, right), plain(left) is plain(right))
    if is_made(left) and is_made(right):
        refuse("`is` compares functions that the run has made")
    for x in (left, right):
        if type(x) is Box:
            recorder.as_memory(x)  # which has an identity
        if type(x) is Box or type(x) in NUMBERS or type(x) in (tuple, str, bytes):
            refuse("`is` compares what may be another object")
    return left is right
