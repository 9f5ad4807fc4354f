"""What an exception shows of the frames that it came through: the user's alone, and in them plain values.

Words
-----
fold        take our own frames out of a traceback (`entrances` has those who do it).
variables   what the frames of twins hold, boxes among it, when a run has ended with an exception.

With ``WENGERT_TRACEBACK=full`` in the environment everything is left as it is.
"""

from __future__ import annotations

import ctypes
import dis
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from . import rewrite
from .habits import advise
from .kinds import isinstance
from .places import is_ours

VERSION = sys.version_info[:2]
CO_OPTIMIZED = 0x1
DEEP = "maximum recursion depth exceeded"
# On CPython 3.11 the text tells what was done at last, which a frame of ours may have done.
DONE = (
    "while calling a Python object",
    "in comparison",
    "in __instancecheck__",
    "in __subclasscheck__",
)
PUSH_EXC_INFO = dis.opmap["PUSH_EXC_INFO"]


def full() -> bool:
    """Whether tracebacks are to show everything."""
    return os.environ.get("WENGERT_TRACEBACK", "").lower() == "full"


def fold(error: BaseException) -> None:
    """Take our frames out of the traceback of an exception, and of all those that it is shown with."""
    advise(error)
    if not full():
        for one in shown(error):
            fold_one(one)


def fold_one(error: BaseException) -> None:
    """Take our frames out of the traceback of this very exception."""
    traceback = error.__traceback__
    frames = list(steps(traceback))
    users = [step for step in frames if not is_ours(step.tb_frame)]
    if VERSION < (3, 12) and type(error) is RecursionError and frames[-1:] != users[-1:]:
        if str(error) in [f"{DEEP} {done}" for done in DONE]:
            error.args = (DEEP,)
    if len(users) < len(frames):
        folded: TracebackType | None = None
        for step in reversed(users):
            line = -1 if step.tb_lineno is None else step.tb_lineno  # some instructions have none
            folded = TracebackType(folded, step.tb_frame, step.tb_lasti, line)
        error.__traceback__ = folded


def fold_caught(error: BaseException) -> None:
    """The same, when the traced function has caught it, in the first frame of the traceback."""
    traceback = error.__traceback__
    if traceback is not None and traceback.tb_next is not None and not full():
        fold_one(error)


def steps(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def shown(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, its causes and contexts, and the members of groups."""
    todo, seen = [error], set()
    while todo:
        one = todo.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            todo += [one.__cause__, one.__context__]
            if isinstance(one, BaseExceptionGroup):
                todo += one.exceptions


def waiting(generators: Iterable[Any]) -> list[FrameType]:
    """Where generators wait in an ``except``, a ``finally`` or a ``with``, which is reached when they are closed.

    Given weak references to them.
    """
    frames = [x.gi_frame for reference in generators if (x := reference()) is not None]
    return [frame for frame in frames if frame is not None and has_handler(frame)]


def is_caught(generators: Iterable[Any]) -> bool:
    """Whether what the traced program calls here stands in the reach of an ``except``, a ``finally`` or a ``with``.

    That may be one of its own, or of one of the generators that wait here.
    """
    if waiting(generators):
        return True
    frame: FrameType | None = sys._getframe(1)
    caught = within = False
    while frame is not None:
        if not is_ours(frame):
            within = within or has_handler(frame)
            if rewrite.is_twin(frame.f_code):  # what lies further out may not belong to the program
                caught = within
        frame = frame.f_back
    return caught


def has_handler(frame: FrameType) -> bool:
    """Whether code of a frame begins to run where its call fails; not that which clears up, and raises on."""
    code = frame.f_code
    if not code.co_exceptiontable:
        return False
    return any(
        x.start <= frame.f_lasti < x.end and code.co_code[x.target] == PUSH_EXC_INFO
        for x in dis._parse_exception_table(code)  # type: ignore[attr-defined]
    )


# ------------------------------------------------------------------------------------------- variables


def make_plain(
    error: BaseException, plain: Callable[[Any], Any], outermost: FrameType | None = None
) -> None:
    """Put ``plain(value)`` in the place of each value that the frames of an exception hold.

    If ``outermost`` is given, in those that were called from there: others may be running, in another thread.
    """
    if not full():
        for step in steps(error.__traceback__):
            if outermost is not None and not is_within(step.tb_frame, outermost):
                continue
            if rewrite.is_twin(step.tb_frame.f_code):
                change_variables(step.tb_frame, plain)


def is_within(frame: FrameType, outermost: FrameType) -> bool:
    """Whether a frame was called from another one, by whatever way; or by a generator, which has no caller left."""
    while frame is not outermost and frame.f_back is not None:
        frame = frame.f_back
    return frame is outermost or rewrite.is_twin(frame.f_code)


def is_of(error: BaseException, outermost: FrameType) -> bool:
    """Whether an exception comes from frames that were called from there; or from none at all."""
    trace = error.__traceback__
    return trace is None or any(is_within(step.tb_frame, outermost) for step in steps(trace))


def change_variables(frame: FrameType, plain: Callable[[Any], Any]) -> None:
    """Change the variables of a frame that is no longer running."""
    code = frame.f_code
    held, changed = frame.f_locals, {}
    if not code.co_flags & CO_OPTIMIZED and not isinstance(held, dict):
        return
    for name in names_of(code) if code.co_flags & CO_OPTIMIZED else [*held]:
        try:
            value = held[name]
            new = plain(value)
        except Exception:  # it has no value, or one that cannot be opened: it is shown as it is
            continue
        if new is not value:
            changed[name] = new
    if not changed:
        return
    put = dict.__setitem__ if isinstance(held, dict) else type(held).__setitem__
    for name, value in changed.items():
        put(held, name, value)
    if VERSION < (3, 13) and code.co_flags & CO_OPTIMIZED and to_frame is not None:
        to_frame(frame, 0)


def names_of(code: CodeType) -> list[str]:
    """The variables that can be asked for; one by one, for on CPython 3.13.0 to list them may crash."""
    names = dict.fromkeys((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
    if VERSION == (3, 13):  # as it crashes on a cell that a comprehension has put aside
        clears = "LOAD_FAST_AND_CLEAR"
        cleared = {i.arg for i in dis.get_instructions(code) if i.opname == clears}
        for i in cleared:
            assert i is not None
            if i >= len(code.co_varnames) or code.co_varnames[i] in code.co_cellvars:
                names.pop(code._varname_from_oparg(i), None)  # type: ignore[attr-defined]
    return list(names)


def _to_frame() -> Callable[[FrameType, int], Any] | None:
    """What carries ``f_locals`` over to the frame, before they became one in CPython 3.13."""
    try:
        function = ctypes.pythonapi.PyFrame_LocalsToFast
    except AttributeError:  # another Python; boxes show themselves by the values in them
        return None
    function.argtypes, function.restype = (ctypes.py_object, ctypes.c_int), None
    return function


to_frame = _to_frame() if VERSION < (3, 13) else None
