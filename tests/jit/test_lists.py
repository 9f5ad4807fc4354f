"""Loops that fill lists, and look back at what earlier iterations computed: rolled like others."""

import numpy as np
import pytest
from test_counted import differences, fresh  # noqa: F401

from helpers import assert_same
from wengert import explain, grad, hessian, jit, pullback, settings, value_and_grad

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


def test_a_long_list_is_no_long_program():
    """10,000 steps: unrolled, the tape would be longer than any that is kept."""

    def f(x, w):
        path = []
        for _ in range(10_000):
            x = x + 0.001 * w * (1.0 - x)
            path.append(x)
        return (np.array(path) ** 2).sum()

    assert 6 * 10_000 > settings.unroll
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
