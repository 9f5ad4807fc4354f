"""What a run leaves behind: its result, and what it did to arrays and variables outside.

Words
-----
template   the result as a nested argument of the tape: ops in the place of traced values, plain constants elsewhere.
made       an object that the run itself has made, by its class and its attributes.
write      a place outside, and the op whose value it holds when the run has ended.
"""

from __future__ import annotations

import types
from operator import is_
from typing import Any

import numpy as np

from ..rules.words import with_article
from . import frames
from .arrays import current, is_traced_array, lay_out
from .border import ATOMS, STAND_INS, is_structure, seen_attribute
from .box import BOXES, ArrayBox, Box
from .effects import written
from .kinds import is_one_of, isinstance, mro_of
from .loops import handed_on
from .reads import MISSING, Place
from .session import Tracer
from .tails import Tail
from .tape import Op
from .text import PRIVATE, TEXTS, bare
from .tracebacks import waiting


class Made:
    """A container or an object of the given class, to be made anew of these parts (see ``frames.made``)."""

    __slots__ = ("kind", "option", "parts")

    def __init__(self, kind: type, parts: dict[Any, Any], option: Any = None) -> None:
        self.kind = kind
        self.parts = parts
        self.option = option


PLAIN = frozenset((list, tuple, dict))


class Outcome:
    """The result of a run as a template, and its writes."""

    def __init__(self) -> None:
        self.template: Any = None
        self.arrays: list[tuple[Place, Op]] = []
        self.cells: list[tuple[Place, Any]] = []
        self.first = False  # whether these are written to before anything else is done

    def ops(self) -> list[Op]:
        """The ops that the outcome refers to."""
        return [
            *ops_of(self.template),
            *[op for _, op in self.arrays],
            *[op for _, template in self.cells for op in ops_of(template)],
        ]


def ops_of(template: Any) -> list[Op]:
    """The ops in a template."""
    if isinstance(template, Made):
        return ops_of((template.parts, template.option))
    if isinstance(template, dict):
        return [op for x in template.values() for op in ops_of(x)]
    if isinstance(template, (tuple, list)):
        return [op for x in template for op in ops_of(x)]
    if isinstance(template, Op):
        return [template]
    return []


def outcome(tracer: Tracer, value: Any) -> Outcome:
    """Look at a run that has just ended, before its boxes are taken out."""
    found = Outcome()
    reader = Reader(tracer)
    for box, op in tracer.inputs:
        if box.seen < 0 and box.derivation is None:
            reader.problem("an array lies in memory that was written to in another way")
            continue
        last = current(box)
        if handed_on(last) is not op:
            if op.place is None:
                reader.problem("an array is written to, and nobody knows where it comes from")
            else:
                found.arrays.append((op.place, last))
                reader.written[id(box.memory)] = None
    found.template = reader.template(value)
    for container, before in reader.reads.stored.values():
        now = list(container.items() if type(container) is dict else container)
        if len(now) != len(before) or not all(map(same_item, now, before)):
            reader.problem(
                f"{with_article(type(container).__name__)} is changed when the outside has it already"
            )
    if any(box.memory.writes != writes for box, writes in reader.reads.handed_out):
        reader.problem("an array is written to when the outside has it already")
    if waiting(tracer.generators.values()):
        reader.problem("a generator waits in a try or a with when the run has ended")
    for cell, shadow in list(tracer.cells.values()):
        reader.cell(cell, shadow, found)
    users = next((op for op in reader.reads.impure if type(op.fn) is types.FunctionType), None)
    if users is not None and (
        found.arrays or found.cells or any(op.kind == "effect" for op in tracer.tape.ops)
    ):  # which programs do at the end
        name = users.fn.__name__
        reader.problem(f"{name}, which is not looked into, may read what the function writes")
    if reader.reads.uncertain and (found.arrays or found.cells):
        found.first = are_same(reader.reads.uncertain[0], written(tracer))
        by_then = reader.reads.uncertain[-1]
        if any(type(now) is not Tail for _, now in by_then) and not found.first:
            reader.problem("what may fail is done between writes to arrays or variables outside")
    for done in tracer.tape.ops:
        if (
            done.kind == "effect"
            and done.fn in (setattr, delattr)
            and isinstance(done.args[0], type)
        ):
            reader.inherited(done.args[0], done.args[1])
    return found


def are_same(before: list[tuple[Any, Any]], now: list[tuple[Any, Any]]) -> bool:
    """Whether nothing has been written to arrays and variables outside since then."""
    return len(before) == len(now) and all(
        a is b and (x is y or (type(x) is int is type(y) and x == y))
        for (a, x), (b, y) in zip(before, now, strict=True)
    )


def same_item(now: Any, before: Any) -> bool:
    """Whether an element of a list, or an item of a dict, is still the same object."""
    if type(now) is tuple and type(before) is tuple and len(now) == len(before) == 2:
        return now is before or (now[0] is before[0] and now[1] is before[1])
    return now is before


