"""Library code in pure Python, traced through unchanged."""

import colorsys
import copy
import fractions
import functools
import math
import statistics
import types

import numpy as np
import pytest

from helpers import Cases, assert_close, check, derivative, numeric_grad
from wengert import WengertError, grad, pullback, value_and_grad

case = Cases()

V = np.array([0.5, -1.2, 2.0, 0.7])
M = np.array([[0.5, -1.2, 2.0], [0.7, 0.1, -0.6], [1.5, 0.4, 0.9]])


@case.each
def test_like_python(f, args, options):
    check(f, *args, **options)


# -------------------------------------------------------------------------------------------- NumPy


@case(M[:2], V[:2])
def kron(m, v):
    return np.kron(m, np.outer(v, v))


@case(M)
def along_axis(m):
    return np.apply_along_axis(lambda row: row[0] * row + row.sum(), 1, m)


@case(M)
def over_axes(m):
    return np.apply_over_axes(np.sum, m * m, [0])


@case(V)
def numpy_in_python(v):
    return (
        np.average(v, weights=v * v),
        np.trapezoid(v, dx=0.5) if hasattr(np, "trapezoid") else np.sum(v),
        np.diff(v, 2),
        np.gradient(v),
        np.roll(v, 1) * v,
        np.rot90(np.outer(v, v))[0],
        np.convolve(v, v[:2]),
        np.polyval(v, 1.5),
        np.vander(v, 3),
        np.cov(np.stack([v, v**2])),
        np.median(v) * v[0],
        np.percentile(v, 30) * 1.0,
        np.interp(0.4, [0.0, 1.0], v[:2]),
        np.ptp(v),
        np.cross(v[:3], v[1:]),
        np.trace(np.outer(v, v)),
        np.tri(3) @ v[:3],
        np.block([[v, v], [v * 2, v]]),
        np.pad(v, 1) @ np.ones(6),
        np.linalg.matrix_power(np.outer(v, v), 3)[0],
        np.linalg.multi_dot([np.outer(v, v), np.outer(v, v), v]),
        np.nanmean(v),
        np.full(3, v[0]),
        np.isclose(v, v),
        np.allclose(v, v),
        np.unwrap(v),
    )


@case(V)
def polynomials(v):
    p = np.polynomial.Polynomial(v)
    return (
        p(1.3),
        p.deriv()(0.7),
        (p * p).coef,
        np.polynomial.chebyshev.chebval(0.3, v),
        p.integ()(2.0),
    )


# ---------------------------------------------------------------------------------- standard library


@case([0.5, -1.2, 2.0, 0.7])
def means(xs):
    positive = [x * x + 0.5 for x in xs]
    return (
        statistics.fmean(xs),
        statistics.geometric_mean(positive),
        statistics.median(xs),
        statistics.quantiles(xs, n=4)[0] * xs[0],
    )


@case([0.5, 1.25, 2.0, 0.75])
def middles(xs):
    return statistics.median_low(xs) * statistics.median_high(xs)


@case([0.5, 1.25, 2.0, 0.75])
def spreads(xs):
    """These make exact fractions of the bits of floats, so that they have rules."""
    return (
        statistics.mean(xs),
        statistics.variance(xs),
        statistics.stdev(tuple(xs)),
        statistics.pvariance(xs, mu=xs[0]),
        statistics.pstdev(xs),
        statistics.variance(xs, xbar=xs[1] * xs[2]),
        statistics.harmonic_mean(xs),
        statistics.harmonic_mean(xs, weights=[xs[1], 1.0, 2.0, xs[0]]),
    )


def test_spreads_of_what_is_read_only_once():
    for f in (
        lambda x: statistics.variance(iter([1.0, 2.0, 4.0]), xbar=x),
        lambda x: statistics.pstdev(map(float, [1, 2, 4]), mu=x),
    ):
        value, slope = value_and_grad(f)(1.5)
        assert value == f(1.5)
        assert slope == pytest.approx(derivative(lambda t, f=f: f(1.5 + t)), rel=1e-7)
    with pytest.raises(WengertError, match="read only once"):
        grad(lambda x: statistics.harmonic_mean([1.0, x], weights=iter([1.0, 2.0])))(1.5)
    assert value_and_grad(lambda x: statistics.pvariance(range(4), x))(1.5) == (1.25, 0.0)
    assert value_and_grad(lambda x: statistics.pvariance(range(4), x))(0.5) == (2.25, -2.0)


