"""Loop functions: a rolled loop as one function of what it starts from, differentiable like any other.

Words
-----
steps      what tells a loop how to run: the count of its iterations (the most that are known, of a loop that
           a decision ends; None if any number will do), or which variant each of them takes.
carried    what an iteration hands on to the next; a loop function is called with what the first one gets.
invariant  a value from before the loop that every iteration uses.
column     one value for each iteration, in their order whichever way the loop runs; an argument or a result.
variant    what an iteration does under certain decisions. A column may belong to one variant: it has the values of
           the iterations that took it.
choice     operations and the decision at their end: the variants of a loop are the leaves of a tree of choices.
form       ``count``: runs a given number of times. ``while``: runs until a decision leads to the exit.
           ``steps``: takes no decisions, but is told its variants, as the reverse of a loop is.
plain      a family that computes the same by plain arithmetic, as long as all of its results are finite (see `rescue`).

A loop function is called ``fn(steps, *carried, *invariants, *columns)`` and returns a tuple: what is carried out of
the last iteration, then the columns that it collects, and maybe what it computed on its way out. The reverse of a loop
function is a loop function that runs the other way, over columns of the values that were carried into each iteration;
so loops can be differentiated as often as one likes. What must be collected for that is found out when it is first
asked for.
"""

from __future__ import annotations

import itertools
import linecache
import operator
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..tracer.kinds import is_one_of, isinstance
from ..tracer.tape import NOWHERE, Op, Site
from . import asking
from .columns import Column
from .kernels import is_steady

COUNT, WHILE, STEPS = "count", "while", "steps"
EXIT = "exit"
numbers = itertools.count(1)
building = threading.RLock()  # held by whoever adds to a family, or writes what it does


class Miss(Exception):
    """A loop function met a decision that the traced run did not: the function must be traced again."""


class Unrolled(Exception):
    """Why a loop cannot be rolled."""


class Choice:
    """Operations of an iteration, and what comes of them.

    That is either the end of the variant with the number ``variant``, or a decision on ``subject`` with ``branches``
    by its value, which lead on to other choices or to EXIT.
    """

    __slots__ = ("branches", "ops", "subject", "variant")

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self.subject: Any = None
        self.branches: list[tuple[Any, Any]] = []
        self.variant: int | None = None


class Variant:
    """What an iteration does: the calls ``ops`` on what stands for its arguments, and what it hands on."""

    __slots__ = ("carried", "columns", "following", "invariants", "ops")

    def __init__(
        self,
        ops: list[Op],
        carried: list[Op],
        invariants: list[Op],
        columns: dict[int, Op],
        following: list[Any],
    ) -> None:
        self.ops = ops
        self.carried = carried
        self.invariants = invariants
        self.columns = columns
        self.following = following


class Family:
    """What is common to the loop functions that differ only in how much they collect.

    ``collected`` lists the columns that may be asked for: of which variant each is (None: of all), and what in the
    variant's operations it collects. A loop function collects the first so many of them.
    """

    def __init__(
        self,
        form: str,
        variants: list[Variant],
        columns: list[int | None],
        collected: list[tuple[int | None, dict[int | None, Any]]],
        descending: bool = False,
        tree: Choice | None = None,
        site: Site = NOWHERE,
        capped: bool = False,
    ) -> None:
        self.form = form
        self.variants = variants
        self.columns = columns
        self.collected = collected
        self.descending = descending
        self.tree = tree
        self.site = site
        self.capped = capped  # whether a `while` may take no more than a given number of iterations
        self.count = len(variants[0].carried)
        self.told = form == STEPS  # the variants that its iterations take
        self.members: WeakValueDictionary[int, LoopFunction] = WeakValueDictionary()
        self.reverses: dict[Any, Any] = {}  # see ``loop_reverse``
        self.plain: Family | None = None
        self.gaps = False  # of a reverse: whether it puts a zero where there is no cotangent
        # Whether it is steady, once that is known: the loops around it ask again and again.
        self.known_steady: bool | None = None

    def member(self, size: int | None = None) -> LoopFunction:
        """The loop function that collects the first ``size`` columns (all that were ever asked for)."""
        size = len(self.collected) if size is None else size
        with building:
            member = self.members.get(size)
            if member is None:
                member = self.members[size] = LoopFunction(self, size)
            return member

    def __getstate__(self) -> dict[str, Any]:
        return {key: x for key, x in vars(self).items() if key != "members"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, members=WeakValueDictionary())

    def choices(self) -> Iterator[Choice]:
        """The choices of its tree, if it has one."""
        todo = [self.tree] if self.tree is not None else []
        while todo:
            choice = todo.pop()
            yield choice
            todo += [then for _, then in choice.branches if then != EXIT]

    def insert(self, after: Op, op: Op) -> None:
        """Let every variant that does ``after`` do ``op`` next."""
        lists = [*[v.ops for v in self.variants], *[choice.ops for choice in self.choices()]]
        for ops in {id(ops): ops for ops in lists}.values():
            if after in ops:
                ops.insert(ops.index(after) + 1, op)
        self.changed()

    def changed(self) -> None:
        """What the variants do has changed: the loop functions are compiled anew."""
        self.known_steady = None
        for member in list(self.members.values()):
            member.function = None

    def collecting(self, of: int | None, item: Any) -> int:
        """The number of the column that collects an item of a variant (``"steps"``: which variants were taken)."""
        for i, (owner, items) in enumerate(self.collected):
            if owner == of and (
                item is items.get(of) if of is not None else item == items.get(None)
            ):
                return i
        self.collected.append((of, {of: item}))  # type: ignore[dict-item]
        return len(self.collected) - 1


