"""The trace that is in progress: one a thread is active."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class _Active(threading.local):
    tracer: Any = None  # a session.Tracer, or None


active = _Active()


@contextlib.contextmanager
def untraced() -> Iterator[None]:
    """For statements that do something of Wengert's own, and trace nothing."""
    before, active.tracer = active.tracer, None
    try:
        yield
    finally:
        active.tracer = before
