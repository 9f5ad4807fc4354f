"""Recorded rules in the sweeps: their pullbacks run once each time that a sweep comes to them.

Words
-----
pair      the value and the pullback of one call of a rule that is not pure (see ``tracer.pairs``).
setting   how a rule's functions are called: as plain Python, after the run, or by the tracer of a run that goes on, so
          that what they compute and do is a part of that run.
asked     the rule of an operation that was recorded without it, since it was the rule itself that called, or an
          operator: its body runs when the sweep comes there, for its pullback.
late      a sweep that is no part of a run, but is recorded: nobody can run a pullback for a tape of its own.
form      a pullback recorded once with some cotangent: linear in it, so that its transpose carries tangents forward.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..rules.broadcasting import broadcast_like
from ..rules.elementwise import unknown
from ..rules.registry import Rule, lookup
from ..rules.words import with_article
from ..tracer import calls, protocols
from ..tracer.active import active
from ..tracer.arrays import append_saved, save
from ..tracer.box import BOXES, ArrayBox
from ..tracer.directions import Linear, direction
from ..tracer.errors import CotangentError, NoRuleError, TraceError
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.lifetimes import unlink
from ..tracer.missing import known_of, place_of_op
from ..tracer.outcome import Made
from ..tracer.pairs import Pair, note_captured, pair_of, place_of, restore_captured, severed
from ..tracer.places import blame
from ..tracer.purity import is_pure
from ..tracer.record import box, box_of, known, operand
from ..tracer.run import Run, run
from ..tracer.session import Tracer
from ..tracer.structure import Branch, Leaf, Tree, leaves, rebuild
from ..tracer.tape import (
    KeywordOp,
    Op,
    Tape,
    append,
    element,
    fn_name,
    ops_in,
    primal,
    substitute,
    type_name,
)
from . import asking, forward, lowering
from .cotangents import alike, shaped
from .pushforward import is_linear, joined, must_be_linear, no_options, not_linear, ones, typed
from .reverse import OWN, Machine, Parts, Recorded, dependents, run_steps, sweep


class Late(TraceError):
    """A pullback would have to run for a tape that belongs to no run."""


def settled(done: Run) -> None:
    """Let a run of which no derivative will be taken any more compute with plain values in the place of pairs."""
    assert done.outcome is not None
    plain: dict[Op, Any] = {}
    ops: list[Op] = []

    def now(x: Op) -> Any:
        return plain.get(x, x)

    for op in done.tape.ops:
        found: Any = None
        if op.fn is severed:
            found = substitute(op.args[0], now)
        elif is_one_of(type(op.fn), (Pair, Linear)):
            found = now(op.args[-1])
        elif op.fn is element and op.args[0] in plain:
            found = plain[op.args[0]][op.args[1]]
        elif plain:
            op.args = substitute(op.args, now)
            if isinstance(op, KeywordOp):
                op.kwargs = substitute(op.kwargs, now)  # type: ignore[misc]
        if isinstance(found, (Op, tuple)):
            plain[op] = found
            continue
        if found is not None:  # a constant
            op.fn, op.args = severed, (found,)
            if isinstance(op, KeywordOp):
                op.kwargs = {}  # type: ignore[misc]
        ops.append(op)
    if plain:
        done.tape.ops = ops
        outcome = done.outcome
        outcome.template = mapped(outcome.template, now)
        outcome.arrays = [(place, now(op)) for place, op in outcome.arrays]
        outcome.cells = [(place, mapped(template, now)) for place, template in outcome.cells]


def mapped(template: Any, now: Callable[[Op], Any]) -> Any:
    """A template with other ops."""
    if isinstance(template, Made):
        return Made(template.kind, mapped(template.parts, now))
    if isinstance(template, dict):
        return {key: mapped(x, now) for key, x in template.items()}
    if isinstance(template, (tuple, list)):
        parts = [mapped(x, now) for x in template]
        return template._make(parts) if hasattr(template, "_make") else type(template)(parts)
    return now(template) if isinstance(template, Op) else template


# --------------------------------------------------------------------------------------------- settings


class Plain:
    """After the run: plain Python, on plain values."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def value(self, op: Op) -> Any:
        return op.value

    def cotangent(self, value: Any, d: Any) -> Any:
        """The cotangent of a value, in its kind; nobody else holds it."""
        return shaped(Leaf(None, smooth(value)), d)

    def item(self, d: Any, i: int) -> Any:
        return d[i]

    def found(self, d: Any) -> Any:
        """What a pullback returned for one operand."""
        return np.array(d) if type(d) is np.ndarray else d

    def before(self, pair: Pair) -> None:
        """A pullback is about to run."""

    def after(self, pair: Pair) -> None:
        """It has run."""


