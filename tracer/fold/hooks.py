"""The hooks of folding: what the instrumented code calls in the place of its own operations (see ``rewrite``).

They follow numbers of Python's own, text and the like by value, tuples, and the lists, dicts and objects that the run
has made. Whatever else they meet they refuse, before anything is done outside: such a call is traced.
"""

from __future__ import annotations

import builtins
import math
import operator
import sys
import types
from collections.abc import Callable
from random import Random
from typing import Any

from ...rules import registry
from ..cycles import Loop
from ..handlers import handlers
from ..kinds import MISSING, flags_of, static
from ..operators import INPLACE
from ..reads import HEAP_TYPE
from ..tape import Site
from . import equivalents
from .equivalents import ONE_ITERABLE, equivalent
from .recorder import Box, Passing, Recorder, Unfolded, active, same_float
from .region import (
    APPEND,
    DICT,
    EXHAUSTED,
    ITEM,
    LENGTH,
    LIST,
    LOAD,
    OBJECT,
    POP,
    REPEAT,
    STORE,
    Op,
)

Hook = Callable[..., Any]
folds = True

NUMBERS = frozenset((int, float))
CONTAINERS = frozenset((list, dict, set))
ATOMS = frozenset((int, float, bool, str, type(None), tuple))  # on which operators do what they do
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
UNEQUAL = frozenset((int, float, str, type(None)))
IN_C = frozenset((abs, round, pow))  # primitives among the builtins


def now() -> Recorder:
    """The recording that goes on."""
    recorder = active.recorder
    if recorder is None:
        raise Unfolded("it is called when the recording has ended")
    return recorder


def plain(x: Any) -> Any:
    return x.value if type(x) is Box else x


def is_same(known: Any, x: Any) -> bool:
    """Whether a number that is none of the run's is the one that was there, to the bit."""
    return known == x and type(known) is type(x) and (x != 0 or same_float(known, x))


def refuse(what: str) -> Any:
    raise Unfolded(what)


def __getattr__(name: str) -> Any:
    """The factory of a hook that is not followed: it refuses when it is called."""
    if name.startswith("__"):
        raise AttributeError(name)

    def factory(*_: Any) -> Hook:
        return lambda *_args, **_kwargs: refuse(f"{name} is not followed")

    return factory


# Arithmetic


def binary(site: Site, op: Any) -> Hook:
    if op is operator.getitem:
        return subscript(site)
    fn = INPLACE.get(op, op)
    key, call = object(), calling(site)

    def hook(right: Any, left: Any) -> Any:
        kind, other = type(left), type(right)
        if (kind is Box or kind in NUMBERS) and (other is Box or other in NUMBERS):
            if kind is not Box and other is not Box:
                return fn(left, right)
            recorder = now()
            a = left.value if kind is Box else left
            b = right.value if other is Box else right
            try:
                value = fn(a, b)
            except Exception as error:
                recorder.failed(key, fn, (left, right), error)
                raise
            i = recorder.i
            if i < len(recorder.ops):  # the usual case without ado
                node = recorder.ops[i]
                if node.key is key and type(value) is node.type:
                    x, y = node.args
                    if (x.now is left if type(x) is Op else is_same(x, left)) and (
                        y.now is right if type(y) is Op else is_same(y, right)
                    ):
                        recorder.i = i + 1
                        box = node.now = Box(value, node, recorder.turn)
                        return box
            if type(value) not in NUMBERS:
                raise Unfolded(f"{fn.__name__} gives a {type(value).__name__}")
            return recorder.value(key, fn, (left, right), value)
        return other_binary(key, call, op, fn, left, right)

    return hook


def other_binary(key: Any, call: Hook, op: Any, fn: Any, left: Any, right: Any) -> Any:
    recorder = now()
    kind, other = type(left), type(right)
    if kind is list is other and fn is operator.add:
        if op is fn:
            return call_function(recorder, key, equivalents.concatenated, (left, right), {})
        call_function(recorder, key, equivalents.extend, (left, apart(left, right)), {})
        return left
    if kind is list and id(left) in recorder.memories:
        if fn is operator.mul and op is fn and (other is int or other is Box):
            return recorder.born(key, REPEAT, (left, right), left * plain(right))
        return refuse("lists are joined")
    if other is list and fn is operator.mul and (kind is int or kind is Box):
        return recorder.born(key, REPEAT, (right, left), right * plain(left))
    if kind in ATOMS and other in ATOMS:
        return op(left, right)
    if op is fn and fn in SPECIAL:
        own, reflected = SPECIAL[fn]
        for obj, name, x in ((left, own, right), (right, reflected, left)):
            if is_object(recorder, obj):
                method = recorder.outside.of_class(type(obj), name)
                if type(method) is types.FunctionType:
                    return answered(call(method, obj, x))
                if method is not MISSING:
                    break
    return refuse(f"{fn.__name__} of {kind.__name__} and {other.__name__} is not followed")


def answered(value: Any) -> Any:
    """What a special method gives, which may be asked for nothing more."""
    return refuse("a special method declines") if value is NotImplemented else value


def is_object(recorder: Recorder, x: Any) -> bool:
    """Whether something is an object of a class of the user's that the run has made."""
    return id(x) in recorder.memories and type(x) not in CONTAINERS


def unary(site: Site, op: Any) -> Hook:
    key, call, asked = object(), calling(site), truth(site)

    def hook(x: Any) -> Any:
        if op is operator.not_:
            return not asked(x)
        if type(x) is Box:
            return now().value(key, op, (x,), op(x.value))
        if type(x) in ATOMS:
            return op(x)
        recorder = now()
        if op in UNARY and is_object(recorder, x):
            method = recorder.outside.of_class(type(x), UNARY[op])
            if type(method) is types.FunctionType:
                return call(method, x)
        return refuse(f"{op.__name__} of a {type(x).__name__} is not followed")

    return hook


