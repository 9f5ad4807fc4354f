"""How deep recursion may go: as deep as in plain Python, though every call has frames of ours beside it.

Words
-----
limit     what ``sys.getrecursionlimit()`` gives outside; while functions are traced CPython's own is a multiple of it.
user's    a frame that plain Python would have as well.
room      the frames that walks of ours may have beside the limit: they go as deep as values are nested.

CPython counts our frames with the others, four to nine for one of the user's; where a generator steps another there
are none, and the limit would come too late.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading

from .kinds import isinstance
from .places import is_ours

FRAMES = 6 if sys.version_info >= (3, 12) else 6.2  # CPython 3.11 counts some of the frames twice
LARGEST = int(2**31 / FRAMES)  # the limit is an int of C
ROOM = 100_000  # of which a walk takes some five for a level; calls from Python to Python take no C stack
EVERY = 16  # so many generators may be begun before the frames are looked at again


class Depth:
    """The recursion limit of the process, for all traced runs that go on in it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.runs = 0
        self.rooms = 0
        self.limit = 0
        self.steps = 0

    def enter(self, room: bool = False) -> None:
        with self.lock:
            if not self.runs and not self.rooms:
                self.limit = sys.getrecursionlimit()
            self.rooms += room
            self.runs += not room
            self.scale()

    def scale(self) -> None:
        limit = min(self.limit, LARGEST - 1) * FRAMES if self.runs else self.limit
        # A program may have put something else in the place of the builtin ``int``.
        sys.setrecursionlimit(math.trunc(min(limit + ROOM, 2**31 - 1) if self.rooms else limit))

    def leave(self, room: bool = False) -> None:
        with self.lock:
            self.rooms -= room
            self.runs -= not room
            self.scale()

    def get(self) -> int:
        """The limit as the user knows it."""
        with self.lock:  # another thread may begin a run between the question and CPython's answer
            return self.limit if self.runs or self.rooms else sys.getrecursionlimit()

    def set(self, limit: int) -> None:
        """Set the limit from inside a traced function."""
        with self.lock:
            if not isinstance(limit, int) or not 1 <= limit < LARGEST:
                sys.setrecursionlimit(limit)  # raises what plain Python raises
            if limit <= (deep := users_frames()):
                raise RecursionError(
                    f"cannot set the recursion limit to {limit} at the recursion depth {deep}: the limit is too low"
                )
            self.limit = limit
            self.scale()

    def check(self) -> None:
        """Raise RecursionError where the user's frames alone are too many: a generator is about to be stepped."""
        self.steps += 1
        if self.steps % EVERY:
            return
        try:
            sys._getframe(self.limit)
        except ValueError:
            return
        if users_frames() >= self.limit:
            raise RecursionError("maximum recursion depth exceeded")


depth = Depth()


class Room(contextlib.ContextDecorator):
    """The context of a walk through values, in which no code of the user's is run."""

    def __enter__(self) -> None:
        depth.enter(True)

    def __exit__(self, *error: object) -> None:
        depth.leave(True)


room = Room()


def recursion_limit() -> int:
    """``sys.getrecursionlimit``, whether anything is traced or not."""
    return depth.get()


def users_frames() -> int:
    """How many frames of the user's lie on the stack."""
    frame, count = sys._getframe(1), 0
    while frame is not None:
        count += not is_ours(frame)
        frame = frame.f_back  # type: ignore[assignment]
    return count
