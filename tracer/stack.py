"""What looks at the frames that are calling: the traced function sees those of plain Python, and none of ours."""

from __future__ import annotations

import inspect
import operator
import sys
import traceback
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from . import sights
from .handlers import handles
from .holders import hold
from .kinds import isinstance
from .marks import behind
from .places import is_ours, outer, user_frame
from .protocols import plain_of
from .session import Tracer
from .tape import Site
from .unboxing import lower
from .watchers import bare, shielded


def looked_at(tracer: Tracer, site: Site, what: str) -> None:
    """Note that what the program does depends on who has called it."""
    if tracer.reads is not None:
        tracer.reads.looks = True
        tracer.reads.problem(f"{what} is used", site)


def users(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    """A frame and those around it, each with the line that it has come to."""
    while frame is not None:
        yield frame, frame.f_lineno
        frame = outer(frame)


@handles(sys._getframe)
def _getframe(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> FrameType:
    looked_at(tracer, site, "sys._getframe()")
    if kwargs or len(args) > 1:
        sys._getframe(*args, **kwargs)  # raises what plain Python raises
    frame: FrameType | None = user_frame()
    for _ in range(operator.index(args[0]) if args else 0):
        frame = outer(frame)
        if frame is None:
            raise ValueError("call stack is not deep enough")
    return frame  # type: ignore[return-value]


def _getframemodulename(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> str | None:
    try:
        frame = _getframe(tracer, site, args or tuple(kwargs.values()), {})
    except ValueError:
        return None
    return frame.f_globals.get("__name__")


if hasattr(sys, "_getframemodulename"):
    handles(sys._getframemodulename)(_getframemodulename)


@handles(inspect.currentframe)
def _currentframe(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> FrameType:
    looked_at(tracer, site, "inspect.currentframe()")
    return user_frame()  # type: ignore[no-any-return]


@handles(inspect.stack)
def _stack(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return _getouterframes(tracer, site, (user_frame(), *args), kwargs)


@handles(inspect.getouterframes)
def _getouterframes(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    looked_at(tracer, site, "the stack")
    return [x for x in inspect.getouterframes(*args, **kwargs) if not is_ours(x.frame)]


def extracted(
    tracer: Tracer, site: Site, f: FrameType | None = None, limit: int | None = None
) -> traceback.StackSummary:
    looked_at(tracer, site, "the stack")
    found = traceback.StackSummary.extract(users(f or user_frame()), limit=limit)
    found.reverse()
    return found


@handles(traceback.extract_stack)
def _extract_stack(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return extracted(tracer, site, *args, **kwargs)


@handles(traceback.format_stack)
def _format_stack(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    return extracted(tracer, site, *args, **kwargs).format()


@handles(traceback.print_stack)
def _print_stack(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    given = dict(zip(("f", "limit", "file"), args, strict=False)) | kwargs
    file = lower(tracer, given.pop("file", None))
    found = extracted(tracer, site, **given)
    sights.unseen(tracer, site, print, (file,), lambda: traceback.print_list(found, file=file))


@handles(traceback.walk_stack)
def _walk_stack(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    looked_at(tracer, site, "the stack")
    given: tuple[Any, ...] = (*args, *kwargs.values())
    (frame,) = given
    return users(frame or user_frame())


WARN = ("message", "category", "stacklevel", "source")


@handles(warnings.warn)
def _warn(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
    """``warnings.warn`` names a line by counting frames, of which some are ours."""
    looked_at(tracer, site, "warnings.warn")
    origin = behind(tracer, site, args, kwargs)
    given = {k: lower(tracer, x) for k, x in (dict(zip(WARN, args, strict=False)) | kwargs).items()}
    message, category = given.get("message"), given.get("category")
    skipped = given.get("skip_file_prefixes", ())
    known = {*WARN, "skip_file_prefixes"} if sys.version_info >= (3, 12) else {*WARN}
    if isinstance(message, Warning):
        category = type(message)
    category = UserWarning if category is None else category
    if (
        "message" not in given
        or len(args) > len(WARN)
        or not given.keys() <= known
        or not (isinstance(category, type) and issubclass(category, Warning))
        or not (isinstance(skipped, tuple) and all(isinstance(x, str) for x in skipped))
    ):
        warnings.warn(*args, **kwargs)  # type: ignore[misc]  # raises what plain Python raises
    if origin is not None:  # whoever records the warning has it
        message = message if isinstance(message, Warning) else category(message)
        hold(tracer.texts, message, origin)
    level = operator.index(given.get("stacklevel", 1))
    frame: FrameType | None = user_frame()
    for _ in range(max(level, 2 if skipped else 1) - 1):
        frame = outer(frame)
        while frame is not None and is_skipped(frame.f_code.co_filename, skipped):
            frame = outer(frame)
    scope = vars(sys) if frame is None else frame.f_globals
    warnings.warn_explicit(
        message,  # type: ignore[arg-type]
        category,
        "sys" if frame is None else frame.f_code.co_filename,
        1 if frame is None else frame.f_lineno,
        str(scope.get("__name__") or "<string>"),
        scope.setdefault("__warningregistry__", {}),
        source=given.get("source"),
    )


def is_skipped(filename: str, skipped: tuple[str, ...]) -> bool:
    """Whether a warning never names a file: it belongs to the import system, or to those that are passed over."""
    return filename.startswith(skipped) or ("importlib" in filename and "_bootstrap" in filename)


def watcher(set_it: Any, get_it: Any) -> None:
    """Say how watchers are set, which then do not see our frames, and how they are asked for."""

    def setter(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> None:
        looked_at(tracer, site, f"sys.{set_it.__name__}()")
        if len(args) != 1 or kwargs:
            set_it(*args, **kwargs)  # raises what plain Python raises
        set_it(shielded(plain_of(args[0])))

    def getter(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
        looked_at(tracer, site, f"sys.{get_it.__name__}()")
        return bare(get_it(*args, **kwargs))

    handles(set_it)(setter)
    handles(get_it)(getter)


watcher(sys.settrace, sys.gettrace)
watcher(sys.setprofile, sys.getprofile)
