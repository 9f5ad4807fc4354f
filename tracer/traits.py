"""Traits: what the arguments of a run hold beside numbers. A tape takes it over, and holds for the same alone.

Words
-----
stream    a generator of random numbers: its draws are ops, done with the one that is given.
path      the keys that lead to a part of an argument.
trait     what a part without a derivative is known by: a text or a flag by its type and value, a function by its code,
          another object by being that one.
captured  what a function or a method among the arguments has: it is known when the run has read it.
"""

from __future__ import annotations

import array
import collections
import copy
import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import frames
from .intrinsic import Made, is_made
from .kinds import HEAP_TYPE, IMMUTABLE, QUIET, are_quiet, flags_of, is_one_of, isinstance
from .structure import Branch, Fixed, Leaf, Sealed, Tree, attributes

Path = tuple[tuple[type, Any], ...]
CAPTURING = (types.FunctionType, types.MethodType, functools.partial, type)
# What a container is made with beside its items.
OPTIONS: dict[type, str] = {collections.defaultdict: "default_factory", collections.deque: "maxlen"}
VALUES = QUIET | {range, types.EllipsisType, type(NotImplemented)}


def walk(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Tree]]:
    """Each tree within a tree that is not a branch, and each branch before its parts."""
    yield path, tree
    if isinstance(tree, Branch):
        for key, part in tree.parts.items():
            if key is not frames.NAMESPACE:
                yield from walk(part, (*path, (tree.kind, key)))


def is_attribute(kind: type, key: Any) -> bool:
    """Whether the key of a part names an attribute."""
    return type(key) is frames.Own or frames.native(kind) is None


def at(value: Any, path: Path) -> Any:
    """What lies at the end of a path."""
    for kind, key in path:
        if kind is functools.partial and key != "func":
            value = value.args[key] if type(key) is int else value.keywords[key]
        elif kind is types.FunctionType and key in value.__code__.co_freevars:
            value = value.__closure__[value.__code__.co_freevars.index(key)].cell_contents
        elif is_attribute(kind, key):
            name, own = str(key).lstrip("."), attributes(value)
            value = own[name] if name in own else getattr(value, name)
        else:
            value = item_of(value, key)
    return value


def item_of(value: Any, key: Any) -> Any:
    """An item of a container, without asking a class of the user's for it, nor a key for its hash."""
    kinds: tuple[Any, ...] = (dict, list, tuple, collections.deque)
    for kind in kinds:
        if isinstance(value, kind):
            if kind is dict and not are_quiet((key,)):
                for other, item in dict.items(value):
                    if other is key:
                        return item
            return kind.__getitem__(value, key)
    return value[key]


def is_captured(path: Path) -> bool:
    """Whether a path leads through something that captures."""
    return any(issubclass(kind, CAPTURING) for kind, _ in path)


def whole(tree: Tree, value: Any) -> Tree:
    """The tree of an argument; a method may have that of its object, what we have made of a function that of this."""
    if type(value) is Made and isinstance(tree, Branch) and tree.kind is not Made:
        return Branch(Made, {"__wrapped__": whole(tree, value.__wrapped__)})
    if type(value) is types.MethodType and isinstance(tree, Branch):
        if tree.kind is not types.MethodType:
            return Branch(types.MethodType, {"__self__": tree})
    return tree


def traits(tree: Tree, value: Any, captured: bool = False) -> Iterator[tuple[Path, Trait]]:
    """The parts of an argument that have no derivative, and what they are known by."""
    for path, part in walk(tree):
        if type(part) is Leaf:
            continue
        if has_trait(part) and is_captured(path) is captured:
            try:
                found = at(value, path)
            except (LookupError, AttributeError, TypeError, ValueError):
                continue  # the function has taken it out of what it has captured
            yield path, Trait(found)
        elif has_option(part) and not captured:
            assert isinstance(part, Branch)
            path += ((part.kind, frames.Own(OPTIONS[part.kind])),)
            yield path, Trait(at(value, path))


