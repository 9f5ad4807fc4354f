"""Playing a program: its module is made anew, its plan is carried out, and what happens at each step is recorded.

Words
-----
play     one run through the plan, in plain Python or in one of the engine's modes.
ask      how a call is made: plainly, or by one of the ways of asking the engine for derivatives.
record   what a step did: value, exception, text, warnings, the world after it (all as pictures), and the derivatives.
refusal  an error of the engine's own: it names what it cannot do. A play ends there.
"""

from __future__ import annotations

import ast
import builtins
import cmath
import contextlib
import functools
import gc
import io
import linecache
import math
import operator
import random
import re
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import wengert

from .pictures import MODULE, Album, Leak, name_of, without_addresses
from .plan import Program, Step

GIVEN_UP = re.compile(r"is traced at every call from now on")
NOTE = "__note__"  # by this name programs reach `note`
CHANGE = "<change>"  # the file that changes of the world come from
PATCHED = (math, cmath, operator, builtins, np, np.linalg, random)  # modules that a plan may change


class TooLong(BaseException):
    """A program does more than is worth its time."""


class Record:
    """What a step did."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.value: Any = None
        self.error: Any = None
        self.raised: BaseException | None = None
        self.printed: Any = None
        self.warned: Any = None
        self.world: Any = None
        self.refused: str | None = None
        self.leak: str | None = None
        self.too_deep = (
            False  # how deep a recursion without end goes is nobody's to say: a play ends there
        )
        self.answer: Any = None  # of the engine, with derivatives
        self.coarse = False  # whether arguments are of single precision
        self.path: Any = None


@functools.lru_cache(maxsize=16)
def compiled(source: str, noting: bool = False) -> types.CodeType:
    filename = f"<{MODULE}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        tree = Noting().visit(ast.parse(source)) if noting else source
        return compile(tree, filename, "exec")


@functools.lru_cache(maxsize=64)
def compiled_change(text: str) -> types.CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return compile(text, CHANGE, "exec")


@functools.lru_cache(maxsize=64)
def compiled_arguments(text: str) -> types.CodeType:
    return compile(f"given_({text})", "<arguments>", "eval")


class Noting(ast.NodeTransformer):
    """Hands what every call and every comparison gives to `note` on its way."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        if not isinstance(node, ast.Call | ast.Compare):
            return node
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("hash", "id"):
            return node  # these say nothing about a way
        name = ast.Name(NOTE, ast.Load())
        noted = ast.copy_location(ast.Call(name, [node], []), node)
        return ast.fix_missing_locations(noted)


def note(value: Any) -> Any:
    """What C code decides is a part of the way, as a jump is: how often a number is in a list, which is the least."""
    meter = sys.gettrace()
    if isinstance(meter, Meter):
        if isinstance(value, int | np.bool_ | np.integer):
            meter.path = hash((meter.path, int(value)))
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biu":
            meter.path = hash((meter.path, value.shape, value.tobytes()))
    return value


