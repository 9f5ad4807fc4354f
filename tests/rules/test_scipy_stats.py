"""SciPy's distributions, whose Python code is traced, down to the special functions; and a few rules."""

import functools

import numpy as np
import pytest
from checker import Table, check_first, check_second

from wengert import NoRuleError, grad

stats = pytest.importorskip("scipy.stats")

case = Table()

LOOSE = {"tol": 1e-5, "single": False, "second": False}
SECOND = {"tol": 1e-5, "single": False}
X = np.array([0.45, 0.8, 0.31])
P = np.array([0.35, 0.6, 0.2])
K = np.array([2, 0, 3])
SCALE = np.array([1.2, 0.9, 1.4])


def of(name, method, *shapes):
    """A method of a distribution, with shape parameters that are given."""
    found = getattr(getattr(stats, name), method)

    def f(x, *rest):
        return found(x, *shapes, *rest)

    f.__name__ = f"{name}.{method}{shapes}"
    return f


SHAPES = {
    "norm": (), "expon": (), "uniform": (), "laplace": (), "logistic": (), "cauchy": (), "halfnorm": (),
    "rayleigh": (), "gumbel_r": (), "t": (3.3,), "gamma": (2.3,), "lognorm": (0.7,), "chi2": (3.2,),
    "weibull_min": (1.7,), "pareto": (2.3,), "beta": (1.7, 2.4), "f": (3.1, 4.2), "invgamma": (2.3,),
}  # fmt: skip
for name, shapes in SHAPES.items():
    loc = -1.2 if name == "pareto" else 0.1
    for method in ("logpdf", "pdf"):
        case(of(name, method), X, *shapes, loc, SCALE, case=SECOND if method == "logpdf" else LOOSE)
        case(of(name, method), 0.45, *shapes, case=LOOSE) if name != "pareto" else None
    for method in ("cdf", "sf", "logcdf", "logsf"):
        case(of(name, method, *shapes), X, loc, SCALE, case=LOOSE)
    for method in ("ppf", "isf"):
        case(of(name, method, *shapes), P, loc, SCALE, case=LOOSE)
for name in ("genextreme", "skewnorm", "truncnorm", "triang", "exponnorm", "invgauss", "vonmises"):
    shapes = {"truncnorm": (-1.0, 2.0)}.get(name, (0.4,))
    case(of(name, "logpdf"), X, *shapes, case=LOOSE)
for name, parameters in {"poisson": (1.7,), "geom": (0.3,), "bernoulli": (0.3,)}.items():
    k = np.array([1, 1]) if name != "poisson" else K
    for method in ("logpmf", "pmf", "cdf") if name != "bernoulli" else ("logpmf", "pmf"):
        case(functools.partial(getattr(getattr(stats, name), method), k), *parameters, case=LOOSE)
for name in ("binom", "nbinom"):
    for method in ("logpmf", "pmf", "cdf", "sf"):
        case(of(name, method, 5), K, 0.3, case=LOOSE)
case(stats.nbinom.logpmf, K, 4.3, 0.3, case=LOOSE)

# Parameters with a formula of their own
DATA = np.array([[0.4, 1.9, 0.7], [2.3, 0.2, 1.1], [0.9, 0.6, 3.2]])
for lmbda in (0.0, 0.7, -1.3, 2.0):
    case(stats.boxcox_llf, lmbda, DATA[0])
    case(stats.boxcox_llf, lmbda, DATA, axis=1, keepdims=True)
    for data in (DATA, -DATA, DATA - 0.8):
        case(stats.yeojohnson_llf, lmbda, data)
        case(stats.yeojohnson_llf, lmbda, data[1], keepdims=True)
    case(stats.yeojohnson, np.append(DATA[0], [-0.4, -1.3]), lmbda)
case(stats.boxcox_llf, 0.3, DATA, axis=None)
case(stats.boxcox_llf, 40.0, 900 * DATA[0], case={"tol": 1e-4, "second": False, "single": False})

MEAN = np.array([0.3, -0.2])
COV = np.array([[1.3, 0.4], [0.4, 0.9]])
POINTS = np.array([[0.1, 0.4], [-0.7, 0.3], [0.5, 0.9]])


def symmetric(method, x, mean, a):
    return getattr(stats.multivariate_normal, method)(x, mean, a @ a.T + np.eye(2))


for method in ("logpdf", "pdf"):
    case(functools.partial(symmetric, method), POINTS, MEAN, COV, case={"name": method, **LOOSE})
case(lambda a: stats.multivariate_normal.entropy(MEAN, a @ a.T + np.eye(2)), COV, case=LOOSE)


def simplex(method, x, alpha):
    return getattr(stats.dirichlet, method)(x / np.sum(x), alpha)


for method in ("logpdf", "pdf"):
    case(
        functools.partial(simplex, method), P, SCALE, case={"name": f"dirichlet {method}", **LOOSE}
    )
case(lambda x: stats.norm(0.2, x).logpdf(0.4), 1.3, case=LOOSE)
case(lambda x: stats.zscore(x), X, case=LOOSE)
case(lambda x: stats.skew(x), X, case=LOOSE)
case(lambda x: stats.gmean(x), X, case=LOOSE)


@case.each
def test_gradient(case):
    check_first(case)


@case.second
def test_second_order(case):
    check_second(case)


def test_the_shape_of_a_distribution_function_is_named():
    with pytest.raises(NoRuleError, match="test_scipy_stats.py.*derivative in a"):
        grad(lambda a: stats.gamma.cdf(0.4, a))(1.3)
