"""Trees: the structure of arguments and results, with their differentiable leaves.

Words
-----
leaf     a number or an array that has a derivative; its op is on the tape.
fixed    what has none: strings, bools, None, integer arrays, functions. Its gradient is None.
branch   a container, namedtuple, dataclass or object, with a tree for each of its parts (see ``frames``); or a function
         with one for each thing that it has captured and the run has read.
sealed   what may hold numbers that a gradient has no place for: a set, an iterator, a buffer. Its gradient is None,
         and an error where a derivative by what it holds is asked for and exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import frames
from .frames import attributes as attributes
from .frames import is_namedtuple as is_namedtuple
from .kinds import is_one_of, isinstance
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


class Sealed:
    """A position that holds numbers behind a seal: ``ops`` are those that the run has met there.

    ``name`` is what a person calls it, ``advice`` what to do about it. A ``leaf`` stands for all of the numbers at
    once, where the run has converted the thing to an array: by this there is a derivative.
    """

    __slots__ = ("advice", "leaf", "name", "ops")

    def __init__(self, name: str, advice: str, ops: list[Op], leaf: Leaf | None = None) -> None:
        self.name = name
        self.advice = advice
        self.ops = ops
        self.leaf = leaf


Tree = Leaf | Fixed | Branch | Sealed
CONTAINERS = frames.NATIVE


def is_container(value: Any) -> bool:
    """Whether a value is one of the containers that get a shadow: Python's own, and tuples of other classes."""
    kind = type(value)
    if type(kind) is type and kind in CONTAINERS:
        return True
    return issubclass(kind, (tuple, frozenset)) and frames.can_be_made(kind)


def is_differentiable(value: Any) -> bool:
    """Whether a leaf has a derivative: numbers and arrays that are neither bools nor integer arrays."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "fc"
    return is_one_of(type(value), (float, complex, int))


def positions(tree: Tree) -> Iterator[Leaf | Sealed]:
    """The leaves and the sealed positions of a tree, in order."""
    if isinstance(tree, (Leaf, Sealed)):
        yield tree
    elif isinstance(tree, Branch):
        for part in tree.parts.values():
            yield from positions(part)


def leaves(tree: Tree) -> Iterator[Leaf]:
    """The leaves of a tree, in order."""
    for x in positions(tree):
        if isinstance(x, Leaf):
            yield x
        elif x.leaf is not None:
            yield x.leaf


def sources(tree: Tree) -> list[Op]:
    """The ops of all that a tree holds, behind seals as well."""
    found = [leaf.op for leaf in leaves(tree) if leaf.op is not None]
    return found + [op for x in positions(tree) if isinstance(x, Sealed) for op in x.ops]


def has_leaf(tree: Tree) -> bool:
    return any(True for _ in leaves(tree))


def mapped(
    tree: Tree,
    leaf: Callable[[Leaf], Leaf],
    op: Callable[[Op], Any],
    kind: Callable[[type], type] = lambda kind: kind,
) -> Tree:
    """A copy of a tree with other leaves, other ops behind seals, and other classes."""
    if isinstance(tree, Leaf):
        return leaf(tree)
    if isinstance(tree, Branch):
        parts = {key: mapped(part, leaf, op, kind) for key, part in tree.parts.items()}
        return Branch(kind(tree.kind), parts)
    if isinstance(tree, Sealed):
        found = [op(x) for x in tree.ops]
        whole = None if tree.leaf is None else leaf(tree.leaf)
        return Sealed(tree.name, tree.advice, [x for x in found if x is not None], whole)
    return tree


def rebuild(tree: Tree, leaf: Callable[[Leaf], Any]) -> Any:
    """The structure that ``tree`` describes, with ``leaf(x)`` for each leaf and None for what has no derivative."""
    if isinstance(tree, Sealed) and tree.leaf is not None:
        tree = tree.leaf
    if isinstance(tree, Leaf):
        return leaf(tree)
    if not isinstance(tree, Branch):
        return None
    parts = {key: rebuild(part, leaf) for key, part in tree.parts.items()}
    return frames.gradient(tree.kind, parts, lambda key: has_leaf(tree.parts[key]))