class Reader:
    """Reads templates off traced values."""

    def __init__(self, tracer: Tracer) -> None:
        assert tracer.reads is not None
        self.tracer = tracer
        self.reads = tracer.reads
        self.problem = tracer.reads.problem
        self.written: dict[int, None] = {}
        self.seen: set[int] = set()
        self.open: set[int] = set()  # what is being read
        self.memories: set[int] = set()
        self.outside = {id(box): op for box, op in tracer.inputs}

    def template(self, value: Any) -> Any:
        kind = type(value)
        if kind is Box:
            return value.op
        if kind is ArrayBox:
            return self.array(value)
        if is_one_of(kind, TEXTS):
            return value.value
        if is_one_of(kind, STAND_INS):
            self.problem(
                f"the result holds {with_article(type(STAND_INS[kind](value)).__name__)} of the outside's"
            )
            return None
        if is_traced_array(value):
            self.problem("an array is returned of which nobody knows where it comes from")
            return None
        if kind is types.FunctionType:
            place = self.reads.of(value)
            if place is None:
                self.problem("the result is a function that was made by the run")
            return place
        if (
            is_one_of(kind, (float, complex))
            or isinstance(value, np.generic)
            or (is_one_of(kind, ATOMS) and kind is not types.GeneratorType)
        ):
            if is_one_of(kind, (types.MethodType, slice)):
                self.problem(f"the result holds {with_article(kind.__name__)}")
            return value
        original = self.tracer.originals.get(id(value))
        if original is not None and self.reads.of(original[1]) is not None:
            return self.reads.of(original[1])
        place = self.reads.of(value)
        if place is not None:
            return place
        if id(value) in self.seen or id(value) in self.reads.stored:
            self.problem(f"{with_article(kind.__name__)} stands at two places in the result")
        if id(value) in self.open:  # it leads to itself
            return None
        self.seen.add(id(value))
        self.open.add(id(value))
        try:
            return self.opened(value, kind)
        finally:
            self.open.discard(id(value))

    def opened(self, value: Any, kind: type) -> Any:
        """The template of what has parts."""
        base = frames.native(kind)
        if base in frames.SETS or not (frames.can_be_made(kind) and is_structure(value)):
            self.problem(f"the result holds {with_article(kind.__name__)}")
            return None
        if base is None or not is_one_of(kind, PLAIN):
            return self.made(value, kind, base)
        if base is dict:
            if any(is_one_of(type(key), BOXES) for key in value):
                self.problem("the result is a dict with traced keys")
            if any(is_one_of(type(key), PRIVATE) for key in value):
                return {bare(key): self.template(x) for key, x in value.items()}
            return frames.valued(value, [self.template(x) for x in value.values()])
        parts = [self.template(x) for x in value]
        return value if kind is tuple and all(map(is_, parts, value)) else kind(parts)

    def made(self, value: Any, kind: type, base: Any) -> Made:
        """What is put together from its parts."""
        parts = {}
        for key, x in frames.parts_of(value).items():
            if is_one_of(type(key), BOXES) or key is frames.NAMESPACE:
                self.problem(f"the result holds {with_article(kind.__name__)}")
            elif base is None or type(key) is frames.Own:
                name = key.name if type(key) is frames.Own else key
                parts[key] = self.template(seen_attribute(self.tracer, value, name, x))
            else:
                parts[bare(key)] = self.template(x)
        return Made(kind, parts, self.template(frames.option_of(value)))

    def array(self, box: ArrayBox) -> Any:
        op = self.outside.get(id(box))
        memory = box.memory
        if op is not None and op.place is not None:
            return op.place  # the very array, with what was written to it
        if id(memory) in self.written or (memory.writes and id(memory) in self.memories):
            self.problem("the result holds a view of an array that was written to")
        self.memories.add(id(memory))
        lay_out(box, self.reads)
        return current(box)

    def inherited(self, cls: type, name: str) -> None:
        """A class is written to: whether others inherit what it holds must stay as it is."""
        for place in list(self.reads.all()):
            of = place.parent.value if place.parent is not None else None
            # Of other keys, which may be the user's, none is compared.
            if not isinstance(of, type) or place.key != name or cls not in mro_of(of)[1:]:
                continue
            for base in mro_of(of)[: mro_of(of).index(cls)]:
                if name in vars(base):
                    self.problem(f"{of.__name__}.{name} is read where {cls.__name__}.{name} is set")
                else:
                    self.reads.note(self.reads.constant(base), "own", name, MISSING)

    def cell(self, cell: Any, shadow: Any, found: Outcome) -> None:
        """A variable of an enclosing function: unchanged, or set to something new."""
        place = self.reads.of(cell)
        try:
            now = shadow.cell_contents
            cell.cell_contents  # noqa: B018
        except ValueError:
            if not (is_unset(shadow) and is_unset(cell)):
                self.problem(
                    "a variable of an enclosing function is set for the first time, or deleted"
                )
            return
        if type(now) is Tail or now is self.tracer.cells_held.get(id(cell), MISSING):
            return
        if place is None:
            self.problem("a variable of an enclosing function is set, and nobody knows whose it is")
            return
        found.cells.append((place, self.template(now)))


def is_unset(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False
