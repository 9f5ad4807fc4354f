"""Roots by the implicit function theorem, and optimisers that are given gradients of ours."""

import warnings

import numpy as np
import pytest
from checker import Table, check_first, check_second

import wengert
from wengert import NoRuleError, TraceError, WengertError, grad, pullback, value_and_grad

optimize = pytest.importorskip("scipy.optimize")

case = Table()

A = np.array([1.2, 0.7])


def cubic(x, a, b):
    return x**3 + a * x - b


for f in (optimize.brentq, optimize.brenth, optimize.bisect, optimize.ridder, optimize.toms748):
    case(
        lambda a, b, f=f: f(cubic, 0.0, 3.0, args=(a, b), xtol=1e-14),
        1.3,
        2.1,
        case={"name": f.__name__},
    )
    case(
        lambda a, b, f=f: f(lambda x: cubic(x, a, b), 0.0, 3.0, xtol=1e-14),
        1.3,
        2.1,
        case={"name": f"{f.__name__} closure"},
    )
case(lambda a, b: optimize.brentq(cubic, 0, 3, args=(a, b), full_output=True)[0], 1.3, 2.1)
case(lambda a, b: optimize.brentq(cubic, a - 1.0, b + 1.0, args=(a, b), xtol=1e-14), 1.3, 2.1)
case(lambda a, b: optimize.newton(lambda x: cubic(x, a, b), 1.0), 1.3, 2.1)
case(
    lambda a, b: optimize.newton(cubic, 1.0, fprime=lambda x, a, b: 3 * x * x + a, args=(a, b)),
    1.3,
    2.1,
)
for method in ("brentq", "bisect", "secant", "toms748"):
    case(
        lambda a, b, method=method: (
            optimize.root_scalar(
                lambda x: cubic(x, a, b),
                method=method,
                bracket=(0.0, 3.0),
                x0=1.0,
                x1=1.1,
                xtol=1e-14,
            ).root
        ),
        1.3,
        2.1,
        case={"name": method},
    )
case(lambda a: optimize.fixed_point(lambda x: np.cos(a * x), 0.7, xtol=1e-11), 0.9)
case(lambda a: optimize.fixed_point(lambda x, a: np.cos(a * x) / 2, A, args=(a,), xtol=1e-11), A)


def system(x, a):
    return [x[0] + 0.5 * np.sin(x[1]) - a[0], x[1] * (a[1] + 1.0) + x[0] ** 2 - 1.0]


case(lambda a: optimize.root(lambda x: np.array(system(x, a)), [1.0, 0.5], tol=1e-11).x, A)
case(lambda a: optimize.root(system, [1.0, 0.5], args=(a,), tol=1e-11).x, A)
case(lambda a: optimize.root(system, [1.0, 0.5], args=(a,), method="lm", tol=1e-11).x, A)
case(lambda a: optimize.fsolve(system, [1.0, 0.5], args=(a,), xtol=1e-11), A)
case(lambda a: optimize.fsolve(system, a, args=([a[0], a[1]],), xtol=1e-11) * a, A)
T = np.linspace(0.0, 1.5, 6)
Y = np.array([1.02, 0.83, 0.70, 0.61, 0.49, 0.42])
CLOSE = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}


def decay(t, a, b):
    return a * np.exp(-b * t)


case(lambda y: optimize.curve_fit(decay, T, y, **CLOSE)[0], Y)
case(lambda t, y: optimize.curve_fit(decay, t, y, [0.9, 0.5], **CLOSE)[0], T, Y)
case(lambda c: optimize.curve_fit(lambda t, a, b: c * decay(t, a, b) + c, T, Y, **CLOSE)[0], 0.3)
case(lambda y, s: optimize.curve_fit(decay, T, y, sigma=s, **CLOSE)[0], Y, 0.1 + 0.05 * T)
case(lambda y: optimize.curve_fit(lambda t, a, b: a + b * t, list(T), [y, *Y[1:]])[0], 0.9)


@case.each
def test_gradient(case):
    check_first(case)


@case.second
def test_second_order(case):
    check_second(case)


def test_third_derivative_of_a_root():
    """The cube root."""
    root = lambda a: optimize.brentq(lambda x: x**3 - a, 0.0, 5.0, xtol=1e-15)
    assert grad(grad(grad(root)))(2.0) == pytest.approx(10 / 27 * 2.0 ** (-8 / 3), rel=1e-8)


def test_a_fit_is_that_of_scipy():
    f = lambda y: optimize.curve_fit(decay, T, y, sigma=0.1 + T)
    for k in range(6):
        for found, plain in zip(pullback(f, Y + 0.1 * k)[0], f(Y + 0.1 * k), strict=True):
            np.testing.assert_array_equal(found, plain)


def test_the_covariance_of_a_fit_has_no_derivative():
    with pytest.raises(NoRuleError, match="covariance that curve_fit estimates"):
        grad(lambda y: optimize.curve_fit(decay, T, y)[1].sum())(Y)


def test_fits_with_covariances_are_refused():
    with pytest.raises(WengertError):
        grad(lambda y: optimize.curve_fit(decay, T, y, sigma=np.eye(6))[0].sum())(Y)