def compare(site: Site, op: Any, decides: bool = False) -> Hook:
    key, call, asked = object(), calling(site), truth(site)

    def hook(right: Any, left: Any) -> Any:
        kind, other = type(left), type(right)
        if kind is Box or other is Box:
            a, b = plain(left), plain(right)
            if (type(a) in NUMBERS and type(b) in NUMBERS) or type(a) is str is type(b):
                return decided(now(), key, op, (left, right), op(a, b))
            if op in EQUALS and type(a) in UNEQUAL and type(b) in UNEQUAL:
                return op(a, b)  # by their types
        elif kind in ATOMS and other in ATOMS and not kind is tuple is other:
            return op(left, right)
        recorder = now()
        if kind is tuple and other is tuple:
            recorder.scope(key, op)
            return recorder.closed([compared(recorder, key, op, left, right)])[0]
        for obj, name, x in (
            (left, COMPARING[op], right),
            (right, REFLECTED.get(op, COMPARING[op]), left),
        ):
            if is_object(recorder, obj):
                method = recorder.outside.of_class(type(obj), name)
                if type(method) is types.FunctionType:
                    result = answered(call(method, obj, x))
                    return asked(result) if decides else result
        return refuse(f"{kind.__name__} and {other.__name__} are compared")

    return hook


def compared(recorder: Recorder, key: Any, op: Any, left: Any, right: Any) -> bool:
    """How tuples compare: by the first two items that are not equal."""
    for i, (x, y) in enumerate(zip(left, right, strict=False)):
        part = (key, i)
        kinds = type(plain(x)), type(plain(y))
        if kinds == (tuple, tuple):
            if not compared(recorder, part, operator.eq, x, y):
                return op is operator.ne or compared(recorder, (part, "order"), op, x, y)
            continue
        if not all(kind in UNEQUAL or kind is bool for kind in kinds):
            return bool(refuse("tuples of something else than numbers and texts are compared"))
        one_kind = kinds == (str, str) or all(kind in NUMBERS for kind in kinds)
        if not answer(recorder, part, equivalents.alike, x, y, one_kind):
            if op in EQUALS:
                return op is operator.ne
            if not one_kind:
                refuse("items of different types are compared")
            return answer(recorder, (part, "order"), op, x, y, True)
    return bool(op(len(left), len(right)))


def answer(recorder: Recorder, key: Any, fn: Any, x: Any, y: Any, depends: bool) -> bool:
    """What a comparison of two items gives; ``depends`` says that it is not settled by their types."""
    value = bool(fn(plain(x), plain(y)))
    if depends and (type(x) is Box or type(y) is Box):
        return decided(recorder, key, fn, (x, y), value)
    return value


def decided(recorder: Recorder, key: Any, fn: Any, args: Any, value: Any) -> bool:
    """A question whose answer is True or False: the way that is gone depends on it."""
    if type(value) is not bool:
        raise Unfolded(f"{fn.__name__} gives a {type(value).__name__}")
    result: bool = recorder.decide(recorder.add(key, fn, args, bool), value)
    return result


def truth(site: Site) -> Hook:
    key = object()

    def hook(x: Any) -> bool:
        kind = type(x)
        if kind is Box:
            return decided(now(), key, operator.truth, (x,), bool(x.value))
        if kind in ATOMS:
            return bool(x)
        recorder = now()
        if id(x) in recorder.memories:
            if kind in CONTAINERS:
                count = recorder.value(key, LENGTH, (x,), len(x))
                return decided(recorder, key, operator.truth, (count,), bool(x))
            for name in ("__bool__", "__len__"):
                if recorder.outside.of_class(kind, name) is not MISSING:
                    return refuse(f"the truth of a {kind.__name__} is asked")
            return True
        return refuse(f"the truth of a {kind.__name__} is asked")

    return hook


def contains(site: Site, negate: bool) -> Hook:
    key = object()

    def hook(container: Any, item: Any) -> bool:
        recorder = now()
        kind = type(container)
        if type(item) is not Box and type(item) not in ATOMS:
            return refuse("it is asked whether a container holds a container")
        if id(container) in recorder.memories and kind in (dict, set):
            given, where = indexed(recorder, key, item)
            found = where in container
            return (
                decided(recorder, key, operator.contains, (container, given), found) is not negate
            )
        if (kind is tuple and all(map(is_constant, container))) or kind is str:
            if type(item) is Box:
                found = item.value in container
                given = (container, item)
                return decided(recorder, key, operator.contains, given, found) is not negate
            return (item in container) is not negate
        return refuse(f"it is asked what a {kind.__name__} holds")

    return hook


def is_(site: Site, negate: bool) -> Hook:
    key = object()

    def hook(right: Any, left: Any) -> bool:
        recorder = now()
        held = [id(x) in recorder.memories for x in (left, right)]
        if all(held):
            return decided(recorder, key, operator.is_, (left, right), left is right) is not negate
        for x in (left, right):
            if type(x) is Box or type(x) in NUMBERS or type(x) in (tuple, str):
                return refuse("`is` compares what may be another object")
        return (left is right) is not negate

    return hook


# Variables and attributes


def copy_of(recorder: Recorder, key: Any, items: list[Any]) -> list[Any]:
    """A list of constants from outside, which is only read."""
    recorder.given.add(id(items))
    made = [copy_of(recorder, (key, i), x) if type(x) is list else x for i, x in enumerate(items)]
    items[:] = made
    return born_list(recorder, key, items)  # type: ignore[no-any-return]


def load_global(site: Site, name: str, depth: int = 1) -> Hook:
    key = object()
    noted: tuple[Any, Any] = (None, None)

    def hook(value: Any) -> Any:
        nonlocal noted
        recorder = now()
        if noted[0] is recorder and noted[1] is value:
            return value
        traced = recorder.outside.of_globals(sys._getframe(depth).f_globals, name, value)
        if traced is value:
            noted = (recorder, value)
        return copy_of(recorder, key, traced) if type(traced) is list else traced

    return hook


def global_attr(site: Site, name: str, attr: str) -> Hook:
    load, get = load_global(site, name, depth=2), getattr(site, attr)
    return lambda value: get(load(value))


