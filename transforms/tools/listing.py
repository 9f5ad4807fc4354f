"""How a tape reads: loops as one body, branches with the ways that were taken, the user's own names.

Words
-----
name      of a line that gives a value: the user's variable, if it is stored there at once; else its number, ``%7``.
          Where several lines store the same variable, all but the first have their number too: ``x.7``.
number    of a line among those that give a value, from the top; what loops carry is counted as well.
varying   an operand that is another one in each pass, such as a counter: ``{0, 1, …, 999}``.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...tracer.kinds import isinstance
from ...tracer.tape import (
    Guard,
    Input,
    Op,
    Site,
    Tape,
    Target,
    element,
    fn_name,
    format_flat,
    ops_in,
    show,
    variable,
)
from ..loops import LoopFunction
from ..patterns import alike, leaves_in, refilled
from ..programs import decision_at
from .folding import Block, Branch, Call, Item, Line, Loop, folded
from .forms import PairOf, back
from .references import Carried, Reference, References, Slot, blocks_of, pass_in, pass_within
from .signature import text_of

READABLE = 60  # lines: calls are folded in what is longer
MOST_SHOWN = 4  # of what varies
MOST_WAYS = 8  # of a branch
LONGEST = 8  # of a list


class Text:
    """What stands in the place of an operand while a line is written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class Inside(dict[Op, str]):
    """Names of ops in what is no argument that can be taken apart: in a dataclass that is returned."""

    def __init__(self, listing: Listing) -> None:
        super().__init__()
        self.listing = listing

    def __missing__(self, op: Op) -> str:
        listing = self.listing
        return listing.refer(listing.references.reference(op, listing.block, 0))


