"""Arrays without a derivative go to code in C: by callbacks, constructors and attributes that are written there."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.interpolate
import scipy.optimize
import scipy.spatial

from wengert import NoRuleError, WengertError, clear_cache, jit, value_and_grad

POINTS = np.random.default_rng(5).random((30, 2))
TIMES = np.linspace(0.0, 1.0, 9)
DECAY = np.exp(-TIMES)


@pytest.fixture(params=[False, True], ids=["off", "on"], autouse=True)
def switched(request):
    clear_cache()
    with jit(request.param):
        yield


def by_a_callback(x):
    def off(p):
        return p[0] * np.exp(-p[1] * TIMES) - DECAY

    return x * scipy.optimize.leastsq(off, [1.0, 0.5])[0][1]


def by_a_constructor(x):
    return x * scipy.spatial.ConvexHull(POINTS).volume


def of_a_library_in_python(x):
    return x * scipy.interpolate.griddata(POINTS, POINTS[:, 0], (0.5, 0.5))


def by_an_attribute(x):
    return x * scipy.optimize.linprog(-DECAY, A_ub=np.ones((1, 9)), b_ub=[1.0]).fun


@pytest.mark.parametrize(
    "f", [by_a_callback, by_a_constructor, of_a_library_in_python, by_an_attribute]
)
def test_constants_go_to_code_in_c(f):
    for x in (1.5, 2.5, 3.5, 4.5, 5.5):
        value, slope = value_and_grad(f)(x)
        assert value == f(x)
        assert slope == pytest.approx(float(f(1.0)), rel=1e-15)


def by_a_callback_with_x(x):
    return scipy.optimize.leastsq(lambda p: (p - x) * TIMES, [1.0])[0][0]


def by_a_constructor_with_x(x):
    return scipy.spatial.ConvexHull(POINTS * x).volume


def by_an_attribute_with_x(x):
    return scipy.optimize.linprog(-DECAY * x, A_ub=np.ones((1, 9)), b_ub=[1.0]).fun


@pytest.mark.parametrize(
    "f", [by_a_callback_with_x, by_a_constructor_with_x, by_an_attribute_with_x]
)
def test_what_has_a_derivative_does_not(f):
    with pytest.raises(WengertError):
        value_and_grad(f)(1.5)


def test_a_callback_made_in_the_run_and_called_there_too_keeps_its_derivative():
    def f(x):
        def off(p):
            return (p - 2.0) * TIMES

        found = scipy.optimize.leastsq(off, [1.0])[0][0]
        return off(np.array([x]))[8] * found

    value, slope = value_and_grad(f)(1.5)
    assert value == f(1.5)
    assert slope == pytest.approx(2.0)


def test_a_tree_of_points_that_are_written_to_with_x_is_refused():
    def f(x):
        points = np.array([[0.0, 0.0], [1.0, 1.0]])
        tree = scipy.spatial.cKDTree(points)
        points[0, 0] = x
        return tree.query([[0.0, 0.0]])[0][0]

    with pytest.raises(NoRuleError):
        value_and_grad(f)(0.25)
