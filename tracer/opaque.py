"""Callables of which nothing is known: run on plain values, and recorded without a rule.

Words
-----
untraced     such a call that is given no traced value: what it gives is a constant, or comes in from outside.
traced       one that is given some: its result is recorded, if it is made of numbers; a gradient that flows back to it
             is an error.
"""

from __future__ import annotations

import functools
import mmap
import operator
import random
import signal
import sys
import time
import types
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from ..rules.numpy_random import served
from ..rules.signatures import has_out
from ..rules.words import with_article
from . import frames, meaning, operators, rewrite, sights, unannounced
from .arrays import is_traced_array, window
from .border import STAND_INS, is_constant, reflected
from .box import BOXES, ArrayBox, Box
from .boxing import enter
from .detours import code_of, finalized, made_inside
from .effects import may_fail
from .errors import NoRuleError, TraceError
from .escape import callbacks_in, is_users
from .handed import (
    PICKLERS,
    Handed,
    called_later,
    found_behind,
    home_of,
    look_at_addresses,
    may_call,
    note_parts,
)
from .holders import (
    belongs_to_own,
    given_to_programs,
    gives_nothing,
    has_files,
    is_known,
    is_naming,
    on_the_system,
    opened,
    started,
)
from .kinds import attribute, dict_of, flags_of, has, has_dict, has_special, is_one_of, isinstance
from .leads import leads_to_users
from .marks import (
    Reading,
    behind,
    failed,
    files_named,
    follow,
    found,
    in_files,
    is_bearer,
    is_text,
    keep,
    made,
    passed,
    refuse,
    traced,
)
from .missing import IN_A_FUNCTION, full_name, no_rule
from .operators import is_integer
from .origins import Origin, joined
from .out import call_with_out
from .places import blame, module_of
from .protocols import (
    drawn,
    is_array_of_objects,
)
from .purity import is_draw, is_pure, is_random, looks_only, may_change, may_wait
from .reads import HEAP_TYPE, MISSING, Reads, static
from .record import append, born, finish, has_box, operand, performed, raised, see_inside
from .rehearsal import must_be_certain
from .renewal import Left, refresh, renew
from .session import Tracer
from .shown import enters, holders, shows
from .slots import is_object, plain_of
from .stand_ins import kept_method
from .structure import is_container
from .tape import Guard, Op, Site, fn_name, ops_in
from .text import PRIVATE
from .through import contents, write_cells
from .unboxing import lower, refuse_carrier
from .write_back import draw_all