class Listing:
    """A folded tape with names for its lines, to be written as text; maybe with something ``beside`` each."""

    def __init__(
        self, tape: Tape, block: Block, beside: Callable[[list[Op]], str] | None = None
    ) -> None:
        self.tape = tape
        self.block = block
        self.beside = beside
        self.depth: int | None = None
        self.references = References(block, tape.result)
        self.results = [Slot(block, [x]) for x in operands_of(tape.result)]
        self.names: dict[Any, str] = {}
        self.taken: set[str] = set()
        self.parts: dict[Line, list[Line | None]] = {}  # of what gives several things
        self.hidden: set[Line] = set()  # these, which stand in its line
        self.takers = Counter(op.args[0] for op in tape.ops if op.fn is element)
        self.count = 0
        self.lines: list[str] = []
        # Objects among the arguments that ops are done to or with: as the user's program calls them.
        used = ((p.name, *x) for p in tape.parameters or () for x in p.used)
        self.objects = {id(value): text_of(name, path) for name, path, value in used}
        self.shown: dict[int, Op] = {}  # by the number of a line: the operation that it shows
        self.name_all(block)

    # ----------------------------------------------------------------------------------------------- names

    def name_all(self, block: Block) -> None:
        """Name what gives a value, from the top."""
        for i, item in enumerate(block.items):
            if isinstance(item, Line):
                op = item.ops[0]
                if getattr(op.fn, "unpacked", False) and self.unpack(item, block.items[i + 1 :]):
                    continue
                if op.kind in ("input", "call") and item not in self.hidden:
                    self.name(item, self.tape_name(item) or variable_of(item, i))
            elif isinstance(item, Branch):
                for way in item.ways:
                    self.name_all(way)
            elif isinstance(item, (Loop, Call)):
                for carried in self.carried_by(item):
                    self.name(carried, self.carried_name(carried))
                self.name_all(item.body)

    def tape_name(self, line: Line) -> str | None:
        """What the tape itself calls a line that no variable holds."""
        known = {} if self.tape.outline is None else self.tape.outline.names
        names = {known[op] for op in line.ops if op in known}
        return names.pop() if len(names) == 1 else None

    def carried_name(self, carried: Carried) -> str | None:
        """The variable that a loop carries, if all that gives its value is called that."""
        if carried.sometimes is not None:  # what it is then is another variable's value
            return None
        names: set[str | None] = set()
        told: set[str | None] = set()  # by the tape itself: of the sums of what has no name
        for source in carried.sources:
            if source.kind == "begun":
                names.add(None)
            elif source.kind == "carried":
                names.add(self.carried_name(source.of))
            else:
                line: Line = source.of
                own = self.tape_name(line)
                told |= {own} - {None}
                names.add(own or variable_of(line, line.block.items.index(line)))
        names = told if names - {None} == told else names
        return names.pop() if len(names) == 1 else None

    def unpack(self, line: Line, following: list[Item]) -> bool:
        """Name the several things that a line gives, which have no lines of their own, if all of them follow it."""
        parts: list[Line | None] = []
        count = 0
        for item in following:
            if not isinstance(item, Line) or item.ops[0].fn is not element:
                break
            if item.ops[0].args[0] is line.ops[0]:
                index = item.ops[0].args[1]
                parts += [None] * (index + 1 - len(parts))
                parts[index] = item
                count += len(item.ops)
        if count != sum(self.takers[op] for op in line.ops):
            return False
        self.hidden.update(x for x in parts if x is not None)
        self.parts[line] = parts
        for i, part in enumerate(parts):
            if part is not None and isinstance(line.ops[0].fn, PairOf) and i == 1:
                self.names[part] = f"back{self.count}"
            elif part is not None:
                self.name(part, self.tape_name(part))
        return True

    def carried_by(self, item: Item) -> list[Carried]:
        return self.references.carried.get(item, []) if isinstance(item, Loop) else []

    def name(self, what: Any, wanted: str | None) -> None:
        self.count += 1
        name = f"%{self.count}"
        if wanted is not None:
            name = wanted if wanted not in self.taken else f"{wanted}.{self.count}"
            self.taken.add(wanted)
        self.names[what] = name

    # ------------------------------------------------------------------------------------------- operands

    def refer(self, reference: Reference) -> str:
        """How a reference reads."""
        if reference.kind == "constant":
            known = self.objects.get(id(reference.of))
            return show(reference.of, Inside(self)) if known is None else known
        if reference.kind == "gone":
            return "<gone>"
        index = ", ".join("last" if x is None else str(x) for x in reference.passes)
        return self.names[reference.of] + (f"[{index}]" if index else "")

    def operand(self, slot: Slot) -> str:
        """How a slot reads, which may be another thing in each pass."""
        if slot.carried is not None and not slot.own:
            return self.names[slot.carried]
        found = self.references.referred(slot)
        first = found[0]
        if first.kind == "constant" and all(x.kind == "constant" for x in found):
            if all(alike(x.of, first.of) or x.of is first.of for x in found):
                return self.refer(first)
        elif all(x.key == first.key for x in found) and not first.past:
            return self.refer(first)
        series = self.series(slot)
        if series is not None:
            return series
        texts = by_run(slot.block, list(map(self.refer, found)))
        longest = max(texts, key=len)
        if all(x == longest[: len(x)] for x in texts):  # in each run of a loop from the beginning
            texts = [longest]
        return self.varying([x for run in texts for x in run])

    def series(self, slot: Slot) -> str | None:
        """What other passes of a loop gave, one after the other or backwards: ``%5[999…0]``."""
        found = self.references.series(slot.values) if len(slot.values) > MOST_SHOWN else None
        if found is None:
            return None
        of, passes = found
        block = of.block if isinstance(of, Line) else of.loop.body
        inside = block.inside
        if not isinstance(inside, Loop) or len(inside.counts) != 1 or inside.block.passes != 1:
            return None
        step = passes[1] - passes[0]
        if abs(step) != 1 or any(b - a != step for a, b in itertools.pairwise(passes)):
            return None
        return f"{self.names[of]}[{passes[0]}…{passes[-1]}]"

    def varying(self, texts: list[str]) -> str:
        """What is not the same in all passes."""
        different = list(dict.fromkeys(texts))
        if len(different) == 1:
            return different[0]
        changes = sum(a != b for a, b in itertools.pairwise(texts))
        if changes == 1:
            return f"({different[0]}, then {different[1]})"
        if len(different) * 2 <= len(texts) and len(different) <= MOST_SHOWN:
            return "(" + " or ".join(different) + ")"
        return "{" + ", ".join(shortened(texts)) + "}"

    def nested(self, tree: Any, slots: Sequence[Slot]) -> Any:
        """An argument with the texts of its operands."""
        return short(refilled(tree, iter([Text(self.operand(x)) for x in slots])))

    # ---------------------------------------------------------------------------------------------- lines

    def write(self, block: Block, pad: str, level: int, start: int = 0) -> None:
        """The lines of a block from an item on, at a depth of calls."""
        items = block.items
        i = start
        while i < len(items):
            item = items[i]
            if isinstance(item, Line) and item in self.hidden:
                pass
            elif isinstance(item, Line):
                group = inputs_from(items, i)
                if len(group) > MOST_SHOWN:
                    self.lines.append(pad + self.inputs(group))
                    i += len(group)
                    continue
                self.shown[len(self.lines)] = item.ops[0]
                self.lines.append(pad + self.line(item))
                if isinstance(item.ops[0].fn, LoopFunction):
                    source = item.ops[0].fn.source().splitlines()
                    self.lines += [f"{pad}  | {text}" for text in source]
            elif isinstance(item, Call):
                self.call(item, pad, level)
            elif isinstance(item, Loop):
                self.loop(item, pad, level)
            elif isinstance(item, Branch):
                self.branch(item, pad, level)
            self.next(block, pad, item)
            i += 1
        self.next(block, pad)

    def line(self, line: Line) -> str:
        """One line, for all of its passes."""
        op = line.ops[0]
        slots = self.references.slots[line]
        if isinstance(op, Input):
            role = "input" if op.role == "argument" else "outside"
            own = "" if self.names[line] == op.name else f" {op.name}"
            return f"{self.names[line]} = {role}{own} :: {op.type}{self.seen(line)}"
        if op.kind == "guard":
            values = by_run(line.block, [repr(x.value) for x in line.ops])
            return f"guard {self.operand(slots[0])} == {outcome(values)}{self.known(op, line)}{place_of(op.site)}"
        count = len(operands_of(op.args))
        args = self.nested(op.args, slots[:count])
        kwargs = self.nested(op.kwargs, slots[count:]) if op.kwargs else {}
        given = [show(x, {}) for x in args] + [f"{key}={show(x, {})}" for key, x in kwargs.items()]
        call = f"{fn_name(op.fn)}({', '.join(given)})"
        if op.fn is back:  # the pullback has a name
            call = f"{given[0]}({', '.join(given[1:])})"
        if line in self.parts:
            parts = self.parts[line]
            left = ", ".join("_" if x is None else self.names[x] for x in parts)
            left += "," if len(parts) == 1 else ""
            kinds = [x.ops[0].type for x in parts if x is not None and not callable(x.ops[0].value)]
            return f"{left} = {call} :: {', '.join(kinds)}{place_of(op.site)}"
        if op.kind == "effect":
            return f"effect {call}{place_of(op.site)}"
        return f"{self.names[line]} = {call} :: {op.type}{self.seen(line)}{place_of(op.site)}"

    def known(self, op: Op, line: Line) -> str:
        """The other ways that kept programs know of a decision, beside those that are listed."""
        listed = {repr(x.value) for x in line.ops}
        if isinstance(line.block.inside, Branch) and line.block.items[0] is line:
            heads = [way.items[0] for way in line.block.inside.ways if way.items]
            listed |= {repr(x.value) for head in heads if isinstance(head, Line) for x in head.ops}
        others = {*self.tape.ways.get(decision_at(op.site), ())} - listed
        return f" (kept programs know {' and '.join(sorted(others))})" if others else ""

    def inputs(self, lines: list[Line]) -> str:
        """Inputs that differ in their number alone."""
        names = [self.names[x] for x in lines]
        op = lines[0].ops[0]
        role = "input" if getattr(op, "role", "") == "argument" else "outside"
        return f"{', '.join(shortened(names))} = {role} :: {len(lines):,} × {op.type}"

    def seen(self, line: Line) -> str:
        """What is told beside a line."""
        return "" if self.beside is None else self.beside(line.ops)

    def loop(self, loop: Loop, pad: str, level: int) -> None:
        """A loop: how often, what it begins with, its body."""
        carried = self.carried_by(loop)
        begins = [
            self.names[x] + ("" if x.first is None else f" = {self.operand(x.first)}")
            for x in carried
        ]
        head = f"loop {times(loop.counts)}"
        if begins:
            head += f", carrying {', '.join(begins)}"
        self.lines.append(f"{pad}{head}{place_of(loop.site)}")
        self.write(loop.body, pad + "  ", level)

    def next(self, block: Block, pad: str, item: Item | None = None) -> None:
        """What a pass of a loop hands on to the next one that is known at the end of a block.

        Where the same value has several sources, of which the latest counts, each is told behind its ``item``.
        """
        inside: Any = block.inside
        around: Block | None = block
        while around is not None and not isinstance(inside, Loop):
            around = None if inside is None else inside.block
            inside = None if around is None else around.inside
        if not isinstance(inside, Loop):
            return
        handed = []
        decided: dict[str, list[str]] = {}  # on one outcome of a decision
        for carried in self.carried_by(inside):
            if carried.sometimes is not None:
                if item is None:
                    self.sometimes(carried, block, decided)
                continue
            for source in carried.sources:
                home, within = home_of(source, inside)
                behind = within if len(carried.sources) > 1 else None
                if home is block and behind is item:
                    handed.append(f"{self.names[carried]} = {self.refer(source)}")
        handed += [f"{', '.join(found)}{where}" for where, found in decided.items()]
        if handed:
            self.lines.append(f"{pad}next {', '.join(handed)}")

    def sometimes(self, carried: Carried, block: Block, decided: dict[str, list[str]]) -> None:
        """What is handed on at the end of a block on one outcome of a decision."""
        assert carried.sometimes is not None
        item, outcome = carried.sometimes
        text = f"{self.names[carried]} = {self.refer(carried.sources[0])}"
        if isinstance(item, Branch):
            if item.ways[outcome] is block:
                decided.setdefault("", []).append(text)
        elif carried.loop.body is block:
            on = self.operand(self.references.slots[item][0])
            decided.setdefault(f" where {on} == {outcome}", []).append(text)

    def branch(self, branch: Branch, pad: str, level: int) -> None:
        """The ways of a branch (the commonest, if there are many), and how often each was taken."""
        total = len(branch.taken)
        taken = Counter(branch.taken)
        ways = {i for i, _ in taken.most_common(MOST_WAYS)}
        for i, way in enumerate(branch.ways):
            if i not in ways:
                continue
            often = how_often(branch, i)
            head = way.items[0] if way.items else None
            if isinstance(head, Line) and isinstance(head.ops[0], Guard):
                text, place = self.line(head), place_of(head.ops[0].site)
                self.lines.append(f"{pad}{text.removesuffix(place)}, {often}{place}")
                self.write(way, pad + "  ", level, 1)
            elif way.items and len(branch.ways) == 2 and not branch.ways[1 - i].items:
                self.lines.append(f"{pad}{often}")  # and else nothing
                self.write(way, pad + "  ", level)
            elif way.items or len(branch.ways) > 2:
                what = "" if way.items else "nothing, "
                self.lines.append(f"{pad}way {i + 1} of {len(branch.ways)}: {what}{often}")
                self.write(way, pad + "  ", level)
        others = [i for i in taken if i not in ways]
        if others:
            often = f"{sum(taken[i] for i in others):,} of {counted(total, 'time')}"
            self.lines.append(f"{pad}… and {counted(len(others), 'other way')}, {often}")

    def call(self, call: Call, pad: str, level: int) -> None:
        """A call of a function: its lines, or what it takes and gives in one."""
        if level == 0 and not call.site.filename:  # the traced function itself
            self.write(call.body, pad, 1)
            return
        if self.depth is None:
            self.write(call.body, pad, level + 1)
        elif level <= self.depth:
            self.lines.append(f"{pad}in {call.name}{place_of(call.site)}")
            self.write(call.body, pad + "  ", level + 1)
        else:
            self.lines.append(pad + self.folded(call))

    def folded(self, call: Call) -> str:
        """A call in one line."""
        inner = list(call.body.lines())
        slots = [x for x in self.references.slots_in(call.body) if self.is_given(x, call.body)]
        given = list(dict.fromkeys(map(self.operand, slots)))
        used = list(dict.fromkeys(x for line in inner for x in self.used_outside(line, call)))
        left = ", ".join(shortened(used)) + " = " if used else ""
        does = counted(per_pass(inner, "call", call.body.passes), "operation")
        effects = per_pass(inner, "effect", call.body.passes)
        does += f", {counted(effects, 'effect')}" if effects else ""
        return f"{left}{call.name}({', '.join(shortened(given))}), {does}{place_of(call.site)}"

    def is_given(self, slot: Slot, body: Block) -> bool:
        """Whether a slot in a call is something that comes from outside of it."""
        found = self.references.referred(slot)
        if any(x.kind == "line" and is_within(x.of.block, body) for x in found):
            return False
        if any(x.kind == "carried" and is_within(x.of.loop.block, body) for x in found):
            return False
        return any(x.kind != "constant" for x in found)

    def used_outside(self, line: Line, call: Call) -> Iterator[str]:
        """What a line gives that is used outside of the call that it is in, as it is called there."""
        where = self.references.where
        for p, op in enumerate(line.ops):
            here = pass_in(line.block, p, call.body)
            users = [where[x] for x in self.users[op]]
            if op in self.returned or any(
                pass_within(x.block, q, call.body) != here for x, q in users
            ):
                yield self.refer(self.references.reference(op, call.block, here))

    @functools.cached_property
    def returned(self) -> set[Op]:
        return set(ops_in(self.tape.result))

    @functools.cached_property
    def users(self) -> dict[Op, list[Op]]:
        """By op, those that take it."""
        found: dict[Op, list[Op]] = defaultdict(list)
        for op in self.tape.ops:
            for x in op.operands():
                found[x].append(op)
        return found

    def text(self, depth: int | None) -> str:
        """The whole tape, with calls deeper than ``depth`` as one line each."""
        self.depth, self.lines, self.shown, tape = depth, [], {}, self.tape
        self.lines.append(f"tape of {tape.name}{place_of(tape.site)}")
        self.write(self.block, "  ", 0)
        self.lines.append("  return " + show(self.nested(tape.result, self.results), {}))
        return "\n".join(self.lines)


