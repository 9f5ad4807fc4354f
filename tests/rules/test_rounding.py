"""What makes whole numbers of others has the derivative zero, as floor has; and truth values have none either."""

import operator

import numpy as np
import pytest

from wengert import TraceError, grad, jacobian, jit, rrule
from wengert.rules.registry import rules

X = np.array([0.7, -1.3, 2.6])


def written(x):
    a = np.zeros(3, int)
    a[:] = x
    return a


def copied(x):
    a = np.arange(3)
    np.copyto(a, x, casting="unsafe")
    return a


def into(fn, *shape, **options):
    """A function that writes its result into integers."""

    def write(x):
        out = np.zeros(shape, int)
        fn(x, out=out, **options)
        return out

    return write


ROUNDED = {
    "sum into": into(np.sum),
    "mean into": into(np.mean),
    "cumsum into": into(np.cumsum, 3),
    "multiply into": into(lambda x, **o: np.multiply(x, 2.5, **o), 3, casting="unsafe"),
    "floor": np.floor,
    "trunc": np.trunc,
    "astype": lambda x: x.astype(int),
    "astype of a scalar": lambda x: x[0].astype(np.int32),
    "astype to bool": lambda x: x.astype(bool),
    "asarray": lambda x: np.asarray(x, dtype=int),
    "asarray to bool": lambda x: np.asarray(x, bool),
    "array": lambda x: np.array(x, np.int16),
    "array of a list": lambda x: np.array([x[2], x[0], x[1]], int),
    "int": lambda x: int(x[2]),
    "bool": lambda x: bool(x[2]),
    "int64": lambda x: np.int64(x[2]),
    "full": lambda x: np.full(3, x[2], int),
    "full_like": lambda x: np.full_like(np.arange(3), x[2]),
    "an assignment": written,
    "copyto": copied,
    "sum": lambda x: np.sum(x, dtype=int),
    "cumsum": lambda x: np.cumsum(x, dtype=int),
    "concatenate": lambda x: np.concatenate([x[1:], x[:1]], dtype=int, casting="unsafe"),
    "linspace": lambda x: np.linspace(x[0], 10 * x[2], 3, dtype=int),
    "multiply": lambda x: np.multiply(x, 2.5, dtype=int, casting="unsafe"),
}


@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("name", ROUNDED)
def test_rounded(name, mode):
    """The derivative of the sum of r(x)*x is r(x), with r(x) alone it is zero."""
    r = ROUNDED[name]
    found = jacobian(lambda x: np.sum(r(x) * x), mode=mode)(X)
    np.testing.assert_array_equal(found, np.broadcast_to(r(X), (3,)))
    assert not jacobian(lambda x: np.sum(r(x) * 2.5), mode=mode)(X).any()


REFUSED = {
    "copyto of a number": lambda w, x: np.copyto(w, x[0]),
    "copyto": lambda w, x: np.copyto(w, x),
    "copyto where": lambda w, x: np.copyto(w, x, where=x > 0),
    "copyto safe": lambda w, x: np.copyto(np.zeros(3, np.float32), x, casting="safe"),
    "copyto of complex": lambda w, x: np.copyto(np.zeros(3), x * 1j),
    "a ufunc": lambda w, x: np.multiply(w, x, out=w),
    "in place": lambda w, x: operator.iadd(w, x),
    "clip": lambda w, x: np.clip(x, 0, 1, out=w),
    "concatenate": lambda w, x: np.concatenate([x[:1], x[1:]], out=w),
    "dot": lambda w, x: np.dot(np.eye(3), x, out=w),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_does_not_cast(name):
    def f(x):
        w = np.arange(3)
        try:
            REFUSED[name](w, x)
        except (TypeError, ValueError) as error:
            said.append(f"{type(error).__name__}: {error}")
        return (w * x).sum()

    said = []
    assert f(X) == -1.3 + 2 * 2.6 and said
    for on in (True, True, True, False):
        with jit(on):
            np.testing.assert_array_equal(grad(f)(X), [0.0, 1.0, 2.0])
    assert len(said) == 5 and len(set(said)) == 1


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_integers_are_numbers(mode):
    """A Python int that an array is made of is not rounded."""

    def f(n, x):
        return np.array([n, 2]).astype(np.int32) * x + np.full(2, n)

    by_n, by_x = jacobian(f, (0, 1), mode=mode)(3, 1.5)
    np.testing.assert_array_equal(by_n, [2.5, 1.0])
    np.testing.assert_array_equal(by_x, [3.0, 2.0])


@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_bits(mode):
    """A view as integers rounds nothing: what comes back of it would be lost."""
    with pytest.raises(TraceError, match="view takes a traced array of float64 apart"):
        jacobian(lambda x: x.view(np.int64).view(float), mode=mode)(X)


def test_straight_through():
    """A rule of one's own may say otherwise."""

    def rounded(x):
        return np.rint(x).astype(int)

    @rrule(rounded)
    def _(x):
        return rounded(x), lambda dz: (dz,)

    try:
        np.testing.assert_array_equal(grad(lambda x: np.sum(rounded(x) * 2.5))(X), [2.5] * 3)
    finally:
        del rules[rounded]