def opaque(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> Any:
    """Run an unknown callable on plain values, and record it: a gradient that flows back to it is an error."""
    if keeps_callback(fn):
        if any(type(x) is ArrayBox and not x.memory.boxes for x in args):
            raise TraceError(
                f"{blame(site)}: {full_name(fn)} is to tell when an array dies that the function has made, and which "
                "the tracer holds until its run has ended\nwatch an object that holds the array"
            )
        see_inside(tracer, args)
        for x in (*args, *kwargs.values()):
            finalized(tracer, attribute(x, "__func__", x))
            finalized(tracer, static(type(x), "__call__"))
    encodes = type(fn).__module__ == "_json"  # the encoder, which makes strings of numbers
    if encodes:
        drawn(tracer, args)
    if tracer.reads is not None:
        note_given(tracer.reads, site, fn, (*args, *kwargs.values()))
    if type(fn) is np.ufunc and fn.signature is None and has_out(fn, args, kwargs):
        return call_with_out(tracer, site, fn, args, kwargs)
    call = Call(tracer, site, fn, args, kwargs)
    return (
        call.untraced() if encodes or not (has_box(call.args) or has_box(kwargs)) else call.traced()
    )


def note_given(reads: Reads, site: Site, fn: Any, given: tuple[Any, ...]) -> None:
    """Note what an unknown callable may see of, and do to, what it is given."""
    if is_pure(fn):
        reads.look_into(given, site)
        if type(fn) is types.BuiltinFunctionType and (
            fn in operators.BINARY or fn in operators.UNARY
        ):
            reads.rounded(given, site)
    elif may_change(fn) and any(map(holds_mutable, given)):
        reads.problem(f"{fn_name(fn)} may change a container", site)


class Call:
    """One call of an unknown callable, and the texts that it is given: ``origin`` says what they were made of."""

    def __init__(self, tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> None:
        self.tracer, self.site, self.fn, self.kwargs = tracer, site, fn, kwargs
        self.given = args
        self.asked = (fn, args, kwargs)
        self.texts = len(tracer.texts.drawn)
        if self.texts and tracer.texts.stores and may_call(fn):
            for x in args:
                belongs_to_own(tracer.texts, x)
        origin = found(tracer, self.asked) if self.texts else None
        if has_files(tracer.texts) and reads_files(fn):
            origin = in_files(tracer, fn, args) or origin
        if (
            self.texts
            and starts(fn)
            and (more := given_to_programs(tracer.texts, args)) is not None
        ):
            origin = more if origin is None else joined([origin, more])
        passing: list[Origin] = []  # of text that the function is, or will be, given one by one
        if type(fn) is not types.FunctionType and any(map(is_generator, args)):
            args = tuple([passed(x, passing) if is_generator(x) else x for x in args])
            stream = Origin(None, "", passing)
            origin = stream if origin is None else joined([origin, stream])
        self.args, self.origin = args, origin
        self.pure = is_pure(fn)
        # whether code of the user's may run in it of which the run sees nothing
        self.runs = leads_to_users(fn, (*self.args, *kwargs.values()))

    def hand_over(self, value: Any, memo: dict[int, Any]) -> Any:
        """An argument as C code gets it: one that it may call later is to tell of it."""
        value = handed_over(self.tracer, value, memo)
        if is_one_of(type(value), METHODS) and is_container(value.__self__) and may_call(self.fn):
            return kept_method(self.site, value)
        return value

    def problem(self, why: str) -> None:
        """Note why no program will stand for this call."""
        if self.tracer.reads is not None:
            self.tracer.reads.problem(why, self.site)

    def note_writer(self, sources: Iterable[Op]) -> None:
        """Note that the call may write to arrays that it is not given, and do anything else if it runs such code."""
        if self.runs:
            self.problem(f"{fn_name(self.fn)} may wait, or let other code run")
            sources = [*sources, *sights.put_outside(self.tracer)]
        elif self.pure or looks_only(self.fn) or is_known(self.fn):
            return
        unannounced.may_write(self.tracer, self.site, self.fn, sources)

    # Without traced values

    def untraced(self) -> Any:
        """What it gives where it is given no traced value."""
        tracer, site, fn, kwargs, args = self.tracer, self.site, self.fn, self.kwargs, self.args
        if self.origin is not None:
            args = tuple([told(tracer, site, fn, x, self.origin) for x in args])
        memo: dict[int, Any] = instead(tracer, fn, args)
        plain_args = [self.hand_over(x, memo) for x in args]
        options = {k: self.hand_over(x, memo) for k, x in kwargs.items()}
        start = len(tracer.tape.ops)
        self.note_writer(())
        if tracer.cells_known:
            write_cells(tracer)
        began = time.time_ns()
        look_at_addresses(tracer, site, fn, args, bool(found_behind(tracer, args)))
        with Handed(tracer, site, fn, args, kwargs, []) as handed:
            value = again(tracer, site, fn, plain_args, options, self.pure, self.asked)
            handed.written((), {})
        refresh(tracer, args, lambda x: enter(tracer, x, "made") if is_traced_array(x) else x)
        if self.runs or not looks_only(fn):
            renew(tracer)
        note_parts(tracer, fn, args, value)
        if may_call(fn):
            opened(tracer.texts, value, files_named(args))
        result = born(tracer, site, fn, tuple(plain_args), options, value, self.pure)
        said = len(tracer.tape.ops) > start or (value is None and tracer.reads is not None)
        if tracer.reads is not None and not self.pure:
            unknown(tracer, site, fn, plain_args, options, value, start)
        if not said and is_random(fn):
            tracer.tape.no_more = (
                f"{untold_draw(fn, value)} ({site}), and no line of the tape says so",
                "draw the numbers outside, and pass them as an argument",
            )
        self.keep_texts(value)
        if has(type(value), "__next__"):
            sights.note_code(tracer, value)
        if type(value) is memoryview:  # of an object that has arrays of its own
            enters(tracer, value)
        return self.marked(handed.tied(result), began)

    def keep_texts(self, value: Any) -> None:
        """What the call was given holds the texts that were drawn while it ran, and those that it was given."""
        origins = self.tracer.texts.drawn[self.texts :]
        if self.origin is not None:
            origins = [*origins, self.origin]
        if origins:
            known = not may_call(self.fn)
            keep(self.tracer, self.fn, self.given, self.kwargs, value, joined(origins), known)

    def marked(self, result: Any, began: int) -> Any:
        """The result of a call without traced values, as text if it was made of some. It ``began`` then."""
        tracer, site, fn, given = self.tracer, self.site, self.fn, self.given
        if self.texts and is_naming(fn):
            read = on_the_system(tracer.texts, fn, given, behind(tracer, site, *given), began)
            return result if read is None else follow(tracer, site, Reading(fn), result, read)
        if self.texts and starts(fn):
            started(tracer.texts, behind(tracer, site, *given), began)
        if self.origin is not None:
            result = follow(tracer, site, fn, result, self.origin)
        return made(tracer, site, fn, given, self.kwargs, result, self.texts)

    # With traced values

    def traced(self) -> Any:
        """What it gives where it is given traced values."""
        tracer, site, fn, kwargs, args = self.tracer, self.site, self.fn, self.kwargs, self.args
        arrays: list[ArrayBox] = []
        operands, options = operand(args, arrays), operand(kwargs, arrays)
        self.note_writer(ops_in((operands, options)))
        if tracer.cells_known:
            write_cells(tracer)
        look_at_addresses(tracer, site, fn, args, traced=True)
        with Handed(tracer, site, fn, args, kwargs, arrays) as handed:
            before = [] if self.origin is None else [box.value.tobytes() for box in arrays]
            memo: dict[int, Any] = {}
            plain = {k: self.hand_over(x, memo) for k, x in kwargs.items()}
            start = len(tracer.tape.ops)
            plain_args = [self.hand_over(x, memo) for x in args]
            sources = [*ops_in((operands, options))]
            held = holders(arrays)
            value = again(tracer, site, fn, plain_args, plain, self.pure, self.asked, sources)
            kept = held != holders(arrays)
            targets = [plain_of(x) for x in (value, kwargs.get("out"))]
            shown = None if value is None else shown_in(arrays, value, site)
            if shown is not None:
                if handed.writes or kwargs.get("out") is not None:
                    handed.written(operands, options, targets)
                    shown = shown_in(arrays, value, site)
                self.problem(f"{fn_name(self.fn)} makes a view of an array")
                return shown
            for box, was in zip(arrays, before, strict=False):
                if self.origin is not None and box.value.tobytes() != was:  # by what is in the text
                    refuse(tracer, site, fn, box, self.origin)
            handed.written(operands, options, targets)
            handed.keep(operands, options, (attribute(fn, "__self__"), *args, *kwargs.values()))

        def changed(x: Any) -> Any:
            return record_opaque(tracer, site, fn, operands, options, x, []) if followed(x) else x

        refresh(tracer, args, changed)
        if self.runs:
            renew(tracer, Left(tracer, [*sources, *sights.put_outside(tracer)]))
        elif not looks_only(fn):
            renew(tracer, changed)
        self.operands = operands, options
        self.boxes = [x for x in (*args, *kwargs.values()) if has_box(x)]
        value = traced(tracer, site, fn, value, self.origin, self.texts)
        self.keep_behind(value)
        if value is None:
            return self.nothing()
        if type(value) is int and is_known(fn):  # a count
            draw_all(tracer, self.boxes)
            self.problem(f"{fn_name(self.fn)} counts what it makes of traced values")
            return value
        if is_text(value):
            return self.text(value)
        if followed(value):
            result = record_opaque(tracer, site, fn, operands, options, value, arrays)
            self.note_result(value, start)
            return handed.tied(result)
        self.problem(
            f"{fn_name(self.fn)} makes {with_article(type(value).__name__)} of traced values"
        )
        if self.is_discrete():
            draw_all(tracer, self.boxes)  # drawn like any other integer
            return shows(tracer, value, arrays) if kept else value
        if isinstance(value, NUMBERLESS):
            return value
        raise self.cannot_follow(value)

    def is_discrete(self) -> bool:
        """Whether all that it was given are integers, such as a seed or a size, or constants."""
        return all(map(is_integer, self.boxes)) or is_constant(self.tracer, *self.operands)

    def keep_behind(self, value: Any) -> None:
        """Where it gives nothing, what it was given may hold what else it was given; but for seeds."""
        seeding = self.origin is None and is_seeding(self.fn, self.args)
        if gives_nothing(self.fn, value) and not (seeding and all(map(is_integer, self.boxes))):
            source = behind(self.tracer, self.site, *self.asked)
            if source is not None:
                keep(self.tracer, self.fn, self.given, self.kwargs, value, source)

    def text(self, value: Any) -> Any:
        """It gives text."""
        simple = [x for x in self.boxes if type(x) is Box]
        draw_all(self.tracer, simple)
        if not (self.pure and len(simple) == len(self.boxes)):
            self.problem(f"{fn_name(self.fn)} makes a string of traced values")
        return made(self.tracer, self.site, self.fn, self.given, self.kwargs, value, self.texts)

    def nothing(self) -> None:
        """It gives None: it may have kept what it was given, or done something outside."""
        tracer, site, fn, args = self.tracer, self.site, self.fn, self.args
        keeper = attribute(fn, "__self__")
        if keeper is None and hasattr(fn, "__objclass__"):
            keeper = args[0]
        if type(fn) is not types.FunctionType and not isinstance(keeper, types.ModuleType | None):
            if self.is_discrete():
                draw_all(tracer, self.boxes)
                self.problem(f"{fn_name(self.fn)} changes an object")
                return
            to_file = is_one_of(type(keeper), BOXES) and fn.__name__ in ("tofile", "dump")
            if not to_file and type(keeper).__module__ not in ("_io", "io"):
                raise TraceError(
                    f"{blame(site)}: {type(keeper).__name__}.{fn.__name__} keeps a traced value where the tracer "
                    "cannot follow it\nkeep it in a list or an object"
                )
        if (is_naming(fn) or fn is sys.setswitchinterval) and not self.is_discrete():
            raise TraceError(
                f"{blame(site)}: {fn_name(fn)} leaves a traced value with the operating system, where the tracer "
                "cannot follow it\ngive it wengert.stop_gradient of the value"
            )
        may_fail(tracer, site, fn, args, self.kwargs)

    def note_result(self, value: Any, start: int) -> None:
        """Note that what it gives is another thing at each call, unless it is pure."""
        reads = self.tracer.reads
        if reads is None or self.pure:
            return
        for op in self.tracer.tape.ops[start : start + 1]:
            reads.impure[op] = None
        if is_object(value):  # whose class may have special methods later
            self.problem(
                f"{fn_name(self.fn)} makes {with_article(type(value).__name__)} of traced values"
            )

    def cannot_follow(self, value: Any) -> NoRuleError:
        """It gives something that holds what was computed of traced values."""
        if is_one_of(type(value), BOXES):
            what = "returns what a function has computed that it calls, by ways that cannot be followed"
            return NoRuleError(no_rule(self.fn, self.site, self.args, self.kwargs, what))
        made_of = with_article(type(value).__name__)
        return NoRuleError(
            f"{blame(self.site)}: {full_name(self.fn)} returns {made_of}, into which no gradient can be followed\n"
            f"{IN_A_FUNCTION}"
        )


def starts(fn: Any) -> bool:
    """Whether a function may start another program, and gives what that gives."""
    return type(fn) is types.FunctionType and module_of(fn) == "subprocess"


def reads_files(fn: Any) -> bool:
    """Whether a callable may read the files that it is given the names of."""
    return fn is np.fromfile or fn is mmap.mmap or type(fn) is types.FunctionType or may_call(fn)


METHODS = (types.BuiltinFunctionType, types.MethodWrapperType)
NUMBERLESS = (np.dtype, types.ModuleType)  # which keep no number that they were found by


def is_seeding(fn: Any, args: Any) -> bool:
    """Whether a C function seeds a generator of random numbers, which have no derivative by that."""
    keeper = args[0] if hasattr(fn, "__objclass__") and args else attribute(fn, "__self__")
    return isinstance(keeper, GENERATORS)


GENERATORS = (random.Random.__mro__[1], np.random.RandomState, np.random.BitGenerator)


def keeps_callback(fn: Any) -> bool:
    """Whether C code keeps a function that it is given, to call it at any moment."""
    if isinstance(fn, type):
        return issubclass(fn, weakref.ref)
    owner = attribute(fn, "__self__")
    if isinstance(owner, type) and issubclass(owner, weakref.ref):
        return True
    return fn is weakref.proxy or fn is signal_of


signal_of: Any = vars(signal)["_signal"].signal


def told(tracer: Tracer, site: Site, fn: Any, value: Any, origin: Origin) -> Any:
    """An argument for C code that has text: a function is to know that what it is called with is made of it."""
    if not is_one_of(type(value), (types.FunctionType, types.MethodType)) or isinstance(fn, type):
        return value

    def call_back(*args: Any, **kwargs: Any) -> Any:
        args = tuple([follow(tracer, site, fn, x, origin) for x in args])
        return meaning.calls.call(tracer, site, value, args, kwargs)

    return call_back


def handed_over(tracer: Tracer, value: Any, memo: dict[int, Any]) -> Any:
    """An argument for C code; ``memo`` is that of all arguments of the call, among which one may stand twice."""
    if id(value) in memo:
        return memo[id(value)][1]
    if is_container(value) or is_one_of(type(value), PRIVATE) or is_one_of(type(value), STAND_INS):
        return lower(tracer, value, memo)
    return lower(tracer, value, memo) if tracer.texts.drawn and is_bearer(tracer, value) else value


def instead(tracer: Tracer, fn: Any, args: Any) -> dict[int, Any]:
    """What a pickler gets in the place of functions of the run, and of iterators over containers.

    The latter are iterators over what it gets in the place of those.

    A weak reference is made to a container of the run itself.
    """
    memo: dict[int, Any] = {}
    if keeps_callback(fn):
        return {id(x): (x, x) for x in args if is_container(x) and id(x) in tracer.inside}
    if home_of(fn) not in PICKLERS:
        return memo
    todo, seen = [args], set()
    while todo:
        x = todo.pop()
        if is_container(x) and id(x) not in seen:
            seen.add(id(x))
            todo += frames.parts_of(x).values()
        elif is_twin(x):
            as_written(x, memo)
        elif is_one_of(type(x), OVER_CONTAINERS) and id(x) not in memo:
            refuse_carrier(tracer, x)
            make, (held, *rest), *state = x.__reduce__()
            memo[id(x)] = x, make(lower(tracer, held, memo), *rest)
            if state and is_container(held):
                memo[id(x)][1].__setstate__(*state)
    return memo


def as_written(fn: types.FunctionType, memo: dict[int, Any]) -> types.FunctionType:
    """What a pickler gets in the place of a function of the run: one with the code that was written."""
    if id(fn) in memo:
        return cast(types.FunctionType, memo[id(fn)][1])
    cells = fn.__closure__ and tuple([types.CellType() for _ in fn.__closure__])
    code = rewrite.original(code_of(fn))
    plain = types.FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, cells)
    memo[id(fn)] = fn, plain
    functools.update_wrapper(plain, fn)
    del plain.__dict__["__wrapped__"]
    plain.__dict__.update(fn.__dict__)
    plain.__kwdefaults__ = fn.__kwdefaults__
    for cell, own in zip(cells or (), fn.__closure__ or (), strict=True):
        held = contents(own)
        if held is not MISSING:
            cell.cell_contents = as_written(held, memo) if is_twin(held) else held
    return plain


def is_twin(value: Any) -> bool:
    return type(value) is types.FunctionType and made_inside(value)


# Iterators that are pickled with the very container that they go over.
OVER_CONTAINERS: frozenset[type] = frozenset(
    (
        type(iter([])),
        type(reversed([])),
        type(iter(())),
        type(iter(deque())),
        type(reversed(deque())),
    )
)


def is_generator(value: Any) -> bool:
    return type(value) is types.GeneratorType


def holds_mutable(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(holds_mutable, value))
    return is_container(value) and type(value) is not frozenset


def shown_in(arrays: list[ArrayBox], value: Any, site: Site) -> ArrayBox | None:
    """The box of an array that lies in the memory of one of those that were given: it shows what these hold."""
    if not is_traced_array(value) or value.base is None:
        return None
    for box in arrays:
        if value is not box.value and np.may_share_memory(value, box.value):
            found = window(box, value, site)
            if found is not None:
                return found
    return None


def again(
    tracer: Tracer,
    site: Site,
    fn: Any,
    args: Any,
    kwargs: Any,
    pure: bool,
    asked: Any,
    sources: list[Op] | None = None,
) -> Any:
    """Call an unknown callable; a run that is repeated from its start takes what the call gave before."""
    if not pure and tracer.drawn and (known := served(tracer.drawn[0], fn, None)):
        tracer.drawn.pop(0)
        return known[0]
    if tracer.tape.undo is not None and is_draw(fn):
        must_be_certain(tracer, site, fn_name(fn))
    called_back, before = tracer.called_back, tracer.refusal
    own = () if type(fn) is types.FunctionType else (fn,)
    handed = (*args, *kwargs.values()) if home_of(fn) not in PICKLERS else ()  # to be called
    callbacks, kept = callbacks_in((*own, *handed))
    callbacks += methods_in(handed) if may_call(fn) else []
    callbacks = called_later(tracer, fn, callbacks)
    how = {"seen": True, "callbacks": callbacks, "kept": kept, "sources": sources}
    try:
        if tracer.reads is not None and isinstance(attribute(fn, "__self__"), np.number):
            tracer.reads.computes(fn, args, site)
        value = performed(tracer, site, fn, args, kwargs, True, **how)
        if tracer.refusal is not before and tracer.refusal is not None:
            raise tracer.refusal  # code that is not traced has caught it, and the program would go on
        if (callbacks or kept) and type(fn) is not np.ufunc:
            refuse_gathered(fn, site, value)
        if tracer.shadows and any(map(is_array_of_objects, (attribute(fn, "__self__"), *args))):
            value = reflected(tracer, value)
        return value
    except Exception as error:
        raised(tracer, site, error)
        failed(tracer, site, fn, asked, error)
        raise
    finally:
        if tracer.called_back != called_back and tracer.reads is not None:
            tracer.reads.problem(f"{fn_name(fn)} calls back", site)


def methods_in(values: Iterable[Any]) -> list[types.FunctionType]:
    """The methods of classes of the user's among values, of which C code may make objects."""
    made = [x for x in values if isinstance(x, type) and flags_of(x) & HEAP_TYPE]
    members = [(name, y) for x in made for name, y in list(dict_of(x).items())]
    return [y for name, y in members if is_users(y) and not name.startswith("__")]


def refuse_gathered(fn: Any, site: Site, value: Any) -> None:
    """Raise an error for an array of objects in which C code has gathered traced values that functions gave it.

    It may have looked at their types, and would have made an array of numbers of what plain Python gives it. A ufunc
    always makes an array of objects.
    """
    if is_array_of_objects(value) and any(is_one_of(type(x), BOXES) for x in value.flat):
        raise TraceError(
            f"{blame(site)}: {fn_name(fn)} has put traced values, which a function gave it that it called back, into "
            "an array of objects, where plain Python may give it an array of numbers\n"
            "call the function one by one, and make the array of a list of what it gives"
        )


def unknown(
    tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, value: Any, start: int
) -> None:
    """Note a call of which nothing is known: it is made again at each call, and a plain result must be the same."""
    reads = tracer.reads
    assert reads is not None
    ops = tracer.tape.ops
    if len(ops) > start and ops[start].fn is fn:
        reads.impure[ops[start]] = None
        return
    if may_wait(fn):
        reads.problem(f"{fn_name(fn)} may wait, or let other code run", site)
        return
    if any(op.kind == "effect" or op in reads.impure for op in ops[start:]):
        reads.problem(f"{fn_name(fn)} calls what is recorded itself", site)  # done twice otherwise
        return
    if is_plain_value(value):
        if reads.problems:  # no program will repeat it, and its operands need not live on
            return
        made = next((x for x in (*args, *kwargs.values()) if is_own(reads, x)), None)
        if made is not None:  # which must not be kept alive either
            reads.problem(
                f"{fn_name(fn)} is given {with_article(type(made).__name__)} made by the run", site
            )
            return
        try:
            given, options = operand(tuple(args), []), operand(kwargs, [])
        except RecursionError:
            reads.problem(f"{fn_name(fn)} is given what holds itself", site)
            return
        op = append(tracer.tape, fn, given, options, value, site)
        reads.impure[op] = None
        ops.append(Guard(operator.eq, (op,), value, site, tracer.tape))
        return
    reads.problem(f"{fn_name(fn)} makes {with_article(type(value).__name__)}", site)


def is_own(reads: Reads, value: Any) -> bool:
    """Whether a value is an object of the run's own."""
    kind = type(value)
    return (
        bool(flags_of(kind) & HEAP_TYPE)
        and has_dict(value)
        and reads.of(value) is None
        and not callable(value)
    )


def is_plain_value(value: Any) -> bool:
    """Whether a value is immutable and equal only to what it is exchangeable with."""
    if isinstance(value, tuple):
        return all(map(is_plain_value, value))
    return value is None or is_one_of(type(value), (int, bool, str, bytes, float, complex))


def untold_draw(fn: Any, value: Any) -> str:
    """What a function has done to random numbers of which the tape has no op."""
    name = fn_name(fn)
    if is_one_of(type(value), (int, bool)) or isinstance(value, np.integer):
        return f"{name} gives the whole number {value}"
    if value is None:
        return f"{name} sets the state of a generator, or changes something by chance"
    return f"{name} gives {with_article(type(value).__name__)}"


def record_opaque(
    tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any, value: Any, arrays: list[ArrayBox]
) -> Any:
    """Put a value on the tape that an unknown callable made; an error will say where it was called."""
    start = len(tracer.tape.ops)
    result = finish(tracer, site, fn, args, kwargs, value, arrays)
    for op in tracer.tape.ops[start : start + 1]:
        tracer.tape.callers[op] = blame(site)
    return result


def followed(value: Any) -> bool:
    """Whether a result of an unknown callable is made of numbers and arrays.

    A number of a class of the user's with special methods is an object: its operators are methods in Python.
    """
    if hasattr(type(value), "n_sequence_fields"):  # has fields that are no items, as struct_time
        return False
    if isinstance(value, (tuple, list)):
        return all(map(followed, value))
    return (
        value is None
        or (
            isinstance(value, (bool, int, float, complex, np.generic))
            and not has_special(type(value))
        )
        or is_traced_array(value)
    )
