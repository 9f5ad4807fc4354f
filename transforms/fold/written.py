"""The reverse of arrays that are written to (see `snapshots` for the words)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...tracer.fold.region import ARRAY, CONTENT, GET, PUT, VIEW, Access, Kind, Op
from .arrays import index_of, is_narrow, view_of
from .frames import MAYBE, SURE, Cotangents, Frame
from .snapshots import number, taken
from .writer import Writer


class Arrays:
    """Writes the reverse of what reads and writes arrays; ``shadow`` gives the variable of a memory's shadow."""

    def __init__(
        self,
        writer: Writer,
        cotangents: Cotangents,
        value: Callable[[Any], str],
        like: Callable[[Any], str],
        shadow: Callable[[Frame, Any], str],
    ) -> None:
        self.writer = writer
        self.cotangents = cotangents
        self.value = value
        self.like = like
        self.shadow = shadow

    def back(self, frame: Frame, op: Op) -> None:
        if op.fn == PUT:
            if self.writer.active(op.args[0]):
                self.put(frame, op)
        elif op.fn in (GET, CONTENT) and self.cotangents.floats(op):
            self.cotangents.guarded(frame, op, partial(self.read, op))

    def birth(self, frame: Frame, op: Op) -> None:
        """What the array held at first gets what is left in its shadow."""
        assert op.fn == ARRAY
        if self.cotangents.floats(op.args[0]):
            self.cotangents.add(frame, op.args[0], self.shadow(frame, op), SURE)

    def view(self, frame: Frame, op: Op) -> str:
        """The text of a view's shadow."""
        assert op.fn == VIEW
        return self.part(frame, op, 1)

    def part(self, frame: Frame, op: Op, start: int) -> str:
        """The text of what stands in the shadow where an op reads or writes."""
        assert isinstance(op, Access)
        names = [self.value(x) for x in op.args[start:]]
        return view_of(self.shadow(frame, op.args[0]), op.frame, names, self.writer.constant)

    def index(self, op: Op, start: int) -> str:
        assert isinstance(op, Access)
        names = [self.value(x) for x in op.args[start:]]
        return index_of(op.frame, names, self.writer.constant)

    def read(self, op: Op, frame: Frame) -> None:
        """The cotangent of what was read goes to where it stood."""
        named = self.writer.text.named
        shadow, d = self.shadow(frame, op.args[0]), self.cotangents.name(frame, op)
        if op.fn == CONTENT:
            frame.add(f"{named(np.add, 'add')}({shadow}, {d}, {shadow})")
        elif type(op.type) is Kind:
            frame.add(f"{named(np.add.at, 'add_at')}({shadow}, {self.index(op, 1)}, {d})")
        else:
            frame.add(f"{self.part(frame, op, 1)} += {d}")

    def put(self, frame: Frame, op: Op) -> None:
        """What was written gets what is in the shadow there, where nothing is left."""
        cell = self.part(frame, op, 2)
        x = op.args[1]
        if self.cotangents.floats(x):
            source = self.writer.resolve(x)
            kind = source.type
            whole, named = self.writer.fresh("q"), self.writer.text.named
            if type(kind) is Kind:
                frame.add(f"{whole} = {named(taken, 'taken')}({cell}, {self.like(x)})")
                self.cotangents.add(frame, x, whole, SURE, spare=True)
            else:
                frame.add(f"{whole} = {cell}")
                rounded = f", {named(kind, kind.__name__)}" if is_narrow(source) else ""
                frame.add(f"{whole} = {named(number, 'number')}({whole}{rounded})")
                self.cotangents.add(frame, x, whole, MAYBE, spare=True)
        frame.add(f"{cell} = 0.0")
