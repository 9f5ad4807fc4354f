"""Running a tape: each op once more, for other inputs, under the decisions of the traced run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...rules.words import with_article
from ...tracer.errors import GuardError, TraceError
from ...tracer.frames import valued
from ...tracer.kinds import attribute, is_one_of, isinstance
from ...tracer.seals import Unfollowed
from ...tracer.tape import External, Input, Op, Tape, show, substitute
from ...tracer.write_back import Lost
from ..loops import Miss
from ..patterns import leaves_in
from ..shapes import has_free_shape, shape_in_words, shapes_of
from ..simplify import pruned
from .signature import bound, given_for


def play(tape: Tape, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The value of the tape for other arguments."""
    must_be_given(tape)
    found = values(tape, bound(tape, args, kwargs), objects=given_for(tape, args, kwargs))
    return substitute(tape.result, found.__getitem__)


def must_be_given(tape: Tape) -> None:
    """Raise where the result holds what the tape does not know how to make."""
    leaves: list[Any] = []
    leaves_in(tape.result, leaves)
    lost = next((x for x in leaves if type(x) is Lost), None)
    if lost is not None:
        raise TraceError(
            f"this tape of {tape.name} cannot give its result again: there is {with_article(lost.kind)} in it\n"
            "return numbers, arrays and constants, and make of them outside what else there is"
        )


def values(
    tape: Tape,
    given: dict[Op, Any],
    effects: bool = True,
    objects: Mapping[int, Any] = MappingProxyType({}),
) -> dict[Op, Any]:
    """The value of each op, for inputs that are given; the others are as they were. Effects are done as well.

    ``objects`` stand for those that the traced run did something to or with, by their ids.
    """
    must_be_followed(tape)
    must_be_traced(tape, given)
    found: dict[Op, Any] = {}
    for op in tape.ops:
        if isinstance(op, Input):
            found[op] = given.get(op, op.value)
        elif op.kind == "guard":
            must_hold(op, found[op.args[0]])
        elif op.kind == "call" or effects:
            try:
                found[op] = computed(op, found.__getitem__, objects)
            except GuardError:  # of a checkpointed call, which says more
                raise
            except Miss:
                raise GuardError(
                    f"{op.site}: a decision in this loop is not the one of the traced run\n"
                    "trace the function for these arguments"
                ) from None
            must_fit(op, found[op])
    return found


def must_be_traced(tape: Tape, given: Mapping[Op, Any]) -> None:
    """Raise where a tape that holds for the traced arguments alone is run for others, or for none again."""
    if tape.no_more is not None:
        why, cure = tape.no_more
        raise TraceError(f"this tape of {tape.name} cannot be run again: {why}\n{cure}")
    if tape.once is None:
        return
    for x in tape.inputs:
        if x in given and not np.array_equal(given[x], x.value):
            raise GuardError(
                f"{tape.name} holds for the arguments of the traced run alone: {tape.once}\n"
                "trace the function for these arguments"
            )


def must_be_followed(tape: Tape) -> None:
    """Raise where the result needs what C code has read behind the tape, and nobody can compute again."""
    behind = [op for op in tape.ops if type(op.fn) is Unfollowed]
    if behind:
        needed = {*pruned(tape, keep_guards=True).ops}
        for op in behind:
            if op in needed:
                raise TraceError(f"a tape cannot be run again here\n{op.fn.reason}")


def computed(
    op: Op, value: Callable[[Op], Any], objects: Mapping[int, Any] = MappingProxyType({})
) -> Any:
    """What an op computes from the values of its operands."""

    def real(x: Any) -> Any:
        if is_one_of(type(x), (list, tuple)):
            return type(x)([real(y) for y in x])
        if type(x) is dict:
            return valued(x, [real(y) for y in x.values()])
        x = x.value if type(x) is External else x
        return objects.get(id(x), x)

    fn = op.fn
    if objects and id(owner := attribute(fn, "__self__")) in objects:
        fn = getattr(objects[id(owner)], fn.__name__)
    args = [real(substitute(x, value)) for x in op.args]
    return fn(*args, **{key: real(substitute(x, value)) for key, x in op.kwargs.items()})


def holds(guard: Op, value: Any) -> bool:
    """Whether a decision is the traced one; that on a truth goes by the truth, of whatever value."""
    was = guard.value
    if type(was) is bool:
        return bool(value) is was
    return bool(value == was) or bool(value != value and was != was)


def must_hold(guard: Op, value: Any) -> None:
    """Raise where a decision is not the traced one."""
    if not holds(guard, value):
        now = show(value.item() if isinstance(value, np.generic) else value, {})
        raise GuardError(
            f"{decision(guard)}, and is {now} for these arguments\ntrace the function for them"
        )


def must_fit(op: Op, value: Any) -> None:
    """Raise where an array has another shape than in the traced run: the lengths that were asked for are constants."""
    if has_free_shape(op) and shapes_of(value) != shapes_of(op.value):
        raise GuardError(
            f"{shape_in_words(op)}, and has {shapes_of(value)} for these arguments\ntrace the function for them"
        )


def decision(guard: Op) -> str:
    """A decision in words: where it is, what it is on, and what it was."""
    return f"{subject_of(guard)} was {show(guard.value, {})} in the traced run"


def subject_of(guard: Op) -> str:
    """What a decision is on, in words: where it is, and the text of the line."""
    site = guard.site
    place = f"{site}: " if site.filename else ""
    said = f"what decides `{site.text}`" if site.text else "a value that decides"
    return f"{place}{said}"