class LoopFunction:
    """A rolled loop; see above. ``source()`` shows it as Python, which is what runs."""

    __name__ = "loop"

    def __init__(self, family: Family, size: int) -> None:
        self.family = family
        self.size = size
        self.function: Any = None
        self.slow: Any = None

    def __call__(self, *args: Any) -> Any:
        return (self.function or self.compile())(*args)

    def __repr__(self) -> str:
        return f"<loop at {self.family.site}>"

    def __reduce__(self) -> Any:
        return LoopFunction, (self.family, self.size)

    @property
    def plain(self) -> LoopFunction | None:
        """The same by plain arithmetic, if there is such."""
        plain = self.family.plain
        return None if plain is None or self.size != len(plain.collected) else plain.member()

    @property
    def steady(self) -> bool:
        """Whether the types of the results follow from those of the arguments."""
        family = self.family
        if family.known_steady is None:
            family.known_steady = all(
                all(is_steady(op) for op in v.ops)
                and all(
                    same_kind(x.value, example(y))
                    for x, y in zip(v.carried, v.following, strict=True)
                )
                for v in family.variants
            )
        return family.known_steady

    @property
    def picks(self) -> bool:
        """Whether it picks as many elements of an array as there happen to be."""
        family = self.family
        lists = [*[v.ops for v in family.variants], *[x.ops for x in family.choices()]]
        found = [op for ops in lists for op in ops if op.fn is operator.getitem]
        return not all(is_steady(op) for op in found)

    def sample(self, path: Sequence[int]) -> tuple[Any, ...]:
        """Results such as a call gives whose iterations take the variants of ``path``: the values are any."""
        family = self.family
        found = [example(x) for x in family.variants[0].following]
        for of, items in family.collected[: self.size]:
            if of is not None:
                found.append(Column([example(items[of])] * list(path).count(of)))
            elif items.get(None) == "steps":
                found.append(Column(path) if len(family.variants) > 1 else len(path))
            else:
                found.append(Column([example(items[number]) for number in path]))
        return tuple(found)

    def compile(self) -> Any:
        with building:
            plain = self.plain
            made = self.defined() if plain is None else plain.defined(self.careful)
            self.function = made
            return made

    def careful(self, *args: Any) -> Any:
        """What the loop comes to if plain arithmetic has given something that is not finite."""
        with building:
            if self.slow is None:
                self.slow = self.defined()
        return self.slow(*args)

    def left(self, *args: Any) -> Any:
        """What a kept program does instead where there are gaps: a traced call knows where there is no cotangent."""
        raise Miss

    def defined(self, careful: Any = None) -> Any:
        """The function that the source defines; ``careful`` is asked where its results are not finite."""
        writer = asking.writer(self)
        text = writer.write("loop", careful)
        name = f"<loop {self.family.site} {next(numbers)}>"
        exec(compile(text, name, "exec"), writer.namespace)
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        function = writer.namespace.pop("loop")
        weakref.finalize(function, linecache.cache.pop, name, None).atexit = False
        return function

    def source(self, name: str = "loop") -> str:
        """The loop as a Python function."""
        return asking.writer(self).write(name)

    def split(self, args: Sequence[Any]) -> tuple[Any, list[Any], list[Any], list[Any]]:
        """The arguments: steps, carried, invariants, columns."""
        family = self.family
        a = 1 + family.count
        b = a + len(family.variants[0].invariants)
        return args[0], list(args[1:a]), list(args[a:b]), list(args[b:])


def is_smooth(value: Any) -> bool:
    """Whether a value can have a cotangent of its own kind."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fc"
    if is_one_of(type(value), (Column, tuple)):
        return True
    return isinstance(value, (float, complex, np.inexact))


def example(tree: Any) -> Any:
    return tree.value if isinstance(tree, Op) else tree


def same_kind(x: Any, y: Any) -> bool:
    """Whether two values are of the same type, dtype and shape."""
    if type(x) is not type(y):
        return False
    return type(x) is not np.ndarray or (x.dtype == y.dtype and x.shape == y.shape)
