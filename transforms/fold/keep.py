"""Folded programs: when a function whose ways vary is recorded, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter as clock
from typing import Any

from ...tracer.fold.outside import Changed
from ...tracer.fold.recorder import Passing, Unfolded
from ...tracer.fold.run import Known, kinds_of
from ...tracer.run import argument_names
from ..cache import Entry, settings
from ..programs import Program, Unfit

PATIENCE = 2  # runs that could not be followed, until a function is left to the other way
KINDS = 4  # of arguments that are kept apart


class Folding:
    """What is kept of one function: its runs, by the kinds of their arguments, and why it was given up, if it was."""

    def __init__(self) -> None:
        self.known: dict[Any, Known] = {}
        self.programs: dict[Any, Program] = {}
        self.failures = 0
        self.why: str | None = None

    def failed(self, why: str, kinds: Any) -> None:
        self.failures += 1
        self.known.pop(kinds, None)
        if self.failures >= PATIENCE:
            self.why = why


def record(
    entry: Entry,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    build: Callable[[Known], Program],
) -> tuple[Program, float] | None:
    """Record a call, and give the program that answers for it, and its value; None where it must be traced."""
    folding = entry.folding
    kinds = kinds_of(args)
    if folding.why is not None or kinds is None:
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
        if not grown and kinds in folding.programs:
            return None  # it was left for another reason
        program = build(known)
    except Passing:
        return None
    except Changed as why:
        folding.failed(str(why), kinds)
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
    old = folding.programs.get(kinds)
    folding.programs[kinds] = program
    if old is not None:
        entry.drop(old)
    entry.add(program)
    return program, value
