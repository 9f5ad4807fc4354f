"""Trees: the structure of arguments and results, with their differentiable leaves.

Words
-----
leaf     a number or an array that has a derivative; its op is on the tape.
fixed    what has none: strings, bools, None, integer arrays, functions. Its gradient is None.
branch   a container, namedtuple, dataclass or object, with a tree for each of its parts.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .tape import Op


class Leaf:
    """A differentiable position; ``value`` is its plain value when the tree was made."""

    __slots__ = ("op", "value")

    def __init__(self, op: Op | None, value: Any) -> None:
        self.op = op
        self.value = value


class Fixed:
    """A position without derivative."""

    __slots__ = ()


FIXED = Fixed()


class Branch:
    """A structure of trees: ``kind`` is its class, ``parts`` the trees by key."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: type, parts: dict[Any, Tree]) -> None:
        self.kind = kind
        self.parts = parts


Tree = Leaf | Fixed | Branch
SEQUENCES = (list, tuple, deque)
CONTAINERS = frozenset((list, tuple, dict, set, frozenset, deque, OrderedDict, defaultdict))


def is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_make") and hasattr(kind, "_fields")


def is_container(value: Any) -> bool:
    """Whether a value is one of the containers that are looked into."""
    kind = type(value)
    return kind in CONTAINERS or is_namedtuple(kind)


def is_differentiable(value: Any) -> bool:
    """Whether a leaf has a derivative: numbers and arrays that are neither bools nor integer arrays."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "fc"
    return type(value) in (float, complex, int)


def leaves(tree: Tree) -> Iterator[Leaf]:
    """The leaves of a tree, in order."""
    if isinstance(tree, Leaf):
        yield tree
    elif isinstance(tree, Branch):
        for part in tree.parts.values():
            yield from leaves(part)


def has_leaf(tree: Tree) -> bool:
    return any(True for _ in leaves(tree))


def rebuild(tree: Tree, leaf: Callable[[Leaf], Any]) -> Any:
    """The structure that ``tree`` describes, with ``leaf(x)`` for each leaf and None for what is fixed."""
    if isinstance(tree, Leaf):
        return leaf(tree)
    if isinstance(tree, Fixed):
        return None
    parts = {key: rebuild(part, leaf) for key, part in tree.parts.items()}
    kind = tree.kind
    if kind is list or kind is tuple or kind is deque:
        return kind(parts.values())
    if is_namedtuple(kind):
        return kind._make(parts.values())  # type: ignore[attr-defined]
    if kind is OrderedDict:
        return OrderedDict(parts)
    if kind is dict or kind is defaultdict:
        return parts
    if dataclasses.is_dataclass(kind):
        return rebuild_dataclass(kind, parts)
    return {key: part for key, part in parts.items() if has_leaf(tree.parts[key])} or None


def rebuild_dataclass(kind: type, parts: dict[Any, Any]) -> Any:
    """A dataclass that holds gradients; it is made without running its ``__init__``."""
    instance: Any = object.__new__(kind)
    for name, part in parts.items():
        object.__setattr__(instance, name, part)
    return instance


def attributes(instance: Any) -> dict[str, Any]:
    """The instance attributes of an object: those of its ``__dict__`` and of its slots."""
    found = dict(getattr(instance, "__dict__", None) or {})
    for cls in type(instance).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(instance, name):
                found.setdefault(name, getattr(instance, name))
    return found
