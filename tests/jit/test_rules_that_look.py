"""A rule that looks at a truth or an integer of its operands, whatever NumPy gives it as, is kept under its value."""

import numpy as np
import pytest
from scipy import linalg

from helpers import numeric_grad
from wengert import explain, grad, value_and_grad

A = np.array([[4.0, 1.0, 0.5], [0.2, 3.0, 0.1], [0.3, 0.4, 5.0]])
b = np.array([1.0, -2.0, 0.5])


def system(a, lower):
    return linalg.cho_solve(linalg.cho_factor(a, lower=lower), b).sum()


def test_which_triangle():
    """`cho_factor` tells in an array without axes which triangle it has used."""
    slope = value_and_grad(system)
    for lower in [False] * 5 + [True] * 5 + [False, True, True, False]:
        value, d = slope(A, lower)
        assert value == system(A, lower)
        assert d == pytest.approx(numeric_grad(lambda a: system(a, lower), A), abs=1e-7)
        used = np.tril(d, -1) if lower else np.triu(d, 1)
        assert np.all(used[np.nonzero(used)]) and np.any(used)
    # An array in SciPy 1.18; a bool before, on which its rule decides.
    if isinstance(linalg.cho_factor(A)[1], np.ndarray):
        told = str(explain(slope, A, True))
        assert "would answer" in told, told


@pytest.mark.parametrize("kind", [bool, np.bool_, np.array])
def test_truths_of_every_kind(kind):
    def f(a, low):
        return linalg.cho_solve((a, low), b).sum()

    slope = grad(f)
    for low in [True] * 5 + [False] * 5 + [True, False]:
        d = slope(A, kind(low))
        assert d == pytest.approx(numeric_grad(lambda a: f(a, low), A), abs=1e-7)
    assert "would answer" in str(explain(slope, A, kind(True)))