class Traced(Plain):
    """In a run that goes on: by its tracer."""

    def __init__(self, op: Op, tracer: Tracer) -> None:
        super().__init__(op)
        self.tracer = tracer

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        tracer = self.tracer
        start = len(tracer.tape.ops)
        tracer.pulling += 1
        try:
            result = calls.call(tracer, self.op.site, function, args, kwargs)
        finally:
            tracer.pulling -= 1
        if tracer.expanding:
            must_be_repeatable(tracer.tape.ops[start:], function, self.op)
        return result

    def value(self, op: Op) -> Any:
        return box_of(self.tracer, op)

    def cotangent(self, value: Any, d: Any) -> Any:
        like = smooth(value)
        if not isinstance(d, Op):
            d = shaped(Leaf(None, like), d)
            if not isinstance(d, np.ndarray):
                return d
            return known(self.tracer, d, self.op.site)
        x = box_of(self.tracer, d)
        if alike(d.value, like):
            return x
        return lowering.run(broadcast_like, (x, like), {})

    def item(self, d: Any, i: int) -> Any:
        return protocols.operate_index(d, i) if is_one_of(type(d), BOXES) else d[i]

    def found(self, d: Any) -> Any:
        arrays: list[ArrayBox] = []
        op = operand(d, arrays)
        save(arrays)
        return op

    def before(self, pair: Pair) -> None:
        restore_captured(self.tracer, pair)

    def after(self, pair: Pair) -> None:
        note_captured(self.tracer, pair)


def setting_of(op: Op, tape: Tape | None) -> Plain:
    """How to run the functions of a rule for a sweep that is recorded on a tape, or not at all."""
    if tape is None:
        return Plain(op)
    tracer = active.tracer
    if tracer is None or tracer.tape is not tape:
        raise late(op)
    return Traced(op, tracer)


def late(op: Op) -> Late:
    rule = op.fn.rule if type(op.fn) is Pair else lookup(op.fn)
    assert rule is not None
    return Late(
        f"{blame(op.site)}: the rule {place_of(rule.function)} is not pure: its pullback runs at each reverse sweep, "
        "and no program or tape can be made of that beforehand. If it does nothing but compute from its arguments, "
        "declare it with pure=True"
    )


def must_be_repeatable(ops: list[Op], function: Any, op: Op) -> None:
    """Raise where a function that is traced once for all calls does what it must do at each."""
    for x in ops:
        computes = lookup(x.fn) is not None or type(x.fn) is Pair or is_pure(x.fn)
        if x.kind == "effect" or (x.kind == "call" and not computes):
            raise TraceError(
                f"{blame(op.site)}: {getattr(function, '__name__', 'a rule')} is used inside a function that is "
                "differentiated as a whole, and does more than to compute from its arguments\n"
                "call it outside of that function, or declare it pure=True if it does nothing else"
            )


def smooth(value: Any) -> Any:
    """A value of the kind that cotangents of a value have: those of whole numbers are floats."""
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in "fc" else np.broadcast_to(np.zeros(()), value.shape)
    if isinstance(value, np.integer):
        return np.float64(0)
    return 0.0 if type(value) is int else value


# ----------------------------------------------------------------------------------------------- reverse


def pull_pair(machine: Machine, op: Op, dz: Any, active_ops: set[Op]) -> None:
    """Run the pullback of a pair, and hand its cotangents on."""
    pair = op.fn
    setting = setting_of(op, machine.tape if isinstance(machine, Recorded) else None)
    values = values_of(pair, op)
    parts = dz.parts if isinstance(dz, Parts) else [dz]
    given = zip(values, parts, strict=True)
    cotangents = iter([setting.cotangent(value, d) for value, d in given])
    cotangent = rebuild(pair.tree, lambda leaf: next(cotangents))
    for leaf, d in pulled(setting, pair, op, cotangent):
        if leaf in active_ops and (found := known_of(op, leaf, d)) is not None:
            machine.accumulate(leaf, found)


OWN[Pair] = pull_pair


def values_of(pair: Pair, op: Op) -> tuple[Any, ...]:
    """The leaves of the value of a pair."""
    return (op.value,) if isinstance(pair.tree, Leaf) else op.value


