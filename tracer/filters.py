"""Python's filters of warnings while functions are traced: they see the user's module and line, not ours.

NumPy's warnings belong to whatever called NumPy, which is code of ours. So a filter that comes before all others lets
all of these through to what shows warnings; and that gives them again, where the user's code is.
"""

from __future__ import annotations

import contextlib
import re
import threading
import types
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

OWN_MODULES = re.compile(r"wengert\.(tracer|rules|transforms)\.")
LET_THROUGH: Any = ("always", None, Warning, OWN_MODULES, 0)
# What may stand between a warning and who has asked for it.
LIBRARIES = re.compile(r"(numpy|scipy|warnings|wengert\.tracer\.run)\b")
# While a call is recorded, which is done again: what warns there is not to count as told.
RECORDED: Any = ("always", None, Warning, re.compile(r"(numpy|scipy)\."), 0)

# What holds the filter; another list is in use where warnings are caught.
changed: list[list[Any]] = []


def put_first() -> None:
    """Let the filter come before all of the user's. None of what has been warned of is to be told again for it."""
    filters: Any = warnings.filters
    before = 1 if filters and is_for_programs(filters[0]) else 0
    if filters[before : before + 1] != [LET_THROUGH]:
        remove(filters)
        filters.insert(before, LET_THROUGH)
        if not any(filters is x for x in changed):
            changed.append(filters)


def is_for_programs(one: Any) -> bool:
    """Whether a filter is the one that stands first for the sake of programs."""
    return getattr(one[3], "pattern", "").startswith("wengert program")


def take_out() -> None:
    """The filter goes when nothing is traced."""
    for filters in (*changed, warnings.filters):
        remove(filters)
    changed.clear()


def remove(filters: Any) -> None:
    with contextlib.suppress(ValueError):
        filters.remove(LET_THROUGH)


def is_let_through(shown: warnings.WarningMessage, frame: Any) -> bool:
    """Whether the user's filters have yet to see a warning: that is of a module of ours, not of a line alone."""
    place = shown.filename, shown.lineno
    while frame is not None and (frame.f_code.co_filename, frame.f_lineno) != place:
        frame = frame.f_back
    return frame is not None and bool(OWN_MODULES.match(frame.f_globals.get("__name__", "")))


UNHEARD: Any = object()  # where nothing is recorded, but NumPy is asked for our own ends


class _Recording(threading.local):
    reads: Any = None  # of the call that this thread records, where it does


recording = _Recording()


@contextlib.contextmanager
def noted(reads: Any) -> Iterator[None]:
    """While a call is recorded no warning is given, as it is traced afterwards; but that there was one is noted."""
    filters: Any = warnings.filters
    place = filters.index(LET_THROUGH) + 1 if LET_THROUGH in filters else 0
    filters.insert(place, RECORDED)
    recording.reads = reads
    try:
        yield
    finally:
        recording.reads = None
        with contextlib.suppress(ValueError):  # another thread may have begun anew
            filters.remove(RECORDED)


def is_asked_by_us(frame: Any) -> bool:
    """Whether it is code of ours that has called what warns, in NumPy or SciPy, and not a pullback of the user's."""
    while frame is not None and LIBRARIES.match(frame.f_globals.get("__name__") or ""):
        frame = frame.f_back
    name = "" if frame is None else frame.f_globals.get("__name__") or ""
    return not name or bool(OWN_MODULES.match(name))  # what is compiled from a tape has no name


def is_of_numbers(shown: warnings.WarningMessage) -> bool:
    """Whether a warning is of a floating-point event, as NumPy tells of all of them."""
    return shown.category is RuntimeWarning and " encountered in " in str(shown.message)


def is_shown_by_users() -> bool:
    """Whether code of the user's shows warnings: what it does a traced run has done, and no program repeats it."""
    return warnings.showwarning.__module__ not in ("warnings", "_py_warnings")


def hands_on(modes: Iterable[Any]) -> bool:
    """Whether NumPy calls the user's code where there is a floating-point event, as it shows warnings elsewhere."""
    return not {"call", "log"}.isdisjoint(modes)


def give_again(shown: warnings.WarningMessage, frame: types.FrameType) -> None:
    """Warn as if the code in a frame had called NumPy."""
    space = frame.f_globals
    warnings.warn_explicit(
        shown.message,
        shown.category,
        frame.f_code.co_filename,
        frame.f_lineno or 0,
        space.get("__name__") or "<string>",
        space.setdefault("__warningregistry__", {}),
        source=shown.source,
    )
