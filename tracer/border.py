"""The border between the traced function and the world outside it.

Words
-----
enter     let a value from outside in (`boxing`): numbers and arrays become inputs of the tape, containers get shadows.
shadow    a copy of an outside container in which boxes stand for the leaves.
lower     take boxes out again (`unboxing`): the plain value that the outside is allowed to see.
settle    when the run ends (`write_back`): carry what was done to shadows over to the originals.

Nobody outside ever sees a box. Numbers and arrays inside an outside *container* are replaced in a copy, which is
compared with the original when the run ends. Outside *objects* stay themselves: they hold plain values, and the
tracer keeps the boxes that belong to them in an overlay, under the object and the attribute's name.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import frames
from .arrays import current, is_traced_array
from .box import BOXES, ArrayBox, Box
from .kinds import MISSING, has, has_dict, is_one_of, isinstance, own_dict
from .session import Tracer
from .structure import (
    Branch,
    Tree,
    attributes,
    is_container,
)
from .tape import ops_in

ATOMS = frozenset(
    (
        int,
        bool,
        str,
        bytes,
        type(None),
        type,
        np.ufunc,
        np.dtype,
        type(Ellipsis),
        type(NotImplemented),
        range,
    )
    + (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodDescriptorType)
    + (
        types.WrapperDescriptorType,
        types.MethodWrapperType,
        types.ClassMethodDescriptorType,
        types.MethodType,
    )
    + (types.CodeType, types.GeneratorType, slice, property, staticmethod, classmethod)
)


# Methods in C: ``__getitem__`` and its like are of the one kind for some containers, of the other for some.
OF_C = frozenset((types.BuiltinFunctionType, types.MethodWrapperType))


def is_method(kind: type) -> bool:
    """Whether a class is one of bound methods; it is not compared by its own class."""
    return (
        kind is types.MethodType
        or kind is types.BuiltinFunctionType
        or kind is types.MethodWrapperType
    )


def works_on(method: Any) -> bool:
    """Whether a method is bound to a container or an array, for which the run has something else."""
    return is_container(method.__self__) or is_traced_array(method.__self__)


def reaches(tree: Tree, other: Tree) -> bool:
    """Whether a tree is in another one, or is it."""
    todo, seen = [tree], set()
    while todo:
        tree = todo.pop()
        if tree is other:
            return True
        if isinstance(tree, Branch) and id(tree) not in seen:
            seen.add(id(tree))
            todo += tree.parts.values()
    return False


OUTSIDE = frozenset(("outside", "captured"))


def remember(
    tracer: Tracer,
    original: Any,
    shadow: Any,
    name: str = "",
    role: str = "outside",
    now: Any = None,
) -> Any:
    """Pair a shadow with its original, which holds ``now`` what the shadow was made of.

    What is read from outside is the same object each time it is read.
    """
    if role in OUTSIDE:
        tracer.shadows.setdefault(id(original), (original, shadow))
    tracer.originals[id(shadow)] = (shadow, original)
    tracer.shadows_of.setdefault(id(original), []).append(shadow)
    tracer.names[id(shadow)] = name
    if now is not None:
        tracer.before[id(shadow)] = tracer.mirrors.get(id(original), now)
        if tracer.reads is not None:
            tracer.found[id(shadow)] = now
    return shadow


def reflected(tracer: Tracer, value: Any) -> Any:
    """What C code gives of objects that the run has put there: of a container that was lowered, the run's own again."""
    if not tracer.shadows or not is_container(value):
        return value
    known = tracer.shadows.get(id(value))
    if known is not None:
        return known[1]
    if id(value) in tracer.originals or isinstance(value, (set, frozenset)):
        return value
    parts = dict(frames.items_of(value, frames.native(type(value))))
    inside = {key: reflected(tracer, x) for key, x in parts.items()}
    if all(inside[key] is x for key, x in parts.items()):
        return value
    if isinstance(value, tuple):
        return frames.made(type(value), {**frames.parts_of(value), **inside})
    for key, x in inside.items():
        value[key] = x
    return value


def contents(container: Any) -> Any:
    """What a container holds at this moment, whatever another thread does to it in the next one."""
    if isinstance(container, dict):
        return frames.all_of(dict(container), container)
    return set(container) if isinstance(container, set) else list(container)


SEALABLE = frozenset(
    (
        types.FunctionType,
        types.MethodType,
        types.GeneratorType,
        types.BuiltinFunctionType,
        types.MethodWrapperType,
        *(staticmethod, classmethod, property),
    )
)


# What stands, in variables of the traced function, for something of plain Python's; and how to get that.
STAND_INS: dict[type, Callable[[Any], Any]] = {}


