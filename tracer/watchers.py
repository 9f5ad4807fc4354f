"""Trace and profile functions of the user's own, which look at everything that runs.

Words
-----
watcher   a function that CPython calls whenever something begins or ends (``sys.settrace``, ``sys.setprofile``).
shield    what stands for one that is set inside a traced function: it does not see our own frames.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import rewrite
from .places import is_library, is_ours


class Shield:
    """A watcher that is not shown frames of ours."""

    __slots__ = ("watcher",)

    def __init__(self, watcher: Callable[..., Any]) -> None:
        self.watcher = watcher

    def __call__(self, frame: Any, event: str, arg: Any) -> Any:
        return None if is_hidden(frame) else self.watcher(frame, event, arg)


def is_hidden(frame: Any) -> bool:
    """Whether a frame is ours, or one of a library that our own code makes use of."""
    while frame is not None and not is_ours(frame):
        if rewrite.is_twin(frame.f_code) or not is_library(frame.f_code.co_filename):
            return False
        frame = frame.f_back
    return True


def shielded(watcher: Any) -> Any:
    return watcher if watcher is None or type(watcher) is Shield else Shield(watcher)


def bare(watcher: Any) -> Any:
    return watcher.watcher if type(watcher) is Shield else watcher


def uncover() -> None:
    """A run has ended: watchers that it has set see everything from now on."""
    if type(tracing := sys.gettrace()) is Shield:
        sys.settrace(tracing.watcher)
    if type(profiling := sys.getprofile()) is Shield:
        sys.setprofile(profiling.watcher)


class Suspended:
    """A profile function of ours, and the user's whose place it takes, which is told what ours is told."""

    __slots__ = ("before", "look", "told")

    def __init__(self, look: Callable[..., Any]) -> None:
        self.look = look
        self.before: Any = sys.getprofile()
        before = self.before
        self.told: Any = before.told if type(before) is Suspended else before

    def __call__(self, frame: Any, event: str, arg: Any) -> None:
        if callable(self.told):
            self.told(frame, event, arg)
        self.look(frame, event, arg)

    def begin(self) -> None:
        sys.setprofile(self)

    def end(self) -> None:
        if self.before is None or callable(self.before):
            sys.setprofile(self.before)
        else:  # before CPython 3.12, a profiler written in C
            sys.setprofile(None)
            self.before.enable()
