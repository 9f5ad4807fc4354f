"""Pushforwards: what the rule of an op comes down to in forward mode, for given types, shapes and tangents.

Words
-----
pushforward  a small tape from the value and the leaves of an op, and the tangents of some leaves, to its own tangent.
frule        where the rule has one, it is traced, as `expand` traces rrules.
transposed   otherwise the pullback is traced, which is linear in the cotangent, and the reverse sweep is run over it
             with the tangents for cotangents. In the pairing Re(sum(cotangent * tangent)), which is the convention
             for complex numbers here, the transposed pullback is the pushforward.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..rules import registry
from ..rules.broadcasting import broadcast_like, cast
from ..rules.mutation import is_mask
from ..tracer import calls
from ..tracer.box import BOXES
from ..tracer.directions import decides
from ..tracer.errors import NoRuleError, WengertError
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.missing import no_rule, place_of_op
from ..tracer.places import raise_at
from ..tracer.record import operand
from ..tracer.tape import (
    NOWHERE,
    Input,
    Op,
    Tape,
    append,
    element,
    fn_name,
    ops_in,
    primal,
    type_name,
)
from . import asking, lowering
from .expand import (
    KEPT,
    Expansion,
    Stage,
    failed,
    fix,
    forget_values,
    is_own,
    is_whole,
    leaves_of,
    looking,
    only_counts,
    operand_count,
    pinned,
    plain,
    pulled_back,
    refill,
    rounds,
    type_key,
)
from .recent import Recent
from .reverse import Parts, Recorded, sweep
from .simplify import pruned, simplified


class Pushforward:
    """The pushforward of one primitive, for given types.

    ``tape`` has the inputs ``z``, the leaves and the tangents of those that have one; its result is the tangent, a
    tuple of them, or None. A ``momentary`` one depends on values that its key does not tell, and is not kept; ``drawn``
    are the integer leaves that the rule looked at, and ``decided`` as of an `Expansion`. One is ``led`` whose rule goes
    by the values of tangents.
    """

    __slots__ = ("decided", "drawn", "inputs", "led", "momentary", "tape")

    def __init__(self, tape: Tape, momentary: bool, decided: bool) -> None:
        self.tape = tape
        self.decided = decided
        self.inputs = tape.inputs
        self.momentary = momentary
        self.drawn: set[int] = set()
        self.led = False


cache: Recent[Pushforward] = Recent(KEPT)
looked_at: Recent[set[int]] = Recent(KEPT)
registry.rules.listeners.append(
    cache.clear
)  # what is transposed holds what other rules come down to


def pushforward_of(op: Op, tangents: dict[Op, Any]) -> tuple[Pushforward | None, list[Any]]:
    """The pushforward of an op, and what its inputs are; None where no tangent can flow."""
    # Asked first: another thread may register a rule that this one comes down to.
    changes = registry.rules.changes
    rule = registry.lookup(op.fn)
    if rule is None or rule.kind != registry.RRULE:
        if rule is not None and rule.kind in (registry.NONDIFF, registry.QUERY):
            return None, []
        if rule is None and only_counts(op, tangents):
            return None, []
        error = NoRuleError(
            no_rule(op.fn, op.site, op.args, op.kwargs, place=place_of_op(op), value=op.value)
        )
        raise_at(op.site, error)
    leaves, frame = leaves_of(op, rule)
    given = [tangents.get(x) if isinstance(x, Op) else None for x in leaves]
    if rounds(op, rule):
        given = [t if is_whole(plain(x)) else None for x, t in zip(leaves, given, strict=True)]
        if all(t is None for t in given):
            return None, []
    pattern = tuple([None if t is None else type_key(plain(t)) for t in given])
    inputs = [op, *leaves, *[t for t in given if t is not None]]
    types = tuple([type_key(plain(x)) for x in leaves])
    statics = looked_at.get((rule, frame)) or ()
    base = (op.fn, rule, frame, pattern, changes, types, type_key(op.value))
    found = cache.get((base, pinned(leaves, statics)))
    if found is None:
        try:
            found, drawn = made(op, rule, leaves, given)
        except WengertError:
            raise
        except Exception as error:
            raise_at(op.site, failed(op, error))
        found.drawn = drawn
        found.momentary |= rule.recorded  # an frule, with which the operation was not recorded
        if drawn and not found.momentary:
            with looking:
                statics = looked_at.get((rule, frame)) or ()
                statics = looked_at[rule, frame] = {*statics, *drawn}
        if not found.momentary:
            forget_values(found.tape)
            cache[base, pinned(leaves, statics)] = found
    return found, inputs


def made(
    op: Op, rule: registry.Rule, leaves: list[Any], given: list[Any]
) -> tuple[Pushforward, set[int]]:
    """Trace a rule. Says also which integer leaves it looked at."""
    if rule.forward is not None and (rule.pure_forward or rule.function is None):
        found = by_frule(op, rule, leaves, given)
        if found is not None:
            return found
    if rule.function is None:
        raise NoRuleError(no_options(op))
    return transposed(op, rule, leaves, given)


def by_frule(
    op: Op, rule: registry.Rule, leaves: list[Any], given: list[Any]
) -> tuple[Pushforward, set[int]] | None:
    """The pushforward that follows from an frule; None where it declines."""
    stage = Stage(op, "pushforward")
    args, kwargs = stage.operands(rule, leaves)
    boxes = [
        None if t is None else stage.tracer.input(f"t{i}", plain(t), "argument")
        for i, t in enumerate(given)
    ]
    count = operand_count(rule)
    queue = iter(boxes)
    directions = [beside(x, refill(x, queue, i < count)) for i, x in enumerate(op.args)]
    if any(t is not None for t in (*directions[count:], *queue)):
        return None  # of an option
    options = named(rule, args, count)
    if options is None:
        return None
    primals, tangents = args[:count], tuple(directions[:count])
    with stage as tracer:
        named_too = {**options, **kwargs}
        if registry.is_ours(rule.forward):
            answer = lowering.run(rule.forward, (primals, tangents), named_too)
        else:
            answer = calls.call(tracer, NOWHERE, rule.forward, (primals, tangents), named_too)
        if answer is NotImplemented:
            return None
        value, tangent = answer
        tangent = fitted(op, tracer, tangent, op.value)
    stage.settle(value)
    led = decides(stage.tape.ops, [x.op for x in boxes if x is not None])
    momentary = stage.close(operand(tangent, []))
    found = Pushforward(pruned(simplified(stage.tape)), momentary, stage.decided)
    found.led = led
    return found, stage.drawn


def beside(x: Any, tangent: Any) -> Any:
    """The tangent of an argument, None if there is none in it: what is no variable there has none."""
    kind = type(x)
    if isinstance(x, Op):
        return tangent
    if kind is tuple or kind is list:
        parts = [beside(a, t) for a, t in zip(x, tangent, strict=True)]
        return None if all(t is None for t in parts) else kind(parts)
    return None


def named(rule: registry.Rule, args: tuple[Any, ...], count: int) -> dict[str, Any] | None:
    """The options among the positional arguments, by their names; None where they have none."""
    if len(args) <= count:
        return {}
    if rule.function is None:
        return None
    parameters = list(inspect.signature(rule.function).parameters)[count:]
    return (
        dict(zip(parameters, args[count:], strict=False))
        if len(args) - count <= len(parameters)
        else None
    )


def fitted(op: Op, tracer: Any, tangent: Any, value: Any) -> Any:
    """The tangent of a value, in its kind and dtype; an error if the shape is another."""
    if tangent is None:
        return None
    if isinstance(value, (tuple, list)):
        return tuple([fitted(op, tracer, t, v) for t, v in zip(tangent, value, strict=True)])
    if isinstance(tangent, registry.Missing):
        return tangent
    have = tangent.value if is_one_of(type(tangent), BOXES) else tangent
    if np.shape(have) != np.shape(value):
        raise ValueError(f"its tangent is {type_name(have)}, but the value is {type_name(value)}")
    return lowering.run(broadcast_like, (tangent, value), {})


def transposed(
    op: Op, rule: registry.Rule, leaves: list[Any], given: list[Any]
) -> tuple[Pushforward, set[int]]:
    """The pushforward that follows from an rrule."""
    pattern = tuple([t is not None for t in given])
    stage, _, found = pulled_back(op, rule, leaves, pattern, ones(op.value))
    dz = next(x for x in stage.tape.inputs if x.name == "dz")
    traced = list(stage.tape.ops)
    momentary = stage.close([d for _, d in found])
    back = pruned(simplified(stage.tape))
    tape = Tape(f"pushforward of {getattr(op.fn, '__name__', 'op')}", op.site)
    given_inputs = {i: Input(f"t{i}", plain(t), tape) for i, t in enumerate(given) if t is not None}
    tape.ops = [
        *[x for x in back.ops if x.kind == "input" and x is not dz],
        *given_inputs.values(),
        *[x for x in back.ops if x.kind != "input"],
    ]
    machine = Recorded(tape, op.site)
    seeds = [
        (d, given_inputs[i])
        for (i, _), d in zip(found, back.result, strict=True)
        if isinstance(d, Op)
    ]
    (tangent,) = sweep(back.ops, [dz], seeds, machine)
    if not is_own(rule):
        must_be_linear(op, [dz], traced + tape.ops, tangent)
    tape.result = typed(tape, joined(tangent), op.value)
    fix(tape, {dz: dz.value})  # it is linear in it, so the derivative is the same at every value
    drawn, decided = looked(machine, stage.inputs)
    decided = decided or any(map(is_selected, back.ops))  # the transpose holds how many there were
    momentary = momentary or bool(machine.momentary) or decided
    momentary = momentary or any(hasattr(x, "momentary") for x in op.args)
    decided = decided or stage.decided or bool(machine.decided)
    return Pushforward(pruned(simplified(tape)), momentary, decided), stage.drawn | drawn


def is_selected(op: Op) -> bool:
    """Whether an op picks elements by a mask: how many, the types of its operands do not tell."""
    if op.fn is not operator.getitem:
        return False
    return any(True for _ in ops_in(op.args[1])) and is_mask(primal(op.args[1]))


def must_be_linear(op: Op, cotangents: list[Op], ops: list[Op], tangent: Any) -> None:
    """Raise where the transpose of a pullback goes by the cotangent that it was taken at.

    As that of one does which clips; or the pullback itself decides by it, and has another transpose for another one.
    """
    if decides(ops, cotangents) or not is_linear(cotangents, ops, tangent):
        raise NoRuleError(
            f"{place_of_op(op)}: the pullback of {fn_name(op.fn)} is not linear in its cotangent, so that there is no "
            "derivative of forward mode\ntake grad, pullback or jacrev, or give it a rule with @wengert.frule"
        )


def is_linear(directions: list[Op], ops: list[Op], transpose: Any) -> bool:
    """Whether what was transposed is linear in the directions: then its transpose does not depend on them."""
    moving = set(directions)
    for x in ops:
        if x.kind == "call" and not moving.isdisjoint(x.operands()):
            moving.add(x)
    return moving.isdisjoint(ops_in(transpose))


def not_linear(op: Op) -> NoRuleError:
    """The error where the frule of an op has no transpose."""
    return NoRuleError(
        f"{place_of_op(op)}: the frule of {fn_name(op.fn)} is not linear in its tangents, so that there is no "
        "derivative of reverse mode\ntake jvp, or give it a rule with @wengert.rrule"
    )


def pullback_of_frule(
    op: Op, rule: registry.Rule, leaves: list[Any], pattern: tuple[bool, ...], dz: Any
) -> tuple[Expansion, set[int]]:
    """The pullback that follows from an frule, which is linear in the tangents: the other transposition."""
    given = [ones(plain(x)) if active else None for x, active in zip(leaves, pattern, strict=True)]
    found = by_frule(op, rule, leaves, given)
    if found is None:
        raise NoRuleError(no_options(op))
    forward, drawn = found
    tape = Tape(f"pullback of {getattr(op.fn, '__name__', 'op')}", op.site)
    cotangent = Input("dz", dz, tape)
    count = 1 + len(leaves)
    inputs, tangents = forward.inputs[:count], forward.inputs[count:]
    tape.ops = [cotangent, *inputs, *[x for x in forward.tape.ops if x.kind != "input"]]
    machine = Recorded(tape, op.site)
    seeds = seeds_for(forward.tape.result, cotangent, tape)
    results = sweep(forward.tape.ops, list(tangents), seeds, machine)
    if forward.led or not is_linear([*tangents], tape.ops, tuple(results)):
        raise not_linear(op)
    active = [i for i, on in enumerate(pattern) if on]
    pairs = [(i, d) for i, d in zip(active, results, strict=True) if d is not None]
    tape.result = [typed(tape, d, plain(leaves[i])) for i, d in pairs]
    more, decided = looked(machine, inputs[1:])
    momentary = forward.momentary or bool(machine.momentary) or decided
    decided = decided or forward.decided or bool(machine.decided)
    wanted = [i for i, _ in pairs]
    forms: list[str | None] = [None] * len(pairs)
    return Expansion(pruned(simplified(tape)), wanted, forms, momentary, decided), drawn | more


def looked(machine: Recorded, inputs: Sequence[Op]) -> tuple[set[int], bool]:
    """Which integer leaves a sweep over a small tape looked at, and whether it looked at anything else."""
    return {
        i for i, x in enumerate(inputs) if x in machine.looked
    }, not machine.looked.keys() <= set(inputs)


def seeds_for(tangent: Any, cotangent: Any, tape: Tape) -> list[tuple[Op, Any]]:
    """Pair each variable in a tangent with its part of the cotangent."""
    if isinstance(tangent, tuple):
        seeds = []
        for i, part in enumerate(tangent):
            d = append(tape, element, (cotangent, i), {}, plain(cotangent)[i], NOWHERE)
            seeds += seeds_for(part, d, tape)
        return seeds
    return [(tangent, cotangent)] if isinstance(tangent, Op) else []


def no_options(op: Op) -> str:
    return (
        f"{place_of_op(op)}: the frule of {getattr(op.fn, '__name__', op.fn)} does not know these "
        "options, and there is no rrule\n"
        "let it take them, or give the function an rrule, which may serve forward mode too"
    )


def typed(tape: Tape, t: Any, value: Any) -> Any:
    """A tangent as an array or a NumPy scalar where the value is one."""
    if isinstance(t, tuple):
        return tuple([typed(tape, part, v) for part, v in zip(t, value, strict=True)])
    if t is None or type(plain(t)) is type(value):
        return t
    steps: list[tuple[Any, tuple[Any, ...]]] = []
    if isinstance(value, np.ndarray):
        steps = [(np.asarray, ())]
    elif isinstance(value, np.inexact):
        steps = (
            [(operator.getitem, ((),))]
            if isinstance(plain(t), np.ndarray)
            else [(cast, (value.dtype,))]
        )
    for fn, rest in steps:
        t = append(tape, fn, (t, *rest), {}, fn(plain(t), *rest), NOWHERE)
    return t


def joined(cotangent: Any) -> Any:
    """The parts of a cotangent in a tuple."""
    return tuple(cotangent.parts) if isinstance(cotangent, Parts) else cotangent


def ones(value: Any) -> Any:
    """A cotangent of a value that no rule can take for zero."""
    if isinstance(value, (tuple, list)):
        return tuple(map(ones, value))
    if isinstance(value, (np.ndarray, np.generic)):
        kind = value.dtype if value.dtype.kind in "fc" else float
        return (
            np.ones(np.shape(value), kind)[()]
            if not isinstance(value, np.ndarray)
            else np.ones(value.shape, kind)
        )
    return 1.0 + 0j if isinstance(value, complex) else 1.0


asking.transposed = pullback_of_frule
