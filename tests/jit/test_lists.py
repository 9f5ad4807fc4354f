"""Loops that fill lists, and look back at what earlier iterations computed: rolled like others."""

import math
import os
import random
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from test_counted import differences

from helpers import assert_same
from wengert import explain, grad, hessian, jit, pullback, value_and_grad
from wengert.transforms import budget

pytestmark = pytest.mark.usefixtures("programs_anew")
COUNT = 40


def kept(f, *starts, calls=4, traced=2, rolled=True, lines=60):
    """A loop is rolled into a short program, which is right."""
    argnums = tuple(range(len(starts)))
    cached = value_and_grad(f, argnums=argnums)
    for number in range(calls):
        args = [x * (1 + 0.03 * number) for x in starts]
        value, gradients = cached(*args)
        assert_same(value, f(*args))
        with jit(False):
            _, uncached = cached(*args)
        for i, (d, e) in enumerate(zip(gradients, uncached)):
            np.testing.assert_allclose(d, e, rtol=1e-11, atol=1e-13)

            def along(x, i=i, args=args):
                return f(*args[:i], x, *args[i + 1 :])

            np.testing.assert_allclose(d, differences(along, args[i]), rtol=2e-5, atol=2e-6)
    told = explain(cached, *args)
    assert ("rolled" in told) == rolled, told
    assert int(str(told).split(" calls traced")[0].split()[-1]) <= traced, told
    assert len(told.source.splitlines()) < lines, told.source
    return told


def test_a_trajectory_is_collected():
    def f(x, w):
        path = []
        for _ in range(COUNT):
            x = x + 0.1 * w * (1.0 - x)
            path.append(x)
        path = np.array(path)
        return (path * path).sum() + path[-1]

    kept(f, 0.3, 0.8)


def test_a_trajectory_with_its_start():
    def f(x, w):
        path = [x]
        for _ in range(COUNT):
            x = x + 0.1 * w * (1.0 - x)
            path.append(x)
        return sum(path[::-1]) + np.array(path[3:]).sum() * np.array(path).max()

    kept(f, 0.3, 0.8, lines=75)


def test_a_trajectory_of_arrays():
    def f(x, w):
        path = []
        for _ in range(COUNT):
            x = np.tanh(w * x) + 0.01
            path.append(x)
        return (np.array(path) ** 2).sum() + path[7][1]

    kept(f, np.array([0.4, 0.8, 1.2]), 0.9, lines=100)


def test_a_comprehension():
    def f(x, w):
        return sum([x * k + w * k * k for k in range(COUNT)])

    kept(f, 0.3, 0.8)


def test_another_loop_goes_through_the_list():
    def f(x, w):
        path = []
        for _ in range(COUNT):
            x = x + 0.1 * w * (1.0 - x)
            path.append(x)
        loss = 0.0
        for y in path:
            loss = loss + (y - 0.3) ** 2
        return loss

    told = kept(f, 0.3, 0.8)
    assert "2 loops rolled" in told


def test_a_list_is_filled_from_its_own_elements():
    def f(x, w):
        u = [0.0] * COUNT
        u[0] = x
        for i in range(1, COUNT):
            u[i] = u[i - 1] + 0.1 * w * (1.0 - u[i - 1])
        return sum(u) * u[5]

    kept(f, 0.3, 0.8)


@pytest.mark.parametrize("back", [2, 3, 7])
def test_an_iteration_looks_back(back):
    def f(x, w):
        u = [x * k for k in range(1, back + 1)]
        for _ in range(COUNT):
            u.append(0.5 * u[-1] + 0.3 * w * u[-back])
        return u[-1] + u[back + 3]

    kept(f, 0.3, 0.8, lines=70)


def test_an_iteration_looks_back_too_far():
    def f(x, w):
        u = [x * k for k in range(1, 12)]
        for _ in range(COUNT):
            u.append(0.5 * u[-1] + 0.3 * w * u[-11])
        return u[-1]

    kept(f, 0.3, 0.8, rolled=False, lines=300)