def global_append(site: Site, name: str) -> Hook:
    return lambda value: refuse(f"{name}, a {type(value).__name__} from outside, is written to")


def getattr(site: Site, name: str) -> Hook:
    return getattr_of(object(), name)


def getattr_of(key: Any, name: str) -> Hook:
    call = calling_of((key, "call"))

    def hook(obj: Any) -> Any:
        recorder = now()
        kind = type(obj)
        if kind is types.ModuleType:
            return recorder.outside.of_module(obj, name)
        if id(obj) in recorder.memories:
            if kind in CONTAINERS:
                return builtins.getattr(obj, name)
            return attribute(recorder, key, call, obj, name)
        if obj is dict and name == "fromkeys":
            return dict.fromkeys
        if kind is type and name not in ("__dict__", "__class__"):
            if flags_of(obj) & HEAP_TYPE:
                return of_class(recorder, obj, recorder.outside.of_class(obj, name), name)
        if kind is str:
            return builtins.getattr(obj, name)
        if kind is Box and type(obj.value) is str and name in OF_TEXT:
            return types.MethodType(builtins.getattr(str, name), obj)
        if kind is Box and type(obj.value) is Random and name in DRAWS:
            recorder.outside.of_class(Random, name)
            return types.MethodType(builtins.getattr(Random, name), obj)
        return refuse(f"the attribute {name} of a {kind.__name__} is read")

    return hook


def attribute(recorder: Recorder, key: Any, call: Hook, obj: Any, name: str) -> Any:
    """An attribute of an object that the run has made."""
    kind: Any = type(obj)
    check_access(recorder, kind, "__getattribute__")
    found = recorder.outside.of_class(kind, name)
    if type(found) is property:
        if type(found.fget) is not types.FunctionType:
            return refuse(f"{name} is a property in C")
        return call(found.fget, obj)
    own = obj.__dict__
    if name in own and (found is MISSING or is_passive(found)):
        x = own[name]
        return loaded(recorder, key, obj, name, x)
    if found is MISSING:
        return refuse(f"a {kind.__name__} has no attribute {name}")
    if type(found) is types.FunctionType:
        return types.MethodType(found, obj)
    return of_class(recorder, kind, found, name)


def of_class(recorder: Recorder, cls: type, found: Any, name: str) -> Any:
    """What is found in a class, asked of the class."""
    if type(found) is staticmethod or type(found) is classmethod:
        inner = found.__func__
        if type(inner) is not types.FunctionType:
            return refuse(f"{name} is no Python function")
        return inner if type(found) is staticmethod else types.MethodType(inner, cls)
    if type(found) is types.FunctionType or is_constant(found):
        return found
    return refuse(f"{cls.__name__}.{name}, a {type(found).__name__}, is read")


def is_constant(x: Any) -> bool:
    return type(x) in ATOMS and (type(x) is not tuple or all(map(is_constant, x)))


def is_passive(found: Any) -> bool:
    """Whether what a class holds leaves an attribute to the object's own."""
    return type(found) is types.FunctionType or is_constant(found)


def check_access(recorder: Recorder, kind: type, name: str) -> None:
    """Refuse classes whose objects have attributes in a way of their own."""
    if recorder.outside.of_class(kind, name) is not static(object, name):
        refuse(f"a {kind.__name__} has {name} of its own")
    if static(kind, "__dict__") is MISSING or static(kind, "__slots__") is not MISSING:
        refuse(f"a {kind.__name__} has slots")


def setattr(site: Site, name: str) -> Hook:
    key = object()
    return lambda obj, x: written(now(), key, obj, name, x)


def written(recorder: Recorder, key: Any, obj: Any, name: str, x: Any) -> None:
    """An attribute of an object that the run has made gets another value."""
    if not is_object(recorder, obj):
        refuse(f"an attribute of a {type(obj).__name__} is written")
    check_access(recorder, type(obj), "__setattr__")
    found = recorder.outside.of_class(type(obj), name)
    if found is not MISSING and not is_passive(found):
        refuse(f"{type(obj).__name__}.{name} is a descriptor")
    stored(recorder, key, obj, name, x)
    obj.__dict__[name] = x


# Lists and dicts


def loaded(recorder: Recorder, key: Any, memory: Any, index: Any, x: Any) -> Any:
    """What was found in a memory."""
    return recorder.taken(key, LOAD, (memory, index), x)


def must_be_own(recorder: Recorder, memory: Any) -> None:
    """Refuse to write to what the run has not made."""
    if id(memory) not in recorder.memories or id(memory) in recorder.given:
        refuse(f"a {type(memory).__name__} from outside is written to")


def stored(recorder: Recorder, key: Any, memory: Any, index: Any, x: Any) -> None:
    recorder.add(key, STORE, (memory, index, recorder.packed(key, x)), type(None))


def indexed(recorder: Recorder, key: Any, index: Any) -> tuple[Any, Any]:
    """An index or a key: as an operand, and as it is."""
    if type(index) is Box:
        return index, index.value
    if type(index) is tuple:
        where = tuple([indexed(recorder, key, x)[1] for x in index])
        return (recorder.packed((key, "key"), index) if index else index), where
    if type(index) not in ATOMS:
        refuse(f"a {type(index).__name__} is an index")
    return index, index


