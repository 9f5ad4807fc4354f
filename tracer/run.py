"""Running a function under the tracer: arguments in, value and tape out."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..rules.words import with_article
from . import calls, filters, places, record, thrown, unannounced
from .active import active
from .arrays import kept_copy, owner_of
from .boxing import admit, enter
from .depth import depth, recursion_limit, room
from .detours import detours, registered
from .errors import TraceError
from .intrinsic import behind
from .kinds import HEAP_TYPE, attribute, flags_of, is_one_of, isinstance, own_dict, static
from .loops import Loops, Watch
from .outcome import Outcome, outcome
from .outline import Outline
from .pairs import settle_pairs
from .places import OURS
from .reads import Reads
from .rehearsal import take_back
from .session import Tracer
from .structure import FIXED, Branch, Tree, on_tape
from .tape import GONE, NOWHERE, Input, Site, Tape, ops_in
from .ties import Where, movable, tied
from .tracebacks import change_variables, waiting
from .traits import Path, Trait, holders, traits, whole
from .unboxing import lower, strip_exception
from .watchers import uncover
from .write_back import result_of, result_tree, settle
from .writers import check_effects

SHALLOW = 40  # calls that no recursion limit forbids


class Run:
    """One traced run: ``tape``, the plain ``value``, and the trees of arguments, result and the callable itself."""

    __slots__ = (
        "args",
        "fixed",
        "holders",
        "kwargs",
        "names",
        "outcome",
        "reads",
        "result",
        "self_tree",
        "tape",
        "value",
        "whole",
    )

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.args: list[Tree] = []
        self.kwargs: dict[str, Tree] = {}
        self.fixed: list[list[tuple[Path, Trait]]] | None = (
            None  # of the arguments, where it was kept
        )
        self.names: list[str] = []  # of the positional arguments
        self.holders: list[list[tuple[Path, Any]]] = []  # of the arguments of a run in full
        self.result: Tree = FIXED
        self.self_tree: Tree | None = None
        self.value: Any = None
        self.reads: Reads | None = None
        self.outcome: Outcome | None = None
        self.whole = False  # whether derivatives are a part of the run, so that none is to follow

    def argument(self, key: int | str) -> Tree:
        """The tree of a positional argument, or of one that was given by keyword."""
        return self.args[key] if isinstance(key, int) else self.kwargs[key]

    def close(self) -> Run:
        """Keep what derivatives need, and nothing else of what the run has met."""
        self.value = self.reads = self.outcome = None
        tape = self.tape
        tape.ops[:] = [op for op in tape.ops if op.kind != "effect"]
        for op in tape.ops:
            if type(op) is Input:
                op.place = None
        return self


def run(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    wrt_self: bool = False,
    primitives: Callable[[Any, tuple[Any, ...], dict[str, Any]], bool] | None = None,
    protect: bool = False,
    reads: Reads | None = None,
    drawn: list[Any] | None = None,
    marks: bool | Watch = False,
    patience: int = 0,
    then: Callable[[Tracer, Run, Any], Any] | None = None,
    forward: bool = False,
    rehearsal: bool = False,
    perform: Any = None,
    folds: bool = True,
    outline: type[Outline] | None = None,
    full: bool = False,
) -> Run:
    """Run ``f(*args, **kwargs)`` and put on a tape what it computes.

    With ``protect`` the tape keeps copies of the arrays that the caller can still write to. With ``reads`` it is
    noted there what the run reads from outside, and the run's ``outcome`` says what it did to the outside. ``drawn``
    are the results of impure calls that were made already, at the beginning of this run. With ``marks`` the tape
    tells where the iterations of loops begin, for ``transforms.roll``; given a `Watch`, long loops are rolled while
    they run. The first ``patience`` iterations of each loop are not marked. ``then`` makes of the traced result what
    the run returns, as a part of the run. ``forward`` says that tangents are wanted of it. A ``rehearsal``
    leaves nothing behind outside. ``perform(fn, args, kwargs, site, go)`` gives the values of primitive calls, which
    ``go(*args, **kwargs)`` makes. Without ``folds`` checkpointed calls stay on the tape op by op. With ``outline`` the
    tape knows which calls and iterations its lines come from. With ``full`` its result has what has no derivative too.
    """
    tape = Tape(*describe(f))
    tape.perform = perform
    tracer = Tracer(tape, primitives, reads)
    tracer.drawn = list(drawn or ())
    tracer.forward = forward
    tracer.folds = folds
    if outline is not None:
        tape.outline = tracer.outline = outline(tape)
    tracer.tape.undo = [] if rehearsal else None
    if marks:
        tracer.loops = Loops(tracer, None if marks is True else marks, patience)
        tape.passages = tracer.loops.done
    done = Run(tape)
    done.reads = reads
    names = done.names = argument_names(f, len(args))
    boxed = []
    if reads is not None:
        reads.function = reads.root(tape.name, f)
        if filters.hands_on(np.geterr().values()):
            reads.problem("a function is told of floating-point events")
    keywords = {}
    movables: list[tuple[Where, Any]] = []
    with room:
        if wrt_self:
            done.self_tree = admit_self(tracer, f)
        else:
            owner = behind(f)
            owner = attribute(owner, "__self__", owner)  # the object that is called in the end
            enter(tracer, owner, tape.name, None if reads is None else reads.of(owner))
        try:
            for name, value in zip(names, args, strict=True):
                place = None
                if reads is not None:
                    place = reads.root(name, value)
                    reads.arguments.append(place)
                traced, tree = admit(tracer, value, name, "argument", place)
                boxed.append(traced)
                done.args.append(tree)
            for name, value in kwargs.items():
                place = None
                if reads is not None:
                    place = reads.keywords[name] = reads.root(name, value)
                keywords[name], done.kwargs[name] = admit(tracer, value, name, "argument", place)
            if full or protect:  # as they are now: the function may change what it is given
                trees = zip(
                    [*done.args, *done.kwargs.values()], [*args, *kwargs.values()], strict=True
                )
                whole_trees = [(whole(tree, x), x) for tree, x in trees]
                done.fixed = [[*traits(tree, x)] for tree, x in whole_trees]
                done.holders = [[*holders(tree, x)] for tree, x in whole_trees] if full else []
                keys = [*range(len(args)), *kwargs]
                for key, (tree, x) in zip(keys, whole_trees, strict=True):
                    movables += movable(key, tree, x)
        except BaseException:
            settle(tracer)  # what is a list of a class of its own holds boxes already
            raise
    before = active.tracer
    active.tracer = tracer
    surroundings.enter()
    settled = False
    try:
        registered(tracer)
        result = calls.call(tracer, NOWHERE, f, tuple(boxed), keywords)
        if tracer.refusal is not None:  # whatever the program has made of it
            raise tracer.refusal
        with room:
            done.result = result_tree(tracer, result)
        if then is not None:
            result = then(tracer, done, result)
            with room:
                done.result = result_tree(tracer, result)
            done.whole = True
        tape.result = on_tape(done.result)
        if full:
            with room:
                tape.result = result_of(tracer, result, tape.result)
        unannounced.settle(tracer)
        if reads is not None:
            if reads.calls > SHALLOW:
                reads.note(reads.constant(sys), "limit", None, recursion_limit()).check = "setting"
            if reads.importing:
                reads.problem("an import failed")
            with room:
                done.outcome = outcome(tracer, result)
        if done.fixed is not None:
            trees = zip([*done.args, *done.kwargs.values()], [*args, *kwargs.values()], strict=True)
            for found, (tree, x) in zip(done.fixed, trees, strict=True):
                found += traits(whole(tree, x), x, captured=True)
        if movables:
            written = any(box.memory.writes for box, _ in tracer.inputs)
            tape.ties = tied(tape, movables, written)
        must_be_whole(tape)
        if tape.outline is not None:
            tape.outline.end()
        settled = True
        if rehearsal:
            done.value = kept(lower(tracer, result, final=True))
            for op in ops_in(tape.result):
                op.value = kept(op.value)
            take_back(tracer)
        else:
            settle(tracer)
            check_effects(tracer)
            thrown.settle(tracer, before, sys._getframe())
            done.value = lower(tracer, result, final=True)
            for frame in waiting(tracer.generators.values()):  # which goes on when it is closed
                change_variables(frame, lambda x: lower(tracer, x, final=True))
        if protect or (tracer.asides is not None and tracer.asides.again):
            keep_values(tracer)
        if tracer.pairs:
            settle_pairs(tracer)
    except BaseException as error:
        if rehearsal:
            take_back(tracer)
        elif not settled:
            settle(tracer)
            thrown.settle(tracer, before, sys._getframe())
        if tracer.refusal is not None and not isinstance(error, KeyboardInterrupt):
            error = tracer.refusal  # the program may have caught it, or NumPy wrapped it
            if before is not None:
                before.refusal = before.refusal or error
            strip_exception(tracer, error)
            raise error from error.__cause__
        strip_exception(tracer, error)
        raise
    finally:
        tape.perform = None
        uncover()
        detours.leave(tracer.finalizers)
        surroundings.leave()
        active.tracer = before
        if before is None:
            tracer.texts.holders.clear()
            tracer.texts.stores.clear()
        tracer.close()
    return done


NOTHING = contextlib.nullcontext()


class _Surroundings:
    """What hooks would disturb, put right while any function is being traced.

    Recursion goes as deep as in plain Python (see ``depth``), and a warning that NumPy gives belongs to the
    user's line, not to the line of ours that called NumPy. So is what is logged.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a finalizer may begin a run at any moment
        self.runs = 0
        self.show: Any = None
        self.warnings: Any = warnings  # which hands each warning that is to be shown to a function
        self.logging: types.ModuleType | None = None
        self.internal: Any = None
        self.warned = False  # whether there ever was a warning of no floating-point event

    def enter(self) -> None:
        depth.enter()
        self.watch()

    def leave(self) -> None:
        depth.leave()
        self.let_go()

    def watch(self) -> None:
        """Be told of warnings and of what is logged."""
        with self.lock:
            self.runs += 1
            if self.runs == 1:
                self.show, self.warnings._showwarnmsg = (
                    self.warnings._showwarnmsg,
                    self.show_at_user,
                )
                vars(record).pop("__warningregistry__", None)
                filters.put_first()
                self.logging = sys.modules.get("logging")
                self.internal = getattr(self.logging, "_is_internal_frame", None)
                if self.internal is not None:
                    self.logging._is_internal_frame = self.is_internal  # type: ignore[union-attr]

    def let_go(self) -> None:
        with self.lock:
            self.runs -= 1
            if self.runs == 0:
                filters.take_out()
                if self.warnings._showwarnmsg == self.show_at_user:
                    self.warnings._showwarnmsg = self.show
                if self.internal is not None:
                    self.logging._is_internal_frame = self.internal  # type: ignore[union-attr]

    def is_internal(self, frame: types.FrameType) -> bool:
        """Whether ``logging`` looks further out for who has called it."""
        return places.is_ours(frame) or self.internal(frame)

    @contextlib.contextmanager
    def recording(self, reads: Reads) -> Iterator[None]:
        """For the recording of a call, which gives no warnings of its own."""
        self.watch()
        try:
            with filters.noted(reads):
                yield
        finally:
            self.let_go()

    def unheard(self) -> contextlib.AbstractContextManager[None]:
        """For what is computed of our own accord: what NumPy would warn of there was no call of the user's."""
        return self.silent() if self.warned else NOTHING  # as it takes 15 µs

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        before = filters.recording.reads
        self.watch()
        try:
            with filters.noted(filters.UNHEARD):
                yield
        finally:
            filters.recording.reads = before
            self.let_go()

    def show_at_user(self, shown: warnings.WarningMessage) -> None:
        frame = sys._getframe(1)
        reads = filters.recording.reads if shown.category is not ResourceWarning else None
        if reads is filters.UNHEARD:
            own = str(shown.category.__module__).startswith("wengert.")
            if filters.is_asked_by_us(frame) and not own:
                return
        elif reads is not None and is_user_code(users_frame(frame).f_code):  # no finalizer's
            reads.problem(f"{with_article(shown.category.__name__)} is given")
            return
        tracer, of_numbers = active.tracer, filters.is_of_numbers(shown)
        self.warned |= not of_numbers  # programs compute the others again
        # Whether the user's filters show it or not.
        if tracer is not None and tracer.reads is not None and not of_numbers:
            tracer.reads.problem(f"{with_article(shown.category.__name__)} is given")
        elif tracer is not None and tracer.reads is not None and filters.is_shown_by_users():
            tracer.reads.problem("a function is told of floating-point events")
        let_through = filters.is_let_through(shown, frame)
        if let_through or shown.filename.startswith(OURS):
            frame = users_frame(frame)
            if let_through:
                filters.give_again(shown, frame)
                return
            shown.filename, shown.lineno = frame.f_code.co_filename, frame.f_lineno or 0
        self.show(shown)


