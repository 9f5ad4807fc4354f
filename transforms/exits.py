"""Exits: what a loop has computed on its way out is not computed again.

Words
-----
exit       where a decision ends a loop, in the midst of an iteration. The operations before it stand in the loop, and
           for the last time on the tape after it, since that is what the rest of the program goes on with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from ..tracer.tape import Op, Tape, become_element, ops_in
from .kernels import is_array
from .loop_source import is_cheap
from .loops import EXIT, Family, LoopFunction
from .simplify import pruned


def is_only_exit(family: Family, body: Op) -> bool:
    """Whether a loop is left by one decision alone, on this: what it was goes without saying then."""
    ways = [choice for choice in family.choices() for _, then in choice.branches if then == EXIT]
    return len(ways) == 1 and ways[0].subject is body


def reused(tape: Tape, exits: Mapping[Op, list[tuple[Op, Op]]], stay: Collection[Op] = ()) -> Tape:
    """The tape with operations after loops taken from the loops: those on numbers that have names in them anyway.

    An array that must be there after the loop could not be written into in it, which would cost more.
    """
    if not exits:
        return tape
    present = set(tape.ops)
    taken: list[tuple[Op, Op, Op]] = []
    for made in tape.ops:
        if type(made.fn) is not LoopFunction or made not in exits:
            continue
        variants = made.fn.family.variants
        if any(is_array(op) for v in variants for op in v.ops):
            continue
        uses = Counter(x for v in variants for op in v.ops for x in op.operands())
        uses.update(ops_in([v.following for v in variants]))
        for op, body in exits[made]:
            if op in present and (uses[body] > 1 or not is_cheap(body)):
                taken.append((op, made, body))
    gone = {op for op, _, _ in taken}  # a loop on the way out of another one among them
    taken = [row for row in taken if row[1] not in gone]
    if not taken:
        return tape
    for op, made, _ in taken:
        become_element(op, made, 0)  # until it is known which of them are needed
    known = {op for op, made, body in taken if is_only_exit(made.fn.family, body)}
    tape.ops = [op for op in tape.ops if op.kind != "guard" or op.args[0] not in known]
    tape = pruned(tape, keep_guards=True, stay=[*{*stay}.difference(op for op, _, _ in taken)])
    present = set(tape.ops)
    for op, made, body in taken:
        if op in present:
            family = made.fn.family
            if body not in family.exits:
                family.exits.append(body)
                family.changed()
            become_element(op, made, -1 - family.exits.index(body))
    return tape
