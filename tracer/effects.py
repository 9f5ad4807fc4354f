"""Effects: what a run does to the outside, on the tape with its real arguments, whatever it found there.

Words
-----
effect     a call that a program repeats at its end: ``list.append(log, %3)``.
external   a container from outside, which stands on the tape for itself.
stored     of a list, dict or set that the run has made: the outside holds it from now on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import is_
from typing import Any

from ..rules.words import with_article
from . import border, meaning
from .arrays import lay_out, save
from .box import ArrayBox, Box
from .frames import is_namedtuple, valued
from .kinds import MISSING, are_one_of, are_quiet, is_one_of, isinstance
from .record import NESTED, has_box, itself, stored
from .session import Tracer
from .tape import Effect, External, Site, fn_name
from .through import contents


def effect(
    tracer: Tracer, site: Site, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Note something that was done to the outside."""
    if tracer.tape.undo is not None:
        return
    arrays: list[ArrayBox] = []
    leaf: Callable[[Any], Any] = as_it_is
    reads = tracer.reads
    if fn is not print:  # which shows what a container holds now
        leaf = partial(named, tracer)
        if reads is not None:
            keep_stored(tracer, site, args)
            keep_stored(tracer, site, kwargs)
            leaf = partial(referred, tracer)
    if reads is not None and not (are_one_of(args, SIMPLE) and not kwargs):
        stored(opened((*args, kwargs), leaf), arrays)
        for box in arrays:
            lay_out(box, reads)
        arrays.clear()
    args = tuple(
        [
            x.op
            if type(x) is Box
            else x
            if is_one_of(type(x), SIMPLE)
            else stored(opened(x, leaf), arrays)
            for x in args
        ]
    )
    options = stored(opened(kwargs, leaf), arrays) if kwargs else {}
    if reads is not None:
        outside = {id(box.memory) for box, _ in tracer.inputs}
        if any(box.memory.writes and id(box.memory) in outside for box in arrays):
            reads.problem("an array from outside is written to, and handed to the outside", site)
        reads.handed_out += [(box, box.memory.writes) for box in arrays]
    tracer.tape.ops.append(Effect(fn, args, options, None, site, tracer.tape))
    save(arrays)


def may_fail(
    tracer: Tracer, site: Site, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """The same of what no guard keeps from failing: programs do it at their end, where no handler sees that."""
    reads = tracer.reads
    if reads is not None and not reads.problems:
        reads.uncertain[1:] = [written(tracer)]
        if meaning.tracebacks.is_caught(tracer.generators.values()):
            reads.problem(f"{fn_name(fn)} stands in a try or a with, and may fail", site)
    effect(tracer, site, fn, args, kwargs)


def written(tracer: Tracer) -> list[tuple[Any, Any]]:
    """What has been written to arrays and variables outside: memories and shadows of cells, and how they are now."""
    found: list[tuple[Any, Any]] = [
        (box.memory, box.memory.writes) for box, _ in tracer.inputs if box.memory.writes
    ]
    for cell, shadow in [*tracer.cells.values()]:
        held = contents(shadow)
        if held is not MISSING and held is not tracer.cells_held.get(id(cell), MISSING):
            found.append((shadow, held))
    return found


SIMPLE = frozenset((float, int, bool, complex, str, type(None), External))


def opened(value: Any, leaf: Callable[[Any], Any], path: tuple[int, ...] = ()) -> Any:
    """A nested argument in which a list or dict that contains itself ends, with ``leaf(x)`` for everything in it."""
    value = leaf(value)
    kind = type(value)
    if not is_one_of(kind, (list, dict, tuple)):
        return value
    if id(value) in path:
        return itself()
    path = (*path, id(value))
    if kind is dict:
        return valued(value, [opened(x, leaf, path) for x in value.values()])
    parts = [opened(x, leaf, path) for x in value]
    return value if kind is tuple and all(map(is_, parts, value)) else kind(parts)


def as_it_is(value: Any) -> Any:
    return value


def referred(tracer: Tracer, value: Any) -> Any:
    """What the outside is given: a container that comes from there stands for itself."""
    return external(tracer, value) if id(value) in tracer.originals else value


def named(tracer: Tracer, value: Any) -> Any:
    """The same of those alone that were outside before the run."""
    return referred(tracer, value) if tracer.names.get(id(value)) else value


def external(tracer: Tracer, shadow: Any) -> External:
    """The container outside that a shadow stands for."""
    return External(tracer.names.get(id(shadow), ""), tracer.originals[id(shadow)][1])


def keep_stored(tracer: Tracer, site: Site, value: Any) -> None:
    """Remember what containers made by the run hold when they are handed to the outside, which they are once."""
    kind = type(value)
    reads = tracer.reads
    assert reads is not None
    if is_one_of(kind, border.STAND_INS):
        reads.problem("what stands for something of the outside's is handed to the outside", site)
    if id(value) in tracer.originals:
        return
    if not is_one_of(kind, (list, dict, tuple, set)):
        if isinstance(value, NESTED) and not is_namedtuple(kind) and has_box(value):
            # On the tape it is one of its native class.
            reads.problem(
                f"{with_article(kind.__name__)} of traced values is handed to the outside", site
            )
        return
    if kind is dict and not are_quiet(value):
        reads.problem("a dict is handed to the outside whose keys have hashes of their own", site)
    if kind is not tuple:
        if id(value) in reads.stored:
            reads.problem(f"{with_article(kind.__name__)} stands at two places outside", site)
            return
        reads.stored[id(value)] = value, list(value.items() if kind is dict else value)
    for x in value.values() if kind is dict else value:
        keep_stored(tracer, site, x)