def empty_like(value: Any) -> Any:
    if type(value) is defaultdict:
        return defaultdict(value.default_factory)
    return deque(maxlen=value.maxlen) if type(value) is deque else type(value)()


def one_with(made: Any, held: Any) -> Any:
    """What is held, in the place of a tuple that was made anew of the same things."""
    if made is held or type(made) is not tuple or type(held) is not tuple or len(made) != len(held):
        return made
    same = all(one_with(x, y) is y for x, y in zip(made, held, strict=True))
    return held if same else made


def is_held(container: Any, now: Any) -> bool:
    """Whether a container holds what another one holds, in this order."""
    return are_held(container, list(now.items() if isinstance(now, dict) else now))


def are_held(container: Any, items: list[Any]) -> bool:
    """Whether a container holds these very objects now, in this order; of a dict, pairs of key and value."""
    held = list(container.items() if isinstance(container, dict) else container)
    if len(held) != len(items):
        return False
    if isinstance(container, dict):
        pairs = zip(held, items, strict=True)
        return all(a is b and x is y for (a, x), (b, y) in pairs)
    if isinstance(container, set):
        return {*map(id, held)} == {*map(id, items)}
    return all(a is b for a, b in zip(held, items, strict=True))


def merge(original: Any, before: Any, now: Any) -> bool:
    """Add to a container what was added since ``before``: another thread may have added to it meanwhile.

    Returns False where that is not all that was done.
    """
    if isinstance(original, set):
        was, then = {*map(id, before)}, {*map(id, now)}
        if was - then and then - was and is_held(original, before):
            return False  # one may have come for another one that is equal: no ``__eq__`` is asked
        original.difference_update(before - now)
        original.update(now - before)
        return True
    size = len(before)
    if not is_held(list(before), list(now)[:size]):
        return False
    if isinstance(original, dict):
        old = [*before.values(), *[MISSING] * (len(now) - size)]
        new = [
            MISSING if a is b else b for a, b in zip(old, now.values(), strict=True)
        ]  # by position: nobody's ``__hash__`` is asked
        frames.assign(original, now, new)
        return True
    if not is_held(before, list(original)[:size]) or getattr(original, "maxlen", None) is not None:
        return False
    original.extend(now[size:])
    return True


COLLECTIONS = (list, dict, set, deque)


def items_of(held: Any) -> list[tuple[Any, Any]]:
    """The items of a collection, with their keys or indices; none of its own methods is asked."""
    return list(frames.items_of(held, frames.native(type(held))))


def base_of(held: Any) -> Any:
    return frames.native(type(held))


def put_items(held: Any, keys: list[Any], values: list[Any]) -> None:
    """Let a collection hold other values under some of its keys or indices; MISSING stands for none."""
    if base_of(held) in frames.MAPPINGS:
        put = {id(key): x for key, x in zip(keys, values, strict=True)}
        own = frames.items_in(frames.parts_of(held))
        frames.assign(held, own, [put.get(id(key), MISSING) for key in own])
        return
    for i, x in zip(keys, values, strict=True):
        if x is not MISSING:
            base_of(held).__setitem__(held, i, x)


def changed_shadow(tracer: Tracer, original: Any) -> Any:
    """The shadow of an argument that was written to already, if it is the same container; else None."""
    for shadow in tracer.shadows_of.get(id(original), ()):
        held = tracer.admitted.get(id(shadow))
        if held is not None and not is_held(held, shadow):
            if tracer.reads is not None:
                tracer.reads.problem(
                    f"{tracer.names[id(shadow)]} is changed, and read from outside"
                )
            return shadow
    return None


def siblings(tracer: Tracer, shadow: Any) -> list[Any]:
    """The other shadows of a container's original, which came in at several places, and what it is joined with."""
    known = tracer.originals.get(id(shadow))
    found = tracer.joined.get(id(shadow), [])
    if known is None or is_one_of(type(shadow), (tuple, frozenset)):
        return found
    return [*[x for x in tracer.shadows_of[id(known[1])] if x is not shadow], *found]


def join(tracer: Tracer, container: Any, copy: Any) -> None:
    """Let a copy be one with a container that the run sees: what is written to one is written to the other."""
    known = tracer.originals.get(id(container))
    if known is not None:
        tracer.originals[id(copy)] = (copy, known[1])
        tracer.shadows_of[id(known[1])].append(copy)
        tracer.names[id(copy)] = tracer.names.get(id(container), "")
        return
    group = [container, *tracer.joined.get(id(container), []), copy]
    for x in group:
        tracer.joined[id(x)] = [y for y in group if y is not x]


