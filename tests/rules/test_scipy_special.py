"""The rules for SciPy's special functions."""

import functools

import numpy as np
import pytest
from checker import Table, check_first, check_forward, check_second, check_single

from wengert import NoRuleError, grad, pullback

special = pytest.importorskip("scipy.special")

case = Table()

X = np.array([[0.31, 1.27, 0.84], [2.3, 0.55, 1.71]])
SIGNED = np.array([[-1.3, 0.4, 2.2], [0.9, -0.35, -2.1]])
UNIT = np.array([[0.12, 0.45, 0.83], [0.66, 0.29, 0.57]])
ROW = np.array([0.6, 1.4, 2.7])
Z = X + 1j * SIGNED
LOOSE = {"tol": 1e-5}
NO_SINGLE = {"single": False}
FIRST = {"second": False}


def at(name, *first):
    """The function with its first arguments given: those in which no derivative is asked for."""
    f = functools.partial(getattr(special, name), *first)
    f.__name__ = f"{name}{first}"
    return f


# One argument, all of them real
for f in """gamma gammaln loggamma rgamma psi erf erfc erfcx erfi dawsn ndtr log_ndtr expit log_expit exprel cosm1
    expm1 log1p exp2 exp10 cbrt j0 j1 i0 i0e i1 i1e spence sindg cosdg tandg cotdg wrightomega""".split():
    case(getattr(special, f), X)
    case(getattr(special, f), 0.7)
for f in """erf erfc erfcx erfi dawsn ndtr log_ndtr expit log_expit exprel cosm1 expm1 exp2 j0 j1 i0 i0e i1 i1e gamma
    rgamma gammaln psi cbrt sindg cosdg wrightomega""".split():
    case(getattr(special, f), SIGNED + 0.05, case={"tol": 1e-5, "single": f != "psi"})
for f in "y0 y1 k0 k0e k1 k1e expi exp1 entr ellipkm1 ker kei ber bei kerp keip berp beip itstruve0".split():
    case(getattr(special, f), X[0] * 0.5 + 0.2, case=LOOSE)
for f in "erfinv ndtri logit ellipk ellipe entr erfcinv".split():
    case(getattr(special, f), UNIT, case=LOOSE)
    case(getattr(special, f), 0.3)
for f in "loggamma gamma rgamma erf erfc erfcx erfi dawsn wofz ndtr log_ndtr expm1 log1p wrightomega".split():
    case(
        getattr(special, f),
        Z,
        case={"second": f not in ("loggamma", "gamma", "rgamma"), "tol": 1e-5},
    )
case(special.wofz, X)
case(special.ndtri_exp, -X, case=LOOSE)
case(special.erfi, 0.0)
case(special.ellipk, -3.0 * X, case=LOOSE)
case(special.ellipe, -3.0 * X, case=LOOSE)
case(special.spence, np.array([1.0, 0.2, 3.5]))
case(special.rgamma, np.array([-2.0, 0.0, -0.3]), case=LOOSE)
case(special.log_ndtr, np.array([-30.0, -5.0, 8.0]), case=LOOSE)
case(special.expit, np.array([-40.0, 40.0]))
case(special.exprel, np.array([-0.5, 0.0, 1e-9]))
case(at("polygamma", 1), X, case=LOOSE)
case(special.polygamma, np.array([0, 1, 2]), X, case=LOOSE)
case(at("zeta", 2.5), X + 1, case=LOOSE)
case(special.zeta, np.array([2, 3, 4]), X + 1, case=LOOSE)
case(special.multigammaln, X + 3, 3)
case(special.multigammaln, 3.2, 2)

# Several arguments; the first may be a parameter without a formula
for n in (0, 1, 2.5):
    for f in "jv yv iv ive kv kve struve modstruve".split():
        case(at(f, n), X + 0.2, case=LOOSE)
    for f in "jv iv hankel1 hankel2 hankel1e hankel2e kve kv yv".split():
        case(at(f, n), Z, case=LOOSE)