def operands_of(tree: Any) -> list[Any]:
    """The leaves of a nested argument."""
    found: list[Any] = []
    leaves_in(tree, found)
    return found


def is_within(block: Block, outer: Block) -> bool:
    """Whether a block is another one, or inside of it."""
    at: Block | None = block
    while at is not None and at is not outer:
        at = None if at.inside is None else at.inside.block
    return at is outer


def home_of(source: Reference, loop: Loop) -> tuple[Block, Item]:
    """The block, among those of one pass of a loop, at whose end a source is known, and its item that gives it."""
    if source.kind == "begun":
        return loop.body, loop
    item: Item = source.of.loop if source.kind == "carried" else source.of
    home = block = item.block
    while block is not loop.body:
        inside = block.inside
        assert inside is not None
        block = inside.block
        if isinstance(inside, (Loop, Call)):
            home, item = block, inside
    return home, item


def variable_of(line: Line, i: int) -> str | None:
    """The user's variable in which the value of a line is stored at once, if that is known for certain."""
    op = line.ops[0]
    site, name = op.site, variable(op)
    if name is None or isinstance(op, Input) or any(x.site is not site for x in line.ops):
        return name if isinstance(op, Input) else None
    if isinstance(site, Target) and site.fn is not None:
        return name
    if isinstance(line.block.inside, Loop) and not line.block.inside.known:
        return None
    items = line.block.items
    beside = [x for x in items[max(i - 1, 0) : i + 2] if isinstance(x, Line) and x is not line]
    if any(x.ops[0].site is site and x.ops[0].kind == "call" for x in beside):
        return None  # the call comes to several lines
    return name


