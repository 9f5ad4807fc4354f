"""What folded programs leave out, because it is known or is done once for all passes of a loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wengert import explain, jit, value_and_grad
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
    assert entry.hits
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


# -------------------------------------------------------------------------------------- plain arithmetic


def bounded(x: np.ndarray, y: np.ndarray) -> float:
    return np.sum(np.where(x < 1.0, np.arcsin(x), y) * y)  # type: ignore[no-any-return]


INSIDE, AT_ITS_END = np.array([0.5, 0.25, 0.75]), np.array([0.5, 1.0, 0.75])
Y = np.array([2.0, 3.0, 4.0])


def test_plain_arithmetic_goes_first_and_zero_wins_all_the_same():
    """The slope of the branch that is not taken is infinite; plain arithmetic makes NaN of it."""
    source = folded(bounded, (INSIDE, Y), (AT_ITS_END, Y), (INSIDE[:2], Y[:2]), argnums=(0, 1))
    assert "finite" in source
    _, (dx, dy) = value_and_grad(bounded, argnums=(0, 1))(AT_ITS_END, Y)
    expected = [2.0 / math.sqrt(0.75), 0.0, 4.0 / math.sqrt(1.0 - 0.75**2)]
    np.testing.assert_allclose(dx, expected, rtol=1e-12)
    np.testing.assert_allclose(dy, [math.asin(0.5), 6.0, math.asin(0.75)], rtol=1e-12)


def in_a_loop(x: np.ndarray, n: int) -> float:
    """The reverse part runs again: with lists, inner loops and a pass that left on its way."""
    items, total = [x], 0.0
    for k in range(n):
        x = np.where(x < 1.0, np.arcsin(np.minimum(x, 1.0)), x)
        items.append(x)
        if np.sum(x) > 2.8:
            total = total + np.sum(x)
            break
        for j in range(k):
            total = total + j * np.sum(items[j] * x)
    while len(items) > 1:
        y = items.pop()
        total = total + np.sum(y * y)
    return total + np.sum(items[0])


def test_the_reverse_part_can_run_twice():
    source = folded(in_a_loop, *[(x, n) for x in (INSIDE, AT_ITS_END) for n in (0, 1, 3, 6)])
    assert "finite" in source


def given_a_list(xs: list[float], y: np.ndarray) -> float:
    total = 0.0
    for x in xs:
        total = total + np.sum(np.where(y < 1.0, np.arcsin(y), y) * x)
    return total


def test_gradients_by_lists_are_computed_with_care():
    source = folded(
        given_a_list,
        ([1.0, 2.0], AT_ITS_END),
        ([0.5], INSIDE),
        ([1.5, 0.5, 2.0], AT_ITS_END),
        argnums=(0, 1),
    )
    assert "finite" not in source


def solved(x: np.ndarray, m: np.ndarray) -> float:
    """Nobody knows what LAPACK makes of NaN."""
    return np.sum(np.linalg.solve(m, np.where(x < 1.0, np.arcsin(x), x) * x))  # type: ignore[no-any-return]


def test_so_are_those_behind_a_function_that_may_lose_what_is_not_finite():
    m = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.5, 0.0, 3.0]])
    source = folded(solved, (INSIDE, m), (AT_ITS_END, m), (INSIDE[:2], m[:2, :2]), argnums=(0, 1))
    assert "finite" not in source and "arithmetic" in source


def test_gradients_that_are_not_finite():
    big = np.array([1e200, 1.0, 1e160])
    source = folded(bounded, (INSIDE, big), (INSIDE, Y), (AT_ITS_END, big), argnums=(0, 1))
    assert "finite" in source


# ------------------------------------------------------------------------------------------------ arrays


def linear(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> float:
    return np.sum((x @ w + b) ** 2)  # type: ignore[no-any-return]


def test_what_was_repeated_as_a_whole_and_what_in_parts():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 3)), rng.normal(size=(3, 2))
    biases = [rng.normal(size=n) for n in (2, 1)]
    source = folded(linear, *[(x[:k], w, b) for b in biases for k in (1, 4)], argnums=(0, 1, 2))
    assert "** 1" not in source


def neighbours(x: np.ndarray) -> float:
    y = x[1:] - x[:-1] ** 2
    return np.sum(y * y) + x[0] * x[-1]  # type: ignore[no-any-return]


X = np.array([0.5, 1.5, -2.0, 0.25])


def test_cotangents_are_added_in_place_where_they_stand():
    source = folded(neighbours, (X,), (X[1:],), (np.arange(6.0),))
    assert "dx[:-1] += " in source and source.count("scatter(") == 1


def halves(x: np.ndarray, y: np.ndarray) -> float:
    """What the sum of both hands on is one array."""
    parts = np.sum(x[1:] * y[:-1])
    both = x + y
    return np.sum(both * both) + parts  # type: ignore[no-any-return]


def test_not_where_two_of_them_are_one_array():
    source = folded(halves, (X, Y[[0, 1, 2, 0]]), (Y, X[1:]), argnums=(0, 1))
    assert "dx[1:] += " not in source and "dy[:-1] += " not in source


def steps(x: np.ndarray, w: np.ndarray, n: int) -> float:
    total = 0.0
    for k in range(n):
        y = x * w
        x = y + x * 0.5
        x = x - y[k] * w
        total = total + np.sum(x[k:] * y[: len(y) - k]) + x[k]
    return total


def test_in_loops():
    source = folded(steps, *[(X, X[::-1], n) for n in (0, 1, 3)], argnums=(0, 1))
    assert "else: dw += " in source


def mixed(x: np.ndarray, n: int) -> float:
    """Of which a part begins as another one's, in some passes."""
    total, kept = 0.0, x
    for k in range(n):
        y = kept * 1.0 if k % 2 else kept
        z = y + x
        total = total + np.sum(z * z) + y[0] * z[1]
        kept = z
    return total + np.sum(kept[1:] * x[:-1])