def subscript(site: Site) -> Hook:
    key, made, call = object(), object(), calling(site)

    def hook(index: Any, container: Any) -> Any:
        kind = type(container)
        recorder = now()
        if kind is list or kind is dict:
            if id(container) not in recorder.memories:
                return refuse(f"a {kind.__name__} from outside is read")
            if type(index) is slice:
                return copied(recorder, key, container, index)
            given, where = indexed(recorder, key, index)
            try:
                x = container[where]
            except (LookupError, TypeError) as error:
                recorder.failed(key, LOAD, (container, given), error)
                raise
            return loaded(recorder, key, container, given, x)
        if kind is tuple:
            if type(index) is Box:
                items = elements(recorder, made, container)
                return loaded(recorder, key, items, index, items[index.value])
            return container[index]
        if kind is str and type(index) is not Box:
            return container[index]
        text = plain(container)
        if type(text) is str and type(index) is slice:
            ends = [index.start, index.stop, index.step]
            if any(type(plain(x)) not in (int, type(None)) for x in ends):
                return refuse("a text is sliced by something else than integers")
            value = equivalents.part_of_text(text, *map(plain, ends))
            return recorder.value(key, equivalents.part_of_text, (container, *ends), value)
        if type(text) is str and type(plain(index)) is int:
            try:
                x = text[plain(index)]
            except IndexError as error:
                recorder.failed(key, LOAD, (container, index), error)
                raise
            return loaded(recorder, key, container, index, x)
        if is_object(recorder, container):
            method = recorder.outside.of_class(kind, "__getitem__")
            if type(method) is types.FunctionType:
                return call(method, container, index)
        return refuse(f"an item of a {kind.__name__} is read")

    return hook


def copied(recorder: Recorder, key: Any, items: Any, part: slice) -> Any:
    """A slice of a list."""
    if type(items) is not list or not (
        part.step is None or type(part.step) is int is not part.step < 1
    ):
        return refuse("a slice with a step is taken")
    if part.start is None is part.stop and part.step is None:
        return recorder.born(key, REPEAT, (items, 1), items[:])
    given = (items, part.start, part.stop, part.step)
    return call_function(recorder, key, equivalents.part_of, given, {})


def apart(items: list[Any], other: list[Any]) -> list[Any]:
    """Refuse a list that is put behind itself."""
    if items is other:
        refuse("a list is extended by itself")
    return other


def elements(recorder: Recorder, key: Any, items: tuple[Any, ...]) -> list[Any]:
    """A list of what is in a tuple."""
    made = list(items)
    return born_list(recorder, key, made)


def born_list(recorder: Recorder, key: Any, items: list[Any]) -> Any:
    """A list that was made of these items."""
    return recorder.born(
        key, LIST, [recorder.packed((key, i), x) for i, x in enumerate(items)], items
    )


def setitem(site: Site) -> Hook:
    key, call = object(), calling(site)

    def hook(container: Any, index: Any, x: Any) -> None:
        recorder = now()
        must_be_own(recorder, container)
        if type(container) is list or type(container) is dict:
            given, where = indexed(recorder, (key, "index"), index)
            value = recorder.packed(key, x)
            try:
                container[where] = x
            except (LookupError, TypeError) as error:
                recorder.failed(key, STORE, (container, given, value), error)
                raise
            recorder.add(key, STORE, (container, given, value), type(None))
            return
        method = recorder.outside.of_class(type(container), "__setitem__")
        if type(method) is not types.FunctionType:
            refuse(f"an item of a {type(container).__name__} is written")
        call(method, container, index, x)

    return hook


def born(site: Site) -> Hook:
    key = object()

    def hook(container: Any) -> Any:
        recorder = now()
        if id(container) in recorder.memories:  # `make_dict` has made it
            return container
        if type(container) is list:
            return born_list(recorder, key, container)
        return born_dict(recorder, key, [*container], [*container.values()])

    return hook


def born_dict(recorder: Recorder, key: Any, keys: list[Any], values: list[Any]) -> Any:
    """A dict that was made of these, with each key once."""
    made = {}
    for k, x in zip(keys, values, strict=True):
        if type(plain(k)) not in ATOMS:
            refuse(f"a {type(k).__name__} is a key")
        made[plain(k)] = x
    if len(made) < len(keys):
        refuse("a dict is given a key twice")
    packed = [recorder.packed((key, i), x) for i, x in enumerate(values)]
    return recorder.born(
        key, DICT, [y for pair in zip(keys, packed, strict=True) for y in pair], made
    )


def make_dict(site: Site) -> Hook:
    key = object()
    return lambda items: born_dict(now(), key, [*items[::2]], [*items[1::2]])


def extended(site: Site) -> Hook:
    """``[*items]`` or a list of constants: it was made empty, and holds what it holds now."""
    key = object()

    def hook(items: Any) -> Any:
        recorder = now()
        must_be_own(recorder, items)
        for i, x in enumerate(items):
            recorder.add(key, APPEND, (items, recorder.packed((key, i), x)), type(None))
        return items

    return hook


def list_append(site: Site) -> Hook:
    key = object()
    return lambda x, items: append(now(), key, items, x)


def append(recorder: Recorder, key: Any, items: Any, x: Any) -> None:
    must_be_own(recorder, items)
    recorder.add(key, APPEND, (items, recorder.packed(key, x)), type(None))
    items.append(x)


yielded = list_append


