"""A mapping that forgets what was not asked for lately, so that it does not grow with every new shape of arrays.

Words
-----
young   the entries that were made or asked for since the latest turn.
old     those of the turn before; one that is asked for is young again, the others go at the next turn.
turn    as many young entries as there may be: they are the old ones from now on.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """At least the ``size`` entries that were asked for last are kept, and at most twice as many."""

    __slots__ = ("old", "size", "young")

    def __init__(self, size: int) -> None:
        self.size = size
        self.young: dict[Hashable, Value] = {}
        self.old: dict[Hashable, Value] = {}

    def __len__(self) -> int:
        return len(self.young) + len(self.old)

    def get(self, key: Hashable) -> Value | None:
        found = self.young.get(key)
        if found is None:
            found = self.old.pop(key, None)
            if found is not None:
                self[key] = found
        return found

    def __setitem__(self, key: Hashable, value: Value) -> None:
        if len(self.young) >= self.size:
            self.young, self.old = {}, self.young
        self.young[key] = value

    def clear(self) -> None:
        self.young, self.old = {}, {}