def inputs_from(items: list[Item], start: int) -> list[Line]:
    """The inputs from there on that are one line: whose names differ in numbers alone, or very many of an argument."""
    inputs = list(itertools.takewhile(is_input, items[start:]))
    alike = same_from(inputs, lambda name: re.sub(r"\d+", "0", name))
    whole = same_from(inputs, lambda name: re.split(r"[\[.]", name)[0])
    return whole if len(whole) >= READABLE // 2 else alike


def is_input(item: Item) -> bool:
    return isinstance(item, Line) and isinstance(item.ops[0], Input)


def same_from(inputs: list[Any], shape: Callable[[str], str]) -> list[Line]:
    """The first ones, as far as they are alike."""
    if not inputs or shape(inputs[0].ops[0].name) == inputs[0].ops[0].name:
        return []
    kinds = [(shape(x.ops[0].name), x.ops[0].role, x.ops[0].type) for x in inputs]
    return [
        x
        for x, _ in itertools.takewhile(lambda x: x[1] == kinds[0], zip(inputs, kinds, strict=True))
    ]


def shortened(texts: list[str]) -> list[str]:
    """The first ones, and the last one."""
    if len(texts) <= MOST_SHOWN:
        return texts
    return [*texts[:2], "…", texts[-1]]


def how_often(branch: Branch, way: int) -> str:
    """In words, when or how often a way is taken."""
    orders = {tuple(x) for x in by_run(branch.block, branch.taken)}
    count = branch.taken.count(way)
    return when(orders, way) or f"{count:,} of {counted(len(branch.taken), 'time')}"


