"""Lines of a program: names, expressions, and the rows of the trail, whose layout is known when all is written.

Words
-----
trail   what the forward part keeps for the reverse part: of each pass through a region one row.
row     which end the pass came to, and the values that the reverse part asks for.
rows    of one region: its ends, what each keeps, and how that lies in a row.
code    lines with their depth; some are made up only when the program is put together.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from types import MethodDescriptorType
from typing import Any, Protocol

from ...tracer.fold.equivalents import alike, has_own
from ...tracer.fold.region import CONTENT, INPUT, Constant, Draw, Op, variable
from ...tracer.source import INFIX, PREFIX
from ...tracer.tape import Op as TapeOp
from ..programs import draw
from .activity import Activity, Aliases
from .arrays import text_of
from .snapshots import snapshot
from .ways import Node, Ways

INDENT = "    "
IN_PLACE: dict[Any, Any] = {  # on numbers, which are never changed
    getattr(operator, f"i{name}"): getattr(operator, name)
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "lshift",
        "rshift",
        "xor",
    )
}
BACK = "back"  # the function of an op whose value is a pullback
RELATIONS = {operator.is_: "is", operator.contains: "in"}
Late = Callable[[], str]  # a line that is known at the end; "" for none


class Text(Protocol):
    """Where names come from, and what the source calls constants and functions."""

    namespace: dict[str, Any]
    names: dict[TapeOp, str]
    unsized: set[TapeOp]

    def fresh(self, wanted: str) -> str: ...
    def argument(self, tree: Any) -> str: ...
    def index(self, tree: Any) -> str: ...
    def named(self, value: Any, hint: str) -> str: ...
    def constant(self, value: Any, hint: str) -> str: ...
    def callee(self, fn: Any) -> str: ...
    def function(self, fn: Any) -> str: ...
    def call(self, op: TapeOp) -> str: ...


class Code:
    """Lines, each with how deep it is indented; ``busy`` says whether any of them is not ``idle``.

    Idle lines only prepare others: without any of these they can be left out.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[int, str | Late | Code]] = []
        self.busy = False

    def add(self, line: str | Late, depth: int = 0, idle: bool = False) -> None:
        self.lines.append((depth, line))
        self.busy |= not idle

    def extend(self, other: Code, depth: int = 0) -> None:
        if other.lines:
            self.lines.append((depth, other))
            self.busy |= other.busy

    def text(self) -> list[tuple[int, str]]:
        """The lines as they stand in the program."""
        texts: list[tuple[int, str]] = []
        self.put(texts, 0)
        found = []
        for i, (depth, text) in enumerate(texts):
            empty = text[-1] == ":" and (i + 1 == len(texts) or texts[i + 1][0] <= depth)
            if empty and text == "else:":
                continue
            found.append((depth, text))
            if empty:
                found.append((depth + 1, "pass"))
        return found

    def put(self, into: list[tuple[int, str]], depth: int) -> None:
        """Add the lines that are not empty, behind so many levels."""
        for d, line in self.lines:
            if isinstance(line, Code):
                line.put(into, depth + d)
            elif text := line if isinstance(line, str) else line():
                into.append((depth + d, text))


class Rows:
    """The rows of one region, or of some of its ends.

    ``wanted`` says whether the reverse part reads them. A row is a tuple, or where it has one part that part.
    """

    def __init__(self, roots: Sequence[Node], choose: Callable[[Node], bool] = lambda _: True):
        self.roots = roots
        self.leaves = [x for root in roots for x in root.leaves() if choose(x)]
        self.number = {leaf: i for i, leaf in enumerate(self.leaves)}
        self.kept: dict[Node, dict[Op, None]] = {x: {} for y in self.leaves for x in y.path}
        self.wanted = False
        self.laid: dict[Node, list[Op]] = {}  # see `values`

    def values(self, leaf: Node) -> list[Op]:
        """The ops whose values are in the rows of an end; to be asked when all is written."""
        if leaf not in self.laid:
            kept = [op for node in leaf.path for op in self.kept[node]]
            self.laid[leaf] = [*dict.fromkeys(kept)]
        return self.laid[leaf]

    @property
    def numbered(self) -> bool:
        return len(self.leaves) > 1

    @cached_property
    def bare(self) -> bool:
        """Whether every row is one part, and no tuple; to be asked when all is written."""
        return all(len(self.values(x)) + self.numbered < 2 for x in self.leaves)

    @cached_property
    def empty(self) -> bool:
        """Whether there is nothing to be kept; to be asked when all is written."""
        return not self.numbered and not any(map(self.values, self.leaves))


