"""Activity: which ops carry a derivative, and which names stand for one value.

Words
-----
alias     an op that always has the value of another one: the result of a scope with one way, what a loop carries on
          without changing it, a result that is the same on all ways.
edge      from an op to one that its derivative, or the derivative of what is in it, may flow to.
active    reached from an input that is asked for, and reaching a result.
own       a birth that no other op names: its list is never passed on, nor put into another one.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...rules.words import with_article
from ...tracer.fold.equivalents import in_order, shown
from ...tracer.fold.region import (
    APPEND,
    BIRTHS,
    CONTENTS,
    DICT,
    DROP,
    GET,
    INPUT,
    LENGTH,
    LOAD,
    MEMORIES,
    PACK,
    POP,
    PUT,
    REPEAT,
    STORE,
    VIEW,
    Draw,
    End,
    Folded,
    Invoke,
    Kind,
    Loop,
    Op,
    Reference,
    Region,
    Scope,
    Several,
    Take,
    Written,
    inner,
    is_memory,
    is_number,
    results_of,
)
from .arrays import is_constant, is_numpy_type, is_of_floats
from .ways import Unemittable, has_one_way

Flow = tuple[Op, Any]  # a parameter or result, and an operand that it is given
UNKNOWN = object()
DISCRETE = (int, bool, str, bytes, range, type(None))  # no derivative flows through these


class Aliases:
    """The ops that always have the value of another one."""

    def __init__(self, folded: Folded) -> None:
        self.known: dict[Op, Any] = {}
        self.flows: dict[Op, list[Flow]] = {}
        own = [op for block in folded.blocks() for op in block.ops if type(op) in (Loop, Scope)]
        for op in own:
            if type(op) is Scope and has_one_way(op):
                for target, source in self.flow(op):
                    self.known[target] = source
        self.within: dict[Op, set[Region]] = {}
        changed = True
        while changed:
            changed = False
            for op in own:
                changed |= self.unchanged(op)

    def flow(self, op: Op) -> list[Flow]:
        """`flows_of` an op, which is asked for more than once."""
        if op not in self.flows:
            self.flows[op] = flows_of(op)
        return self.flows[op]

    def resolve(self, x: Any) -> Any:
        """The op or constant that an operand comes down to."""
        if type(x) is Reference:
            x = x.ops[0]
        known = self.known.get(x, x)
        if known is x:
            return x
        found = self.known[x] = self.resolve(known)  # which makes the way shorter
        return found

    def candidates(self, x: Any) -> list[Any]:
        """The ops that may be meant by an operand, each once."""
        found = x.ops if isinstance(x, Reference) else [x]
        return [*dict.fromkeys(map(self.resolve, found))] if len(found) > 1 else [self.resolve(x)]

    def inside(self, op: Op) -> set[Region]:
        """The regions of an op, and those inside them."""
        found = self.within.get(op)
        if found is None:
            regions = inner(op)
            found = self.within[op] = set(regions)
            for region in regions:
                for block in region.root.tree():
                    for x in block.ops:
                        if type(x) is Loop or type(x) is Scope:
                            found |= self.inside(x)
        return found

    def unchanged(self, op: Op) -> bool:
        """Enter the parameters and results of an op that are one op from outside it on all ways."""
        within, results = self.inside(op), results_of(op)
        sources: dict[Op, list[Any]] = {}
        for target, source in self.flow(op):
            if target not in self.known:
                sources.setdefault(target, []).append(source)
        found = False
        for target in sources:
            origin = self.origin(target, sources)
            if isinstance(origin, Op) and origin.home not in within and origin not in results:
                self.known[target] = origin
                found = True
        return found

    def origin(self, target: Op, sources: dict[Op, list[Any]]) -> Any:
        """What reaches a parameter by way of parameters alone, if that is one op."""
        met, todo = {target}, [target]
        found: list[Op] = []
        while todo:
            for x in sources[todo.pop()]:
                options = self.candidates(x)
                if any(isinstance(y, Op) and y in met for y in options):
                    continue
                if len(options) > 1 or not isinstance(options[0], Op):
                    return UNKNOWN
                (y,) = options
                if y in sources:
                    met.add(y)
                    todo.append(y)
                elif not found:
                    found.append(y)
                elif found[0] is not y:
                    return UNKNOWN
        return found[0] if found else UNKNOWN


def pairs(targets: Sequence[Op], sources: Iterable[Any]) -> Iterator[Flow]:
    return zip(targets, sources, strict=False)


def results_given(op: Loop | Scope | Invoke, blocks: Iterable[Any]) -> Iterator[Flow]:
    """What the results of an op are given where its region ends."""
    for block in blocks:
        end: End | None = block.end
        if end is not None and end.kind != "next":
            yield from pairs(op.results.get(end.state, []), end.outs)


def flows_of(op: Op) -> list[Flow]:
    """What goes into the parameters of an op's regions, and from their ends into its results."""
    found: list[Flow] = []
    if type(op) is Loop:
        first = next(iter(op.bodies.values()), None)
        if first is not None:
            found += pairs(first.parameters, op.starts)
        for body in op.bodies.values():
            for end in body.root.ends():
                to = op.bodies.get(end.state) if end.kind == "next" else None
                if to is not None:
                    found += pairs(to.parameters, end.outs)
            found += results_given(op, body.root.tree())
    elif type(op) is Scope:
        found += results_given(op, op.region.root.tree())
    elif type(op) is Invoke:
        found += pairs(op.function.parameters, op.args)
        found += results_given(op, op.function.root.tree())
    return found


