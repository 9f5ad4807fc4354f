"""Folded programs: a call is recorded, and gets the program of all ways that were seen."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter as clock
from typing import Any

from ...tracer.fold.recorder import Passing, Unfolded
from ...tracer.fold.run import Known, kinds_of
from ...tracer.run import argument_names
from ..cache import Entry, settings
from ..programs import Program, Unfit

KINDS = 4  # of arguments that are kept apart


def recorded(
    entry: Entry,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    build: Callable[[Known], Program],
) -> tuple[Program, float] | None:
    """Record a call: the program that answers for it, and its value; None where it must be traced."""
    folding = entry.folding
    kinds = kinds_of(args)
    if kinds is None:
        return None
    known = folding.known.get(kinds)
    if known is None:
        if len(folding.known) >= KINDS:
            return None
        known = folding.known[kinds] = Known()
    start = clock()
    try:
        value, grown = known.run(f, argument_names(f, len(args)), args)
        took = clock() - start
        old = folding.programs.get(kinds)
        if old is not None and not grown:
            return None  # it was left for another reason
        program = build(known)
    except Passing:
        return None
    except (Unfolded, Unfit) as why:
        folding.failed(str(why), kinds)
        return None
    except Exception as error:
        if settings.strict:
            raise
        folding.why = f"an error of Wengert's own, please report it: {error!r}"
        return None
    entry.budget.note_attempt(took, clock() - start - took)
    folding.programs[kinds] = program
    if old is not None:
        entry.drop(old)
    entry.add(program)
    return program, value