class Collected:
    """What a generator expression gives that has run at once, for the call of which it is an argument."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def collected(site: Site) -> Hook:
    return Collected


def put(site: Site) -> Hook:
    store = setitem(site)
    return lambda x, index, container: store(container, index, x)


def unpack(site: Site) -> Hook:
    key = object()

    def hook(x: Any) -> Any:
        if type(x) is tuple:
            return x
        recorder = now()
        if type(x) is list and id(x) in recorder.memories:
            return apart_by_length(recorder, key, x)
        return refuse(f"a {type(x).__name__} is taken apart")

    return hook


def apart_by_length(recorder: Recorder, key: Any, items: list[Any]) -> tuple[Any, ...]:
    """What is in a list that has this length in every run."""
    count = recorder.value(key, LENGTH, (items,), len(items))
    decided(recorder, key, operator.eq, (count, len(items)), True)
    return tuple([loaded(recorder, (key, i), items, i, x) for i, x in enumerate([*items])])


def spread(site: Site) -> Hook:
    return lambda x: x if type(x) is tuple else refuse(f"a {type(x).__name__} is taken apart")


# Iteration


class Source:
    """What may be iterated over once: a range, what makes an item of a number of it, and a check at the end."""

    __slots__ = ("check", "give", "range")

    def __init__(
        self, range: Box, give: Callable[[Any], Any], check: Callable[[], None] | None = None
    ) -> None:
        self.range = range
        self.give = give
        self.check = check


class Items:
    """The iterator of a counted loop."""

    __slots__ = ("key", "source", "steps")

    def __init__(self, key: Any, source: Source) -> None:
        self.key = key
        self.source = source
        self.steps = builtins.iter(source.range.value)

    def __iter__(self) -> Items:
        return self

    def __next__(self) -> Any:
        recorder = now()
        if not recorder.begins():
            refuse("something else than a loop asks for the next item")
        try:
            i = next(self.steps)
        except StopIteration:
            recorder.decide(EXHAUSTED, True)
            if self.source.check is not None:
                self.source.check()
            raise
        recorder.decide(EXHAUSTED, False)
        return self.source.give(recorder.value(self.key, ITEM, (), i))


def source_of(recorder: Recorder, key: Any, x: Any) -> Source:
    kind = type(x)
    if kind is Source:
        return x  # type: ignore[no-any-return]
    if kind is dict and id(x) in recorder.memories:
        return source_of_dict(recorder, key, x, "keys")
    if kind is Box and type(x.value) is range:
        return Source(x, lambda i: i)
    if kind is tuple:
        x = elements(recorder, (key, "items"), x)
    elif type(plain(x)) is str:
        size = len(plain(x))
        count = recorder.value((key, "count"), builtins.len, (x,), size)
        steps = recorder.value((key, "range"), range, (count,), range(size))
        return Source(steps, lambda i: loaded(now(), (key, "load"), x, i, plain(x)[i.value]))
    elif not (kind is list and id(x) in recorder.memories):
        return refuse(f"it loops over a {kind.__name__}")  # type: ignore[no-any-return]
    items: list[Any] = x
    size = len(items)
    count = recorder.value((key, "count"), LENGTH, (items,), size)
    steps = recorder.value((key, "range"), range, (count,), range(size))

    def give(i: Box) -> Any:
        if i.value >= len(items):
            refuse("a list grows shorter while it is looped over")
        return loaded(now(), (key, "load"), items, i, items[i.value])

    def check() -> None:
        """The list must be as long as it was: Python asks at each step."""
        now_there = now().value((key, "again"), LENGTH, (items,), len(items))
        if not decided(now(), (key, "same"), operator.eq, (now_there, count), len(items) == size):
            refuse("a list grows while it is looped over")

    return Source(steps, give, check)


def iter(site: Site) -> Hook:
    key = object()

    def hook(x: Any) -> Any:
        recorder = now()
        source = source_of(recorder, key, x)
        recorder.iterable = source.range
        return Items(key, source)

    return hook


# Loops, decisions, exceptions


def loop(site: Site, loop: Loop) -> Hook:
    key, count = object(), len(loop.carried)

    def hook(*values: Any) -> Any:
        out = now().head(loop, sys._getframe(1), values, key)[:count]
        return out[0] if count == 1 else out

    return hook


def leave(site: Site, loops: Any, names: tuple[int, ...], exit: int) -> Hook:
    def hook(*values: Any) -> Any:
        out = now().leave(loops, sys._getframe(1), names, values, exit)
        return out[0] if len(out) == 1 else tuple(out)

    return hook


def fork(site: Site, of: Any) -> Hook:
    key = object()
    return lambda _: now().scope(key, of, sys._getframe(1))


def join(site: Site, forks: Any, names: tuple[int, ...], pushed: int) -> Hook:
    def hook(*values: Any) -> Any:
        out = now().join(forks, names, pushed, values if names or pushed else (), sys._getframe(1))
        return out[0] if len(out) == 1 else tuple(out)

    return hook


def caught_here(site: Site, index: int, around: Any, names: tuple[int, ...]) -> Hook:
    def hook(error: BaseException, *values: Any) -> Any:
        if not isinstance(error, Exception):
            raise error
        if isinstance(error, (RecursionError, MemoryError)):
            refuse(f"a {type(error).__name__} is caught")
        recorder = now()
        out = recorder.unwind(recorder.floor, error, values, sys._getframe(1), index)
        return out[0] if len(out) == 1 else tuple(out)

    return hook


def shared(site: Site) -> Hook:
    return lambda _: refuse("a variable of an enclosing function is written")


def unsure(site: Site) -> Hook:
    return lambda _: refuse("a variable that may have no value is left behind by a loop")


# Calls


def call(site: Site) -> Hook:
    return calling(site)


def call_ex(site: Site) -> Hook:
    run = calling(site)

    def hook(fn: Any, args: Any, kwargs: Any = None) -> Any:
        if type(args) is not tuple or kwargs:
            return refuse("arguments are spread from a container")
        return run(fn, *args)

    return hook


CONSUMERS = frozenset((list, tuple, sorted, sum, max, min, math.fsum))


def calling(site: Site) -> Hook:
    return calling_of(object())


def calling_of(key: Any) -> Hook:

    def hook(fn: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = now()
        kind = type(fn)
        if args and type(args[0]) is Collected:
            return consumed(recorder, key, fn, (args[0].items, *args[1:]), kwargs)
        if args and type(args[0]) is Source and fn in CONSUMERS:
            items = call_function(recorder, (key, "items"), equivalents.items_of, args[:1], {})
            return consumed(recorder, key, fn, (items, *args[1:]), kwargs)
        if kind is types.MethodType:
            fn, args, kind = fn.__func__, (fn.__self__, *args), type(fn.__func__)
        if args and type(args[0]) is Box and type(args[0].value) is Random:
            return drawn(recorder, key, fn, args, kwargs)
        if kind is types.FunctionType:
            return call_function(recorder, key, fn, args, kwargs)
        if kind is types.MethodDescriptorType and fn.__objclass__ is str and not kwargs:
            return of_text(recorder, key, fn, args)
        if kind is type:
            return construct(recorder, key, fn, args, kwargs)
        if kind is types.BuiltinFunctionType:
            return call_builtin(recorder, key, fn, args, kwargs)
        return refuse(f"a {kind.__name__} is called")

    return hook


def consumed(recorder: Recorder, key: Any, fn: Any, args: Any, kwargs: Any) -> Any:
    """A call that takes all that a generator expression gives, and does nothing else in between."""
    items = args[0]
    if fn is builtins.list and len(args) == 1:
        return items
    if fn is builtins.tuple and len(args) == 1:
        return apart_by_length(recorder, key, items)
    if fn is builtins.sorted:
        return ordered(recorder, key, args, kwargs)
    if any(fn is one for one in OF_NUMBERS):
        if all(type(plain(x)) in NUMBERS for x in items):
            return call_builtin(recorder, key, fn, args, kwargs)
    return refuse(
        "a generator expression is given to something else than sum, max, list and the like"
    )


OF_NUMBERS = (builtins.sum, builtins.max, builtins.min, math.fsum, math.prod)


DRAWS = frozenset(
    "random uniform gauss normalvariate expovariate randint randrange getrandbits".split()
)


def drawn(recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """A number from a generator of the run's own, which the program makes and asks in the same order."""
    given = args[1:]
    if kwargs or any(type(x) not in NUMBERS and type(plain(x)) is not int for x in given):
        return refuse(f"{fn.__name__} is given numbers that have a derivative")
    value = fn(*map(plain, args))
    if type(value) not in NUMBERS:
        return refuse(f"{fn.__name__} gives a {type(value).__name__}")
    return recorder.value(key, fn, args, value)


