"""Patterns: what the iterations of a loop have in common.

Words
-----
segment    the ops of one iteration.
pattern    steps up to a decision, with a branch for each of its values, or up to the end of the iteration: a tree.
step       an op of the pattern.
spot       a place for an operand in a pattern: an op of the same iteration, or something from before the loop.
given      what an iteration gets from what the loop goes through; its numbers are ops ``item``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..tracer.box import Box
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.loops import Carry, Pick, Put, item
from ..tracer.source import INFIX, PREFIX
from ..tracer.tape import Op
from .loops import LoopFunction


class Numbers:
    """What a loop is given by number: a mapping, by passage and iteration, that takes no memory for its items."""

    def __init__(self, ranges: list[range]) -> None:
        self.ranges = ranges

    def get(self, at: tuple[int, int]) -> int | None:
        r, k = at
        return self.ranges[r][k] if k < len(self.ranges[r]) else None

    def __contains__(self, at: tuple[int, int]) -> bool:
        return at[1] < len(self.ranges[at[0]])

    def __setitem__(self, at: tuple[int, int], value: Any) -> None:
        """Nothing is to be noted."""

    setdefault = __setitem__

    def values(self) -> Iterator[int]:
        return itertools.chain(*self.ranges)

    def items(self) -> list[Any]:
        return [((r, 0), x) for r, x in enumerate(self.ranges)]


class Spot:
    """A place for an operand: ``local`` is the number of an op of the segment, or -1 for what comes from outside.

    ``same`` holds, by passage, what stands there; once it has changed between iterations, ``changing`` holds it by
    passage and iteration. Where it is an op of an earlier iteration, ``behind`` says which, by how many iterations ago
    and its number; ``first`` holds, by passage, what stands there in the iterations for which that is too early.
    """

    __slots__ = ("behind", "changing", "first", "local", "same")

    def __init__(self, local: int) -> None:
        self.local = local
        self.same: dict[int, Any] = {}
        self.changing: Any = None  # a dict, or Numbers
        self.behind: tuple[int, int] | None = None
        self.first: dict[int, list[Any]] = {}

    def look_behind(self, ago: int, number: int, r: int, begin: int) -> None:
        """From now on it is an op of an earlier iteration."""
        self.behind = ago, number
        before, changed = self.same.get(r), self.changing or {}
        self.first = {r: [changed.get((r, begin + i), before) for i in range(ago)]}
        self.same, self.changing = {}, None


class Step:
    """An op of the pattern and the spots of its operands."""

    __slots__ = ("kind", "op", "picks", "spots")

    def __init__(self, op: Op, spots: list[Spot], kind: Any, r: int) -> None:
        self.op = op
        self.spots = spots
        self.kind = kind
        self.picks = {r: op.fn} if is_one_of(type(op.fn), (Pick, Put)) else {}  # by passage


class Pattern:
    """Steps up to a decision, with a branch for each of its values; or up to the end of the iteration."""

    __slots__ = ("branches", "end", "exits", "guard", "left", "puts", "start", "steps", "visits")

    def __init__(self, start: int) -> None:
        self.start = start
        self.steps: list[Step] = []
        self.guard: Step | None = None
        self.branches: list[tuple[Any, Pattern]] = []
        self.exits: list[Any] = []
        self.end: list[Spot] | None = None
        self.puts: list[int] = []  # where it ends: the ops that append to lists, by number
        self.visits: list[tuple[int, int]] = []  # passages and iterations
        self.left: list[tuple[int, int]] = []  # those that were left before their end

    @property
    def weight(self) -> float:
        """The operations of an iteration; a loop in it is more than any number of them."""
        if any(type(step.op.fn) is LoopFunction for step in self.steps):
            return math.inf
        own = sum(not isinstance(step.op.fn, Carry) for step in self.steps)
        return own + max([x.weight for _, x in self.branches], default=0)


def is_constant(fn: Any, args: Any) -> bool:
    """Whether this is arithmetic on constants."""
    return (fn in INFIX or fn in PREFIX) and not any(isinstance(x, Op) for x in args)


def patterns(root: Pattern) -> Iterator[Pattern]:
    """The nodes of a pattern."""
    todo = [root]
    while todo:
        pattern = todo.pop()
        yield pattern
        todo += [branch for _, branch in pattern.branches]


class Reached:
    """A node of a pattern, with the steps on the way to it by their number and the decisions that lead there."""

    def __init__(
        self, pattern: Pattern, before: list[Step | None], decisions: list[tuple[Spot, Any]]
    ) -> None:
        self.pattern = pattern
        self.steps = [*before, *pattern.steps]
        self.decisions = decisions

    def first(self, number: int) -> Step | None:
        return self.steps[number] if number < len(self.steps) else None

    def picked(self, step: Step, r: int, k: int) -> Any:
        """What a step picks at an iteration that does not come there, if that is known."""
        pick, index = step.picks.get(r), self.computed(step.spots[1], r, k)
        items = () if pick is None else pick.items
        if type(index) is not int or not -len(items) <= index < len(items):
            return None
        x = items[index]
        return x.op if isinstance(x, Box) else x

    def misses(self, r: int, k: int) -> bool:
        """Whether an iteration does not come here, as follows from what it is given alone."""
        for spot, value in self.decisions:
            found = self.computed(spot, r, k)
            if found is not None and not alike(found, value):
                return True
        return False

    def computed(self, spot: Spot, r: int, k: int) -> Any:
        """What stands in a spot at an iteration, if it follows from what the iteration is given; None if not."""
        if spot.local < 0:
            x = spot.same.get(r) if spot.changing is None else spot.changing.get((r, k))
            return None if isinstance(x, Op) else x
        step = self.steps[spot.local]
        if step is None:
            return None
        fn = step.op.fn
        if type(fn) is Pick:
            x = self.picked(step, r, k)
            return None if isinstance(x, Op) else x
        if fn is not item and fn not in INFIX and fn not in PREFIX:
            return None
        found = [self.computed(x, r, k) for x in step.spots]
        try:
            return None if None in found else fn(*found)
        except Exception:
            return None


def walk(root: Pattern) -> Iterator[Reached]:
    """The nodes of a pattern, each after those that lead to it."""
    todo = [Reached(root, [], [])]
    while todo:
        at = todo.pop()
        yield at
        guard = at.pattern.guard
        for value, branch in at.pattern.branches:
            assert guard is not None
            todo.append(
                Reached(branch, [*at.steps, None], [*at.decisions, (guard.spots[0], value)])
            )


def spots(pattern: Pattern) -> Iterator[Spot]:
    """The places for operands in one node of a pattern."""
    for step in pattern.steps:
        yield from step.spots
    if pattern.guard is not None:
        yield from pattern.guard.spots
    yield from pattern.end or ()


def operands(op: Op) -> list[Any]:
    """The leaves of an op's arguments: ops and constants."""
    found: list[Any] = []
    leaves_in(op.args, found)
    if op.kwargs:
        leaves_in(op.kwargs, found)
    return found


