"""At poles, branch points and NaN a ufunc has the derivative of NumPy's own numbers, whatever number it is given."""

import math

import numpy as np
import pytest
from scipy import special

from wengert import jit, jvp, value_and_grad

NAN, INF = math.nan, math.inf

# A function of a number, a point, the derivative there
POINTS = [
    (np.abs, NAN, NAN),
    (abs, NAN, NAN),
    (math.fabs, NAN, NAN),
    (lambda x: np.copysign(x, 1.0), NAN, NAN),
    (lambda x: math.copysign(x, 1.0), NAN, NAN),
    (lambda x: np.power(x, 0.5), -1.0, NAN),
    (lambda x: np.float_power(x, 2.5), -1.0, NAN),
    (lambda x: special.powm1(x, 0.5), -1.0, NAN),
    (lambda x: special.boxcox(x, 0.5), -1.0, NAN),
    (lambda x: special.boxcox(x, 0.5), 0.0, INF),
    (lambda x: np.power(x, -2), 0.0, -INF),
    (np.log, 0.0, INF),
    (np.log2, 0.0, INF),
    (np.log10, 0.0, INF),
    (np.log1p, -1.0, INF),
    (np.arctanh, 1.0, INF),
    (lambda x: np.divide(1.0, x), 0.0, -INF),
    (lambda x: np.divide(x, 0.0), 1.0, INF),
    (lambda x: np.fmod(x, 0.0), 1.0, 1.0),
]


@pytest.mark.parametrize("whole", [lambda z: z, float], ids=["as it is", "of Python's"])
@pytest.mark.parametrize("kind", [float, np.float64])
@pytest.mark.parametrize(("f", "x", "slope"), POINTS)
def test_a_derivative_at_a_special_point(f, x, slope, kind, whole):
    g = lambda y: whole(f(y))  # noqa: E731
    with np.errstate(all="ignore"):
        for enabled in (False, True):
            with jit(enabled):
                for _ in range(3):
                    value, found = value_and_grad(g)(kind(x))
                    np.testing.assert_equal((float(value), float(found)), (float(f(x)), slope))
                    np.testing.assert_equal(float(jvp(g, (kind(x),), (1.0,))[1]), slope)
