"""Statements on arrays, each the middle of a function that is called until its program answers."""

import warnings

import numpy as np
import pytest

from wengert import TraceError, jacobian, jit, pullback, value_and_grad

POINTS = (1.3, 1.7, 1.3, 1.9, 1.1)
WHOLE = """def f(x):
    y, v, z = np.arange(9.0).reshape(3, 3) * x, np.arange(6.0) * x + 1, x
    {}
    return (np.asarray(y) * y * np.arange(1.0, 1 + np.size(y)).reshape(np.shape(y))).sum() + (v * v * v).sum() + z
"""


def function(code):
    """``f(x)`` with these statements between two matrices, ``y`` and ``v``, and a sum over them and ``z``."""
    namespace = {"np": np, "PLACES": ((0, 1), (1, 0)), "ROWS": ((0, 1),)}
    exec(WHOLE.format(code.replace("; ", "\n    ")), namespace)
    return namespace["f"]


def outcome(f, x):
    """What a call comes to: the class and text of what it raises, or the value with the warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            value = f(x)
        except Exception as e:
            return type(e), str(e)
    return value, [(w.category, str(w.message)) for w in seen]


def like_python(code):
    f = function(code)
    g = value_and_grad(f)
    for x in POINTS:
        expected, found = outcome(f, x), outcome(g, x)
        if isinstance(expected[0], type):
            assert found == expected
            continue
        (value, slope), shown = found
        assert (value, shown) == expected
        assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-5, abs=1e-5)


INDICES = """
y[(0, 1), (1, 0)] = x * x
y[1, (0, 2)] = x * x
y[(0, 1), :] = x * x
y[1:, (0, 2)] = x * x
y[:, (0,)] = x
y[..., (0,)] = x
y[(-1,), (0,)] = x * x
y[((0,),)] = x * x
y[((0, 1),)] = x
y[(0, 2),] = x
y[(0, 2), ...] = x
y[[0, 1], (1, 0)] = x * x
y[np.array([0, 1]), (1, 2)] = x * x
y[None, (0, 1)] = x * x
y[None, (0, 1)] = 2
v[(0, 1),] = x * x
y[(0, 1), (1, 0)] += x * x
y[(0, 1), :] *= x
y[..., (0, 2)] += x * x
y[None, (0, 1)] += x * x
y[PLACES] = x
y[PLACES] += x
y[ROWS] = x * np.ones((2, 3))
y[(True, False, True),] = x * x
y[(True, False, True), (True, False, True)] = np.array([x, x * x])
y[((True, False, True), (False,) * 3, (True,) * 3),] = x * x
y[(x > 1.5, x > 1.2, True),] = x * x
y[(0, 0),] = np.arange(6.0).reshape(2, 3) * x
y[((0, 1), (1, 0)), ((0, 1), (2, 0))] = np.arange(4.0).reshape(2, 2) * x
y[(),] = x
y[(int(x), 0),] = x
y.T[1:][(0, 1), (1, 0)] = x
np.add.at(y, ((0, 1), (1, 0)), x)
np.add.at(y, ((0, 0), (1, 1)), np.array([x, x * x]))
np.multiply.at(y, ((0, 0), (1, 1)), x)
y = y[((0, 2),)]
y = y[..., (0, 2)]
y = y[(0, 1), None]
y = y[None, (0, 1)]
y = y[(0, 0, 1),]
y = y[PLACES]
y = y[ROWS]
y = y[:, (True, False, True)]
y = y[(x > 1.5, x > 1.2, True),]
y = y[(int(x), 0),]
z = y[(0, 1)] * x
for i in range(3): y[(i, 0), (0, i)] = x * i
for i in range(3): z = z + y[(i, 2),].sum() ** 2
y[(0, 1), (1, 0, 2)] = x
y[(0, 5),] = x
y = y[(0.5, 1),]
"""


def lines(text):
    return pytest.mark.parametrize("code", text.strip().split("\n"))


@lines(INDICES)
def test_tuple_inside_an_index(code):
    """It is a sequence of numbers or of bools, as a list is, when something is read, written, and kept."""
    like_python(code)
    with jit(False):
        like_python(code)


@pytest.mark.parametrize("index", ["(0, 1), (1, 0)", "(0, 2),", "1:, (0, 0)", "(0, 1), :, None"])
def test_tuple_inside_an_index_of_columns(index):
    """All cotangents at once go along another axis."""
    read = eval(f"lambda x: x[{index}] ** 2", {})
    x = np.arange(1.0, 10.0).reshape(3, 3)
    for _ in range(4):
        found = jacobian(lambda x: np.ravel(read(x)))(x)
        steps = 1e-6 * np.eye(9).reshape(9, 3, 3)
        expected = [np.ravel(read(x + d) - read(x - d)) / 2e-6 for d in steps]
        np.testing.assert_allclose(found, np.transpose(expected).reshape(-1, 3, 3), atol=1e-6)


WRITERS = """
np.copyto(dst=v, src=np.arange(6.0) * x)
np.copyto(src=x, dst=y, where=np.eye(3) > 0)
np.copyto(y, src=x, casting="unsafe")
np.put(a=y, ind=[0, 4], v=[x, x * x])
np.put(ind=(0, 4), v=x, a=y, mode="clip")
np.put(v, [0.0, 2.0], x)
v.put(indices=[1], values=[x])
np.place(arr=y, mask=np.eye(3) > 0, vals=[x, 2 * x])
np.putmask(y, mask=np.eye(3) > 0, values=x)
np.fill_diagonal(a=y, val=x * x)
np.fill_diagonal(val=[x, 2.0, x * x], a=y, wrap=True)
v.sort(axis=-1)
v.partition(kth=2)
np.put(a=y, indices=[0], v=x)
np.put(y, [0])
np.put(v, [9], x)
np.put(v, [0], x, mode="foo")
np.copyto(dst=y)
np.copyto(src=x)
np.place(v, [True, False], [x])
np.place(v, [True] * 6, [])
np.putmask(v, [True, False], [x])
np.fill_diagonal(v, x)
v.fill(value=x)
np.put(v, [0], [complex(x, 1.0)])
np.put(v, [0], complex(x, 1.0))
v.put([0], [complex(x, 1.0)])
np.place(v, v > 1, [complex(x, 1.0)])
np.place(v, v > 1, np.array([x + 1j]))
np.putmask(v, v > 1, [complex(x, 1.0)])
np.putmask(v, v > 1, np.array([x + 1j]))
np.fill_diagonal(y, complex(x, 1.0))
np.fill_diagonal(np.zeros((2, 2)), complex(x, 1.0))
np.copyto(v, complex(x, 1.0))
v.fill(complex(x, 1.0))
v[0] = complex(x, 1.0)
v.flat[0] = x * x
v.flat[[0, 2]] = [x, x * x]
v.flat = [x, 2.0]
v.flat[0] = complex(x, 1.0)
v.flat[:2] = complex(x, 1.0)
v.flat[0] = [x, x]
v.flat[9] = x
v.flat = complex(x, 1.0)
v.imag = x
v.imag = [1.0, 2.0]
try: v.imag = x; except TypeError as e: z = x * len(str(e))
"""


def test_what_only_numpy_allows_is_refused():
    """No exception that plain Python does not raise comes from the equivalent of a function that writes."""
    f = function("np.put(v, [0, 1], [])")
    assert f(1.3) > 0
    with pytest.raises(TraceError, match="in f .*: put of such arguments is not followed"):
        value_and_grad(f)(1.3)


@lines(WRITERS)
def test_functions_that_write(code):
    """They take their arguments by name and in any order, and refuse what NumPy refuses, in its words."""
    like_python(code)
    with jit(False):
        like_python(code)


AXES = """
y = np.average(y, weights=(1.0, x, 2.0), axis=0)
y = np.average(y, weights=(1.0, x, 2.0), axis=(1,))
y = y.transpose(np.array([1, 0]))
y = y.transpose(np.argsort((1, 0)).tolist())
try: np.sum(np.array(x), axis=1); except Exception as e: z = x * len(str(e)) + e.axis + e.ndim
try: np.sum(y, axis=5); except ValueError as e: z = x * len(f"{e} {e!r}")
"""


@lines(AXES)
def test_axes(code):
    """A permutation may be an array, and the error of an axis that is not there can be shown."""
    like_python(code)
    with jit(False):
        like_python(code)


FLAT = """
it = y.flat; next(it); z = x * it.index
it = y.flat; z = next(it) + sum(e * it.index for e in it) + it.index
it = y.flat; z = sum(e * (i + 2 * j) for e in it for i, j in [it.coords])
it = y.flat; next(it); it[2] = x; z = x * (it.index + 3)
it = y.reshape(3, 1, 3).flat; z = sum(list(it)[2:]) * (it.coords[0] + len(it.coords))
"""


@lines(FLAT)
def test_flat_iterators_know_where_they_are(code):
    like_python(code)
    with jit(False):
        like_python(code)


@pytest.mark.parametrize("turn", [np.transpose, lambda a, p: a.transpose(p)])
def test_permutations_in_arrays(turn):
    """One after the other, in the same place: each is undone as it is."""
    a, d = np.arange(27.0).reshape(3, 3, 3), np.cos(np.arange(27.0)).reshape(3, 3, 3)
    for p in ([0, 1, 2], [1, 2, 0], [1, 2, 0], [2, 0, 1], [0, 2, 1]):
        value, back = pullback(lambda a, p=p: turn(a, np.array(p)), a)
        np.testing.assert_array_equal(value, turn(a, p))
        np.testing.assert_array_equal(back(d)[0], np.transpose(d, np.argsort(p)))