def holders(tree: Tree, value: Any) -> Iterator[tuple[Path, Any]]:
    """The lists, sets, dicts and objects of an argument, to which something can be done."""
    for path, part in walk(tree):
        if isinstance(part, (Branch, Fixed)) and not is_captured(path):
            try:
                found = at(value, path)
            except (LookupError, AttributeError, TypeError, ValueError):
                continue  # an element of a set, to which no path leads
            if not is_one_of(type(found), VALUES):
                yield path, found


def has_option(part: Tree) -> bool:
    """Whether a part is a container that is made with something beside its items."""
    return isinstance(part, Branch) and is_one_of(part.kind, OPTIONS)


def has_trait(part: Tree) -> bool:
    if isinstance(part, Branch):
        opaque = frames.native(part.kind) is None and not frames.can_be_made(part.kind)
        return issubclass(part.kind, CAPTURING) or opaque
    return isinstance(part, Fixed) or (isinstance(part, Sealed) and not part.ops)


class Trait:
    """What a part without a derivative is known by; ``value`` is the part as it was."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.key = key_of(value)
        mutable = is_one_of(type(value), (set, bytearray, np.ndarray))
        self.value = copy.copy(value) if mutable else value

    def fits(self, value: Any) -> bool:
        """Whether a value may stand where the traced one stood."""
        return same(self.key, key_of(value))

    def shown(self) -> str:
        return repr(self.value)


class Unknown(Trait):
    """The trait of something that nobody has kept."""

    __slots__ = ()

    def __init__(self) -> None:
        self.key, self.value = (), None

    def fits(self, value: Any) -> bool:
        return False

    def shown(self) -> str:
        return "something that was not kept"


def lasting(fixed: list[list[tuple[Path, Trait]]] | None) -> list[list[tuple[Path, Trait]]] | None:
    """The traits of a run, of texts and flags alone: those of objects would keep what one call was given."""

    def of(trait: Trait) -> Trait:
        return trait if is_one_of(type(trait.value), VALUES) else Unknown()

    return fixed and [[(path, of(trait)) for path, trait in found] for found in fixed]


class Itself:
    """An object that nothing else is like; of a class written in C, what it calls equal and shows alike.

    Times are equal in other zones, and decimal numbers with more zeros, of which they tell.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def is_like(self, other: Any) -> bool:
        x, y = self.value, other.value
        in_c = flags_of(type(x)) & IMMUTABLE
        return x is y or (bool(in_c) and bool(x == y) and repr(x) == repr(y))


def key_of(x: Any) -> tuple[Any, ...]:
    """What two values have in common that are alike, beginning with their class."""
    kind = type(x)
    if is_one_of(kind, VALUES):
        return kind, x
    if is_one_of(kind, frames.STREAMS):
        return (kind,)
    if kind is slice:
        return kind, *map(key_of, (x.start, x.stop, x.step))
    if kind is np.ndarray:
        content = [Itself(y) for y in x.flat] if x.dtype.hasobject else x.tobytes()
        return kind, x.dtype, x.shape, content
    if issubclass(kind, (np.generic, array.array)) and not flags_of(kind) & HEAP_TYPE:
        return kind, x.tobytes()
    if kind is bytearray:
        return kind, bytes(x)
    if is_one_of(kind, frames.SETS) and are_quiet(x):
        return kind, {(type(y), y) for y in x}
    if kind is types.FunctionType:
        options = [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
        return kind, x.__code__, *map(key_of, options)
    if is_made(x):
        state = x.__self__
        return kind, type(state), state.options, *key_of(state.f)
    if kind is types.MethodType:
        return kind, key_of(x.__func__)
    if kind is functools.partial:
        return kind, key_of(x.func), len(x.args), *x.keywords
    return kind, Itself(x)


def same(a: Any, b: Any) -> bool:
    """Equality in which 0.0 is not -0.0, 1 is not True, and NaN is like itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Itself):
        return a.is_like(b)
    if is_one_of(type(a), (float, complex)):
        return repr(a) == repr(b)
    return a is b or bool(a == b)
