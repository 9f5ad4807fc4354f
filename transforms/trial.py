"""A trial: a program is run on its own, to see whether it answers."""

from __future__ import annotations

from typing import Any

from .programs import Program


class Trial:
    """Stands for a state while a program is tried."""

    __slots__ = ("drawn", "error", "f", "hits")

    def __init__(self, f: Any) -> None:
        self.f = f
        self.hits = 0.0
        self.error: BaseException | None = None
        self.drawn: list[Any] = []

    def missed(self, program: Program, error: BaseException, drawn: list[Any], *given: Any) -> None:
        self.error, self.drawn = error, drawn
