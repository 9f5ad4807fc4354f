"""Operators, iteration and items, by Python's own protocols.

Words
-----
protocol   the order in which Python asks the special methods of its operands.
method     a special method that is a Python function: CPython would run it behind our back, so its twin is called.
object     a value whose class may have such methods; a number, an array or a built-in container has none.
draw       take a plain bool, int or string out of a box, and note it as a guard.
"""

from __future__ import annotations

import contextlib
import dis
import itertools
import math
import operator
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..rules.python_builtins import pick
from . import escape
from .arrays import is_traced_array, save, write_all
from .arrays import write_item as write_array_item
from .border import ATOMS, COLLECTIONS, STAND_INS, External, enter, is_iterator, lower, siblings
from .box import BOXES, ArrayBox, Box
from .errors import TraceError
from .loops import Items, is_fixed
from .places import blame, user_frame, user_site
from .reads import HEAP_TYPE, static
from .record import decide, effect, has_box, operand, record
from .session import Tracer, active, intrinsic
from .structure import is_container
from .tape import Site


def is_iterable(value: Any) -> bool:
    """Whether a value is an iterator, or an object whose class makes it iterable."""
    return (
        type(value) is types.GeneratorType
        or is_iterator(value)
        or method_of(value, "__iter__") is not None
    )


def is_numeric(value: Any) -> bool:
    """Whether an operator on a value is NumPy's or Python's arithmetic of numbers."""
    return not (
        type(value) in SEQUENCES or type(value) in (dict, set, frozenset) or is_object(value)
    )


def is_number(value: Any) -> bool:
    """Whether a value is a number, traced or not."""
    return isinstance(plain_of(value), (int, float, np.number))


def write_container(
    tracer: Tracer | None, site: Site, fn: Any, container: Any, args: tuple[Any, ...], kwargs: Any
) -> Any:
    """Write to a container: an effect if it is the shadow of one outside, seen by all shadows of that one."""
    if tracer is None:
        return fn(container, *args, **kwargs)
    if tracer.loops is not None:
        tracer.loops.store(container) if type(container) is list else tracer.loops.write()
    if id(container) in tracer.originals:
        outside_effect(tracer, site, fn, container, args)
        for sibling in siblings(tracer, container):
            with contextlib.suppress(Exception):  # the container itself raises it in a moment
                fn(sibling, *args, **kwargs)
        if id(tracer.originals[id(container)][1]) in tracer.scopes:  # which code sees by its names
            result = escape.watched(fn, (container, *args), kwargs, site)
            lower(tracer, container)
            return result
    return escape.watched(fn, (container, *args), kwargs, site)


def outside_effect(tracer: Tracer, site: Site, fn: Any, shadow: Any, args: tuple[Any, ...]) -> None:
    """Note what is done to a container outside."""
    external = External(tracer.names.get(id(shadow), ""), tracer.originals[id(shadow)][1])
    effect(tracer, site, fn, (external, *args), {})


def hashable(value: Any) -> bool:
    if type(type(value).__hash__) is types.FunctionType:
        return False  # the user's own, and not ours to run
    try:
        hash(value)
    except TypeError:
        return False
    return True


def plain_key(key: Any) -> Any:
    """The key of a dict or set must be a plain value."""
    return draw(key, lambda value: value) if type(key) in BOXES else key


