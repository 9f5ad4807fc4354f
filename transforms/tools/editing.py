"""Tapes from tapes: one op replaced, inserted, or looked into. Each new tape is checked and has values of its own.

Words
-----
copy     the op of the new tape that is the same line as an op of the old one; two tapes share no ops.
meant    what stands for an op of the old tape where it is used: its copy, or what was put in its place.
changed  an op of the old tape whose value is another one on the new tape: so are all that use it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ...rules.words import with_article
from ...tracer.errors import TraceError
from ...tracer.kinds import is_one_of, isinstance
from ...tracer.places import OURS
from ...tracer.run import run
from ...tracer.tape import (
    NOWHERE,
    Effect,
    FloatOp,
    Guard,
    Input,
    KeywordOp,
    Numbering,
    Op,
    Site,
    Tape,
    element,
    fn_name,
    format_op,
    ops_in,
    primal,
    substitute,
    type_name,
)
from ...tracer.traits import at
from .listing import listed_names, named_ops
from .playing import computed, must_fit, must_hold
from .primitives import Predicate, chosen
from .signature import moved, parameters_of


class Edit:
    """A new tape in the making: the ops of an old one are copied to it in order."""

    def __init__(self, tape: Tape) -> None:
        self.old = tape
        self.new = Tape(tape.name, tape.site)
        self.copies: dict[Op, Op] = {}
        self.meant: dict[Op, Any] = {}  # what stands for an op of the old tape where it is used
        self.changed: set[Op] = set()

    def now(self, op: Op) -> Any:
        try:
            return self.meant[op]
        except KeyError:
            raise TraceError(self.misplaced(op)) from None

    def misplaced(self, op: Op) -> str:
        """Why an op cannot be an operand here."""
        if any(x is op for x in self.old.ops):
            name, line = names_of(self.old)[op], line_of(op, self.old)
            return f"{name} is used before it is defined: {line}\ninsert the new op after it"
        return f"{op!r} is no op of this tape of {self.old.name}\ntake one from the tape itself: tape[3]"

    def copy(self, op: Op) -> None:
        """Put the copy of an op on the new tape."""
        args, kwargs = substitute(op.args, self.now), substitute(op.kwargs, self.now)
        new = like(op, args, kwargs, op.value, self.new)
        if not self.changed.isdisjoint(op.operands()):
            if isinstance(new, Guard):
                must_hold(new, primal(new.args[0]))
            elif new.kind == "call":
                self.compute(new)
                must_fit(op, new.value)
                self.changed.add(op)
        if not isinstance(new, Guard) or isinstance(new.args[0], Op):
            self.new.ops.append(new)
        self.copies[op] = self.meant[op] = new

    def call(self, site: Site, fn: Any, args: Any, kwargs: dict[str, Any]) -> Op:
        """A call on the new tape; its operands are ops of the old one."""
        if not callable(fn):
            raise TraceError(
                f"an op calls a function, not {with_article(type(fn).__name__)}\n"
                "for a constant: tape.substitute(op, value)"
            )
        args, kwargs = substitute(held(args), self.now), substitute(held(kwargs), self.now)
        new = make(fn, args, kwargs, None, site, self.new)
        self.compute(new)
        self.new.ops.append(new)
        return new

    def compute(self, new: Op) -> None:
        try:
            new.value = computed(new, lambda x: x.value)
        except Exception as error:
            given = [*new.args, *new.kwargs.values()]
            kinds = ", ".join([x.type if isinstance(x, Op) else type_name(x) for x in given])
            raise TraceError(
                f"{fn_name(new.fn)} cannot be called on this tape, with operands {kinds}: "
                f"{type(error).__name__}: {error}\ncall one that takes these, or give it other arguments"
            ) from error

    def done(self) -> Tape:
        old, new = self.old, self.new
        new.result = substitute(old.result, self.now)
        new.parameters = moved(old.parameters, self.copies)
        new.options, new.ways = old.options, old.ways
        new.hold_as(old)
        if old.outline is not None:
            new.outline = old.outline.copied(new, self.copies)
        if old.forward is not None:
            new.forward = frozenset([self.copies[op] for op in old.forward if op in self.copies])
        return new


def make(fn: Any, args: Any, kwargs: dict[str, Any], value: Any, site: Any, tape: Tape) -> Op:
    """A call that is on no tape yet."""
    if kwargs:
        return KeywordOp(fn, args, kwargs, value, site, tape)
    return Op(fn, args, value, site, tape)


def like(op: Op, args: Any, kwargs: dict[str, Any], value: Any, tape: Tape) -> Op:
    """An op of the same kind with other operands."""
    if isinstance(op, Input):
        return Input(op.name, value, tape, op.role, op.place)
    if isinstance(op, Guard):
        return Guard(op.fn, args, value, op.site, tape)
    if isinstance(op, Effect):
        return Effect(op.fn, args, kwargs, value, op.site, tape)
    if type(op) is FloatOp and [isinstance(x, Op) for x in args] == [
        isinstance(x, Op) for x in op.args
    ]:
        return FloatOp(op.fn, args, value, op.site, tape, op.signature)
    return make(op.fn, args, kwargs, value, op.site, tape)


def own(tape: Tape, op: Any, what: str) -> None:
    """Raise unless something is an op of the tape."""
    if not isinstance(op, Op) or not any(x is op for x in tape.ops):
        raise TraceError(
            f"what is {what} must be an op of this tape of {tape.name}, not {op!r}\n"
            "take one from the tape itself: tape[3]"
        )


def held(tree: Any) -> Any:
    """An operand of the user's with copies of its arrays: a constant stays what it was."""
    kind = type(tree)
    if is_one_of(kind, (tuple, list)):
        return kind([held(x) for x in tree])
    if kind is dict:
        return {key: held(x) for key, x in tree.items()}
    return tree.copy("K") if kind is np.ndarray else tree