def leaves_in(tree: Any, found: list[Any]) -> None:
    kind = type(tree)
    if kind is tuple or kind is list:
        for x in tree:
            leaves_in(x, found)
    elif kind is dict:
        for x in tree.values():
            leaves_in(x, found)
    elif kind is slice:
        leaves_in((tree.start, tree.stop, tree.step), found)
    elif issubclass(kind, tuple):
        leaves_in(tuple(tree), found)
    else:
        found.append(tree)


def frame(op: Op) -> Any:
    """How the leaves of an op's arguments are nested."""
    return nesting(op.args), nesting(op.kwargs) if op.kwargs else None


def nesting(tree: Any) -> Any:
    kind = type(tree)
    if kind is list or issubclass(kind, tuple):
        return kind, tuple([nesting(x) for x in tree])
    if kind is dict:
        return kind, tuple([(k, nesting(x)) for k, x in tree.items()])
    return slice if kind is slice else None


def refilled(tree: Any, leaves: Iterator[Any]) -> Any:
    """A nested argument with other leaves."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return kind([refilled(x, leaves) for x in tree])
    if kind is dict:
        return {k: refilled(x, leaves) for k, x in tree.items()}
    if kind is slice:
        return slice(*[refilled(x, leaves) for x in (tree.start, tree.stop, tree.step)])
    if isinstance(tree, tuple):
        return tree._make([refilled(x, leaves) for x in tree])  # type: ignore[attr-defined]
    return next(leaves)


def kind_of(value: Any) -> Any:
    """The type of a value, with dtype and shape of an array."""
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype, value.shape
    if kind is tuple:
        return tuple([kind_of(x) for x in value])
    return kind


def alike(x: Any, y: Any) -> bool:
    """Whether two constants are the same, to the bit."""
    if x is y:
        return True
    if type(x) is not type(y) or isinstance(x, Op):
        return False
    if is_one_of(type(x), (int, bool, str, bytes, range)):
        return bool(x == y)
    if is_one_of(type(x), (float, complex)):
        return repr(x) == repr(y)
    if isinstance(x, np.dtype):
        return bool(x == y)
    return False
