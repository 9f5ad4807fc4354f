"""The reverse of lists, dicts and objects.

Words
-----
shadow    of a memory: a list or dict like it, with the cotangents of what is in it. It is found by the identity of the
          memory, or lies in a variable where the memory has one name only. The cotangent of a tuple is a tuple with
          those of the numbers and memories in it, inner tuples taken apart, or None; texts and bools have no place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from ...tracer.fold.region import (
    APPEND,
    ARRAY,
    BIRTHS,
    CONTENTS,
    DICT,
    DROP,
    LENGTH,
    LIST,
    LOAD,
    OBJECT,
    OF_ARRAYS,
    PACK,
    POP,
    STORE,
    VIEW,
    Op,
    Take,
    Written,
    is_stream,
)
from .frames import MAYBE, Cotangents, Frame
from .held import Held, is_tuple
from .snapshots import put_back, shadow_in
from .ways import Unemittable
from .writer import Writer
from .written import Arrays


class Unread(dict[Any, Any]):
    """The shadow of an object from outside, of which nobody asks for the gradient."""

    def __missing__(self, key: Any) -> None:
        return None


def shadow_of(memory: Any) -> Any:
    """The shadow of a memory, without cotangents."""
    if type(memory) is list:
        return [None] * len(memory)
    return dict.fromkeys(memory) if type(memory) is dict else Unread()


def has_place(x: Any) -> bool:
    """Whether the cotangent of a tuple has a place for this operand: for no text or bool, which may make a state."""
    kind = x.type if isinstance(x, Op) else type(x)
    return kind is not str and kind is not bool and not is_stream(kind)


def added(x: Any, y: Any) -> Any:
    """The sum of two cotangents, of numbers or of tuples."""
    if type(x) is not tuple:
        return x + y
    return tuple([b if a is None else a if b is None else a + b for a, b in zip(x, y, strict=True)])


class Memories:
    """Writes the reverse of what makes, reads and changes memories.

    ``value`` gives the source text of an operand's value, ``like`` that of something of its shape, and ``level`` says
    how many rows are read where it has its value. ``shadows`` is the variable of the dict that has shadows by identity,
    once it is used.
    """

    def __init__(
        self,
        writer: Writer,
        cotangents: Cotangents,
        value: Callable[[Any], str],
        like: Callable[[Any], str],
        level: Callable[[Op], int],
        held: Held,
    ) -> None:
        self.writer = writer
        self.cotangents = cotangents
        self.value = value
        self.level = level
        self.held = held
        self.shadows = ""
        self.arrays = Arrays(writer, cotangents, value, like, self.of)

    def of(self, frame: Frame, memory: Any) -> str:
        """The variable of a memory's shadow."""
        memory = self.writer.resolve(memory)
        if memory in self.writer.active.own:
            if memory not in self.writer.shadows:
                self.writer.shadows[memory] = self.writer.fresh("s")
            return self.writer.shadows[memory]
        known = frame.shadow(memory)
        if known is None and memory.fn == VIEW:
            text = self.arrays.view(frame, memory)
            known = frame.shadows[memory] = self.writer.fresh("s")
            frame.add(f"{known} = {text}")
        self.by_identity()
        if known is None:  # before the loops in which it is one memory
            frame = frame.outside(self.level(memory))
        if known is None and type(memory.type) is Written:
            known = frame.shadows[memory] = self.writer.fresh("s")
            found = self.writer.text.named(shadow_in, "shadow_in")
            frame.add(f"{known} = {found}({self.shadows}, {self.value(memory)})")
        if known is None:
            known = frame.shadows[memory] = self.writer.fresh("s")
            text = self.value(memory)
            made = f"{self.writer.text.named(shadow_of, 'shadow_of')}({text})"
            frame.add(f"{known} = {self.shadows}.get(id({text}))")
            frame.add(f"if {known} is None: {known} = {self.shadows}[id({text})] = {made}")
        return known

    def by_identity(self) -> str:
        """The variable of the dict that has shadows by identity."""
        if not self.shadows:
            self.shadows = self.writer.text.fresh("shadows")
        return self.shadows

    def make(self, frame: Frame, ops: Iterable[Op]) -> None:
        """The shadows of births that are known by one name: a variable for each."""
        for op in ops:
            if op in self.writer.active.own:
                made = f"[None] * len({self.value(op)})"
                if op.fn in (DICT, OBJECT):
                    made = f"dict.fromkeys({self.value(op)})"
                elif op.fn == ARRAY:
                    zeros = self.writer.text.named(np.zeros_like, "zeros_like")
                    made = f"{zeros}({self.value(op)})"
                frame.add(f"{self.of(frame, op)} = {made}")

    def back(self, frame: Frame, op: Op) -> None:
        """An op that makes, reads or changes a memory."""
        active, fn = self.writer.active, op.fn
        if fn in OF_ARRAYS:
            self.arrays.back(frame, op)
        elif fn in BIRTHS:
            if active(op):
                (self.arrays if fn == ARRAY else self).birth(frame, op)
        elif fn == PACK:
            self.cotangents.guarded(frame, op, partial(self.unpacked, op))
        elif type(op) is Take:
            self.take(frame, op)
        elif fn in (STORE, APPEND) and active(op.args[0]):
            shadow = self.of(frame, op.args[0])
            taken = f"{shadow}.pop()"
            if fn == STORE:
                taken = f"{shadow}[{self.value(op.args[1])}]"
            if self.cotangents.floats(op.args[-1]):
                self.cotangents.add(frame, op.args[-1], self.taken(frame, taken), MAYBE, spare=True)
            elif fn == APPEND:
                frame.add(taken)
            if fn == STORE:
                frame.add(f"{taken} = None")
        elif fn == DROP:
            if active(op.args[0]):
                frame.add(f"{self.of(frame, op.args[0])}[{self.value(op.args[1])}] = None")
        elif fn == LOAD and self.cotangents.floats(op):
            self.cotangents.guarded(frame, op, partial(self.load, op, op))
        elif fn == POP and active(op.args[0]):
            state = frame.get(op) if self.cotangents.floats(op) else None
            given = "None" if state is None else self.cotangents.name(frame, op)
            frame.add(f"{self.of(frame, op.args[0])}.append({given})")
        elif fn not in (STORE, APPEND, LOAD, POP, LENGTH) and self.cotangents.floats(op):
            if fn not in ("input", "parameter", "result", "item"):
                raise Unemittable(f"an op that has no reverse: {fn}")

    def taken(self, frame: Frame, text: str) -> str:
        name = self.writer.fresh("q")
        frame.add(f"{name} = {text}")
        return name

    def load(self, op: Op, x: Op, frame: Frame) -> None:
        """The cotangent of ``x``, which was loaded, goes into its cell."""
        cell = f"{self.of(frame, op.args[0])}[{self.value(op.args[1])}]"
        have, new = self.taken(frame, cell), self.cotangents.name(frame, x)
        frame.add(f"{cell} = {new} if {have} is None else {have} + {new}")

    def take(self, frame: Frame, op: Take) -> None:
        """What was taken out, in one of several states: of the others nothing has a cotangent."""
        given = "None"
        for state, results in op.results.items():
            results = [x for x in results if has_place(x)]
            names = [
                self.cotangents.name(frame, x)
                if self.cotangents.floats(x) and frame.get(x)
                else "None"
                for x in results
            ]
            asked = " or ".join(f"{x} is not None" for x in names if x != "None")
            if not asked:
                continue
            if op.fn == POP:
                text = f"({''.join(f'{x}, ' for x in names)})" if is_tuple(state) else names[0]
                given = f"{text} if {asked} else {given}"
            elif not is_tuple(state):
                self.cotangents.guarded(frame, results[0], partial(self.load, op, results[0]))
            else:
                cell = f"{self.of(frame, op.args[0])}[{self.value(op.args[1])}]"
                have, new = self.taken(frame, cell), f"({''.join(f'{x}, ' for x in names)})"
                frame.add(f"if {asked}:")
                frame.code.add(f"{cell} = {new} if {have} is None else {self.sum(have, new)}", 1)
        if op.fn == POP and self.writer.active(op.args[0]):
            frame.add(f"{self.of(frame, op.args[0])}.append({given})")

    def sum(self, x: str, y: str) -> str:
        """The text of a sum of cotangents that may be those of tuples."""
        if not self.held.tuples:
            return f"{x} + {y}"
        return f"{self.writer.text.named(added, 'added')}({x}, {y})"

    def unpacked(self, op: Op, frame: Frame) -> None:
        """What a tuple was made of gets its cotangents."""
        name = self.cotangents.name(frame, op)
        for i, x in enumerate(filter(has_place, op.args)):
            if self.cotangents.floats(x):
                self.cotangents.add(frame, x, self.taken(frame, f"{name}[{i}]"), MAYBE, True)

    def total(self, op: Op, frame: Frame) -> None:
        """Every number that was added up gets the cotangent of the sum."""
        to, i, d = (self.writer.fresh(x) for x in "sid")
        new = self.cotangents.name(frame, op)
        frame.add(f"{to} = {self.of(frame, op.args[0])}")
        frame.add(f"for {i}, {d} in enumerate({to}):")
        frame.code.add(f"{to}[{i}] = {new} if {d} is None else {d} + {new}", 1)

    def each(self, memory: Any, name: str, frame: Frame) -> None:
        """The numbers in a list get the cotangents that lie in the variable ``name``, if there are any."""
        to, i, d, have = (self.writer.fresh(x) for x in "sidq")
        frame.add(f"{to} = {self.of(frame, memory)}")
        frame.add(f"if {name} is not None:")
        frame.code.add(f"for {i}, {d} in enumerate({name}):", 1)
        frame.code.add(f"{have} = {to}[{i}]", 2)
        frame.code.add(
            f"if {d} is not None: {to}[{i}] = {d} if {have} is None else {have} + {d}", 2
        )

    def birth(self, frame: Frame, op: Op) -> None:
        """What a memory was made of gets the cotangents that are left in its shadow."""
        items: list[tuple[str, Any]] = []
        if op.fn == LIST:
            items = [(str(i), x) for i, x in enumerate(op.args)]
        elif op.fn in (DICT, OBJECT):
            given = op.args if op.fn == DICT else op.args[1:]
            items = [
                (self.value(k), x)
                for k, x in zip(given[::2], given[1::2], strict=True)
                if self.cotangents.floats(x)
            ]
        elif op.fn == CONTENTS:
            read = f"{self.by_identity()}, {self.value(op.args[0])}, {self.of(frame, op)}"
            frame.add(f"{self.writer.text.named(put_back, 'put_back')}({read})")
        elif self.writer.active(op.args[0]):
            self.repeat(frame, op)
        for key, x in items:
            if self.cotangents.floats(x):
                self.cotangents.add(
                    frame, x, self.taken(frame, f"{self.of(frame, op)}[{key}]"), MAYBE, True
                )

    def repeat(self, frame: Frame, op: Op) -> None:
        """The cotangents of a repeated list go to the list that was repeated."""
        to, i, d, k = (self.writer.fresh(x) for x in "sidk")
        frame.add(f"{to} = {self.of(frame, op.args[0])}")
        frame.add(f"for {i}, {d} in enumerate({self.of(frame, op)}):")
        frame.code.add(f"if {d} is not None:", 1)
        total = self.sum(f"{to}[{k}]", d)
        frame.code.add(f"{k} = {i} % len({to})", 2)
        frame.code.add(f"{to}[{k}] = {d} if {to}[{k}] is None else {total}", 2)
