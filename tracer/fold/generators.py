"""Generators: they run to their end where they are called, and what they give is a list that one loop goes through.

Nobody sees that it was not made step by step: a generator may look at nothing that those who ask it could change
meanwhile, may give nothing that it could change later, and must be asked to its end. Whatever else it does is refused.

Words
-----
sealed     of a memory: made before the generator was called, so that it may be written to between two of its items.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from types import CellType, CodeType
from typing import Any

from .. import rewrite
from . import equivalents
from .basics import decided, now, refuse
from .functions import call_function, twin_of
from .iteration import Source, source_of
from .memories import append, count_of
from .recorder import Box, Recorder
from .region import LIST

MOST_ITEMS = 5_000  # of a generator, which may have no end where those who ask it raise


def is_generator(code: CodeType) -> bool:
    """Whether a function with this code, or with that of which it is a copy, gives a generator."""
    return rewrite.is_generator(rewrite.original(code))


def generated(recorder: Recorder, key: Any, fn: Any, args: Any, kwargs: Any) -> Source:
    """What a generator function gives."""
    sealed, twin = recorder.sealed, twin_of(recorder, fn)

    def run(*given: Any) -> list[Any]:
        recorder.sealed = sealed | ({*recorder.memories} - recorder.given - recorder.yielded)
        items: list[Any] = recorder.born((twin.__code__, "items"), LIST, (), [])
        recorder.giving.append(items)
        try:
            if twin(*given, **kwargs) is not None:
                refuse(f"{fn.__name__}, a generator, returns something")
        except Exception as error:
            refuse(f"{fn.__name__}, a generator, raises a {type(error).__name__}")
        finally:
            recorder.sealed = sealed
            recorder.giving.pop()
        return items

    items = recorder.call(key, twin, run, args)
    recorder.yielded.add(id(items))
    source = source_of(recorder, (key, "each"), items)
    cells = twin.__closure__ or ()
    held = [content(cell) for cell in cells]
    recorder.unfinished += 1

    def finish() -> None:
        """The generator has come to its end."""
        if any(content(cell) is not x for cell, x in zip(cells, held, strict=True)):
            refuse(f"a variable that {fn.__name__}, a generator, may read is changed")
        recorder.unfinished -= 1

    return Source(source.range, source.give, finish, recorder.turn)


def content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def give(key: Any, x: Any) -> None:
    """``yield x``."""
    recorder = now()
    items = recorder.giving[-1]
    if not is_finished(recorder, x):
        refuse("a generator gives what may be changed afterwards")
    append(recorder, (key, "item"), items, x)
    count = count_of(recorder, key, items)
    if not decided(
        recorder, (key, "few"), operator.lt, (count, MOST_ITEMS), len(items) < MOST_ITEMS
    ):
        refuse("a generator gives too much")


def give_all(key: Any, x: Any) -> Iterator[Any]:
    """``yield from x``: gives it all, so that nothing is left."""
    recorder = now()
    items = recorder.giving[-1]
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
