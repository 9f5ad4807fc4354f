"""Arrays that are overwritten by code of which the run sees nothing, when they have been used already."""

import ctypes
import itertools
import warnings

import numpy as np
import pytest

from wengert import (
    NoRuleError,
    checkpoint,
    grad,
    jit,
    jvp,
    nondiff,
    numeric_rule,
    pullback,
    rrule,
    value_and_grad,
)

A = np.array([1.0, 2.0])
BUFFER = np.zeros(2)
LOADER = iter(())


@pytest.fixture(autouse=True)
def afresh():
    A[:] = 1.0, 2.0


@pytest.fixture(params=[True, False])
def mode(request):
    with jit(request.param):
        yield


def loader(start=0):
    buffer = np.empty(2)
    for k in itertools.count(start):
        buffer[:] = k, k + 1
        yield buffer


def by_next(w):
    return sum((next(LOADER) * w * w).sum() for _ in range(3))


def by_for(w):
    total = 0.0
    for batch, _ in zip(LOADER, range(3)):
        total = total + np.exp(batch * w).sum()
    return total


def by_map(w):
    total = 0.0
    for row in itertools.islice(map(lambda x: x, LOADER), 3):
        total = total + (row * w).sum()
    return total


@pytest.mark.parametrize("f", [by_next, by_for, by_map])
def test_a_loader_that_uses_its_buffer_again(f, mode):
    global LOADER
    g = value_and_grad(f)
    for call in range(8):
        w = np.array([0.1 + 0.1 * call, 0.2])

        def at(w, call=call):
            global LOADER
            LOADER = loader(call)
            return f(w)

        expected = [(at(w + d) - at(w - d)) / 2e-6 for d in np.eye(2) * 1e-6]
        LOADER = loader(call)
        value, found = g(w)
        assert value == at(w)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_loader_in_a_long_loop(mode):
    def f(w):
        total = 0.0
        for _ in range(600):
            total = total + (next(LOADER) * w).sum()
        return total

    global LOADER
    for _ in range(3):
        LOADER = loader()
        np.testing.assert_allclose(grad(f)(np.ones(2)), [600 * 599 / 2, 600 * 601 / 2])


def test_a_loader_in_every_direction():
    global LOADER
    w, one = np.ones(2), np.array([1.0, 0.0])
    LOADER = loader()
    assert jvp(by_next, (w,), (one,)) == (9.0, 6.0)
    LOADER = loader()
    _, back = pullback(by_next, w)
    next(LOADER)
    np.testing.assert_array_equal(back(1.0)[0], [6.0, 12.0])
    LOADER = loader()
    second = grad(lambda w: (grad(by_next)(w) * one).sum())(w)
    np.testing.assert_array_equal(second, [6.0, 0.0])
    LOADER = loader()
    np.testing.assert_array_equal(grad(checkpoint(by_next))(w), [6.0, 12.0])


@nondiff
def basis(t):
    BUFFER[:] = t, t + 1
    return BUFFER


@nondiff
def scaled(a):
    a *= 10.0


def test_a_function_without_derivative_that_fills_its_buffer(mode):
    def f(x, t):
        first = basis(1)
        total = (first * x).sum()
        second = basis(t)
        assert first is second
        return total + (second * x).sum() + (first * x * x).sum()

    for call in range(8):
        assert grad(f)(2.0, call) == 3 + (2 * call + 1) * 5


def test_a_function_without_derivative_that_writes_to_its_argument(mode):
    def f(x):
        made = np.array([1.0, 2.0])
        total = (made * x).sum() + (A * x).sum()
        scaled(made)
        scaled(A[:1])
        return total + (made * x).sum() + (A * x).sum()

    g = grad(f)
    for _ in range(8):
        A[:] = 1.0, 2.0
        assert g(2.0) == 3 + 3 + 30 + 12


def square(x):
    A[:] += 10.0
    return x * x


@rrule(square)
def _(x):
    return square(x), lambda dy: (2 * x * dy,)


@numeric_rule
def cube(x):
    A[:] += 10.0
    return x**3


def test_functions_with_rules(mode):
    warnings.simplefilter("ignore")

    def f(x):
        return (A * x).sum() + square(x)

    def g(x):
        return (A * x).sum() + cube(x)

    def h(x):
        return (A * x).sum() + square(x) + (A * x).sum()

    for _ in range(8):
        A[:] = 1.0, 2.0
        assert grad(f)(2.0) == 3 + 4
        A[:] = 1.0, 2.0
        assert grad(g)(2.0) == pytest.approx(3 + 12)
    with pytest.raises(NoRuleError, match="square, which is not traced, has written into an array"):
        grad(h)(2.0)