def give(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


@contextlib.contextmanager
def surroundings(clean: bool = False) -> Iterator[None]:
    """Everything outside of the module that a program may change is as it was after it."""
    if clean:
        with captured():  # what the garbage of plays before still has to say
            gc.collect()
    states = random.getstate(), np.random.get_state(), np.geterr(), sys.getrecursionlimit()
    before = [dict(vars(module)) for module in PATCHED]
    known = sys.modules.get(MODULE)
    random.seed(0)
    np.random.seed(0)
    np.seterr(divide="warn", over="warn", under="ignore", invalid="warn")
    collects = gc.isenabled()
    gc.disable()  # it would collect at another moment in each play
    try:
        yield
    finally:
        if collects:
            gc.enable()
        random.setstate(states[0])
        np.random.set_state(states[1])
        np.seterr(**states[2])
        sys.setrecursionlimit(states[3])
        sys.modules.pop(MODULE, None)
        if known is not None:
            sys.modules[MODULE] = known
        for module, members in zip(PATCHED, before):
            if vars(module) != members:
                put_back(module, members)


def put_back(module: types.ModuleType, members: dict[str, Any]) -> None:
    for name in set(vars(module)) - set(members):
        if not isinstance(
            getattr(module, name), types.ModuleType
        ):  # one that was imported meanwhile
            delattr(module, name)
    for name, value in members.items():
        if vars(module).get(name) is not value:
            setattr(module, name, value)


class Play:
    """One run through a plan, up to a step if one is given."""

    noting = False  # whether what calls and comparisons give is noted

    def __init__(self, program: Program) -> None:
        self.program = program
        self.album = Album()
        self.records: list[Record] = []
        self.module = sys.modules[MODULE] = types.ModuleType(MODULE)
        vars(self.module)[NOTE] = note
        exec(compiled(program.source, self.noting), vars(self.module))

    def arguments(self, step: Step) -> tuple[tuple[Any, ...], dict[str, Any]]:
        vars(self.module)["given_"] = give
        try:
            return eval(compiled_arguments(step.text), vars(self.module))
        finally:
            del vars(self.module)["given_"]

    def change(self, step: Step) -> None:
        """Carry out a change; where there is nothing to change any more, nothing happens."""
        try:
            exec(compiled_change(step.text), vars(self.module))
        except Exception:
            pass

    def perform(self, ask: Callable[..., Any]) -> list[Record]:
        """Carry out the whole plan; calls are made by ``ask(f, args, kwargs, number of the step, record)``."""
        for number, step in enumerate(self.program.plan):
            record = Record(step)
            self.records.append(record)
            if step.kind == "change":
                self.change(step)
                continue
            self.call(step, number, record, ask)
            if record.refused is not None or record.leak is not None or record.too_deep:
                break
        return self.records

    def call(self, step: Step, number: int, record: Record, ask: Callable[..., Any]) -> None:
        try:
            args, kwargs = self.arguments(step)
        except Exception as error:  # the world has nothing like that any more
            record.error = "arguments", name_of(type(error))
            return
        f = vars(self.module)["f"]
        value = None
        with captured() as (out, err, warned):
            try:
                value = ask(f, args, kwargs, number, record)
            except wengert.WengertError as error:
                record.refused = f"{type(error).__name__}: {error}"
                error.__traceback__ = None
                return
            except (KeyboardInterrupt, TooLong):
                raise
            except BaseException as error:
                record.raised = error
        if isinstance(record.raised, RecursionError):
            record.too_deep = True
            record.error = (name_of(RecursionError),)
            record.raised.__traceback__ = None
            return
        record.printed = without_addresses(out.getvalue()), without_addresses(err.getvalue())
        record.warned = [described(w) for w in warned if not is_documented(w)]
        try:
            if record.raised is not None:
                record.error = self.pictured_error(record.raised)
                record.raised.__traceback__ = None
            record.world = self.world(args, kwargs)
            record.value = self.album.take(value)
        except Leak as leak:
            record.leak = str(leak)

    def world(self, args: Any, kwargs: Any) -> Any:
        """The picture of everything that there is."""
        variables = [
            (name, self.album.take(x))
            for name, x in vars(self.module).items()
            if not name.startswith("__") and not isinstance(x, types.ModuleType)
        ]
        state = np.random.get_state()
        settings = (
            hash(random.getstate()),
            hash((state[1].tobytes(), state[2:])),  # type: ignore[index, union-attr]
            str(np.geterr()),
            sys.getrecursionlimit(),
            sys.getprofile() is None,
        )
        return "world", sorted(variables), self.album.take((args, kwargs)), settings

    def pictured_error(self, error: BaseException) -> Any:
        lines = [
            (frame.f_code.co_name, line)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code.co_filename == f"<{MODULE}>"
            and not frame.f_globals["__name__"].startswith("wengert")  # around a custom rule
        ]
        return name_of(type(error)), safe_str(error), self.album.take(error), lines


def safe_str(error: BaseException) -> str:
    try:
        return without_addresses(str(error))
    except Exception as other:
        return f"no text: {other!r}"


@contextlib.contextmanager
def captured() -> Iterator[tuple[io.StringIO, io.StringIO, list[Any]]]:
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        yield out, err, warned


def described(warning: warnings.WarningMessage) -> tuple[str, str, int]:
    line = warning.lineno if warning.filename == f"<{MODULE}>" else -1
    return name_of(warning.category), str(warning.message), line


def is_documented(warning: warnings.WarningMessage) -> bool:
    """The one warning of the engine's that belongs there: that a function is given up."""
    return warning.category is RuntimeWarning and bool(GIVEN_UP.search(str(warning.message)))


class Meter:
    """Counts the lines that run in a program, and notes the way that is taken through its bytecode."""

    def __init__(self, limit: int, opcodes: bool = False) -> None:
        self.limit, self.opcodes = limit, opcodes
        self.lines = 0
        self.path = 0

    def __call__(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename not in (f"<{MODULE}>", CHANGE):
            return None
        frame.f_trace_opcodes = self.opcodes
        return self.local

    def local(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            self.path = hash((self.path, frame.f_lasti, frame.f_code.co_firstlineno))
        elif event == "line":
            frame.f_trace_opcodes = (
                self.opcodes
            )  # since 3.13 it is not heard of when the call begins
            self.lines += 1
            if self.lines > self.limit:
                raise TooLong
        return self.local

    def run(self, f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            return f(*args, **kwargs)
        finally:
            sys.settrace(before)
