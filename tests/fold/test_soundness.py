"""Hand-written dangers of keeping one program for many ways: plain Python's answers, whatever comes.

The cases stand in the text files of the folder `cases`. Each is called with ever other data, in plain Python, traced
at each call, and with programs kept (see `worlds.compare`): values to the bit, exceptions with their messages and the
lines of their tracebacks, what is printed, what the arguments and the module hold then, and the gradients.
"""

from __future__ import annotations

import functools
import random
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from worlds import Call, World, compare, execute

from helpers import assert_close, assert_same, in_threads
from wengert import clear_cache, jit, value_and_grad


@dataclass
class Case:
    """A block of a text file."""

    title: str
    source: str
    steps: list[str]  # changes of the world, or arguments

    def __str__(self) -> str:
        return self.title


def cases(name: str) -> list[Case]:
    """The blocks of a file: a title after ``==``, source, and steps after ``--`` or ``>>``."""
    found: list[Case] = []
    for line in (
        (Path(__file__).parent / "cases" / f"{name}.txt").read_text().splitlines(keepends=True)
    ):
        if line.startswith("== "):
            found.append(Case(line[3:].strip(), "", []))
        elif found and line.startswith(("-- ", ">> ")):
            found[-1].steps.append(line[3:])
        elif found and found[-1].steps:
            found[-1].steps[-1] += line
        elif found:
            found[-1].source += line
    return found


each = pytest.mark.parametrize
PRELUDE = "import math, random, numpy as np\n"
HEAD = PRELUDE + (
    "class Stop(Exception): pass\n"
    "class Thing:\n"
    "    def __init__(self, x, next): self.x, self.next = x, next\n"
    "    @property\n"
    "    def twice(self): return self.x * 2\n"
    "    @twice.setter\n"
    "    def twice(self, v): self.x = v / 2\n"
)


def function(case: Case) -> str:
    """A function with the body that a case has."""
    return "def f(x, y, n):\n" + "".join(f"    {line}\n" for line in case.source.splitlines())


def drawn(f: Any, turns: tuple[int, ...], rng: random.Random) -> Iterator[Call]:
    """Calls with two floats and these numbers of turns."""
    for n in turns:
        yield Call(f, rng.uniform(-0.6, 1.2), rng.uniform(0.1, 1), n)


FEW_THEN_MANY = (1, 1, 0, 1, 2, 5, 0, 3, 1, 4, 6, 2)
NOW_AND_THEN = (2, 1, 0, 2, 5, 1, 4, 3, 2, 5, 6, 2)


@each("case", cases("changes"), ids=str)
def test_the_world_changes(case: Case, floats: str) -> None:
    def story(world: World) -> Iterator[Call]:
        rng = random.Random(case.title)
        m = world.module(PRELUDE + case.source)
        yield from drawn(m.f, (1, 0, 2, 1, 3, 2, 5, 3), rng)
        for change in case.steps:
            execute(m, change)
            yield from drawn(m.f, (2, 1, 4), rng)

    compare(story, floats)


@each("case", cases("arguments"), ids=str)
def test_unusual_arguments(case: Case, floats: str) -> None:
    def story(world: World) -> Iterator[Call]:
        m = world.module(PRELUDE + case.source)
        for arguments in [*case.steps, *case.steps[::-1]]:
            yield eval(f"called(f, {arguments})", {**vars(m), "called": Call})

    compare(story, floats)


def test_an_argument_that_is_changed() -> None:
    """Attributes and items of what the caller keeps."""
    source = PRELUDE + (
        "class Thing:\n"
        "    def __init__(self, k): self.k, self.n, self.items = k, 0, [k]\n"
        "def f(x, t, d):\n"
        "    for i in range(3):\n"
        "        if x > t.k: t.k = t.k + 0.3 * x\n"
        "        else: t.n += 1; t.items.append(x); d['s'] = d.get('s', 0.0) + x\n"
        "        x = x * 0.9 + 0.1\n"
        "    return x * t.k + t.n + d.get('s', 0.5)\n"
    )

    def story(world: World) -> Iterator[Call]:
        m = world.module(source)
        thing, kept = m.Thing(0.5), {}
        for number in range(12):
            if number % 4 == 3:
                thing, kept = m.Thing(0.1 * number), {"s": 0.3}
            yield Call(m.f, 0.1 * number, thing, kept)

    compare(story, "pullback")