def test_memory_behind_ctypes(mode):
    shown = (ctypes.c_double * 2).from_buffer(A)
    pointer = A.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    number = ctypes.c_double.from_buffer(A)

    def f(x):
        total = (A * x).sum()
        shown[0] = 100.0
        total = total + (A * x).sum()
        pointer[0] = 1000.0
        total = total + (A * x).sum()
        number.value = 5.0
        return total + (A * x).sum()

    for _ in range(8):
        A[:] = 1.0, 2.0
        assert grad(f)(2.0) == 3 + 102 + 1002 + 7


def test_an_array_in_an_array_of_objects(mode):
    held = np.empty(1, object)
    held[0] = A

    def f(x):
        total = (A * x).sum()
        held[0] += 100.0
        return total + (A * x).sum()

    for _ in range(8):
        A[:] = 1.0, 2.0
        assert grad(f)(2.0) == 3 + 203


HELD = np.empty(1, object)
HELD[0] = A
WAYS = {
    "an item": lambda: HELD[0],
    "a loop": lambda: [x for x in HELD][0],
    "a list": lambda: list(HELD)[0],
    "tolist": lambda: HELD.tolist()[0],
    "unpacked": lambda: (lambda x: x)(*HELD),
    "zip": lambda: next(zip(HELD, "a"))[0],
    "copy": lambda: HELD.copy()[0],
}


@pytest.mark.parametrize("get", WAYS.values(), ids=WAYS)
def test_an_array_out_of_an_array_of_objects(get, mode):
    def f(x):
        total = (get() * x).sum()
        A[:] = 100.0, x
        return total + (get() * x).sum()

    for _ in range(8):
        A[:] = 1.0, 2.0
        assert grad(f)(2.0) == 3 + 100 + 4


def test_views_of_one_array():
    data = np.arange(12.0).reshape(6, 2)

    def batches():
        for k in range(6):
            if k == 3:
                data[0] = 50.0
            yield data[k : k + 1]

    def f(w, steps, again):
        seen = [next(steps) for _ in range(4)]
        total = sum((x * w).sum() for x in seen)
        next(steps)
        return total + (seen[again] * w * w).sum()

    for again, known in [(0, [50.0, 50.0]), (1, [2.0, 3.0])]:
        data[:] = np.arange(12.0).reshape(6, 2)
        seen = np.array([[50.0, 50.0], [2, 3], [4, 5], [6, 7]]).sum(0)
        np.testing.assert_array_equal(
            grad(f)(np.ones(2), batches(), again), seen + 2 * np.array(known)
        )


def test_overlapping_views_used_between_steps():
    data = np.arange(1.0, 5.0)
    left, right = data[:3], data[1:]

    def steps():
        yield
        data[3] = 30.0
        yield
        data[0] = 10.0
        yield
        data[1] = 20.0
        yield

    def f(x, go):
        total = (left * x).sum() + (right * x).sum()
        next(go)
        total = total + (left[:2] * x).sum()
        next(go)
        total = total + (left * x).sum()
        next(go)
        total = total + (right * x).sum() + (left[1:] * x).sum()
        next(go)
        return total + (data * x).sum() + (right * x).sum()

    def plain(go):
        return f(1.0, go)

    expected = plain(steps())
    data[:] = np.arange(1.0, 5.0)
    assert grad(f)(1.0, steps()) == expected


def overwriting(value):
    while True:
        A[0] = value
        yield


def doubling(a):
    while True:
        a *= 2.0
        yield


def test_traced_values_that_are_overwritten(mode):
    source = overwriting(5.0)

    def f(x):
        A[0] = x
        next(source)
        return A[0] * x

    def untouched(x):
        A[1] = x
        next(source)
        return A[1] * x

    def argument(a, steps):
        total = (a * a).sum()
        next(steps)
        return total + (a * a).sum()

    for _ in range(8):
        with pytest.raises(NoRuleError, match="doubling, which is not traced"):
            own = np.array([1.0, 2.0])
            grad(argument)(own, doubling(own))
        with pytest.raises(NoRuleError, match="overwriting, which is not traced"):
            grad(f)(2.0)
        assert grad(untouched)(3.0) == 6.0


def test_what_is_not_written_costs_one_copy(monkeypatch):
    from wengert.tracer import unannounced

    copies = []
    monkeypatch.setattr(unannounced, "kept_copy", lambda x: copies.append(x) or x.copy())
    steps = iter([lambda: None] * 10)
    numbers = map(lambda f: f(), steps)

    def f(x):
        total = 0.0
        for _ in range(10):
            next(numbers)
            total = total + (A * x).sum()
        return total

    assert grad(f)(np.ones(2)).tolist() == [10.0, 20.0]
    assert len(copies) <= 4