def part(tracer: Tracer, container: Any, copy: Any) -> None:
    """Undo ``join``."""
    if id(copy) in tracer.joined:
        for x in tracer.joined.pop(id(copy)):
            rest = [y for y in tracer.joined.pop(id(x)) if y is not copy]
            if rest:
                tracer.joined[id(x)] = rest
        return
    known = tracer.originals.pop(id(copy), None)
    if known is not None:
        found = tracer.shadows_of[id(known[1])]
        found[:] = [x for x in found if x is not copy]
        tracer.names.pop(id(copy), None)


def seen_attribute(tracer: Tracer, obj: Any, name: str, value: Any) -> Any:
    """An attribute as the traced function sees it, which may have traced values behind plain ones."""
    entry = tracer.overlay.get((id(obj), name))
    return entry[2] if entry is not None and entry[1] is value else value


def is_structure(value: Any) -> bool:
    """Whether a value is a container or an object with attributes, rather than something that is one thing."""
    kind = type(value)
    return not (
        (is_one_of(kind, ATOMS))
        or isinstance(value, (type, np.generic, np.ndarray, functools.partial, BaseException))
        or callable_only(value)
        or kind is types.CellType
        or is_one_of(kind, VIEWS)
    )


def boxes_behind(tracer: Tracer, value: Any, seen: set[int]) -> Iterator[Box]:
    """The boxes that can be reached from something that is no structure: a function, a set, a slice."""
    held: list[Any]
    todo = [value]
    while todo:
        value = todo.pop()
        kind = type(value)
        if is_one_of(kind, BOXES):
            yield value
            continue
        if id(value) in seen or isinstance(value, PLAIN_KINDS):
            continue
        seen.add(id(value))
        if isinstance(value, type):
            held = [x for x in list(own_dict(value).values()) if is_one_of(type(x), BOXES)]
        elif isinstance(value, BaseException):
            held = [value.args, own_dict(value)]
        elif kind is types.FunctionType:
            held = [value.__defaults__, value.__kwdefaults__, value.__closure__, value.__dict__]
        elif kind is types.CellType or not is_structure(value):
            held = frames.referents(value)
        elif frames.native(kind) is not None:
            held = [y for x in frames.parts_of(value).items() for y in x]
        else:
            held = [seen_attribute(tracer, value, k, x) for k, x in attributes(value).items()]
        todo += reversed(held)


def leads_to_box(tracer: Tracer, value: Any) -> bool:
    """Whether a box can be reached from a value: what lies outside, and nobody has written to, leads to none."""
    return any(True for _ in boxes_behind(tracer, value, set()))


PLAIN_KINDS = (
    (int, float, complex, str, bytes, np.ndarray, np.generic, np.dtype)
    + (types.ModuleType, types.CodeType, types.FrameType, types.TracebackType)
    + (Tracer,)  # to which iterators of ours lead, that stand in generators
)  # fmt: skip


def current_op(box: Box) -> Any:
    return current(box) if isinstance(box, ArrayBox) else box.op


def is_constant(tracer: Tracer, *operands: Any) -> bool:
    """Whether nothing among these operands has a derivative that somebody may ask for."""
    return not any(map(tracer.dependence.has, ops_in(operands)))


def callable_only(value: Any) -> bool:
    """Whether a value is a C callable or the like, with no attributes to look into."""
    return callable(value) and not has_dict(value) and not attributes(value)


def stay_outside(tracer: Tracer, value: Any) -> None:
    """An object keeps plain values; a collection of a class of its own does when the run has ended."""
    if isinstance(value, COLLECTIONS):
        tracer.outside[id(value)] = value
        tracer.contents[id(value)] = items_of(value)
    else:
        see(tracer.outside, value)


def see(known: dict[int, Any], value: Any) -> None:
    """Note an object among others that are known, for as long as it lives: the run does not prolong that."""
    key = id(value)
    if key not in known:
        try:
            known[key] = weakref.ref(value, lambda _: known.pop(key, None))
        except TypeError:
            known[key] = value


TABLES: tuple[dict[Any, Any], ...] = ({}, OrderedDict())


VIEWS = {
    type(view): name
    for table in TABLES
    for name in ("keys", "values", "items")
    for view in (getattr(table, name)(),)
}


def is_iterator(value: Any) -> bool:
    """Whether a value is one of the iterators of Python itself."""
    cls = type(value)
    return cls.__module__ in (
        "builtins",
        "itertools",
        "collections",
        "_collections_abc",
    ) and has(cls, "__next__")
