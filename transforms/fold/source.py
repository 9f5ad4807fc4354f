"""From a region to the body of one function: each way forward with a trail, and at its end the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...tracer.fold.region import FLOATS, End, Folded, Kind, Op, Written, is_memory
from ..silence import QUIET
from .activity import Activity, Aliases
from .arrays import is_call, is_of_floats
from .forward import Forward
from .frames import MAYBE
from .held import Held
from .nesting import nested
from .origins import Origins
from .plain import PLAIN, finite
from .reverse import Reverse
from .ways import Node, Unemittable, Ways
from .writer import INDENT, Code, Text, Writer, joined

# Statements in the reverse part, and behind it.
Answer = Callable[
    [End, Callable[[Any], str], Callable[[Op], str], str], tuple[list[str], list[str]]
]
# The states of results that have a gradient.
NUMBERS = tuple([(kind,) for kind in (float, *FLOATS)])
BLOCKS = 17  # loops and tries inside one another; Python takes twenty
LEVELS = 95  # of indentation; Python takes a hundred


class Emission:
    """Writes all the ways of a function that were seen, for values and gradients.

    ``wrt`` are the inputs that gradients are asked for, ``text`` gives names and holds the namespace, ``names`` has
    the variables of the inputs, and ``miss`` is the statement that leaves the program where a run goes another way.
    """

    def __init__(
        self, folded: Folded, wrt: Sequence[Op], text: Text, names: dict[Op, str], miss: str
    ) -> None:
        self.folded = folded
        self.wrt = [*wrt]
        called = {op for op in folded.ops() if is_call(op)}
        self.calls = bool(called)
        aliases = Aliases(folded)
        active = Activity(folded, wrt, aliases, called)
        origins = Origins(folded, aliases)
        held = Held(folded, aliases, origins.real, origins.made)
        self.writer = Writer(text, names, miss, aliases, active, Ways(), origins.real, called)
        self.forward = Forward(self.writer, held)
        self.reverse = Reverse(self.writer, self.forward)
        # Where they stand, they, and the gradients.
        self.sweeps: list[tuple[Code, Code, list[str]]] = []
        self.deferred = False  # whether a reverse part is a function

    def is_own(self, x: Op) -> bool:
        """Whether the cotangent of an input is an array that nobody else holds; to be asked at the end of a way."""
        return self.reverse.cotangents.is_own(x)

    def lines(self, answer: Answer, pad: str) -> list[str]:
        """The statements, indented by ``pad``.

        ``answer(end, value, cotangent, back)`` gives those that stand at the end of a way: ``value(x)`` is the source
        text of an operand's value, ``cotangent(input)`` that of an input's cotangent, 0.0 where none flows (of an
        array None); for a list it is the dict that has shadows by identity, or None. Where several numbers are
        differentiated, the reverse part is the function ``back`` of their cotangents. Raises `Unemittable` if there is
        no such program.
        """
        forward, writer = self.forward, self.writer
        body, functions = Code(), Code()
        forward.code = body

        def leaf(node: Node, depth: int) -> None:
            assert node.end is not None
            if node.end.kind != "return":
                body.add(writer.miss, depth)
                return
            self.ending(node, depth, answer)

        forward.tree(writer.ways.region(self.folded.region), 0, leaf)
        forward.code = functions
        invoked = forward.invoked
        for function in invoked:  # which grows
            forward.define(function)
        written: set[Any] = set()
        while todo := [f for f in invoked if forward.rows[f].wanted and f not in written]:
            for function in todo:
                written.add(function)
                functions.extend(self.reverse.define(function))
        forward.settle()
        for block, frame, gradients in self.sweeps:
            self.swept(block, frame, gradients)
        start = Code()
        for name in self.shared() if self.deferred else ():
            start.add(f"{name} = None")
        if self.reverse.memories.shadows:
            start.add(f"{self.reverse.memories.shadows} = {{}}")
        for part in (functions, body):
            start.extend(part)
        found = nested(start.text())
        must_fit(found, len(pad) // len(INDENT))
        return [f"{pad}{INDENT * depth}{text}" for depth, text in found]

    def ending(self, node: Node, depth: int, answer: Answer) -> None:
        """The way back from one end, and the answer."""
        end, code, writer = node.end, self.forward.code, self.writer
        assert end is not None
        seeds, back = None, ""
        if self.wrt and end.state[:1] not in NUMBERS:
            outs = end.outs[: count(end.state[0])]
            seeds = [(x, writer.fresh("seed")) for x in outs]
            back = writer.fresh("back")
        frame = self.reverse.sweep(node, seeds)
        if self.calls:
            code.add(f"{QUIET} = True", depth)
        block = Code()
        if seeds is None:
            code.lines.append((depth, block))
        else:
            self.deferred = True
            code.add(f"def {back}({', '.join([name for _, name in seeds])}):", depth)
            code.add(self.nonlocals, depth + 1)
            code.lines.append((depth + 1, block))

        def cotangent(x: Op) -> str:
            if is_memory(x.type):
                return self.reverse.memories.by_identity() if writer.active(x) else "None"
            state = frame.get(x) if writer.active(x) else None
            array = type(x.type) is Kind
            if state is None:
                return "None" if array else "0.0"
            name = self.reverse.cotangents.name(frame, x)
            if array:
                return name
            return f"0.0 if {name} is None else {name}" if state == MAYBE else name

        self.sweeps.append((block, frame.code, [*map(cotangent, self.wrt)]))
        inside, behind = answer(end, writer.name, cotangent, back)
        for line in inside:
            code.add(line, depth + (seeds is not None))
        for line in behind:
            code.add(line, depth)

    def shared(self) -> list[str]:
        """The variables that the reverse part shares with functions beside it; to be asked when all is written."""
        found = [*self.writer.arithmetic.values()]
        return [*found, self.reverse.memories.shadows] if self.reverse.memories.shadows else found

    def nonlocals(self) -> str:
        """What stands first in a reverse part that is a function."""
        names = self.shared()
        shadows = self.reverse.memories.shadows
        text = f"nonlocal {', '.join(names)}" if names else ""
        return f"{text}; {shadows} = {{}}" if shadows else text

    def swept(self, block: Code, reverse: Code, gradients: list[str]) -> None:
        """A reverse part, by plain arithmetic first (see ``plain``); to be called when all is written."""
        writer, memories = self.writer, self.reverse.memories
        if not writer.arithmetic:
            block.extend(reverse)
            return
        seen = not writer.opaque and not any(is_memory(x.type) for x in self.wrt)
        runs = [tuple(writer.arithmetic)]
        if seen:
            runs.insert(0, tuple([PLAIN[fn] for fn in writer.arithmetic]))
        names = joined(writer.arithmetic.values())
        block.add(f"for {names} in {writer.text.named(tuple(runs), 'arithmetic')}:")
        if memories.shadows:
            block.add(f"{memories.shadows} = {{}}", 1)
        block.extend(reverse, 1)
        if seen:
            given = [x for x in gradients if x not in ("None", "0.0")]
            block.add(f"if {writer.text.named(finite, 'finite')}({', '.join(given)}): break", 1)


def count(state: Any) -> int:
    """How many operands a result has, by its state (see `Recorder.flat`)."""
    if type(state) is tuple and state[0] == "tuple":
        return sum(map(count, state[1:]))
    if state is list or type(state) is Written or is_of_floats(state):
        return 1
    raise Unemittable("a result that is no float")


def must_fit(lines: list[tuple[int, str]], levels: int) -> None:
    """Refuse what Python does not compile, behind so many levels: too many blocks or levels inside one another."""
    open_at: list[int] = []
    for depth, text in lines:
        while open_at and open_at[-1] >= depth:
            open_at.pop()
        if text.startswith(("for ", "while ", "try:", "except ")):
            open_at.append(depth)
        if len(open_at) > BLOCKS or depth + levels > LEVELS:
            raise Unemittable("too many loops or decisions inside one another")
