"""Loops that use their counter, list elements or array elements, with decisions: kept once for all ways through."""

import itertools
import math
import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import assert_same
from wengert import clear_cache, explain, jit, value_and_grad

rng = np.random.default_rng(0)
START = rng.bit_generator.state
TABLE = [0.01 * k for k in range(60)]


@pytest.fixture(autouse=True)
def fresh():
    clear_cache()
    rng.bit_generator.state = START  # whatever ran before


def differences(f, x, h=1e-6):
    """The gradient by central differences, of each number in an array or list, or of a number."""
    if isinstance(x, float):
        return (f(x + h) - f(x - h)) / (2 * h)
    found = np.zeros(np.shape(x))
    for i in np.ndindex(found.shape):
        sides = []
        for step in (h, -h):
            y = np.array(x)
            y[i] += step
            sides.append(f(type(x)(y) if isinstance(x, list) else y))
        found[i] = (sides[0] - sides[1]) / (2 * h)
    return found


def kept(f, make, calls=20, traced=6, smooth=True):
    """However the calls branch, only the first few are traced, and all are right."""
    cached = value_and_grad(f)
    for number in range(calls):
        x = make()
        value, gradient = cached(x)
        assert_same(value, f(x))
        with jit(False):
            _, uncached = cached(x)
        np.testing.assert_allclose(gradient, uncached, rtol=1e-11, atol=1e-13)
        if smooth and number % 5 == 0:
            np.testing.assert_allclose(gradient, differences(f, x), rtol=2e-5, atol=2e-6)
    told = explain(cached, x)
    assert "rolled" in told
    assert told.count("traced") and int(told.split(" calls traced")[0].split()[-1]) <= traced, told


def vector():
    return rng.normal(size=60)


def matrix():
    return rng.normal(size=(9, 11))


def items():
    return rng.normal(size=60).tolist()


def number():
    return float(rng.uniform(0.2, 1.9))


def test_elements_of_an_array():
    def hinge(x):
        s = 0.0
        for i in range(1, len(x) - 1):
            if x[i] > x[i - 1]:
                s = s + x[i] * x[i + 1]
            else:
                s = s * 0.5 + 0.01 * i
        return s

    kept(hinge, vector)


def test_the_counter_in_branches():
    def f(y):
        for i in range(80):
            if y > 1:
                y = y / 2 + 0.01 * i
            else:
                y = y * 2 + 0.3 / (i + 1)
        return y

    kept(f, number, smooth=False)


def test_elements_of_a_list():
    def f(xs):
        s = 0.0
        for i in range(len(xs)):
            if xs[i] > 0:
                s = s + xs[i] * xs[i]
            elif i > 0:
                s = s + 0.1 * xs[i - 1]
        return s

    kept(f, items)


def test_a_table_of_constants():
    def f(y):
        for i in range(60):
            y = y / 2 + TABLE[i] if y > 1 else y * 2 + TABLE[-i]
        return y

    kept(f, number, smooth=False)


def test_decisions_on_the_counter():
    def f(y):
        for i in range(90):
            if i % 3 == 0:
                y = y / 2 + 0.1
            elif y > 1.5 and i > 10:
                y = y * 0.9 - 0.01 * i
            else:
                y = 1.1 * y
        return y

    kept(f, number, smooth=False)


def test_enumerate_and_zip():
    def f(xs):
        s = 0.0
        for i, (a, b) in enumerate(zip(xs, xs[1:])):
            if a > b:
                s = s + a * b * i
        return s

    kept(f, items)


def test_nested_loops():
    def f(a):
        s = 0.0
        for i in range(len(a) - 1):
            for j in range(a.shape[1] - 1):
                if a[i, j] > 0:
                    s = s + a[i, j] * a[i + 1, j + 1]
        return s

    kept(f, matrix)


def test_an_array_is_written_element_by_element():
    def f(x):
        y = np.zeros(len(x))
        y[0] = x[0]
        for i in range(1, len(x)):
            if y[i - 1] > 0.1:
                y[i] = y[i - 1] * 0.5 + x[i]
            else:
                y[i] = x[i] ** 2
        return y.sum() + x[1]

    kept(f, vector)


def test_forward_and_back_substitution():
    def thomas(d):
        n = len(d)
        c, b, x = np.zeros(n), np.zeros(n), np.zeros(n)
        c[0], b[0] = 1 / (5 + d[0]), d[0]
        for i in range(1, n):
            m = 4.0 + d[i] ** 2 - c[i - 1]
            c[i] = 1 / m
            b[i] = (d[i] - b[i - 1]) / m
        x[-1] = b[-1]
        for i in range(n - 2, -1, -1):
            x[i] = b[i] - c[i] * x[i + 1]
        return x @ x

    kept(thomas, lambda: rng.uniform(0.5, 1.5, size=30))


