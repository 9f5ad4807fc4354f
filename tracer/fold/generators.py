"""Generators: they run to their end where they are called, and what they give is a list that one loop goes through.

Nobody sees that it was not made step by step: a generator may look at nothing that those who ask it could change
meanwhile, and may give nothing that it could change later. Whatever else it does is refused. One that gives a lot is
stopped; where those who ask it come to that place, the run is recorded anew with more.

Words
-----
sealed     of a memory: made before the generator was called, so that it may be written to between two of its items.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Iterator
from types import CellType, CodeType
from typing import Any

from ...rules.words import with_article
from .. import rewrite
from . import equivalents
from .basics import decided, now, refuse
from .functions import call_function, twin_of
from .iteration import Collected, iterator, running, source_of
from .iteration import Iterator as Iterator_
from .memories import append, count_of
from .recorder import Box, Recorder, Rewritten
from .region import LIST

FEW_ITEMS = 64  # that a generator gives at first
MOST_ITEMS = 300_000  # of a generator, which may have no end where those who ask it raise


class Enough(BaseException):
    """A generator has given as much as it may."""


def is_generator(code: CodeType) -> bool:
    """Whether a function with this code, or with that of which it is a copy, gives a generator."""
    return rewrite.is_generator(rewrite.original(code))


def generated(recorder: Recorder, key: Any, fn: Any, args: Any, kwargs: Any) -> Iterator_:
    """What a generator function gives."""
    sealed, twin = recorder.sealed, twin_of(recorder, fn)
    limit = recorder.limits.setdefault(twin.__code__, FEW_ITEMS)

    def run(*given: Any) -> tuple[list[Any], bool]:
        recorder.sealed = sealed | ({*recorder.memories} - recorder.given - recorder.yielded)
        items: list[Any] = recorder.born((twin.__code__, "items"), LIST, (), [])
        recorder.giving.append((items, limit))
        cut = False
        try:
            if twin(*given, **kwargs) is not None:
                refuse(f"{fn.__name__}, a generator, returns something")
        except Enough as enough:
            recorder.unwind(recorder.floor, enough)
            cut = True
        except Exception as error:
            refuse(f"{fn.__name__}, a generator, raises {with_article(type(error).__name__)}")
        finally:
            recorder.sealed = sealed
            recorder.giving.pop()
        return items, cut

    items, cut = recorder.call(key, twin, run, args)
    recorder.yielded.add(id(items))
    cells = twin.__closure__ or ()
    held = [content(cell) for cell in cells]

    def check() -> None:
        """The generator may be asked for another item."""
        if any(content(cell) is not x for cell, x in zip(cells, held, strict=True)):
            refuse(f"a variable that {fn.__name__}, a generator, may read is changed")

    def longer() -> None:
        if limit * 8 > MOST_ITEMS:
            refuse("a generator gives too much")
        recorder.limits[twin.__code__] = limit * 8
        raise Rewritten(f"{fn.__name__}, a generator, gives more than before")

    made = Iterator_(items, running(recorder), check, longer if cut else None)
    recorder.generators.append((made, catches(fn.__code__)))
    return iterator(recorder, key, made)


def catches(code: CodeType) -> bool:
    """Whether a generator may see that it is left."""
    code = rewrite.original(code)
    return any(x.opname == "PUSH_EXC_INFO" for x in dis.get_instructions(code))


def settled(recorder: Recorder) -> None:
    """The run has ended: generators that were not asked to their end are left."""
    for made, catches in recorder.generators:
        if not made.done and made.check is not None:
            made.check()
            if catches:
                refuse("a generator is not asked to its end, which catches exceptions")


def lazily(recorder: Recorder, items: list[Any], code: CodeType) -> list[Any]:
    """A generator expression is about to run to its end that may be left before.

    It may write to nothing that was there before, and raise nothing.
    """
    recorder.lazy.add(code)
    recorder.outer[id(items)] = recorder.untouched
    recorder.untouched = frozenset(recorder.memories) - {id(items)}
    return items


def collected(items: list[Any]) -> Collected:
    """A generator expression has come to its end."""
    recorder = now()
    lazy = id(items) in recorder.outer
    if lazy:
        recorder.untouched = recorder.outer.pop(id(items))
    return Collected(items, lazy)


def content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def give(key: Any, x: Any) -> None:
    """``yield x``."""
    recorder = now()
    items, limit = recorder.giving[-1]
    if not is_finished(recorder, x):
        refuse("a generator gives what may be changed afterwards")
    append(recorder, (key, "item"), items, x)
    count = count_of(recorder, key, items)
    if not decided(recorder, (key, "few"), operator.lt, (count, limit), len(items) < limit):
        raise Enough


def give_all(key: Any, x: Any) -> Iterator[Any]:
    """``yield from x``: gives it all, so that nothing is left."""
    recorder = now()
    items, _ = recorder.giving[-1]
    source = source_of(recorder, (key, "source"), x)
    found = call_function(recorder, (key, "items"), equivalents.items_of, (source,), {})
    if not all(is_finished(recorder, y) for y in found):
        refuse("a generator gives what may be changed afterwards")
    call_function(recorder, key, equivalents.extend, (items, found), {})
    return iter(())


def is_finished(recorder: Recorder, x: Any) -> bool:
    """Whether nobody can change what lies in a value."""
    if type(x) is tuple:
        return all(is_finished(recorder, y) for y in x)
    return type(x) is Box or id(x) not in recorder.memories or id(x) in recorder.given
