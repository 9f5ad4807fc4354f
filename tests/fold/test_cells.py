"""Variables that inner functions share, and generator expressions that are consumed whole: followed as they are.

Each program is called with numbers that vary, as plain Python, traced, and with programs kept. What is followed must
be answered by a program in the end; what could hide a state from pass to pass must be right in any case.
"""

# ruff: noqa: B023, PLW0640, E731

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import pytest

from fold.comparing import CALLS, FEW, compare, outcome
from wengert import value_and_grad

EAGER = sys.version_info < (
    3,
    14,
)  # later, `tuple`, `any` and `all` are written as loops by the compiler


pytestmark = pytest.mark.usefixtures("folding_at_once")


# Cells


def lambda_of_a_loop_variable(x: float, n: int) -> float:
    total = 0.0
    for i in range(n):
        g = lambda t: t * x + i
        total += g(2.0) * (i + 1)
    return total


def counter_in_a_cell(x: float, n: int) -> float:
    k, total = 0, 0.0
    h = lambda: k
    while k < n:
        total += x * h()
        k += 1
    return total * h()


def decided_in_a_cell(x: float, n: int) -> float:
    k = 1
    h = lambda: k * x
    if x > 0.5:
        k = 2
    if n % 2:
        k = k + 3
    return h()


def late_binding(x: float, n: int) -> float:
    """What is called in a turn was made before the loop, and sees what the turns have stored."""
    k, total = 0, x
    g = lambda: k
    for i in range(n):
        total += g() * x
        if i % 2:
            k = k + i
    return total


def stored_after_it_is_read(x: float, n: int) -> float:
    total = 0.0
    for i in range(n):
        g = lambda: k * x
        if i:
            total += g()
        k = i + 1
    return total


def default_of_the_turn(x: float, n: int) -> float:
    total = 0.0
    for i in range(n):
        g = lambda t, i=i: t * i
        total += g(x) + i
    return total


def stored_in_a_handler(x: float, n: int) -> float:
    k = 0
    h = lambda: k
    for i in range(n):
        try:
            k = i
            if i > 2:
                raise ValueError
            k = k + 10
        except ValueError:
            k = k + 100
    return h() * x


def inner_function(x: float, n: int) -> float:
    y = x
    for i in range(n):

        def step(t: float) -> float:
            return t * y - i

        y = math.sin(step(x))
    return y


def without_a_value(x: float, n: int) -> float:
    """The variable has one only where the loop has begun."""
    for i in range(n):
        j = i
        g = lambda: j * x
        if g() > 1.0:
            break
    h = lambda: j
    return h() * x


def several_at_once(x: float, n: int) -> float:
    a, b, k = x, 1.0, 1
    g = lambda: a * k + b
    while g() < 20.0 and k < 9:
        a, b = b + n, a * 1.5
        k += 1
    return g() + (lambda: a - b)()


def shared_argument(x: float, n: int) -> float:
    g = lambda: x * n
    while n > 1:
        n -= 1
        x = x + g() * 0.1
    return g() + x


def shared_in_a_comprehension(x: float, n: int) -> float:
    """The comprehension has a variable of its own of the same name."""
    w = 2.0
    h = lambda: w
    rows = [sum([x * w * k * h() for k in range(n)]) for w in range(n)]
    if n % 2:
        w = w + x
    return math.fsum(rows) + h()


@pytest.mark.parametrize(
    "f",
    [
        lambda_of_a_loop_variable, counter_in_a_cell, decided_in_a_cell, late_binding, default_of_the_turn,
        stored_after_it_is_read, stored_in_a_handler, inner_function, several_at_once, shared_argument,
        shared_in_a_comprehension,
    ],
)  # fmt: skip
def test_cells_are_followed(f: Callable[..., float]) -> None:
    entry = compare(f)
    assert entry.folding.why is None
    assert entry.folding.failures == 0
    assert entry.folding.programs
    assert entry.hits >= CALLS - FEW


# Variables that functions inside write


def counter_of_an_inner_function(x: float, n: int) -> float:
    k = 0

    def count() -> int:
        nonlocal k
        k += 1
        return k

    total = 0.0
    for _ in range(n):
        total += count() * x
    return total


def argument_written_inside(x: float, n: int) -> float:
    def scaled(k: int) -> None:
        nonlocal x
        x = x * 0.9 if k % 2 else x + 0.1 * k

    for k in range(n):
        scaled(k)
    return x * x


def written_in_both(x: float, n: int) -> float:
    total, turns = 0.0, 0

    def add(t: float) -> float:
        nonlocal total, turns
        turns += 1
        if t > 1.0:
            total += t * x
            return total
        total = total * 0.5 - t
        return t

    for k in range(n):
        total += add(x * k) * 0.1
        while turns > 3:
            turns -= 2
            total *= 0.9
    return total + turns * x


