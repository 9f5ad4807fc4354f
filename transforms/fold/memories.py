"""The reverse of lists, dicts and objects.

Words
-----
shadow    of a memory: a list or dict like it, with the cotangents of what is in it. It is found by the identity of the
          memory, or lies in a variable where the memory has one name only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ...tracer.fold.region import (
    APPEND,
    BIRTHS,
    DICT,
    LENGTH,
    LIST,
    LOAD,
    OBJECT,
    POP,
    STORE,
    Op,
)
from .frames import MAYBE, Cotangents, Frame
from .ways import Unemittable
from .writer import Writer


class Shadows(dict[int, Any]):
    """The shadows of memories that have several names, by identity."""

    def of(self, memory: Any) -> Any:
        found = self.get(id(memory))
        if found is None:
            found = self[id(memory)] = shadow_of(memory)
        return found


def shadow_of(memory: Any) -> Any:
    return [None] * len(memory) if type(memory) is list else dict.fromkeys(memory)


class Memories:
    """Writes the reverse of what makes, reads and changes memories.

    ``value`` gives the source text of an operand's value. ``find`` is the function that finds shadows by identity,
    once it is used.
    """

    def __init__(self, writer: Writer, cotangents: Cotangents, value: Callable[[Any], str]) -> None:
        self.writer = writer
        self.cotangents = cotangents
        self.value = value
        self.find = ""

    def of(self, frame: Frame, memory: Any) -> str:
        """The variable of a memory's shadow."""
        memory = self.writer.resolve(memory)
        if memory in self.writer.active.own:
            if memory not in self.writer.shadows:
                self.writer.shadows[memory] = self.writer.fresh("s")
            return self.writer.shadows[memory]
        if not self.find:
            self.find = self.writer.text.fresh("shadow")
        known = frame.shadow(memory)
        if known is None:
            known = frame.shadows[memory] = self.writer.fresh("s")
            frame.add(f"{known} = {self.find}({self.value(memory)})")
        return known

    def make(self, frame: Frame, ops: Iterable[Op]) -> None:
        """The shadows of births that are known by one name: a variable for each."""
        for op in ops:
            if op in self.writer.active.own:
                made = f"[None] * len({self.value(op)})"
                if op.fn in (DICT, OBJECT):
                    made = f"dict.fromkeys({self.value(op)})"
                frame.add(f"{self.of(frame, op)} = {made}")

    def back(self, frame: Frame, op: Op) -> None:
        """An op that makes, reads or changes a memory."""
        active, fn = self.writer.active, op.fn
        if fn in BIRTHS:
            if active(op):
                self.birth(frame, op)
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
        elif fn == LOAD and self.cotangents.floats(op):
            self.cotangents.guarded(frame, op, partial(self.load, op))
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

    def load(self, op: Op, frame: Frame) -> None:
        cell = f"{self.of(frame, op.args[0])}[{self.value(op.args[1])}]"
        have, new = self.taken(frame, cell), self.cotangents.name(frame, op)
        frame.add(f"{cell} = {new} if {have} is None else {have} + {new}")

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
        frame.code.add(f"{k} = {i} % len({to})", 2)
        frame.code.add(f"{to}[{k}] = {d} if {to}[{k}] is None else {to}[{k}] + {d}", 2)