def when(orders: set[tuple[int, ...]], way: int) -> str | None:
    """In words, when a way is taken in each run of a loop, if that is so in the first or the last pass alone."""
    if all(len(x) > 1 and way not in x[1:] for x in orders):
        return "in the first pass"
    if all(len(x) > 1 and way not in x[:-1] for x in orders):
        return "in the last pass"
    if all(len(set(x[1:])) == 1 and x[0] != x[1] == way for x in orders if len(x) > 1):
        return "in later passes"
    if all(len(set(x[:-1])) == 1 and x[-1] != x[0] == way for x in orders if len(x) > 1):
        return "in earlier passes"
    return None


def by_run(block: Block, texts: list[Any]) -> list[list[Any]]:
    """What there is for each pass of a block, by the runs of the loop that it is in."""
    found: dict[Any, list[Any]] = {}
    for p, text in enumerate(texts):
        inside, at, q = block.inside, block, p
        while inside is not None and not isinstance(inside, Loop):
            q, at = at.outer(q), inside.block
            inside = at.inside
        found.setdefault(inside.outer[q] if isinstance(inside, Loop) else None, []).append(text)
    return list(found.values())


def short(tree: Any) -> Any:
    """A nested argument with the first and the last ones of what has many elements."""
    if type(tree) in (list, tuple):
        tree = type(tree)([short(x) for x in tree])
        if len(tree) > LONGEST:
            tree = type(tree)([*tree[:2], Text("…"), tree[-1]])
    if type(tree) is dict:
        return {key: short(x) for key, x in tree.items()}
    return tree


