"""Places in a program: which line of the user's is to blame, and what to tell about it.

Words
-----
site      the place that an instruction of a twin comes from.
library   code of the standard library or of an installed package: the user's own line is further out.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import Any

from . import rewrite
from .tape import NOWHERE, Site

# Where our own code lies: its frames are never the user's.
PACKAGE = os.path.dirname(os.path.abspath(__file__))
OURS = tuple(
    os.path.join(os.path.dirname(PACKAGE), part) for part in ("tracer", "transforms", "rules")
)


def blame(site: Site) -> str:
    """A place in a program, and the line of the user's own that led there through somebody's library."""
    text = f"{site.filename}:{site.lineno}, in {site.function}"
    if not is_library(site.filename):
        return text
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_library(name) and not name.startswith(OURS):
            return f"{text} (called from {name}:{frame.f_lineno}, in {frame.f_code.co_name})"
        frame = frame.f_back  # type: ignore[assignment]
    return text


LIBRARY = tuple(
    {
        os.path.dirname(os.__file__) + os.sep,
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
    }
)


def is_library(filename: str) -> bool:
    """Whether a file belongs to the standard library or to an installed package."""
    return filename.startswith((*LIBRARY, "<")) or filename == ""


def user_site() -> Site:
    """The innermost line of the program that is not Wengert's own."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return NOWHERE
    return Site(frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name)


def user_frame() -> Any:
    """The frame of the traced function that is calling."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename.startswith(OURS) and not rewrite.is_twin(frame.f_code):
        frame = frame.f_back
    return frame


HERE = os.path.dirname(os.path.abspath(__file__))
