"""Dispatch: a call goes to a program that may answer it, or it is traced.

Words
-----
state      what stands behind a function that is given to the user (see `Made`).
attached   with a program as the very code of that function, so that a repeated call does nothing but run it.
trial      a program run on its own, to see whether it answers (see `trial`).

A wrapper around a program would cost as much as a small program itself (measured: 130 ns of 270), so the state's
function takes over the program's code object; what it refers to by name lies in the function's own globals.
"""

from __future__ import annotations

import builtins
import inspect
import math
import sys
import types
from collections.abc import Callable, Hashable, Iterable
from time import perf_counter as clock
from typing import Any

import numpy as np

from ..tracer import loops
from ..tracer.active import active
from ..tracer.errors import WengertError
from ..tracer.intrinsic import Intrinsic, Made, intrinsic
from ..tracer.kinds import attribute, isinstance
from ..tracer.places import IMPORTING, OURS, passed_over
from ..tracer.reads import MISSING, Reads
from ..tracer.rewrite import WRITING, replaced
from ..tracer.run import Run, must_be_callable, run
from ..tracer.structure import leaves
from ..tracer.tape import Tape
from ..tracer.tracebacks import fold
from . import room
from .budget import working
from .cache import Entry, entry_of, key_of, lock, settings, source_of, switch
from .fold.keep import recorded
from .gather import is_element
from .loops import LoopFunction
from .pairs import Late
from .pickling import at_place, place_of
from .programs import Miss, Program, Unfit
from .roll import roll
from .silence import put_first
from .stream import watch
from .trial import Trial