def test_in_passes_of_several_ways():
    folded(mixed, *[(x, n) for x in (X, Y) for n in (0, 1, 2, 5)])


def test_the_gradient_by_a_list_of_numbers_is_one_of_floats():
    def total(xs: list[Any]) -> float:
        found = 0.0
        for x in xs:
            found = found + x * x
        return found

    folded(total, ([1.0, 2.0],), ([0.5],), ([1.0, 2, 3.0],), ([1.5, np.float64(2.0)],))


def test_gradients_are_arrays_that_nobody_else_holds():
    x, w, b = np.ones((2, 3)), np.ones((3, 2)), np.ones(2)
    both = value_and_grad(linear, argnums=(0, 1, 2))
    for k in (1, 2, 1, 2):
        _, gradients = both(x[:k], w, b)
        kept = [g.copy() for g in gradients]
        for i, g in enumerate(gradients):
            assert g.flags.owndata and g.flags.writeable
            assert not any(np.shares_memory(g, y) for y in (x, w, b, *gradients[:i]))
            g += 1.0
        for g, before in zip(gradients, kept, strict=True):
            np.testing.assert_equal(g, before + 1.0)
    (entry,) = cache.entries.values()
    (program,) = entry.programs
    assert "own_gradient_by" in program.source
    assert "3 hits, 0 misses" in explain(both)


def passed_on(x: np.ndarray, y: np.ndarray) -> float:
    return np.sum(x + y) + np.sum(y)  # type: ignore[no-any-return]


def test_nor_are_those_that_are_one_array():
    folded(passed_on, (X, X[::-1]), (Y, Y), (X[:1], Y[:1]), argnums=(0, 1))
    _, (dx, dy) = value_and_grad(passed_on, argnums=(0, 1))(X, X[::-1])
    assert dx.flags.writeable and dy.flags.writeable and not np.shares_memory(dx, dy)


def nested(x: np.ndarray, deep: int) -> np.ndarray:
    if deep == 0:
        return np.where(x < 1.0, np.arcsin(np.minimum(x, 1.0)), x) * x
    return nested(x * 0.9, deep - 1) + nested(np.minimum(x, 0.5) + 0.5, deep - 1)


def recursive(x: np.ndarray, deep: int) -> float:
    return np.sum(nested(x, deep) * x)  # type: ignore[no-any-return]


def test_functions_inside_multiply_as_the_program_does():
    source = folded(recursive, *[(x, n) for x in (INSIDE, AT_ITS_END) for n in (0, 1, 2)])
    assert "finite" in source and "_back(" in source


# ------------------------------------------------------------------------------- one number all over an array

Z = np.array([0.5, -1.5, 2.0, 0.25])


def once_each(x: np.ndarray, w: float) -> float:
    h = np.tanh(w * x)
    return np.sum(h * h) + np.mean(np.exp(-x))  # type: ignore[no-any-return]


def test_a_number_all_over_is_handed_on_as_the_number():
    source = folded(once_each, (Z, 0.3), (Z[:2], 0.7), (Z[:1], 2.0), argnums=0)
    assert "expand(" not in source


def twice_asked(x: np.ndarray, w: float) -> float:
    h = np.exp(x)
    return np.sum(h) + np.dot(h, h)  # type: ignore[no-any-return]


def as_it_comes(x: np.ndarray, w: float) -> float:
    return np.sum(x + w) + np.sum(-x) * w  # type: ignore[no-any-return]


def by_number(x: np.ndarray, w: float) -> float:
    return np.sum(x * w) + np.sum(w / x)  # type: ignore[no-any-return]


def spread_out(x: np.ndarray, w: float) -> float:
    return np.sum(np.exp(x)[:, None] * np.cos(x)) + np.sum(x * np.sum(np.sin(x)))  # type: ignore[no-any-return]


def on_the_way(x: np.ndarray, w: float) -> float:
    h = np.sin(x)
    if w > 0.5:
        s = np.sum(h)
    else:
        s = np.sum(h * h) + np.sum(h)
    return s * w  # type: ignore[no-any-return]


def in_passes(x: np.ndarray, w: float) -> float:
    total = 0.0
    for k in range(len(x)):
        total = total + np.sum(np.log(np.abs(x[k:]))) * w
    return total


@pytest.mark.parametrize(
    "f", [twice_asked, as_it_comes, by_number, spread_out, on_the_way, in_passes]
)
def test_the_array_of_a_number_is_made_where_it_is_asked_for(f):
    folded(f, (Z, 0.3), (Z[:2], 0.7), (Z[:1], 2.0), argnums=(0, 1))
