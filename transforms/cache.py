"""The cache: which programs are kept for a function, and when they may answer.

Words
-----
entry     what is kept for one code object: its programs, how often it was traced, and why a call was not answered.
hit       a call that a program answered.
miss      a call that no program answered; it is traced.
dynamic   an integer from outside that has changed too often to be guarded: it is an input of the programs.
budget    what programs of a function may cost (see ``budget``).
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import types
import warnings
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from ..rules.registry import rules
from ..tracer.entrances import entrance
from ..tracer.fold.run import kinds_of
from ..tracer.intrinsic import behind, intrinsic, is_made
from ..tracer.kinds import (
    HEAP_TYPE,
    One,
    attribute,
    flags_of,
    is_compared_by_identity,
    isinstance,
)
from ..tracer.reads import static
from ..tracer.rewrite import WRITING, replaced
from ..tracer.run import unwrapped
from ..tracer.tape import Site
from .budget import EARLIEST, Budget
from .fold.folding import Folding, folds
from .programs import Program

CHANGES = 3  # so often may an integer from outside change before it becomes an input
VARIED = 6  # calls that no program answered, after which a function is taken to go many ways
MOST_PROGRAMS = 16  # of a function, for arguments of different types and shapes
DEPRECATED = {"paths": 8, "patience": 24, "unroll": 20_000}  # settings without a meaning


class Settings:
    """The limits of the JIT: the one object ``settings``, whose attributes may be set at any time.

    ``programs`` (64) functions at most have programs; the one that was not called for longest goes first. What is set
    holds for what is traced from then on, in all threads; a limit below 1 counts as that.

    What programs may cost needs no setting: building them may take 0.3 of the time that tracing takes anyway, and what
    programs have won. ``paths``, ``patience`` and ``unroll`` of earlier versions may still be set, with a
    `DeprecationWarning`, and do nothing.

    >>> from wengert import settings
    >>> settings.programs = 128
    >>> settings.programs = 64
    """

    def __init__(self) -> None:
        self.programs = 64
        self.strict = False  # for the tests of Wengert: an error of its own is raised

    @entrance
    def __getattr__(self, name: str) -> int:
        if name in DEPRECATED:
            return DEPRECATED[name]
        raise AttributeError(self.unknown(name))

    def unknown(self, name: str) -> str:
        advice = (
            "settings.programs = 128 keeps the programs of so many functions; it is the one setting"
        )
        if name in ("jit", "enabled", "on", "off", "disable"):
            advice = (
                "the JIT is switched by: with jit(False): ..., or WENGERT_JIT=0 in the environment"
            )
        return f"there is no setting {name}; there is programs\n{advice} (docs/errors.md#settings)"

    @entrance
    def __setattr__(self, name: str, value: Any) -> None:
        if name in DEPRECATED:
            text = f"settings.{name} does nothing any more: what programs may cost is found out by measuring"
            warnings.warn(text, DeprecationWarning, stacklevel=3)
        elif name not in ("programs", "strict"):
            raise AttributeError(self.unknown(name))
        elif name == "programs" and not (type(value) is int and value > 0):
            error = ValueError if type(value) is int else TypeError
            raise error(
                f"settings.programs is a number of functions, 1 or more, and not {value!r}\n"
                "write settings.programs = 128, say; the JIT is switched by: with jit(False): ..."
            )
        else:
            super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<settings: programs = {self.programs}>"


settings = Settings()


class Switch:
    """Whether programs are made and used at all: as the latest ``with`` block says that has not ended."""

    def __init__(self) -> None:
        self.default = os.environ.get("WENGERT_JIT", "1").lower() not in ("0", "off", "false", "no")
        self.on = self.default
        self.blocks: list[
            tuple[object, bool]
        ] = []  # which end in any order: threads have their own
        self.users: weakref.WeakSet[Any] = (
            weakref.WeakSet()
        )  # whose functions run programs directly

    def settle(self) -> None:
        """Let every function ask the cache at its next call: a block has begun or ended, or the cache is empty."""
        self.on = self.blocks[-1][1] if self.blocks else self.default
        for user in list(self.users):
            user.detach()


switch = Switch()
lock = threading.RLock()


@contextlib.contextmanager
def switched(on: bool) -> Iterator[None]:
    """Switch the JIT on or off for a ``with`` block; see `jit`."""
    block = (object(), on)
    with lock:
        switch.blocks.append(block)
        switch.settle()
    try:
        yield
    finally:
        with lock:
            switch.blocks = [x for x in switch.blocks if x is not block]
            switch.settle()


class Entry:
    """What is kept for one function."""

    def __init__(self, name: str, place: str, title: str) -> None:
        self.name = name
        self.title = title  # how a person would write the function that Wengert made
        self.place = place
        self.programs: list[Program] = []
        self.names: set[str] = set()  # that the programs use for constants
        self.traces = 0
        self.misses: Counter[str] = Counter()
        self.turns = 0  # how often a program of one way was left at a decision
        self.changes: Counter[Any] = Counter()
        self.dynamic: frozenset[Any] = frozenset()
        self.dynamic_names: list[str] = []
        self.unfit: str | None = None
        self.whole = False  # whether the reverse sweep must be a part of the run (see ``pairs``)
        self.unrolled: dict[str, str] = {}  # why loops were left as they are, by their places
        self.budget = Budget()
        self.folding = Folding()
        self.hits_before = 0
        self.evicted_hits = 0
        self.forgotten = False  # by the cache, though a call may go on that has it in hand

    @property
    def hits(self) -> int:
        return self.evicted_hits + sum(p.hits for p in self.programs)

    def add(self, program: Program) -> None:
        """Keep a program; but not one of a call that began before the cache was cleared, for a new rule perhaps."""
        with lock:
            if self.forgotten:
                program.drop()
                return
            self.put(program)
            while len(self.programs) > MOST_PROGRAMS:
                self.drop(self.programs[-1])

    def forget(self) -> None:
        """Let go of all programs, and keep none from now on."""
        with lock:
            self.forgotten = True
            for program in [*self.programs]:
                self.drop(program)

    def drop(self, program: Program) -> None:
        with lock:
            if program in self.programs:
                self.evicted_hits += program.hits
                self.budget.won += self.budget.gain(program.hits, program.cost)
                self.programs.remove(program)
                program.drop()

    def put(self, program: Program) -> None:
        """The latest come first, and those that stand for all ways before others."""
        self.programs.insert(0 if program.growth else self.of_all_ways, program)

    @property
    def of_all_ways(self) -> int:
        """How many programs stand for all ways."""
        return sum(bool(p.growth) for p in self.programs)

    def front(self, program: Program) -> None:
        with lock:
            if self.programs and self.programs[0] is not program and program in self.programs:
                self.programs.remove(program)
                self.put(program)

    def note_miss(self, program: Program, error: BaseException, seconds: float) -> None:
        """Note why a program did not answer; an integer that has changed too often becomes dynamic."""
        self.budget.note_miss(seconds)
        line, why = why_left(program, error)
        self.misses[why] += 1
        guard = program.guards.get(line)
        self.turns += guard is not None and guard.check == "decision" and not program.growth
        if len(self.misses) > 100:  # another thread may be here as well
            self.misses.pop(next(iter(dict(self.misses))), None)
        path = program.integers.get(line)
        if path is not None and path not in self.dynamic:
            self.changes[path] += 1
            if self.changes[path] >= CHANGES:
                self.dynamic |= {path}
                self.dynamic_names.append(program.guards[line].name)
                for other in list(self.programs):
                    if path in other.integers.values():
                        self.drop(other)

    def won(self) -> float:
        """Seconds that the programs have saved."""
        budget = self.budget
        return budget.won + sum(budget.gain(p.hits, p.cost) for p in list(self.programs))

    def may_try(self) -> bool:
        """Whether programs may be tried at this call."""
        return self.budget.may_try(self.won)

    def may_fold(self) -> bool:
        """Whether this call, which no program answers, may be recorded as a pass over a region: the function varies."""
        if self.folding.why is not None or not folds() or replaced(WRITING) is not None:
            return False
        budget = self.budget
        varies = budget.limited and budget.calls >= EARLIEST and not (budget.steady or budget.spent)
        varies |= budget.goes_round()
        varies |= budget.passes > 0 or sum(self.misses.values()) >= VARIED
        if (
            not self.programs and self.traces >= EARLIEST
        ):  # none of one way can be had, or not for some time
            varies |= self.unfit is not None
            varies |= budget.spent > 0 and not budget.may_build(self.won)
        return varies and budget.may_fold(self.won)

    def goes_to_and_fro(self) -> bool:
        """Whether calls go from one program of one way to another, where one of all ways would answer them at once."""
        return self.turns >= VARIED and self.may_fold()

    def has_region(self, args: tuple[Any, ...]) -> bool:
        """Whether calls with such arguments have a region, which will grow in the place of programs of one way."""
        folding = self.folding
        if folding.why is not None or not (folding.known or folding.programs):
            return False
        kinds = kinds_of(args)
        return kinds in folding.known or kinds in folding.programs

    def may_build(self) -> bool:
        """Whether this call, which is traced, may be made a program."""
        self.traces += 1
        if self.hits != self.hits_before:
            self.hits_before, self.budget.barren = self.hits, 0
        return self.budget.may_build(self.won)


def why_left(program: Program, error: BaseException) -> tuple[int, str]:
    """On which line of its source a program was left, and why."""
    line = error.__traceback__.tb_lineno if error.__traceback__ is not None else 0
    why = program.reasons.get(line)
    if why is None:
        missed = type(error).__name__ == "Miss"
        why = "other arguments were given" if missed else f"{type(error).__name__}: {error}"
    return line, why


entries: OrderedDict[Hashable, Entry] = OrderedDict()
# What answers calls that are given the function directly, by their kind (see ``direct``)
tables: dict[str, dict[int, tuple[types.CodeType, dict[str, Any], Program]]] = {}


def key_of(f: Any) -> Hashable:
    """What stands for a callable in the cache: its code, so that a fresh lambda finds what an earlier one left.

    All that one decorator has made has the same code, and is told apart by what stands inside.
    """
    kind = type(f)
    if kind is types.FunctionType:
        inner = unwrapped(f)
        return (f.__code__, None if inner is f else key_of(inner), id(f.__globals__))
    if is_made(f):
        return f.__self__.program_key()  # type: ignore[no-any-return]
    if kind is types.MethodType:
        return ("method", key_of(f.__func__), one(type(f.__self__)))
    if kind is functools.partial:
        return ("partial", key_of(f.func), len(f.args), tuple(f.keywords))
    call = static(kind, "__call__")
    if type(call) is types.FunctionType:
        return ("object", one(kind), key_of(call))
    return ("callable", one(f))


def is_made_of(key: Hashable, other: Hashable) -> bool:
    """Whether a key is that of a function made of another one, whose own key comes last in it."""
    while isinstance(key, tuple) and key:
        key = key[-1]
        if key == other:
            return True
    return False


def one(value: Any) -> Hashable:
    """What stands in a key for this very object."""
    kind = type(value)
    if not flags_of(kind) & HEAP_TYPE or is_compared_by_identity(kind):
        return value  # type: ignore[no-any-return]
    return One(value)


def entry_of(key: Hashable, f: Any, title: Callable[[], str]) -> Entry:
    """The entry under a key, the one used last now."""
    with lock:
        found = entries.get(key)
        if found is None:
            name = attribute(f, "__name__", type(f).__name__)
            found = entries[key] = Entry(name, source_of(f), title())
        else:
            entries.move_to_end(key)
        while len(entries) > max(1, settings.programs):
            _, old = entries.popitem(last=False)
            old.forget()
        return found


def source_of(f: Any) -> str:
    """Where the user's function stands, of which a callable was made."""
    f = behind(f)
    if isinstance(f, functools.partial):
        return source_of(f.func)
    inner = unwrapped(attribute(f, "__func__", f))
    code = attribute(inner, "__code__") or attribute(static(type(f), "__call__"), "__code__")
    return f"{Site.of_code(code).place}" if code is not None else "no source"


@intrinsic
def clear_cache() -> None:
    """Forget every program, and all that was learned about functions: which integers change, what was given up.

    Functions made before go on working; their next call is traced. It is never needed for right answers, but frees
    the memory of the programs and of the modules and classes that they name. A rule that is registered later clears
    the cache by itself.

    >>> from wengert import clear_cache
    >>> clear_cache()
    """
    with lock:
        for entry in [*entries.values()]:
            entry.forget()
        entries.clear()
        for table in tables.values():
            table.clear()
        switch.settle()


rules.listeners.append(clear_cache)  # what was assembled with other rules is no longer right