for n in (0, 1, 3):
    for f in "yn kn jn".split():
        case(at(f, n), X + 0.2, case=LOOSE)
    for f in "spherical_jn spherical_yn spherical_in spherical_kn".split():
        case(at(f, n), X + 0.2, case=LOOSE)
        case(at(f, n), X + 0.2, derivative=True, case=LOOSE)
    for (
        f
    ) in """legendre chebyt chebyu chebyc chebys sh_legendre sh_chebyt sh_chebyu laguerre hermite
        hermitenorm""".split():
        case(at(f"eval_{f}", n), UNIT, case=LOOSE)
    for f in "gegenbauer genlaguerre".split():
        case(at(f"eval_{f}", n, 0.7), UNIT)
    for f in "jacobi sh_jacobi".split():
        case(at(f"eval_{f}", n, 1.7, 0.6), UNIT)
    case(at("expn", n), X, case=LOOSE)
case(at("jve", 1), X)
case(at("yve", 1), X)
case(at("ive", 1), SIGNED)
case(special.jv, np.array([0, 1, 2]), X)
case(at("eval_legendre", 3), np.array([-1.0, 1.0]))
case(special.eval_legendre, np.array([0, 1, 4]), UNIT)
for f in "beta betaln binom poch powm1 xlogy xlog1py rel_entr kl_div boxcox boxcox1p inv_boxcox inv_boxcox1p".split():
    case(getattr(special, f), X + 0.1, ROW, case=LOOSE)
    case(getattr(special, f), 2.3, 1.4, case=LOOSE)
case(special.boxcox, X, np.array([0.0, 1e-9, -0.7]))
case(special.inv_boxcox, X, np.array([0.0, 1e-9, 0.4]), case=LOOSE)
case(special.huber, 1.1, SIGNED)
case(special.pseudo_huber, 1.1, SIGNED)
case(special.pseudo_huber, ROW, SIGNED)
case(special.logit, UNIT[0])
case(special.lambertw, X)
case(special.lambertw, 0.0)
case(special.lambertw, Z, 1)
case(special.owens_t, SIGNED, ROW)
case(special.voigt_profile, SIGNED, ROW, 0.7)
case(at("hyp2f1", 1, 2, 3), UNIT - 0.2)
case(at("hyp2f1", 0.7, 1.2, 2.1), UNIT - 0.2, case=LOOSE)
case(at("hyp1f1", 0.7, 1.2), SIGNED)
case(at("hyperu", 0.7, 1.2), X, case=LOOSE)
case(at("hyp0f1", 1.2), SIGNED)
case(special.ellipkinc, UNIT, UNIT[::-1], case=LOOSE)
case(special.ellipeinc, UNIT, UNIT[::-1], case=LOOSE)
case(special.ellipkinc, 4.3, 0.4, case=LOOSE)
case(special.ellipeinc, -7.9, 0.4, case=LOOSE)
case(special.ellipkinc, 0.8, 0.0, case=FIRST)
case(special.ellipj, SIGNED, UNIT, case=LOOSE)
case(special.elliprf, X, X + 1, X * 2 + 0.3, case=LOOSE)
case(special.elliprd, X, X + 1, X * 2 + 0.3, case=LOOSE)
for f in "airy itj0y0 iti0k0 sici shichi".split():
    case(getattr(special, f), X + 0.1, case={"single": f not in ("sici", "shichi"), **LOOSE})
case(special.sici, X[0], case=NO_SINGLE)
case(special.fresnel, SIGNED, case=LOOSE)
case(special.airy, -X)

# Distribution functions
for f in "gammainc gammaincc chdtr chdtrc".split():
    case(at(f, 1.7), X, case=LOOSE)
    case(at(f, 2), X)
case(at("pdtri", 2), UNIT, case=LOOSE)
for f in "gammaincinv gammainccinv chdtri".split():
    case(at(f, 1.7), UNIT, case=LOOSE)
for f in "betainc betaincc fdtr fdtrc betaincinv betainccinv".split():
    case(at(f, 1.7, 2.4), UNIT, case=LOOSE)
case(at("fdtri", 3.0, 5.0), UNIT, case=LOOSE)
case(lambda a, x: special.gdtr(a, 1.3, x), ROW, X, case=LOOSE)
case(lambda a, x: special.gdtrc(a, 1.3, x), ROW, X, case=LOOSE)
case(at("stdtr", 3), SIGNED)
case(at("stdtrit", 3), UNIT, case=LOOSE)
case(at("pdtr", 2), X)
case(at("pdtrc", 2), X)
case(at("bdtr", 2, 5), UNIT, case=NO_SINGLE)
case(at("bdtrc", 2, 5), UNIT, case=NO_SINGLE)
case(at("nbdtr", 2, 5), UNIT)
case(at("nbdtrc", 2, 5), UNIT)
case(special.nrdtrimn, 0.3, ROW, X)
case(special.nrdtrisd, 0.2, 0.3, X)
case(special.nrdtrisd, 0.2, 0.7, X)

