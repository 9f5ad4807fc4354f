"""A region as text: its loops, decisions and calls, and the run in which each way was first gone.

A loop tells what it carries, a decision what its outcomes lead to, and whether no run has had one of them. Where ways
meet again, each says what it gives to the variables that go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

from ..kinds import is_one_of, isinstance
from ..source import INFIX, PREFIX
from ..tape import Site
from .region import (
    APPEND,
    EXHAUSTED,
    ITEM,
    LENGTH,
    LOAD,
    MEMORIES,
    POP,
    STORE,
    Block,
    Constant,
    End,
    Folded,
    Instruction,
    Invoke,
    Kind,
    Loop,
    Op,
    Reference,
    Scope,
    variable,
)  # fmt: skip

INDENT = "  "
UNSEEN = "no run has gone here"
WORDS = {
    ITEM: "the next item",
    LOAD: "{0}{at}",
    STORE: "{0}{at} = {2}",
    APPEND: "{0}.append({1})",
    POP: "{0}.pop()",
    LENGTH: "len({0})",
}
DONE = (STORE, APPEND)  # which give nothing


def listed(
    known: Folded, inputs: dict[Op, str], growth: Sequence[tuple[int, int, int]]
) -> Iterator[str]:
    """The lines of a region; ``inputs`` has names, ``growth`` what is in `run.Known`."""
    printer = Printer(inputs, growth)
    yield from printer.blocks(known.region.root, "", None)
    for function in known.functions.values():
        title = printer.heading(f"{function.code.co_name}", function.parameters)
        yield f"function {title}  # {Site.of_code(function.code)}"
        yield from printer.blocks(function.root, INDENT, None)


class Printer:
    """Names the ops of a region, and knows which run each block comes from."""

    def __init__(self, names: dict[Op, str], growth: Sequence[tuple[int, int, int]]) -> None:
        self.names = dict(names)
        self.taken = {*names.values()}
        self.growth = growth

    def name(self, x: Any) -> str:
        if isinstance(x, Reference):
            return " | ".join(map(self.name, x.ops))
        if isinstance(x, tuple):
            return f"({', '.join(map(self.name, x))})"
        if not isinstance(x, Op):
            value = x.value if isinstance(x, Constant) else x
            return str(getattr(value, "__name__", None) or repr(value))
        if x not in self.names:
            wanted = variable(x) or "%"
            number = len(self.names) + 1
            own = wanted != "%" and wanted not in self.taken
            self.names[x] = wanted if own else f"{wanted}.{number}".replace("%.", "%")
            self.taken.add(wanted)
        return self.names[x]

    def heading(self, what: str, ops: Sequence[Op]) -> str:
        return f"{what}({', '.join(map(self.name, ops))})"

    def expression(self, op: Op) -> str:
        """What an op does, in Python's words."""
        args = [*map(self.name, op.args)]
        if op.fn in INFIX and len(args) == 2:
            return f"{args[0]} {INFIX[op.fn]} {args[1]}"
        if op.fn in PREFIX and len(args) == 1:
            return f"{PREFIX[op.fn]}{args[0]}"
        if op.fn in WORDS:
            at = args[1] if len(args) > 1 else ""
            of_object = op.fn in (LOAD, STORE) and type(op.args[1]) is str and is_object(op.args[0])
            at = f".{op.args[1]}" if of_object else f"[{at}]"
            return WORDS[op.fn].format(*args, at=at)
        return f"{self.name(op.fn) if callable(op.fn) else op.fn}({', '.join(args)})"

    def since(self, block: Block) -> str:
        """In which run a block was met first, if not in the first one."""
        for run, _, last in self.growth:
            if block.number <= last:
                return f"  # from run {run} on" if run > 1 else ""
        return ""

    def blocks(self, block: Block, pad: str, node: Any) -> Iterator[str]:
        """A block, and what comes then; ``node`` is the loop or scope that it belongs to."""
        while True:
            for op in block.ops:
                yield from self.op(op, pad, node)
            if block.end is not None:
                yield from self.end(block.end, pad, node)
            if not block.cases:
                return
            if len(block.cases) == 1 and not decides(block):
                (block,) = block.cases.values()
                continue
            if block.subject == EXHAUSTED:
                behind = block.cases.get(True)
                if behind is not None and (behind.ops or behind.end is None or behind.end.outs):
                    yield f"{pad}when there is no more:{self.since(behind)}"
                    yield from self.blocks(behind, pad + INDENT, node)
                if (turn := block.cases.get(False)) is None:
                    return
                block = turn
                continue
            yield from self.ways(block, pad, node)
            return

    def ways(self, block: Block, pad: str, node: Any) -> Iterator[str]:
        """A decision: what each outcome leads to."""
        subject = self.name(block.subject)
        if not decides(block):
            for kinds, behind in block.cases.items():
                yield f"{pad}where it gave {state(kinds)}:{self.since(behind)}"
                yield from self.blocks(behind, pad + INDENT, node)
            return
        known = any(op is block.subject for op in block.ops[-1:])  # the line before says where
        site = "" if known else place(block.subject)
        for outcome in (True, False):
            line = f"if {subject}:{site}" if outcome else "else:"
            way = block.cases.get(outcome)
            if way is not None:
                yield f"{pad}{line}{self.since(way)}"
                yield from self.blocks(way, pad + INDENT, node)
            else:
                yield f"{pad}{line}  # {UNSEEN}"

    def op(self, op: Op, pad: str, node: Any) -> Iterator[str]:
        if isinstance(op, Loop):
            yield from self.loop(op, pad)
        elif isinstance(op, Scope):
            inner = pad
            if type(op.name) is CodeType:
                yield f"{pad}call {op.name.co_name}  # {Site.of_code(op.name)}"
                inner += INDENT
            yield from self.blocks(op.region.root, inner, op)
        elif isinstance(op, Invoke):
            given = [x for ops in op.results.values() for x in ops] or [op]
            call = self.heading(op.function.code.co_name, op.args)
            yield f"{pad}{', '.join(map(self.name, given))} = {call}"
        else:
            target = "" if op.fn in DONE else f"{self.name(op)} = "
            yield f"{pad}{target}{self.expression(op)}{place(op)}"
        for kind, way in op.exits.items():
            yield f"{pad}on {kind.__name__}:{self.since(way)}"
            yield from self.blocks(way, pad + INDENT, node)

    def loop(self, op: Loop, pad: str) -> Iterator[str]:
        over = f" over {self.name(op.args[-1])}" if op.counted else ""
        starts = op.starts
        for kinds, body in op.bodies.items():
            carried = [
                f"{self.name(p)} = {self.name(x)}" if starts else self.name(p)
                for p, x in zip(body.parameters, starts or body.parameters, strict=False)
            ]
            starts = ()  # of the first body alone
            carrying = f", carrying {', '.join(carried)}" if carried else ""
            also = f", of {state(kinds)}" if len(op.bodies) > 1 else ""
            yield f"{pad}loop{over}{carrying}{also}{self.since(body.root)}"
            yield from self.blocks(body.root, pad + INDENT, op)

    def end(self, end: End, pad: str, node: Any) -> Iterator[str]:
        outs = [*map(self.name, end.outs)]
        if end.kind == "next":
            ops = node.bodies[end.state].parameters
        elif isinstance(node, (Loop, Scope)):
            ops = node.results.get(end.state, ())
        else:
            ops = ()
        given = [f"{self.name(x)} = {y}" for x, y in zip(ops, outs, strict=False)] or outs
        if isinstance(node, Scope) and end.kind == "return":
            yield from (f"{pad}{x}" for x in given)
            return
        yield f"{pad}{end.kind}{' ' * bool(given)}{', '.join(given)}"


def decides(block: Block) -> bool:
    """Whether what comes next depends on whether something is true."""
    return all(type(outcome) is bool for outcome in block.cases) and block.subject != EXHAUSTED


def is_object(memory: Any) -> bool:
    """Whether a memory is an object with attributes."""
    ops = memory.ops if isinstance(memory, Reference) else [memory]
    return all(isinstance(x, Op) and not is_one_of(x.type, MEMORIES) for x in ops)


def place(op: Op) -> str:
    key = op.key[0] if type(op.key) is tuple and op.key else op.key
    return f"  # {key.site}" if type(key) is Instruction else ""


def state(x: Any) -> str:
    """What survives a pass, in words: types and values."""
    if type(x) is tuple:
        parts = [state(y) for y in x]
        return f"({', '.join(parts)})"
    if type(x) is Kind or isinstance(x, type):
        return str(x.__name__)
    return repr(x)