class Writer:
    """Names and expressions, for the forward and the reverse part alike."""

    def __init__(
        self,
        text: Text,
        names: dict[Op, str],
        miss: str,
        aliases: Aliases,
        active: Activity,
        ways: Ways,
        real: set[type],
        called: set[Op],
    ) -> None:
        self.text = text
        self.real = real  # the types of memories that may be from outside
        self.called = called  # calls of functions of arrays
        self.miss = miss
        self.aliases = aliases
        self.resolve = aliases.resolve
        self.active = active
        self.ways = ways
        self.names = dict(names)
        self.cotangents: dict[Op, str] = {}
        self.shadows: dict[Op, str] = {}
        self.kinds: dict[Op, str] = {}
        self.backs: dict[Op, Op] = {}
        self.snapshots: set[Op] = set()  # contents of arrays that the reverse part asks for
        # The variables of products and quotients (see ``plain``).
        self.arithmetic: dict[Any, str] = {}
        self.opaque = False  # whether the reverse part may make a number of NaN
        self.count = 0
        self.users: set[str] = set()  # names of the user's variables that are in use

    def fresh(self, letter: str) -> str:
        self.count += 1
        return self.text.fresh(f"{letter}{self.count}")

    def own(self, wanted: str) -> str:
        """A name that tells the user's variable."""
        if wanted in self.users:
            self.count += 1
            return self.text.fresh(f"{wanted}_{self.count}")
        self.users.add(wanted)
        return self.text.fresh(wanted)

    def name(self, x: Any) -> str:
        """The source text of an operand's value."""
        x = self.resolve(x)
        found = self.names.get(x)
        if found is not None:
            return found
        if isinstance(x, Op):
            wanted = variable(x)
            found = self.names[x] = self.own(wanted) if wanted else self.fresh("t")
            return found
        if isinstance(x, Constant):
            return self.text.named(x.value, getattr(x.value, "__name__", "c"))
        return self.constant(x)

    def constant(self, value: Any) -> str:
        if type(value) is tuple:
            inner = "".join(f"{self.constant(x)}, " for x in value)
            return f"({inner.rstrip() if len(value) == 1 else inner.rstrip(', ')})"
        text = self.text.constant(value, "c")
        return f"({text})" if text.startswith("-") else text

    def cotangent(self, x: Op) -> str:
        """The variable of an op's cotangent."""
        if x not in self.cotangents:
            wanted = self.names.get(x) if x.fn == INPUT else variable(x)
            self.cotangents[x] = self.own(f"d{wanted}") if wanted else self.fresh("d")
        return self.cotangents[x]

    def back(self, call: Op) -> Op:
        """The op that stands for the pullback of a call, a residual at home where the call is."""
        if call not in self.backs:
            back = self.backs[call] = Op(None, BACK, (), object, call.home)
            self.ways.home[back] = self.ways.home[call]
            self.names[back] = self.fresh("b")
        return self.backs[call]

    def careful(self, fn: Any) -> str:
        """The variable of a function in which zero wins, or of the plain one in its place."""
        if fn not in self.arithmetic:
            self.arithmetic[fn] = self.text.fresh(fn.__name__)
        return self.arithmetic[fn]

    def name_of_class(self, kind: type) -> str:
        return self.text.function(kind)

    def kind(self, op: Op) -> str:
        """The variable that says in which state a loop, scope or invocation was left."""
        if op not in self.kinds:
            self.kinds[op] = self.fresh("k")
        return self.kinds[op]

    def expression(self, fn: Any, args: Sequence[str]) -> str:
        """A call of a function, as an operator where there is one."""
        fn = IN_PLACE.get(fn, fn)
        if fn in RELATIONS and len(args) == 2:
            left, right = args if fn is operator.is_ else args[::-1]
            return f"{left} {RELATIONS[fn]} {right}"
        if fn is alike:
            return f"{args[0]} is {args[1]} or {args[0]} == {args[1]}"
        if fn in INFIX and len(args) == 2:
            return f"{args[0]} {INFIX[fn]} {args[1]}"
        if fn in PREFIX and len(args) == 1:
            return f"{PREFIX[fn]}{args[0]}"
        return f"{self.text.callee(fn)}({', '.join(args)})"

    def call(self, op: Op, fn: Any = None) -> str:
        """A call with the operands of an op: of its function, or of one in its place."""
        names = [self.operand(x, fn is not None) for x in op.args]
        if op.fn is alike and any(
            not isinstance(x, Op) and x == x for x in map(self.resolve, op.args)
        ):
            fn = operator.eq  # which is the same beside what is no NaN
        if op.fn is has_own and self.resolve(op.args[0]).type not in self.real:
            fn = operator.contains
        if op not in self.called:
            return self.expression(fn or op.fn, names)
        if isinstance(op, Draw):
            return text_of(op, op.fn, names, self.drawing, self.constant)
        return text_of(op, fn or op.fn, names, self.expression, self.constant)

    def drawing(self, fn: Any, args: Sequence[str]) -> str:
        """A draw: what is called there is noted, and the flat tape must know it again."""
        name = self.text.named(draw, "draw")
        if type(fn) is MethodDescriptorType:  # of a generator of Python's
            return f"{name}(drawn, {', '.join([f'{args[0]}.{fn.__name__}', *args[1:]])})"
        return f"{name}(drawn, {', '.join([self.text.function(fn), *args])})"

    def operand(self, x: Any, kept: bool) -> str:
        """An operand of a call; ``kept`` says that it may be held for the reverse part."""
        x = self.resolve(x)
        if not isinstance(x, Op) or x.fn != CONTENT:
            return self.name(x)
        text = self.name(x.args[0])
        return f"{self.text.named(snapshot, 'snapshot')}({text})" if kept else text

    # ------------------------------------------------------------------------------------------------ rows

    def row(self, rows: Rows, leaf: Node) -> str:
        """The row of an end."""
        parts = [str(rows.number[leaf])] if rows.numbered else []
        parts += map(self.name, rows.values(leaf))
        if not parts:
            return "None"
        return parts[0] if rows.bare else f"({joined(parts)})"

    def target(self, rows: Rows, row: str) -> str:
        """What a row is assigned to: where there is one end only, the variables themselves."""
        if rows.numbered or rows.empty:
            return row
        names = [*map(self.name, rows.values(rows.leaves[0]))]
        return names[0] if rows.bare else joined(names)

    def unpacked(self, rows: Rows, leaf: Node, row: str, number: str) -> str:
        """The line that gives the variables of an end their values out of a row."""
        values = rows.values(leaf)
        return (
            f"{joined([number, *map(self.name, values)])} = {row}"
            if rows.numbered and values
            else ""
        )


def joined(parts: Iterable[str]) -> str:
    """The text of a tuple without its parentheses."""
    parts = [*parts]
    return f"{parts[0]}," if len(parts) == 1 else ", ".join(parts)
