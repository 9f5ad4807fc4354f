"""Random programs: what is written from their regions, against plain Python and the gradient of the traced run."""

import math
import random

import pytest

from wengert import value_and_grad
from wengert.tracer.fold.region import Folded

from .random_regions import Maker
from .regions import Miss, program, source_of

POINTS = ((0.7, -1.2, 3), (1.9, 0.4, 2), (-0.3, 0.8, 7), (0.0, 0.5, 1))


def made(seed):
    """The function, and the region of all its ways."""
    source, folded = Maker(seed).program()
    space = {"math": math}
    exec(compile(source, f"<program {seed}>", "exec"), space)
    return space["f"], folded


def close(found, expected):
    return found == pytest.approx(list(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_random_programs(seed):
    for one in range(seed, seed + 6):
        f, folded = made(one)
        run = program(folded)
        for x, y, n in POINTS:
            value, gradient = run(x, y, n)
            assert repr(value) == repr(f(x, y, n))
            _, expected = value_and_grad(lambda x, y: f(x, y, n), argnums=(0, 1))(x, y)  # noqa: B023
            assert close(gradient, expected)


def forget(folded: Folded, dice: random.Random) -> None:
    """Take away some of the ways."""
    for block in folded.blocks():
        if len(block.cases) > 1 and dice.random() < 0.25:
            del block.cases[dice.choice([*block.cases])]
        for op in block.ops:
            if dice.random() < 0.5:
                op.exits.clear()
    folded.size += 1  # by which it is known that it has changed


def test_a_way_that_was_not_seen_is_missed():
    """Of a part of the ways a program answers what it knows, as all of them would, and nothing else."""
    answered = missed = 0
    for seed in (*range(40), 4470):  # a variable whose cotangent no pass that was seen begins
        f, folded = made(seed)
        everything = program(folded)
        _, folded = made(seed)
        forget(folded, random.Random(seed))
        run = program(folded)
        for point in POINTS:
            try:
                value, gradient = run(*point)
            except (Miss, ValueError):  # of the exceptions that were forgotten
                missed += 1
                continue
            answered += 1
            assert repr(value) == repr(f(*point))
            assert close(gradient, everything(*point)[1])
    assert answered > 20
    assert missed > 20


def test_the_source_is_the_same_each_time():
    for seed in range(5):
        first, second = (source_of(Maker(seed).program()[1])[0] for _ in range(2))
        assert first == second
