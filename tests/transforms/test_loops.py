"""Rolled loops: one operation on the tape, with the values, gradients and decisions of the unrolled one."""

import heapq
import math
import random
import unittest

import numpy as np
import pytest

from wengert import grad, jit, pullback, value_and_grad
from wengert.tracer.loops import carry
from wengert.tracer.run import run
from wengert.tracer.source import compiled
from wengert.transforms.api import reverse
from wengert.transforms.dispatch import traced_run
from wengert.transforms.loops import LoopFunction, Miss
from wengert.transforms.roll import roll
from wengert.transforms.stream import Watcher, watch


def marked(f, *args):
    """The tape of a run with marks, and its value."""
    done = run(f, args, {}, marks=True)
    return done.tape, done.value


def rolled(f, *args):
    """The rolled tape; that it computes what was traced is checked."""
    tape, value = marked(f, *args)
    reasons = {}
    tape = roll(tape, reasons)
    tape.reasons = reasons
    assert identical(evaluate(tape, *args), value)
    assert identical(value, f(*args))
    return tape


def evaluate(tape, *args):
    """The result of a tape for other arguments; every guard is checked."""
    return compiled(tape, "program")(*flat(args))


def flat(args):
    found = []
    for x in args:
        found += flat(x) if isinstance(x, (list, tuple)) else [x]
    return found


def identical(x, y):
    if isinstance(x, (list, tuple)):
        return len(x) == len(y) and all(map(identical, x, y))
    if isinstance(x, np.ndarray):
        return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    return type(x) is type(y) and repr(x) == repr(y)


def loops(tape):
    return [op for op in tape if isinstance(op.fn, LoopFunction)]


def agree(x, y, rtol=1e-12):
    if isinstance(x, (list, tuple)):
        assert len(x) == len(y)
        for a, b in zip(x, y):
            agree(a, b, rtol)
    else:
        assert np.allclose(x, y, rtol=rtol, atol=1e-14)


def check(f, *args, others=(), count=1):
    """A loop is rolled: values to the bit, gradients as unrolled, also for other arguments and the second order."""
    tape = rolled(f, *args)
    assert len(loops(tape)) == count, tape.reasons
    n = len(args)
    program = reverse(tape)
    for xs in (args, *others):
        value, gradients = evaluate(program, *xs)
        assert identical(value, f(*xs))
        agree(gradients, flat(value_and_grad(f, argnums=tuple(range(n)))(*xs)[1]))
    if all(type(x) is float for x in args):
        second = reverse(reverse(roll(marked(f, *args)[0]), wrt=argument(f), value=False))
        for xs in (args, *others):
            slope, gradients = evaluate(second, *xs)
            agree(slope, grad(f)(*xs))
            agree(gradients, grad(grad(f), argnums=tuple(range(n)))(*xs), rtol=1e-9)
    return tape


def argument(f):
    return f.__code__.co_varnames[0]


def logistic(x, r):
    for _ in range(50):
        x = r * x * (1 - x)
    return x


def root(a):
    x = a
    while abs(x * x - a) > 1e-14 * a:
        x = (x + a / x) / 2
    return x


def test_a_loop_with_a_count():
    tape = check(logistic, 0.3, 3.2, others=[(0.7, 2.9), (-0.0, 1.0)])
    assert len(tape) < 8
    assert loops(tape)[0].args[0] == 50


def test_a_loop_with_a_condition_serves_all_counts():
    tape = check(root, 2.0, others=[(9.0,), (1e-3,), (12345.678,), (1e30,)])
    (loop,) = loops(tape)
    assert loop.args[0] is None


def test_gradients_on_the_rolled_tape_itself():
    from wengert.transforms.reverse import Numeric, sweep

    for f, args in ((logistic, (0.3, 3.2)), (root, (7.0,))):
        tape = rolled(f, *args)
        found = sweep(tape.ops, list(tape.inputs), [(tape.result, 1.0)], Numeric())
        agree(tuple(found), value_and_grad(f, argnums=tuple(range(len(args))))(*args)[1])


def test_two_variables_with_the_same_value_are_told_apart():
    def f(x, y):
        best = last = x
        n = 0
        while last < 10.0:
            best = last
            last = last * y
            n += 1
        return best * n + last

    check(f, 0.5, 1.5, others=[(0.5, 2.5), (9.0, 1.01), (1e-3, 3.0)])