surroundings = _Surroundings()


def users_frame(frame: types.FrameType) -> types.FrameType:
    """The frame of the user's traced code, outwards from one of ours; where there is none, of what has called us."""
    caller, outer = None, frame
    while outer.f_back is not None and not is_user_code(outer.f_code):
        outer = outer.f_back
        if caller is None and not places.is_library(outer.f_code.co_filename):
            caller = outer
    return outer if is_user_code(outer.f_code) or caller is None else caller


def is_user_code(code: types.CodeType) -> bool:
    """Whether it is instrumented code of the user's, and not of a rule."""
    return calls.rewrite.is_twin(code) and not code.co_filename.startswith(OURS)


def must_be_whole(tape: Tape) -> None:
    """Raise where the tape refers to what a checkpointed function has computed, and which is no longer there."""
    if not tape.again:
        return
    for op in (*tape.ops, *ops_in(tape.result)):
        for x in (op, *op.operands()):
            if x.tape is GONE:
                raise TraceError(
                    f"{x.site}: a value that was computed in a checkpointed function is used outside of it "
                    f"({op.site}), but was not returned\nreturn it"
                )


def keep_values(tracer: Tracer) -> None:
    """Move the values that the reverse sweep may need out of the arrays that somebody outside can write to."""
    for box in [
        *tracer.exposed,
        *[box for memory in [*tracer.memories.values()] for box in memory.boxes],
    ]:
        for op in box.memory.saved:
            op.value = kept_copy(op.value)
        box.memory.saved.clear()
    owners = {id(box.memory.owner) for box in tracer.exposed} | set(tracer.memories)
    for op in tracer.tape.again:
        if isinstance(op.value, np.ndarray) and id(owner_of(op.value)) in owners:
            op.value = kept_copy(op.value)