def test_spreads_twice_and_of_equal_numbers():
    xs = [0.5, 1.25, 2.0]
    for f in (statistics.variance, statistics.stdev, statistics.mean, statistics.harmonic_mean):
        slope = grad(lambda x: value_and_grad(f)([x, x * x, 2.0])[0])
        expected = derivative(lambda t: f([xs[0] + t, (xs[0] + t) ** 2, 2.0]))
        assert slope(xs[0]) == pytest.approx(expected, rel=1e-7)
        bent = grad(lambda x: grad(f)([x, 1.25, 2.0])[0])
        expected = derivative(lambda t: grad(f)([xs[0] + t, 1.25, 2.0])[0])
        assert bent(xs[0]) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    for f in (statistics.stdev, statistics.pstdev):
        assert grad(f)([1.5, 1.5, 1.5]) == [0.0, 0.0, 0.0]


@case([0.5, 1.25, 2.0, 0.75], [1.0, 0.3, 0.8, 0.2])
def weighted_means(xs, weights):
    return statistics.fmean(xs, weights)


@case([0.5, 1.25, 2.0, 0.75], [1.0, 0.3, 0.8, 0.2])
def correlations(xs, ys):
    xbar, ybar = statistics.fmean(xs), statistics.fmean(ys)
    sxy = math.fsum((x - xbar) * (y - ybar) for x, y in zip(xs, ys))
    return sxy / math.sqrt(
        math.fsum((x - xbar) ** 2 for x in xs) * math.fsum((y - ybar) ** 2 for y in ys)
    )


@case(0.3, 1.2, 0.8)
def normal_distribution(x, mu, sigma):
    normal = statistics.NormalDist(mu, sigma)
    return normal.pdf(x), normal.cdf(x), (normal + 2.0).mean, normal.zscore(x), normal.variance


@case(0.3, 0.6, 0.9)
def colours(r, g, b):
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return (
        colorsys.hsv_to_rgb(h * 0.5, s, v),
        colorsys.rgb_to_yiq(r, g, b),
        colorsys.rgb_to_hls(r, g, b),
    )


@case(0.3)
def fractions_and_floats(x):
    return fractions.Fraction(1, 3) * x + x / fractions.Fraction(2, 5)


@case(0.3, 2.0)
def namespaces(x, y):
    space = types.SimpleNamespace(a=x, b=[y])
    space.c = space.a * space.b[0]
    return copy.deepcopy(space).c, sorted(vars(space))


class Chain:
    """`functools` on methods."""

    def __init__(self, rate):
        self.rate = rate

    @functools.cached_property
    def doubled(self):
        return self.rate * 2

    @functools.lru_cache(maxsize=4)
    def power(self, n):
        return self.rate**n

    @functools.singledispatchmethod
    def apply(self, x):
        return x

    @apply.register
    def _(self, x: float):
        return x * self.rate

    @apply.register
    def _(self, x: list):
        return [self.apply(item) for item in x]

    half = functools.partialmethod(apply, 0.5)


@case(0.3, 2.0)
def functools_methods(x, y):
    c = Chain(x)
    return c.doubled * c.doubled, c.power(3) + c.power(3), c.apply([y, [y]]), c.half()


# --------------------------------------------------------------------------------------------- SciPy


def test_solve_ivp():
    """y'' = -k y by adaptive Runge-Kutta, all of it inside SciPy."""
    integrate = pytest.importorskip("scipy.integrate")

    def end(k, y0):
        rhs = lambda t, y: [y[1], -k * y[0]]
        solution = integrate.solve_ivp(rhs, (0.0, 5.0), [y0, 0.0], rtol=1e-6)
        return solution.y[0, -1]

    value, back = pullback(end, 2.0, 1.0)
    assert value == end(2.0, 1.0)
    dk, dy0 = back(1.0)
    assert dk == pytest.approx(-1.25309978093, abs=1e-9)
    assert dy0 == pytest.approx(0.70534727212, abs=1e-9)
    h = 1e-6
    assert dk == pytest.approx((end(2 + h, 1.0) - end(2 - h, 1.0)) / (2 * h), abs=1e-6)
    assert dy0 == pytest.approx((end(2.0, 1 + h) - end(2.0, 1 - h)) / (2 * h), abs=1e-6)
    exact = -5 / (2 * math.sqrt(2)) * math.sin(5 * math.sqrt(2))
    assert dk == pytest.approx(exact, abs=1e-2)


@pytest.mark.parametrize("method", ["RK23", "DOP853"])
def test_solve_ivp_by_other_methods(method):
    integrate = pytest.importorskip("scipy.integrate")

    def end(k, y0):
        solution = integrate.solve_ivp(
            lambda t, y: -k * y, (0.0, 2.0), np.array([y0]), method=method
        )
        return solution.y[0, -1]

    value, (dk, dy0) = value_and_grad(end, argnums=(0, 1))(1.5, 2.0)
    h = 1e-6
    assert dk == pytest.approx((end(1.5 + h, 2.0) - end(1.5 - h, 2.0)) / (2 * h), rel=1e-5)
    assert dy0 == pytest.approx((end(1.5, 2 + h) - end(1.5, 2 - h)) / (2 * h), rel=1e-5)


