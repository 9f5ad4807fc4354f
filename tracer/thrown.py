"""Exceptions from outside that the traced function may raise: a ``raise`` leaves in them what the run must not.

It extends the traceback by frames of the run, and sets what was handled meanwhile as the context, or a cause. That
belongs to the world outside, which gets plain values in it; no program does the same, so such a run is not kept.
"""

from __future__ import annotations

import operator
from functools import partial
from types import FrameType
from typing import Any

from ..rules.words import with_article
from . import tracebacks
from .session import Tracer
from .unboxing import lower, lower_object

# Of the class itself, for a class of the user's may have ways of its own.
LEFT = [
    vars(BaseException)[name]
    for name in ("__traceback__", "__context__", "__cause__", "__suppress_context__")
]


def left_in(error: BaseException) -> list[Any]:
    """What a ``raise`` changes of an exception."""
    return [member.__get__(error) for member in LEFT]


def put_back(error: BaseException, before: list[Any]) -> None:
    for member, value in zip(LEFT, before, strict=True):
        member.__set__(error, value)


def note(tracer: Tracer, error: BaseException) -> None:
    """An exception from outside is met, which may be raised from now on."""
    if id(error) in tracer.errors:
        return
    before = left_in(error)
    tracer.errors[id(error)] = error, before
    if tracer.tape.undo is not None:
        tracer.tape.undo.append(partial(put_back, error, before))


def settle(tracer: Tracer, outer: Tracer | None, frame: FrameType) -> None:
    """The run has ended whose first frame is ``frame``: what it has left in exceptions is made plain.

    Where another run goes on around it, that one does so: it may ask for values of its own.
    """
    raised = {
        key: known
        for key, known in tracer.errors.items()
        if any(map(operator.is_not, left_in(known[0]), known[1]))
    }
    if outer is not None:
        outer.errors.update({key: x for key, x in raised.items() if key not in outer.errors})
    memo: dict[int, Any] = {}
    for error, _ in raised.values():
        if tracer.reads is not None:
            name = with_article(type(error).__name__)
            tracer.reads.problem(f"{name} from outside is raised")
        if outer is not None:
            continue
        if not tracebacks.full():
            tracebacks.fold_one(error)
        for one in tracebacks.shown(error):
            if id(one) in tracer.errors:
                tracebacks.make_plain(one, lambda x: lower(tracer, x, memo, True), frame)
            elif id(one) not in memo and tracebacks.is_of(one, frame):
                lower_object(tracer, one, memo, True)
