"""Trees: the structure of arguments and results, with their differentiable leaves.

Words
-----
leaf     a number or an array that has a derivative; its op is on the tape.
fixed    what has none: strings, bools, None, integer arrays, functions. Its gradient is None.
branch   a container, namedtuple, dataclass or object, with a tree for each of its parts (see ``frames``); or a function
         with one for each thing that it has captured and the run has read.
open     what a result has in an object of the outside, where it is no variable: any cotangent fits, and leads nowhere.
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


class Open:
    """An object of the outside that a run gives back, and has put nothing into: it may hold other things by then."""

    __slots__ = ()


OPEN = Open()


class Branch:
    """A structure of trees: ``kind`` is its class, ``parts`` the trees by key.

    A key may be any of the user's: parts are gone through, and put together by ``frames.valued``, but not looked up.
    """

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


Tree = Leaf | Fixed | Open | Branch | Sealed
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
    todo = [tree]
    while todo:
        tree = todo.pop()
        if isinstance(tree, (Leaf, Sealed)):
            yield tree
        elif isinstance(tree, Branch):
            todo += reversed(tree.parts.values())


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

    def other(part: Tree) -> Tree:
        if isinstance(part, Leaf):
            return leaf(part)
        if isinstance(part, Sealed):
            found = [op(x) for x in part.ops]
            whole = None if part.leaf is None else leaf(part.leaf)
            return Sealed(part.name, part.advice, [x for x in found if x is not None], whole)
        return part

    return folded(
        tree,
        other,
        lambda branch, found: Branch(kind(branch.kind), frames.valued(branch.parts, found)),
    )


def rebuild(
    tree: Tree, leaf: Callable[[Leaf], Any], of_class: Callable[..., Any] = frames.gradient
) -> Any:
    """The structure that ``tree`` describes, with ``leaf(x)`` for each leaf and None for what has no derivative.

    ``of_class(kind, parts, differentiable)`` makes what stands for a branch (see `frames.gradient`).
    """
    moving: set[int] = set()  # the branches with a leaf

    def one(part: Tree) -> Any:
        whole = leaf_of(part)
        return None if whole is None else leaf(whole)

    def made(branch: Branch, found: list[Any]) -> Any:
        differentiable = [
            id(part) in moving or leaf_of(part) is not None for part in branch.parts.values()
        ]
        if any(differentiable):
            moving.add(id(branch))
        return of_class(branch.kind, frames.valued(branch.parts, found), differentiable)

    return folded(tree, one, made)


def on_tape(tree: Tree) -> Any:
    """What stands on a tape for a result of such a structure: ops, and constants, in lists, tuples and dicts."""
    return rebuild(tree, lambda x: x.value if x.op is None else x.op, frames.laid_out)


def leaf_of(part: Tree) -> Leaf | None:
    """The leaf that stands for all of a part that is no branch."""
    return part if isinstance(part, Leaf) else part.leaf if isinstance(part, Sealed) else None


def folded(
    tree: Tree, other: Callable[[Tree], Any], branch: Callable[[Branch, list[Any]], Any]
) -> Any:
    """What ``branch`` makes of a tree and of what was made of its parts; ``other`` does of what is no branch."""
    if not isinstance(tree, Branch):
        return other(tree)
    way: list[tuple[Branch, Iterator[Any], list[Any]]] = []
    found: list[Any] = []
    rest = iter(tree.parts.values())
    while True:
        for part in rest:
            if isinstance(part, Branch):
                way.append((tree, rest, found))
                tree, rest, found = part, iter(part.parts.values()), []
                break
            found.append(other(part))
        else:
            done = branch(tree, found)
            if not way:
                return done
            tree, rest, found = way.pop()
            found.append(done)