# SciPy's own Python code
M = SIGNED
for f in (special.logsumexp, special.softmax, special.log_softmax):
    case(f, M)
    case(f, M, axis=1)
    case(f, M, axis=-2)
case(special.logsumexp, M, axis=(0, 1))
case(special.logsumexp, M, axis=1, keepdims=True)
case(lambda a, b: special.logsumexp(a, b=b), M, X)
case(lambda a, b: special.logsumexp(a, axis=0, b=b), M, ROW)
case(lambda a, b: special.logsumexp(a, axis=1, b=b, return_sign=True)[0], M, X)
case(
    lambda a: special.logsumexp(a),
    np.array([1.0, -np.inf, 2.0]) + 0.0,
    case={"name": "with -inf", **FIRST},
)
TIED = np.array([[0.4, 0.4, -1.2], [0.9, 0.9, 0.9]])
case(special.logsumexp, TIED)
case(special.logsumexp, TIED, axis=-1)
case(lambda a, b: special.logsumexp(a, axis=1, b=b, keepdims=True), TIED, X)
case(lambda a, b: special.logsumexp(a, axis=1, b=b, return_sign=True)[0], TIED, -X)
case(lambda a, b: special.logsumexp(a, axis=(0, 1), b=b), TIED[0], X)
case(lambda a, b: special.logsumexp([a, 0.3, a], b=[1.0, b, 2.0]), 0.3, 0.7)
case(special.logsumexp, TIED + 1j * X)
case(lambda a, b: special.logsumexp(a, axis=0, b=b, return_sign=True), Z, X)
case(special.comb, 5.3, 2.1)
case(special.comb, X + 3, ROW)
case(special.sinc, SIGNED)
case(special.perm, 5.3, 2.1)
case(lambda x: special.jvp(1, x), X)
case(lambda x: special.legendre(3)(x), UNIT)


@case.each
def test_gradient(case):
    check_first(case)


@case.each
def test_forward(case):
    check_forward(case)


@case.second
def test_second_order(case):
    check_second(case)


@case.single
def test_single_precision(case):
    check_single(case)


@pytest.mark.parametrize(
    "f, args, name",
    [
        (special.jv, (1.5, 2.0), "the order"),
        (special.gammainc, (1.5, 2.0), "a"),
        (special.betainc, (1.5, 2.0, 0.3), "a"),
        (special.eval_legendre, (2.0, 0.3), "the degree n"),
        (special.zeta, (2.0, 1.5), "x"),
        (special.spherical_jn, (2.0, 1.5), "the order"),
    ],
)
def test_arguments_without_a_formula(f, args, name):
    with pytest.raises(
        NoRuleError, match=f"test_scipy_special.py.*{f.__name__} has no formula .* in {name}"
    ):
        grad(lambda *xs: f(*xs))(*args)


def test_scaled_functions_of_complex_arguments_are_refused():
    with pytest.raises(NoRuleError, match="holomorphic"):
        pullback(special.ive, 1, 1.0 + 2.0j)[1](1.0 + 0j)


def test_second_derivative_at_equal_arguments_is_refused():
    with pytest.raises(NoRuleError, match="elliprd"):
        grad(grad(lambda m: special.ellipkinc(0.8, m)))(0.0)


def test_logarithms_at_zero():
    assert grad(special.entr)(0.0) == np.inf
    assert grad(special.xlogy)(0.0, 2.0) == pytest.approx(np.log(2))
    np.testing.assert_array_equal(grad(lambda x: np.sum(special.xlogy(x, x) * 0.0))(np.zeros(2)), 0)


def test_impossible_states_of_a_sum_of_logarithms_have_no_slope():
    """As of a hidden Markov model; the slope at a sum of nothing is not asked for, where all goes to zero."""
    a = np.array([[1.0, -np.inf, 2.0], [-np.inf, -np.inf, -np.inf]])
    slope = grad(lambda a: np.exp(special.logsumexp(a, axis=1)).sum())(a)
    np.testing.assert_allclose(slope, np.exp(a))
