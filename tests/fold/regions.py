"""Regions made by hand, and programs made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.tracer.fold.region import (
    INPUT,
    ITEM,
    PARAMETER,
    RESULT,
    Block,
    Call,
    End,
    Folded,
    Function,
    Invoke,
    Kind,
    Loop,
    Op,
    Region,
    Scope,
    kind_of,
)
from wengert.transforms.assemble import Assembly
from wengert.transforms.fold.arrays import is_of_floats
from wengert.transforms.fold.source import Emission


class Miss(Exception):
    """The program does not know the way of a run."""


class At:
    """Writes into a block: ops, and then a decision or an end."""

    def __init__(self, block: Block, region: Region) -> None:
        self.block = block
        self.region = region

    def op(self, fn: Any, *args: Any, kind: type = float) -> Op:
        op = Op(None, fn, args, kind, self.region)
        self.block.ops.append(op)
        return op

    def call(self, fn: Any, *args: Any, kind: Any, **kwargs: Any) -> Op:
        """A call of a function of arrays, with operands in its arguments."""
        found: list[Any] = []
        frame = framed(args, kwargs, found)
        op = Call(None, fn, tuple(found), kind, self.region, frame)
        self.block.ops.append(op)
        return op

    def decide(self, subject: Any, *outcomes: Any) -> list[At]:
        """The blocks of the outcomes: False and True, if none are given."""
        self.block.subject = subject
        found = []
        for outcome in outcomes or (False, True):
            self.block.cases[outcome] = Block()
            found.append(At(self.block.cases[outcome], self.region))
        return found

    def test(self, fn: Any, *args: Any) -> list[At]:
        """Decide on a comparison: what comes where it is False, and where it is True."""
        return self.decide(self.op(fn, *args, kind=bool))

    def raised(self, op: Op, kind: type) -> At:
        """What comes where an op has raised."""
        op.exits[kind] = Block()
        return At(op.exits[kind], self.region)

    def end(self, kind: str, state: Any, *outs: Any) -> None:
        self.block.end = End(kind, state, [*outs])

    def give(self, *outs: Any) -> None:
        """Return floats."""
        self.end("return", (float,) * len(outs), *outs)

    # ------------------------------------------------------------------------- ops with regions of their own

    def loop(self, starts: Sequence[Any], count: Any = None) -> Loop:
        """A loop, over the integers of a range if there is one."""
        args = (*starts,) if count is None else (*starts, count)
        op = Loop(None, args, self.region, count is not None)
        self.block.ops.append(op)
        return op

    def scope(self) -> tuple[Scope, At]:
        op = Scope(None, self.region, "scope")
        self.block.ops.append(op)
        return op, At(op.region.root, op.region)

    def invoke(self, function: Function, *args: Any) -> Invoke:
        op = Invoke(None, args, self.region, function)
        self.block.ops.append(op)
        return op

    def after(self, op: Loop | Scope | Invoke, state: Any, *kinds: type) -> tuple[At, list[Op]]:
        """What comes where an op was left in a state, and its results there, of these classes."""
        return self.afters(op, {state: kinds})[0]

    def afters(
        self, op: Loop | Scope | Invoke, states: dict[Any, Sequence[type]]
    ) -> list[tuple[At, list[Op]]]:
        """The same for several states."""
        found = []
        for at, (state, kinds) in zip(self.decide(op, *states), states.items(), strict=True):
            op.results[state] = [Op(None, RESULT, (), kind, self.region) for kind in kinds]
            found.append((at, op.results[state]))
        return found


def array(ndim: int, dtype: Any = float) -> Kind:
    """The type of arrays with this many axes."""
    return kind_of(np.empty((0,) * ndim, dtype))  # type: ignore[no-any-return]


def framed(args: Sequence[Any], kwargs: dict[str, Any], found: list[Any]) -> Any:
    """How operands nest in the arguments of a call; they are added to ``found``."""
    inside = tuple(nested(x, found) for x in args)
    return "call", inside, tuple((k, nested(x, found)) for k, x in kwargs.items())


def nested(x: Any, found: list[Any]) -> Any:
    if type(x) in (tuple, list):
        return type(x).__name__, *(nested(y, found) for y in x)
    if type(x) is slice:
        return "slice", *(nested(y, found) for y in (x.start, x.stop, x.step))
    if x is None or type(x) in (bool, str) or x is Ellipsis:
        return "is", x
    found.append(x)
    return "x"


def body(loop: Loop, state: Any, *kinds: type) -> tuple[At, list[Op]]:
    """The body of a loop for a state of the carried variables, and its parameters of these classes."""
    region = loop.bodies[state] = Region()
    region.parameters = [Op(None, PARAMETER, (), kind, region) for kind in kinds]
    return At(region.root, region), region.parameters


def item(at: At) -> Op:
    """The first op of a turn of a counted loop."""
    return at.op(ITEM, kind=int)


def function(*kinds: type) -> tuple[Function, At, list[Op]]:
    """A function that calls itself, and its parameters."""
    found = Function(function.__code__)
    found.parameters = [Op(None, PARAMETER, (), kind, found) for kind in kinds]
    return found, At(found.root, found), found.parameters


def whole(*kinds: type) -> tuple[Folded, At, list[Op]]:
    """All runs of a function with these arguments."""
    folded = Folded()
    folded.region.parameters = [Op(None, INPUT, (), kind, folded.region) for kind in kinds]
    return folded, At(folded.region.root, folded.region), folded.region.parameters


def source_of(folded: Folded) -> tuple[str, dict[str, Any]]:
    """The source of ``program(*args)``, which gives the value and the cotangents of the floats, and its namespace."""
    text = Assembly({"Miss": Miss})
    inputs = folded.region.parameters
    names = {x: text.fresh(f"x{i}") for i, x in enumerate(inputs)}
    wrt = [x for x in inputs if is_of_floats(x.type)]

    def answer(
        end: End, value: Callable[[Any], str], cotangent: Callable[[Op], str], back: str
    ) -> tuple[list[str], list[str]]:
        return [], [f"return {value(end.outs[0])}, [{', '.join(map(cotangent, wrt))}]"]

    lines = Emission(folded, wrt, text, names, "raise Miss").lines(answer, "    ")
    source = "\n".join([f"def program({', '.join(names.values())}):", *lines, ""])
    return source, text.namespace


def program(folded: Folded) -> Callable[..., tuple[float, list[float]]]:
    source, namespace = source_of(folded)
    space = dict(namespace)
    exec(compile(source, "<program>", "exec"), space)
    return space["program"]  # type: ignore[no-any-return]