def outcome(runs: list[list[str]]) -> str:
    """How a decision came out, in each pass of each run of a loop."""
    values = [x for run in runs for x in run]
    if len(set(values)) == 1:
        return values[0]
    before, last = {x for run in runs for x in run[:-1]}, {run[-1] for run in runs}
    if len(before) == len(last) == 1:
        return f"{before.pop()}, at last {last.pop()}"
    counts = Counter(values)
    if len(counts) <= MOST_SHOWN:
        return " or ".join(f"{x} ({n:,} times)" for x, n in counts.most_common())
    return "{" + ", ".join(shortened(values)) + "}"


def times(counts: list[int]) -> str:
    """How often a loop ran."""
    least, most = min(counts), max(counts)
    return counted(most, "time") if least == most else f"{least:,} to {most:,} times"


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun if n == 1 else noun + 's'}"


def place_of(site: Site) -> str:
    return f"  # {site}" if site.filename else ""


def summary(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, np.ndarray) and value.size > MOST_SHOWN:
        return of_many(value)
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=6, separator=", ").replace("\n", "")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (float, complex)):
        return f"{value:.6g}"
    text = show(value, {})
    return text if len(text) <= 40 else text[:39] + "…"


def of_many(value: np.ndarray) -> str:
    """The range of an array, and how many of its elements are none of it."""
    kind = value.dtype.kind
    if kind == "b":
        return f"{int(value.sum()):,} of {value.size:,} True"
    if kind not in "fiuc":
        return "[…]"
    finite = np.abs(value) if kind == "c" else value
    finite = finite[np.isfinite(finite)]
    odd = {"NaN": np.isnan(value).sum(), "infinite": np.isinf(value).sum()}
    told = [f"{int(n):,} {name}" for name, n in odd.items() if n]
    if finite.size:
        low, high, mean = (float(x) for x in (finite.min(), finite.max(), finite.mean()))
        told.insert(0, f"{'abs ' * (kind == 'c')}{low:.6g} to {high:.6g}, mean {mean:.6g}")
    return ", ".join(told)