def test_different_distances():
    def f(x, w):
        u = [x, w]
        for _ in range(COUNT):
            u.append(0.5 * u[-1] + 0.3 * u[len(u) // 2])
        return u[-1]

    kept(f, 0.3, 0.8, rolled=False, lines=300)


def test_the_first_iteration_is_another():
    def f(x, w):
        best = None
        path = []
        for k in range(COUNT):
            x = 0.9 * x + w / (k + 1)
            best = x if best is None else best * 0.5 + x
            path.append(best)
        return sum(path)

    kept(f, 0.3, 0.8, lines=90)


def test_an_integer_that_becomes_a_float():
    def f(x, w):
        sums = [0]
        for k in range(COUNT):
            sums.append(sums[-1] + x * k)
        return sum(sums) * w

    kept(f, 0.3, 0.8, lines=80)


def test_layers_of_a_grid():
    """The heat equation: each step makes a new list from three neighbours in the old one."""

    def f(x, w):
        u = [x * np.sin(0.3 * k) for k in range(14)]
        for _ in range(30):
            new = u[:]
            for j in range(1, 13):
                new[j] = u[j] + 0.1 * w * (u[j - 1] - 2 * u[j] + u[j + 1])
            u = new
        return sum([v * v for v in u])

    kept(f, 0.3, 0.8, lines=400)


def test_the_list_is_returned():
    def f(x, w):
        path = []
        for _ in range(COUNT):
            x = x * w
            path.append(x)
        return path

    for number in range(3):
        args = 0.3 + number, 0.8
        value, back = pullback(f, *args)
        assert_same(value, f(*args))
        gradient = back([1.0] * COUNT)
        np.testing.assert_allclose(gradient[0], sum(0.8**k for k in range(1, COUNT + 1)))


def test_dicts_and_objects_hold_what_iterations_compute():
    class Cell:
        pass

    def f(x, w):
        found, cells = {}, []
        for k in range(COUNT):
            x = x * w + 0.01
            found[k] = x * x
            cell = Cell()
            cell.value = x * 0.5
            cells.append(cell)
        return sum(found.values()) + sum([cell.value for cell in cells])

    kept(f, 0.3, 0.8, lines=120)


def test_derivatives_of_derivatives():
    def f(x):
        path = [x]
        for _ in range(COUNT):
            path.append(path[-1] + 0.05 * path[-1] * (1.5 - path[-1]))
        return (np.array(path) ** 2).sum()

    g = grad(grad(f))
    for x in (0.3, 0.4, 0.5):
        np.testing.assert_allclose(g(x), differences(grad(f), x), rtol=1e-6)

    def of_two(v):
        return f(v[0]) * v[1] * v[1]

    for x in (0.3, 0.4, 0.5):
        v = np.array([x, 1.3])
        rows = [differences(lambda v, i=i: grad(of_two)(v)[i], v) for i in range(2)]
        np.testing.assert_allclose(hessian(of_two)(v), rows, rtol=1e-6)


def test_another_length_is_another_program():
    def f(x, n):
        path = []
        for _ in range(n):
            x = x * 0.9 + 0.1
            path.append(x)
        return sum(path)

    cached = value_and_grad(f)
    for n in (20, 20, 20, 31, 31, 31, 20, 5, 0, 31):
        value, gradient = cached(0.3, n)
        assert_same(value, f(0.3, n))
        np.testing.assert_allclose(gradient, sum(0.9**k for k in range(1, n + 1)), rtol=1e-12)


def test_a_long_list_is_no_long_program(monkeypatch):
    """Not even the elements of the list count, which would be more operations than are kept."""
    monkeypatch.setattr(budget, "LONG", 2000)
    monkeypatch.setattr(budget, "PER_OPERATION", 100.0)

    def f(x, w):
        path = []
        for _ in range(3000):
            x = x + 0.001 * w * (1.0 - x)
            path.append(x)
        return (np.array(path) ** 2).sum() + sum(path) / 3000

    kept(f, 0.3, 0.8, calls=3)


SWITCH = 20
KINDS = [np.sin] * SWITCH + [np.cos] * SWITCH
NAMES = ["sin"] * SWITCH + ["cos"] * SWITCH


def by_function(x):
    for k in range(COUNT):
        if x > 0.9:
            x = KINDS[k](x)
        else:
            x = x + x
    return x


def by_name(x):
    for k in range(COUNT):
        if x > 0.9:
            if NAMES[k] == "sin":
                x = np.sin(x)
            else:
                x = np.cos(x)
        else:
            x = x + x
    return x


@pytest.mark.parametrize("f", [by_function, by_name])
def test_what_an_iteration_does_depends_on_its_number_and_on_decisions(f):
    """The calls come there by other iterations each time, which do something else, though with the same operands."""
    cached = value_and_grad(f)
    for x in np.random.default_rng(0).uniform(1e-6, 2.0, size=40).tolist():
        assert_same(cached(x)[0], f(x))


# --------------------------------------------------------------------------------------------- with decisions


def right(f, starts=(0.6, 0.8), calls=8):
    """All calls are right, whatever they decide; gives what is told about the last one."""
    cached = value_and_grad(f, argnums=(0, 1))
    rng = random.Random(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a call is traced each time
        for _ in range(calls):
            args = [x * rng.uniform(0.3, 1.7) for x in starts]
            value, gradients = cached(*args)
            assert_same(value, f(*args))
            with jit(False):
                _, uncached = cached(*args)
            for d, e in zip(gradients, uncached):
                np.testing.assert_allclose(d, e, rtol=1e-10, atol=1e-12)
    return explain(cached, *args)


def once(f, starts, calls=16, traced=5):
    """Whatever the calls decide, only the first few are traced, and all are right."""
    told = right(f, starts, calls)
    assert "rolled" in told, told
    assert int(str(told).split(" calls traced")[0].split()[-1]) <= traced, told


def test_a_ball_that_bounces():
    def f(v, w):
        y, path = 1.0, []
        for _ in range(60):
            v = v - 0.05
            y = y + 0.05 * v
            if y < 0.0:
                y, v = -y * w, -v * w
            path.append(y)
        return np.array(path).mean() + path[30]

    once(f, (0.6, 0.8))


def test_what_is_appended_differs_by_decision():
    def f(x, w):
        path, other = [], []
        for k in range(COUNT):
            if x > 0.5:
                x = x * w * 0.9
                path.append(x)
                other.append(0.0)
            else:
                y = x * x
                path.append(y * w)
                x = x + 0.1 * w
                other.append(x * k)
        return sum(path) + np.array(other).max()

    once(f, (0.6, 0.8))


def test_arrays_are_appended():
    def handed_on(x, w):
        path = []
        for _ in range(COUNT):
            x = x * w * 0.9 if x[0] > 0.5 else x + 0.1 * w
            path.append(x)
        return (np.array(path) ** 2).sum()

    def left(x, w):
        path = []
        for _ in range(COUNT):
            if x[0] > 0.5:
                path.append(x * x)
                x = x * w * 0.9
            else:
                path.append(np.sin(x))
                x = x + 0.1 * w
        return (np.array(path) ** 2).sum()

    once(handed_on, (np.array([0.6, 0.2, 1.1]), 0.8))
    once(left, (np.array([0.6, 0.2, 1.1]), 0.8))


def aliased(x, w):
    path = []
    other = path
    for _ in range(COUNT):
        if x > 0.5:
            x = x * w
            if len(other) > 20:
                x = x * x
        else:
            x = x + x
        path.append(x)
    return sum(path)


def held_elsewhere(x, w):
    path = []
    holder = {"path": path}
    for _ in range(COUNT):
        if x > 0.5:
            x = x * w if len(holder["path"]) < 20 else x * x
        else:
            x = x + x
        path.append(x)
    return sum(path)


def only_sometimes(x, w):
    path = []
    for _ in range(COUNT):
        if x > 0.5:
            x = x * w * 0.9
            path.append(x)
        else:
            x = x + 0.1 * w
    return sum(path) * len(path)


def handed_on_or_not(x, w):
    path, y = [], np.array([x, w])
    for _ in range(COUNT):
        if y[0] > 0.5:
            y = y * w * 0.9
            path.append(y)
        else:
            y = y + 0.1 * w
            path.append(y * y)
    return np.array(path).sum()


def in_another_order(x, w):
    path, other = [], []
    for _ in range(COUNT):
        if x > 0.5:
            x = x * w * 0.9
            path.append(x)
            other.append(x * x)
        else:
            x = x + 0.1 * w
            other.append(x * w)
            path.append(x)
    return sum(path) - 2 * sum(other)


def looked_at(x, w):
    path = [x]
    for _ in range(COUNT):
        if path[-1] > 0.5:
            path.append(path[-1] * w * 0.9)
        else:
            path.append(path[-1] + 0.1 * w)
    return sum(path)


def appended_by(path, x):
    path.append(x)
    return x * 0.9 if len(path) > 20 else x * x


def handed_over(x, w):
    path = []
    for _ in range(COUNT):
        x = appended_by(path, x) if x > 0.5 else x + 0.3 * w
    return sum(path)


def bound_before(x, w):
    path = []
    push = path.append
    for _ in range(COUNT):
        if x > 0.5:
            x = x * w * 0.9
            push(x)
        else:
            x = x + 0.1 * w
        path.append(x)
    return sum(path)


def in_a_loop_inside(x, w):
    path = []
    for _ in range(20):
        for _ in range(3 if x > 0.5 else 2):
            path.append(x)
            x = x * 0.95
        x = x * w * 0.9 if x > 0.5 else x + 0.2 * w
    return sum(path)


def of_the_caller(x, w):
    path = []

    def fill(path, x):
        for _ in range(COUNT):
            if x > 0.5:
                x = x * w * 0.9
                note(x)
            else:
                x = x + 0.1 * w
            path.append(x)
        return x

    def note(x):
        path.append(x * x)

    return fill(path, x) + sum(path)


def flags(x, w):
    """What is appended is no number."""
    path = []
    for _ in range(COUNT):
        path.append(x > 0.5)
        x = x * w * 0.9 if x > 0.5 else x + 0.1 * w
    return x * sum(path)


@pytest.mark.parametrize(
    "f",
    [
        aliased, held_elsewhere, only_sometimes, handed_on_or_not, in_another_order, looked_at, handed_over,
        bound_before, in_a_loop_inside, of_the_caller, flags,
    ],
)  # fmt: skip
def test_a_list_that_could_tell_what_was_decided(f):
    right(f)


VALUES = [
    "h", "x", "w", "g", "0.7", "u[-1]", "u[-2]", "v[i]", "v[i-1]", "z[i-1]", "z[i-2]", "0.1 * i", "u[0]",
    "len(u) * 0.01",
]  # fmt: skip
TERMS = [
    "({a} + {b})", "({a} - {b})", "({a} * 0.3)", "({a} * w)", "math.sin({a})", "math.tanh({a} * {b})",
]  # fmt: skip
WRITES = [
    "h = math.sin({a})", "g = 0.5 * g + 0.1 * {a}", "u.append({a})", "z[i] = {a}", "p.append({a})",
    "q.append((i, {a}))",
    "m[i] = {a}", "A = np.sin(A * {a})", "B.append(A)", "B.append(A * {a})",
]  # fmt: skip
TESTS = ["h > g", "h > 0.1", "i > 7", "u[-1] > 0.2", "i % 3 == 0", "len(u) > 12", "z[i-1] < h"]
SUMS = [
    "sum(u)", "u[-1] * u[len(u) // 2]", "np.array(z).sum()", "sum([b * 0.1 * a for a, b in q])", "sum(p[::-1])",
    "(np.array(p)[::2] ** 2).sum()", "sum(m.values())", "sum([b.sum() for b in B])", "(np.array(B) ** 2).sum()",
]  # fmt: skip


@st.composite
def terms(draw):
    term = draw(st.sampled_from(VALUES))
    for _ in range(draw(st.integers(0, 2))):
        text = draw(st.sampled_from(TERMS))
        term = text.format(a=term, b=draw(st.sampled_from(VALUES)))
    return term


@st.composite
def bodies(draw, depth=0):
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        lines.append(draw(st.sampled_from(WRITES)).format(a=draw(terms())))
    if depth < 2 and draw(st.booleans()):
        lines.append(f"if {draw(st.sampled_from(TESTS))}:")
        lines += ["    " + line for line in draw(bodies(depth=depth + 1))]
        if draw(st.booleans()):
            lines += ["else:", *["    " + line for line in draw(bodies(depth=depth + 1))]]
    if draw(st.booleans()):
        lines.append(f"p.append({draw(terms())})")
    return lines


@examples(max_examples=int(os.environ.get("LOOPS", 25)), deadline=None)
@given(bodies(), st.lists(st.sampled_from(SUMS), min_size=1, max_size=3), st.integers(0, 1000))
def test_any_loop_that_fills_lists(body, sums, seed):
    text = ["def f(x, w):", "    h, g, u, z = x, w, [x, w, x * w], [0.0] * 24"]
    text += ["    p, q, m, v = [x], [], {}, [x * k for k in range(24)]"]
    text += ["    A = np.array([x, w])", "    B = [A]", "    for i in range(24):"]
    text += ["        " + line for line in body]
    text += [f"    h = h + {term}" for term in sums]
    text += ["    return h + g"]
    space = {"np": np, "math": math}
    exec("\n".join(text), space)
    right(space["f"], calls=5)


def path_of(x, ys):
    path = []
    for _ in range(COUNT):
        x = np.sin(x) * 1.1 + x * x * 0.01
        path.append(x)
    return path


def pairs_of(x, ys):
    path = []
    for y in ys:
        x = np.sin(x) + 0.01 * y * x
        path.append(np.exp(x))
        path.append(x)
    return path


def last_of(x, ys):
    for y in ys:
        x = np.exp(np.sin(x) * 0.1 + y * x) * 0.3
    return x


@pytest.mark.parametrize("f", [path_of, pairs_of, last_of])
def test_a_pullback_keeps_what_others_may_write_to(f):
    """Arrays that a loop has collected are handed out as well, or are the caller's."""

    def ones(value):
        return [np.ones(2)] * len(value) if isinstance(value, list) else np.ones(2)

    for number in range(5):
        x, ys = np.array([0.5, 0.7]) + 0.01 * number, np.linspace(0.1, 0.4, 60).reshape(30, 2)
        with jit(False):
            value, back = pullback(f, x, ys)
            expected = back(ones(value))
        value, back = pullback(f, x, ys)
        for array in (x, ys, *(value if isinstance(value, list) else [value])):
            array[:] = 99.0
        for _ in range(2):
            for d, e in zip(back(ones(value)), expected):
                np.testing.assert_allclose(d, e, rtol=1e-10)


def test_a_pullback_of_a_list_that_is_gathered_with_others():
    """Its forward half sums a column and what stands behind it; the run is kept, and told as it is."""

    def f(a, xs):
        ys = [a, 1.5, 1.5]
        for i in range(24):
            ys.append(1.5)
            ys[i] = sum([xs[0] * xs[0], xs[1] * xs[1]]) * a
        return sum(ys)

    for _ in range(4):
        value, back = pullback(f, 0.5, [0.3, 1.8])
        assert_same(value, f(0.5, [0.3, 1.8]))
        da, dxs = back(1.0)
        np.testing.assert_allclose(da, 24 * (0.09 + 3.24), rtol=1e-12)
        np.testing.assert_allclose(dxs, [24 * 0.3, 24 * 1.8], rtol=1e-12)