def of_text(recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...]) -> Any:
    """A method of a text: what it gives is a text, a number, or a decision."""
    values = [plain(x) for x in args]
    if not all(type(x) in (str, int) for x in values):
        return refuse(f"{fn.__name__} of a text is given something else")
    value = fn(*values)
    if type(value) is bool:
        return decided(recorder, key, fn, args, value)
    if type(value) is not str and type(value) is not int:
        return refuse(f"{fn.__name__} gives a {type(value).__name__}")
    return recorder.value(key, fn, args, value)


def call_function(recorder: Recorder, key: Any, fn: Any, args: Any, kwargs: Any) -> Any:
    if fn is equivalents.shared:
        raise Passing("equal numbers share the slope of max or min")
    if fn in registry.rules or fn in handlers or registry.package_of(fn) in registry.awaited:
        return refuse(f"{fn.__name__} has a rule")
    code = fn.__code__
    if code.co_flags & 0x2A0:  # generators and asynchronous functions
        return refuse(f"{fn.__name__} is a generator")
    if kwargs and code in recorder.codes:
        return refuse(f"{fn.__name__} calls itself with keywords")
    twin = recorder.twins.get(id(fn))
    if twin is None or twin[0] is not fn:
        twin = recorder.twins[id(fn)] = fn, recorder.outside.function(fn, sys.modules[__name__])
    return recorder.call(key, twin[1], lambda *given: twin[1](*given, **kwargs), args)


def construct(recorder: Recorder, key: Any, cls: Any, args: Any, kwargs: Any) -> Any:
    if kwargs and not flags_of(cls) & HEAP_TYPE:
        return refuse(f"{cls.__name__} is given keywords")
    if cls in NUMBERS and len(args) == 1:
        return converted(recorder, key, cls, args[0])
    if cls is bool and len(args) == 1 and type(args[0]) is Box:
        return decided(recorder, key, operator.truth, args, bool(args[0].value))
    if cls is range and all(type(plain(x)) is int for x in args):
        return recorder.value(key, range, args, range(*map(plain, args)))
    if cls is Random and len(args) == 1 and type(plain(args[0])) is int:
        return recorder.value(key, Random, args, Random(plain(args[0])))
    if cls in SEQUENCES and not kwargs:
        return sequence(recorder, key, cls, args)
    if issubclass(cls, Exception):
        return exception(cls, args)
    if flags_of(cls) & HEAP_TYPE:
        return instance(recorder, key, cls, args, kwargs)
    return refuse(f"{cls.__name__} is called")


def sequence(recorder: Recorder, key: Any, cls: Any, args: Any) -> Any:
    """Lists and iterators made of others."""
    if not args and cls is not tuple:
        return recorder.born(key, *((LIST, (), []) if cls is list else (DICT, (), cls())))
    if cls is dict and len(args) == 1 and type(args[0]) is dict:
        return call_function(recorder, key, equivalents.copied, args, {})
    if (cls is list or cls is tuple) and len(args) == 1:
        (x,) = args
        if type(x) is tuple:
            return x if cls is tuple else elements(recorder, key, x)
        if cls is list and type(x) is list and id(x) in recorder.memories:
            return recorder.born(key, REPEAT, (x, 1), [*x])
    if cls is enumerate and len(args) == 1:
        source = source_of(recorder, (key, 0), args[0])
        if source.range.value != range(len(source.range.value)):
            return refuse("it counts something else than a list")
        return Source(source.range, lambda i: (i, source.give(i)), source.check)
    if cls is reversed and len(args) == 1:
        x = args[0]
        if type(plain(x)) is range:
            value = equivalents.backwards(plain(x))
            return Source(recorder.value(key, equivalents.backwards, (x,), value), lambda i: i)
        if type(x) is list and id(x) in recorder.memories:
            source = source_of(recorder, (key, 0), x)
            n = len(source.range.value)
            last = recorder.value((key, 1), operator.sub, (count_of(recorder, key, x), 1), n - 1)
            steps = recorder.value((key, 2), range, (last, -1, -1), range(n - 1, -1, -1))
            return Source(steps, source.give, source.check)
    if cls is zip and len(args) == 2:
        a, b = [source_of(recorder, (key, i), x) for i, x in enumerate(args)]
        if any(x.range.value != range(len(x.range.value)) for x in (a, b)):
            return refuse("it zips something else than lists")
        ranges = [x.range for x in (a, b)]
        counts = [
            recorder.value((key, "count", i), builtins.len, (x,), len(x.value))
            for i, x in enumerate(ranges)
        ]
        n = min(plain(counts[0]), plain(counts[1]))
        least = recorder.value((key, "least"), min, counts, n)
        steps = recorder.value((key, "steps"), range, (least,), range(n))

        def check() -> None:
            for x in (a, b):
                if x.check is not None:
                    x.check()

        return Source(steps, lambda i: (a.give(i), b.give(i)), check)
    return refuse(f"{cls.__name__} is called")


