"""What is held: a thing that may hold traced values where the tracer cannot follow them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .arrays import current
from .box import ArrayBox
from .tape import Op


class Held:
    """On a thing that may hold traced values where the tracer cannot follow them: what is read depends on these ops."""

    def __init__(
        self,
        name: str,
        current: Callable[[], list[Op]],
        thing: Any,
        arrays: Iterable[ArrayBox] = (),
        reason: str | None = None,
    ) -> None:
        self.name = name
        self.current = current
        self.thing = thing  # as long as it lives, its id is no other's
        self.arrays = arrays  # that it may have kept, and may write to
        # What to tell who asks for a derivative, where it is not the thing that gives.
        self.reason = reason


def hold(tracer: Any, held: Held) -> None:
    """What is read from a thing depends, from now on, on what it holds."""
    tracer.readable[id(held.thing)] = held
    tracer.holders[id(held.thing)] = (held.thing, held)


def lent_by(tracer: Any, box: ArrayBox) -> ArrayBox:
    """An array in memory that belongs to something else, through which it can be read."""
    memory = box.memory
    if memory.lent and id(memory.owner) not in tracer.readable:

        def current_ops() -> list[Op]:
            return [current(x) for x in memory.boxes] if memory.writes else []

        name = type(memory.owner).__name__
        hold(tracer, Held(name, current_ops, memory.owner))
    return box
