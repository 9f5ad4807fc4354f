"""What rules leave alone: the user's arrays, and the type of a gradient."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert import WengertError, clear_cache, grad, jit, value_and_grad

FUNCTIONS = [
    x
    for name, x in vars(math).items()
    if not name.startswith("_") and callable(x) and name not in ("nextafter", "perm", "comb")
]


def answers(fn: Callable[..., Any], *args: Any) -> bool:
    try:
        return type(fn(*args)) is float
    except (TypeError, ValueError, OverflowError):
        return False


@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_an_array_without_axes_is_left_as_it_is(fn: Callable[..., Any], on: bool) -> None:
    for start in (1.5, 0.25):
        for count in (1, 2, 3):
            args = [np.array(start + i) for i in range(count)]
            if not answers(fn, *args):
                continue
            before = [x.copy() for x in args]
            with jit(on):
                for _ in range(4):
                    try:
                        value_and_grad(fn, argnums=tuple(range(count)))(*args)
                    except WengertError:
                        continue
            assert args == before


@pytest.mark.parametrize("fn", [abs, math.fabs])
def test_a_program_that_was_written_at_nan(fn: Callable[[float], float]) -> None:
    clear_cache()
    slope = grad(lambda x: fn(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(4):
            assert math.isnan(slope(math.nan))
    for x in (1.5, -2.0, 0.0):
        found = slope(x)
        assert type(found) is float and found == (x > 0) - (x < 0)
