"""Calls of a function of a float and an integer with ever other ones: plain, traced, kept, and by differences."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from helpers import assert_same
from wengert import jit, value_and_grad
from wengert.transforms import cache

CALLS = 25
FEW = 12  # of CALLS, that no program may answer: those that are recorded, or have a tie


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error)


def compare(f: Callable[..., float], seed: int = 0, least: int = 1) -> cache.Entry:
    """Call a function of a float and an integer with ever other ones; gives what is kept of it."""
    rng = random.Random(f"{f.__name__} {seed}")
    both = value_and_grad(f)
    for _ in range(CALLS):
        x, n = rng.uniform(0.1, 2.0), rng.randrange(least, 7)
        expected = outcome(f, x, n)
        if isinstance(expected, tuple):
            assert outcome(both, x, n) == expected
            continue
        value, slope = both(x, n)
        assert_same(value, expected)
        with jit(False):
            _, traced = both(x, n)
        assert slope == pytest.approx(traced, rel=1e-9, abs=1e-12)
        h = 1e-6
        assert slope == pytest.approx((f(x + h, n) - f(x - h, n)) / (2 * h), rel=1e-5, abs=1e-5)
    (entry,) = cache.entries.values()
    return entry


def followed(f: Callable[..., float], least: int = 1) -> None:
    """The same of a function that is to be followed."""
    entry = compare(f, least=least)
    assert entry.folding.why is None, entry.folding.why
    assert entry.folding.failures == 0
    assert entry.folding.programs
    assert entry.hits >= CALLS - FEW, entry.hits