def kept(value: Any) -> Any:
    """A result with copies of its arrays, which may lie in memory that a rehearsal will restore."""
    kind = type(value)
    if is_one_of(kind, (list, tuple)):
        return kind([kept(x) for x in value])
    return kept_copy(value) if kind is np.ndarray else value


def must_be_callable(f: Any) -> None:
    """Raise where the user has given something else in the place of a function."""
    if not callable(f):
        raise TraceError(
            f"the first argument must be a function or another callable, not {with_article(type(f).__name__)}\n"
            "pass the function itself, and its arguments behind it or to what comes back: trace(f, x), grad(f)(x), "
            "not grad(f(x))"
        )


def describe(f: Any) -> tuple[str, Site]:
    """The name and the place of a callable; of one that stands around another, that of the inner one."""
    must_be_callable(f)
    f = behind(f)
    inner = unwrapped(attribute(f, "__func__", f))
    code = attribute(inner, "__code__")
    name = attribute(f, "__name__", type(f).__name__)
    if code is None:
        return name, NOWHERE
    return name, Site(code.co_filename, code.co_firstlineno, code.co_name)


def in_full(f: Any) -> str:
    """A callable as errors show it, with the place where it stands."""
    name, site = describe(f)
    return f"{name} ({site.place})" if site.filename else name


