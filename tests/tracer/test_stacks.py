"""Instrumented code keeps to its stack, whatever the code it is made of (see ``stacks``)."""

from __future__ import annotations

import ast
import dis
import heapq
import inspect
import statistics
import types
from typing import Any

import pytest
from fold.random_everyday import Everyday
from stacks import codes, faults

from wengert.tracer import hooks as flat
from wengert.tracer.fold import hooks as folding
from wengert.tracer.rewrite import UnsupportedCode, instrument

MODULES = (ast, heapq, inspect, statistics)


def matches(x: Any, y: float) -> float:
    """The last pattern takes nothing out of its subject, and the ways meet with nothing on the stack."""
    a = y * 2.0
    match x:
        case int():
            a = a * 3.0
        case []:
            a = y
    b = a + y
    for _ in range(3):
        match x:
            case float():
                b = b * 0.5
            case (first, *_) if first:
                b = b - first
            case {"a": c, **rest}:
                b = b + c + len(rest)
            case str():
                b = a
    try:
        (), c = x
    except (TypeError, ValueError):
        c = b
    return c


def wrong(code: types.CodeType) -> list[str]:
    """What is wrong in the twins of code, where CPython's own keeps to its stack."""
    found = []
    for one in codes(code):
        if not one.co_flags & inspect.CO_OPTIMIZED or any(faults(x) for x in codes(one)):
            continue
        for hooks in (flat, folding):
            try:
                twin = instrument(one, hooks)
            except UnsupportedCode:
                continue
            found += [f"{hooks.__name__}: {why}" for x in codes(twin) for why in faults(x)]
    return found


def test_patterns() -> None:
    assert wrong(matches.__code__) == []


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int) -> None:
    assert wrong(compile(Everyday(seed).source(), "<program>", "exec")) == []


@pytest.mark.parametrize("module", MODULES, ids=lambda x: x.__name__)
def test_modules(module: types.ModuleType) -> None:
    assert wrong(compile(inspect.getsource(module), "<module>", "exec")) == []


def test_it_sees_what_is_wrong() -> None:
    def f(x: float) -> float:
        return x + 1.0

    assert faults(f.__code__) == []
    assert faults(f.__code__.replace(co_stacksize=1))
    code = bytearray(f.__code__.co_code)
    for instr in dis.get_instructions(f):
        if instr.opname.startswith("LOAD_CONST") or instr.opname == "LOAD_SMALL_INT":
            code[instr.offset] = dis.opmap["NOP"]
    assert faults(f.__code__.replace(co_code=bytes(code)))
