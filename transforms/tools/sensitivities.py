"""The cotangent of every op of a tape: what the reverse sweep carries by each of them, and usually forgets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import CotangentError
from ...tracer.kinds import isinstance
from ...tracer.structure import is_differentiable
from ...tracer.tape import Op, Tape, ops_in, substitute, type_name
from ..reverse import Numeric, Parts, sweep
from .editing import like
from .listing import first_and_last, listed
from .playing import values
from .signature import bound


class Seen(dict[Op, Any]):
    """The cotangents of a sweep, which takes each away when it hands it on: kept beside as it was then."""

    def __init__(self) -> None:
        self.kept: dict[Op, Any] = {}

    def pop(self, op: Op, default: Any = None) -> Any:  # type: ignore[override]
        d = super().pop(op, default)
        if d is not None:
            self.kept[op] = kept(d)
        return d


def kept(d: Any) -> Any:
    """A cotangent that the sweep will not write into; that of a tuple is a tuple, None where a part has none."""
    if isinstance(d, Parts):
        return tuple([kept(x) for x in d.parts])
    return d.copy() if isinstance(d, np.ndarray) else d


class Cotangents(dict[Op, Any]):
    """Cotangents by op, in the order of the tape. Printed, they stand beside its listing."""

    def __init__(self, tape: Tape, found: dict[Op, Any]) -> None:
        super().__init__(found)
        self.tape = tape

    def __repr__(self) -> str:
        return "\n".join(listed(self.tape, None, self.beside).lines)

    def beside(self, ops: list[Op]) -> str:
        """The cotangents of a line, in the first pass and in the last."""
        known = [self[op] for op in ops if op in self]
        return f"   d = {first_and_last(known)}" if known else ""


def cotangents(tape: Tape, args: tuple[Any, ...], kwargs: dict[str, Any], dy: Any) -> Cotangents:
    """The cotangent of every op on which the result depends, by the ops of the tape; see `Tape.cotangents`.

    ``dy`` has the structure of the result, and is 1 where that is a real number. An op that is not in the answer has
    no influence, or no derivative.
    """
    given: dict[Op, Any] = {op: op.value for op in tape.ops}
    if args or kwargs:
        given = values(tape, bound(tape, args, kwargs), effects=False)
    now: dict[Op, Op] = {}
    run = Tape(tape.name, tape.site)
    for op in tape.ops:
        if op.kind in ("input", "call"):
            args = substitute(op.args, now.__getitem__)
            kwargs = substitute(op.kwargs, now.__getitem__)
            now[op] = like(op, args, kwargs, given[op], run)
            run.ops.append(now[op])
    machine = Numeric()
    machine.cotangents = seen = Seen()
    seeds = [(now[op], d) for op, d in seeds_of(tape, given, dy)]
    # What is computed from constants alone has an influence as well
    wrt: list[Op] = [op for op in run.ops if is_differentiable(op.value) and not [*op.operands()]]
    sweep(run.ops, wrt, seeds, machine)
    for op in wrt:
        seen.pop(op)
    found = {op: seen.kept[x] for op, x in now.items() if x in seen.kept}
    return Cotangents(tape, found)


def seeds_of(tape: Tape, given: dict[Op, Any], dy: Any) -> list[tuple[Op, Any]]:
    """The cotangents of the results."""
    results = [op for op in ops_in(tape.result) if is_differentiable(given[op])]
    if dy is not None:
        return list(matched(tape.result, dy))
    if len(results) != 1 or np.shape(given[results[0]]) != () or np.iscomplexobj(given[results[0]]):
        kinds = ", ".join(type_name(given[op]) for op in results) or "nothing with a derivative"
        raise CotangentError(
            f"{tape.name} gives {kinds}, and not one number\n"
            "say with dy= what its cotangent is: tape.cotangents(*args, dy=np.ones_like(y))"
        )
    value = given[results[0]]
    return [
        (
            results[0],
            np.ones_like(value)[()] if isinstance(value, (np.ndarray, np.generic)) else 1.0,
        )
    ]


def matched(tree: Any, d: Any) -> list[tuple[Op, Any]]:
    """The ops of a result with their parts of a cotangent of the same structure."""
    if d is None:
        return []
    if isinstance(tree, Op):
        if np.shape(d) != np.shape(tree.value):
            raise CotangentError(
                f"dy is {type_name(d)} where the result is {tree.type}\n"
                "it has the structure and the shapes of the result, and None is a zero"
            )
        return [(tree, d)]
    if isinstance(tree, dict):
        return [pair for key, part in tree.items() for pair in matched(part, d[key])]
    if isinstance(tree, (list, tuple)):
        return [pair for part, x in zip(tree, d, strict=True) for pair in matched(part, x)]
    return []