def argument_names(f: Any, count: int) -> list[str]:
    """What to call the positional arguments on the tape."""
    names, rest = parameter_names(f)
    if rest is not None:
        names = names + [f"{rest}[{i}]" for i in range(count - len(names))]
    names = names + [f"x{i}" for i in range(len(names), count)]
    return names[:count]


def parameter_names(f: Any) -> tuple[list[str], str | None]:
    """The positional parameters of a callable, and the one that takes the rest; no code of the user's is run."""
    f = unwrapped(behind(f))
    kind = type(f)
    if kind is types.FunctionType:
        code = f.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        rest = code.co_varnames[count] if code.co_flags & inspect.CO_VARARGS else None
        return list(code.co_varnames[: code.co_argcount]), rest
    if kind is types.MethodType:
        names, rest = parameter_names(f.__func__)
        return names[1:], rest
    if kind is functools.partial:
        names, rest = parameter_names(f.func)
        names = names[len(f.args) :]
        by_name = next((i for i, name in enumerate(names) if name in f.keywords), None)
        return (names, rest) if by_name is None else (names[:by_name], None)
    if not flags_of(kind) & HEAP_TYPE and not isinstance(f, type):
        return native_names(f)
    method = static(f, "__init__") if isinstance(f, type) else static(kind, "__call__")
    if type(method) is staticmethod or type(method) is classmethod:
        names, rest = parameter_names(method.__func__)
        return names[type(method) is classmethod :], rest
    names, rest = parameter_names(method) if type(method) is types.FunctionType else ([], None)
    return names[1:], rest


