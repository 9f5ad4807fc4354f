"""Programs whose path varies: as in plain Python, with the gradients of traced calls, and kept as few programs."""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import wengert.tracer.run
from fold.programs import PROGRAMS, Program
from helpers import assert_same
from wengert import clear_cache, explain, jit, value_and_grad
from wengert.tracer.fold.run import Known

CALLS = 30
FIRST = 12  # calls that may all be traced
MOST = 5  # of CALLS further ones
KEPT = [  # the programs that are answered without being followed again
    "dormand_prince", "american_option", "bisection", "brent", "newton_returns", "nelder_mead", "bfgs",
    "golden_section", "adaptive_simpson", "horner", "matrix_product", "lu_determinant", "edit_distance",
    "table_of_lists", "dict_item", "attribute", "stack_of_numbers", "queue_of_events", "kth_smallest", "gaps",
    "for_else", "continues", "while_true", "ternaries", "ands_and_ors", "largest_and_smallest", "modes",
    "collatz", "random_walk", "returned_tuples", "mutual_recursion", "search_tree",
]  # fmt: skip


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    clear_cache()
    with jit(True):
        yield
    clear_cache()


@contextmanager
def count_of_work() -> Iterator[list[str]]:
    """A list that grows by a name whenever a call is followed, traced for a tape or recorded for a region."""
    real, seen = wengert.tracer.run.run, []

    def run(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        seen.append(getattr(f, "__name__", type(f).__name__))
        return real(f, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("wengert") and getattr(module, "run", None) is real:
                patch.setattr(module, "run", run)
        recorded = Known.run

        def record(known: Known, f: Callable[..., Any], *args: Any) -> Any:
            seen.append(f.__name__)
            return recorded(known, f, *args)

        patch.setattr(Known, "run", record)
        yield seen


def numbers(tree: Any) -> Iterator[float]:
    """The numbers of a gradient, in order."""
    if isinstance(tree, tuple | list):
        for item in tree:
            yield from numbers(item)
    else:
        yield float(tree)


def draws(program: Program, calls: int) -> Iterable[tuple[Any, ...]]:
    rng = random.Random(program.name)
    return [program.draw(rng) for _ in range(calls)]


def copies(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([*x] if isinstance(x, list) else x for x in args)


def slopes(program: Program, args: tuple[Any, ...]) -> np.ndarray:
    """The gradient by central differences of plain Python."""
    flat: list[float] = []
    places: list[tuple[int, int | None]] = []
    for number in program.argnums:
        if isinstance(args[number], list):
            places += [(number, i) for i in range(len(args[number]))]
        else:
            places.append((number, None))
    for number, i in places:
        sides = []
        for h in (1e-6, -1e-6):
            moved = [*copies(args)]
            if i is None:
                moved[number] += h
            else:
                moved[number][i] += h
            sides.append(program.function(*moved))
        flat.append((sides[0] - sides[1]) / 2e-6)
    return np.array(flat)


@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_gradient(name: str) -> None:
    """As in plain Python and in traced calls; in most calls as by differences: a few lie on the edge of two ways."""
    program, far = PROGRAMS[name], 0
    both = value_and_grad(program.function, argnums=program.argnums)
    for number, args in enumerate(draws(program, CALLS)):
        value, gradient = both(*args)
        assert_same(value, program.function(*copies(args)))
        with jit(False):
            _, traced = both(*args)
        found = np.array([*numbers(gradient)])
        np.testing.assert_allclose(found, [*numbers(traced)], rtol=1e-9, atol=1e-13)
        if number % 3 == 0:
            far += not np.allclose(found, slopes(program, args), rtol=1e-3, atol=1e-4)
    assert far <= 2


@pytest.mark.parametrize("name", [x for x in PROGRAMS if x != "largest_and_smallest"])
def test_the_calls_go_different_ways(name: str) -> None:
    """Or else these programs would test nothing. (What `max` decides is in no bytecode.)"""
    program, ways = PROGRAMS[name], set()
    for args in draws(program, CALLS):
        way: list[tuple[str, int]] = []

        def step(frame: types.FrameType, event: str, arg: Any) -> Any:
            frame.f_trace_opcodes = True
            way.append((frame.f_code.co_name, frame.f_lasti))
            return step

        before = sys.gettrace()
        sys.settrace(step)
        try:
            program.function(*copies(args))
        finally:
            sys.settrace(before)
        ways.add(tuple(way))
    assert len(ways) >= 4


@pytest.mark.parametrize("name", KEPT)
def test_is_kept(name: str) -> None:
    """After a few calls, those with new data need no following any more."""
    program = PROGRAMS[name]
    both = value_and_grad(program.function, argnums=program.argnums)
    calls = [*draws(program, FIRST + CALLS)]
    with count_of_work() as work:
        for args in calls[:FIRST]:
            both(*args)
    assert work  # or nothing is counted
    followed = 0
    for args in calls[FIRST:]:
        with count_of_work() as work:
            value, _ = both(*args)
        followed += bool(work)
        assert_same(value, program.function(*copies(args)))
    assert followed <= MOST, explain(both, *args)