def operate(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """An operation that reached a box through C code or through Python code without hooks."""
    tracer = active.tracer
    site = user_site()
    if tracer is None:
        raise TraceError(
            f"{site}: a traced value is used after its run has ended, or in another thread"
        )
    return apply(tracer, site, op, args, kwargs or {})


SEQUENCES = frozenset((list, tuple, deque, str, bytes))


def plain_of(value: Any) -> Any:
    """The value in a box, or the value itself."""
    return value.value if type(value) in BOXES else value


def is_integer(value: Any) -> bool:
    return type(value) is Box and isinstance(value.value, (int, np.integer))


def drawn(tracer: Tracer, value: Any) -> Any:
    """The plain value of a nested argument that becomes part of a string, with guards on all of it."""
    if type(value) in BOXES:
        return draw(value, lambda plain: plain)
    if type(value) in (tuple, list):
        return type(value)([drawn(tracer, x) for x in value])
    if type(value) is dict:
        return {plain_key(k): drawn(tracer, x) for k, x in value.items()}
    return value


def operate_index(box: Box, index: int) -> Any:
    """``box[index]``."""
    return operate(operator.getitem, (box, index))


def apply(
    tracer: Tracer, site: Site, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """An operator on operands of which at least one is a box or an object of a Python class."""
    if op in INPLACE and type(args[0]) is ArrayBox:
        return update(tracer, site, op, args[0], args[1])
    if type(args[0]) in (str, bytes):
        return op(args[0], *[drawn(tracer, x) for x in args[1:]])
    if INPLACE.get(op, op) is not operator.mul and any(
        isinstance(plain_of(x), np.inexact) for x in args
    ):
        # NumPy's scalars make arrays of lists and tuples; only ``*`` is Python's repetition.
        op = INPLACE.get(op, op)
        args = tuple([as_array(tracer, site, x) for x in args])
    if (
        len(args) == 2
        and any(type(x) in SEQUENCES for x in args)
        and not any(type(x) is ArrayBox for x in args)
    ):
        return op(*[draw(x, operator.index) if is_integer(x) else plain_of(x) for x in args])
    op = INPLACE.get(op, op) if type(args[0]) is Box else op
    if any(type(x) in (list, tuple) for x in args) and (op in BINARY or op in COMPARE):
        args = tuple([as_array(tracer, site, x) for x in args])
    if any(type(x) in BOXES for x in args) and not any(map(is_object, args)):
        return record(tracer, site, op, args, kwargs)
    return operate_objects(tracer, site, op, args)


def as_array(tracer: Tracer, site: Site, value: Any) -> Any:
    """A list or tuple as NumPy takes it for an operand; anything else as it is."""
    return (
        calls.call(tracer, site, np.array, (value,), {}) if type(value) in (list, tuple) else value
    )


def update(tracer: Tracer, site: Site, op: Any, target: ArrayBox, value: Any) -> ArrayBox:
    """``a += v``: the array is written to, and stays the same array."""
    new = calls.call(tracer, site, INPLACE[op], (target, value), {})
    if type(new) in BOXES and (
        new.value.shape == target.value.shape or np.ndim(target.value) >= np.ndim(new.value)
    ):
        try:
            write_all(target, new.op, site)
            return target
        except (TypeError, ValueError):
            pass
    op(target.value.copy(), lower(tracer, value))  # raises what plain Python raises
    raise TraceError(f"{site}: the in-place operation {op.__name__} could not be followed")


def is_object(value: Any) -> bool:
    """Whether operators on a value may run Python methods of its class."""
    kind = type(value)
    return not (
        kind in BOXES or kind in ATOMS or kind in NATIVE or kind.__module__ in ("builtins", "numpy")
    )


NATIVE = frozenset((float, complex, list, tuple, dict, set, frozenset, np.ndarray))


INPLACE = {
    getattr(operator, f"i{name}"): getattr(operator, plain)
    for name, plain in (
        [(x, x) for x in "add sub mul truediv floordiv mod pow matmul lshift rshift xor".split()]
        + [("and", "and_"), ("or", "or_")]
    )
}


BINARY = {fn: fn.__name__.strip("_") for fn in INPLACE.values()} | {divmod: "divmod"}


REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


COMPARE = {getattr(operator, name): name for name in REFLECTED}


UNARY = {
    operator.neg: "__neg__", operator.pos: "__pos__", operator.invert: "__invert__", operator.abs: "__abs__",
    math.floor: "__floor__", math.ceil: "__ceil__", math.trunc: "__trunc__",
    abs: "__abs__", round: "__round__", operator.index: "__index__",
}  # fmt: skip


def method_of(value: Any, name: str) -> Any:
    """The Python-level special method of an object's class, or None."""
    kind = type(value)
    if kind in BOXES:
        return None
    method = getattr(kind, name, None)
    if kind.__flags__ & HEAP_TYPE and (tracer := active.tracer) is not None:
        reads = tracer.reads
        if reads is not None:
            reads.note(reads.constant(kind), "static", name, static(kind, name))
    return method if type(method) is calls.FunctionType else None


def operate_objects(tracer: Tracer, site: Site, op: Any, args: tuple[Any, ...]) -> Any:
    """An operator by the protocol of special methods, with Python methods run as twins."""
    if op in INPLACE:
        method = method_of(args[0], f"__{op.__name__.rstrip('_')}__")
        if method is not None:
            result = calls.call(tracer, site, method, args, {})
            if result is not NotImplemented:
                return result
        op = INPLACE[op]
    if op in BINARY:
        name = BINARY[op]
        tries = attempts(args[0], args[1], f"__{name}__", f"__r{name}__")
    elif op in COMPARE:
        name = COMPARE[op]
        tries = attempts(args[0], args[1], f"__{name}__", f"__{REFLECTED[name]}__")
        if not tries and name == "ne" and (inner := method_of(args[0], "__eq__")) is not None:
            result = calls.call(tracer, site, inner, args, {})
            return result if result is NotImplemented else not truth(tracer, site, result)
    else:
        name = UNARY.get(op) or f"__{op.__name__.strip('_')}__"
        method = method_of(args[0], name)
        tries = [(method, args)] if method is not None else []
    for method, operands in tries:
        result = calls.call(tracer, site, method, operands, {})
        if result is not NotImplemented:
            return result
    return operate_foreign(tracer, site, op, args)


def operate_foreign(tracer: Tracer, site: Site, op: Any, args: tuple[Any, ...]) -> Any:
    """An operator of which no Python method took charge: numbers of other classes, or objects written in C."""
    op = INPLACE.get(op, op) if type(args[0]) is Box else op
    if any(type(x) in BOXES for x in args):
        if all(
            isinstance(plain_of(x), (int, float, complex, np.generic, np.ndarray)) for x in args
        ):
            return record(tracer, site, op, args, {})
        if (
            type(args[0]).__module__ not in ("builtins", "wengert.tracer.box")
            or len(args) < 2
            or is_object(args[1])
        ):
            return calls.opaque(tracer, site, op, args, {})
    if tracer.reads is not None:
        for x in args:
            tracer.reads.pin(x)
            if type(x).__flags__ & HEAP_TYPE == 0:
                tracer.reads.looked_into(x, site)
    return escape.watched(op, [plain_of(x) for x in args], {}, site)


def attempts(left: Any, right: Any, name: str, reflected: str) -> list[Any]:
    """The Python-level methods that a binary operator tries, in CPython's order."""
    first = [(m, (left, right))] if (m := method_of(left, name)) is not None else []
    second = [(m, (right, left))] if (m := method_of(right, reflected)) is not None else []
    if type(left) is type(right) and reflected.startswith("__r"):
        second = []
    elif issubclass(type(right), type(left)) and type(right) is not type(left):
        if method_of(right, reflected) is not method_of(left, reflected):
            return second + first
    return first + second


def truth(tracer: Tracer, site: Site, value: Any) -> bool:
    """The truth of a value."""
    kind = type(value)
    if kind in BOXES:
        return draw(value, bool)
    for name in ("__bool__", "__len__"):
        method = method_of(value, name)
        if method is not None:
            result = calls.call(tracer, site, method, (value,), {})
            return bool(plain_key(result))
    return bool(value)


def draw(box: Box, how: Callable[[Any], Any]) -> Any:
    """Take a plain value out of a box, and note what the program saw."""
    value = how(box.value)
    tracer = active.tracer
    if tracer is not None:
        op = operand(box, [])
        if isinstance(box.value, np.ndarray) and how is not bool:
            if tracer.reads is not None:
                tracer.reads.problem("the elements of an array become a string", op.site)
            return value
        decide(tracer, op, box.value if how is not bool else value)
    return value


def iterate(box: Box) -> Iterator[Any]:
    """The elements of a traced array along its first axis."""
    if not isinstance(box.value, np.ndarray) or box.value.ndim == 0:
        refuse_iteration(box.value)
    return (operate(operator.getitem, (box, i)) for i in range(len(box.value)))


def refuse_iteration(value: Any) -> None:
    """Raise what plain Python raises where a number is iterated over: it depends on the running instruction."""
    frame = user_frame()
    name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    if name.startswith("UNPACK"):
        (_,) = value
    elif name == "LIST_EXTEND":
        _ = [*value]
    iter(value)


def as_mapping(tracer: Tracer, site: Site, value: Any) -> Any:
    """What to unpack in the place of a mapping: a dict, where Python methods of its class say what it holds."""
    if type(value) in BOXES:
        return value.value
    own = method_of(value, "keys") is not None or method_of(value, "__getitem__") is not None
    if not own or not hasattr(type(value), "keys"):
        return value
    keys = calls.call(
        tracer, site, calls.special[getattr](tracer, site, (value, "keys"), {}), (), {}
    )
    return {
        plain_key(key): get_item(tracer, site, value, key)
        for key in iterate_object(tracer, site, keys)
    }


class ObjectIterator:
    """An iterator of a Python class, whose ``__next__`` runs as a twin."""

    def __init__(self, tracer: Tracer, site: Site, iterator: Any) -> None:
        self.iterator = iterator
        self.step = lambda: calls.call(tracer, site, type(iterator).__next__, (iterator,), {})

    @intrinsic
    def __iter__(self) -> ObjectIterator:
        return self

    @intrinsic
    def __next__(self) -> Any:
        return self.step()


STAND_INS[ObjectIterator] = operator.attrgetter("iterator")
STAND_INS[Items] = operator.attrgetter("iterator")


def iterate_object(tracer: Tracer, site: Site, value: Any) -> Any:
    """What to iterate over in the place of a value: an iterator that runs Python methods as twins."""
    method = method_of(value, "__iter__")
    if method is None:
        if (
            type(value) in BOXES
            or hasattr(type(value), "__iter__")
            or method_of(value, "__getitem__") is None
        ):
            return value
        return sequence_iterator(tracer, site, value)
    iterator = calls.call(tracer, site, method, (value,), {})
    if method_of(iterator, "__next__") is not None:
        return ObjectIterator(tracer, site, iterator)
    return iterator


def sequence_iterator(tracer: Tracer, site: Site, value: Any) -> Iterator[Any]:
    """Iteration over an object that has ``__getitem__`` only."""
    method = method_of(value, "__getitem__")
    for i in itertools.count():
        try:
            item = calls.call(tracer, site, method, (value, i), {})
        except IndexError:
            return
        yield item


def get_item(tracer: Tracer, site: Site, container: Any, key: Any) -> Any:
    """``container[key]``."""
    if type(container) is ArrayBox or (
        type(container) is Box and isinstance(container.value, np.generic)
    ):
        return record(tracer, site, operator.getitem, (container, key), {})
    if is_traced_array(container):
        return get_item(tracer, site, enter(tracer, container, "array"), key)
    method = method_of(container, "__getitem__")
    if method is not None:
        return calls.call(tracer, site, method, (container, key), {})
    if tracer.reads is not None:
        tracer.reads.looked_into(container, site)
        tracer.reads.pin(key)
    if isinstance(container, dict):
        missing = method_of(container, "__missing__")
        if missing is not None and (key := plain_key(key)) not in container:
            return calls.call(tracer, site, missing, (container, key), {})
    item = (
        escape.watched(operator.getitem, (container, key), {}, site)
        if is_object(key)
        else container[key]
    )
    if isinstance(container, COLLECTIONS) and id(container) in tracer.outside:
        return item if type(item) in BOXES else enter(tracer, item, type(container).__name__)
    return item


def pick_item(tracer: Tracer, site: Site, items: Any, key: Box) -> Any:
    """An item of a list or tuple: with a guard on the index, unless it has changed too often for that."""
    if tracer.loops is not None and is_fixed(key.op):
        return tracer.loops.pick(items, key)
    reads = tracer.reads
    if reads is None or ("decision", site) not in reads.dynamic or not uniform(items):
        return items[plain_key(key)]
    return record(tracer, site, pick, (list(items), key), {})


def uniform(items: Any) -> bool:
    """Whether the items are traced values of one type and shape."""
    if not items or not all(type(x) in BOXES for x in items):
        return False
    values = [x.value for x in items]
    kinds = {(type(v), getattr(v, "dtype", None), getattr(v, "shape", None)) for v in values}
    return len(kinds) == 1


def set_item(tracer: Tracer, site: Site, container: Any, key: Any, value: Any) -> None:
    """``container[key] = value``."""
    if type(container) is ArrayBox:
        arrays: list[ArrayBox] = []
        index = operand(key, arrays)
        save(arrays)
        write_array_item(container, index, operand(value, []), site)
        return
    if is_traced_array(container):
        set_item(tracer, site, enter(tracer, container, "array"), key, value)
        return
    method = method_of(container, "__setitem__")
    if method is not None:
        calls.call(tracer, site, method, (container, key, value), {})
        return
    if tracer.reads is not None:
        tracer.reads.pin(key)
        if not is_container(container) or id(container) in tracer.outside:
            tracer.reads.problem(f"an item of a {type(container).__name__} is set", site)
    if type(container) is Box:
        container.value[key] = value  # raises what plain Python raises
    if not hasattr(type(container), "__setitem__"):
        container[plain_of(key)] = plain_of(value)  # raises what plain Python raises
    if has_box(value) and not isinstance(container, (dict, list, deque)):
        raise TraceError(
            f"{blame(site)}: a {type(container).__name__} cannot hold a traced value, so its gradient would be lost; "
            "keep it in a list, a dict or an array of numbers"
        )
    if isinstance(container, (dict, list, deque)):
        if type(container) is not dict or id(container) in tracer.originals:
            key = (
                key if is_object(key) else plain_key(key)
            )  # a dict made inside keeps the traced key
        write_container(tracer, site, operator.setitem, container, (key, value), {})
    else:
        container[lower(tracer, key)] = lower(tracer, value)


def write_item(box: Box, key: Any, value: Any) -> None:
    """``box[key] = value`` in code without hooks."""
    tracer = active.tracer
    if tracer is None:
        raise TraceError("a traced value is used after its run has ended, or in another thread")
    set_item(tracer, user_site(), box, key, value)


def box_attribute(box: Box, name: str) -> Any:
    """An attribute of a box in code without hooks."""
    from .attributes import load_box

    tracer = active.tracer
    if tracer is None or name.startswith("__array_"):
        raise AttributeError(name)
    return load_box(tracer, user_site(), box, name)


from . import calls  # noqa: E402  (calls and this module need each other)