def count_of(recorder: Recorder, key: Any, items: Any) -> Box:
    return recorder.value((key, "count"), LENGTH, (items,), len(items))


OF_TEXT = frozenset(
    "upper lower strip lstrip rstrip startswith endswith isdigit isalpha isspace find count replace".split()
)
SEQUENCES = frozenset((list, tuple, dict, set, enumerate, zip, reversed))
PLAIN_ERRORS = (ArithmeticError, ValueError, LookupError, TypeError, RuntimeError, AssertionError)


def exception(cls: Any, args: Any) -> Any:
    """An exception, of a class that does nothing of its own when it is made. What it holds cannot be read."""
    known = next((base for base in cls.__mro__ if base.__module__ == "builtins"), None)
    own = [static(cls, name) is not static(known, name) for name in ("__init__", "__new__")]  # type: ignore[arg-type]
    if any(own) or not (known is Exception or issubclass(cls, PLAIN_ERRORS)):
        return refuse(f"a {cls.__name__} is made")
    return cls(*args)


def converted(recorder: Recorder, key: Any, cls: Any, x: Any) -> Any:
    """``float(x)`` and ``int(x)``."""
    value = plain(x)
    if type(value) is cls:
        return x
    if type(x) in (bool, int, float):
        return cls(x)
    if type(value) not in NUMBERS and type(value) is not str:
        return refuse(f"{cls.__name__} of a {type(value).__name__} is called")
    try:
        made = cls(value)
    except Exception as error:
        recorder.failed(key, cls, (x,), error)
        raise
    return recorder.value(key, cls, (x,), made)


def instance(recorder: Recorder, key: Any, cls: Any, args: Any, kwargs: Any) -> Any:
    """An object of a class of the user's."""
    outside = recorder.outside
    if outside.of_class(cls, "__new__") is not object.__new__:
        return refuse(f"a {cls.__name__} is made in a way of its own")
    if static(cls, "__del__") is not MISSING:
        return refuse(f"a {cls.__name__} has __del__")
    method = outside.of_class(cls, "__init__")
    obj = object.__new__(cls)
    recorder.born((key, "new"), OBJECT, (cls,), obj)
    if type(method) is types.FunctionType:
        if call_function(recorder, key, method, (obj, *args), kwargs) is not None:
            return refuse("__init__ gives something")
    elif method is not object.__init__ or args or kwargs:
        return refuse(f"a {cls.__name__} is made in C")
    return obj


