"""The reverse sweep: cotangents flow back along the tape and are accumulated.

Words
-----
steps      the ops that depend on the variables asked for, in the order of the tape.
cotangents what has been accumulated so far, by op; a missing one is zero.
machine    how cotangents are represented: plain values (``Numeric``), or ops on a tape (``Recorded``).
owned      a cotangent that the sweep itself made by an addition, and may therefore write into.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, MutableMapping
from typing import Any, NamedTuple

import numpy as np

from ..rules.mutation import may_repeat, scatter, scatter_add, setitem
from ..rules.registry import NONDIFF, lookup, rules
from ..rules.words import with_article
from ..rules.zeros import cotangent_dtype
from ..tracer.arrays import append_saved
from ..tracer.errors import NoRuleError, TraceError
from ..tracer.kinds import is_one_of, isinstance
from ..tracer.outline import Memos, Mirrored
from ..tracer.places import raise_at
from ..tracer.run import surroundings
from ..tracer.seals import Unfollowed
from ..tracer.tape import (
    FloatOp,
    Guard,
    Input,
    Op,
    Signature,
    Site,
    Tape,
    append,
    element,
    fn_name,
    ops_in,
    primal,
    substitute,
    variable,
)
from . import asking
from .columns import Column, add_columns
from .equal import EXACT, key_of, plain, plainer
from .expand import (
    REFUSALS,
    Expansion,
    counted,
    direct_pull,
    expansion_of,
    is_asked,
    is_own,
    is_whole,
    overflowed,
    refusal,
    rounds,
)
from .gather import column_of
from .kernels import static


def dependents(ops: Iterable[Op], wrt: Iterable[Op]) -> tuple[list[Op], set[Op]]:
    """The calls among ``ops`` that depend on ``wrt``, and the set of all active variables.

    What has no derivative, and what depends on ``wrt`` through it only, is not among them.
    """
    active = set(wrt)
    steps: list[Op] = []
    for op in ops:
        if type(op) is FloatOp:
            a, b = op.args
            if a in active or b in active:
                active.add(op)
                steps.append(op)
            continue
        if op.kind != "call":
            continue
        for x in op.args:
            if isinstance(x, Op):
                if x in active:
                    break
            elif is_one_of(type(x), NESTED) and not active.isdisjoint(ops_in(x)):
                break
        else:
            if not op.kwargs or active.isdisjoint(ops_in(op.kwargs)):
                continue
        rule = lookup(op.fn)
        if rule is not None and rule.kind == NONDIFF:
            continue
        if getattr(op.value, "dtype", None) == bool:
            continue  # a mask, through which nothing flows
        if rule is not None and rounds(op, rule):
            if not any(x in active and is_whole(x.value) for x in op.operands()):
                continue
        active.add(op)
        steps.append(op)
    return steps, active


NESTED = (tuple, list, dict, slice)


def must_be_derivable(tape: Any, transform: str) -> None:
    """Raises TraceError for what is no tape, and for one of pairs, whose pullbacks are opaque."""
    if not isinstance(tape, Tape):
        raise TraceError(
            f"{transform} takes a tape, not {with_article(type(tape).__name__)}\n"
            f"trace the function first: {transform}(trace(f, x))"
        )
    if any(getattr(op.fn, "unpacked", False) for op in tape.ops):
        raise TraceError(
            f"{tape.name} is a tape of pairs, whose pullbacks cannot be looked into\n"
            'differentiate that of reverse(tape) or reverse(tape, form="naive")'
        )


def sweep(
    ops: Iterable[Op], wrt: list[Op], seeds: list[tuple[Op, Any]], machine: Machine
) -> list[Any]:
    """The cotangents of ``wrt``, given those of some results (``seeds``); None is a zero."""
    Signature.renew(rules.changes)
    steps, active = dependents(ops, wrt)
    cotangents = machine.cotangents
    for op, seed in seeds:
        if seed is not None:
            machine.accumulate(op, seed)
    # What overflows, is undefined or empty here is no warning about the user's program.
    with np.errstate(all="ignore"), surroundings.unheard():
        run_steps(steps, active, machine)
    return [cotangents.get(op) for op in wrt]


def run_steps(steps: list[Op], active: set[Op], machine: Machine) -> None:
    """The loop of the sweep: each op hands its cotangent on to its operands."""
    cotangents = machine.cotangents
    op = None
    try:
        for op in reversed(steps):
            dz = cotangents.pop(op, None)
            if dz is not None:
                kind = type(op.fn)
                if op.fn is element:
                    machine.owned.discard(op)
                    if isinstance(dz, Parts) and type(op.value) is Column:
                        dz = machine.column(op, dz)
                    machine.accumulate_part(op.args[0], op.args[1], dz)
                elif type(op) is not FloatOp and type(kind) is type and kind in OWN:
                    OWN[kind](machine, op, dz, active)
                else:
                    machine.pull(op, dz, active)
    except OverflowError as error:
        overflowed(op, error)


# Callables that hand cotangents on by themselves, by their type: fn(machine, op, dz, active).
OWN: dict[type, Any] = {}


def pull_unfollowed(machine: Machine, op: Op, dz: Any, active: set[Op]) -> None:
    """Nobody knows the derivative by the values behind a thing that C code reads."""
    if not active.isdisjoint(op.args[1:]):
        raise NoRuleError(op.fn.reason)
    if isinstance(op.args[0], Op):
        machine.accumulate(op.args[0], dz)


OWN[Unfollowed] = pull_unfollowed


class Parts:
    """The cotangent of a value that is a tuple."""

    __slots__ = ("parts", "whole")

    def __init__(self, count: int, whole: Any = None) -> None:
        self.parts: list[Any] = [None] * count
        self.whole = whole  # what came for the whole of a column


class Machine:
    """What both kinds of sweep share."""

    def __init__(self) -> None:
        self.cotangents: dict[Op, Any] = {}
        self.owned: set[Op] = set()

    def accumulate_part(self, op: Op, index: int, d: Any) -> None:
        """Add to one element of the cotangent of a tuple."""
        have = self.cotangents.get(op)
        if not isinstance(have, Parts):
            have = self.cotangents[op] = Parts(len(op.value), have)
        parts = have.parts
        parts[index] = d if parts[index] is None else self.add(parts[index], d)

    def accumulate(self, op: Op, d: Any) -> None:
        raise NotImplementedError

    def pull(self, op: Op, dz: Any, active: set[Op]) -> None:
        raise NotImplementedError

    def add(self, x: Any, y: Any) -> Any:
        raise NotImplementedError

    def ask(self, op: Op, dz: Any, active: set[Op]) -> None:
        """Pull by a rule that runs in the sweep."""
        asking.pull(self, op, dz, active)

    def whole(self, op: Op, dz: Parts) -> tuple[Any, ...]:
        """The cotangent of a tuple. Where there is none of a part, the rules of others get zeros."""
        rule = lookup(op.fn)
        if rule is not None and is_own(rule):
            return tuple(dz.parts)
        return self.filled(op, dz)

    def column(self, op: Op, dz: Parts) -> Any:
        """The cotangent of a column, from those of its values."""
        found = Column(self.filled(op, dz))
        return found if dz.whole is None else self.add(dz.whole, found)

    def filled(self, op: Op, dz: Parts) -> tuple[Any, ...]:
        given = zip(dz.parts, op.value, strict=True)
        return tuple([self.zero(v) if d is None else d for d, v in given])

    def zero(self, value: Any) -> Any:
        """A zero of the kind of a value, for what asks for a cotangent where there is none."""
        return zero(value)


class Numeric(Machine):
    """Cotangents are plain values, computed at once."""

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def accumulate(self, op: Op, d: Any) -> None:
        have = self.cotangents.get(op)
        if have is None:
            self.cotangents[op] = d
        elif type(have) is Parts:
            have.whole = d if have.whole is None else self.add(have.whole, d)
        elif type(have) is np.ndarray and have.ndim:
            if (
                op in self.owned
                and type(d) is np.ndarray
                and d.shape == have.shape
                and d.dtype == have.dtype
            ):
                np.add(have, d, out=have)
            else:
                self.cotangents[op] = have + d
                self.owned.add(op)
        else:
            self.cotangents[op] = have + d

    def pull(self, op: Op, dz: Any, active: set[Op]) -> None:
        if type(op) is FloatOp and type(dz) is float:
            # Measured on x = r*x*(1-x): 5 times as fast as the general way below.
            a, b = op.args
            pattern = (a in active) + 2 * (b in active)
            pull = op.signature.pulls[pattern] or direct_pull(op, active, dz, pattern)
            pull(dz, op, self.cotangents)
            return
        if is_asked(op):
            return self.ask(op, dz, active)
        if isinstance(dz, Parts):
            dz = self.whole(op, dz)
        expansion, leaves = expansion_of(op, active, dz)
        if expansion is None:
            return
        self.run(expansion, op, leaves, dz)

    def run(self, expansion: Expansion, op: Op, leaves: list[Any], dz: Any) -> None:
        values = [x.value if isinstance(x, Op) else x for x in leaves]
        try:
            results = expansion.function(dz, op.value, *values)
        except REFUSALS as error:
            raise_at(op.site, refusal(op, error))
        owned = op in self.owned
        self.owned.discard(op)
        late = None
        zeroed = "zeroed" in expansion.forms
        for i, form, d in zip(expansion.wanted, expansion.forms, results, strict=True):
            if form == "scatter":
                self.scatter_into(leaves[i], *d)
            elif form == "zeroed":
                late = (leaves[i], d)
            else:
                if zeroed:
                    d = np.array(d, copy=True)[()] if np.may_share_memory(d, dz) else d
                self.accumulate(leaves[i], d)
        if late is not None:
            leaf, (_, index, _) = late
            d = dz if owned and type(dz) is np.ndarray else np.array(dz)
            d[index] = 0
            if leaf in self.cotangents:
                self.accumulate(leaf, d)
            else:
                self.cotangents[leaf] = d
                self.owned.add(leaf)

    def scatter_into(self, op: Op, d: Any, index: Any, shape: tuple[int, ...], dtype: Any) -> None:
        """Add ``d`` at an index of a cotangent, in one array however many accesses there were."""
        have = self.cotangents.get(op)
        if have is None:
            have = np.zeros(shape, dtype)
        elif op not in self.owned or type(have) is not np.ndarray:
            have = np.array(have)
        if may_repeat(index):
            np.add.at(have, index, d)
        else:
            have[index] += d
        self.cotangents[op] = have
        self.owned.add(op)


def zero(value: Any) -> Any:
    if isinstance(value, float):
        return 0.0
    return np.zeros(np.shape(value), cotangent_dtype(value))[()]


def looked_at_by(expansion: Any, leaves: list[Any]) -> list[Op]:
    """The integers that a rule has looked at, as far as they are variables."""
    return [leaves[i] for i in sorted(expansion.drawn) if isinstance(leaves[i], Op)]


def decisions(looked: Iterable[Op], tape: Tape) -> list[Op]:
    """Guards that what a sweep has looked at is what it was."""
    return [Guard(operator.eq, (op,), counted(op.value), op.site, tape) for op in looked]


def led_by_values(name: str) -> str | None:
    """Why a sweep holds for the traced arguments alone, if a rule goes by their values."""
    return f"the rule of {name} goes by the values that it is given" if name else None


class Recipe(NamedTuple):
    """An expansion of arithmetic in short: what is called on what, and what goes to which operand.

    An argument is the place of a value among the cotangent, the op, its operands and the earlier steps, or -1 and a
    number.
    """

    steps: list[tuple[Any, list[tuple[int, Any]]]]
    results: list[tuple[int, tuple[int, Any]]]


def recipe_of(expansion: Expansion | None) -> Recipe | None:
    """The recipe of an expansion, if it is plain arithmetic."""
    if expansion is None or expansion.momentary or any(expansion.forms):
        return None
    places: dict[Op, int] = {}
    steps = []
    for op in expansion.tape.ops:
        if op.kind == "call":
            if op.kwargs or not all(isinstance(x, (Op, float, int)) for x in op.args):
                return None
            steps.append(
                (op.fn, [(places[x], None) if isinstance(x, Op) else (-1, x) for x in op.args])
            )
        places[op] = len(places)
    if list(places.values())[:4] != [0, 1, 2, 3] or not all(
        isinstance(d, (Op, float, int)) for d in expansion.tape.result
    ):
        return None
    results = [
        (i, (places[d], None) if isinstance(d, Op) else (-1, d))
        for i, d in zip(expansion.wanted, expansion.tape.result, strict=True)
    ]
    return Recipe(steps, results)


class Recorded(Machine):
    """Cotangents are ops, put on a tape: the reverse program itself, which can be differentiated again."""

    def __init__(self, tape: Tape, site: Site) -> None:
        super().__init__()
        self.tape = tape
        self.site = site
        self.repeated: list[Op] = []  # operations of the forward run that are done once more
        self.momentary = ""  # the name of a function whose expansion holds for this run only
        self.decided = ""  # and of one whose rule other values may lead another way
        self.looked: dict[Op, None] = {}  # the integers on whose values the sweep depends
        self.recipes: dict[Any, Recipe | None] = {}  # by signature and pattern
        self.done: MutableMapping[Any, Op] = {}  # arithmetic on plain floats, by what is done

    def add(self, x: Any, y: Any) -> Any:
        value = primal(x) + primal(y)
        add = add_columns if type(value) is Column else operator.add
        return append(self.tape, add, (x, y), {}, value, self.site)

    def accumulate(self, op: Op, d: Any) -> None:
        have = self.cotangents.get(op)
        if type(have) is Parts:
            have.whole = d if have.whole is None else self.add(have.whole, d)
        else:
            self.cotangents[op] = d if have is None else self.add(have, d)

    def follow(self, recipe: Recipe, op: FloatOp, dz: Any) -> None:
        """Record the pullback of arithmetic on plain floats."""
        known = [dz, op, *op.args]
        for fn, args in recipe.steps:
            given = tuple([known[i] if i >= 0 else x for i, x in args])
            known.append(self.arithmetic(fn, given, op.site))
        for i, (j, number) in recipe.results:
            leaf, d = op.args[i], known[j] if j >= 0 else number
            have = self.cotangents.get(leaf)
            self.cotangents[leaf] = (
                d if have is None else self.arithmetic(operator.add, (have, d), self.site)
            )

    def arithmetic(self, fn: Any, args: tuple[Any, ...], site: Site) -> Any:
        """The op, or the number, that arithmetic on plain floats gives; none is done twice."""
        key = (fn, *args) if all(args) else None  # 0.0 and -0.0 are equal
        found = self.done.get(key)
        if found is not None:
            return found
        if len(args) == 2:
            x, y = args
            a, b = plain(x), plain(y)
            value = fn(a, b)
            kinds = type(x) if a is x else Op, type(y) if b is y else Op
            if type(value) is type(a) is type(b) is float and Op in kinds:
                found = FloatOp(fn, args, value, site, self.tape, Signature.of(fn, *kinds))
                self.tape.ops.append(found)
        else:
            same, rest = plainer(fn, args)
            if same is not fn:
                return self.arithmetic(same, rest, site)
            value = fn(*map(plain, args))
        if found is None:
            if is_one_of(type(value), (int, float)) and static(args):
                return value
            found = append(self.tape, fn, args, {}, value, site)
        if key is not None:
            self.done[key] = found
        return found

    def column(self, op: Op, dz: Parts) -> Any:
        found = column_of(self.filled(op, dz), op.value, self.tape, self.site)
        return found if dz.whole is None else self.add(dz.whole, found)

    def zero(self, value: Any) -> Any:
        if type(value) is not np.ndarray or not value.ndim:
            return zero(value)
        new = zero(value)  # an array of its own at every call
        return append(self.tape, np.zeros, (new.shape, new.dtype), {}, new, self.site)

    def pull(self, op: Op, dz: Any, active: set[Op]) -> None:
        if type(op) is FloatOp and type(dz.value if isinstance(dz, Op) else dz) is float:
            a, b = op.args
            key = op.signature, (a in active) + 2 * (b in active)
            if key not in self.recipes:
                found = None if is_asked(op) else expansion_of(op, active, primal(dz))[0]
                self.recipes[key] = recipe_of(found)
            recipe = self.recipes[key]
            if recipe is not None:
                self.follow(recipe, op, dz)
                return
        if is_asked(op):
            return self.ask(op, dz, active)
        if isinstance(dz, Parts):
            dz = self.whole(op, dz)
        expansion, leaves = expansion_of(op, active, primal(dz))
        if expansion is None:
            return
        if expansion.momentary:
            self.momentary = fn_name(op.fn)
        if expansion.decided:
            self.decided = fn_name(op.fn)
        if expansion.drawn:
            self.looked.update(dict.fromkeys(looked_at_by(expansion, leaves)))
        inputs = [x for x in expansion.tape.ops if x.kind == "input"]
        known: dict[Op, Any] = dict(zip(inputs, (dz, op, *leaves), strict=True))
        repeats = len({*map(id, leaves)}) < len(leaves)  # then the same may be done for two leaves
        done: dict[Any, Op] = {}

        def now(x: Op) -> Any:
            return known[x]

        for x in expansion.tape.ops:
            if x.kind == "call":
                fn, args = plainer(x.fn, substitute(x.args, now))
                kwargs = substitute(x.kwargs, now)
                same = key_of(fn, args, kwargs, EXACT) if repeats else None
                if same in done:
                    known[x] = done[same]
                    continue
                if fn is element and not isinstance(args[0], Op):
                    known[x] = args[0][args[1]]
                    continue
                try:
                    value = fn(*primal(args), **primal(kwargs))
                except REFUSALS as error:
                    raise_at(op.site, refusal(op, error))
                if is_one_of(type(value), (int, float)) and static((args, kwargs)):
                    known[x] = value
                    continue
                known[x] = append_saved(self.tape, fn, args, kwargs, value, op.site)
                if same is not None:
                    done[same] = known[x]
        for i, form, d in zip(
            expansion.wanted, expansion.forms, expansion.tape.result, strict=True
        ):
            d = substitute(d, now)
            have = self.cotangents.get(leaves[i])
            if form == "scatter" and have is not None:
                args = (have, d[1], d[0])
                self.cotangents[leaves[i]] = self.call(scatter_add, args)
                continue
            if form is not None:
                d = self.call(scatter if form == "scatter" else setitem, tuple(d))
            self.accumulate(leaves[i], d)

    def call(self, fn: Any, args: tuple[Any, ...]) -> Op:
        return append_saved(self.tape, fn, args, {}, fn(*primal(args)), self.site)


class Mirror(Recorded):
    """A sweep that tells, to print it by, which line of the forward run each of its own pulls."""

    def __init__(self, tape: Tape, site: Site, outline: Mirrored) -> None:
        super().__init__(tape, site)
        self.outline = tape.outline = outline
        self.forward = set(tape.ops)
        self.known = len(tape.ops)
        self.memos = Memos(outline)

    def pull(self, op: Op, dz: Any, active: set[Op]) -> None:
        self.done = self.memos.at(op)
        name = variable(op)
        if name is not None and isinstance(dz, Op) and dz not in self.forward:
            self.outline.names.setdefault(dz, f"d{name}")
        super().pull(op, dz, active)
        new = self.tape.ops[self.known :]
        for x in new:
            if x.site is op.site:
                x.site = op.site.plain  # it is not what the user's variable holds
        self.outline.place(new, op, active, self.cotangents)
        for x in op.operands():
            d = self.cotangents.get(x)
            if isinstance(x, Input) and isinstance(d, Op) and d.fn is operator.add:
                self.outline.names.setdefault(d, f"d{x.name}")
        self.known += len(new)
