"""A tape as statements in which each loop stands once, and each way of a branch: the listing, as Python.

Words
-----
pass       of a block, counted through all runs of the loop that it is the body of (see ``folding``).
counter    a variable of the page that holds the number of a pass, or of an iteration in its run of a loop.
varying    what is another thing in each pass: written by its counter, as a formula or as a *table*.
history    the list of what a line has given in all of its passes, or of what a loop carried into each of its own
           (and out of it), where an earlier one is asked for.

What is written computes what the flat list computes, op by op: each decision is the traced one, each loop runs as
often as it did.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...rules.mutation import may_repeat, scatter, setitem
from ...tracer.kinds import isinstance
from ...tracer.source import Writer
from ...tracer.tape import NOWHERE, External, Input, Op, Tape, element, ops_in, primal
from ..patterns import alike, refilled
from .editing import like
from .folding import Block, Branch, Call, Item, Line, Loop, folded, unfolded
from .listing import Listing, home_of
from .references import (
    Carried,
    Reference,
    References,
    Slot,
    blocks_of,
    chain,
    pass_in,
)

DEEPEST = 15  # loops in loops: Python takes 20 blocks
WIDTH = 100
LONG = 4  # items of a list that are written as a part of another
ITEM = re.compile(r"(.+)\[(\d+)\]")
ATOM = re.compile(r"[\w.]+(\[[^\[\]]*\])?")  # what needs no parentheses in an expression


class History:
    """A statement that is there if the history of a line, or of what a loop carries, is asked for."""

    def __init__(self, of: Line | tuple[Carried, bool], pad: str, first: bool = False) -> None:
        self.of = of  # of what is carried it tells too whether behind a pass
        self.pad = pad
        self.first = first  # whether it begins here


class Looped(Writer):
    """Writes a folded tape. Whoever derives from it says how one op reads (``lines``)."""

    constants: list[str]  # statements above the function

    def __init__(self, tape: Tape) -> None:
        super().__init__(tape)
        self.tables: dict[str, str] = {}
        # Tables of what is an argument: statements at the function's head.
        self.local: list[str] = []
        self.variables: dict[Any, str] = {}  # of lines and of what loops carry
        self.rows: dict[str, list[Any]] = {}  # of tables
        self.histories: dict[
            Any, str
        ] = {}  # by line, or what a loop carries and whether behind a pass
        self.counters: dict[tuple[Loop, bool], str] = {}
        self.single = True  # whether what is being written is done once
        self.handed: dict[Block, list[tuple[Carried, dict[int, Any]]]] = {}  # at the end of each

    def lines(self, op: Op) -> list[str]:
        """The statements of one op, indented by four."""
        raise NotImplementedError

    def items(self) -> list[Item]:
        """The items of the folded tape, which from now on is written."""
        block = folded(self.tape)
        if deepest(block) > DEEPEST:
            block = Block([Line([op]) for op in self.tape.ops], 1)
        self.listing = Listing(self.tape, block)
        self.references = self.listing.references
        self.name_lines(block)
        return block.items

    def name_lines(self, block: Block) -> None:
        """The names of the listing, as far as they are free: ``t7`` is ``%7``."""
        names = self.listing.names
        self.shared = Shared(self.references, block)
        for line in block.lines():
            if line.ops[0] in self.names:  # an argument of the function
                self.variables[line] = self.names[line.ops[0]]
        for what, name in names.items():
            if isinstance(what, (Line, Carried)) and what not in self.variables:
                new = self.fresh(name.replace("%", "t"))
                self.variables.update(dict.fromkeys(self.shared.group(what), new))

    # ------------------------------------------------------------------------------------------ statements

    def written(self, items: list[Item], pad: str) -> list[str | History]:
        """The statements of items, one after the other."""
        found: list[str | History] = []
        for item in items:
            if isinstance(item, Line):
                found += self.line(item, pad)
            elif isinstance(item, Call):
                found += self.block(item.body, pad)
            elif isinstance(item, Branch):
                found += self.lines_of_branch(item, pad)
            elif isinstance(item, Loop):
                found += self.lines_of_loop(item, pad)
        return found

    def line(self, line: Line, pad: str) -> list[str | History]:
        """The statements of one line, for all of its passes."""
        op = representative(line)
        if isinstance(op, Input) or self.is_item(line):
            return []
        self.single = all(at.passes == 1 for at, _ in chain(line.block, 0))
        slots = self.references.slots[line]
        texts = [self.spelled(x) for x in slots]
        count = len(texts) - (op.kind == "guard")
        leaves = iter(texts[:count])
        args, kwargs = refilled(op.args, leaves), refilled(op.kwargs, leaves) if op.kwargs else {}
        new = like(op, args, kwargs, op.value, self.tape)
        if op.kind == "guard":
            new.value = texts[-1]
        elif op.kind == "call":
            self.names[new] = self.variable(line)
        text = [f"{pad[4:]}{x}" for x in self.lines(new)]
        return [*text, History(line, pad)] if op.kind == "call" else list(text)

    def is_item(self, line: Line) -> bool:
        """Whether a line takes one of the many results of another, and is written where it is used: ``t5[17]``."""
        op = line.ops[0]
        if op.fn is not element or line.block.passes > 1 or not isinstance(op.args[0], Op):
            return False
        many, _ = self.references.where[op.args[0]]
        if many.block.passes > 1 or self.listing.takers[op.args[0]] < LONG:
            return False
        self.variables[line] = f"{self.variable(many)}[{op.args[1]}]"
        return True

    def spelled(self, slot: Slot) -> Any:
        """What stands in an op for a slot: a constant, or an op whose name is how the slot reads."""
        values = slot.values
        first = values[0]
        if not any(isinstance(x, Op) for x in values) and all(same(x, first) for x in values):
            return first
        op = Op(None, (), first.value if isinstance(first, Op) else first, NOWHERE, self.tape)
        text = self.slot(slot)
        self.names[op] = text if ATOM.fullmatch(text) else f"({text})"
        return op

    def part(self, tree: Any) -> str:
        text = super().part(tree)
        bare = text[1:-1]
        return bare if isinstance(tree, Op) and text == f"({bare})" else text

    def lines_of_branch(self, branch: Branch, pad: str) -> list[str | History]:
        """The ways of a branch, each behind the passes that take it."""
        found: list[str | History] = []
        ways = [(i, self.block(way, pad + "    ")) for i, way in enumerate(branch.ways)]
        ways = [(i, text) for i, text in ways if any(isinstance(x, str) for x in text)]
        written: set[int] = set()  # ways that are behind us
        for number, (i, text) in enumerate(ways):
            if len({*branch.taken} - written) == 1:
                found.append(f"{pad}else:")
            else:
                taken = self.varying(
                    {p: x == i for p, x in enumerate(branch.taken) if x not in written},
                    branch.block,
                )
                found.append(f"{pad}{'elif' if number else 'if'} {taken}:")
            found += text
            written.add(i)
        return found

    def lines_of_loop(self, loop: Loop, pad: str) -> list[str | History]:
        """A loop: what it begins with, its body, and what goes over to the next pass."""
        carried = self.references.carried.get(loop, [])
        begin: list[str | History] = [
            f"{pad}{self.variable(x)} = {self.slot(x.first)}"
            for x in carried
            if x.first is not None
        ]
        for x in carried:
            self.hand(x)
        inner = pad + "    "
        once = is_once(loop)
        begin += [History((x, True), pad, first=True) for x in carried if once]
        body: list[str | History] = [History((x, False), inner) for x in carried]
        body += self.block(loop.body, inner)
        body += [History((x, True), inner) for x in carried]
        count = self.varying(dict(enumerate(loop.counts)), loop.block)
        head = f"{pad}for {self.counters.get((loop, False), '_')} in range({count}):"
        many = self.counters.get((loop, True))
        body += [f"{inner}{many} += 1"] if many is not None else []
        if not any(isinstance(x, str) for x in body):
            body.append(f"{inner}pass")
        return [*begin, head, *body]

    def block(self, block: Block, pad: str) -> list[str | History]:
        """The statements of a block, and what it hands on to the next pass of the loop that it is in."""
        found = self.written(block.items, pad)
        decided = ""
        for carried, values in self.handed.get(block, ()):
            text = self.handing(carried, values, block, pad)
            found += text[1:] if text[1:] and text[0] == decided else text  # one `if` for several
            decided = text[0] if text[1:] else ""
        return found

    def hand(self, carried: Carried) -> None:
        """Note where a pass hands on what it does to the next one: as soon as nobody looks at what it began with."""
        body = carried.loop.body
        shared = self.shared.group(carried)
        given = [self.references.values_of(x, body) for x in carried.sources]
        homes: dict[Block, dict[int, Any]] = {}
        for b in range(body.passes):
            updates = [(x, y[b]) for x, y in zip(carried.sources, given, strict=True) if b in y]
            kept = carried.changes is not None and not carried.changes[b]
            if updates and not kept:
                source, value = updates[-1]
                if source.of not in shared:  # else it is the variable that the pass has assigned to
                    homes.setdefault(self.home(source, carried), {})[b] = value
        for home, values in homes.items():
            home = self.free_way(home, values, carried)
            passes = {pass_in(home, p, body): p for p in range(home.passes)}
            now = {passes[b]: x for b, x in values.items()}
            self.handed.setdefault(home, []).append((carried, now))

    def home(self, source: Reference, carried: Carried) -> Block:
        """The block at whose end a source is handed on."""
        body = carried.loop.body
        if carried.sometimes is not None:
            return body
        if self.references.followers(carried):
            return body
        home, _ = home_of(source, carried.loop)
        order = self.references.order
        last = max(map(order.__getitem__, items_in(home)))
        readers = (x for x in items_in(body) if order[x] > last and self.shared.looks(x, carried))
        return body if any(not exclusive(home.items[0], x) for x in readers) else home

    def free_way(self, home: Block, values: dict[int, Any], carried: Carried) -> Block:
        """Where these can be handed on: in a way of its last item that does nothing else, if these are its passes."""
        last = home.items[-1]
        if isinstance(last, Branch):
            for way in last.ways:
                passes = {pass_in(way, p, carried.loop.body) for p in range(way.passes)}
                if not way.items and passes == {*values}:
                    return way
        return home

    def handing(
        self, carried: Carried, values: dict[int, Any], block: Block, pad: str
    ) -> list[str]:
        """The statement by which a block hands on these values, by the pass of it that does so."""
        given = (
            self.value(values, block) if carried.follows is None else self.variable(carried.follows)
        )
        text = f"{self.variable(carried)} = {given}"
        changed = {p: p in values for p in range(block.passes)}
        if all(changed.values()):
            return [pad + text]
        taken = self.varying(changed, block)
        item, outcome = carried.sometimes or (None, None)
        if isinstance(item, Line):  # the decision has been checked
            decided = self.slot(self.references.slots[item][0])
            taken = decided if outcome else f"not {decided}"
        return [f"{pad}if {taken}:", f"{pad}    {text}"]

    def finished(self, lines: list[str | History]) -> list[str]:
        """The statements once it is known of which lines there is a history, and what counts."""
        begun = {x.of for x in lines if isinstance(x, History) and x.first}
        found = [f"    {name} = []" for of, name in self.histories.items() if of not in begun]
        found += [f"    {name} = 0" for (_, many), name in self.counters.items() if many]
        for x in lines:
            if isinstance(x, str):
                found.append(x)
            elif x.of in self.histories:
                name = self.variable(x.of[0] if isinstance(x.of, tuple) else x.of)
                list_ = self.histories[x.of]
                found.append(
                    x.pad + (f"{list_} = [{name}]" if x.first else f"{list_}.append({name})")
                )
        used = {*re.findall(r"table\d*", "\n".join(found))}
        unused = tuple([f"{name} = " for name in self.tables.values() if name not in used])
        self.constants = [x for x in self.constants if not x.startswith(unused)]
        return [*[x for x in self.local if not x.lstrip().startswith(unused)], *found]

    # -------------------------------------------------------------------------------------------- operands

    def variable(self, what: Line | Carried) -> str:
        name = self.variables.get(what)
        if name is None:
            name = self.variables[what] = self.fresh(f"t{len(self.variables) + 1}")
        return name

    def name_results(self) -> None:
        """Name the ops of what is returned, as they are called at the end."""
        root, self.single = self.listing.block, True
        for op in ops_in(self.tape.result):
            self.names[op] = self.value({0: op}, root)

    def slot(self, slot: Slot) -> str:
        """How an operand reads."""
        if slot.carried is None:
            return self.value(dict(enumerate(slot.values)), slot.block)
        name = self.variable(slot.carried)
        if not slot.own:
            return name
        own = self.value({p: slot.values[p] for p in slot.own}, slot.block)
        texts = {p: own if p in slot.own else name for p in range(slot.block.passes)}
        return self.chosen(texts, slot.block)

    def value(self, values: dict[int, Any], block: Block) -> str:
        """How something reads that is this value in these passes of a block."""
        constants, now, before = {}, {}, {}
        for p, x in values.items():
            reference = self.references.reference(x, block, p)
            if reference.kind == "constant":
                constants[p] = x
            elif self.is_now(reference):
                now[p] = reference.of
            else:
                before[p] = self.references.where[x]
        kept = {line for line, _ in before.values()}
        for p in list(now):
            found = self.references.where.get(values[p])
            if found is not None and found[0] in kept:
                before[p] = found
                del now[p]
        if before and (series := self.series(values, before, block)) is not None:
            return series
        texts = {p: self.variable(of) for p, of in now.items()}
        items = {p: ITEM.fullmatch(text) for p, text in texts.items()}
        stems = {found and found[1] for found in items.values()}
        if len(stems) == 1 and None not in stems and len({*texts.values()}) > 1:  # of one list
            numbers = {p: int(found[2]) for p, found in items.items() if found}
            texts = dict.fromkeys(texts, f"{stems.pop()}[{self.varying(numbers, block)}]")
        if constants:
            texts |= dict.fromkeys(constants, self.varying(constants, block))
        for line in dict.fromkeys(line for line, _ in before.values()):
            numbers = {p: q for p, (x, q) in before.items() if x is line}
            texts |= dict.fromkeys(numbers, f"{self.history(line)}[{self.varying(numbers, block)}]")
        return self.chosen(texts, block)

    def series(
        self, values: dict[int, Any], before: dict[int, tuple[Line, int]], block: Block
    ) -> str | None:
        """What a loop carried into its passes, or out of them, in their order or backwards: ``ys[19 - i]``.

        One line alone has a history of its own, if that reads as well.
        """
        lines = {line for line, _ in before.values()}
        if len(lines) == 1 and len(before) == len(values):
            own = {p: q for p, (_, q) in before.items()}
            shared = any(isinstance(x, Carried) for x in self.shared.group(*lines))
            if not shared and "[" not in self.varying(own, block):
                return None
        around = next((x for x, _ in chain(block, 0) if isinstance(x.inside, Loop)), None)
        if around is None:
            return None
        passes = {p: pass_in(block, p, around) for p in values}
        for carried in itertools.chain(*self.references.carried.values()):
            for behind in (False, True):
                numbers = self.numbered(carried, behind, values, passes, block)
                if numbers is not None:
                    if is_once(carried.loop):  # both are in one
                        numbers = {p: b + behind for p, b in numbers.items()}
                        behind = True
                    return f"{self.history((carried, behind))}[{self.varying(numbers, block)}]"
        return None

    def numbered(
        self,
        carried: Carried,
        behind: bool,
        values: dict[int, Any],
        passes: dict[int, int],
        block: Block,
    ) -> dict[int, int] | None:
        """The pass into which (or out of which) a loop carried each of these, if that goes up or down by one.

        ``passes`` are those of the loop around, in which they are asked for.
        """
        if carried.first is None:  # there is nothing, in some passes
            return None
        found: dict[int, list[int]] = {}  # by id of what was carried: the passes
        for b, x in enumerate(carried.ends() if behind else carried.begins):
            found.setdefault(id(x), []).append(b)
        for step in (-1, 1):
            shifts: set[int] | None = None
            for p, x in values.items():
                known = [
                    b for b in found.get(id(x), ()) if self.is_past(carried, behind, b, block, p)
                ]
                here = {b - step * passes[p] for b in known}
                shifts = here if shifts is None else shifts & here
                if not shifts:
                    break
            if shifts:
                shift = min(shifts)
                return {p: shift + step * passes[p] for p in values}
        return None

    def is_past(self, carried: Carried, behind: bool, b: int, block: Block, p: int) -> bool:
        """Whether the pass b of a loop has begun (or is over) for certain, where a pass of a block is gone through."""
        order = self.references.order
        items = {at.inside.block: at.inside for at, _ in chain(block, p) if at.inside is not None}
        around = dict(chain(block, p))
        item: Item = carried.loop
        for at, q in chain(carried.loop.body, b):
            if at in around:
                if q != around[at] or at is carried.loop.body:
                    return q < around[at] or (q == around[at] and not behind)
                return at in items and order[item] < order[items[at]]
            assert at.inside is not None
            item = at.inside
        return False

    def chosen(self, texts: dict[int, str], block: Block) -> str:
        """One of several texts, by the pass."""
        different = list(dict.fromkeys(texts.values()))
        text = different[-1]
        rest = {p for p, x in texts.items() if x == text}
        for other in reversed(different[:-1]):
            here = {p for p, x in texts.items() if x == other}
            taken = {p: p in here for p in sorted(here | rest)}
            first = f"({other})" if " if " in other else other  # which may be one of several itself
            text = f"{first} if {self.varying(taken, block)} else {text}"
            rest |= here
        return text

    def is_now(self, reference: Reference) -> bool:
        """Whether a variable still holds what is referred to."""
        if reference.kind == "carried" or (not reference.past and not reference.passes):
            return True
        return reference.of.block.passes == 1 and reference.of not in self.shared.groups

    def history(self, of: Line | tuple[Carried, bool]) -> str:
        """The name of the list of what a line has given, or a loop has carried."""
        name = self.histories.get(of)
        if name is None:
            variable = self.variable(of[0] if isinstance(of, tuple) else of)
            name = self.histories[of] = self.fresh(f"{variable}s")
        return name

    def argument(self, tree: Any) -> str:
        """A nested argument; of a list that holds all of another one after the other, that one."""
        kind = type(tree)
        if (kind is not list and kind is not tuple) or len(tree) < LONG:
            return super().argument(tree)
        text = ", ".join(self.runs([self.argument(x) for x in tree]))
        if kind is list:
            return f"[{text}]"
        return f"({text})" if ", " in text else f"({text},)"

    def is_last(self, line: Line) -> bool:
        """Whether the variable of a line holds at the end what the line has given last: nothing else was put there."""
        others = [x for x in self.shared.group(line) if x is not line]
        return all(
            isinstance(x, Carried) and x.loop.counts[-1] and {y.of for y in x.sources} == {line}
            for x in others
        )

    def runs(self, texts: list[str]) -> list[str]:
        """Texts of which those that are ``x[0], x[1], x[2] …`` are one: ``*x[0:3]``."""
        last = {
            self.variable(line): f"{name}[{line.block.passes - 1}]"
            for line, name in self.histories.items()
            if isinstance(line, Line) and self.single  # in a loop it may not have had its last pass
            if self.is_last(line)
        }
        texts = [last.get(x, x) for x in texts]
        items = [ITEM.fullmatch(x) for x in texts]
        found: list[str] = []
        i = 0
        while i < len(texts):
            part = max((part_of(items[i:], step) for step in (1, -1)), key=len)
            count = len(part) if len(part) >= LONG else 1
            if count == 1:
                found.append(texts[i])
            else:
                stem, low, high = items[i][1], min(part), max(part) + 1  # type: ignore[index]
                span = f"{stem}[{low}:{high}]"
                found.append(f"*{span}" if part[0] == low else f"*reversed({span})")
            i += count
        return found

    # --------------------------------------------------------------------------------------------- varying

    def varying(self, values: dict[int, Any], block: Block) -> str:
        """How constants read, by pass of a block; there may be none for some passes."""
        first = next(iter(values.values()))
        while not all(same(x, first) for x in values.values()):
            inside = block.inside
            assert inside is not None
            if isinstance(inside, Loop):
                by_run = distinct((inside.outer[p], x) for p, x in values.items())
                if by_run is None:
                    return self.counted(inside, values)
                values = by_run
            else:
                values = {block.outer(p): x for p, x in values.items()}
            block = inside.block
        return self.written_constant(first)

    def counted(self, loop: Loop, values: dict[int, Any]) -> str:
        """The same, in the body of a loop: by the iteration, or by the pass where one run differs from another."""
        local = distinct((p - loop.starts[loop.outer[p]], x) for p, x in values.items())
        many = local is None
        name = self.counters.get((loop, many))
        if name is None:
            name = self.counters[loop, many] = self.fresh("n" if many else "i")
        known = values if local is None else local
        last = loop.body.passes if many else max(loop.counts)
        return (
            formula(known, name, last)
            or self.row(known, name)
            or f"{self.table(known, last)}[{name}]"
        )

    def row(self, values: dict[int, Any], name: str) -> str | None:
        """The same by a table that there is, forwards or backwards, or its opposite."""
        flags = all(type(x) is bool for x in values.values())
        for table, row in self.rows.items():
            ways = [(name, 0, 1)] if max(values) < len(row) else []
            ways += [(f"{i} - {name}", i, -1) for i in range(len(row) - 1, max(values) - 1, -1)]
            for index, start, step in ways:
                if all(same(row[start + step * i], x) for i, x in values.items()):
                    return f"{table}[{index}]"
                if flags and all(row[start + step * i] is (not x) for i, x in values.items()):
                    return f"not {table}[{index}]"
        return None

    def table(self, values: dict[int, Any], count: int) -> str:
        """The name of a list of constants; where there is none, it is that of the one before."""
        row, now = [], next(iter(values.values()))
        for i in range(count):
            now = values.get(i, now)
            row.append(now)
        groups = [
            (x, len(list(group))) for x, group in itertools.groupby(map(self.written_constant, row))
        ]
        if len(groups) <= 3 and count > 6:
            text = " + ".join([f"[{x}] * {n}" if n > 1 else f"[{x}]" for x, n in groups])
        else:
            text = f"[{', '.join([x for x, n in groups for _ in range(n)])}]"
        if text not in self.tables:
            name = self.tables[text] = self.fresh("table")
            self.rows[name] = row
            if any(map(self.is_given, row)):
                self.local.append(wrapped(f"    {name} = {text}"))
            else:
                self.constants.append(wrapped(f"{name} = {text}"))
        return self.tables[text]

    def is_given(self, value: Any) -> bool:
        """Whether a constant is an object among the arguments, which has a name in the function alone."""
        return False

    def written_constant(self, value: Any) -> str:
        return self.argument(value)


class Shared:
    """What has one variable on the page, though the listing tells it apart: ``groups`` by line or carried value.

    Lines in different ways of a branch, of which an operand is one or the other; and the line that gives what a loop
    carries to the next pass, if nobody looks behind it at what this pass began with.
    """

    def __init__(self, references: References, root: Block) -> None:
        self.references = references
        self.times = {op: i for i, op in enumerate(unfolded(root))}
        self.groups: dict[Any, list[Any]] = {}
        carried = [x for found in references.carried.values() for x in found]
        slots = itertools.chain(
            *references.slots.values(), *[[x.first] for x in carried if x.first]
        )
        for slot in slots:
            passes = range(slot.block.passes) if slot.carried is None else slot.own
            self.join(self.now(((p, slot.values[p]) for p in passes), slot.block))
        for x in carried:
            found = [references.values_of(source, x.loop.body) for source in x.sources]
            for b in range(x.loop.body.passes) if len(found) > 1 else ():
                self.join(self.now([(b, y[b]) for y in found if b in y], x.loop.body))
            lines = {y.of for y in x.sources}
            if len(found) > 1 and all(y.kind == "line" and not y.passes for y in x.sources):
                self.join(lines)
        for x in carried:
            self.carry(x)

    def group(self, what: Any) -> list[Any]:
        return self.groups.get(what, [what])

    def now(self, values: Iterable[tuple[int, Any]], block: Block) -> set[Line]:
        """The lines that give these values in the pass in which they are looked at."""
        found = set()
        for p, x in values:
            if isinstance(x, Op):
                reference = self.references.reference(x, block, p)
                if reference.kind == "line" and not reference.past and not reference.passes:
                    found.add(reference.of)
        return found

    def join(self, lines: set[Line]) -> None:
        """Let lines have one variable if no two of them are ever done in one pass."""
        members = list(dict.fromkeys(x for line in lines for x in self.group(line)))
        if len(members) > 1 and all(exclusive(x, y) for x, y in itertools.combinations(members, 2)):
            members.sort(key=self.references.order.__getitem__)
            self.groups.update(dict.fromkeys(members, members))

    def carry(self, carried: Carried) -> None:
        """Let what a loop carries be the variable that gives it, if nobody looks behind that at what it was.

        Of several sources that may be some: lines of which no pass does two, and which are the last to give it.
        """
        if carried.sometimes is not None:
            return
        lines = {x.of for x in carried.sources if x.kind == "line" and not x.passes}
        members: list[Any] = []
        order = self.references.order
        for line in sorted(lines, key=order.__getitem__, reverse=True):
            group = self.group(line)
            if {*group} <= lines and all(exclusive(x, y) for x in group for y in members if x != y):
                members += [x for x in group if x not in members]
        if members and self.gives(members, carried) and not self.looked_at(members, carried):
            members = [*sorted(members, key=order.__getitem__), carried]
            self.groups.update(dict.fromkeys(members, members))

    def gives(self, lines: list[Line], carried: Carried) -> bool:
        """Whether what these lines give is what the next pass begins with, or the loop ends with."""
        body = carried.loop.body
        later: set[int] = set()  # passes that are given something later
        for source in reversed(carried.sources):
            given = {*self.references.values_of(source, body)}
            if source.of in lines:
                done = {pass_in(source.of.block, q, body) for q in range(source.of.block.passes)}
                if given & later or done != given:
                    return False
            later |= given
        return True

    def looked_at(self, lines: list[Line], carried: Carried) -> bool:
        """Whether anything looks at what a pass began with when one of these lines has been done."""
        if self.references.followers(carried):
            return True
        if any(x.carried is carried for line in lines for x in self.late(line)):
            return True
        body = carried.loop.body
        done: dict[int, int] = {}  # by pass, when the first of the lines is
        for line in lines:
            for q, op in enumerate(line.ops):
                b = pass_in(line.block, q, body)
                done[b] = min(self.times[op], done.get(b, self.times[op]))
        for item in items_in(body):
            if self.looks(item, carried):
                for b, time in self.looking(item, carried, body):
                    if time > done.get(b, time):
                        return True
        return False

    def looking(self, item: Item, carried: Carried, body: Block) -> Iterator[tuple[int, int]]:
        """The passes of a loop in which an item looks at what they began with, and when."""
        if isinstance(item, Line):
            slots = [x for x in self.references.slots[item] if x.carried is carried]
            for q, op in enumerate(item.ops):
                if any(q not in x.own for x in slots):
                    yield pass_in(item.block, q, body), self.times[op]
        elif isinstance(item, Loop):
            begins: dict[int, int] = {}
            for line in item.body.lines():
                for q, op in enumerate(line.ops):
                    run = item.outer[pass_in(line.block, q, item.body)]
                    begins[run] = min(self.times[op], begins.get(run, self.times[op]))
            for run, time in begins.items():
                yield pass_in(item.block, run, body), time

    def late(self, line: Line) -> list[Slot]:
        """The operands of a line that are read behind the first of its statements."""
        slots = self.references.slots[line]
        return (
            slots if line.ops[0].fn is scatter else slots[1:] if line.ops[0].fn is setitem else []
        )

    def looks(self, item: Item, carried: Carried) -> bool:
        """Whether an item looks at what a pass began with."""
        slots = self.references.slots[item] if isinstance(item, Line) else []
        if isinstance(item, Loop):
            slots = [x.first for x in self.references.carried.get(item, ()) if x.first]
        return any(x.carried is carried for x in slots)


def is_once(loop: Loop) -> bool:
    """Whether there is one run of a loop."""
    return loop.block.passes == 1


def items_in(block: Block) -> Iterator[Item]:
    for item in block.items:
        yield item
        for inner in blocks_of(item):
            yield from items_in(inner)


def ways_of(line: Item) -> dict[Branch, Block]:
    """The branches that a line is in, and in which way."""
    found: dict[Branch, Block] = {}
    at: Block | None = line.block
    while at is not None:
        if isinstance(at.inside, Branch):
            found[at.inside] = at
        at = None if at.inside is None else at.inside.block
    return found


def exclusive(x: Item, y: Item) -> bool:
    """Whether these are in different ways of a branch."""
    ways = ways_of(y)
    return any(ways.get(branch, way) is not way for branch, way in ways_of(x).items())


def part_of(items: list[re.Match[str] | None], step: int) -> list[int]:
    """The numbers of the first ones, as long as these are items of one list that follow each other."""
    found: list[int] = []
    for x in items:
        first = items[0]
        if x is None or first is None or x[1] != first[1]:
            break
        if found and int(x[2]) != found[-1] + step:
            break
        found.append(int(x[2]))
    return found


def representative(line: Line) -> Op:
    """The op by which a line is written: an index that may repeat is one that needs care."""
    if line.ops[0].fn is scatter:
        return next((x for x in line.ops if may_repeat(primal(x.args[1]))), line.ops[0])
    return line.ops[0]


def wrapped(text: str) -> str:
    """A long statement of numbers, names and dtypes on several lines."""
    if len(text) <= WIDTH or text.count("'") > 2 or '"' in text:  # a text may have spaces
        return text
    lines = textwrap.wrap(
        text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


def lines_in(item: Item) -> Iterator[Line]:
    """Each line of an item."""
    if isinstance(item, Line):
        yield item
    for block in blocks_of(item):
        yield from block.lines()


def deepest(block: Block) -> int:
    """How deep loops are nested."""
    found = 0
    todo = [(block, 0)]
    while todo:
        at, depth = todo.pop()
        for item in at.items:
            here = depth + isinstance(item, Loop)
            found = max(found, here)
            todo += [(inner, here) for inner in blocks_of(item)]
    return found


def same(x: Any, y: Any) -> bool:
    """Whether two constants are the same, to the bit."""
    if isinstance(x, np.generic) and type(x) is type(y):
        return x.dtype == y.dtype and x.tobytes() == y.tobytes()
    if type(x) is External is type(y):
        return x.value is y.value
    return x is y or alike(x, y)


def distinct(pairs: Iterator[tuple[int, Any]]) -> dict[int, Any] | None:
    """These as a dict; None where a key has several values."""
    found: dict[int, Any] = {}
    for key, x in pairs:
        if not same(found.setdefault(key, x), x):
            return None
    return found


def formula(values: dict[int, Any], name: str, count: int) -> str | None:
    """Numbers as a formula of a counter that gives them to the bit; None if there is none so simple."""
    kinds = {type(x) for x in values.values()}
    if kinds == {bool}:
        return when({i for i, x in values.items() if x}, {*values}, name, count)
    if len(values) < 3 or kinds not in ({int}, {float}):
        return None
    places = sorted(values)
    if kinds == {int}:
        (a, x), (b, y) = ((i, values[i]) for i in places[:2])
        step = (y - x) // (b - a)
        start = x - step * a
        if any(start + step * i != z for i, z in values.items()):
            return None
        scaled = name if step == 1 else f"{step} * {name}"
        if step == -1:
            return f"{start} - {name}"
        return scaled if not start else f"{scaled} {'+' if start > 0 else '-'} {abs(start)}"
    for shift in (0, 1):
        unit = next(
            (values[i] / (i + shift) for i in (1 - shift, 1, 2) if i in values and i + shift), 0.0
        )
        if all(repr(unit * (i + shift)) == repr(x) for i, x in values.items()):
            counter = name if not shift else f"({name} + 1)"
            return f"{unit!r} * {counter}" if unit != 1.0 else f"float({counter})"
    return None


def when(true: set[int], known: set[int], name: str, count: int) -> str | None:
    """When something is so, in words of a counter; None where that takes a table."""
    false = known - true
    if true == {0}:
        return f"{name} == 0"
    if false == {0}:
        return f"{name} > 0"
    if true == {count - 1}:
        return f"{name} == {count - 1}"
    if false == {count - 1}:
        return f"{name} < {count - 1}"
    if len(false) > 1 == len(true):
        return f"{name} == {min(true)}"
    if len(true) > 1 == len(false):
        return f"{name} != {min(false)}"
    if max(true) < min(false):
        return f"{name} < {min(false)}"
    if max(false) < min(true):
        return f"{name} >= {min(true)}"
    for part in range(2):
        if true == {i for i in known if i % 2 == part}:
            return f"{name} % 2 == {part}"
    return None