def replaced(
    tape: Tape, op: Op, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tape:
    """The tape with another call in the place of an op; see `Tape.replace`."""
    own(tape, op, "replaced")
    if op.kind != "call":
        raise TraceError(
            f"only calls can be replaced, not the {op.kind} {line_of(op, tape)}\n"
            "for an input: tape.substitute(op, value)"
        )
    if not args and not kwargs:
        args, kwargs = op.args, op.kwargs
    edit = Edit(tape)
    for x in tape.ops:
        if x is op:
            edit.copies[x] = edit.meant[x] = edit.call(op.site, fn, args, kwargs)
            edit.changed.add(x)
        else:
            edit.copy(x)
    return edit.done()


def inserted(
    tape: Tape, index: int, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tape:
    """The tape with one more call; see `Tape.insert`."""
    place = index + len(tape.ops) if index < 0 else index
    if not 0 <= place <= len(tape.ops):
        raise IndexError(f"a tape of {len(tape.ops)} lines has no place {index}")
    edit = Edit(tape)
    for x in tape.ops[:place]:
        edit.copy(x)
    edit.call(NOWHERE, fn, args, kwargs)
    for x in tape.ops[place:]:
        edit.copy(x)
    return edit.done()


def substituted(tape: Tape, op: Op, by: Any) -> Tape:
    """The tape that uses something else in the place of an op; see `Tape.substitute`."""
    own(tape, op, "substituted")
    edit = Edit(tape)
    for x in tape.ops:
        edit.copy(x)
        if x is op:
            edit.meant[x] = substitute(held(by), edit.now)
            edit.changed.add(x)
    return edit.done()


# ------------------------------------------------------------------------------------- looking into calls


def with_primitives(tape: Tape, primitives: Any, ours: bool = False) -> Tape:
    """The tape with every call looked into that is no primitive; see `Tape.with_primitives`.

    The functions of which our rules are made are looked into where these are asked for, as ``ours``.
    """
    is_primitive = chosen(primitives)
    if is_primitive is None:
        raise TraceError(
            "with_primitives takes a collection of callables or a predicate, not None\n"
            "tape.with_primitives({np.dot}), or tape.with_primitives(lambda fn: fn is np.dot)"
        )
    edit = Edit(tape)
    for op in tape.ops:
        if op.fn is element and not isinstance(edit.now(op.args[0]), Op):
            edit.meant[op] = edit.now(op.args[0])[op.args[1]]
        elif (
            op.kind == "call"
            and is_python(op.fn, ours)
            and not is_primitive(op.fn, primal(op.args), primal(op.kwargs))
        ):
            look_into(edit, op, is_primitive, ours)
        else:
            edit.copy(op)
    return edit.done()


def is_python(fn: Any, ours: bool) -> bool:
    """Whether there is something to look into: a function in Python, or one of NumPy's that is."""
    body = getattr(fn, "_implementation", fn)
    body = getattr(body, "__func__", body)
    return isinstance(body, FunctionType) and (
        ours or not body.__code__.co_filename.startswith(OURS)
    )


def look_into(edit: Edit, op: Op, is_primitive: Predicate, ours: bool) -> None:
    """Put on the new tape what a call does, instead of the call; where it is ``ours``, it is at the call's line."""
    done = run(op.fn, primal(op.args), primal(op.kwargs), primitives=is_primitive, full=True)
    now: dict[Op, Any] = {}
    parameters = parameters_of(op.fn, done, primal(op.args), primal(op.kwargs))
    for parameter, arg in zip(parameters, [*op.args, *op.kwargs.values()], strict=True):
        given = substitute(arg, edit.now)
        inputs: dict[Op, Any] = {x: at(given, path) for path, x in parameter.inputs()}
        now.update(inputs)
        for x in ops_in(given):
            if (
                x not in inputs.values()
            ):  # an integer of NumPy, a bool: what is done goes by its value
                edit.new.ops.append(Guard(operator.eq, (x,), x.value, op.site, edit.new))
    for x in done.tape.ops:
        if x in now:
            continue
        args, kwargs = (substitute(y, now.__getitem__) for y in (x.args, x.kwargs))
        now[x] = new = like(x, args, kwargs, x.value, edit.new)
        if ours:
            new.site = op.site
        if not isinstance(x, Guard) or isinstance(args[0], Op):
            edit.new.ops.append(new)
    edit.meant[op] = substitute(done.tape.result, now.__getitem__)


# ------------------------------------------------------------------------------------------------- lines


def numbers_of(tape: Tape) -> Numbering:
    """The numbers of the variables on the plain list."""
    names = Numbering()
    for op in tape.ops:
        if op.kind in ("input", "call"):
            names[op]
    return names


def names_of(tape: Tape) -> dict[Op, str]:
    """The names of the variables, as the tape prints them."""
    return numbers_of(tape) if tape.options.get("flat") else listed_names(tape)


def op_named(tape: Tape, name: str) -> Op:
    """The op that the tape prints under a name: of a line in a loop that of the last pass, ``%5[0]`` of the first."""
    numbers = {known: op for op, known in numbers_of(tape).items()}
    names = numbers if tape.options.get("flat") else named_ops(tape, numbers)
    if name in names:
        return names[name]
    raise KeyError(
        f"this tape of {tape.name} has no variable {name!r}; print(tape) shows those it has"
    )


def line_of(op: Op, tape: Tape | None) -> str:
    """The line of an op, with the names of its tape; ``%?`` for what is not on it."""
    names: Any = Unknown()
    if tape is not None:
        names.update(names_of(tape))
    return format_op(op, names)


class Unknown(dict[Op, str]):
    def __missing__(self, op: Op) -> str:
        return "%?"
