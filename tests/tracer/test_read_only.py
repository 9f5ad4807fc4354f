"""Writes to read-only arrays fail as in NumPy: before anything is computed, so that nothing is warned about."""

import warnings

import numpy as np
import pytest

from wengert import jit, pullback


def frozen(v):
    v.flags.writeable = False
    return v


def in_place(v, a):
    v *= a


def by_method(v, a):
    v.__imul__(a)


def power(v, a):
    v **= a


def through_a_view(v, a):
    w = v.view()
    w /= 0.0 * a


def out(v, a):
    np.multiply(v, a, out=v)


def out_of_others(v, a):
    np.divide(a, 0.0 * v, out=(v,))


def reduction(v, a):
    np.multiply.reduce(np.array([a, a]), out=v[:1])


def of_the_run(v, a):
    w = frozen(np.array([1.0, 2.0]) * a)
    w *= a


@pytest.mark.parametrize(
    "f", [in_place, by_method, power, through_a_view, out, out_of_others, reduction, of_the_run]
)
@pytest.mark.parametrize("on", [True, False])
def test_nothing_is_computed(f, on):
    v = frozen(np.array([1e200, 2.0]))
    for _ in range(4):
        with warnings.catch_warnings(), pytest.raises(ValueError) as caught, jit(on):
            warnings.simplefilter("error")
            pullback(lambda a: f(v, a), 1e200)
        assert str(caught.value) == "output array is read-only"
