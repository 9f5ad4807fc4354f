"""``breakpoint()`` and ``pdb`` in a traced function: they stand in it, and see plain values.

Words
-----
hook    what ``breakpoint`` calls: ``sys.breakpointhook``, which asks the environment for PYTHONBREAKPOINT.
view    stands for the frame of a twin while an expression is evaluated in it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Iterator
from types import FrameType, FunctionType
from typing import Any

from . import meaning, rewrite
from .box import BOXES
from .handlers import handles
from .kinds import is_one_of, isinstance
from .places import is_ours, outer, user_frame
from .protocols import plain_of
from .session import Tracer
from .structure import is_container
from .tape import Site
from .tracebacks import names_of
from .watchers import is_hidden

ENTRIES = frozenset({("pdb", "set_trace"), ("pdb", "Pdb.set_trace"), ("bdb", "Bdb.set_trace")})


@handles(breakpoint)
def _breakpoint(tracer: Tracer, site: Site, args: Any, kwargs: Any) -> Any:
    hook: Any = sys.breakpointhook
    name = os.environ.get("PYTHONBREAKPOINT") or "pdb.set_trace"
    if sys.flags.ignore_environment:
        name = "pdb.set_trace"
    if hook is sys.__breakpointhook__ and name == "pdb.set_trace":
        hook = importlib.import_module("pdb").set_trace
        if type(hook) is FunctionType and (hook.__module__, hook.__qualname__) in ENTRIES:
            return stop(tracer, site, hook, args, kwargs)
    if (
        hook is not sys.__breakpointhook__
    ):  # called like any function, for it may look at who calls it
        if tracer.reads is not None:
            tracer.reads.problem("sys.breakpointhook is called", site)
        return meaning.calls.call(tracer, site, hook, args, kwargs)
    return meaning.opaque.opaque(tracer, site, hook, args, kwargs)


def stop(tracer: Tracer, site: Site, fn: Any, args: Any, kwargs: Any) -> None:
    """Enter the debugger in the frame of the traced function: ``pdb.set_trace``, or the method of a debugger."""
    if tracer.reads is not None:
        tracer.reads.problem("the debugger is entered", site)
    pdb: Any = importlib.import_module("pdb")
    frame = None
    if "." in fn.__qualname__:
        debugger, *rest = args
        frame = rest[0] if rest else kwargs.pop("frame", None)
        if not isinstance(debugger, pdb.Pdb):
            fn(debugger, frame or user_frame(), *rest[1:], **kwargs)
            return
    else:
        debugger = getattr(pdb.Pdb, "_last_pdb_instance", None)
        if debugger is None:
            modes = {"mode": "inline", "colorize": True} if sys.version_info >= (3, 14) else {}
            debugger = pdb.Pdb(**modes)
        header = kwargs.pop("header", None)
        if args or kwargs.keys() - ({"commands"} if modes_of(pdb) else set()):
            fn(*args, **kwargs)  # raises what plain Python raises
        if header is not None:
            debugger.message(header)
    if not isinstance(debugger, InTwins):
        debugger.__class__ = in_twins(type(debugger))  # type: ignore[arg-type]
    debugger.set_trace(frame or user_frame(), **kwargs)


def modes_of(pdb: Any) -> bool:
    return hasattr(pdb.Pdb, "_last_pdb_instance")


@functools.cache
def in_twins(cls: Any) -> Any:
    """The class of a debugger that knows about twins."""
    return type(cls.__name__, (InTwins, cls), {"__module__": cls.__module__})


class InTwins:
    """What a `pdb.Pdb` does otherwise where frames of ours lie on the stack, and boxes in variables."""

    curframe: Any
    added: dict[FrameType, dict[str, Any]]  # what was set in a frame, which may be new there

    # Frames

    def get_stack(self, f: Any, t: Any) -> Any:
        stack, index = super().get_stack(f, t)  # type: ignore[misc]
        users = [x for x in stack if not is_hidden(x[0])]
        added = vars(self).get("added", {})
        self.added = {x[0]: added[x[0]] for x in users if x[0] in added}
        gone = sum(is_hidden(x[0]) for x in stack[: index + 1])
        return users, max(index - gone, 0)

    def stop_here(self, frame: FrameType) -> bool:
        return not is_hidden(frame) and super().stop_here(frame)  # type: ignore[misc, no-any-return]

    def _set_stopinfo(self, stopframe: Any, *rest: Any, **options: Any) -> None:
        if stopframe is not None and is_ours(stopframe):
            stopframe = outer(stopframe)
        super()._set_stopinfo(stopframe, *rest, **options)  # type: ignore[misc]

    # Values

    def user_return(self, frame: FrameType, return_value: Any) -> None:
        super().user_return(frame, plain_of(return_value))  # type: ignore[misc]

    def _getval(self, arg: str) -> Any:
        with self.plainly(copies=True):
            return super()._getval(arg)  # type: ignore[misc]

    def _getval_except(self, arg: str, frame: Any = None) -> Any:
        if frame is not None and rewrite.is_twin(frame.f_code):
            frame = View(frame, self.variables(frame, copies=True))
        with self.plainly(copies=True):
            return super()._getval_except(arg, frame)  # type: ignore[misc]

    def default(self, line: str) -> Any:
        with self.plainly(copies=False):
            return super().default(line)  # type: ignore[misc]

    def do_interact(self, arg: str) -> Any:
        with self.plainly(copies=False):
            return super().do_interact(arg)  # type: ignore[misc]

    @contextlib.contextmanager
    def plainly(self, copies: bool) -> Iterator[None]:
        """Let the debugger find plain values in the frame that it stands in; what it sets there is kept."""
        frame = self.curframe
        if not isinstance(frame, FrameType) or not rewrite.is_twin(frame.f_code):
            yield
            return
        seen = self.variables(frame, copies)
        before = dict(seen)
        held = vars(self).get("curframe_locals")  # before CPython 3.14
        self.curframe = View(frame, seen)
        if held is not None:
            self.curframe_locals = seen
        try:
            yield
        finally:
            self.curframe = frame
            if held is not None:
                self.curframe_locals = held
            if not copies:
                self.keep(
                    frame, held, {k: x for k, x in seen.items() if before.get(k, seen) is not x}
                )

    def variables(self, frame: FrameType, copies: bool) -> dict[str, Any]:
        """The plain values of a frame's variables, with copies of the containers that hold boxes if that is wanted."""
        held: Any = vars(self).get("curframe_locals") if frame is self.curframe else None
        held, found = frame.f_locals if held is None else held, {}
        names = names_of(frame.f_code) if frame.f_code.co_flags & 0x1 else [*held]
        added = self.added.get(frame, ())
        for name in dict.fromkeys([*names, *added, "__return__", "__exception__"]):
            with contextlib.suppress(KeyError):  # it has no value
                value = held[name]
                found[name] = copied(value, {}) if copies else plain_of(value)
        return found

    def keep(self, frame: FrameType, held: Any, changed: dict[str, Any]) -> None:
        """Set variables of a frame that is running."""
        if changed:
            target = frame.f_locals if held is None else held
            for name, value in changed.items():
                target[name] = value
            self.added.setdefault(frame, {}).update(changed)


class View:
    """A frame of a twin, with plain values in its variables."""

    def __init__(self, frame: FrameType, seen: dict[str, Any]) -> None:
        self.frame = frame
        self.f_locals = seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self.frame, name)


def copied(value: Any, memo: dict[int, Any]) -> Any:
    """A value without boxes in it."""
    if is_one_of(type(value), BOXES):
        return value.value
    if not is_container(value):
        return value
    if id(value) in memo:
        return memo[id(value)]
    memo[id(value)] = value
    items = value.items() if isinstance(value, dict) else enumerate(value)
    plain = {k: copied(x, memo) for k, x in items}
    if all(
        plain[k] is x for k, x in (value.items() if isinstance(value, dict) else enumerate(value))
    ):
        return value
    if isinstance(value, dict):
        new = value.copy()
        new.update(plain)
        return new
    return value._make(plain.values()) if hasattr(value, "_make") else type(value)(plain.values())