class Activity:
    """What `Emission` asks: whether an operand is active, and which births are own."""

    def __init__(
        self, folded: Folded, wrt: Sequence[Op], aliases: Aliases, called: set[Op]
    ) -> None:
        self.resolve = aliases.resolve
        self.flows = aliases.flow
        self.called = called  # calls of functions of arrays
        carries = self.carries
        forth: dict[Op, list[Op]] = {}
        back: dict[Op, list[Op]] = {}
        passed: set[Op] = set()
        ops = [op for block in folded.blocks() for op in block.ops]
        others = [op for op in ops if not callable(op.fn)]  # of memories, or with regions
        for source, target in self.edges(ops):
            forth.setdefault(source, []).append(target)
            back.setdefault(target, []).append(source)
        for op in others:
            passed.update(self.handed(op))
        given = reached([x for x in wrt if is_memory(x.type)], forth, holds)
        elsewhere = [x for x in forth if x.fn == INPUT and is_memory(x.type) and x not in {*wrt}]
        followed = objects(given)
        for kind in followed & objects(reached(elsewhere, forth, holds)):
            # Objects are followed by identity: a derivative would come by the other way as well.
            what = with_article(kind.__name__)
            raise Unemittable(
                f"{what} that a gradient is asked by may be one that is read elsewhere"
            )
        # An int in an object only counts.
        taken = [y for x in given if x.type not in followed for y in forth.get(x, ())]
        self.ints = any(x.type is int for x in (*wrt, *taken))
        ends = [end for end in folded.region.root.ends() if end.kind == "return"]
        results = [self.resolve(x) for end in ends for x in end.outs]
        passed.update(self.memories(results))
        self.shared(passed, (op for op in others if op.fn == VIEW))
        varied = reached([self.resolve(x) for x in wrt], forth, self.hands_on)
        for op in others:
            if op.fn in (DICT, STORE):
                keys = map(self.resolve, op.args[::2] if op.fn == DICT else op.args[1:2])
                if any(isinstance(x, Op) and x in varied for x in keys) and lists_keys(ops):
                    raise Unemittable("a loop over keys of a dict that have derivatives")
        self.must_not_read_texts(ops)
        useful = reached([x for x in results if isinstance(x, Op)], back, carries)
        self.active = varied & useful
        self.own = {
            op for op in others if op.fn in BIRTHS and op not in passed and op in self.active
        }

    def must_not_read_texts(self, ops: list[Op]) -> None:
        """Refuse numbers that are read out of texts, where any text is made of numbers: derivatives would be lost."""
        if any(op.fn is shown for op in ops) and any(
            is_number(op.type) and getattr(x, "type", None) is str
            for op in ops
            if op.fn in (float, int, str.find)
            # Where a text lies in a table of digits says which number it is.
            for x in map(self.resolve, op.args[op.fn is str.find :])
        ):
            raise Unemittable("a number is read out of a text, and another text is made of numbers")

    def __call__(self, x: Any) -> bool:
        """Whether an operand is active."""
        return self.resolve(x) in self.active

    def carries(self, op: Op) -> bool:
        """Whether an op can carry a derivative: a number, or what may have numbers in it.

        An int does where a gradient by an int is asked for.
        """
        if op.fn == PACK:
            return any(self.carries(y) for x in op.args if isinstance(y := self.resolve(x), Op))
        kind = op.type
        if type(kind) is Written:
            return is_of_floats(kind.kind)
        return is_of_floats(kind) or is_memory(kind) or (self.ints and kind is int)

    def hands_on(self, op: Op) -> bool:
        """The same of an op that something varied flows into, which has to be known of its class."""
        carries = self.carries(op)
        if not carries and (op.fn is max or op.fn is min):
            raise Unemittable("an integer that shares its slope with a float")
        if not carries and not self.is_discrete(op) and op.fn != PACK and type(op) is not Take:
            raise Unemittable(f"a derivative through {with_article(op.type.__name__)}")
        return carries

    def is_discrete(self, op: Op) -> bool:
        """Whether no derivative flows through what an op gives: NumPy's integers hand on that by one of Python's."""
        kind = op.type.kind if type(op.type) is Written else op.type
        return kind in DISCRETE or (is_numpy_type(kind) and (not self.ints or is_bool(kind)))

    def memories(self, xs: Iterable[Any]) -> Iterator[Op]:
        for x in map(self.resolve, xs):
            if isinstance(x, Op) and is_memory(x.type):
                yield x

    def handed(self, op: Op) -> Iterator[Op]:
        """The memories that an op makes known by another name."""
        if isinstance(op, (Loop, Scope, Invoke)):
            yield from self.memories(
                source for target, source in self.flows(op) if self.is_free(target)
            )
        elif op.fn in BIRTHS:
            yield from self.memories(() if op.fn in (REPEAT, CONTENTS) else op.args)
        elif op.fn == PACK:
            yield from self.memories(op.args)
        elif op.fn in (STORE, APPEND):
            yield from self.memories(op.args[-1:])

    def shared(self, passed: set[Op], views: Iterable[Op]) -> None:
        """Of which a view is known by another name, that is found by identity as well."""
        of = {op: [*self.memories(op.args[:1])] for op in views}
        while new := {x for op in of if op in passed for x in of[op]} - passed:
            passed.update(new)

    def is_free(self, target: Op) -> bool:
        return self.resolve(target) is target

    def edges(self, ops: Iterable[Op]) -> Iterator[tuple[Op, Op]]:
        for op in ops:
            for a, b in self.flow(op):
                source, target = self.resolve(a), self.resolve(b)
                if not isinstance(source, Op) or not isinstance(target, Op) or source is target:
                    continue
                yield source, target
                if holds(source) and holds(target):
                    yield target, source  # what is put in by one name is found by the other

    def flow(self, op: Op) -> Iterable[tuple[Any, Any]]:
        if isinstance(op, (Loop, Scope, Invoke)):
            return [(source, target) for target, source in self.flows(op)]
        if op.fn in (STORE, APPEND):
            return [(op.args[-1], op.args[0])]
        if op.fn == PUT:
            return [(op.args[1], op.args[0])]
        if op.fn in (GET, VIEW):
            return [(op.args[0], op)]
        if op.fn in (LOAD, POP):
            return [(op.args[0], x) for x in ((op, *results_of(op)) if type(op) is Take else (op,))]
        if op.fn in (LENGTH, DROP, builtins.list, in_order) or isinstance(op, Draw):
            return []
        if op in self.called and is_constant(op):
            return []
        return [
            (x, y) for x in op.args for y in (results_of(op) if isinstance(op, Several) else (op,))
        ]


def objects(ops: Iterable[Op]) -> set[Any]:
    """The classes of the user's objects among some ops."""
    kinds = {x.type for x in ops if is_memory(x.type)}
    return {kind for kind in kinds if kind not in MEMORIES and type(kind) is not Written}


def lists_keys(ops: Iterable[Op]) -> bool:
    """Whether the keys of any dict become items of a list."""
    return any(op.fn is builtins.list for op in ops)


def is_bool(kind: Any) -> bool:
    """Whether values of a type of NumPy's are bools."""
    return kind is np.bool_ or (type(kind) is Kind and kind.dtype.kind == "b")


def holds(op: Op) -> bool:
    """Whether there may be memories in the value of an op, or it is one."""
    return is_memory(op.type) or op.fn == PACK


def reached(
    starts: Iterable[Op], edges: dict[Op, list[Op]], through: Callable[[Op], bool]
) -> set[Op]:
    """The ops that edges lead to."""
    found = {x for x in starts if through(x)}
    todo = [*found]
    while todo:
        new = [x for x in edges.get(todo.pop(), ()) if x not in found and through(x)]
        found.update(new)
        todo += new
    return found