def test_an_argument_is_written_to():
    """The caller sees what was written, each time, also where the loop is a program."""

    def f(x):
        s = 0.0
        for i in range(1, len(x)):
            if x[i] > 0:
                x[i] = x[i] * x[i - 1]
            s = s + x[i]
        return s

    def outer(y):
        x = y.copy()
        return f(x) + x[3] * x[-1]

    kept(outer, vector)
    cached = value_and_grad(f)
    for _ in range(6):
        x = vector()
        y = x.copy()
        assert_same(cached(x)[0], f(y))
        assert_same(x, y)


def test_a_loop_is_left_at_any_time():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            if x[i] > 1.0:
                break
            s = s + x[i] * x[i] * (i + 1)
        return s

    kept(f, lambda: np.append(rng.normal(size=80) - 0.8, 2.0), calls=30, traced=12)


def test_an_element_that_other_iterations_cannot_have():
    """The last iteration has no successor; that it never asks for it follows from its number."""

    def f(xs):
        s = 0.0
        for i in range(len(xs)):
            if i < len(xs) - 1:
                s = s + xs[i] * xs[i + 1] if xs[i] > 0 else s - xs[i + 1]
        return s

    kept(f, items)

    def g(xs):
        s = 0.0
        for i in range(len(xs)):
            if xs[i] > 0:
                s = s + xs[i + 1]
        return s

    cached = value_and_grad(g)
    for _ in range(6):
        xs = items()
        xs[-1] = -1.0
        assert_same(cached(xs)[0], g(xs))
        xs[-1] = 1.0
        with pytest.raises(IndexError):
            cached(xs)


def test_what_depends_on_the_counter_otherwise():
    """A look-up by the counter is not followed, so that another way through is not known."""
    names = {i: math.sin(i) for i in range(60)}

    def f(y):
        for i in range(60):
            y = y / 2 + names[i] if y > 0.3 else 0.5 - y
        return y

    cached = value_and_grad(f)
    for _ in range(12):
        x = number()
        value, gradient = cached(x)
        assert_same(value, f(x))
        np.testing.assert_allclose(gradient, differences(f, x), rtol=1e-4, atol=1e-9)


NAMED = {f"k{i}": 0.01 * i * i for i in range(40)}
ROWS = [[0.01 * i, 0.02 * i] for i in range(40)]


@pytest.mark.parametrize(
    "source, used",
    [
        ("NAMED", "NAMED[v]"),
        ("NAMED.items()", "v[1]"),
        ("reversed(list(NAMED))", "NAMED[v]"),
        ("'abcdefghijklmnopqrstuvwxyz'", "0.01 * ord(v)"),
        ("(0.01 * i for i in range(40))", "v"),
        ("map(math.sqrt, range(40))", "v"),
        ("itertools.product(range(6), range(7))", "0.01 * v[0] * v[1]"),
        ("ROWS", "v[0]"),
        ("{0.5 * i for i in range(40)}", "0.1 * v"),
        ("[i % 3 == 1 for i in range(40)]", "(1.5 if v else 0.5)"),
        ("range(40)", "ROWS[v][1]"),
        ("range(40)", "TABLE[v]"),
    ],
)
def test_what_only_some_iterations_of_the_traced_call_used(source, used):
    """A branch that the traced call took once is right where another call takes it at other iterations."""
    space = {"NAMED": NAMED, "ROWS": ROWS, "TABLE": TABLE, "math": math, "itertools": itertools}
    text = f"def f(y):\n    for v in {source}:\n        y = y * 0.9 + 0.1\n"
    exec(text + f"        if y > 1.05:\n            y = y / 2 + {used}\n    return y\n", space)
    f = space["f"]
    cached = value_and_grad(f)
    for y in (1.06, 1.06, 1.06, 1.2, 3.0, 0.5, 1.06, 7.0, 1.5, 0.9, 2.0, 40.0, 1.3):
        value, gradient = cached(y)
        assert_same(value, f(y))
        with jit(False):
            assert gradient == pytest.approx(cached(y)[1], rel=1e-11)


def test_the_counter_after_the_loop():
    def f(x):
        for i in range(40):
            x = x * 0.9 if x > 0.5 else x + 0.01 * i
        return x * i

    for _ in range(6):
        x = number()
        assert_same(value_and_grad(f)(x)[0], f(x))


def test_a_seed_for_every_iteration():
    """A counter that is followed may go wherever a plain number may."""
    import random

    def f(x):
        s = i = 0
        while i < 12:
            s = s + x * random.Random(i).random()
            i += 1
        for i in range(12):
            s = s + x * np.random.RandomState(i).rand() + math.comb(i, 2)
        return s

    for _ in range(4):
        value, gradient = value_and_grad(f)(0.5)
        assert_same(value, f(0.5))
        assert gradient == pytest.approx(differences(f, 0.5))


