"""Lists of the outside that a function appends to without looking at them: ``losses.append(x)``.

Words
-----
tail     what the run has appended to a list outside that was not entered: nobody has looked at what it holds.
blind    of a use of a variable: nothing but a call of ``append``, which the bytecode says before anything runs.

A log grows at each call. If its elements were entered, each call would take longer than the one before, and no program
could answer twice, for the length of a list that is looked at is guarded.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from typing import Any

from . import border, meaning
from .effects import effect
from .errors import TraceError
from .intrinsic import intrinsic
from .kinds import MISSING, isinstance
from .places import blame, user_site
from .record import has_box, stored
from .session import Tracer
from .tape import External
from .through import in_time, write_through


class Tail:
    """Stands for a list outside of which only ``append`` is called; ``shadow`` is there once it was entered."""

    __slots__ = ("name", "original", "places", "shadow", "size", "tracer", "values", "waiting")

    def __init__(self, tracer: Tracer, name: str, original: list[Any]) -> None:
        self.tracer, self.name, self.original = tracer, name, original
        self.size = len(original)
        self.values: list[Any] = []
        # Where each is to stand, for others may append in between, and what stands for it there; MISSING if it waits.
        self.places: list[tuple[int, Any]] = []
        self.waiting = 0  # how many do
        self.shadow: list[Any] | None = None

    @intrinsic
    def append(self, value: Any, /) -> None:
        """Append, to the shadow if there is one by now."""
        tracer = self.tracer
        if tracer.loops is not None:
            tracer.loops.write()
        target = External(self.name, self.original)
        effect(tracer, user_site(), list.append, (target, value), {})
        if self.shadow is None:
            self.values.append(value)
            self.write_through(value)
            return
        for shadow in (self.shadow, *border.siblings(tracer, self.shadow)):
            shadow.append(value)
        write_through(tracer, self.shadow, list.append, (value,), {}, True)

    def write_through(self, value: Any) -> None:
        """Append to the list itself."""
        place, plain = len(self.original) + self.waiting, MISSING

        def append() -> None:
            nonlocal plain
            lowered = meaning.unboxing.lower(self.tracer, value)
            self.original.append(lowered)
            plain = lowered

        if self.tracer.tape.undo is None and not self.waiting:
            in_time(self.tracer, self.original, append)
        self.waiting += plain is MISSING
        self.places.append((place, plain))

    def others(self, now: list[Any]) -> list[Any]:
        """What the list holds besides, whoever put it there."""
        own = dict([x for x in self.places if x[1] is not MISSING])
        if not all(place < len(now) and now[place] is plain for place, plain in own.items()):
            self.forget()
            own = {}
        rest = [x for i, x in enumerate(now) if i not in own]
        if len(rest) != self.size and self.tracer.reads is not None:
            self.tracer.reads.problem("C code changes a list")
        return rest

    def forget(self) -> None:
        """Somebody has moved what was appended, or removed it: it is known by its place no more."""
        if has_box(self.values) and not border.is_constant(
            self.tracer, stored(self.values, []), {}
        ):
            raise TraceError(
                f"{blame(user_site())}: code that cannot be traced removes or moves elements of {self.name}, which "
                "holds traced values, so their gradient would be lost\nlet that code only append to the list, or "
                "change it in the traced function"
            )
        kept = [i for i, (_, plain) in enumerate(self.places) if plain is MISSING]
        self.values = [self.values[i] for i in kept]
        self.places = [self.places[i] for i in kept]


def tail_of(tracer: Tracer, name: str, value: Any) -> Tail | None:
    """The tail of a list that lies outside; None for one that was entered already, and for anything else."""
    if (
        type(value) is not list
        or id(value) in tracer.shadows_of
        or id(value) in tracer.originals
        or id(value) in tracer.joined
    ):
        return None
    tail = tracer.tails.get(id(value))
    if tail is None:
        tail = tracer.tails[id(value)] = Tail(tracer, name, value)
    return tail


def grown(tracer: Tracer, original: Any, shadow: Any) -> None:
    """A list is entered now: its shadow takes over what was appended to its tail."""
    tail = tracer.tails.get(id(original))
    if tail is not None and tail.shadow is None:
        for value, (place, _) in zip(tail.values, tail.places, strict=True):
            shadow.insert(place, value)
        tail.values.clear()
        tail.places.clear()
        tail.shadow = shadow
        tracer.before[id(shadow)] = list(original)


def settle_tails(tracer: Tracer) -> None:
    """Append to the lists what was appended to their tails, and was not appended there at once."""
    for tail in [*tracer.tails.values()]:
        for x, (place, held) in zip(tail.values, tail.places, strict=True):
            plain = meaning.unboxing.lower(tracer, x, {}, True)
            if held is MISSING:
                tail.original.insert(place, plain)
        tail.values.clear()
        tail.places.clear()


def untouched(tracer: Tracer, value: Any, now: Any) -> Any:
    """What a container holds that was not appended to its tail."""
    tail = tracer.tails.get(id(value))
    return now if tail is None or not tail.values else tail.others(now)


@functools.lru_cache(maxsize=4096)
def is_blind(code: types.CodeType, name: str) -> bool:
    """Whether all that a function does with a variable of its closure is to call its ``append``."""
    if any(name in x.co_freevars for x in code.co_consts if isinstance(x, types.CodeType)):
        return False
    instructions = [x for x in dis.get_instructions(code) if x.opname not in ("CACHE", "NOP")]
    for one, after in zip(instructions, [*instructions[1:], None], strict=True):
        if one.argval != name or one.opname in ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD"):
            continue
        if one.opname != "LOAD_DEREF" or after is None or not is_append(after):
            return False
    return True


def is_append(instruction: dis.Instruction) -> bool:
    """Whether an instruction loads ``append`` in order to call it."""
    if instruction.argval != "append":
        return False
    if sys.version_info < (3, 12):
        return instruction.opname == "LOAD_METHOD"
    return instruction.opname == "LOAD_ATTR" and bool((instruction.arg or 0) & 1)