def written_two_functions_away(x: float, n: int) -> float:
    best, count = None, 0

    def walk(t: float, depth: int) -> float:
        def note(u: float) -> None:
            nonlocal best, count
            count += 1
            if best is None or u > best:
                best = u

        note(math.sin(3.0 * t))
        return t if depth == 0 else walk(t * 0.8, depth - 1) + walk(t - 0.3, depth - 1)

    return walk(x, n % 4) + best * count


def recursion_that_counts(x: float, n: int) -> float:
    calls, last = 0, x

    def f(k: int) -> float:
        nonlocal calls, last
        calls += 1
        last = last * 0.9 + k
        return x if k < 2 else f(k - 1) + 0.5 * f(k - 2)

    return f(n) * calls + last


def one_for_each_turn(x: float, n: int) -> float:
    def counter(start: float) -> Callable[[], float]:
        def step() -> float:
            nonlocal start
            start = start * 1.5
            return start

        return step

    total = 0.0
    for k in range(n):
        step = counter(x + k)
        for _ in range(k % 3 + 1):
            total += step()
    return total


def kinds_that_change(x: float, n: int) -> float:
    state: Any = None

    def feed(k: int) -> None:
        nonlocal state
        if k % 3 == 0:
            state = x * k
        elif k % 3 == 1:
            state = (x, k)
        else:
            state = [x, 2.0 * x]

    total = 0.0
    for k in range(n):
        feed(k)
        total += state if k % 3 == 0 else state[0]
    return total + x


def list_bound_anew(x: float, n: int) -> float:
    rows = [x]

    def push(y: float) -> None:
        nonlocal rows
        if len(rows) > 2:
            rows = [y]
        else:
            rows.append(y)

    other = rows
    for k in range(n):
        push(x * k)
    return sum(rows) * len(other) + other[-1]


def in_a_handler(x: float, n: int) -> float:
    errors = 0

    def checked(t: float) -> float:
        nonlocal errors
        try:
            return math.log(t)
        except ValueError:
            errors += 1
            return 0.1 * t * errors

    return sum([checked(x - 0.3 * k) for k in range(n)]) + errors * x


def bound_in_a_comprehension(x: float, n: int) -> float:
    y = 0.0
    found = [(y := y * 0.5 + x * k) for k in range(n)]
    last = sum((y := y + z) for z in found)
    return last + y


@pytest.mark.parametrize(
    "f",
    [
        argument_written_inside, written_in_both, written_two_functions_away, recursion_that_counts,
        kinds_that_change, list_bound_anew, in_a_handler, bound_in_a_comprehension,
        counter_of_an_inner_function,
    ],
)  # fmt: skip
def test_what_functions_inside_write_is_followed(f: Callable[..., float]) -> None:
    entry = compare(f)
    assert entry.folding.why is None
    assert entry.folding.failures == 0
    assert entry.hits >= CALLS - FEW


def test_a_cell_without_a_value() -> None:
    entry = compare(without_a_value, least=0)
    assert entry.folding.why is None
    assert outcome(value_and_grad(without_a_value), 1.0, 0)[0] is NameError


# Generator expressions


