"""What the cache keeps of a function whose runs are recorded as passes over one region."""

from __future__ import annotations

import os
from typing import Any

FAILURES = 2  # runs that could not be followed, until a function is left to the flat tape
SWITCH = "WENGERT_FOLD"


def folds() -> bool:
    """Whether regions are recorded at all: ``WENGERT_FOLD=0`` in the environment records flat tapes alone."""
    return os.environ.get(SWITCH, "1").lower() not in ("0", "off", "false", "no")


class Folding:
    """The runs and the program for each kind of arguments; and why the function was given up, if it was."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}  # `tracer.fold.run.Known`
        self.programs: dict[Any, Any] = {}
        self.varying: frozenset[Any] = frozenset()  # paths of integers outside that have changed
        self.failures = 0
        self.why: str | None = None
        self.latest: str | None = None  # why the latest call was not one of these runs

    def varies(self, why: str, path: Any, kinds: Any) -> None:
        """An integer outside has changed: it is an input of the runs that follow, where it can be one."""
        if path in self.varying:
            self.failed(why, kinds)
        self.varying |= {path}
        self.forget(kinds)

    def failed(self, why: str, kinds: Any) -> None:
        """A run could not be followed; what is known may be half of it."""
        self.failures += 1
        self.latest = why
        self.forget(kinds)
        if self.failures >= FAILURES:
            self.why = why

    def forget(self, kinds: Any) -> None:
        """What was found outside is held no longer."""
        known = self.known.pop(kinds, None)
        if known is not None:
            known.outside.reads.close()
