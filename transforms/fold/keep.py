"""Folded programs: a call is recorded, and gets the program of all ways that were seen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ...tracer.fold.outside import Varying
from ...tracer.fold.recorder import Passing, Unfolded
from ...tracer.fold.run import Known, kinds_of, lock
from ...tracer.run import argument_names
from ..budget import working
from ..cache import Entry, settings
from ..loops import Miss
from ..programs import Program, Unfit
from .along import ALONG, ALONG_AUX
from .deferred import SEVERAL
from .multiplied import makers_in
from .program import AlongBuilder, InnerBuilder, RegionBuilder, run_of
from .rows import JACOBIANS
from .structured import must_have_gradients

KINDS = 4  # of arguments that are kept apart


def program_of(
    known: Known, f: Callable[..., Any], entry: Entry, keys: Sequence[Any], answer: str
) -> Program:
    """The program of all ways that were seen."""
    done, inputs = run_of(known, f)
    inner = answer in JACOBIANS.values()
    along = answer in (ALONG, ALONG_AUX)
    kind = InnerBuilder if inner else AlongBuilder if along else RegionBuilder
    builder = kind(done, entry.title, entry.names)
    builder.discrete = bool(makers_in(answer)) and not inner
    program = builder.region(known, inputs, [*keys], answer)
    program.positional = builder.discrete
    return program


def recorded(
    entry: Entry,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    keys: Sequence[Any],
    answer: str,
    drawn: list[Any],
    aux: bool = False,
) -> Program | None:
    """Record a call: the program that answers for it; None where it must be traced.

    It gives the gradients of the arguments ``keys``, in the form of ``answer`` (see `Builder.build`). What the call
    has drawn is in ``drawn``, and what this pass draws is added. With ``aux`` the call gives a number and an aux.
    """
    kinds = kinds_of(args)
    if kinds is None:
        return None
    try:
        must_have_gradients([args[key] for key in keys])
    except Miss as what:
        entry.folding.latest = f"a gradient by {what} is asked for"
        return None
    except RecursionError:
        entry.folding.latest = "what it is given is nested too deep"
        return None
    if not lock.acquire(blocking=False):  # another thread is recording
        return None
    try:
        return followed(
            *(entry, f, args, kinds, drawn, aux, SEVERAL[answer].most if answer in SEVERAL else 0),
            lambda known: program_of(known, f, entry, keys, answer),
        )
    finally:
        lock.release()


def let_go(error: BaseException | None, handled: BaseException | None) -> None:
    """Take the frames out of an error, and of those that it came after, in which the run's objects would live on.

    What the caller was handling before is the caller's own.
    """
    while error is not None and error is not handled:
        before = error.__context__
        error.__traceback__ = error.__context__ = None
        error = before


def followed(
    entry: Entry,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kinds: Any,
    drawn: list[Any],
    aux: bool,
    several: float,
    build: Callable[[Known], Program],
) -> Program | None:
    """The same, while no other thread records."""
    folding = entry.folding
    known = folding.known.get(kinds)
    if known is None:
        if len(folding.known) >= KINDS:
            return None
        known = folding.known[kinds] = Known(folding.varying, aux, several)
    start, program, handled = working(), None, sys.exception()
    old = folding.programs.get(kinds)
    try:
        most = entry.budget.longest_pass()
        _, grown = known.run(f, argument_names(f, len(args)), args, drawn, most)
        folding.latest = None
        took, size = working() - start, known.folded.size
        if old is None or known.written < size:  # or else the program was left for another reason
            writes = entry.budget.may_write(size, grown > 0, entry.won)
            entry.budget.note_pass(took, size)
            if not writes:
                return None
            program = build(known)
            known.written = size
    except Passing as why:
        let_go(why, handled)
        folding.latest = str(why)
    except RecursionError as error:
        let_go(error, handled)
        folding.failed("what it is given, or makes, is nested too deep", kinds)
    except Varying as why:
        let_go(why, handled)
        folding.varies(str(why), why.path, kinds)
    except (Unfolded, Unfit) as why:
        let_go(why, handled)
        folding.failed(str(why), kinds)
    except Exception as error:
        if settings.strict:
            raise
        let_go(error, handled)
        folding.why = f"an error of Wengert's own, please report it: {error!r}"
    if program is None:
        entry.budget.note_unfolded(working() - start)
        return None
    program.seconds = working() - start - took
    entry.budget.note_fold(program.seconds, size)
    folding.programs[kinds] = program
    for other in [*entry.programs]:  # those of one way may answer what the region has not seen
        if other is old or not (grown or other.growth):
            entry.drop(other)
    entry.add(program)
    return program