def summed(x: float, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += sum(x * i + j for j in range(n))
    return total


def nested(x: float, n: int) -> float:
    return sum(sum(x * i * j for j in range(i + 1)) for i in range(n))


def two_clauses(x: float, n: int) -> float:
    return 1.0 * sum(x * i * j for i in range(n) if i % 2 for j in range(i) if j * x < 3.0)


def largest(x: float, n: int) -> float:
    return max(x * i - i * i * 0.3 for i in range(n)) + min(math.sin(x + i) for i in range(n))


def listed(x: float, n: int) -> float:
    ys = list(x * i for i in range(n))
    zs = sorted((math.sin(y) for y in ys), reverse=True)
    return zs[0] + 2 * zs[-1] + len(ys)


def sums_and_products(x: float, n: int) -> float:
    return math.fsum(x / (i + 1) for i in range(n)) + math.prod(x + i for i in range(n))


def of_a_comprehension(x: float, n: int) -> float:
    return sum([sum(x * w * k for k in range(n)) for w in range(n)])


def by_a_key(x: float, n: int) -> float:
    return sorted((x * (i - 2) for i in range(n)), key=lambda y: y * y)[0] + x


def taken_apart(x: float, n: int) -> float:
    t = tuple(x * i for i in range(3))
    return t[0] + t[2] * n


def failing(x: float, n: int) -> float:
    try:
        return sum(x / (i - 4) for i in range(n))
    except ZeroDivisionError:
        return x * n


FOLLOWED = [
    summed, nested, two_clauses, largest, listed, sums_and_products, of_a_comprehension, by_a_key, failing,
]  # fmt: skip


@pytest.mark.parametrize("f", FOLLOWED + [taken_apart] * EAGER)
def test_generator_expressions_are_followed(f: Callable[..., float]) -> None:
    entry = compare(f)
    assert entry.folding.why is None
    assert entry.folding.programs
    assert entry.hits >= CALLS - FEW


def test_a_sum_of_nothing_is_an_integer() -> None:
    def f(x: float, n: int) -> float:
        return sum(x * i for i in range(n) if i > 2) / 3 + x

    entry = compare(f, least=0)
    assert entry.folding.why is None


# What could hide something from pass to pass


def lambda_of_an_earlier_turn(x: float, n: int) -> float:
    g, total = None, 0.0
    for i in range(n):
        if g is not None:
            total += g() * x
        g = lambda: i
    return total


def last_lambda(x: float, n: int) -> float:
    for i in range(n):
        g = lambda: i * x
    return g()


def list_of_lambdas(x: float, n: int) -> float:
    fs = []
    for i in range(n):
        fs.append(lambda: i * x)
    return sum(f() for f in fs)


def list_of_defaults(x: float, n: int) -> float:
    return sum([f() for f in [lambda i=i: i * x for i in range(n)]])


def counter_without_a_value(x: float, n: int) -> float:
    def count() -> float:
        nonlocal k
        k = k * 2.0
        return k

    if n > 2:
        k = x
    try:
        return count()
    except NameError:
        return x


def shared_by_turns(x: float, n: int) -> float:
    """Two functions of one turn share a variable, and those of another turn another one."""

    def made(y: float) -> tuple[Callable[[float], None], Callable[[], float]]:
        def put(z: float) -> None:
            nonlocal y
            y = z * x

        return put, lambda: y

    put, get = made(x)
    total = 0.0
    for k in range(n):
        before = get
        if k % 2:
            put, get = made(x + k)
        put(total + k)
        total += get() + before()
    return total


def deleted_inside(x: float, n: int) -> float:
    k = x

    def drop() -> None:
        nonlocal k
        del k

    for _ in range(n):
        k = x * 2
        drop()
        k = x
    return k


def outer() -> Callable[[], int]:
    k = 0

    def count() -> int:
        nonlocal k
        k += 1
        return k

    return count


count_outside = outer()


def counter_of_a_function_outside(x: float, n: int) -> float:
    """It is called by hand as well: what a call adds is no part of the value."""
    return x * n + 0.0 * count_outside()


def constant_of_a_recursion(x: float, n: int) -> float:
    """The same function, with another constant in its cell."""
    k, sine = 0, math.sin

    def deeper(m: int, t: float) -> float:
        if m <= 0:
            return sine(t)
        if k:
            return deeper(m - 1, t * 2.0)
        return deeper(m - 1, t + 1.0)

    a = deeper(3, x)
    k = 1
    return a * deeper(n, x)


def cells_of_a_recursion(x: float, n: int) -> float:
    """The same function, with a number and a constant in each other's place."""

    def made(a: float | None, b: float | None) -> Callable[[int, float], float]:
        def deeper(m: int, t: float) -> float:
            if m <= 0:
                return t
            return deeper(m - 1, t + b if a is None else t * a)  # type: ignore[operator]

        return deeper

    return made(x, None)(4, x) + made(None, x)(n, 1.0)


def consumed_later(x: float, n: int) -> float:
    k = 1
    g = (x * k for _ in range(n))
    k = 3
    return sum(g)


def handed_on(x: float, n: int) -> float:
    ys = [x]

    def later(values: Any) -> float:
        ys.append(5.0)
        return sum(values)

    return later(y * n for y in ys)


def never_run_to_the_end(x: float, n: int) -> float:
    log = []

    def note(i: int) -> bool:
        log.append(i)
        return x * i > 2.0

    found = any(note(i) for i in range(n))
    return x * len(log) + found + all(i < 2 or note(i) for i in range(n))


def extended_while_it_is_read(x: float, n: int) -> float:
    ys = [x, 1.0]
    ys.extend(y * len(ys) for y in ys[:n])
    return sum(ys)


def factory(x: float, n: int) -> float:
    def make(k: int) -> Callable[[float], float]:
        if k % 2:
            k = k + 5
        return lambda t: t * k

    f, g = make(n), make(2)
    h = f if x > 1.0 else g
    return h(x) + f(1.0) - g(x)


DANGERS = [
    lambda_of_an_earlier_turn, last_lambda, list_of_lambdas, list_of_defaults, counter_without_a_value,
    shared_by_turns, one_for_each_turn, constant_of_a_recursion, cells_of_a_recursion,
    consumed_later, handed_on, never_run_to_the_end, extended_while_it_is_read, factory,
]  # fmt: skip


@pytest.mark.parametrize("f", DANGERS)
def test_nothing_is_hidden(f: Callable[..., float]) -> None:
    compare(f)


@pytest.mark.parametrize(
    "f, why",
    [
        (counter_without_a_value, "k has no value"),
        (counter_of_a_function_outside, "a variable of a function outside is written"),
        (deleted_inside, "a variable that functions share is deleted"),
        (list_of_lambdas, "which reads i, and that may change"),
        (handed_on, "given to something else"),
        (extended_while_it_is_read, "given to something else"),
    ],
)
def test_what_is_refused(f: Callable[..., float], why: str) -> None:
    assert why in str(compare(f).folding.why)