def test_solve_ivp_with_dense_output():
    integrate = pytest.importorskip("scipy.integrate")

    def early(k):
        rhs = lambda t, y: [y[1], -k * y[0]]
        given = {"rtol": 1e-8, "t_eval": [0.1, 0.5], "dense_output": True, "args": ()}
        solution = integrate.solve_ivp(rhs, (0.0, 2.0), [1.0, 0.0], **given)
        return solution.y[0, 1] + solution.sol(0.25)[0]

    w = math.sqrt(2)
    expected = -(0.5 * math.sin(0.5 * w) + 0.25 * math.sin(0.25 * w)) / (2 * w)
    assert grad(early)(2.0) == pytest.approx(expected, rel=1e-4)


def test_solve_ivp_with_events_is_right_or_loud():
    """SciPy looks for the time of an event with a function in C that calls back."""
    integrate = pytest.importorskip("scipy.integrate")

    def fall(k):
        falling = lambda t, y: y[0]
        falling.terminal = True
        rhs = lambda t, y: [y[1], -k * y[0]]
        solution = integrate.solve_ivp(rhs, (0.0, 5.0), [1.0, 0.0], rtol=1e-9, events=falling)
        return solution.t_events[0][0]

    try:
        slope = grad(fall)(2.0)
    except WengertError as error:
        assert "brentq" in str(error)
        return
    assert slope == pytest.approx(-math.pi / 4 * 2.0**-1.5, rel=1e-5)


def test_logsumexp():
    special = pytest.importorskip("scipy.special")
    check(lambda v: special.logsumexp(v), V)
    check(lambda m: special.logsumexp(m, axis=1, keepdims=True), M)
    check(lambda v, w: special.logsumexp(v, b=w), V, V**2)
    (gradient,) = pullback(special.logsumexp, V)[1](1.0)
    assert_close(gradient, np.exp(V) / np.exp(V).sum())
    check(lambda v: special.softmax(v)[1] * special.log_softmax(v)[0], V)


def test_simpson_and_trapezoid():
    integrate = pytest.importorskip("scipy.integrate")
    check(lambda v: integrate.simpson(v, dx=0.5), V[:3])
    check(lambda v, x: integrate.trapezoid(v, x), V, np.array([0.0, 0.5, 1.5, 2.0]))


def test_fixed_quadrature():
    integrate = pytest.importorskip("scipy.integrate")

    def area(a, k):
        return integrate.fixed_quad(lambda x: np.exp(-k * x), 0.0, a, n=8)[0]

    value, gradient = value_and_grad(area, argnums=(0, 1))(2.0, 0.7)
    assert value == pytest.approx((1 - math.exp(-1.4)) / 0.7)
    assert gradient[0] == pytest.approx(math.exp(-1.4))
    assert gradient[1] == pytest.approx((2 * math.exp(-1.4) * 0.7 - (1 - math.exp(-1.4))) / 0.49)


def test_root_finding_in_python():
    optimize = pytest.importorskip("scipy.optimize")

    def root(a):
        return optimize.newton(lambda x: x * x - a, 1.0, fprime=lambda x: 2 * x)

    value, slope = value_and_grad(root)(2.0)
    assert value == pytest.approx(math.sqrt(2))
    assert slope == pytest.approx(0.5 / math.sqrt(2), rel=1e-6)


def test_rosenbrock_of_scipy():
    optimize = pytest.importorskip("scipy.optimize")
    assert_close(grad(optimize.rosen)(V), optimize.rosen_der(V), tol=1e-10)
    for i, row in enumerate(optimize.rosen_hess(V)):
        mine = grad(lambda v, i=i: grad(optimize.rosen)(v)[i])(V)
        assert mine == pytest.approx(row, abs=1e-8)


def test_gradient_given_to_an_optimizer():
    """The other way round: SciPy minimises with a gradient of ours."""
    optimize = pytest.importorskip("scipy.optimize")

    def loss(v):
        return sum((a - i) ** 2 for i, a in enumerate(v)) + np.prod(np.cos(v)) * 0.1

    found = optimize.minimize(value_and_grad(loss), np.zeros(3), jac=True, method="BFGS")
    assert found.success
    assert grad(loss)(found.x) == pytest.approx(np.zeros(3), abs=1e-4)
    assert numeric_grad(loss, found.x) == pytest.approx(np.zeros(3), abs=1e-4)


def test_distances_and_rotations():
    spatial = pytest.importorskip("scipy.spatial.distance")
    check(lambda u, v: spatial.cosine(u, v) + spatial.braycurtis(u, v), V[:3] + 2.0, M[0] + 3.0)