def test_a_counter_is_carried():
    def f(x):
        n = 0
        total = 0.0
        while x > 0.1 and n < 60:
            n += 1
            total = total + x / n
            x = x * 0.9
        return total * n

    tape = check(f, 2.0, others=[(30.0,), (0.9,)])
    with pytest.raises(Miss):  # another way out
        evaluate(tape, 500.0)


def test_an_array_is_carried():
    def f(x, w):
        for _ in range(12):
            x = np.tanh(w @ x) + x
        return (x * x).sum()

    rng = np.random.default_rng(1)
    check(
        f,
        rng.normal(size=3),
        rng.normal(size=(3, 3)),
        others=[(rng.normal(size=3), rng.normal(size=(3, 3)))],
    )


def test_gradient_descent_until_it_stops():
    def f(x, a):
        while True:
            step = a * (x - 1.0)
            x = x - step
            if np.abs(step).max() < 1e-6:
                return x.sum()

    check(f, np.array([3.0, -1.0]), 0.3, others=[(np.array([30.0, 1.0]), 0.5)])


def test_a_tuple_and_a_list_are_carried():
    def f(x, v):
        state = (x, v)
        ys = [x, v]
        for _ in range(20):
            state = (state[0] + 0.1 * state[1], state[1] - 0.1 * state[0])
            ys = [0.9 * y for y in ys]
        return state[0] * ys[1] + state[1]

    tape = rolled(f, 1.0, 0.5)
    agree(evaluate(reverse(tape), 0.3, 0.2)[1], value_and_grad(f, argnums=(0, 1))(0.3, 0.2)[1])


def test_what_is_computed_before_and_after():
    def f(x, y):
        k = math.sin(x)
        for _ in range(10):
            x = x * k + y
        z = x * y
        while z > 1.0:
            z = z / 1.7 - 0.01 * k
        return z + x

    check(f, 0.9, 1.4, others=[(0.8, 1.5)], count=2)