def keyword_names(f: Any) -> set[str]:
    """The parameters of a callable that can be given by name; no code of the user's is run."""
    f = unwrapped(behind(f))
    if type(f) is functools.partial:
        return keyword_names(f.func)
    if type(f) is types.MethodType:
        return keyword_names(f.__func__)
    if not isinstance(f, types.FunctionType):
        method = static(f, "__init__") if isinstance(f, type) else static(type(f), "__call__")
        return keyword_names(method) if type(method) is types.FunctionType else set()
    code = f.__code__
    return set(
        code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    )


def unwrapped(f: Any) -> Any:
    """The function that others stand around, as ``functools.wraps`` tells."""
    seen: list[Any] = []
    while type(f) is types.FunctionType or type(f) is functools._lru_cache_wrapper:
        inner = own_dict(f).get("__wrapped__")
        if inner is None or any(x is f for x in seen):
            break
        seen.append(f)
        f = inner
    return f


def native_names(f: Any) -> tuple[list[str], str | None]:
    """The same of a function written in C."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return names, next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)


def admit_self(tracer: Tracer, f: Any) -> Tree:
    """Make the attributes of a callable object, or the closure of a function, inputs of the tape."""
    f = behind(f)
    if isinstance(f, types.MethodType):
        return admit_self(tracer, f.__self__)
    if type(f) is functools._lru_cache_wrapper:
        return admit_self(tracer, f.__wrapped__)
    if not isinstance(f, types.FunctionType):
        return admit(tracer, f, type(f).__name__, "argument")[1]
    parts: dict[Any, Tree] = {}
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        shadow = types.CellType()
        try:
            shadow.cell_contents, parts[name] = admit(tracer, cell.cell_contents, name, "argument")
        except ValueError:  # an empty cell
            pass
        tracer.cells[id(cell)] = (cell, shadow)
    return Branch(types.FunctionType, parts)
