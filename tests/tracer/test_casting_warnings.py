"""Numbers that find no room where they are written: NumPy warns at the user's line, in traced and in kept calls."""

import warnings

import numpy as np
import pytest

from wengert import jit, pullback

huge = 1e300
nan = float("nan")


def add_at(a):
    w = np.array([1, int(a), 3])
    np.add.at(w, 0, nan)


def multiply_at(a):
    w = np.array([1.0 * a, 3.0]).astype(np.float32)
    np.multiply.at(w, 0, huge)


def overflow_at(a):
    w = np.array([1.0 * a, 3.0])
    np.add.at(w, [0, 0], 1.7e308)


def item(a):
    w = np.array([1.0 * a, 3.0]).astype(np.float32)
    w[0] = huge
    return w[1]


def integer(a):
    w = np.array([1, 2, 3])
    w[1:2] = np.array([nan]) * a


def joined(a):
    return np.concatenate([np.array([huge * a])], dtype=np.float32, casting="same_kind")


@pytest.mark.parametrize(
    "f", [add_at, multiply_at, overflow_at, item, integer, joined], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("on", [True, False])
def test_warned(f, on):
    def told(call):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        return [(str(x.message), x.filename, x.lineno) for x in caught]

    expected = told(lambda: f(3.0))
    assert len(expected) == 1 and expected[0][1] == __file__
    with jit(on):
        for _ in range(5):
            assert told(lambda: pullback(f, 3.0)) == expected
