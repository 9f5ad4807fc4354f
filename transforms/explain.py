"""``explain``: what the JIT keeps for a function, and what it would do with a call, in plain words.

Words
-----
explanation   the text, and the source of the programs.
kind          a function that Wengert made of the user's: its gradient, its pullback, with their options.
probe         stands for a state while a program is looked at, and ends it before it does anything to the outside.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..rules.words import with_article
from ..tracer.active import active
from ..tracer.entrances import entrance
from ..tracer.errors import TraceError
from ..tracer.kinds import attribute, isinstance
from ..tracer.tape import fn_name
from .api import Pullback
from .cache import Entry, entries, is_made_of, key_of, lock, source_of, switch, why_left
from .dispatch import Dispatcher, name_of
from .guards import Guard, seen
from .programs import Program, draw

MOST_SHOWN = 40  # lines of a list
LONGEST_PASS = 5.0  # seconds that another thread's pass over a region is waited for
ONE_BY_ONE = (
    "nothing where calls go a few ways, each of which is kept by itself; "
    "docs/jit.md says what one program can have"
)
STEADY = (
    "pass what is another one at each call as an argument (misses and guards tell which); "
    "nothing where a program would answer"
)


class Explanation(str):
    """What `explain` tells. Printed, or shown as it is, it is the text.

    ``source`` is the source of the programs, ``region`` what folded runs have in common.
    """

    source: str
    region: str

    def __new__(cls, text: str, source: str = "", region: str = "") -> Explanation:
        self = super().__new__(cls, text)
        self.source = source
        self.region = region
        return self

    def __repr__(self) -> str:
        return str(self)


@entrance
def explain(f: Any, /, *args: Any, **kwargs: Any) -> Explanation:
    """What the JIT keeps for a function, in plain words; with arguments also what it would do with a call.

    ``f`` is a function, and then all is told that Wengert has made of it (its gradient, its pullback, each with its
    options), or one that Wengert has made (``grad(f)``), and then that alone. For each it tells the programs that are
    kept, the guards under which they answer, their operations, hits and the time it took to compile them; the region
    that folded runs have in common, and which run has added what; which guards failed, how often, and at which line;
    and why something is not kept, with what to do about it. ``source`` and ``region`` of what is given back are the
    whole of the programs and regions.

    With arguments it tells which program would answer for them, or why they would be traced. The function is not
    called for it: the kept programs are tried, up to where they would do something to the outside. Where a program
    draws random numbers or asks the time, it is not known beforehand how it goes on, and the text says so.

    The result is a string. Raises `TraceError` where ``f`` is not
    callable, and inside a function that is being traced.

    >>> from wengert import explain, grad
    >>> slope = grad(lambda x: x * x)
    >>> [slope(3.0) for _ in range(3)]
    [6.0, 6.0, 6.0]
    >>> "would answer" in explain(slope, 3.0), "is traced" in explain(slope, "3")
    (True, True)
    """
    if not callable(f):
        raise TraceError(
            f"explain takes a function or another callable, not {with_article(type(f).__name__)}\n"
            "write explain(f), or explain(grad(f), x) to hear about a call"
        )
    if isinstance(f, Pullback):
        raise TraceError(
            "explain takes the function that pullback was called with\nof a pullback itself there is back.source()"
        )
    if active.tracer is not None:
        raise TraceError(
            "explain cannot be used inside a function that is being traced\n"
            "call it outside, of the function itself"
        )
    with lock:
        for state in list(switch.users):
            state.flush()
        found = list(kinds_of(f))
    lines, sources, regions = [*general()], [], []  # type: ignore[var-annotated]
    if not found:
        state = state_of(f)
        why = state.never() if state is not None else None
        lines.append(f"{name_of(f)}  # {source_of(f)}")
        lines.append(
            f"  nothing is kept: {why or 'it was not called yet, or it was forgotten since'}"
        )
        lines += indented(advice(why), 4)
        lines += ["  a call with these arguments is traced"] if args or kwargs else []
    for entry, target in found:
        lines += told(entry, f, target, args, kwargs)
        sources += [source_text(program, entry) for program in entry.programs]
        regions += region_of(entry)
    return Explanation("\n".join(lines), "\n".join(sources), "\n".join(regions))


def source_text(program: Program, entry: Entry) -> str:
    """The source of a program."""
    return f"# program {program.number} of {entry.title}\n{program.source}"


def kinds_of(f: Any) -> Iterator[tuple[Entry, Any]]:
    """The entry of a function that Wengert made, or of all that it made of the user's.

    Each with the function that its programs call their own, or None where that is not at hand: a gradient of the
    gradient is known by its code alone.
    """
    state = state_of(f)
    if state is not None:
        if state.never() is not None:
            return
        own = entries.get(state.program_key())
        if own is not None:
            yield own, state.f
        return
    key = key_of(f)
    for other, entry in list(entries.items()):
        made_of = other[-1] if isinstance(other, tuple) else None
        if made_of == key:
            yield entry, f
        elif is_made_of(made_of, key):
            yield entry, None


def state_of(f: Any) -> Dispatcher | None:
    """The state behind a function that Wengert made."""
    state = attribute(f, "__self__")
    return state if isinstance(state, Dispatcher) else None


def general() -> Iterator[str]:
    """What holds for every function now."""
    if not switch.on:
        yield "the JIT is off (jit(False) or WENGERT_JIT=0): each call is traced, and nothing is kept"
    elif sys.gettrace() is not None:
        yield "a debugger or a coverage tool is at work (sys.settrace): each call is traced"


# ------------------------------------------------------------------------------------------ one function


def told(
    entry: Entry, f: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[str]:
    """What is kept under one entry, whose programs call ``target`` their function."""
    yield f"{entry.title}  # {entry.place}"
    programs = list(entry.programs)
    missed = sum(entry.misses.values())
    yield (
        f"  {counted(len(programs), 'program')}, {counted(entry.hits, 'hit')}, "
        f"{counted(missed, 'miss')}, {counted(entry.traces, 'call')} traced"
    )
    yield from indented(not_kept(entry))
    if entry.dynamic_names:
        names = ", ".join(dict.fromkeys(entry.dynamic_names))
        yield f"  inputs by now, as they changed too often to be guarded: {names}"
    if target is not None and (args or kwargs):
        state = state_of(f)
        attached = state.program if state is not None else None
        tried = [attached, *[p for p in programs if p is not attached]] if attached else programs
        yield from indented(predicted(entry, tried, target, args, kwargs))
    first = guards_of(programs[0]) if programs else {}
    for program in programs:
        known = first if program is not programs[0] else {}
        yield from indented(described(program, known, programs[0].number))
    region = [*region_of(entry)]
    if region:
        yield "  the region of its runs, and from which run on there are ways that the first had not"
        yield from indented(region[:MOST_SHOWN], 4)
        if len(region) > MOST_SHOWN:
            yield f"    … and {len(region) - MOST_SHOWN} others; explain(…).region shows all"
    if entry.misses:
        yield "  misses, by the guard that failed"
        common = Counter(dict(entry.misses)).most_common(MOST_SHOWN)  # other threads go on
        yield from indented((f"{n} x {why}{line_of(why, programs)}" for why, n in common), 4)
        if len(entry.misses) > MOST_SHOWN:
            yield f"    … and {len(entry.misses) - MOST_SHOWN} others"


def region_of(entry: Entry) -> Iterator[str]:
    """The lines of what is known of folded runs, for each kind of arguments."""
    if not entry.folding.known:
        return
    from ..tracer.fold.listing import listed  # which nothing else needs
    from ..tracer.fold.run import lock as recording

    if not recording.acquire(timeout=LONGEST_PASS):  # a pass may add to the region
        yield "its region is being recorded"
        return
    try:
        for known in [*entry.folding.known.values()]:
            inputs = {op: str(place) for place, op in known.inputs}
            yield from listed(known.folded, inputs, known.growth)
    finally:
        recording.release()


def not_kept(entry: Entry) -> Iterator[str]:
    """Why calls are traced that might have been answered by a program."""
    yield from spending(entry)
    unfit = entry.unfit  # another thread's call may be kept meanwhile
    if unfit is not None:
        yield f"a traced call could not be kept as a program: {unfit}"
        yield from indented(advice(unfit))
        if "operations long" in unfit:
            for place, why in list(entry.unrolled.items())[:MOST_SHOWN]:
                yield f"  the loop at {place} is not rolled: {why}"
                yield from indented(advice(why), 4)
    if entry.folding.why is not None:
        yield f"its runs do not fold into one program: {entry.folding.why}"
        yield from indented(advice(entry.folding.why, ONE_BY_ONE))
    elif entry.folding.latest is not None:
        yield f"the latest call was none of its folded runs: {entry.folding.latest}"
        yield from indented(advice(entry.folding.latest, ONE_BY_ONE))
    if unfit is None and entry.traces == 1:
        yield "a program is built at the third call, if the first two go the same way"


def advice(why: str | None, otherwise: str | None = None) -> Iterator[str]:
    """What to do about a reason; ``otherwise`` where it is one of those that have no cure of their own."""
    from .tools.cures import cure_of  # which nothing else needs

    cure = (cure_of(why) or otherwise) if why is not None else None
    if cure is not None:
        yield f"what to do: {cure}"


def spending(entry: Entry) -> Iterator[str]:
    """What programs have cost, where that stands in the way of the next one."""
    budget, won = entry.budget, entry.won()
    if entry.traces < 2 or budget.may_build(entry.won):
        return
    spent = f"{(budget.spent + budget.wasted) * 1e3:.1f} ms"
    yield (
        f"programs have cost {spent} and won {won * 1e3:.1f} ms, where tracing took {budget.traced * 1e3:.1f} ms: "
        "what none answers is traced until another may pay"
    )
    yield f"  what to do: {STEADY}"


def described(program: Program, known: dict[str, int], of: int) -> Iterator[str]:
    """A program: what it costs, and the guards under which it answers but for those ``known`` of another one."""
    loops = f" ({counted(program.loops, 'loop')} rolled)" if program.loops else ""
    size = f"{counted(program.forward, 'operation')} forward{loops}, {program.reverse} in reverse"
    if program.growth:
        size = f"{counted(program.forward, 'operation')} for all ways that runs have gone"
    hits = counted(program.hits, "hit")
    yield f"program {program.number}: {size}; {hits}; compiled in {program.seconds * 1000:.1f} ms"
    if program.growth:
        grown = ", ".join(f"{n} by run {run}" for run, n, _ in program.growth[:MOST_SHOWN])
        yield (
            f"  {counted(program.decisions, 'decision')}, {counted(program.loops, 'loop')}; ops, blocks and ends that "
            f"were added: {grown}"
        )
    guards = guards_of(program)
    own = {text: line for text, line in guards.items() if text not in known}
    also = (
        f"{counted(len(guards) - len(own), 'guard')} that program {of} has as well, and "
        if known
        else ""
    )
    yield f"  {also}guards, by the line of its source"
    decisions = Counter(str(g) for g in program.guards.values() if g.check == "decision")
    shown = [f"{line:5}  {text}{times(decisions[text])}" for text, line in own.items()]
    yield from shown[:MOST_SHOWN]
    if len(shown) > MOST_SHOWN:
        yield f"       … and {len(shown) - MOST_SHOWN} others; explain(…).source shows all"


def guards_of(program: Program) -> dict[str, int]:
    """The guards of a program in words, and the line of its source on which each stands first."""
    texts = {line: f"not: {why}" for line, why in program.reasons.items()}
    texts.update((line, str(guard)) for line, guard in program.guards.items())
    lines: dict[str, int] = {}
    for line, text in sorted(texts.items()):
        lines.setdefault(text, line)
    return lines


def line_of(why: str, programs: list[Program]) -> str:
    """On which line of a kept program the guard stands that says so."""
    for program in programs:
        for line, text in program.reasons.items():
            if text == why:
                return f" (line {line} of program {program.number})"
    return ""


# ---------------------------------------------------------------------------------------------- one call


class Passed(BaseException):
    """All guards of a program hold; what would come next is what it does to the outside."""


class Drawing(BaseException):
    """A program would make an impure call."""


class Probe:
    """Stands for a state. A program counts its hit as the first thing it does when no guard can fail any more."""

    __slots__ = ("error", "f")

    def __init__(self, f: Any) -> None:
        self.f = f
        self.error: BaseException | None = None

    @property
    def hits(self) -> int:
        raise Passed

    def missed(self, program: Program, error: BaseException, drawn: list[Any], *given: Any) -> None:
        self.error = error


def no_draw(drawn: list[Any], fn: Any, *args: Any, **kwargs: Any) -> Any:
    raise Drawing(fn_name(fn))


def probed(
    program: Program, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[bool, str]:
    """Whether a program would answer (or at least begin to), and what is to be said about it."""
    name = f"program {program.number}"
    if not program.fits(kwargs):
        return False, f"{name}: other arguments were given"
    probe = Probe(f)
    trial = type(program.alone)(
        program.alone.__code__,
        {k: no_draw if x is draw else x for k, x in program.namespace.items()},
        argdefs=program.alone.__defaults__,
    )
    try:
        with np.errstate():  # is put back also where the program is left half-way
            trial(probe, *args, **kwargs)
    except Passed:
        return True, f"{name} would answer"
    except Drawing as drawing:
        return True, (
            f"{name} would be tried: its guards hold as far as the call of {drawing}, "
            "which is not made here, so what comes after it is not known"
        )
    except TypeError as error:
        return True, f"they cannot be passed ({error})"
    assert probe.error is not None
    line, why = why_left(program, probe.error)
    guard = program.guards.get(line)
    text = f"{name}, line {line}: {why}{now(guard, probe.error)}"
    probe.error.__traceback__ = None
    return False, text


def now(guard: Guard | None, error: BaseException) -> str:
    """What a place held when a guard was written and what it holds now."""
    trace = error.__traceback__
    if guard is None or guard.expression is None or trace is None:
        return ""
    frame = trace.tb_frame
    try:
        value = eval(guard.expression, frame.f_globals, frame.f_locals)
        text = seen("type" if guard.check == "same" else guard.check, value)
    except Exception:
        return f" (it was {guard.held})"
    if guard.check == "missing":
        return " (it is now)"
    if text == guard.held:
        return f" (it was {guard.held}, and is another one now, or laid out in another way)"
    return f" (it was {guard.held}, and is {text} now)"


def predicted(
    entry: Entry, programs: list[Program], f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[str]:
    """What would happen to a call with these arguments."""
    call = "a call with these arguments"
    if not switch.on or sys.gettrace() is not None:
        yield f"{call} is traced"
        return
    if not entry.may_try():
        yield f"{call} is traced, as programs have not answered for a while"
        return
    failed: list[str] = []
    for program in programs:
        answers, text = probed(program, f, args, kwargs)
        if answers:
            yield f"{call}: {text}"
            yield from indented(failed)
            return
        failed.append(text)
    kept = not entry.unfit and entry.budget.may_build(entry.won)
    yield f"{call} is traced" + (", and kept as a program" if kept else "")
    yield from indented(failed)


# ----------------------------------------------------------------------------------------------- writing


def indented(lines: Iterable[str], by: int = 2) -> Iterator[str]:
    for line in lines:
        yield " " * by + line


def counted(n: int, noun: str) -> str:
    return f"{n} {noun if n == 1 else noun + ('es' if noun.endswith('s') else 's')}"


def times(n: int) -> str:
    return f" ({n} times)" if n > 1 else ""