def test_a_fit_of_constants_takes_all_options():
    f = lambda x: x * optimize.curve_fit(decay, T, Y, bounds=(0.0, 5.0))[0].sum()
    for k in range(5):
        assert value_and_grad(f)(1.0 + k)[0] == f(1.0 + k)


def test_a_fit_of_data_that_change():
    data = Y.copy()
    f = lambda x: x * optimize.curve_fit(decay, T, data)[0].sum()
    answer = value_and_grad(f)
    for k in range(8):
        data[k % 6] += 0.05
        assert answer(1.5) == (f(1.5), pytest.approx(f(1.0), rel=1e-12))


def test_a_root_in_the_middle():
    def f(params):
        level = params["k"] * 2.0
        x = optimize.brentq(lambda x: np.exp(x) - level * params["w"][0], -5.0, 5.0)
        return x * params["k"]

    g = grad(f)({"k": 1.5, "w": np.array([2.0, 1.0])})
    assert g["k"] == pytest.approx(np.log(6.0) + 1.0)
    np.testing.assert_allclose(g["w"], [0.75, 0.0])


def test_what_is_captured_out_of_sight_is_refused():
    class Model:
        k = 1.5

    def f(model):
        return optimize.brentq(lambda x: x - model.k, -5.0, 5.0)

    model = Model()
    model.k = 2.0
    with pytest.raises(TraceError, match="test_scipy_optimize.py.*\npass it in args="):
        pullback(f, model)


def test_no_root_no_derivative():
    def f(a):
        return optimize.root(lambda x: x**2 + a, [0.5]).x[0]

    value, back = pullback(f, 1.0)
    with pytest.raises(NoRuleError, match="found no root"):
        back(1.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: float(optimize.fsolve(lambda x: x**2 + a, 1.0)[0]),
        lambda a: float(optimize.fsolve(lambda x: x**3 - x + 9 * a, [0.1], maxfev=8)[0]),
        lambda a: optimize.newton(lambda x: x**3 - x - 3 - a, 0.0, maxiter=3, disp=False),
        lambda a: optimize.newton(
            lambda x: x**3 + x - a, np.array([0.6823278, 90.0]), maxiter=3
        ).sum(),
        lambda a: optimize.brentq(lambda x: np.exp(x) - 3 - a, -9, 9, maxiter=3, disp=False),
        lambda a: optimize.bisect(lambda x: np.exp(x) - 3 - a, -9, 9, maxiter=3, disp=False),
        lambda a: optimize.toms748(lambda x: np.exp(x) - 3 - a, -9, 9, maxiter=1, disp=False),
    ],
)
def test_no_root_no_derivative_though_no_report_is_asked_for(f):
    with warnings.catch_warnings(record=True) as plain:
        warnings.simplefilter("always")
        expected = f(1.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        value, back = pullback(f, 1.0)
    assert value == expected
    told = [[(str(w.message), w.filename, w.lineno) for w in each] for each in (plain, seen)]
    assert told[0] == told[1]
    with pytest.raises(NoRuleError, match="found no root"):
        back(1.0)


def test_several_roots_by_newton_with_a_report():
    def f(a):
        report = optimize.newton(lambda x: x**2 - a, np.array([1.0, -1.0]), full_output=True)
        assert report.converged.all()
        return report.root @ np.array([1.0, 3.0])

    value, slope = value_and_grad(f)(2.0)
    assert value == f(2.0)
    assert slope == pytest.approx(-(2.0**-0.5))


def test_minimize_with_value_and_grad():
    def f(x):
        return (x[0] - 1.0) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2

    found = optimize.minimize(value_and_grad(f), np.zeros(2), jac=True)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)


def test_least_squares_with_jacobian():
    jacobian = getattr(wengert, "jacobian", None)
    if jacobian is None:
        pytest.skip("no jacobian yet")
    t = np.linspace(0.0, 2.0, 15)

    def f(p):
        return p[0] * np.exp(-p[1] * t) - 2.0 * np.exp(-0.7 * t)

    found = optimize.least_squares(f, np.array([1.0, 1.0]), jac=jacobian(f))
    np.testing.assert_allclose(found.x, [2.0, 0.7], atol=1e-7)


@pytest.mark.parametrize("args", [[3.0, 1.0], (3.0, 1.0), {3.0: None, 1.0: None}])
def test_args_of_newton_and_fixed_point_are_any_iterable(args):
    def roots(a):
        first, second = args
        given = (
            type(args)((a * first, second)) if type(args) is not dict else {a * first: 1, 1.0: 1}
        )
        x = optimize.newton(lambda x, p, q: q * x * x - p, 1.0, args=given)
        y = optimize.newton(
            lambda x, p, q: q * x * x - p, 1.0, fprime=lambda x, p, q: 2 * q * x, args=given
        )
        return x + y + optimize.fixed_point(lambda x, p, q: q * np.sqrt(p * x), 2.0, args=given)

    for a in (1.0, 1.2, 1.0):
        value, slope = value_and_grad(roots)(a)
        assert value == roots(a)
        assert slope == pytest.approx(np.sqrt(3 / a) + 3.0, rel=1e-6)
