"""What is known of cotangents while reverse code is written, and how one is added to.

Words
-----
frame     the code of a branch or a pass, and of each op whether it has a cotangent there: None for none, MAYBE where
          the variable holds it or None, SURE where it holds it. ZERO is for what every pass of a loop adds to: the
          variable holds -0.0 before the first one; not of an array, whose shape nobody knows then.
guard     an ``if`` that asks whether there is a cotangent, with the lines that hand it on.
spread    a cotangent that is one number all over: the array is made where it is asked for by its name.

There is no cotangent where none flows: a zero in its place would make NaN of an infinite slope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...tracer.fold.region import Kind, Op, is_memory
from .pulls import Given
from .writer import Code, Late, Writer

FLOAT = np.dtype(float)
MAYBE, SURE, ZERO = "maybe", "sure", "zero"


class Spread:
    """A cotangent that is this number all over; the array of them may be ``asked`` for."""

    def __init__(self, number: str) -> None:
        self.number = number
        self.asked = False


class Frame:
    """The cotangents of ``local`` ops begin here; those of the others are the parent's.

    ``unsure`` is there in the frame of a loop's passes: the ops that not every pass adds to. ``level`` is how many rows
    are being read outside of that loop.
    """

    def __init__(
        self,
        parent: Frame | None,
        local: Iterable[Op],
        unsure: set[Op] | None = None,
        level: int = 0,
    ) -> None:
        self.parent = parent
        self.local = set(local)
        self.unsure = unsure
        self.level = level
        self.states: dict[Op, str | None] = {}
        self.names: dict[Op, str] = {}  # of cotangents that lie in variables that nobody else needs
        self.spread: dict[Op, Spread] = {}  # of local ops
        self.touched: dict[Op, None] = {}
        self.shadows: dict[Op, str] = {}  # the variables of shadows that were asked for by identity
        self.asked: set[Op] = (
            set()
        )  # local ops that are meant outside of the guard that they begin in
        self.code = Code()
        self.guard: Guard | None = None  # what the last lines are

    def get(self, x: Op) -> str | None:
        frame = self
        unsure = None  # of the outermost loop between where it began and here
        while x not in frame.states and x not in frame.local and frame.parent is not None:
            unsure = unsure if frame.unsure is None else frame.unsure
            frame = frame.parent
        state = frame.states.get(x)
        if state is None and unsure is not None:
            return MAYBE if x in unsure or type(x.type) is Kind else ZERO
        return state

    def set(self, x: Op, state: str | None) -> None:
        self.states[x] = state
        if x not in self.local:
            self.touched[x] = None

    def name(self, x: Op) -> str | None:
        """The variable of a local op's cotangent, where that is not its own; asked by whoever writes it."""
        frame: Frame | None = self
        inside = False
        while frame is not None:
            inside |= type(frame) is Guarded and x in frame.states
            if x in frame.names or x in frame.local:
                if not inside:
                    frame.asked.add(x)
                if x in frame.spread:
                    frame.spread.pop(x).asked = True
                return frame.names.get(x)
            frame = frame.parent
        return None

    def outside(self, level: int) -> Frame:
        """The outermost frame that is in no loop which reads rows inside of so many."""
        found: Frame = self
        frame: Frame | None = self
        while frame is not None:
            if frame.unsure is not None and frame.level >= level and frame.parent is not None:
                found = frame.parent
            frame = frame.parent
        return found

    def shadow(self, memory: Op) -> str | None:
        """The variable of a shadow, where it was asked for before."""
        frame: Frame | None = self
        while frame is not None:
            if memory in frame.shadows:
                return frame.shadows[memory]
            frame = frame.parent
        return None

    def add(self, line: str | Late, idle: bool = False) -> None:
        self.guard = None
        self.code.add(line, idle=idle)

    def extend(self, other: Code, depth: int = 0) -> None:
        self.guard = None
        self.code.extend(other, depth)


class Guarded(Frame):
    """What stands under an ``if``, where ``x`` has a cotangent."""

    def __init__(self, parent: Frame, x: Op) -> None:
        super().__init__(parent, ())
        self.states[x] = SURE


class Guard:
    """Lines under an ``if`` that asks for a cotangent: ``fresh`` are those that are there if and only if that is.

    ``at`` is where lines before the ``if`` go.
    """

    def __init__(self, frame: Frame, x: Op, at: int) -> None:
        self.inner = Guarded(frame, x)
        self.fresh: set[Op] = set()
        self.at = at


