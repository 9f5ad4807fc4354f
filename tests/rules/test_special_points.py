"""At poles, branch points and NaN a ufunc has the derivative of NumPy's own numbers, whatever number it is given."""

import math

import numpy as np
import pytest
from scipy import special

from helpers import assert_same
from wengert import grad, hessian, hvp, jacobian, jit, jvp, pullback, reverse, trace, value_and_grad

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
    (lambda x: np.power(x, -1.5), 0.0, -INF),
    (lambda x: np.power(x, -0.5), 0.0, -INF),
    (lambda x: np.float_power(x, -1.0), -0.0, -INF),
    (lambda x: np.power(x, 0.5), 0.0, 0.0),
    (lambda x: np.power(x, 1 / 3), -0.0, 0.0),
    (lambda y: np.power(0.0, y), -1.5, -INF),
    (lambda y: np.power(0.0, y), 0.0, 0.0),
    (lambda y: np.power(0.0, y), 0.5, 0.0),
    (lambda y: np.float_power([0.0, 2.0], [y, 0.0]).sum(), -2.0, -INF),
    (lambda y: np.float64(0.0) ** y, -0.5, -INF),
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


# A function of a number, a point, the first and the second derivative there
SECOND = [
    (special.ber, 0.0, 0, 0),
    (special.bei, 0.0, 0, 0.5),
    (special.berp, 0.0, 0, 0),
    (special.beip, 0.0, 0.5, 0),
    (lambda x: special.spherical_jn(0, x), 0.0, 0, -1 / 3),
    (lambda x: special.spherical_jn(1, x), 0.0, 1 / 3, 0),
    (lambda x: special.spherical_jn(2, x), 0.0, 0, 2 / 15),
    (lambda x: special.spherical_jn(1, x, derivative=True), 0.0, 0, -1 / 5),
    (lambda x: special.spherical_in(0, x), 0.0, 0, 1 / 3),
    (lambda x: special.spherical_in(1, x), 0.0, 1 / 3, 0),
    (lambda x: special.spherical_in(2, x), 0.0, 0, 2 / 15),
    (special.log_ndtr, 100.0, 0, 0),
    (special.log_ndtr, 0.0, math.sqrt(2 / math.pi), -2 / math.pi),
    (lambda x: special.owens_t(1.0, x), 100.0, 0, 0),
]


@pytest.mark.parametrize(("f", "x", "slope", "bend"), SECOND)
def test_a_second_derivative_at_a_special_point(f, x, slope, bend):
    for enabled in (False, True):
        with jit(enabled):
            for _ in range(3):
                np.testing.assert_allclose(grad(f)(x), slope, atol=1e-15)
                np.testing.assert_allclose(jvp(f, (x,), (1.0,))[1], slope, atol=1e-15)
                np.testing.assert_allclose(grad(grad(f))(x), bend, atol=1e-15)
                np.testing.assert_allclose(jvp(grad(f), (x,), (1.0,))[1], bend, atol=1e-15)


@pytest.mark.parametrize("enabled", [False, True])
def test_a_negative_power_has_a_pole_and_no_root(enabled):
    """In an array next to roots, whose slope at zero is zero; the second derivative as well, and in batches."""
    exponents = np.array([-1.5, -1.0, -0.5, 0.5, 1 / 3, 2.5])
    slopes, curvatures = [-INF, -INF, -INF, 0.0, 0.0, 0.0], [INF, INF, INF, 0.0, 0.0, 0.0]
    f = lambda x: np.sum(np.power(x, exponents))  # noqa: E731
    x = np.zeros(6)
    with np.errstate(all="ignore"), jit(enabled):
        for _ in range(4):
            np.testing.assert_equal(grad(f)(x), slopes)
            np.testing.assert_equal(grad(lambda x: np.sum(grad(f)(x)))(x) + 0.0, curvatures)
            np.testing.assert_equal(jvp(f, (x,), (np.eye(6)[1],))[1], -INF)
            found = np.diagonal(jacobian(lambda x: np.power(x, exponents))(x))
            np.testing.assert_equal(found, slopes)


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("power", [lambda x, y: x**y, math.pow, np.power, np.float_power])
@pytest.mark.parametrize("y", [0.0, 1.0, 2.0, -1.0])
def test_the_mixed_derivative_of_a_power_is_that_of_either_order(power, y, enabled):
    """Also where the exponent is zero: by the base and then by the exponent, 1/x."""
    x, mixed = 1.5, 1.5 ** (y - 1) * (1 + y * math.log(1.5))
    if power is np.power:
        of_vectors = lambda p: np.sum(np.power(p[:1], p[1:]))  # noqa: E731
        with jit(enabled):
            found = hessian(of_vectors)(np.array([x, y]))
        np.testing.assert_allclose([found[0, 1], found[1, 0]], mixed, rtol=1e-12)
    with jit(enabled):
        for _ in range(3):
            (_, xy), (yx, _) = hessian(power, argnums=(0, 1))(x, y)
            np.testing.assert_allclose([xy, yx], mixed, rtol=1e-12)


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, -1])
@pytest.mark.parametrize(
    "power",
    [lambda x, n: x**n, pow, math.pow, np.power, np.float_power, float.__pow__, np.float64.__pow__],
)
def test_the_mixed_derivative_by_an_integer_exponent_is_that_of_either_order(power, n, enabled):
    """An int that is an argument is a number: its own derivative of the slope by the base is 1/x at n = 0."""
    x, mixed = 1.5, 1.5 ** (n - 1) * (1 + n * math.log(1.5))
    x = np.float64(x) if power is np.float64.__pow__ else x
    by_base = lambda n: grad(lambda x: power(x, n))(x)  # noqa: E731
    with jit(enabled):
        for _ in range(3):
            (_, xy), (yx, _) = hessian(power, argnums=(0, 1))(x, n)
            of_slope = grad(by_base)(n), jvp(by_base, (n,), (1.0,))[1]
            of_other = grad(lambda x: grad(lambda n: power(x, n))(n))(x)
            np.testing.assert_allclose([xy, yx, *of_slope, of_other], mixed, rtol=1e-12)


