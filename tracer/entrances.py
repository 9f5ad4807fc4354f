"""Entrances: functions of ours that people call, and that an exception leaves without our frames.

A tape is one of the first things that are imported, and what folds tracebacks one of the last; so that is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from . import meaning

F = TypeVar("F", bound=Callable[..., Any])


def entrance(fn: F) -> F:
    """Mark a function of ours that people call: an exception that leaves it shows the user's frames alone.

    To raise an exception again does not add the frame that does so.
    """

    @functools.wraps(fn)
    def enter(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except BaseException as error:
            meaning.tracebacks.fold(error)
            raise

    return enter  # type: ignore[return-value]