def pulled(setting: Plain, pair: Pair, op: Op, cotangent: Any) -> list[tuple[Op, Any]]:
    """Run a pullback: the cotangents that it gives, by operand."""
    setting.before(pair)
    result = setting.call(pair.pullback, (cotangent,), {})
    setting.after(pair)
    args = op.args[:-1] if type(op.fn) is Pair else op.args
    return list(by_operand(setting, pair.rule, args, op.kwargs, result))


def by_operand(
    setting: Plain, rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Iterator[tuple[Op, Any]]:
    """The cotangents that a pullback returned, by the operands that they belong to; unknown, where it says nothing."""
    fits = isinstance(result, tuple)
    if fits and rule.custom and len(result) > len(args) + len(kwargs):
        fits = len(result) <= len(parameters_of(rule))
    if not fits:
        kind = CotangentError if rule.custom else TraceError
        raise kind(
            f"the pullback of {place_of(rule.function)} must return a tuple with one cotangent for each argument\n"
            "of one argument too: return (dx,)"
        )
    names = parameters_of(rule)
    where: dict[Any, tuple[Any, int]] = {i: (tree, i) for i, tree in enumerate(args)}
    for key, tree in kwargs.items():
        where[key] = tree, names.index(key) if key in names else len(result)
    for name, (tree, i) in where.items():
        if i < len(result):
            yield from matched(setting, tree, result[i], f"argument {name}", rule)
        else:
            missing = unknown(names[name] if name in range(len(names)) else str(name))
            yield from [(x, missing) for x in ops_in(tree)]


def parameters_of(rule: Rule) -> list[str]:
    """The parameters of a rule, in the order of the cotangents; none where these are those by position alone."""
    found = inspect.signature(rule.function).parameters  # type: ignore[arg-type]
    return [] if any(p.kind is p.VAR_POSITIONAL for p in found.values()) else list(found)


def matched(setting: Plain, tree: Any, d: Any, name: str, rule: Rule) -> Iterator[tuple[Op, Any]]:
    """Pair the operands in an argument with their cotangents."""
    if d is None or type(tree) is slice or not any(True for _ in ops_in(tree)):
        return
    if isinstance(tree, Op):
        found = setting.found(d)
        must_fit(primal(found), tree.value, name, rule)
        yield tree, found
        return
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    plain = d.value if is_one_of(type(d), BOXES) else d
    kinds = dict if isinstance(tree, dict) else (list, tuple, np.ndarray)
    if not isinstance(plain, kinds):
        raise misfit(
            rule,
            f"{with_article(type_name(plain))} for {name}, which is {with_article(type(tree).__name__)}",
        )
    for key, part in items:
        if key in plain if isinstance(tree, dict) else key < len(plain):
            yield from matched(setting, part, setting.item(d, key), f"{name}[{key!r}]", rule)


def must_fit(d: Any, x: Any, name: str, rule: Rule) -> None:
    """Raise where a cotangent does not belong to its operand."""
    if not isinstance(d, (int, float, complex, np.ndarray, np.generic)):
        raise misfit(
            rule, f"{with_article(type_name(d))} for {name}, which is {with_article(type_name(x))}"
        )
    if rule.custom and np.shape(d) != np.shape(x):
        shape = f"a cotangent of shape {np.shape(d)} for {name}"
        raise misfit(rule, f"{shape}, whose shape is {np.shape(x)}")


def misfit(rule: Rule, what: str) -> CotangentError:
    return CotangentError(
        f"the pullback of {place_of(rule.function)} gives {what}\n"
        "a cotangent is a number or an array like the argument; return None where there is none"
    )


# ----------------------------------------------------------------------------------- operations without pair


def asked(setting: Plain, op: Op) -> Pair:
    """Run the rule of an operation that was recorded without it."""
    rule = lookup(op.fn)
    assert rule is not None
    args, kwargs = substitute(op.args, setting.value), substitute(op.kwargs, setting.value)
    tracer = setting.tracer if isinstance(setting, Traced) else None
    if tracer is not None:
        tracer.bodies.append(op.fn)
    try:
        _, pullback = pair_of(rule.function, setting.call(rule.function, args, kwargs))
    finally:
        if tracer is not None:
            tracer.bodies.pop()
    return Pair(op.fn, rule, pullback, tree_of(op.value), op.site)


def tree_of(value: Any) -> Tree:
    """The structure of a plain value."""
    if isinstance(value, (tuple, list)):
        return Branch(type(value), {i: tree_of(x) for i, x in enumerate(value)})
    return Leaf(None, None)


def pull_asked(machine: Machine, op: Op, dz: Any, active_ops: set[Op]) -> None:
    """Hand the cotangent of such an operation on."""
    setting = setting_of(op, machine.tape if isinstance(machine, Recorded) else None)

    def cotangent(value: Any, d: Any) -> Any:
        if isinstance(value, (tuple, list)):
            parts = d.parts if isinstance(d, Parts) else d
            return tuple([cotangent(v, p) for v, p in zip(value, parts, strict=True)])
        return setting.cotangent(value, d)

    given = cotangent(op.value, dz)
    unlink(cotangent)
    for leaf, d in pulled(setting, asked(setting, op), op, given):
        if leaf in active_ops and (found := known_of(op, leaf, d)) is not None:
            machine.accumulate(leaf, found)


def direct_asked(active_ops: set[Op]) -> Callable[[float, Op, dict[Op, Any]], None]:
    """The same for arithmetic on plain floats, after the run: see `expand.direct_pull`."""

    def pull(dz: float, op: Op, cotangents: dict[Op, Any]) -> None:
        setting = Plain(op)
        for leaf, d in pulled(setting, asked(setting, op), op, dz):
            if leaf in active_ops and (found := known_of(op, leaf, d)) is not None:
                have = cotangents.get(leaf)
                cotangents[leaf] = found if have is None else have + found

    return pull


# ----------------------------------------------------------------------------------------------- forward


class Form(NamedTuple):
    """A pullback, recorded once: ``units`` are its cotangents, ``found`` what it gives for operands."""

    ops: list[Op]
    units: list[Op]
    found: list[tuple[Op, Any]]


class Untied(Plain):
    """The setting of a pullback that is traced on its own, after the run."""

    def item(self, d: Any, i: int) -> Any:
        if not isinstance(d, Op):
            return d[i]
        return append(d.tape, operator.getitem, (d, i), {}, d.value[i], self.op.site)


def form_of(pair: Pair, op: Op, values: tuple[Any, ...]) -> Form:
    """The form of a pullback: in a run that goes on it is a part of that run."""
    tracer = active.tracer
    args = op.args[:-1] if type(op.fn) is Pair else op.args
    if tracer is None:
        parts = iter([ones(value) for value in values])
        done = run(pair.pullback, (rebuild(pair.tree, lambda leaf: next(parts)),), {})
        units = [leaf.op for leaf in leaves(done.args[0]) if leaf.op is not None]
        result = done.tape.result
        found = list(by_operand(Untied(op), pair.rule, args, op.kwargs, result))
        return Form(done.tape.ops, units, found)
    units = [direction(tracer.tape, smooth(value), op.site) for value in values]
    boxes = iter([box(tracer, x, []) for x in units])
    start = len(tracer.tape.ops)
    cotangent = rebuild(pair.tree, lambda leaf: next(boxes))
    found = pulled(Traced(op, tracer), pair, op, cotangent)
    return Form(tracer.tape.ops[start:], units, found)


def push_pair(pusher: forward.Pusher, op: Op) -> Any:
    """Carry tangents along a pair, by the transpose of its pullback; however many they are, it runs once."""
    pair = op.fn
    key = active.tracer, op
    if active.tracer is None and not pusher.fixed:
        raise late(op)
    if pair.form is None or pair.form[0] != key:
        pair.form = key, form_of(pair, op, values_of(pair, op))
    return transposed(pusher, op, pair.form[1], values_of(pair, op), pair.tree)


forward.OWN[Pair] = push_pair


def transposed(
    pusher: forward.Pusher, op: Op, form: Form, values: tuple[Any, ...], tree: Tree
) -> Any:
    """The tangent of an op by the transpose of a form."""
    for leaf, d in form.found:
        if pusher.known(leaf) is not None:
            known_of(op, leaf, d)
    seeds = [(d, pusher.known(leaf)) for leaf, d in form.found if isinstance(d, Op)]
    machine = Recorded(pusher.tape, op.site)
    start = len(pusher.tape.ops)
    ds = sweep(form.ops, form.units, seeds, machine)
    must_be_linear(op, form.units, form.ops + pusher.tape.ops[start:], ds)
    pusher.looked.update(machine.looked)
    pusher.momentary = pusher.momentary or machine.momentary
    found = [typed(pusher.tape, joined(d), v) for d, v in zip(ds, values, strict=True)]
    if isinstance(tree, Leaf):
        return found[0]
    return None if all(t is None for t in found) else tuple(found)


def push_asked(pusher: forward.Pusher, op: Op) -> Any:
    """Carry tangents along an operation whose rule is to run for it."""
    if active.tracer is None and not pusher.fixed:
        raise late(op)
    pair = asked(Plain(op) if active.tracer is None else Traced(op, active.tracer), op)
    values = tuple(op.value) if isinstance(op.value, (tuple, list)) else (op.value,)
    return transposed(pusher, op, form_of(pair, op, values), values, pair.tree)


# --------------------------------------------------------------------------- rules for the forward mode


def replay(linear: Linear, inputs: list[Any], tape: Tape) -> Any:
    """Compute a derivative once more, for these directions and sources: its results."""
    known: dict[Op, Any] = dict(zip(linear.tape.inputs, inputs, strict=True))
    for op in linear.tape.ops:
        if op.kind == "call":
            args, kwargs = (substitute(x, known.__getitem__) for x in (op.args, op.kwargs))
            value = op.fn(*primal(args), **primal(kwargs))
            known[op] = append_saved(tape, op.fn, args, kwargs, value, op.site)
    return substitute(linear.tape.result, known.__getitem__)


def operands_of(op: Op) -> list[Op]:
    """The operands of a call whose derivative is at hand; what it takes beside is no operand."""
    return [*ops_in(op.args[:-2]), *ops_in(op.kwargs)]


def pull_linear(machine: Machine, op: Op, dz: Any, active_ops: set[Op]) -> None:
    """Carry a cotangent back along a derivative: the transpose of it."""
    linear, operands = op.fn, operands_of(op)
    must_have_directions(op, [x for x in operands if x in active_ops])
    if not is_transposable(op):
        raise not_linear(op)
    tape = machine.tape if isinstance(machine, Recorded) else Tape()
    units = [direction(tape, operands[place].value, op.site) for place in linear.places]
    start = len(tape.ops)
    results = replay(linear, [*units, *op.args[-2]], tape)
    steps, inner = dependents(tape.ops[start:], units)
    parts = dz.parts if isinstance(dz, Parts) else [dz]
    for result, d in zip(results, parts, strict=True):
        if d is not None and result in inner:
            machine.accumulate(result, d)
    run_steps(steps, inner, machine)
    for place, x in zip(linear.places, units, strict=True):
        d = machine.cotangents.pop(x, None)
        if d is not None and operands[place] in active_ops:
            machine.accumulate(operands[place], d)


OWN[Linear] = pull_linear


def is_transposable(op: Op) -> bool:
    """Whether a derivative is linear in its directions, as a look at its transpose shows."""
    linear = op.fn
    if linear.transposable is None:
        tape = Tape()
        units = [direction(tape, operands_of(op)[i].value, op.site) for i in linear.places]
        results = replay(linear, [*units, *op.args[-2]], tape)
        seeds = [(x, ones(x.value)) for x in results if isinstance(x, Op)]
        found = sweep([*tape.ops], units, seeds, Recorded(tape, op.site))
        linear.transposable = not linear.decided and is_linear(units, tape.ops, tuple(found))
    return bool(linear.transposable)


def push_linear(pusher: forward.Pusher, op: Op) -> Any:
    """Carry tangents along a derivative."""
    linear, operands = op.fn, operands_of(op)
    must_have_directions(op, [x for x in operands if pusher.known(x) is not None])
    given = []
    for place in linear.places:
        t = pusher.known(operands[place])
        given.append(pusher.recorder.zero(operands[place].value) if t is None else t)
    if linear.guessed:
        raise NoRuleError(
            f"{place_of_op(op)}: the frule of {fn_name(linear.fn)} decides by its tangents, and others may come\n"
            "take jvp, or let the rule be linear in them"
        )
    results = replay(linear, [*given, *op.args[-2]], pusher.tape)
    return tuple(results) if isinstance(op.value, tuple) else results[0]


forward.OWN[Linear] = push_linear


def must_have_directions(op: Op, wanted: list[Op]) -> None:
    """Raise where a derivative is wanted by what is an option of the rule."""
    operands = operands_of(op)
    known = {operands[place] for place in op.fn.places}
    if any(x not in known for x in wanted):
        raise NoRuleError(no_options(op))


asking.direct, asking.pull, asking.push = direct_asked, pull_asked, push_asked