def test_a_constant_exponent_leaves_a_plain_power_in_the_gradient():
    assert "x ** 2" in reverse(trace(lambda x: x**3, 1.5)).source()
    assert "2 * x" in reverse(trace(lambda x: (x**2).sum(), np.ones(2))).source()


@pytest.mark.parametrize("enabled", [False, True])
def test_a_power_whose_exponent_goes_down_to_zero_has_all_its_derivatives(enabled):
    """By the base twice and then by the exponent, at y = 1: (2y - 1) x**(y - 2)."""
    by_base = lambda y: grad(grad(lambda x: x**y))(1.5)  # noqa: E731
    with jit(enabled):
        for _ in range(3):
            assert grad(by_base)(1.0) == pytest.approx(1 / 1.5)
            assert by_base(1.0) == 0


@pytest.mark.parametrize("x", [0.0, 5e-324, -0.0, INF, math.nan])
def test_a_power_of_exponent_zero_has_the_slope_zero(x):
    with np.errstate(all="raise"):
        assert grad(lambda x: x**0.0)(x) == 0
        assert grad(lambda x: np.power(x, np.zeros(2)).sum())(x) == 0
        np.testing.assert_array_equal(grad(lambda x: np.sum(x**0.0))(np.array([x, 2.0])), 0)


@pytest.mark.parametrize("enabled", [False, True])
def test_powers_at_zero_in_a_program_of_pythons_numbers(enabled):
    with jit(enabled):
        step = grad(lambda x, y: x**y if x else float(np.float64(x) ** y), argnums=0)
        with np.errstate(all="ignore"):
            assert [step(x, -1.5) for x in (2.0, 4.0, 0.0, 0.0, 0.0)][2:] == [-INF] * 3
            assert [step(x, 0.5) for x in (2.0, 4.0, 0.0, 0.0, 0.0)][2:] == [0.0] * 3


def test_a_nan_is_the_largest_and_the_smallest():
    """What `max` and `min` of Python's numbers give back where that is NaN has the cotangent."""
    for fn in (max, min):
        for f in (lambda x: 3.0 * fn(x, 0.5), lambda x: 3.0 * fn([x, 0.5])):
            slope = grad(f)
            assert [slope(math.nan) for _ in range(6)] == [3.0] * 6
            assert grad(lambda x: 3.0 * fn(0.5, x))(math.nan) == 0.0  # Python keeps the first


@pytest.mark.parametrize("f", [np.maximum, np.minimum])
def test_the_operand_that_is_nan_has_the_slope_of_an_extreme_that_is(f):
    x, y = np.array([math.nan, 1.0, math.nan, 2.0]), np.array([1.0, math.nan, math.nan, 2.0])
    for _ in range(4):
        _, back = pullback(f, x, y)
        dx, dy = back(np.ones(4))
        np.testing.assert_array_equal(dx, [1, 0, 0.5, 0.5])
        np.testing.assert_array_equal(dy, [0, 1, 0.5, 0.5])
        assert grad(f, argnums=(0, 1))(math.nan, 1.0) == (1, 0)
    assert grad(lambda x: np.clip(x, 0.0, 1.0))(math.nan) == 1
    # as for the extreme value of an array, and for running ones
    np.testing.assert_array_equal(grad(np.max)(x[:2]), [1, 0])
    _, back = pullback(f.accumulate, np.array([1.0, math.nan, 3.0]))
    np.testing.assert_array_equal(back(np.array([1.0, 10.0, 100.0]))[0], [1, 110, 0])


@pytest.mark.parametrize(
    "function, at", [(np.exp, 800.0), (np.sinh, 800.0), (np.log, 0.0), (np.reciprocal, 0.0)]
)
def test_nothing_leaks_out_of_a_branch_that_was_not_taken_into_second_derivatives(function, at):
    def f(x):
        y = function(x)
        return np.where(np.isfinite(y), y * y, 1.0).sum()

    x = np.array([0.5, at])
    with np.errstate(all="ignore"):
        alone = hessian(f)(x[:1])
        expected = np.array([[alone[0, 0], 0.0], [0.0, 0.0]])
        assert_same(hessian(f)(x), expected)
        assert_same(hvp(f, (x,), (np.ones(2),)), expected.sum(1))
        assert_same(jvp(grad(f), (x,), (np.ones(2),))[1], expected.sum(1))
