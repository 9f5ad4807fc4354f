"""Gather: long rows of elements are taken from a column at once.

Words
-----
column     what a loop has collected, one value for each iteration (see ``loops``).
row        a list, or the values of a column, in which elements stand: ``[a, c[0], c[1], ..., c[98], b]``.
run        neighbours in a row that are neighbours in a column, or in an array, as well: ``c[0], ..., c[98]``.
piece      what a row is made of: a column, or a tuple of the values that stand between runs.

A program for a list that a loop has filled would otherwise be as long as the list.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..tracer.arrays import append_saved
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.tape import FloatOp, Op, Site, Tape, element, primal
from .columns import Column, add_columns, fill_column, join_columns, make_column, take_column
from .loops import LoopFunction
from .patterns import alike
from .simplify import pruned

SHORTEST = 8  # elements that are worth an operation of its own
MOST_SPLITS = 64  # of columns of sums into two


def gathered(tape: Tape, stay: Sequence[Op] = ()) -> Tape:
    """The tape with the rows in its operations gathered, and without what nobody needs any more."""
    out: list[Op] = []
    known: dict[Any, Any] = {}
    changed = False
    for op in tape.ops:
        if type(op) is not FloatOp and op.kind == "call" and has_row(op.args):
            tuples = op.fn is make_column or type(op.fn) is LoopFunction
            args = tuple([row(x, tuples, op, out, known) for x in op.args])
            if any(x is not y for x, y in zip(args, op.args, strict=True)):
                changed = True
                op.args = args
        out.append(op)
    if not changed:
        return tape
    tape.ops = out
    return pruned(tape, keep_guards=True, stay=stay)


def has_row(args: tuple[Any, ...]) -> bool:
    for x in args:
        if is_one_of(type(x), (tuple, list)):
            return True
    return False


def row(tree: Any, tuples: bool, op: Op, out: list[Op], known: dict[Any, Any]) -> Any:
    """An argument with its rows gathered; new operations go to ``out``."""
    kind = type(tree)
    if (kind is not list and not (tuples and kind is tuple)) or len(tree) < SHORTEST:
        return tree
    found = list(runs(tree, is_element))
    if all(type(x) is tuple for x in found):
        return tree

    def append_to(fn: Any, args: tuple[Any, ...], value: Any) -> Op:
        new = Op(fn, args, value, op.site, op)  # on the same tape
        out.append(new)
        return new

    pieces = []
    for x in found:
        if type(x) is tuple:
            pieces.append(x)
            continue
        key = x.source, x.start, x.step, x.count
        if key not in known:
            known[key] = taken(x, append_to)
        pieces.append(known[key])
    return joined(pieces, append_to)


Append = Callable[[Any, tuple[Any, ...], Any], Op]


class Run:
    """Elements of a column, or of an array, from ``start`` on."""

    __slots__ = ("count", "source", "start", "step")

    def __init__(self, source: Op, start: int) -> None:
        self.source = source
        self.start = start
        self.step = 1
        self.count = 1

    @property
    def part(self) -> slice | None:
        """Which part of the source it is; None for all of it."""
        if self.start == 0 and self.step == 1 and self.count == len(self.source.value):
            return None
        stop = self.start + self.step * self.count
        return slice(self.start, None if stop < 0 else stop, self.step)


def runs(tree: Sequence[Any], is_part: Callable[[Any], bool]) -> Iterator[Any]:
    """The parts of a row: runs that are long enough, and tuples of what stands between them."""
    between: list[Any] = []
    i = 0
    while i < len(tree):
        run = longest(tree, i, is_part)
        if run is None or run.count < SHORTEST:
            count = 1 if run is None else run.count
            between += tree[i : i + count]
        else:
            count = run.count
            if between:
                yield tuple(between)
                between = []
            yield run
        i += count
    if between:
        yield tuple(between)


def longest(tree: Sequence[Any], i: int, is_part: Callable[[Any], bool]) -> Run | None:
    """The run that begins at a place of a row."""
    if not is_part(tree[i]):
        return None
    run = Run(*tree[i].args)
    for k in range(i + 1, len(tree)):
        x = tree[k]
        if not is_part(x) or x.args[0] is not run.source:
            break
        index = x.args[1]
        if run.count == 1 and abs(index - run.start) == 1:
            run.step = index - run.start
        if index != run.start + run.step * run.count:
            break
        run.count += 1
    return run


def is_element(x: Any) -> bool:
    """Whether something is an element of a column."""
    return isinstance(x, Op) and x.fn is element and type(primal(x.args[0])) is Column


def taken(run: Run, append_to: Append) -> Op:
    """What a run takes out of its column, as a column."""
    source, part = run.source, run.part
    if type(source.value) is np.ndarray:
        if part is not None:
            source = append_to(operator.getitem, (source, part), source.value[part])
        return append_to(make_column, (source,), make_column(source.value))
    if part is None:
        return source
    return append_to(take_column, (source, part), Column(source.value[part]))


def joined(pieces: list[Any], append_to: Append) -> Any:
    """A column of several pieces, which are columns or tuples."""
    if len(pieces) == 1:
        return pieces[0]
    return append_to(join_columns, tuple(pieces), join_columns(*primal(tuple(pieces))))


def column_of(
    parts: Sequence[Any],
    values: Column,
    tape: Tape,
    site: Site,
    splits: Iterator[int] | None = None,
) -> Op:
    """An op for the column of some cotangents, of which those of ``values`` are the primals.

    A column of sums is the sum of two columns, for as many as ``splits`` has: sums may share what they add, so that
    there may be very many ways to what they come from.
    """
    splits = iter(range(MOST_SPLITS)) if splits is None else splits

    def append_to(fn: Any, args: tuple[Any, ...], value: Any) -> Op:
        return append_saved(tape, fn, args, {}, value, site)

    def is_part(x: Any) -> bool:
        """Whether something is an element of a column, or a row of an array (a number, as Python has it)."""
        if not isinstance(x, Op) or x.fn is not operator.getitem:
            return is_element(x)
        source, index = x.args
        if type(index) is not int or index < 0 or not isinstance(source, Op):
            return False
        array = source.value
        if type(array) is not np.ndarray or array.dtype != float:
            return False
        return array.ndim > 1 or plain

    def added(sums: list[Op]) -> Op:
        """The column of some sums."""
        x, y = (column_of([p.args[i] for p in sums], values, tape, site, splits) for i in (0, 1))
        return append_to(add_columns, (x, y), add_columns(x.value, y.value))

    def number(x: Any) -> Any:
        """The cotangent of a number of Python's is one: what the loop makes of it is handed out as it is."""
        if plain and isinstance(x, Op) and isinstance(x.value, np.floating):
            return append_to(float, (x,), float(x.value))
        return x

    plain = all(type(x) is float for x in values)
    pieces: list[Any] = []
    for summed, group in itertools.groupby(parts, is_sum):
        stretch = list(group)
        if summed and len(stretch) >= SHORTEST and next(splits, None) is not None:
            pieces.append(added(stretch))
        else:
            for x in runs(stretch, is_part):
                pieces.append(tuple(map(number, x)) if type(x) is tuple else taken(x, append_to))
    if len(parts) >= SHORTEST and all(type(x) is float and alike(x, parts[0]) for x in parts):
        value, count = parts[0], len(parts)
        return append_to(fill_column, (value, count), fill_column(value, count))
    found = joined(pieces, append_to) if pieces else ()
    if isinstance(found, Op):
        return found
    return append_to(make_column, (found,), make_column(primal(found)))


def is_sum(x: Any) -> bool:
    return isinstance(x, Op) and x.fn is operator.add