def test_sums_in_reverse_need_no_copies():
    """The cotangent of an array that is read element by element is one array, not one for each read."""

    def f(x):
        s = 0.0
        for i in range(1, len(x)):
            s = s + x[i] * x[i - 1] if x[i] > 0 else s
        return s

    cached = value_and_grad(f)
    x = rng.normal(size=4000)
    for _ in range(3):
        cached(x)
    source = explain(cached, x).source
    loop = source[source.index("for path in reversed") :]
    assert "copy" not in loop.split("if not (")[0]


def test_arrays_that_are_written_to_around_a_long_loop():
    """A long loop is run once more for the sweep: from what its arrays held then."""

    def before_and_after(x):
        s = 0.1
        for _ in range(6000):
            s = 0.5 * s + x[1]
        out = np.zeros(3)
        out[0] = s
        return out.sum()

    def late(x):
        y = x * 2
        s = 0.1
        for i in range(6000):
            s = 0.5 * s + y[1] * 0.1
            if i == 5900:
                y[1] = 0.3 * y[0]
        y[0] = 5.0
        return s * y.sum()

    def own(x):
        y = x * 2
        s = 0.1
        for _ in range(6000):
            s = 0.5 * s + y[1] * y[0]
        y[1] = s
        return s * y.sum()

    for f in (before_and_after, late, own):
        cached = value_and_grad(f)
        for number in range(3):
            x = np.array([1.0, 0.2 + number, 0.3])
            value, gradient = cached(x)
            assert_same(value, f(x))
            np.testing.assert_allclose(gradient, differences(f, x), rtol=1e-6, atol=1e-7)


def test_a_long_loop_with_a_counter():
    def f(x):
        for i in range(100_000):
            x = x * 0.999 + 1e-6 * i if x < 2 else x * 0.5
        return x

    tracemalloc.start()
    try:
        value, _ = value_and_grad(f)(0.5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert_same(value, f(0.5))
    assert peak < 30e6  # 64 bytes for each of some 600,000 operations would be more


# ------------------------------------------------------------------------------------------- any such loop

CONDITIONS = ["y > 0.3", "x[{i}] > 0", "w[{i}] < x[{j}]", "i % 3 == 1", "i > 5", "z[{i}] * y > 0.1"]
STEPS = [
    "y = y * 0.7 + x[{i}]", "y = y / 2 + w[{j}] * x[{i}]", "y = y + 0.01 * i", "z[{i}] = y * 0.5",
    "z[{i}] = z[{j}] + x[{i}]", "y = 0.5 * y + T[{i}]", "y = math.sin(y) + w[{i}]", "k = k + 1", "y = y * w[k % n]",
]  # fmt: skip
INDICES = ["i", "i - 1", "-i", "(i + 3) % n", "n - 1 - i"]


@st.composite
def bodies(draw, depth=0):
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        step = draw(st.sampled_from(STEPS))
        lines.append(
            step.format(i=draw(st.sampled_from(INDICES)), j=draw(st.sampled_from(INDICES)))
        )
    if depth < 2 and draw(st.booleans()):
        i, j = (draw(st.sampled_from(INDICES)) for _ in "ij")
        lines.append(f"if {draw(st.sampled_from(CONDITIONS)).format(i=i, j=j)}:")
        lines += ["    " + line for line in draw(bodies(depth=depth + 1))]
        if draw(st.booleans()):
            lines += ["else:", *["    " + line for line in draw(bodies(depth=depth + 1))]]
        elif depth == 0 and draw(st.booleans()):
            lines[-1:] = [lines[-1], "    break" if draw(st.booleans()) else "    continue"]
    return lines


@settings(max_examples=int(os.environ.get("LOOPS", 60)), deadline=None)
@given(bodies(), bodies(), st.integers(0, 1000))
def test_any_counted_loop(first, second, seed):
    text = ["def f(x, w):", "    n, k, y = len(x), 0, 0.4", "    z = np.zeros(n)"]
    text += ["    for i in range(n):", *["        " + line for line in first]]
    text += ["    for i in range(n - 1, 0, -1):", *["        " + line for line in second]]
    text += ["    return y + z.sum() + k"]
    space = {"np": np, "math": math, "T": TABLE}
    exec("\n".join(text), space)
    f = space["f"]
    cached = value_and_grad(f, argnums=(0, 1))
    random = np.random.default_rng(seed)
    for number in range(5):
        x, w = random.normal(size=14), random.normal(size=14).tolist()
        if number == 3:
            x[:] = np.abs(x)
        value, (dx, dw) = cached(x, w)
        assert_same(value, f(x, w))
        with jit(False):
            _, (ex, ew) = cached(x, w)
        np.testing.assert_allclose(dx, ex, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(dw, ew, rtol=1e-9, atol=1e-11)