class Cotangents:
    """Writes what adds to cotangents and what asks for them."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.shared: set[Op] = set()  # whose cotangents may begin with an array that others hold

    def is_own(self, x: Op) -> bool:
        """Whether a cotangent is an array that is its own, so that it can be added to in place; to be asked at the end.

        It is looked at by others when all has been added to it, or holds something else from then on.
        """
        return (
            type(x.type) is Kind
            and x.type.ndim > 0
            and x.type.dtype == FLOAT
            and x not in self.shared
        )

    def floats(self, x: Any) -> bool:
        """Whether an operand is a number with a derivative."""
        x = self.writer.resolve(x)
        return self.writer.active(x) and not is_memory(x.type)

    def name(self, frame: Frame, x: Op) -> str:
        """The variable of an op's cotangent."""
        return frame.name(x) or self.writer.cotangent(x)

    def take(self, frame: Frame, x: Any, given: Given) -> None:
        """Add what an operand gets to its cotangent, where it stands if the rest of it is zero."""
        text = given.text
        if given.number is not None and not frame.get(self.writer.resolve(x)):
            self.spread(frame, self.writer.resolve(x), given)
            return
        if given.place is None or not frame.get(self.writer.resolve(x)):
            text = self.writer.fresh("q")
            frame.add(f"{text} = {given.text}")
        self.add(frame, x, text, spare=True, fresh=given.fresh, place=given.place)

    def spread(self, frame: Frame, x: Op, given: Given) -> None:
        """Begin with a number all over: the array need not be made where the op hands the number on as well."""
        assert given.number is not None
        name, made = self.writer.fresh("q"), Spread(given.number)
        frame.add(lambda: f"{name} = {given.text}" if made.asked else "")
        self.add(frame, x, name, spare=True)
        if frame.names.get(x) == name:
            frame.spread[x] = made
        else:
            made.asked = True

    def add(
        self,
        frame: Frame,
        x: Any,
        text: str,
        state: str = SURE,
        spare: bool = False,
        fresh: bool = False,
        place: tuple[str, str] | None = None,
    ) -> None:
        """Add a cotangent to that of an op; ``spare`` says that ``text`` is a variable that nobody else needs.

        It is ``fresh`` if it is an array that nobody else holds. All of it is zero but what stands at a ``place``.
        """
        x = self.writer.resolve(x)
        if not self.floats(x):
            return
        have = frame.get(x)
        if have != SURE and not fresh:
            self.shared.add(x)
        if have is None:
            if spare and x in frame.local and x not in frame.states:
                frame.names[x] = text
            frame.set(x, state)
            if self.name(frame, x) != text:
                frame.add(f"{self.name(frame, x)} = {text}")
            return
        name = self.name(frame, x)
        more = f"{name} += {text}" if place is None else f"{name}[{place[0]}] += {place[1]}"
        if state == SURE and have != MAYBE:
            total = f"{name} = {name} + {text if text.isidentifier() else f'({text})'}"
            frame.add(lambda: more if self.is_own(x) else total)
            frame.set(x, SURE)
            return
        if state == SURE and fresh:
            total = f"{name} = {text} if {name} is None else {name} + {text}"
            frame.add(lambda: f"if {name} is None: {name} = {text}" if self.is_own(x) else total)
            frame.add(lambda: f"else: {more}" if self.is_own(x) else "")
            frame.set(x, SURE)
            return
        if not text.isidentifier():
            made = self.writer.fresh("q")
            frame.add(f"{made} = {text}")
            text = made
        total = f"{name} + {text}"
        if have == MAYBE:
            total = f"{text} if {name} is None else {total}"
        frame.add(f"{f'if {text} is not None: ' if state == MAYBE else ''}{name} = {total}")
        frame.set(x, SURE if state == SURE else have)

    def guarded(self, frame: Frame, x: Op, write: Callable[[Frame], None]) -> None:
        """Write what hands on the cotangent of an op, for where there is one."""
        state = frame.get(x)
        if state is None:
            return
        if state == SURE:
            write(frame)
            return
        guard = frame.guard
        begun = guard is not None and x in guard.fresh
        if guard is None or not begun:
            guard = Guard(frame, x, len(frame.code.lines))
        inner = guard.inner
        inner.code, inner.touched = Code(), {}
        write(inner)
        if not inner.code.lines:
            return
        new = [y for y in inner.touched if frame.get(y) is None]
        for y in new:
            frame.code.lines.insert(guard.at, (0, self.none(frame, y)))
            guard.at += 1
        if not begun:
            frame.code.add(f"if {self.name(frame, x)} is not None:")
        frame.extend(inner.code, 1)
        guard.fresh.update(y for y in new if inner.get(y) == SURE)
        for y in inner.touched:
            frame.set(y, MAYBE if y in new else frame.get(y))
        frame.guard = guard

    def none(self, frame: Frame, x: Op) -> str | Late:
        """The line that begins without a cotangent; what is not meant outside of a guard needs none."""
        line = f"{self.name(Guarded(frame, x), x)} = None"
        return (lambda: line if x in frame.asked else "") if x in frame.local else line