def call_builtin(
    recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    owner = fn.__self__
    if type(owner) is list and id(owner) in recorder.memories:
        return method_of_list(recorder, key, owner, fn.__name__, args, kwargs)
    if fn.__name__ == "fromkeys" and owner is dict and len(args) == 2:
        return call_function(recorder, key, equivalents.fromkeys, args, {})
    if type(owner) is set and id(owner) in recorder.memories:
        return method_of_set(recorder, key, owner, fn.__name__, args)
    if fn is builtins.getattr and len(args) == 2 and type(args[1]) is str:
        return getattr_of(key, args[1])(args[0])
    if fn is builtins.setattr and len(args) == 3 and type(args[1]) is str:
        return written(recorder, key, args[0], args[1], args[2])
    if type(owner) is dict and id(owner) in recorder.memories:
        return method_of_dict(recorder, key, owner, fn.__name__, args, kwargs)
    if fn is builtins.sorted:
        return ordered(recorder, key, args, kwargs)
    if kwargs:
        return refuse(f"{fn.__name__} is given keywords")
    if not isinstance(owner, types.ModuleType):
        return refuse(f"{fn.__name__} of a {type(owner).__name__} is called")
    if fn is builtins.len and len(args) == 1:
        (x,) = args
        if id(x) in recorder.memories and type(x) in CONTAINERS:
            return recorder.value(key, LENGTH, (x,), len(x))
        if type(x) is tuple or type(x) is str:
            return len(x)
        if type(x) is Box and type(x.value) in (range, str):
            return recorder.value(key, len, (x,), len(x.value))
    if (fn is builtins.max or fn is builtins.min) and len(args) > 1:
        return extreme(recorder, key, fn, args)
    if fn is builtins.isinstance and len(args) == 2:
        return is_instance(recorder, *args)
    if len(args) == 1 and fn in ONE_ITERABLE and type(args[0]) in (list, tuple):
        return call_function(recorder, key, ONE_ITERABLE[fn], args, {})
    if (fn is builtins.sum or fn is math.fsum) and len(args) == 1 and type(args[0]) is list:
        return total(recorder, key, fn, args[0])
    if (same := equivalent(fn)) is not None:
        return call_function(recorder, key, same, args, {})
    if all(type(x) is Box or type(x) in NUMBERS for x in args) and is_primitive(fn):
        if not any(type(x) is Box for x in args):
            return fn(*args)
        try:
            value = fn(*map(plain, args))
        except Exception as error:
            recorder.failed(key, fn, args, error)
            raise
        if type(value) is bool:
            return decided(recorder, key, fn, args, value)
        if type(value) not in NUMBERS:
            return refuse(f"{fn.__name__} gives a {type(value).__name__}")
        return recorder.value(key, fn, args, value)
    return refuse(f"{fn.__name__} is called")


def total(recorder: Recorder, key: Any, fn: Any, items: list[Any]) -> Any:
    """The sum of a list of numbers, which is an integer where there are none."""
    values = [plain(x) for x in items]
    if id(items) not in recorder.memories or any(type(x) not in NUMBERS for x in values):
        return refuse("something else than numbers is added up")
    recorder.scope(key, fn)
    count = count_of(recorder, key, items)
    if not decided(recorder, (key, "any"), operator.truth, (count,), bool(items)):
        return recorder.closed([fn(())])[0]
    try:
        found = fn(values)
    except Exception:
        return refuse(f"{fn.__name__} raises")
    return recorder.closed([recorder.value((key, "sum"), fn, (items,), found)])[0]


def is_primitive(fn: Any) -> bool:
    """Whether a function in C has a rule, or no derivative, and does nothing but compute."""
    return fn in IN_C or (
        fn.__module__ == "math" and vars(math).get(fn.__name__) is fn and fn in registry.rules
    )


def is_instance(recorder: Recorder, x: Any, kinds: Any) -> bool:
    kinds = kinds if type(kinds) is tuple else (kinds,)
    if not all(type(k) is type and static(type(k), "__instancecheck__") for k in kinds):
        refuse("isinstance asks a class of its own kind")
    return isinstance(plain(x), kinds)


def extreme(recorder: Recorder, key: Any, fn: Any, args: tuple[Any, ...]) -> Any:
    """``max`` or ``min`` of numbers: decisions whose ways meet again. Equal floats share the slope."""
    if any(type(plain(x)) not in NUMBERS for x in args):
        return refuse("max or min of other things than numbers")
    if not any(type(x) is Box for x in args):
        return fn(*args)
    better = operator.gt if fn is max else operator.lt
    recorder.scope(key, fn)
    best = args[0]
    for i, x in enumerate(args[1:]):
        if asked(recorder, (key, i), better, x, best):
            best = x
    if type(plain(best)) is float:
        given = [
            x
            for i, x in enumerate(args)
            if x is best or asked(recorder, (key, i, "tie"), operator.eq, x, best)
        ]
        if len(given) > 1:
            best = recorder.value(key, fn, given, plain(best))
    return recorder.closed([best])[0]


def asked(recorder: Recorder, key: Any, fn: Any, x: Any, y: Any) -> bool:
    """Whether one number compares to another."""
    value = fn(plain(x), plain(y))
    if type(x) is not Box and type(y) is not Box:
        return bool(value)
    return decided(recorder, key, fn, (x, y), value)


def method_of_list(
    recorder: Recorder, key: Any, items: list[Any], name: str, args: tuple[Any, ...], kwargs: Any
) -> Any:
    if name == "sort" and not args:
        return call_function(recorder, key, equivalents.sort, (items, *order_of(kwargs)), {})
    if kwargs:
        return refuse(f"{name} of a list is given keywords")
    if name == "append" and len(args) == 1:
        return append(recorder, key, items, args[0])
    if name == "copy" and not args:
        return recorder.born(key, REPEAT, (items, 1), items[:])
    if name == "pop" and not args:
        must_be_own(recorder, items)
        if not items:
            try:
                items.pop()
            except IndexError as error:
                recorder.failed(key, POP, (items,), error)
                raise
        x = recorder.taken(key, POP, (items,), items[-1])
        items.pop()
        return x
    same = OF_LISTS.get((name, len(args)))
    if same is None or (name == "extend" and type(args[0]) is not list):
        return refuse(f"{name} of a list is called")
    if name == "extend":
        apart(items, args[0])
    return call_function(recorder, key, same, (items, *args), {})


def method_of_set(
    recorder: Recorder, key: Any, held: set[Any], name: str, args: tuple[Any, ...]
) -> Any:
    """A set is a dict of its elements in the program; its order is not looked at."""
    if name != "add" or len(args) != 1:
        return refuse(f"{name} of a set is called")
    must_be_own(recorder, held)
    given, where = indexed(recorder, (key, "index"), args[0])
    held.add(where)
    recorder.add(key, STORE, (held, given, None), type(None))


def method_of_dict(
    recorder: Recorder,
    key: Any,
    held: dict[Any, Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: Any,
) -> Any:
    if name in ("keys", "values", "items") and not args:
        return source_of_dict(recorder, key, held, name)
    if name == "get" and 0 < len(args) < 3 and not kwargs:
        default = args[1] if len(args) == 2 else None
        return call_function(recorder, key, equivalents.get, (held, args[0], default), {})
    if name == "setdefault" and len(args) == 2 and not kwargs:
        return call_function(recorder, key, equivalents.setdefault, (held, *args), {})
    return refuse(f"{name} of a dict is called")


def source_of_dict(recorder: Recorder, key: Any, held: dict[Any, Any], what: str) -> Source:
    """The keys of a dict as they are now, or its values, or both."""
    keys = recorder.born((key, "keys"), list, (held,), [*held])
    source = source_of(recorder, (key, "each"), keys)

    def give(i: Box) -> Any:
        k = source.give(i)
        if what == "keys":
            return k
        x = loaded(now(), (key, "value"), held, k, held[plain(k)])
        return x if what == "values" else (k, x)

    def check() -> None:
        """The dict must have as many keys as it had: Python asks at each step."""
        there = now().value((key, "again"), LENGTH, (held,), len(held))
        equal = len(held) == len(keys)
        count = now().value((key, "count"), LENGTH, (keys,), len(keys))
        if not decided(now(), (key, "same"), operator.eq, (there, count), equal):
            refuse("a dict changes its size while it is looped over")

    return Source(source.range, give, check)


OF_LISTS = {
    ("extend", 1): equivalents.extend, ("insert", 2): equivalents.insert, ("pop", 1): equivalents.pop,
    ("reverse", 0): equivalents.reverse,
}  # fmt: skip


def order_of(kwargs: dict[str, Any]) -> tuple[Any, bool]:
    """The key and the direction of a sort."""
    key, backwards = kwargs.get("key"), kwargs.get("reverse", False)
    if not {*kwargs} <= {"key", "reverse"} or type(backwards) is not bool:
        refuse("a sort is given something else")
    if key is not None and type(key) is not types.FunctionType:
        refuse("a sort is given a key that is no Python function")
    return key, backwards


def ordered(recorder: Recorder, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``sorted``."""
    if len(args) != 1 or type(args[0]) not in (list, tuple):
        return refuse("something else than a list is sorted")
    made = sequence(recorder, (key, "copy"), list, args)
    call_function(recorder, key, equivalents.sort, (made, *order_of(kwargs)), {})
    return made