def test_the_world_changes_during_a_call(floats: str) -> None:
    """By the function itself, for the turns and the calls that follow."""
    source = PRELUDE + (
        "rate, count = 0.5, 0\n"
        "def f(x, y, n):\n"
        "    global rate, count\n"
        "    for i in range(n):\n"
        "        count += 1\n"
        "        x = x * rate + y\n"
        "        if x > 0.8:\n"
        "            rate = 0.7 if rate == 0.5 else 0.5\n"
        "    return x * count\n"
    )

    def story(world: World) -> Iterator[Call]:
        yield from drawn(world.module(source).f, FEW_THEN_MANY + NOW_AND_THEN, random.Random(0))

    compare(story, floats)


@each("case", cases("turns"), ids=str)
def test_ways_through_a_loop(case: Case, floats: str) -> None:
    def story(world: World) -> Iterator[Call]:
        f = world.module(HEAD + function(case)).f
        yield from drawn(f, FEW_THEN_MANY, random.Random(case.title))

    compare(story, floats)


@each("case", cases("errors"), ids=str)
def test_errors(case: Case, floats: str) -> None:
    """In some calls: type, message, chain and lines as in plain Python, and the calls that follow are right."""

    def story(world: World) -> Iterator[Call]:
        f = world.module(HEAD + function(case)).f
        yield from drawn(f, NOW_AND_THEN, random.Random(case.title))

    played = compare(story, floats)
    raised = sum(record.error is not None for record in played.records)
    assert 0 < raised < len(played.records)


OUTSIDE = HEAD + (
    "log, known, thing, source, count, last = [], {}, Thing(0.3, None), iter(range(1000)), 0, 0.5\n"
    "def made():\n"
    "    k = 0\n"
    "    def counter():\n"
    "        nonlocal k\n"
    "        k += 1\n"
    "        return k\n"
    "    return counter\n"
    "counter = made()\n"
    "def keep(q, u=[0.1]):\n"
    "    u.append(q)\n"
    "    return sum(u)\n"
)


@each("case", cases("effects"), ids=str)
def test_effects_are_had_once(case: Case, floats: str) -> None:
    def story(world: World) -> Iterator[Call]:
        f = world.module(OUTSIDE + function(case)).f
        yield from drawn(f, NOW_AND_THEN, random.Random(case.title))

    compare(story, floats)


@each("case", cases("results"), ids=str)
def test_results(case: Case) -> None:
    def story(world: World) -> Iterator[Call]:
        f = world.module(HEAD + function(case)).f
        yield from drawn(f, NOW_AND_THEN, random.Random(case.title))

    compare(story, "pullback")


def test_too_deep_a_recursion() -> None:
    """The calls before and after it are answered."""

    def f(x: float, y: float, n: int) -> float:
        return x if n == 0 else f(x * 0.5 + y, y, n - 1) * 0.9

    clear_cache()
    both = value_and_grad(f, (0, 1))
    for n in (
        3,
        1,
        5,
        0,
        2,
        sys.getrecursionlimit() * 10,
        3,
        7,
        1,
        sys.getrecursionlimit() * 10,
        2,
    ):
        if n < 10:
            value, gradient = both(0.3, 0.1 * n, n)
            assert_same(value, f(0.3, 0.1 * n, n))
            slope = sum([0.9**n * 0.5**k for k in range(n)], 0.0)
            assert_close(gradient, (0.45**n, slope))
        else:
            with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
                both(0.3, 0.1, n)


def test_threads() -> None:
    """They call one function at once, all on ways of their own, while its programs are made."""

    def f(x: float, y: float, n: int) -> float:
        u, d = [x], {"s": y}
        for i in range(n):
            if u[-1] > d["s"]:
                u.append(u[-1] * 0.5)
            elif i % 2:
                d["s"] = d["s"] * 0.9 + 0.01 * n
            else:
                u[0] = u[0] + 0.3 * x
        return sum(u) * d["s"]

    clear_cache()
    both = value_and_grad(f, (0, 1))
    rng = random.Random(0)
    calls = [
        [(rng.uniform(-1, 1), rng.random(), rng.randint(0, 8)) for _ in range(40)] for _ in range(4)
    ]
    found: list[list[Any]] = [[] for _ in calls]
    start = threading.Barrier(len(calls))

    def work(number: int) -> None:
        start.wait()
        for args in calls[number]:
            try:
                found[number].append(both(*args))
            except Exception as error:  # seen by the comparison
                found[number].append((error, None))

    assert in_threads(*[functools.partial(work, k) for k in range(len(calls))]) == []
    for answers, asked in zip(found, calls, strict=True):
        for (value, gradient), args in zip(answers, asked, strict=True):
            assert_same(value, f(*args))
            with jit(False):
                _, wanted = value_and_grad(f, (0, 1))(*args)
            np.testing.assert_allclose(gradient, wanted, rtol=1e-12)
