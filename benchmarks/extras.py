"""What is not a ratio: the price of the guards, a first call, and what another trip count compiles anew."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

import wengert

from .contenders import Contender, clear_cache
from .scalars import logistic, newton
from .timing import measure


@dataclass(frozen=True)
class Figure:
    """A line of the table of single figures; `bound` is in the same unit."""

    what: str
    value: float
    unit: str
    bound: float


def figures(rounds: int) -> list[Figure]:
    if clear_cache is None:
        return []
    return [
        Figure("guards of a dict of six arrays and two arrays", guards(rounds), "µs", 1.2),
        Figure("first call of the logistic map, 1000 steps", first_call(rounds), "ms", 15.0),
        Figure("recompilations for other trip counts of a `while`", recompilations(), "", 0),
    ]


# --------------------------------------------------------------------------------------------- guards


def six_products(p, x, y):
    """Hardly any work, but every array is read."""
    return (
        (p["a"].dot(x) + p["b"].dot(x) + p["c"].dot(x))
        + (p["d"].dot(y) + p["e"].dot(y) + p["f"].dot(y))
    ) * 2.0


def six_products_by_hand(p, x, y):
    value = (
        (p["a"].dot(x) + p["b"].dot(x) + p["c"].dot(x))
        + (p["d"].dot(y) + p["e"].dot(y) + p["f"].dot(y))
    ) * 2.0
    return value, {
        "a": 2.0 * x,
        "b": 2.0 * x,
        "c": 2.0 * x,
        "d": 2.0 * y,
        "e": 2.0 * y,
        "f": 2.0 * y,
    }


def six_arrays():
    return {name: np.linspace(0.0, 1.0, 3) for name in "abcdef"}, np.arange(3.0), np.ones(3)


def guards(rounds: int) -> float:
    """Microseconds that the cached call takes longer than the same body by hand."""
    arguments = six_arrays()
    function = wengert.value_and_grad(six_products)
    for _ in range(4):
        function(*arguments)
    seconds = measure(
        [
            Contender("hand", six_products_by_hand, arguments),
            Contender("wengert", function, arguments),
        ],
        rounds,
    )
    pairs = zip(seconds["wengert"].values(), seconds["hand"].values(), strict=True)
    return 1e6 * statistics.median(ours - theirs for ours, theirs in pairs)


# ---------------------------------------------------------------------------------------- first calls


def first_call(rounds: int) -> float:
    """Milliseconds of a call that finds the cache empty."""
    function = wengert.value_and_grad(logistic, argnums=(0, 1))
    contender = Contender("first", function, (0.4, 3.7, 1000), before=clear_cache)
    return 1e3 * statistics.median(measure([contender], rounds)["first"].values())


def recompilations() -> float:
    """Programs compiled once the loop has been seen, when it takes another number of steps."""
    function = wengert.value_and_grad(newton)
    for _ in range(4):
        function(2.0)
    before = compiled(newton)
    for a in (10.0, 1e3, 1e6, 1e-3):  # 5, 9, 14 and 9 steps, say
        function(a)
    return compiled(newton) - before


def compiled(function) -> int:
    # TO BE FILLED IN: a public counter, or the number of programs in `wengert.explain(function)`.
    raise NotImplementedError