def test_loops_that_are_left_as_they_are():
    def short(x):
        for _ in range(4):
            x = x * x
        return x

    def earlier(x):  # from ever farther away
        xs = [x]
        for _ in range(20):
            xs.append(xs[len(xs) // 2] * 0.9)
        return xs[3]

    def grows(x):
        for _ in range(9):
            x = np.concatenate([x, x[:1] * 2.0])
        return x.sum()

    def outside(x):
        for _ in range(20):
            x = x * 0.5
            print(x, end="")
        return x

    for f, x, why in (
        (short, 1.1, "short"),
        (earlier, 1.1, "different values of earlier ones"),
        (grows, np.ones(2), "short"),
        (outside, 1.0, "outside"),
    ):
        tape = rolled(f, x) if f is not outside else roll(marked(f, x)[0], reasons := {})
        assert not loops(tape)
        assert why in str(getattr(tape, "reasons", None) or reasons)
        assert not [op for op in tape if op.fn is carry and op is not tape.result]


def test_another_decision_is_a_miss():
    def f(x):
        for _ in range(20):
            x = x * 0.9 if x > 1.0 else x * 1.3
            if x > 1e6:
                raise ValueError
        return x

    tape = rolled(lambda x: g(x, 12), 100.0)
    assert len(loops(tape)) == 1
    assert identical(evaluate(tape, 99.0), g(99.0, 12))
    with pytest.raises(Miss):
        evaluate(tape, 2.0)


def g(x, n):
    for _ in range(n):
        if x > 1.0:
            x = x * 0.9
        else:
            x = x * 3.5
    return x


def test_the_source_can_be_read():
    tape = rolled(logistic, 0.3, 3.2)
    text = loops(tape)[0].fn.source()
    assert text.startswith("def loop(n, c1, r1):\n    for _ in range(n):\n")


# ------------------------------------------------------------------------------------------ decisions in the body


def test_branches():
    def f(x, y):
        total = 0.0
        for _ in range(40):
            if x > 1.0:
                x = x * 0.6
                total = total + math.sin(x)
            else:
                x = x * y
        return total * x

    check(f, 0.3, 1.9, others=[(0.9, 1.3), (5.0, 2.2)])


def test_branches_continue_and_break():
    def f(x, y):
        total = x
        while True:
            x = x * y
            if x > 30.0:
                x = x - 29.5
                continue
            if x < 0.9:
                x = x + 0.3
            elif total > 500.0:
                break
            total = total + x * x
        return total + x

    tape = check(f, 1.7, 1.6, others=[(1.71, 1.6)])
    assert loops(tape)[0].args[0] is None


def test_the_best_so_far():
    def f(x, r):
        best = x
        for _ in range(60):
            x = r * x * (1 - x)
            if x > best:
                best = x
        return best

    check(f, 0.2, 3.9, others=[(0.3, 3.8), (0.11, 3.99)])


# ------------------------------------------------------------------------------------------------- nested loops


def test_horner():
    def f(points, coefficients):
        total = 0.0
        for x in points:
            p = 0.0
            for c in coefficients:
                p = p * x + c
            total = total + p * p
        return total

    points = [0.1 * i for i in range(20)]
    coefficients = [1.0 / (i + 1) for i in range(21)]
    tape = check(f, points, coefficients, others=[(points[::-1], coefficients[::-1])])
    assert len(tape) < 120


def test_newton_in_a_loop():
    def f(a, b):
        total = a
        for _ in range(10):
            x = total + 1.0
            while abs(x * x - total) > 1e-12 * total:
                x = (x + total / x) / 2
            total = total + x * b
        return total

    check(f, 2.0, 0.3, others=[(5.0, 0.1), (0.5, 2.0)])


def test_nested_counts_that_grow():
    def f(x):
        total = x
        for i in range(1, 13):
            p = x
            for _ in range(i):
                p = p * 0.9 + total * 0.01
            total = total + p
        return total

    check(f, 0.7, others=[(1.1,)])


# -------------------------------------------------------------------------- counters, elements, lists that grow


def test_the_counter_in_arithmetic():
    def f(x):
        total = x
        for i in range(1, 30):
            total = total * 0.9 + x / i
        return total

    check(f, 0.7, others=[(1.1,)])


def test_elements_by_counter():
    def f(xs, ys):
        total = 0.0
        for i in range(len(xs)):
            total = total * 0.5 + xs[i] * ys[-1 - i]
        return total

    xs = [0.1 * i for i in range(20)]
    check(f, xs, xs[::-1], others=[([x + 1.0 for x in xs], [x - 0.5 for x in xs])])


def test_elements_of_an_array():
    def f(v, w):
        total = 0.0
        for i in range(len(v)):
            total = total * w[0] + v[i] * w[1]
        for x in v:
            total = total + x * x
        return total

    v = np.linspace(0.1, 1.0, 12)
    check(f, v, np.array([0.5, 2.0]), others=[(v[::-1], np.array([0.25, 1.0]))], count=2)


# ------------------------------------------------------------------------------- loops that are rolled as they run


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Loops are looked at much sooner than in use."""
    monkeypatch.setattr("wengert.tracer.loops.FIRST_LOOK", 34)


def streamed(f, *args):
    """The tape of a run whose long loops leave the tape while they run, and what was dropped."""
    done = run(f, args, {}, marks=watch)
    dropped = [p.dropped for p in done.tape.passages]
    assert identical(done.value, f(*args))
    tape = roll(done.tape)
    assert identical(evaluate(tape, *args), done.value)
    program = reverse(tape)
    agree(
        evaluate(program, *args)[1],
        flat(value_and_grad(f, argnums=tuple(range(len(args))))(*args)[1]),
    )
    return tape, program, dropped


def test_a_long_loop_leaves_the_tape():
    def f(x, r):
        n = 0
        while n < 2000:
            n += 1
            x = r * x * (1 - x)
        return x * n

    tape, program, dropped = streamed(f, 0.3, 2.7)
    assert dropped[0] > 1900
    assert len(tape) < 20
    assert identical(evaluate(program, 0.2, 2.9)[0], f(0.2, 2.9))


def test_a_long_loop_with_branches():
    def f(x, r):
        best = x
        for _ in range(1500):
            if x > 0.5:
                x = r * x * (1 - x)
                if x > best:
                    best = x
            else:
                x = x * 1.25
        return x + best

    tape, program, dropped = streamed(f, 0.3, 2.1)
    assert dropped[0] > 1300
    assert identical(evaluate(program, 0.2, 2.2)[0], f(0.2, 2.2))


def test_a_long_loop_over_a_list():
    def f(xs, a):
        total = 0.0
        for i, x in enumerate(xs):
            total = total * a + x / (i + 1)
        return total

    xs = [0.01 * i for i in range(300)]
    tape, program, dropped = streamed(f, xs, 0.9)
    assert dropped[0] > 200
    assert identical(evaluate(program, xs[::-1], 0.8)[0], f(xs[::-1], 0.8))


def test_a_long_loop_whose_steps_are_kept_elsewhere():
    def f(x, r):
        kept = []
        for i in range(400):
            x = r * x * (1 - x)
            if i % 150 == 0:
                kept.append(x)
        last = x
        for _ in range(300):
            x = x * 0.99 + 0.001 * last
            y = x * 2.0
        return sum(kept) + y

    streamed(f, 0.3, 2.9)


def test_a_long_loop_that_changes_its_way_late():
    def f(x, r):
        for i in range(500):
            x = r * x * (1 - x)
            if i == 300:
                x = math.sin(x)
            if i > 450:
                x = x + 0.01
        return x

    streamed(f, 0.3, 2.9)


def test_parts_of_a_long_loop_follow_one_another(monkeypatch):
    """Where something else holds what iterations compute, those before and after it are loops of their own."""
    held = []

    class Holding(Watcher):
        def __call__(self, passage):
            if len(held) < 5 and passage.numbers[-1] % 100 == 0:
                held.append([*self.ops[passage.heads[-3] : passage.heads[-2]]])
            super().__call__(passage)

    monkeypatch.setattr("wengert.transforms.stream.Watcher", Holding)

    def f(x, r):
        n = 0
        while n < 2000:
            n += 1
            x = r * x * (1 - x)
        return x * n

    tape, _, _ = streamed(f, 0.3, 2.7)
    assert len(held) == 5 and len(loops(tape)) >= 3


def test_a_gradient_inside_a_long_loop():
    def f(x):
        for _ in range(100):
            x = x - 0.01 * grad(lambda y: y * y * y)(x)
        return x

    streamed(f, 0.7)


def test_a_gradient_around_a_long_loop():
    def inner(x, r):
        for _ in range(200):
            x = r * x * (1 - x)
        return x

    streamed(lambda r: grad(inner)(0.3, r), 1.01)


def test_a_loop_of_unlike_iterations_is_left_alone(monkeypatch):
    """Each look at the pattern costs some milliseconds, which are not spent at each iteration."""
    looks = []
    check = Watcher.check
    monkeypatch.setattr(Watcher, "check", lambda self: (looks.append(1), check(self)))

    case = unittest.TestCase()

    def f(x):
        items = []
        for _ in range(5000):
            items.append(random.random())
        heapq.heapify(items)
        compare(items)
        return x * x

    def compare(items):
        for i, item in enumerate(items):
            if i:
                case.assertTrue(items[(i - 1) >> 1] <= item)

    with jit(False):
        assert grad(f)(1.5) == 3.0
    assert len(looks) < 100


def the_last_two_angles(x, n=20):
    total, angle = 0.0, 0.0
    for i in range(n):
        before = angle
        angle = math.acos(1.0 - x * abs(i - 4) / n)  # whose slope is infinite where i is 4
        total += x * i
    return angle * total + before


def the_last_root(x, n=20):
    y = math.acos(x / x)
    for i in range(n):
        if i > 5:
            y = math.sqrt(x) + i
    return y


@pytest.mark.parametrize("f", [the_last_two_angles, the_last_root])
def test_what_has_no_influence_meets_an_infinite_slope(f):
    """There is no cotangent of it, so that nothing is multiplied by the slope: no zero gives NaN either."""
    for ask in (
        lambda: value_and_grad(f),
        lambda: lambda x: (lambda y, back: (y, back(1.0)[0]))(*pullback(f, x)),
    ):
        both = ask()
        for x in (0.3, 0.4, 0.5, 0.6, 0.45, 0.35):
            value, slope = both(x)
            expected = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
            assert value == f(x) and slope == pytest.approx(expected, rel=1e-6)


def test_what_has_no_influence_in_a_long_loop():
    n = 30_000
    value, slope = value_and_grad(lambda x: the_last_two_angles(x, n))(0.3)
    expected = (the_last_two_angles(0.3 + 1e-6, n) - the_last_two_angles(0.3 - 1e-6, n)) / 2e-6
    assert value == the_last_two_angles(0.3, n) and slope == pytest.approx(expected, rel=1e-6)


def test_a_pullback_keeps_nothing_of_loops_that_are_not_rolled():
    def f(x):
        state = (0.1, 0.2, x)
        for _ in range(5_000):
            a, b, c = state
            state = (b, c, 0.3 * a + 0.2 * b * c)
        return state[2]

    assert traced_run(f, (0.5,), {}, None).tape.passages == []
