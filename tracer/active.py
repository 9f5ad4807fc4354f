"""The trace that is in progress: one a thread is active."""

from __future__ import annotations

import threading
from typing import Any


class _Active(threading.local):
    tracer: Any = None  # a session.Tracer, or None


active = _Active()


class untraced:
    """For statements that do something of Wengert's own, and trace nothing.

    Not one of `contextlib`, whose classes the traced program may be using: while C code runs, these run traced.
    """

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before, active.tracer = active.tracer, None

    def __exit__(self, *error: object) -> None:
        active.tracer = self.before