def first_and_last(values: list[Any]) -> str:
    """What there is in the first pass and in the last."""
    return summary(values[0]) + (f" … {summary(values[-1])}" if len(values) > 1 else "")


def values_of(ops: list[Op]) -> str:
    """The values of a line."""
    return f" = {first_and_last([x.value for x in ops])}"


def format_tape(
    tape: Tape, depth: int | None = None, flat: bool = False, values: bool = False
) -> str:
    """The text of a tape; see `Tape.format`."""
    if flat:
        return format_flat(tape, summary if values else None)
    return "\n".join(listed(tape, depth, values_of if values else None).lines)


def rows(
    tape: Tape, depth: int | None = None, flat: bool = False, values: bool = False
) -> list[tuple[str, Op | None]]:
    """The lines of that text, each with the operation that it shows, if it shows one."""
    if flat:
        lines = format_tape(tape, flat=True, values=values).splitlines()
        return list(zip(lines, [None, *tape.ops, None], strict=True))
    listing = listed(tape, depth, values_of if values else None)
    return [(line, listing.shown.get(i)) for i, line in enumerate(listing.lines)]


def named_ops(tape: Tape, numbers: dict[str, Op]) -> dict[str, Op]:
    """Ops by their names in the listing, and by their ``numbers`` on the plain list where both count alike."""
    listing = Listing(tape, folded(tape))
    found = dict(numbers) if listing.count == len(numbers) else {}
    for line, name in listing.names.items():
        if isinstance(line, Line):
            found[name] = line.ops[-1]
        elif (last := what_carried(line)) is not None:
            found[name] = last
    found.update((name, op) for op, name in listed_names(tape, listing).items())
    return found


def what_carried(what: Any) -> Op | None:
    """The op that a loop hands on in the end."""
    last = what.final[-1] if isinstance(what, Carried) else None
    return last if isinstance(last, Op) else None


KNOWN: WeakKeyDictionary[Tape, tuple[int, dict[Op, str]]] = WeakKeyDictionary()


def listed_names(tape: Tape, listing: Listing | None = None) -> dict[Op, str]:
    """The names of ops in the listing: in a loop with the number of the pass, ``x.6[3]``, but of the last one."""
    count, names = KNOWN.get(tape, (-1, {}))
    if count != len(tape.ops):
        listing = Listing(tape, folded(tape)) if listing is None else listing
        where, reference = listing.references.where, listing.references.reference
        names = {}
        for op in tape.ops:
            if op.kind in ("input", "call"):
                line, _ = where.get(op, (None, 0))
                if line is None:  # nobody takes it
                    names[op] = op.name if isinstance(op, Input) else "%?"
                elif line in listing.parts:  # which it is taken apart into at once
                    parts = listing.parts[line]
                    names[op] = ", ".join("_" if x is None else listing.names[x] for x in parts)
                elif line.ops[-1] is op:
                    names[op] = listing.names[line]
                else:
                    names[op] = listing.refer(reference(op, listing.block, 0))
        KNOWN[tape] = len(tape.ops), names
    return names


def listed(
    tape: Tape, depth: int | None, beside: Callable[[list[Op]], str] | None = None
) -> Listing:
    """The listing with its lines, as deep as they can be read where no ``depth`` is given."""
    listing = Listing(tape, folded(tape), beside)
    deepest = depth_of(listing.block)
    if depth is None and deepest and sum(1 for _ in listing.block.lines()) >= READABLE:
        levels = range(1, deepest + 1)
        depth = bisect.bisect_left(
            levels, True, key=lambda x: listing.text(x).count("\n") >= READABLE
        )
    listing.text(depth)
    return listing


def per_pass(lines: list[Line], kind: str, passes: int) -> int:
    """How many of these a call does, on the average of its passes."""
    return -(-sum(len(x.ops) for x in lines if x.ops[0].kind == kind) // passes)


def depth_of(block: Block) -> int:
    """How deep calls are nested, that of the traced function itself not counted."""
    deepest = 0
    todo = [(block, 0)]
    while todo:
        block, level = todo.pop()
        for item in block.items:
            here = level + (isinstance(item, Call) and bool(level or item.site.filename))
            deepest = max(deepest, here)
            todo += [(inner, here) for inner in blocks_of(item)]
    return deepest
