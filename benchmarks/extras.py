"""What is not a ratio: the price of the guards, a first call, and what another trip count compiles anew."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import wengert

from .contenders import Contender
from .scalars import logistic, newton
from .timing import Clock, measure


@dataclass(frozen=True)
class Figure:
    """A line of the table of single figures; `bound` is in the same unit."""

    what: str
    value: float
    unit: str
    bound: float


def figures(rounds: int, clock: Clock) -> list[Figure]:
    return [
        Figure("guards of a dict of six arrays and two arrays", guards(rounds, clock), "µs", 1.2),
        Figure("first call of the logistic map, 1000 steps", first_call(rounds, clock), "ms", 15.0),
        Figure("recompilations for other trip counts of a `while`", recompilations(), "", 0),
    ]


# --------------------------------------------------------------------------------------------- guards


def six_products(p, x, y):
    """Hardly any work, but every array is read, and nothing can be shared."""
    return (p["a"].dot(x) * 1.5 + p["b"].dot(x) * 2.5 + p["c"].dot(x) * 3.5) + (
        p["d"].dot(y) * 4.5 + p["e"].dot(y) * 5.5 + p["f"].dot(y) * 6.5
    )


def six_products_by_hand(p, x, y):
    value = (p["a"].dot(x) * 1.5 + p["b"].dot(x) * 2.5 + p["c"].dot(x) * 3.5) + (
        p["d"].dot(y) * 4.5 + p["e"].dot(y) * 5.5 + p["f"].dot(y) * 6.5
    )
    return value, {
        "a": x * 1.5,
        "b": x * 2.5,
        "c": x * 3.5,
        "d": y * 4.5,
        "e": y * 5.5,
        "f": y * 6.5,
    }


def six_arrays():
    return {name: np.linspace(0.0, 1.0, 3) for name in "abcdef"}, np.arange(3.0), np.ones(3)


def guards(rounds: int, clock: Clock) -> float:
    """Microseconds that the cached call takes longer than the same body by hand."""
    arguments = six_arrays()
    function = wengert.value_and_grad(six_products)
    seconds = measure(
        [
            Contender("hand", six_products_by_hand, arguments),
            Contender("wengert", function, arguments, warming=4),
        ],
        rounds,
        clock,
    )
    pairs = zip(seconds["wengert"].values(), seconds["hand"].values(), strict=True)
    return 1e6 * statistics.median(ours - theirs for ours, theirs in pairs)


# ---------------------------------------------------------------------------------------- first calls


def first_call(rounds: int, clock: Clock) -> float:
    """Milliseconds of a call that finds the cache empty."""
    function = wengert.value_and_grad(logistic, argnums=(0, 1))
    contender = Contender("first", function, (0.4, 3.7, 1000), before=wengert.clear_cache)
    return 1e3 * statistics.median(measure([contender], rounds, clock)["first"].values())


def recompilations() -> float:
    """Traces once the loop has been seen, when it takes other numbers of steps."""
    wengert.clear_cache()
    function = wengert.value_and_grad(newton)
    for _ in range(4):
        function(2.0)
    before = traces(newton)
    for a in (10.0, 1e3, 1e6, 1e9):  # four trip counts
        function(a)
    return traces(newton) - before


def traces(function: Callable[..., Any]) -> int:
    """How often the engine has traced a function since the cache was last cleared."""
    told = re.search(r"(\d+) calls? traced", wengert.explain(function))
    return int(told.group(1)) if told else 0
