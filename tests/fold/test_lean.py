"""What folded programs leave out, because it is known or is done once for all passes of a loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert import jit, value_and_grad
from wengert.transforms import cache

pytestmark = pytest.mark.usefixtures("folding_at_once")


def close(x: Any, y: Any) -> None:
    """Gradients whose terms may have been added in another order."""
    if isinstance(x, (list, tuple)):
        assert type(x) is type(y)
        for a, b in zip(x, y, strict=True):
            close(a, b)
    else:
        np.testing.assert_allclose(x, y, rtol=1e-13)


def folded(f: Callable[..., float], *runs: tuple[Any, ...], argnums: Any = 0) -> str:
    """The source of the program that answers these calls, which are compared with plain Python and traced runs."""
    both = value_and_grad(f, argnums=argnums)
    for args in runs * 3:
        value, gradient = both(*args)
        assert repr(value) == repr(f(*args))
        with jit(False):
            _, traced = both(*args)
        close(gradient, traced)
    (entry,) = cache.entries.values()
    assert entry.folding.why is None, entry.folding.why
    (program,) = entry.programs
    assert program.hits
    return str(program.source)


def in_order(source: str, *texts: str) -> None:
    """The lines with these texts come one after another."""
    lines = [line.strip() for line in source.splitlines()]
    at = [next(i for i, line in enumerate(lines) if text in line) for text in texts]
    assert at == sorted(at), (texts, at)


# ------------------------------------------------------------------------------------------------- shadows


def horner(coefficients: list[float], points: list[float]) -> float:
    total = 0.0
    for x in points:
        s = 0.0
        for c in coefficients:
            s = s * x + c
        total = total + s
    return total


LISTS = [([1.0, 2.0, 3.0], [0.5, 2.0]), ([3.0], [1.0, 2.0, 4.0]), ([1.0, 2.0], []), ([0.5], [1.5])]


def test_the_shadow_of_a_list_is_looked_up_before_the_loops_that_read_it():
    source = folded(horner, *LISTS)
    assert source.count("shadows.get(id(coefficients))") == 1
    in_order(source, "shadows.get(id(coefficients))", "in reversed(")


def rows(matrix: list[list[float]], x: float) -> float:
    total = 0.0
    for row in matrix:
        for k in range(len(row)):
            total += row[k] * row[k] * x
    return total


def test_that_of_a_list_that_each_pass_takes_out_is_looked_up_in_each():
    source = folded(
        rows, ([[1.0, 2.0], [3.0]], 0.5), ([[3.0], [1.0, 5.0]], 2.0), ([[4.0]], 1.0), argnums=(0, 1)
    )
    outer, inner = [i for i, x in enumerate(source.splitlines()) if "in reversed(" in x]
    (at,) = [i for i, x in enumerate(source.splitlines()) if "shadows.get(" in x]
    assert outer < at < inner


def appended(xs: list[float], x: float) -> float:
    """Whose list grows, before and after it is read."""
    own = [x, 2.0 * x]
    both = [own]
    total = 0.0
    for y in xs:
        own.append(y * x)
        for k in range(len(own)):
            total += own[k] * math.sin(both[0][k])
    own.append(total)
    own[0] = x * x
    return total + own[-1] * own[0]


def test_a_list_that_grows():
    folded(appended, ([1.0, 2.0], 0.5), ([0.5], 1.5), ([3.0], 2.0), argnums=(0, 1))


# -------------------------------------------------------------------------------------------------- ranges


def test_a_range_is_walked_backwards_where_nothing_else_is_kept():
    source = folded(horner, *LISTS)
    assert source.count(".append(") == 1  # of the points


def found(xs: list[float], limit: float) -> float:
    total = 0.0
    for x in xs:
        if x > limit:
            break
        total = total + x
    return total


def test_not_where_a_loop_was_left_on_its_way():
    folded(found, ([1.0, 2.0, 3.0], 2.5), ([1.0, 2.0], 2.5), ([3.0], 2.5), ([0.5], 1.0))


def returned(xs: list[float], limit: float) -> float:
    total = 0.0
    for x in xs:
        if x > limit:
            return 2.0 * total + x
        total = total + x
    return total


def test_not_where_a_function_returned_out_of_it():
    folded(returned, ([1.0, 2.0, 3.0], 2.5), ([1.0, 2.0], 2.5), ([3.0], 2.5), ([0.5], 1.0))


def raised(xs: list[float], n: int) -> float:
    total = 0.0
    try:
        for k in range(n):
            total = total + xs[k]
    except IndexError:
        total = total * 3.0
    return total


def test_not_where_it_raised():
    folded(raised, ([1.0, 2.0, 3.0], 2), ([1.0, 2.0], 5), ([3.0], 1), ([1.5], 0), ([2.0], 3))


def some(xs: list[float], limit: float) -> float:
    total = 0.0
    for x in xs:
        if x > limit:
            continue
        total = total + x
    return total


def test_not_where_passes_went_two_ways():
    folded(some, ([1.0, 2.0, 3.0], 2.5), ([3.0, 2.0], 2.5), ([3.0], 2.5), ([0.5], 1.0))


def counted(x: float, n: int) -> float:
    """With a loop whose items nobody asks for, and one that is not entered at times."""
    y = x
    for _ in range(n):
        y = y * 0.5 + x
    for _ in range(n - 2):
        y = 3.0 * y
    return y


def test_passes_are_counted_by_the_range():
    source = folded(counted, (1.5, 3), (2.0, 0), (0.5, 1), (0.25, 6))
    assert ".append(" not in source