def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The code of a function without a program."""
    try:
        return self(*args, **kwargs)
    except BaseException as error:
        fold(error)
        raise


# Who asks where such a function is written is led on to the user's, as from a program.
ASK = call.__code__.replace(co_filename=f"<wengert call> {IMPORTING}")
intrinsic(fold)
REPEATED = 10  # operations of one place, where a run goes round
SHORTEST = 64  # operations that a counted loop must have to be rolled; Horner's rule goes three times as fast so


class Caller:
    """Answers calls of something that Wengert has made of ``f``: by a program, or by tracing."""

    __slots__ = ("f", "options")

    def __init__(self, f: Callable[..., Any], options: tuple[Any, ...]) -> None:
        must_be_callable(f)
        self.f = f
        self.options = options

    def program_key(self) -> Hashable:
        return (type(self).__name__, *self.options, key_of(self.f))

    def entry(self) -> Entry:
        return entry_of(self.program_key(), self.f, self.title)

    # What the kinds of functions differ in

    def title(self) -> str:
        """How a person would write it."""
        raise NotImplementedError

    def traced(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], reads: Reads | None, drawn: list[Any]
    ) -> tuple[Any, Run | None]:
        """Answer a call by tracing; without a run where that was not needed."""
        raise NotImplementedError

    def never(self) -> str | None:
        """Why no call of it is ever kept; None where calls may be."""
        return None

    def may_build(self, entry: Entry) -> bool:
        """Whether a call that no program answers may be recorded and made a program."""
        return entry.may_build()

    def build(self, done: Run) -> Program:
        """The program of a traced run; raises Unfit."""
        raise NotImplementedError

    @passed_over
    def dispatch(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        drawn: list[Any],
        left: Program | None,
    ) -> Any:
        """Answer a call by a program, other than the one that was ``left``, or by tracing it."""
        if not switch.on or sys.gettrace() is not None:  # a debugger wants to see the user's lines
            return room.given(self.f, self.traced, args, kwargs, None, drawn)[0]
        entry = self.entry()
        if not entry.may_try():
            self.detach()
            return self.retrace(entry, args, kwargs, drawn)
        programs, of_one = list(entry.programs), entry.of_all_ways
        answer = self.answered(entry, programs[:of_one], left, args, kwargs, drawn)
        folds = answer is MISSING and entry.goes_to_and_fro()
        if folds:
            answer = self.folded(entry, args, kwargs, drawn)
        if answer is MISSING:
            answer = self.answered(entry, programs[of_one:], left, args, kwargs, drawn)
        if answer is MISSING and not folds and entry.may_fold():
            answer = self.folded(entry, args, kwargs, drawn)
        return self.retrace(entry, args, kwargs, drawn) if answer is MISSING else answer

    def answered(
        self,
        entry: Entry,
        programs: Iterable[Program],
        left: Program | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        drawn: list[Any],
    ) -> Any:
        """What one of these programs gives, other than the one that was ``left``; MISSING if none answers.

        If one that does not answer has drawn something, the run has begun, and must go on: that is added to ``drawn``.
        """
        for program in programs:
            if drawn:
                break
            if program is left or not program.fits(kwargs):
                continue
            start = clock()
            trial = Trial(self.f)
            value = program.alone(trial, *args, **kwargs)
            if trial.error is not None and program.trusted(trial.error, program.namespace):
                trial.error.__traceback__ = None
                trial = Trial(self.f)
                value = program.alone(trial, *args, **kwargs)
            took = clock() - start
            if trial.error is None:
                program.hits += 1
                program.cost = took
                self.attach(program)
                entry.front(program)
                return value
            entry.note_miss(program, trial.error, took)
            trial.error.__traceback__ = None  # whose frame has the trial and the arguments
            drawn += trial.drawn
        return MISSING

    @passed_over
    def retrace(
        self, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], drawn: list[Any]
    ) -> Any:
        """Trace a call, and keep what it comes down to as a program, where that may pay."""
        budget = entry.budget
        builds = self.may_build(entry) and not entry.has_region(self.followed(args))
        reads = Reads(entry.dynamic) if builds else None
        done, answered = None, False
        start = working()
        try:
            value, done = room.given(self.f, self.traced, args, kwargs, reads, drawn)
            answered = True
            took = working() - start
            if done is None:
                budget.note_trace(took, None, 0)
            elif reads is None:
                budget.note_trace(took, way_of(done), len(done.tape.ops), turns(done.tape))
            else:
                self.learn(entry, done)
                budget.note_attempt(took, working() - start - took)
        finally:
            if not answered:  # it has raised
                budget.note_trace(working() - start, None, 0)
            if reads is not None:
                reads.close()
                if done is not None:
                    done.close()
        return value

    def learn(self, entry: Entry, done: Run) -> None:
        """Make a program of a traced run, if one can be made."""
        if done.reads is None:  # it is the caller's
            return
        start = working()
        # Loops so long that they are rolled while they run would be as long as they are.
        long = any(type(op.fn) is LoopFunction for op in done.tape)
        try:
            if (one := replaced(WRITING)) is not None:
                raise Unfit(f"builtins.{one} is replaced, by which programs are written")
            self.roll(entry, done)
            length = sum(not is_element(op) for op in done.tape)  # these can be taken together
            if not entry.budget.may_be_long(length):
                raise Unfit(
                    f"its tape is {length} operations long: to write a program of it takes longer than its calls so far"
                )
            program = self.build(done)
        except (Unfit, WengertError, ArithmeticError) as why:  # of rules, run to record them
            entry.unfit = str(why)
            entry.whole |= isinstance(why, Late) and not long
        except (RecursionError, MemoryError):  # of the parser
            entry.unfit = (
                "what it is given, or gives, is nested too deep for the source of a program"
            )
        except Exception as error:
            if settings.strict:
                raise
            entry.unfit = f"an error of Wengert's own, please report it: {error!r}"
        else:
            program.seconds = working() - start
            if entry.whole:
                entry.unfit = None
            entry.add(program)

    def folded(
        self, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], drawn: list[Any]
    ) -> Any:
        """Answer a call by the region of the function; MISSING if that cannot be. What it draws goes to ``drawn``."""
        return MISSING

    def followed(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Of the arguments of a call those that the user's function is given."""
        return args

    def by_region(
        self,
        entry: Entry,
        f: Any,
        args: tuple[Any, ...],
        keys: Any,
        answer: str,
        drawn: list[Any],
        aux: bool = False,
    ) -> Any:
        """Record a call of ``f``, and answer it by the program of all the ways that were seen."""
        if type(f.__func__ if type(f) is types.MethodType else f) is not types.FunctionType:
            return MISSING
        followed = self.followed(args)
        program = room.roomy(recorded, entry, f, followed, keys, answer, drawn, aux)
        if program is None:
            return MISSING
        trial = Trial(self.f)
        value = program.given(drawn)(trial, *args)
        if trial.error is not None:
            # As where a slope is divided by zero: the traced run knows what to do.
            if settings.strict and isinstance(trial.error, (NameError, AttributeError)):
                raise trial.error
            return MISSING
        self.attach(program)
        return value

    def roll(self, entry: Entry, done: Run) -> None:
        """Roll the loops of a traced run; nobody needs its tape as it is any more."""
        entry.unrolled = {}
        roll_loops(done, entry.unrolled, SHORTEST)

    def attach(self, program: Program) -> None:
        """Let a program answer the next call first."""

    def detach(self) -> None:
        """Let no program answer first."""

    @passed_over
    def missed(
        self,
        program: Program,
        error: BaseException,
        drawn: list[Any],
        given: tuple[Any, ...],
        rest: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        """The attached program was left: ask the others, or trace."""
        self.flush()
        again = program.trusted(error, self.scope(program))
        if active.tracer is None and switch.on and sys.gettrace() is None and not again:
            with lock:
                self.entry().note_miss(program, error, program.cost)
        interrupted = is_interruption(error)
        error.__traceback__ = None
        args, kwargs = arguments(program, given, rest, named)
        if active.tracer is not None:
            return self.inside(args, kwargs)
        answer = self.dispatch(args, kwargs, list(drawn), None if again else program)
        if interrupted:
            raise error
        return answer

    def flush(self) -> None:
        """Count the hits of the attached program."""

    def scope(self, program: Program) -> dict[str, Any]:
        """The variables by their names that the program runs with, where it is attached."""
        return program.namespace

    def inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call from inside a traced function."""
        raise NotImplementedError


def way_of(done: Run) -> int:
    """A number that stands for all that a run did, in its order, how it decided, and the shapes that it met."""
    return hash(
        tuple(
            [
                (id(op.fn), op.site, op.value if op.kind == "guard" else shape_of(op.value))
                for op in done.tape.ops
            ]
        )
    )


def turns(tape: Tape) -> float:
    """How many operations a run has done, if they are those of few places; 0 where each place had its own."""
    if any(type(op.fn) is LoopFunction for op in tape.ops):  # of which iterations were dropped
        return math.inf
    count = len(tape.ops)
    return count if len({op.site for op in tape.ops}) * REPEATED <= count else 0


def shape_of(value: Any) -> Any:
    return value.shape if type(value) is np.ndarray else None


def traced_run(f: Any, args: Any, kwargs: Any, reads: Reads | None, **options: Any) -> Run:
    """A run of ``f`` whose very long loops are rolled while they run; only with ``reads`` others can be."""
    patience = loops.FIRST_LOOK if reads is None else 0
    done = run(f, args, kwargs, reads=reads, marks=watch, patience=patience, **options)
    if any(passage.dropped for passage in done.tape.passages):
        # The sweep will run the loops again, from values that writes to arrays may have changed since. Where nothing
        # is kept, rolling what is on the tape as it is would take longer than sweeping over it.
        roll_loops(done, {}, 0, needed_only=reads is None or done.tape.written > 0)
    elif reads is None:
        done.tape.passages = []  # nobody rolls them, and a pullback keeps the tape
    return done


def roll_loops(
    done: Run, reasons: dict[str, str], shortest: int, needed_only: bool = False
) -> None:
    """Roll the loops of a run."""
    keep = [leaf.op for leaf in leaves(done.result) if leaf.op is not None]
    if done.outcome is not None and done.reads is not None:
        keep += [*done.outcome.ops(), *done.reads.impure]
    roll(done.tape, reasons, keep, shortest, needed_only)
    done.tape.passages = []


class Dispatcher(Caller, Intrinsic):
    """The state behind a function that Wengert has made of ``f``."""

    __slots__ = ("__weakref__", "function", "hits", "inner", "named", "program")

    def __init__(
        self, f: Callable[..., Any], name: str, options: tuple[Any, ...], inner: Any = None
    ) -> None:
        self.inner = f if inner is None else inner  # the user's function
        self.hits = 0.0
        self.program: Program | None = None
        self.named: dict[Program, None] = {}  # whose names are among the function's globals
        super().__init__(f, options)
        self.function = types.FunctionType(
            ASK, {"__builtins__": builtins, "fold": fold}, f"{name}({name_of(self.inner)})"
        )
        # By which CPython calls it where an argument has a name that it does not know.
        self.function.__qualname__ = str(attribute(self.inner, "__qualname__", "call"))
        with lock:  # which whoever goes through them holds
            switch.users.add(self)

    @property
    def __name__(self) -> str:
        return self.function.__name__

    def made(self) -> Made:
        """The function that is made of ``f``."""
        return Made(self.function, self, self.inner)

    def reduced(self, made: Made) -> tuple[Any, ...]:
        place = place_of(made, self.inner)
        return self.anew() if place is None else (at_place, place)

    def anew(self) -> tuple[Any, ...]:
        """What makes such a function in another process: a function of ours, and its arguments."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self.title()}, {source_of(inspect.unwrap(self.inner))}>"

    def __del__(self) -> None:
        if hasattr(self, "function"):  # one that was refused has none
            self.flush()

    # The way of a call

    @passed_over
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if active.tracer is not None:
            return self.inside(args, kwargs)
        return self.dispatch(args, kwargs, [], None)

    # Programs as code

    def attach(self, program: Program) -> None:
        """Let the function be the program."""
        with lock:
            # While the program was tried, another thread may have cleared the cache: it has a new rule, perhaps.
            if self.program is program or program.dropped or not switch.on:
                return
            self.detach()
            function = self.function
            if program not in self.named:
                if not self.may_name(program):
                    return
                self.named[program] = None
                function.__globals__.update(program.namespace)
            put_first()
            function.__defaults__ = (MISSING,) * len(program.parameters)
            function.__code__ = program.code  # type: ignore[assignment]
            self.program = program

    def may_name(self, program: Program) -> bool:
        """Whether the names of a program may be put among the function's globals: none has another meaning there.

        Programs that were made at the same time, or before and after the cache was cleared, may have chosen the same
        names. One that runs nowhere loses its own.
        """
        scope, own = self.function.__globals__, program.namespace
        if all(scope.get(name, x) is x for name, x in own.items()):
            return True
        others = [p for p in self.named if p is not program and contradict(p.namespace, own)]
        self.forget(others)
        return not any(p in self.named for p in others)

    def forget(self, programs: Iterable[Program]) -> None:
        """Take away the names of those programs that run nowhere."""
        running = codes_that_run()
        for program in [p for p in programs if p.code not in running]:
            del self.named[program]
        kept = {"__builtins__", "fold"}.union(*[p.namespace for p in self.named])
        for name in {*self.function.__globals__} - kept:
            del self.function.__globals__[name]

    def detach(self) -> None:
        """Let the function ask the cache."""
        with lock:
            self.flush()
            self.function.__code__ = ASK
            self.program = None
            if self.named and next(iter(self.named)).dropped:
                self.forget([p for p in self.named if p.dropped])

    def scope(self, program: Program) -> dict[str, Any]:
        return self.function.__globals__

    def flush(self) -> None:
        program, hits = self.program, self.hits  # another thread may be here as well
        self.hits = 0.0
        if program is not None:
            program.hits += int(hits)


# What operations raise: such an error is raised again when the call is traced, or caught as it is in plain Python.
OF_OPERATIONS = (
    Miss,
    ArithmeticError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RuntimeError,
)


def is_interruption(error: BaseException) -> bool:
    """Whether an exception came into a program from a signal handler: tracing again would not raise it."""
    traceback = error.__traceback__
    if isinstance(error, OF_OPERATIONS) or traceback is None or traceback.tb_next is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return not traceback.tb_frame.f_code.co_filename.startswith((*OURS, "<wengert"))


def contradict(names: dict[str, Any], others: dict[str, Any]) -> bool:
    """Whether a name stands for one thing here and for another there."""
    return any(others.get(name, x) is not x for name, x in names.items())


def codes_that_run() -> set[types.CodeType]:
    """The code of all frames of all threads."""
    found = set()
    for frame in sys._current_frames().values():
        at: types.FrameType | None = frame
        while at is not None:
            found.add(at.f_code)
            at = at.f_back
    return found


def arguments(
    program: Program, given: tuple[Any, ...], rest: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, from what a program was given."""
    count = next((i for i, x in enumerate(given) if x is MISSING), len(given))
    later = dict(zip(program.parameters[count:], given[count:], strict=True))
    kwargs = {k: x for k, x in later.items() if x is not MISSING}
    return (*given[:count], *rest), {**kwargs, **named}


def written(kind: str, f: Any, options: str = "") -> str:
    """How a person would write what was made of ``f``."""
    owner = attribute(f, "__self__")
    inner = owner.title() if isinstance(owner, Caller) else name_of(f)
    return f"{kind}({inner}{options})"


def name_of(f: Any) -> str:
    return str(attribute(f, "__name__", type(f).__name__))
