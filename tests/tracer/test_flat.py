"""``array.flat`` is an iterator over the elements, and can be read and written to as an array of one axis."""

import numpy as np
import pytest

from helpers import assert_close, numeric_grad
from wengert import jit, value_and_grad
from wengert.tracer.arrays import phantom

X = np.array([[2.0, 1.0], [1.0, 3.0]])
USES = {
    "pairs": lambda x, flat: sum(a * b for a, b in zip(flat, flat, strict=False)),
    "next": lambda x, flat: next(flat) * next(flat) + next(flat, 0.0),
    "twice": lambda x, flat: sum(v * v for v in flat) + len(list(flat)),
    "in part": lambda x, flat: next(flat) + 3 * sum(flat),
    "after its end": lambda x, flat: sum(flat) + next(flat, 5.0),
    "by number": lambda x, flat: flat[1] * flat[3] + next(flat) * flat[0],
    "each of its own": lambda x, flat: sum(a * b for a, b in zip(flat, x.flat, strict=True)),
    "its kind": lambda x, flat: x.sum() * (2 if isinstance(flat, np.flatiter) else 3),
    "the largest": lambda x, flat: max(flat),
}


@pytest.mark.parametrize("on", (True, False))
@pytest.mark.parametrize("name", USES)
def test_uses(name, on):
    def f(x):
        return USES[name](x, x.flat)

    expected = np.zeros_like(X)
    for i in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[i] = 1e-6
        expected[i] = (f(X + step) - f(X - step)) / 2e-6
    with jit(on):
        for _ in range(5):
            value, slope = value_and_grad(f)(X)
            assert value == f(X)
            np.testing.assert_allclose(slope, expected, rtol=1e-8, atol=1e-8)


WRITES = {
    "too few": (slice(4), lambda x: [x[0], x[1] * x[0]]),
    "too many": (slice(2), lambda x: x * x),
    "none": (slice(2), lambda x: x[:0]),
    "nowhere": (slice(2, 2), lambda x: x),
    "as many": (slice(None, None, 2), lambda x: x),
    "all over": (Ellipsis, lambda x: x),
    "of two axes": (slice(None), lambda x: np.outer(x[:2], x)),
    "one": (slice(1, 5), lambda x: x[0]),
    "one in a list": (slice(1, 5), lambda x: [x[0]]),
    "an element": (3, lambda x: x[0] * x[1]),
    "by mask": (np.array([True, False, True, True, False, True]), lambda x: x[:2] * x[1]),
    "by numbers": ([0, 2, 4, 5], lambda x: (x[0], x[1])),
    "numbers of two axes": (np.array([[0, 1], [2, 3]]), lambda x: x),
    "nested": (slice(4), lambda x: [[x[0], x[1]], [x[2], 1.0]]),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_take_as_many_numbers_as_they_need(name):
    index, made = WRITES[name]
    weights = np.arange(1.0, 7.0).reshape(2, 3)

    def f(x):
        a = np.outer(x[:2], x) + 1.0
        a.flat[index] = made(x)
        return np.sum(a * weights * a)

    for i in range(4):
        x = np.array([1.0, 2.0, 3.0]) + 0.25 * i
        value, slope = value_and_grad(f)(x)
        assert value == f(x)
        expected = np.array([(f(x + h) - f(x - h)) / 2e-6 for h in np.eye(3) * 1e-6])
        np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-6)


def test_writes_by_a_mask_that_the_function_computes():
    def f(x):
        a = x * x
        a.flat[x > 1.5] = x[:2]
        return np.sum(a * np.arange(1.0, 5.0))

    for x in (
        [1.0, 2.0, 3.0, 4.0],
        [1.0, 2.5, 3.0, 1.2],
        [2.0, 2.5, 3.0, 1.2],
        [3.0, 2.5, 3.0, 1.2],
    ) * 2:
        x = np.array(x)
        value, slope = value_and_grad(f)(x)
        assert value == f(x)
        expected = np.array([(f(x + h) - f(x - h)) / 2e-6 for h in np.eye(4) * 1e-6])
        np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-6)


# -------------------------------------------------------------------------------- what judges a write


def read_only():
    array = np.zeros(6)
    array.flags.writeable = False
    return array


TARGETS = {
    "row": np.zeros(6),
    "complex": np.zeros((2, 3), complex),
    "columns": np.zeros((3, 2), order="F"),
    "steps": np.zeros(12)[::2],
    "integers": np.zeros(6, int),
    "number": np.zeros(()),
    "empty": np.zeros((0, 3)),
    "read-only": read_only(),
}
PLACES = [
    0,
    -1,
    5,
    100,
    1.0,
    "x",
    ...,
    slice(0, 2),
    [0, 1],
    [100],
    [True] * 6,
    (0, 1),
    [[0, 1], [1, 0]],
]
VALUES = [1.0, 1j, [1.0, 2.0], np.ones((2, 3)), np.ones(7), [], "a", None, [[1], [2, 3]]]


def put_flat(array, place, value):
    array.flat[place] = value


JUDGED = {
    "flat": put_flat,
    "put": lambda a, place, value: np.put(a, place, value),
    "clip": lambda a, place, value: np.put(a, place, value, mode="clip"),
    "place": lambda a, place, value: np.place(a, place, value),
    "putmask": lambda a, place, value: np.putmask(a, place, value),
    "copyto": lambda a, place, value: np.copyto(a, value, where=place),
    "fill": lambda a, place, value: a.fill(value),
    "diagonal": lambda a, place, value: np.fill_diagonal(a, value),
    "sort": lambda a, place, value: a.sort(axis=place),
    "partition": lambda a, place, value: a.partition(place),
}


def raised(write, array, place, value):
    try:
        write(array, place, value)
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("write", JUDGED.values(), ids=JUDGED)
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.filterwarnings("ignore")
def test_what_judges_a_write_raises_what_the_array_does(target, write):
    judge = phantom(target)
    assert judge.base.nbytes == target.itemsize
    for place in PLACES:
        for value in VALUES:
            array = target.copy()
            array.flags.writeable = target.flags.writeable
            assert raised(write, judge, place, value) == raised(write, array, place, value)


@pytest.mark.parametrize("on", [True, False])
def test_a_part_of_flat_is_a_copy_and_taking_it_begins_the_iterator_anew(on):
    """It was a view, which saw what was written to the array afterwards; and the iterator went on where it was."""

    def kept(x):
        u = x.copy()
        part = u.flat[::2]
        u[0] = 5.0 * u[1]
        u.flat[::2] += 1.0
        u.flat[[1, 3]] *= part[1:]
        return (part * u[::2]).sum() + u[3]

    def again(x):
        u = x.copy()
        f = u.flat
        t = next(f) * next(f)
        f[3] = t
        t += next(f)
        f[2]
        return t * sum(f) * u[3]

    with jit(on):
        for f in (kept, again):
            for k in range(4):
                x = np.arange(6.0) + k
                value, slope = value_and_grad(f)(x)
                assert value == f(x)
                assert_close(slope, numeric_grad(f, x), tol=1e-5)
