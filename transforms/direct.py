"""Direct: how a call that is given the function itself (``pullback``, ``jvp`` …) finds a program at once.

Such a call has no state that lasts, whose code a program could become (see ``dispatch``). So the program that
answered last is kept by the function's code, and asked before the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import gettrace
from types import CodeType, FunctionType
from typing import Any, ClassVar

from ..tracer.active import active
from .cache import settings, switch, tables
from .dispatch import Caller
from .programs import Program

Table = dict[int, tuple[CodeType, dict[str, Any], Program]]


class Direct(Caller):
    """Answers one call; its class has the programs that may answer the next one of its kind."""

    __slots__ = ("hits",)
    hits: float
    table: ClassVar[Table]

    def __init_subclass__(cls) -> None:
        cls.table = tables.setdefault(cls.__name__, {})

    @property
    def asked(self) -> Callable[..., Any]:
        """The user's function."""
        return self.f

    def attach(self, program: Program) -> None:
        f = self.asked
        if type(f) is FunctionType:
            if len(self.table) >= settings.programs:
                self.table.clear()
            self.table[id(f.__code__)] = (f.__code__, f.__globals__, program)

    def detach(self) -> None:
        f = self.asked
        if type(f) is FunctionType:
            self.table.pop(id(f.__code__), None)


def state_of(kind: type[Direct], f: Any) -> Any:
    """What stands for a call while its program runs."""
    state = new(kind)
    state.f, state.options, state.hits = f, (), 0.0
    return state


new: Any = object.__new__


def found(table: Table, f: Any) -> Program | None:
    """The program that answered the last call with a function of this code."""
    if type(f) is FunctionType:
        code = f.__code__
        known = table.get(id(code))
        if known is not None and active.tracer is None and switch.on and gettrace() is None:
            its_code, scope, program = known
            if its_code is code and scope is f.__globals__ and not program.dropped:
                return program
    return None
