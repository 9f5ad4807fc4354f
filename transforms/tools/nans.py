"""Where a NaN or an infinity is born: the run and the reverse sweep stop there (``debug=True``).

Words
-----
born     of a NaN or an infinity: it comes out of an operation into which none went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...tracer.errors import Refusal
from ...tracer.places import blame, in_words, raise_at
from ...tracer.protocols import plain_of
from ...tracer.run import Run, in_full, run
from ...tracer.tape import Op, Site, fn_name, primal
from ..api import Pullback
from .callers import Callers
from .causes import where_a_call_bears_it, where_it_is_born
from .values import is_finite, summary
from .walk import Walk


class NonFiniteError(Refusal, FloatingPointError):
    """A NaN or an infinity was born, where ``debug=True`` asked for an error."""


def message(
    name: str, place: str, what: str, operation: str, given: list[tuple[str, Any]], cure: str
) -> str:
    """What and where, the operands, and what to do: each on a line of its own."""
    values = ", ".join(f"{label} {summary(value)}".strip() for label, value in given)
    return f"{place}: {what}, in {name}\n  {operation} of {values}\n  what to do: {cure}; wengert.why says more"


def checked_run(
    f: Callable[..., Any], args: Any, kwargs: Any, **options: Any
) -> tuple[Run, Callers]:
    """A run of ``f`` that raises at the user's line where a number that is not finite is born; and all such lines."""
    title = in_full(f)

    callers = Callers()

    def perform(fn: Any, given: Any, named: Any, site: Site, go: Any) -> Any:
        callers.note(site)
        value = go(*given, **named)
        if not is_finite(value) and is_finite((*given, *named.values())):
            raise NonFiniteError(
                message(
                    title,
                    blame(site),
                    f"{fn_name(fn)} gives {summary(value)}",
                    fn_name(fn),
                    [("", x) for x in given],
                    where_a_call_bears_it(fn, [*given], forward=True).cure,
                )
            )
        return value

    done = run(f, args, kwargs, perform=perform, folds=False, **options)
    callers.close(done.tape)
    return done, callers


def must_be_finite(name: str, answer: Any, ops: list[Op]) -> None:
    """Raise where a gradient that was taken in a traced function is not finite: ``ops`` have been recorded for it."""
    if all_finite(answer):
        return
    for op in ops:
        given = [primal(x) for x in op.args] if op.kind == "call" else []
        if given and not is_finite(op.value) and is_finite(given):
            what = f"{fn_name(op.fn)} gives {summary(op.value)}"
            cure = where_it_is_born(op, forward=True).cure
            raise NonFiniteError(
                message(name, blame(op.site), what, fn_name(op.fn), [("", x) for x in given], cure)
            )


def all_finite(answer: Any) -> bool:
    """Whether no NaN and no infinity is in what a transform gives to a traced function."""
    plain = plain_of(answer)
    if isinstance(plain, (tuple, list)):
        return all(map(all_finite, plain))
    return all(map(all_finite, plain.values())) if isinstance(plain, dict) else is_finite(plain)


class CheckedPullback(Pullback):
    """A pullback that raises where a cotangent that is not finite is born."""

    def __init__(self, done: Run, callers: Callers) -> None:
        super().__init__(done)
        self.callers = callers

    def swept(self, ops: list[Op], wrt: list[Op], seeds: list[tuple[Op, Any]]) -> list[Any]:
        walk = Walk(ops, wrt, seeds)
        for step in walk:
            bad = [x for x in step.op.operands() if not is_finite(walk.cotangents.get(x))]
            if bad and is_finite(step.cotangent):
                error = self.born(step.op, bad[0], step.cotangent, walk.cotangents[bad[0]])
                raise_at(self.callers.of(step.op), error)
        return walk.found(wrt)

    def born(self, op: Op, operand: Op, dz: Any, d: Any) -> NonFiniteError:
        tape, line = self.done.tape, self.callers.of(op)
        operands: Iterator[Any] = (primal(x) for x in op.args)
        return NonFiniteError(
            message(
                f"{tape.name} ({tape.site.place})",
                f"{in_words(op.site)} (called from {in_words(line)})"
                if line != op.site
                else in_words(op.site),
                f"the derivative of {fn_name(op.fn)} gives {summary(d)}",
                fn_name(op.fn),
                [*[("", x) for x in operands], ("with the cotangent", dz)],
                where_it_is_born(op, forward=False).cure,
            )
        )
