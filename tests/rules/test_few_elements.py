"""Arrays without elements, or without axes, have gradients like others."""

import numpy as np
import pytest

from wengert import jit, pullback, value_and_grad
from wengert.transforms.budget import Budget

NONE = [
    lambda a: np.std(a, axis=-1),
    lambda a: np.var(a, axis=0),
    lambda a: np.var(a, axis=-1, ddof=1),
    lambda a: np.repeat(a, 2, axis=0),
    lambda a: np.repeat(a, 3),
    np.cumsum,
    np.ravel,
    lambda a: np.concatenate([a, a]),
    lambda a: np.sort(a, axis=-1),
]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("f", NONE)
def test_arrays_without_elements(f, shape):
    x = np.zeros(shape)
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
        np.std(np.zeros(0))  # which warns, so that there is a warning
        for _ in range(3):
            value, back = pullback(f, x)
            assert np.array_equal(value, f(x), equal_nan=True)
            (slope,) = back(np.ones(np.shape(value)))
            assert slope.shape == shape


def test_a_variance_without_degrees_of_freedom_has_no_slope():
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
        value, slope = value_and_grad(lambda a: np.var(a, ddof=1))(np.array([1.5]))
    assert np.isnan(value) and np.isnan(slope).all()


@pytest.mark.parametrize("kind", [float, np.float64, np.array])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.add(x, x, out=np.empty_like(x)),
        lambda x: np.multiply(x, x, out=np.zeros(())),
        lambda x: (np.zeros(()), np.sin(x, out=np.zeros(())))[1],
        lambda x: np.compress([True], np.asarray(x), axis=0),
        lambda x: np.convolve(x, np.array([1.0, 2.0])),
        lambda x: np.repeat(x, 3),
    ],
)
def test_arrays_without_axes(f, kind, monkeypatch):
    monkeypatch.setattr(Budget, "limited", False)
    plain, h = f(kind(0.5)), 1e-6
    expected = np.sum((f(kind(0.5 + h)) - f(kind(0.5 - h))) / (2 * h))
    for enabled in (False, True):
        with jit(enabled):
            for _ in range(4):
                value, back = pullback(f, kind(0.5))
                assert type(value) is type(plain) and np.array_equal(value, plain)
                (slope,) = back(np.ones(np.shape(plain)))
                assert float(slope) == pytest.approx(float(expected), rel=1e-6)
